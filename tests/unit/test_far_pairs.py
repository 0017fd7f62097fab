"""Kernel values that are zero by blocks: leaving them out changes no bit, and the order that makes it possible."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from maxmargin import SVC, certify_fit
from maxmargin.data.rows import distinct_rows
from maxmargin.kernel_values import Samples
from maxmargin.kernel_values import native as kernel_rows
from maxmargin.problem.kernels import Kernel


def islands(rng, n=6000, features=7, count=40, dtype=np.float32):
    """Groups of samples far apart at γ = 30, in no order."""
    centres = rng.random((count, features)) * 10
    return (centres[rng.integers(count, size=n)] + 0.1 * rng.standard_normal((n, features))).astype(dtype)


def samples_of(X, dtype, gamma=30.0):
    every = np.arange(len(X))
    return Samples(X, Kernel("rbf", gamma), every, dtype, 2), every


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_right_whether_far_rows_are_left_out_or_not(dtype):
    rng = np.random.default_rng(0)
    X = islands(rng, dtype=dtype)
    samples, every = samples_of(X, dtype)
    order = samples.neighbour_order(every)
    assert sorted(order) == list(every)
    assert samples.points.far_share(every) < 0.1 and samples.points.far_share(order) > 0.8
    others, coef = np.sort(rng.choice(len(X), 700, replace=False)), rng.standard_normal((1, 700))
    as_given, ordered = np.zeros((1, len(X))), np.zeros((1, len(X)))
    samples.points.sum(every, samples.points, others, coef, as_given, 2)
    samples.points.sum(order, samples.points, others, coef, ordered, 2)  # blocks of neighbours: most rows left out
    np.testing.assert_array_equal(as_given[0, order], ordered[0])
    K = np.exp(-30.0 * cdist(X[others].astype(float), X.astype(float), "sqeuclidean"))
    np.testing.assert_allclose(as_given[0], coef[0] @ K, atol=1e-4 if dtype == np.float32 else 1e-10)


def test_blocks_of_rows_are_zero_where_they_are_left_out():
    rng = np.random.default_rng(1)
    X = islands(rng, n=4500)
    samples, every = samples_of(X, np.float32)
    order = np.ascontiguousarray(samples.neighbour_order(every))
    wanted = order[::50]
    block = np.full((len(wanted), len(X)), np.nan, np.float32)
    samples.points.block(order, samples.points, wanted, block, 2)
    K = np.exp(-30.0 * cdist(X[wanted].astype(float), X[order].astype(float), "sqeuclidean"))
    np.testing.assert_allclose(block, K, atol=2e-5)
    assert np.mean(block == 0) > 0.9


def test_no_order_where_everything_is_near():
    X = np.random.default_rng(2).random((5000, 6)).astype(np.float32)
    samples, every = samples_of(X, np.float32, gamma=0.5)
    assert samples.neighbour_order(every) is None


def test_order_depends_on_the_list_alone():
    X = islands(np.random.default_rng(3))
    one = Samples(X, Kernel("rbf", 30.0), np.arange(len(X)), np.float32, 1).points.neighbour_order(np.arange(len(X)), 1)
    two = Samples(X, Kernel("rbf", 30.0), np.arange(len(X)), np.float32, 2).points.neighbour_order(np.arange(len(X)), 2)
    np.testing.assert_array_equal(one, two)


def test_reordered_rows_are_the_same_weighted_set():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, (60, 2)).astype(float)
    weight = rng.integers(0, 3, 60).astype(float)
    rows = distinct_rows(X, np.zeros(60), weight, merge=True, threads=1)
    order = rng.permutation(len(rows.index))
    new = rows.reordered(order)
    np.testing.assert_array_equal(new.index, rows.index[order])
    np.testing.assert_array_equal(new.weight, np.bincount(new.owner, weights=new.member_weight))
    np.testing.assert_array_equal(X[new.member], X[new.index[new.owner]])
    assert (np.diff(new.owner) >= 0).all()
    alpha = rng.random(len(order)) * new.weight
    np.testing.assert_allclose(
        new.spread(alpha, 60, np.ones(len(order))).sum(), alpha.sum(), rtol=1e-12
    )


def test_fit_is_certified_and_equals_the_fit_without_an_order(monkeypatch):
    rng = np.random.default_rng(5)
    X = islands(rng, n=5000, count=15)
    y = np.where(np.sin(9 * X[:, 0]) + 0.5 * rng.standard_normal(len(X)) > 0, 1, -1)
    ordered = SVC(C=5, gamma=30.0).fit(X, y)
    assert certify_fit(ordered, X, y).violation < 2e-3
    shuffled = rng.permutation(len(X))
    again = SVC(C=5, gamma=30.0).fit(X[shuffled], y[shuffled])
    np.testing.assert_array_equal(np.sort(again.dual_coef_), np.sort(ordered.dual_coef_))
    np.testing.assert_array_equal(again.intercept_, ordered.intercept_)
    monkeypatch.setattr(kernel_rows, "_WORTH_ORDERING", 10**9)
    plain = SVC(C=5, gamma=30.0).fit(X, y)
    assert plain.objective_ == pytest.approx(ordered.objective_, rel=1e-4)
    assert plain.timings_["rows"] > 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_zeros_are_left_out(dtype):
    """Distances of all sizes, those around the last value that counts included; few rows at a time are never tested."""
    rng = np.random.default_rng(6)
    X = (rng.random((1500, 3)) * 3).astype(dtype)
    samples, every = samples_of(X, dtype, gamma=20.0)
    order = np.ascontiguousarray(samples.points.neighbour_order(every, 1))
    tested, plain = np.empty((len(X), len(X)), dtype), np.empty((len(X), len(X)), dtype)
    samples.points.block(order, samples.points, order, tested, 1)
    for first in range(0, len(X), 8):  # boxes are for more than eight rows
        some = slice(first, first + 8)
        samples.points.block(order, samples.points, np.ascontiguousarray(order[some]), plain[some], 1)
    np.testing.assert_array_equal(tested, plain)
    smallest = np.log(plain[plain > 0].min())
    assert (plain == 0).mean() > 0.5 and smallest == pytest.approx(-25 if dtype == np.float32 else -45, abs=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [0.5, 5.0, 30.0])
def test_as_much_is_left_out_as_boxes_allow(dtype, gamma):
    """The share of rows whose box is too far from that of a block of 128 samples, box by box in NumPy."""
    rng = np.random.default_rng(7)
    X = (rng.random((128 * 40, 3)) * 4).astype(dtype)
    samples, every = samples_of(X, dtype, gamma=gamma)
    order = np.ascontiguousarray(samples.points.neighbour_order(every, 1))
    blocks = X[order].astype(float).reshape(40, 128, 3)
    low, high = blocks.min(1)[:, None], blocks.max(1)[:, None]
    probes = X[order[(2 * np.arange(48) + 1) * len(X) // 96]].astype(float)
    exponent = -gamma * (np.maximum(0, np.maximum(low - probes, probes - high)) ** 2).sum(2)
    assert exponent.min() < -60 or gamma < 5
    left_out = (exponent < (-25 if dtype == np.float32 else -45) - 0.5).mean()
    assert samples.points.far_share(order) == pytest.approx(left_out, abs=0.002)


def test_copies_take_up_to_their_bound_the_first_ones_first():
    X = np.array([[1.0], [2.0], [1.0], [1.0], [3.0], [3.0]])
    weight = np.array([1.0, 5.0, 2.0, 4.0, 1e-30, 1.0])
    rows = distinct_rows(X, np.zeros(6), weight, merge=True, threads=1)
    one, two, three = (int(np.flatnonzero(X[rows.index, 0] == value)[0]) for value in (1.0, 2.0, 3.0))
    alpha, unit = np.zeros((2, 3)), np.array([[1.0] * 3, [0.5] * 3])
    alpha[0, [one, two, three]] = 2.5, 4.0, 1.0
    alpha[1, [one, two, three]] = 3.5, 0.0, 0.25
    shared = rows.spread(alpha, 6, unit)
    np.testing.assert_array_equal(shared[0], [1.0, 4.0, 1.5, 0.0, 1e-30, 1.0])  # at its bound: every copy is at its own
    np.testing.assert_array_equal(shared[1, :4], [0.5, 0.0, 1.0, 2.0])
    np.testing.assert_allclose(shared[1, 4:], [5e-31, 0.25])
    np.testing.assert_array_equal(rows.spread(alpha[0], 6, unit[0]), shared[0])


def test_a_rank_may_have_no_samples():
    none = distinct_rows(np.zeros((0, 2)), np.zeros(0), np.zeros(0), merge=False, threads=1)
    assert none.spread(np.zeros((2, 0)), 0, np.zeros((2, 0))).shape == (2, 0)
    assert none.spread(np.zeros(0), 5, np.zeros(0)).tolist() == [0.0] * 5
