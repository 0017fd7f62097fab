"""Passes over samples: dense and CSR, both precisions, one and two threads, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix
from maxmargin.linear import LinearProblem
from maxmargin.linear.joint_problem import JointProblem


def forms(x):
    yield "dense64", x
    yield "dense32", x.astype(np.float32)
    yield "csr64", sp.csr_matrix(x)
    yield "csr32", sp.csr_matrix(x.astype(np.float32))
    wide = sp.csr_matrix(x)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield "csr64-int64", wide


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(7, 1), (300, 37), (3000, 20), (150, 210)])
def test_passes_match_numpy(shape, threads):
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=shape) * (rng.random(shape) < 0.3), 3).astype(np.float32).astype(np.float64)
    n, d = shape
    w, sign = rng.normal(size=d), rng.choice([-1.0, 1.0], n)
    rows = np.sort(rng.choice(n, n // 2 + 1, replace=False))
    coef = rng.uniform(0.1, 1, len(rows))
    padded = np.hstack([x, np.full((n, 1), 2.0)])
    for name, form in forms(x):
        matrix = as_matrix(form)
        out = np.empty(n)
        _core.linear_outputs(matrix, w, 0.5, sign, np.empty(0), 0, n, out, threads)
        np.testing.assert_allclose(out, sign * (x @ w + 0.5), atol=1e-9, err_msg=name)
        total = np.zeros(d)
        _core.linear_add_rows(matrix, rows, coef, total, threads)
        np.testing.assert_allclose(total, coef @ x[rows], atol=1e-9, err_msg=name)
        spread, total = np.zeros(n), np.zeros(d)
        spread[rows] = coef
        _core.linear_sum_rows(matrix, spread, total, threads)
        np.testing.assert_allclose(total, coef @ x[rows], atol=1e-9, err_msg=name)
        norms, largest = np.empty(n), np.empty(d)
        assert _core.linear_extents(matrix, largest, threads) == pytest.approx((x * x).sum(1).max(), rel=1e-12)
        np.testing.assert_array_equal(largest, abs(x).max(0), err_msg=name)
        _core.linear_norms(matrix, norms, threads)
        np.testing.assert_allclose(norms, (x * x).sum(1), atol=1e-9, err_msg=name)
        expected = (padded[rows].T * coef) @ padded[rows]
        for precise, accuracy in ((True, 1e-9), (False, 1e-4)):
            gram = np.zeros((d + 1, d + 1))
            _core.linear_gram(matrix, rows, coef, 2.0, precise, gram, threads)
            np.testing.assert_allclose(np.triu(gram), np.triu(expected), atol=accuracy * (1 + abs(expected).max()))
        single = np.zeros((d + 1, d + 1), np.float32)
        _core.linear_gram(matrix, rows, coef, 2.0, False, single, threads)
        np.testing.assert_allclose(np.triu(single), np.triu(expected), atol=1e-4 * (1 + abs(expected).max()))
        chosen = np.flatnonzero(rng.random(d + 1) < 0.5)
        place = np.full(d + 1, -1, np.int32)
        place[chosen] = np.arange(len(chosen))
        some = np.zeros((len(chosen), len(chosen)))
        _core.linear_chosen_gram(matrix, rows, coef, 2.0, place, some, threads)
        part = np.triu(expected[np.ix_(chosen, chosen)])
        np.testing.assert_allclose(np.triu(some), part, atol=1e-9 * (1 + abs(expected).max()), err_msg=name)
        p, product = rng.normal(size=d + 1), np.empty(d + 1)
        _core.linear_product(matrix, rows, coef, 2.0, p, product, threads)
        np.testing.assert_allclose(product, expected @ p, atol=1e-8, err_msg=name)


def test_lazy_duals_stay_a_cut():
    """Rows that move little keep their alpha; the offset is the sum of what is stored."""
    rng = np.random.default_rng(1)
    m, weight, sign = rng.normal(size=200), rng.uniform(0, 2, 200), rng.choice([-1.0, 1.0], 200)
    alpha = np.zeros(200)
    _core.linear_duals("hinge", 0.1, 0.0, m, m, 0.0, weight, sign, np.empty(0), alpha, 1)
    before = alpha.copy()
    rows, delta, *_, offset, _, mass = _core.linear_duals(
        "hinge", 0.1, 0.05, m + 0.02, m, 0.0, weight, sign, np.empty(0), alpha, 2
    )
    np.testing.assert_allclose(alpha[rows] - before[rows], sign[rows] * delta)
    untouched = np.setdiff1d(np.arange(200), rows)
    assert len(untouched) > 0 and (alpha[untouched] == before[untouched]).all()
    assert offset == pytest.approx(alpha.sum()) and mass == pytest.approx(alpha.sum())
    assert ((alpha >= 0) & (alpha <= weight)).all()


@pytest.mark.parametrize("n", [40_003, 60_001])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_no_row_is_lost_in_loops_over_many_margins(n, threads):
    """Numbers of rows that no slice divides: sums, lists and searches see all of them, the last ones too."""
    rng = np.random.default_rng(n)
    m, q, weight, sign = rng.normal(size=n), rng.normal(size=n), rng.uniform(0.5, 1.5, n), rng.choice([-1.0, 1.0], n)
    weight[-3:] = 1e6  # a loss of the last rows would show in every number
    u = 1 - m
    alpha = np.zeros(n)
    rows, delta, _, _, offset, risk, mass = _core.linear_duals(
        "hinge", 0.0, 0.0, m, m, 0.0, weight, sign, np.empty(0), alpha, threads
    )
    np.testing.assert_array_equal(alpha, np.where(u >= 0, weight, 0.0))
    np.testing.assert_array_equal(rows, np.flatnonzero(u >= 0))
    np.testing.assert_array_equal(delta, (sign * weight)[u >= 0])
    assert offset == mass == pytest.approx(weight[u >= 0].sum(), rel=1e-12)
    assert risk == pytest.approx(weight @ np.maximum(u, 0), rel=1e-12)
    moved = m.copy()
    assert _core.linear_advance("squared_hinge", moved, q, 0.3, weight, threads) == pytest.approx(
        weight @ np.maximum(0, 1 - m - 0.3 * q) ** 2, rel=1e-12
    )
    np.testing.assert_allclose(moved, m + 0.3 * q, rtol=1e-15, atol=1e-15)
    first, second = _core.linear_slope("squared_hinge", 0.0, m, q, weight, 0.3, threads)
    left = np.maximum(0, 1 - m - 0.3 * q)
    assert first == pytest.approx(-2 * weight @ (left * q), rel=1e-9)
    assert second == pytest.approx(2 * weight @ ((left > 0) * q * q), rel=1e-12)
    k = _core.hinge_search(m, q, weight, 1e6, -2e6, threads)

    def slope(t):
        return 1e6 * t - 2e6 - (weight * q)[1 - m - t * q > 0].sum()

    assert slope(k * (1 - 1e-9)) <= 0 <= slope(k * (1 + 1e-9))
    start = weight * rng.random(n)
    path, r = start.copy(), np.sqrt(u * u + 4 * 0.1**2)
    _core.linear_predict(0.1, m, q, weight, path, threads)
    slopes = (0.5 * weight - (start - 0.5 * weight) * u / r) / r
    np.testing.assert_allclose(path, np.clip(0.5 * weight * (1 + u / r) - slopes * q, 0, weight), rtol=1e-9, atol=1e-9)


def test_the_extent_of_samples():
    rng = np.random.default_rng(5)
    x = np.round(rng.normal(size=(5000, 7)) * (rng.random((5000, 7)) < 0.5), 3).astype(np.float32).astype(np.float64)
    x[-1, 2], x[0, 5] = -90.0, 70.0
    for name, form in forms(x):
        for threads in (1, 2):
            largest = np.empty(7)
            norm = _core.linear_extents(as_matrix(form), largest, threads)
            np.testing.assert_array_equal(largest, np.abs(x).max(axis=0), err_msg=name)
            assert norm == pytest.approx((x * x).sum(axis=1).max(), rel=1e-12), name


@pytest.mark.parametrize("width", [0.0, 0.25, 1.5])
def test_support_has_a_loss_or_is_within_the_width_of_the_margin(width):
    """The ends of the width belong to it; samples without weight do not count. Of two classes, joint or not."""
    rng = np.random.default_rng(int(4 * width))
    m, weight = rng.integers(-4, 14, 200) / 4, rng.integers(0, 3, 200).astype(float)  # sums that float64 has
    labels = rng.integers(0, 2, 200)
    other = rng.integers(-4, 5, 200) / 4
    scores = np.where(labels[:, None] == np.arange(2), (other + m)[:, None], other[:, None])
    one = LinearProblem(np.ones((200, 1)), np.where(labels, 1.0, -1.0), weight, 1.0)
    expected = int(((m - 1 <= width) & (weight > 0)).sum())
    assert ((m - 1 == width) & (weight > 0)).any()
    assert one.support(m, width) == JointProblem.of(one, labels, 2).support(scores, width) == expected


def test_shapes_are_checked():
    matrix = as_matrix(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="shapes"):
        _core.linear_outputs(matrix, np.zeros(3), 0.0, np.ones(3), np.empty(0), 0, 3, np.empty(3), 1)
    with pytest.raises(ValueError, match="hinge"):
        _core.linear_advance("logistic", np.zeros(3), np.zeros(3), 0.0, np.ones(3), 1)
