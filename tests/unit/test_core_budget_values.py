"""Kernel values and decision values of the budget engine against NumPy, around whole panels, blocks and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

FORMS = [np.asarray, sp.csr_matrix]
REALS = [np.float32, np.float64]
PANELS = [1, 31, 32, 33, 64, 65, 96, 97, 257]  # 32 slots each, up to 4 of them at a time


def points(n: int, d: int, dtype: Any, seed: int) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < 0.3, 0, rng.normal(size=(n, d))).astype(dtype)


def exact(x: NDArray[Any], centres: NDArray[Any], gamma: float) -> NDArray[np.float64]:
    x, centres = x.astype(np.float64), centres.astype(np.float64)
    return np.asarray(np.exp(-gamma * ((x[:, None] - centres) ** 2).sum(axis=2)))


def kernel(x: Any, rows: NDArray[np.int64], centres: NDArray[Any], gamma: float, threads: int = 1) -> NDArray[Any]:
    """Into some columns of a wider matrix, of which the others stay."""
    wide = np.full((len(rows), len(centres) + 5), 7.0, centres.dtype)
    _core.budget_kernel(as_matrix(x), rows, centres, gamma, wide[:, 2:-3], threads)
    assert (wide[:, :2] == 7).all() and (wide[:, -3:] == 7).all()
    return wide[:, 2:-3]


def decide(x: Any, rows: NDArray[np.int64], centres: NDArray[Any], coef: NDArray[np.float64], gamma: float,
           threads: int = 1) -> NDArray[np.float64]:  # fmt: skip
    out = np.full((len(rows), len(coef)), np.nan)
    _core.budget_decide(as_matrix(x), rows, centres, coef, gamma, out, threads)
    return out


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("count", PANELS)
def test_values_of_any_number_of_rows_and_centres(count: int, dtype: Any, real: Any, form: Any) -> None:
    """Rows in any order, some twice; of one output and of several; and those of one row alone have the same bits."""
    rng = np.random.default_rng(count)
    x, centres = points(40, 5, dtype, count), points(count, 5, real, count + 1)
    centres[count // 2] = x[3]
    assert decide(form(x), np.arange(0), centres, np.ones((2, count)), 0.3).shape == (0, 2)
    for n in (1, 7, 8, 9, 33):
        rows = rng.integers(0, 40, n)
        rows[n // 2 : n // 2 + 1] = 3
        wanted = exact(x[rows], centres, 0.3)
        found = kernel(form(x), rows, centres, 0.3)
        close = 2e-6 if np.float32 in (dtype, real) else 1e-14
        np.testing.assert_allclose(found, wanted, atol=close)
        alone = [kernel(form(x), rows[[i]], centres, 0.3)[0] for i in range(n)]
        np.testing.assert_array_equal(found, np.reshape(alone, found.shape))
        for outputs in (1, 2, 3):
            coef = rng.normal(size=(outputs, count))
            values = decide(form(x), rows, centres, coef, 0.3)
            np.testing.assert_allclose(values, wanted @ coef.T, atol=close * np.abs(coef).sum(axis=1).max())
            singly = [decide(form(x), rows[[i]], centres, coef, 0.3)[0] for i in range(n)]
            np.testing.assert_array_equal(values, np.reshape(singly, values.shape))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n", [255, 256, 257, 2049])
def test_threads_share_rows_and_change_no_bit(n: int, real: Any, form: Any) -> None:
    """Each row of every slice once, also where the last one is smaller."""
    x, centres, rows = points(n, 6, real, n), points(65, 6, real, 1), np.random.default_rng(n).permutation(n)
    coef = np.random.default_rng(0).normal(size=(2, 65))
    wanted = exact(x[rows], centres, 0.2)
    for threads in (1, 2, 3):
        values = decide(form(x), rows, centres, coef, 0.2, threads)
        found = kernel(form(x), rows, centres, 0.2, threads)
        if threads == 1:
            np.testing.assert_allclose(found, wanted, atol=2e-6)
            np.testing.assert_allclose(values, wanted @ coef.T, atol=2e-4)
            first = found, values
        np.testing.assert_array_equal(found, first[0])
        np.testing.assert_array_equal(values, first[1])


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("d", [1, 2, 15, 16, 17, 64, 100])
def test_values_of_equal_rows_are_one_by_stored_entries_too(d: int, real: Any) -> None:
    """|x|² + |s|² − 2x·s of a row with itself is 0 to the last bit, so norms are rounded as products are."""
    x = points(50, d, real, d)
    values = kernel(sp.csr_matrix(x), np.arange(50), x, 3.0)
    assert (np.diag(values) == 1).all() and (values <= 1).all()


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize(("gamma", "size"), [(1.0, 3e3), (1e5, 3.0), (1e7, 0.3), (1e-3, 1e5)])
def test_rows_whose_products_would_blur_are_measured_with_their_zeros(gamma: float, size: float, real: Any) -> None:
    """Where gamma·|x|² is large, values by stored entries have the bits of those of dense rows."""
    rng = np.random.default_rng(0)
    near = rng.normal(size=(70, 4)) / np.sqrt(gamma)
    near[:, 1] = 0
    x = (near + size * np.array([1.0, 0.0, 2.0, -1.0])).astype(real)
    assert (gamma * (x.astype(float) ** 2).sum(axis=1) > 1e6).all()
    centres, coef, rows = x[:37].copy(), rng.normal(size=(1, 37)), np.arange(70)
    by_entries, dense = (kernel(form(x), rows, centres, gamma) for form in (sp.csr_matrix, np.asarray))
    np.testing.assert_array_equal(by_entries, dense)
    np.testing.assert_allclose(dense, exact(x, centres, gamma), atol=1e-5 if real == np.float32 else 1e-12)
    by_entries, dense = (decide(form(x), rows, centres, coef, gamma) for form in (sp.csr_matrix, np.asarray))
    np.testing.assert_array_equal(by_entries, dense)


@pytest.mark.parametrize("real", REALS)
def test_rows_that_blur_stand_beside_rows_that_do_not(real: Any) -> None:
    """Each row of a block has zeros of its own, whatever stood in its place before."""
    x = points(100, 9, real, 3)
    x[::3] += np.where(x[::3] != 0, 4000, 0).astype(real)
    x[1::9] = 0
    rows = np.random.default_rng(1).permutation(100)
    values = kernel(sp.csr_matrix(x), rows, x[:40].copy(), 1.0)
    np.testing.assert_allclose(values, exact(x[rows], x[:40], 1.0), atol=1e-4 if real == np.float32 else 1e-9)
    far = np.flatnonzero((x[rows] ** 2).sum(axis=1) > 1e6)
    np.testing.assert_array_equal(values[far], kernel(x, rows[far], x[:40].copy(), 1.0))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("real", REALS)
def test_centres_beyond_all_numbers_count_for_nothing(real: Any, form: Any) -> None:
    """Squares that overflow give a value of 0 and no NaN; a centre that is the row itself has value 1 all the same."""
    most = float(np.finfo(real).max)
    x = np.array([[0.0, 1.0], [most, 0.0], [-most / 2, most / 2], [np.sqrt(most), 0.0]], real)
    values = kernel(form(x), np.arange(4), x, 1.0)
    np.testing.assert_array_equal(values, np.eye(4))
    np.testing.assert_array_equal(decide(form(x), np.arange(4), x, np.ones((2, 4)), 1.0), np.ones((4, 2)))
