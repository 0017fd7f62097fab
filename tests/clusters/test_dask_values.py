"""Kernel values, hashes, sums and margins of rows in partitions, each against the rows in one piece."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from generators import paused

sys.path.insert(0, str(Path(__file__).parent))
from partitioned import partitions

from maxmargin.dask import values as module
from maxmargin.dask.linear import PartitionedProblem, block_extent, block_outputs, block_sum
from maxmargin.dask.values import (
    Held,
    PartitionedData,
    block_hashes,
    block_largest,
    block_nearest,
    block_norm,
    block_powers,
    block_sums,
    distinct_of,
    frame_of,
    gamma_of,
    judged,
)
from maxmargin.dask.whole import violators
from maxmargin.data.rows import distinct_rows
from maxmargin.linear import LinearProblem
from maxmargin.linear.problem import Sum
from maxmargin.problem.formulations import c_svc
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Status

FORMS = [np.asarray, sp.csr_matrix]
CUTS = (7, 7, 20, 33)  # of 40 rows: one of the partitions has none


def rows(n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8), 2)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def rbf(a, b, gamma=0.5):
    return np.exp(-gamma * np.square(dense(a)[:, None] - dense(b)[None]).sum(axis=2))


def by_name(name, gamma=0.5):
    """A kernel, and its values in NumPy."""
    forms = {
        "rbf": rbf,
        "laplacian": lambda a, b: np.exp(-gamma * np.abs(dense(a)[:, None] - dense(b)[None]).sum(axis=2)),
        "linear": lambda a, b: dense(a) @ dense(b).T,
        "poly": lambda a, b: (gamma * dense(a) @ dense(b).T + 1.0) ** 2,
    }
    if name == "callable":
        return Kernel("callable", 1.0, 0.0, 3, rbf), rbf
    return Kernel(name, gamma, 1.0, 2, None), forms[name]


KERNELS = ["rbf", "laplacian", "linear", "poly", "callable"]


def data_of(form=np.asarray, name="rbf", samples=None, seed=0):
    X = partitions(form(rows(seed=seed)), CUTS)
    kernel, values = by_name(name)
    samples = np.random.default_rng(1).permutation(40)[:30] if samples is None else samples
    frame = frame_of(X, kernel, samples, np.float64)
    return PartitionedData(X, kernel, samples, np.float64, 1, frame), rows(seed=seed), values


# ---- samples in partitions


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_sums_and_gram_matrices_are_those_of_the_rows(form, name):
    data, X, kernel = data_of(form, name)
    rng = np.random.default_rng(2)
    for count in (1, 8, 30):
        ids, others, coef = rng.permutation(30)[:count], rng.permutation(30)[:5], rng.normal(size=5)
        expected = kernel(X[data.rows[ids]], X[data.rows[others]]) @ coef
        np.testing.assert_allclose(paused(data.sums(ids, others, coef))[0], expected, rtol=1e-6, atol=1e-9)
        there = X[data.rows[ids]]
        np.testing.assert_allclose(data.source().gram(ids), kernel(there, there), rtol=1e-9, atol=1e-12)
    calls = len(data.X.carrier.calls)
    none, _ = paused(data.sums(np.arange(4), np.arange(0), np.empty(0)))
    assert none.tolist() == [0.0] * 4 and len(data.X.carrier.calls) == calls
    assert not data.at_hand and data.known_frame() is data.frame


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["rbf", "laplacian", "callable"])
def test_the_nearest_centre_is_that_of_the_rows(form, name):
    data, X, kernel = data_of(form, name)
    rng = np.random.default_rng(3)
    sampled, end = rng.permutation(30)[:9], np.array([2, 5, 9])
    start, there = np.r_[0, end[:-1]], X[data.rows[sampled]]
    for offset in (np.zeros(3), rng.normal(size=3)):
        for ids in (np.array([29]), rng.permutation(30)):
            values = kernel(X[data.rows[ids]], there)
            means = np.stack([values[:, a:b].mean(axis=1) for a, b in zip(start, end)], axis=1)
            found, _ = paused(data.source().nearest(ids, sampled, end, offset))
            np.testing.assert_array_equal(found, np.argmin(offset - 2 * means, axis=1))


def test_samples_are_looked_for_in_their_partitions():
    data, _, _ = data_of(samples=np.array([39, 0, 7, 6, 20, 19, 33, 32, 8]))
    which, order, own = data.by_partition(np.arange(9))
    assert which == [0, 2, 3, 4] and all(len(pair) == 1 for pair in own)
    assert [pair[0].tolist() for pair in own] == [[0, 6], [0, 12, 1], [0, 12], [6, 0]]
    assert data.rows[order].tolist() == [0, 6, 7, 19, 8, 20, 32, 39, 33]
    which, order, own = data.by_partition(np.array([4, 0]))
    assert which == [3, 4] and order.tolist() == [0, 1] and [pair[0].tolist() for pair in own] == [[0], [6]]
    blocks = data.blocks()
    assert blocks.block.tolist() == [4, 0, 2, 0, 3, 2, 4, 3, 2] and blocks.place.tolist() == [6, 0, 0, 6, 0, 12, 0, 12, 1]


def test_rows_that_were_fetched_last_are_kept_and_others_are_not(monkeypatch):
    X, asked = rows(), []

    def fetch(ids):
        asked.append(ids.tolist())
        return X[ids]

    held = Held()
    for ids, fetched in (([5, 3, 5], [3, 5]), ([3], None), ([5, 5], None), ([4, 3], [3, 4]), ([39, 5], [5, 39]),
                         ([39, 39], None), ([0], [0]), ([39], [39])):  # fmt: skip
        before = len(asked)
        np.testing.assert_array_equal(held.of(np.array(ids), fetch), X[ids])
        assert asked[before:] == ([] if fetched is None else [fetched])
    data, _, _ = data_of()
    calls = data.X.carrier.calls
    data.rows_of(np.array([3, 4]))
    count = len(calls)
    other = data.with_kernel(by_name("laplacian")[0])
    np.testing.assert_array_equal(other.rows_of(np.array([4, 3, 3])), X[data.rows[[4, 3, 3]]])
    again = len(calls)
    data.rows_of(np.array([3, 4]))
    assert len(calls) == again  # kept for whatever kernel
    monkeypatch.setattr(Held, "most", 3 * 3)
    data.rows_of(np.array([3, 4, 3]))
    assert len(calls) == again >= count
    np.testing.assert_array_equal(data.rows_of(np.array([3, 4, 3, 4])), X[data.rows[[3, 4, 3, 4]]])
    assert len(calls) > again


@pytest.mark.parametrize("form", FORMS)
def test_another_kernel_has_the_frame_that_belongs_to_it(form):
    data, _, _ = data_of(form)
    wider = data.with_kernel(replace(data.kernel, gamma=2.0))
    assert wider.frame[0] is data.frame[0] and wider.frame[1] == 4 * data.frame[1]
    fresh = frame_of(data.X, wider.kernel, data.rows, np.float64)
    assert fresh[1] == pytest.approx(wider.frame[1], rel=1e-12)
    other, _ = by_name("laplacian")
    expected = frame_of(data.X, other, data.rows, np.float64)
    found = data.with_kernel(other)
    assert found.frame[1] == expected[1] and found.kernel is other and (found.rows == data.rows).all()
    np.testing.assert_array_equal(found.frame[0], expected[0])
    assert data.with_kernel(by_name("callable")[0]).frame is None
    given, _, _ = data_of(form, "callable")
    assert given.frame is None and given.with_kernel(given.kernel).frame is None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_frame_is_a_point_among_the_rows_and_the_largest_norm_from_there(form, name, monkeypatch):
    X = rows() + (5.0 if form is np.asarray else 0.0)
    made, (kernel, _) = partitions(form(X), CUTS), by_name(name)
    if name == "callable":
        assert frame_of(made, kernel, np.arange(40), np.float64) is None
        return
    for many, some in ((1000, np.arange(40)), (40, np.arange(40)), (20, np.arange(0, 40, 2)), (15, np.arange(0, 40, 2))):
        monkeypatch.setattr(module, "FRAME_ROWS", many)
        shift, largest = frame_of(made, kernel, np.arange(40), np.float64)
        if len(shift):
            np.testing.assert_allclose(shift, X[some].mean(axis=0), rtol=1e-6)
        away = X - (shift if len(shift) else 0.0)
        size = np.abs(away).sum(axis=1) if name == "laplacian" else np.square(away).sum(axis=1)
        distances = name in ("rbf", "laplacian")  # other kernels have no norms
        assert largest == pytest.approx(size.max() * kernel.gamma if distances else 0.0, rel=1e-6)
        assert distances or not len(shift)


def test_the_largest_norm_is_that_of_all_rows_of_a_long_block():
    rng = np.random.default_rng(4)
    kernel, shift = by_name("rbf")[0], np.array([1.0, 2.0])
    for n in (0, 16384, 16385, 33000):
        X = rng.normal(size=(n, 2)).astype(np.float32)
        X[-1:] = 50.0
        expected = 0.5 * np.square(X.astype(float) - shift).sum(axis=1).max(initial=0.0)
        assert block_norm(X, kernel, np.float32, shift) == pytest.approx(expected, rel=1e-12)


# ---- equal rows


@pytest.mark.parametrize("form", FORMS)
def test_equal_rows_are_found_wherever_they_are_as_on_one_machine(form):
    """Zeros of either sign are equal; rows with other labels are not; rows of weight 0 do not count."""
    X = rows()
    X[20:30], X[35] = X[:10], X[6]
    X[3], X[25] = -0.0, 0.0
    target = np.where(np.arange(40) % 3, 1.0, -1.0)
    target[20:30], target[35] = target[:10], target[6]
    target[22] = -target[22]
    weight = np.random.default_rng(5).integers(0, 3, 40).astype(float)
    there = distinct_of(partitions(form(X), CUTS), target, weight)
    here = distinct_rows(form(X), target, weight, merge=True, threads=1)
    for name in ("index", "weight", "member", "owner", "member_weight"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    assert len(there.index) < np.count_nonzero(weight)


@pytest.mark.parametrize("form", FORMS)
def test_hashes_tell_rows_apart_and_do_not_depend_on_the_block(form):
    rng = np.random.default_rng(6)
    X = np.vstack([np.eye(6), np.zeros((1, 6)), 2 * np.eye(6), np.eye(6)[:, ::-1] * 3, rng.normal(size=(50, 6))])
    X = np.vstack([X, X + 1e-13, X[:1] + np.eye(1, 6, 3)])
    own, other = block_hashes(form(X), np.ones(len(X)))
    distinct = len(np.unique(X, axis=0))
    assert len(np.unique(own)) == len(np.unique(other)) == distinct and other.dtype == own.dtype == np.uint64
    for part in (slice(0, 1), slice(5, 17), slice(17, 17)):
        a, b = block_hashes(form(X[part]), np.ones(len(X[part])))
        np.testing.assert_array_equal(a, own[part])
        np.testing.assert_array_equal(b, other[part])
    labelled, _ = block_hashes(form(X), -np.ones(len(X)))
    assert not (labelled == own).any()
    wide = form(np.tile(np.arange(3.0)[:, None], (1, 2**19)))  # two rows at a time
    _, other = block_hashes(wide, np.ones(3))
    for k in range(3):
        assert block_hashes(wide[k : k + 1], np.ones(1))[1] == other[k]
    np.testing.assert_array_equal(block_hashes(X.astype(np.float32), np.ones(len(X)))[1], block_hashes(
        X.astype(np.float32).astype(float), np.ones(len(X)))[1])  # fmt: skip


# ---- the scale


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_scale_is_that_of_the_rows_that_count(form, offset):
    X = rows() + offset
    weight = np.random.default_rng(7).integers(0, 3, 40).astype(float)
    repeated = np.repeat(X, weight.astype(int), axis=0)
    assert gamma_of(partitions(form(X), CUTS), weight) == pytest.approx(1 / (3 * repeated.var()), rel=1e-9)
    assert gamma_of(partitions(form(np.full((40, 3), offset)), CUTS), weight) == 1.0
    with pytest.raises(ValueError, match=r"features up to 1e\+200"):
        gamma_of(partitions(form(np.where(rows() == 0, 1e200, -1e200)), CUTS), weight)


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_powers_and_largest_values_of_a_block(form):
    X, share = rows(), np.linspace(0, 1, 40)
    for power in (1, 2):
        for shift in (0.0, 0.5):
            found = block_powers(form(X), power, shift, share)
            assert found == pytest.approx(share @ ((X - shift) ** power).sum(axis=1), rel=1e-12)
    assert block_largest(form(X)) == np.abs(X).max() and block_largest(form(X[:0])) == 0.0


# ---- margins and sums of linear machines


def linear(form=np.asarray, bias=1.0, kind=LinearProblem, regression=False):
    rng = np.random.default_rng(8)
    X, sign = form(rows()), np.where(rng.random(40) < 0.5, 1.0, -1.0)
    whole = LinearProblem(X, sign, rng.uniform(0.2, 2, 40), 0.7, bias=bias)
    there = PartitionedProblem(partitions(X, CUTS), sign, whole.weight, 0.7, bias=bias, extent=whole.extent)
    return whole, there


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_a_linear_problem_in_partitions_is_that_of_the_rows(form, bias):
    whole, there = linear(form, bias)
    rng = np.random.default_rng(9)
    assert not there.at_hand and there.alone and (there.n, there.d, there.size) == (whole.n, whole.d, whole.size)
    for turn in range(1, 4):
        w, here, out = rng.normal(size=whole.size), np.empty(40), np.empty(40)
        paused(whole.outputs(w, here)), paused(there.outputs(w, out))
        np.testing.assert_allclose(out, here, rtol=1e-12, atol=1e-14)
        assert there.passes == turn and there.pass_seconds > 0
        chosen = rng.permutation(40)[: (0, 1, 12, 40)[turn]]
        for some in (np.sort(chosen), chosen):
            delta, a, b = rng.normal(size=len(some)), np.ones(whole.size), np.ones(whole.size)
            kept = some.copy(), delta.copy()
            (_, moved), _ = paused(whole.add(a, some, delta))
            (depth, there_moved), _ = paused(there.add(b, some, delta))
            np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(some, kept[0])
            np.testing.assert_array_equal(delta, kept[1])
            assert there_moved == pytest.approx(moved, rel=1e-12)
            at = np.searchsorted(there.X.start, some, side="right") - 1
            blocks = [b for b in range(5) if (at == b).any()]
            deep = [block_sum(there.X.blocks[b].value, some[at == b] - there.X.start[b], delta[at == b])[1] for b in blocks]
            assert depth == max(max(deep, default=0) + len(blocks), there.add_bias(np.zeros(whole.size), delta))
    asked = [function for function, _ in there.X.carrier.calls].count(block_sum)
    paused(there.add(np.ones(whole.size), np.arange(0), np.empty(0)))
    assert [function for function, _ in there.X.carrier.calls].count(block_sum) == asked


@pytest.mark.parametrize("form", FORMS)
def test_blocks_of_a_linear_problem(form):
    X, w = rows(), np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(block_outputs(form(X), w, 0.25), X @ w + 0.25, atol=1e-14)
    assert block_outputs(form(X[:0]), w, 0.25).shape == (0,)
    total, depth = block_sum(form(X), np.array([1, 5, 9]), np.array([1.0, 2.0, -3.0]))
    np.testing.assert_allclose(total, np.array([1.0, 2.0, -3.0]) @ X[[1, 5, 9]], atol=1e-14)
    assert depth >= 2
    extent, none = block_extent(form(X)), block_extent(form(X[:0]))
    np.testing.assert_array_equal(extent.columns, np.abs(X).max(axis=0))
    norm = np.sqrt((X**2).sum(axis=1).max())
    assert norm <= extent.norm <= norm * (1 + 1e-14)
    assert none.columns.tolist() == [0.0] * 3 and none.norm == 0.0
    total = Sum(linear(form)[1])
    paused(total.renew(np.ones(40)))
    assert total.drift > 0


# ---- what is known of a point


def a_qp(n=30, C=2.0, seed=0):
    rng = np.random.default_rng(seed)
    return c_svc(np.where(np.arange(n) % 3, 1.0, -1.0), rng.uniform(0.5, 2, n) * C, True)


def test_violators_are_those_that_gain_most_worst_first():
    for seed in range(8):
        qp, rng = a_qp(seed=seed), np.random.default_rng(seed)
        alpha = np.where(rng.random(30) < 0.4, 0.0, np.where(rng.random(30) < 0.5, qp.upper, 0.5 * qp.upper))
        f = rng.normal(size=30)
        known = judged(qp, alpha, f, 1e-3, Status.MAX_ITER)
        score = qp.center - f - known.multipliers[qp.group]
        beta = qp.sign * alpha
        up = beta < np.maximum(qp.sign * qp.upper, 0)
        low = beta > np.minimum(qp.sign * qp.upper, 0)
        off = np.maximum(np.where(up, score, 0), np.where(low, -score, 0))
        for tol in (1e-3, 1.0):
            bad = [i for i in np.argsort(-off, kind="stable") if off[i] > 0.5 * tol]
            for most in (3, 1000):
                np.testing.assert_array_equal(violators(qp, known, tol, most), bad[:most])
        assert known.n_support == np.count_nonzero(alpha) and known.alpha is alpha and known.f is f
        top, bottom = score[up].max(), score[low].min()
        assert known.violation == pytest.approx(max(0.0, top - bottom), rel=1e-12)
        assert known.objective - known.gap == pytest.approx(alpha @ (qp.sign * qp.center) - 0.5 * beta @ f, rel=1e-9)
        assert known.gap >= 0 and known.status is Status.MAX_ITER


def test_before_anything_is_solved_all_alpha_are_zero():
    data, _, _ = data_of()
    qp = a_qp()
    known = data.at_zero(qp, 1e-3, Status.MAX_TIME)
    assert not known.alpha.any() and not known.f.any() and known.status is Status.MAX_TIME
    assert (known.alpha.shape, known.f.shape, known.n_support) == ((30,), (30,), 0)
    assert known.objective == known.gap == pytest.approx(known.objective)
    assert data.at_zero(qp, 1e9, Status.MAX_TIME).status is Status.CONVERGED


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_blocks_of_kernel_values(form, name):
    kernel, values = by_name(name)
    X, vectors, coef = rows(), rows(6, seed=1), np.linspace(-1, 2, 6)
    frame = frame_of(partitions(form(X), CUTS), kernel, np.arange(40), np.float64)
    for places in (np.arange(40), np.array([3, 39, 0]), np.arange(0)):
        found = block_sums(form(X), form(vectors), coef, kernel, np.float64, frame, places)
        np.testing.assert_allclose(found, values(X[places], vectors) @ coef if len(places) else [], rtol=1e-9, atol=1e-12)
        if len(places):
            end = np.array([1, 4, 6])
            v = values(X[places], vectors)
            means = np.stack([v[:, :1].mean(axis=1), v[:, 1:4].mean(axis=1), v[:, 4:].mean(axis=1)], axis=1)
            offset = np.array([0.1, 0.0, -0.1])
            nearest = block_nearest(form(X), form(vectors), end, offset, kernel, np.float64, frame, places)
            np.testing.assert_array_equal(nearest, np.argmin(offset - 2 * means, axis=1))
