"""Loops that are cut into slices: every row counts once, at any number of rows and threads. Against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

Floats = NDArray[np.float64]

# Around the chunks of the search (512), one and several slices of 16,384 rows, and beyond 64 slices, where they grow.
SIZES = [1, 511, 513, 16_383, 16_384, 16_385, 32_769, 60_001, 1_048_577]


def line(n: int) -> tuple[Floats, Floats, Floats]:
    """Margins, what they change by along a line, weights."""
    rng = np.random.default_rng(n)
    return rng.normal(size=n), rng.normal(size=n) + 0.3, rng.uniform(0.5, 2, n)


def exact_search(m: Floats, q: Floats, c: Floats, quad: float, lin: float) -> float:
    """argmin over k ≥ 0 of quad/2 k² + lin k + Σ c max(0, 1 − m − k q): all hinges sorted, the derivative summed up."""
    slope = lin - float(np.sum(np.where((m < 1) | ((m == 1) & (q < 0)), c * q, 0.0)))
    if slope >= 0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (1 - m) / q
    crossed = np.flatnonzero(at > 0)
    order = crossed[np.argsort(at[crossed])]
    after = slope + np.cumsum(c[order] * np.abs(q[order]))
    rising = np.flatnonzero(quad * at[order] + after >= 0)
    if len(rising) == 0:
        return -float(after[-1]) / quad if len(after) else -slope / quad
    first = rising[0]
    before = float(after[first - 1]) if first else slope
    return min(float(at[order[first]]), -before / quad)


@pytest.mark.parametrize("n", SIZES)
def test_the_line_search_is_exact(n: int) -> None:
    m, q, c = line(n)
    for quad, lin in ((0.3 * n, -0.2 * n), (0.01 * n, -3.0 * n), (50.0 * n, -0.2 * n), (1.0 * n, 10.0 * n)):
        found = [_core.hinge_search(m, q, c, quad, lin, threads) for threads in (1, 2, 3)]
        assert found[0] == found[1] == found[2]
        assert found[0] == pytest.approx(exact_search(m, q, c, quad, lin), rel=1e-10)


@pytest.mark.parametrize("n", [16_385, 60_001])
@pytest.mark.parametrize("row", [0, 8_192, 16_384, -1])
def test_a_single_row_decides_the_line_search(n: int, row: int) -> None:
    """It outweighs all others together, wherever it stands: the minimum lies at its hinge."""
    m, q, c = line(n)
    m[row], q[row], c[row] = 0.0, 0.8, 100.0 * n
    assert [_core.hinge_search(m, q, c, 1.0, -1.0, threads) for threads in (1, 2, 3)] == [1.25] * 3


@pytest.mark.parametrize("n", SIZES)
def test_sums_over_margins(n: int) -> None:
    m, q, c = line(n)
    k, h = 0.4, 0.1
    u = 1 - m - k * q
    r = np.sqrt(u * u + 4 * h * h)
    smooth = -0.5 * c * q * (1 + u / r), 2 * h * h * c * q * q / r**3
    squared = -2 * c * q * np.maximum(0, u), 2 * c * q * q * (u > 0)
    for threads in (1, 2, 3):
        for loss, terms in (("hinge", smooth), ("squared_hinge", squared)):
            expected = [term.sum() for term in terms]
            found = _core.linear_slope(loss, h, m, q, c, k, threads)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(terms[0]).sum())
        for loss, power in (("hinge", 1), ("squared_hinge", 2)):
            moved = m.copy()
            risk = _core.linear_advance(loss, moved, q, k, c, threads)
            np.testing.assert_allclose(moved, m + k * q, rtol=1e-15, atol=1e-15)
            assert risk == pytest.approx(c @ np.maximum(0, 1 - moved) ** power, rel=1e-11)


@pytest.mark.parametrize("n", SIZES)
def test_duals_of_every_row(n: int) -> None:
    m, q, c = line(n)
    sign = np.where(q > 0, 1.0, -1.0)
    expected = c * (m <= 1)
    answers = []
    for threads in (1, 2, 3):
        alpha = np.zeros(n)
        rows, delta, band, slope, total, risk, mass = _core.linear_duals(
            "hinge", 0.0, 0.0, m, m, 0.0, c, sign, np.empty(0), alpha, threads
        )
        np.testing.assert_array_equal(alpha, expected)
        np.testing.assert_array_equal(rows, np.flatnonzero(expected))  # in their order
        np.testing.assert_array_equal(delta, (sign * expected)[rows])
        assert len(band) == len(slope) == 0
        answers.append((total, risk, mass))
        close = expected.sum(), c @ np.maximum(0, 1 - m), expected.sum()
        np.testing.assert_allclose(answers[-1], close, rtol=1e-11, atol=1e-11 * n)
        path = expected.copy()
        _core.linear_predict(0.1, m, q, c, path, threads)
        u, r = 1 - m, np.sqrt((1 - m) ** 2 + 4 * 0.1**2)
        promised = 0.5 * c * (1 + u / r) - (0.5 * c - (expected - 0.5 * c) * u / r) / r * q
        np.testing.assert_allclose(path, np.clip(promised, 0, c), rtol=1e-10, atol=1e-12)
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("n", [1, 8_191, 16_385, 43_691, 60_001, 131_073])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_passes_over_rows(n: int, form: str) -> None:
    """Whole numbers, so that sums are exact and the order of additions does not matter: equality, not closeness."""
    rng = np.random.default_rng(n)
    x = rng.integers(-3, 4, (n, 3)).astype(float)
    matrix = as_matrix(x if form == "dense" else sp.csr_matrix(x))
    w, sign = rng.integers(-5, 6, 3).astype(float), rng.choice([-1.0, 1.0], n)
    rows = np.flatnonzero(rng.random(n) < 0.9) if n > 1 else np.arange(1)
    coef = rng.integers(1, 4, len(rows)) ** 2.0  # squares: their roots are exact in the Gram matrix
    padded = np.hstack([x, np.full((n, 1), 2.0)])
    gram = (padded[rows].T * coef) @ padded[rows]
    p = rng.integers(-5, 6, 4).astype(float)
    for threads in (1, 2, 3):
        out, norms, total, product, upper = np.empty(n), np.empty(n), np.zeros(3), np.empty(4), np.zeros((4, 4))
        _core.linear_outputs(matrix, w, 1.0, sign, np.empty(0), 0, n, out, threads)
        np.testing.assert_array_equal(out, sign * (x @ w + 1))
        _core.linear_norms(matrix, norms, threads)
        np.testing.assert_array_equal(norms, (x * x).sum(1))
        _core.linear_add_rows(matrix, rows, coef, total, threads)
        np.testing.assert_array_equal(total, coef @ x[rows])
        _core.linear_product(matrix, rows, coef, 2.0, p, product, threads)
        np.testing.assert_array_equal(product, gram @ p)
        _core.linear_gram(matrix, rows, coef, 2.0, True, upper, threads)
        np.testing.assert_array_equal(np.triu(upper), np.triu(gram))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pairs_of_very_sparse_rows(threads: int) -> None:
    """The Gram matrix by pairs of stored values, the rows of the matrix shared out."""
    rng = np.random.default_rng(0)
    n, d = 20_001, 301
    x = sp.random(n, d, 0.01, "csr", random_state=0, data_rvs=lambda size: rng.integers(1, 5, size).astype(float))
    rows, coef = np.arange(0, n, 2), rng.integers(1, 4, (n + 1) // 2).astype(float)
    gram = np.zeros((d + 1, d + 1))
    _core.linear_gram(as_matrix(x), rows, coef, 2.0, True, gram, threads)
    padded = sp.hstack([x, np.full((n, 1), 2.0)]).tocsr()[rows]
    expected = (padded.T @ sp.diags(coef) @ padded).toarray()
    np.testing.assert_array_equal(np.triu(gram), np.triu(expected))


@pytest.mark.parametrize("n", [1, 10_923, 60_001])
def test_joint_passes(n: int) -> None:
    """All classes at once."""
    rng = np.random.default_rng(n)
    x, label = rng.integers(-3, 4, (n, 2)).astype(float), rng.integers(0, 3, n)
    w, shift = rng.integers(-2, 3, (3, 2)).astype(float), np.array([0.0, 1.0, -1.0])
    weight = rng.integers(1, 4, n).astype(float)
    scores = x @ w.T + shift
    gaps = 1.0 * (np.arange(3) != label[:, None]) + scores - scores[np.arange(n), label][:, None]
    for threads in (1, 2, 3):
        out, worst = np.empty((n, 3)), np.empty(n, np.int64)
        _core.joint_outputs(as_matrix(x), w, shift, 0, n, out, threads)
        np.testing.assert_array_equal(out, scores)
        assert _core.joint_advance(out, out, 0.0, label, weight, threads) == weight @ gaps.max(1)
        _core.joint_worst(out, out, 0.0, label, worst, threads)
        np.testing.assert_array_equal(gaps[np.arange(n), worst], gaps.max(1))
        order = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[order], np.arange(4))
        total = np.zeros((3, 2))
        _core.joint_add(as_matrix(x), order, weight[order], starts, total, threads)
        np.testing.assert_array_equal(total, [weight[label == c] @ x[label == c] for c in range(3)])
