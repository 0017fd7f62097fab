"""Kernel rows kept while they are summed: what the cache holds is what was computed, by either way of storing."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.decomposition.solver import Decomposition
from maxmargin.kernel_values import NativeValues, Samples
from maxmargin.problem.kernels import Kernel

N = 1507  # not a multiple of any vector or block


def part_of(X: Any, dtype: Any, threads: int, cache: int) -> tuple[NativeValues, Any]:
    rows = NativeValues(Samples(X, Kernel("rbf", gamma=0.05), np.arange(N), dtype, threads), np.arange(N))
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_members_of_a_tile_keep_their_places(dtype: Any, form: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 12))
    rows, part = part_of(X if form == "dense" else sp.csr_matrix(X), dtype, 2, 64 << 20)
    stood: dict[int, int] = {}
    for count in (40, 300, 300, 77, 310):  # grows, changes, shrinks, grows again
        stay = list(stood)[: count // 2]
        ids = np.array(sorted({*stay, *rng.choice(N, count - len(stay), replace=False).tolist()}))
        tile, place = rows.tile(part, ids)
        q = len(ids)
        assert sorted(place.tolist()) == list(range(q))
        assert all(place[i] == stood[v] for i, v in enumerate(ids.tolist()) if stood.get(v, q) < q)
        exact = np.exp(-0.05 * np.square(X[ids][:, None] - X[ids][None]).sum(axis=2))
        np.testing.assert_allclose(tile[np.ix_(place, place)], exact, rtol=0, atol=1e-5)
        assert np.isfinite(tile[:q]).all()
        stood = dict(zip(ids.tolist(), place.tolist()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_rows_of_a_tile_that_others_have_computed(dtype: Any, form: str) -> None:
    """The same tile, to the last bit, whoever computes which of the newcomers' rows."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(N, 12))
    X = X if form == "dense" else sp.csr_matrix(X)
    (rows, whole), (_, part) = (part_of(X, dtype, 1, 1 << 20) for _ in range(2))
    points, last = rows.samples.points, np.empty(0, np.int64)
    for count in (40, 301, 77, 310):
        ids = np.union1d(last[: count // 3], rng.choice(N, count, replace=False))
        tile, place = whole.tile(ids, points, ids)
        fresh = np.flatnonzero(~np.isin(ids, last))
        later = np.ascontiguousarray(fresh[len(fresh) // 2 :][::-1])
        values = np.empty((len(later), -(-len(ids) // 32) * 32), dtype)
        points.block(ids, points, ids[later], values, 1)
        view, stands = part.tile(ids, points, ids, later)
        part.take_rows(later, values)
        q, last = len(ids), ids
        assert stands.tolist() == place.tolist()
        np.testing.assert_array_equal(view[:q], tile[:q])
    with pytest.raises(ValueError, match="do not fit"):
        part.take_rows(later, values[:, :5].copy())
    with pytest.raises(ValueError, match="no such sample"):
        part.tile(ids, points, ids, np.array([len(ids)]))


def test_both_halves_of_some_samples_share_rows_of_the_tile() -> None:
    rng = np.random.default_rng(7)
    place = rng.permutation(20)
    tile = np.zeros((32, 32), np.float32)
    tile[:20, :20] = rng.normal(size=(20, 20))
    column = np.concatenate([np.arange(20), [3, 7, 8]])  # variables by half, then by sample
    both, stands = Decomposition._by_variable(tile, place, column)
    assert both.shape == (32, 32) and sorted(stands.tolist()) == list(range(23))
    np.testing.assert_array_equal(both[np.ix_(stands, stands)], tile[np.ix_(place[column], place[column])])
    alone, stands = Decomposition._by_variable(tile, place, np.arange(20))
    assert alone is tile and stands.tolist() == place.tolist()
