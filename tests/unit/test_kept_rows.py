"""Kernel rows kept while they are summed: what the cache holds is what was computed, by either way of storing."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.decomposition.rows import NativeRows, Samples
from maxmargin.problem.kernels import Kernel

N = 1507  # not a multiple of any vector or block


def part_of(X: Any, dtype: Any, threads: int, cache: int) -> tuple[NativeRows, Any]:
    rows = NativeRows(Samples(X, Kernel("rbf", gamma=0.05), np.arange(N), dtype, threads), np.arange(N))
    zeros, ones = np.zeros((1, N)), np.ones((1, N))
    return rows, rows.part(zeros, zeros, ones, zeros, np.zeros((1, N), np.int8), np.zeros(N), cache)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("many", [13, 900])  # within the processor's caches, and beyond: stored past them
@pytest.mark.parametrize("threads", [1, 2])
def test_kept_rows_are_the_rows(dtype: Any, form: str, many: int, threads: int) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 40))
    X[rng.random(X.shape) < 0.6] = 0
    rows, part = part_of(X if form == "dense" else sp.csr_matrix(X), dtype, threads, 64 << 20)
    ids, coef = np.sort(rng.choice(N, many, replace=False)), rng.normal(size=many)
    assert rows.update(part, ids, coef) == 0
    computed = np.array(part.f)
    square = np.square(X[:, None] - X[None, ids]).sum(axis=2) if many < 100 else None
    if square is not None:
        np.testing.assert_allclose(computed, np.exp(-0.05 * square) @ coef, rtol=0, atol=3e-6 * np.abs(coef).sum())
    assert rows.update(part, ids, -coef) == many  # read back from the cache
    np.testing.assert_allclose(np.array(part.f), 0, atol=1e-11 * np.abs(coef).sum())
    without, loose = part_of(X if form == "dense" else sp.csr_matrix(X), dtype, threads, 0)
    without.update(loose, ids, coef)
    np.testing.assert_allclose(np.array(loose.f), computed, rtol=0, atol=1e-13 * np.abs(coef).sum())
