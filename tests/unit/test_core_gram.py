"""A kernel matrix in fixed point (native/decomposition/gram.hpp): every value is the nearest whole number of units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from maxmargin import _core

Floats = NDArray[np.float64]

SIZES = [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 200]  # around vectors, rows' lengths and blocks of 64
WHOLE = 2147483647.0


def values_of(gram: _core.Gram, n: int) -> Floats:
    out = np.empty((n, n))
    gram.rows(np.arange(n), out)
    return out


def symmetric(n: int, largest: float) -> Floats:
    X = np.random.default_rng(n).uniform(-largest, largest, (n, n))
    return np.triu(X) + np.triu(X, 1).T


def made_of(values: Floats, largest: float, pieces: int = 1, threads: int = 1) -> _core.Gram:
    n = len(values)
    gram = _core.Gram(n, largest)
    for rows in np.array_split(np.arange(n), pieces):
        gram.put(rows[0], values[rows], threads)
    return gram


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("largest", [1.0, 3e-9, 7e11])
def test_a_value_is_the_nearest_multiple_of_the_unit(n: int, largest: float) -> None:
    """Rows put in one piece or in several, by any number of threads; what exceeds the largest value is cut to it."""
    values = np.random.default_rng(n).uniform(-1.2 * largest, 1.2 * largest, (n, n))
    unit = _core.Gram(n, largest).unit
    assert unit == largest / WHOLE
    expected = unit * np.rint(np.clip(values / unit, -WHOLE, WHOLE))
    for pieces, threads in ((1, 1), (min(n, 3), 2), (1, 3)):
        np.testing.assert_array_equal(values_of(made_of(values, largest, pieces, threads), n), expected)


@pytest.mark.parametrize("n", SIZES)
def test_distances_from_dot_products(n: int) -> None:
    """The nearest multiple of the unit; 0 for a sample and itself and where rounding has made a square negative."""
    X = np.random.default_rng(n).integers(-4, 5, (n, 3)).astype(float)
    dots, norm = X @ X.T, (X * X).sum(1)
    expected = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    same = expected == 0
    for wrong in (0.0, 1e-9):
        for pieces, threads in ((1, 1), (min(n, 3), 2)):
            gram = _core.Gram(n, 20.0)
            for rows in np.array_split(np.arange(n), pieces):
                gram.put_distances(rows[0], dots[rows] + wrong * same[rows], norm, threads)
            found = values_of(gram, n)
            assert not found[same].any()
            np.testing.assert_allclose(found, expected, rtol=0, atol=0.5001 * gram.unit)


KERNELS: list[tuple[str, Callable[[Floats], Floats], float]] = [
    ("rbf", lambda x: np.exp(-0.7 * x**2), 1.0),
    ("laplacian", lambda x: np.exp(-0.7 * np.abs(x)), 1.0),
    ("linear", lambda x: x, 2.0),
    ("poly", lambda x: (0.7 * x - 0.4) ** 3, 7.0),
    ("sigmoid", lambda x: np.tanh(0.7 * x - 0.4), 1.0),
]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kernel, of, largest", KERNELS, ids=[name for name, _, _ in KERNELS])
def test_a_kernel_of_what_all_gammas_share(n: int, kernel: str, of: Callable[[Floats], Floats], largest: float) -> None:
    """By any number of threads, all of the matrix."""
    common = symmetric(n, 2.0)
    if kernel in ("rbf", "laplacian"):
        common = np.abs(common)
        np.fill_diagonal(common, 0.0)
    base = made_of(common, 2.0)
    expected = of(values_of(base, n))
    found = []
    for threads in (1, 2, 3):
        gram = _core.Gram(n, largest)
        gram.put(0, np.full((n, n), -largest), 1)  # nothing of what was there before is left
        gram.fill(base, kernel, 0.7, -0.4, 3, threads)
        found.append(values_of(gram, n))
        np.testing.assert_allclose(found[-1], expected, rtol=1e-13, atol=0.501 * gram.unit)
        np.testing.assert_array_equal(found[-1], found[0])
    np.testing.assert_array_equal(found[0], found[0].T)


def test_a_kernel_value_beyond_the_largest_is_the_largest() -> None:
    base = made_of(np.zeros((9, 9)), 1.0)
    for kernel, sign in (("rbf", 1.0), ("laplacian", 1.0), ("poly", -1.0)):
        gram = _core.Gram(9, 0.5)
        gram.fill(base, kernel, 1.0, -1.0, 3, 1)
        np.testing.assert_array_equal(values_of(gram, 9), np.full((9, 9), sign * WHOLE * gram.unit))


def test_a_matrix_of_zeros_and_one_of_no_rows() -> None:
    for n in (0, 1, 17):
        gram = _core.Gram(n, 0.0)
        assert gram.unit > 0
        gram.put(0, np.zeros((n, n)), 2)
        gram.fill(made_of(np.zeros((n, n)), 0.0) if n else _core.Gram(0, 0.0), "linear", 1.0, 0.0, 1, 2)
        np.testing.assert_array_equal(values_of(gram, n), np.zeros((n, n)))


def test_rows_that_are_not_there_are_refused() -> None:
    gram, norm = made_of(np.eye(5), 1.0), np.ones(5)
    for first, rows in ((-1, 2), (4, 2), (5, 1), (0, 6)):
        with pytest.raises(ValueError, match="rows do not fit"):
            gram.put(first, np.ones((rows, 5)), 1)
        with pytest.raises(ValueError, match="rows do not fit"):
            gram.put_distances(first, np.ones((rows, 5)), norm, 1)
    for wide in (4, 6):
        with pytest.raises(ValueError, match="rows do not fit"):
            gram.put(0, np.ones((1, wide)), 1)
        with pytest.raises(ValueError, match="rows do not fit"):
            gram.put_distances(0, np.ones((1, wide)), norm, 1)
        with pytest.raises(ValueError, match="rows do not fit"):
            gram.put_distances(0, np.ones((1, 5)), np.ones(wide), 1)
        with pytest.raises(ValueError, match="of another size"):
            gram.fill(_core.Gram(wide, 1.0), "linear", 1.0, 0.0, 1, 1)
        with pytest.raises(ValueError, match="shapes do not fit"):
            gram.rows(np.arange(2), np.empty((2, wide)))
    with pytest.raises(ValueError, match="shapes do not fit"):
        gram.rows(np.arange(2), np.empty((3, 5)))
    for row in (-1, 5):
        with pytest.raises(ValueError, match="no such row"):
            gram.rows(np.array([row]), np.empty((1, 5)))
    np.testing.assert_array_equal(np.rint(values_of(gram, 5)), np.eye(5))
