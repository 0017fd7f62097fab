"""What all rooms of the core stand on: views of samples, places of ids, slices for threads. Through the core's own parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

KINDS = [np.float32, np.float64]


def part_of(points: Any, rows: np.ndarray, dtype: Any, cache: int, threads: int, first: int, total: int) -> Any:
    n = len(rows)
    Part: Any = _core.Part32 if dtype == np.float32 else _core.Part64
    zeros, group = np.zeros((1, n)), np.zeros((1, n), np.int8)
    return Part(points, rows, zeros, zeros, zeros + 1, zeros, group, np.zeros(n), cache, threads, first, total)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_views_of_samples_are_the_samples(index: Any, dtype: Any) -> None:
    """Dense rows apart from each other, every third, one row, none; stored entries from any place on."""
    rng = np.random.default_rng(0)
    whole = rng.integers(-4, 5, (24, 10)).astype(dtype)
    whole[rng.random(whole.shape) < 0.4] = 0
    views = [whole, whole[:, 2:7], whole[::3], whole[4:5, :3], whole[5:23:2, 1:9], whole[:1], whole[:, :1]]
    for x in views:
        S = sp.csr_matrix(x)
        S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
        for matrix in (_core.Matrix.dense(x), as_matrix(S)):
            assert matrix.shape == x.shape
            out, w = np.empty(len(x)), np.arange(1.0, x.shape[1] + 1)
            _core.linear_outputs(matrix, w, 0.0, np.ones(len(x)), np.empty(0), 0, len(x), out, 1)
            np.testing.assert_array_equal(out, x @ w)
            every = np.arange(len(x))
            np.testing.assert_array_equal(_core.rows_equal(matrix, every[:-1], every[1:]), (x[:-1] == x[1:]).all(axis=1))
    S = sp.csr_matrix(whole)
    later = _core.Matrix.csr(S.data, S.indices.astype(index), S.indptr[5:].astype(index), 10)  # its rows begin further on
    out = np.empty(19)
    _core.linear_outputs(later, np.arange(10.0), 0.0, np.ones(19), np.empty(0), 0, 19, out, 2)
    assert later.shape == (19, 10)
    np.testing.assert_array_equal(out, whole[5:] @ np.arange(10.0))
    assert as_matrix(whole[:0]).shape == (0, 10)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("share", [1.0, 0.5, 0.49, 0.1])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_found_until_newer_ones_need_their_place(threads: int, share: float, dtype: Any) -> None:
    """Of all samples, of a half or of a few: hits, what is missing and what is kept are those of a list by age."""
    rng = np.random.default_rng(0)
    total, n = 200, round(200 * share)
    X = rng.normal(size=(total, 5)).astype(np.float32).astype(float)
    Points: Any = _core.Points32 if dtype == np.float32 else _core.Points64
    points = Points(as_matrix(X), "rbf", 0.3, 0.0, 3, np.arange(total), 1)
    first = (total - n) // 2
    mine = np.arange(first, first + n)
    K = np.exp(-0.3 * np.square(X[mine][:, None] - X[None]).sum(axis=2))
    part = part_of(points, mine, dtype, 11 * (n + 8) * np.dtype(dtype).itemsize, threads, first, total)
    slots, stamp, sums = part.cache_slots, dict[int, int](), np.zeros(n)
    assert 2 <= slots < 40
    for turn in range(60):
        ids = np.sort(rng.choice(total, rng.integers(1, slots + 4), replace=False))
        if turn % 3:
            ids = np.sort(rng.choice(40, min(len(ids), 40), replace=False))  # some come again and again
        coef, before = rng.normal(size=len(ids)), part.cached.tolist()
        held = [i for i in ids.tolist() if i in before]
        assert part.missing(ids).tolist() == [i for i in ids.tolist() if i not in before]
        assert part.update(ids, coef, points, ids) == len(held)
        stamp.update(dict.fromkeys(held, turn))
        new = [i for i in ids.tolist() if i not in before]
        old = sorted((i for i in before if i not in held), key=lambda i: (stamp[i], before.index(i)))
        free = slots - len(before)
        gone = old[: max(0, min(len(new) - free, len(old)))]
        kept = new[: free + len(gone)]
        stamp.update(dict.fromkeys(kept, turn))
        assert sorted(part.cached.tolist()) == sorted({*before, *kept} - {*gone})
        sums += K[:, ids] @ coef
        np.testing.assert_allclose(part.f, sums, rtol=0, atol=(3e-6 if dtype == np.float32 else 1e-12) * (turn + 1) * 10)
    assert len(part.cached) == slots


@pytest.mark.parametrize("n", [1, 2, 95, 1000, 1601])
def test_slices_cover_every_sample_once_however_dear_each_is(n: int) -> None:
    """From a feature per sample to thousands: nothing is left out or counted twice, by any number of threads."""
    for d in (1, 130, 2600):
        x = np.zeros((n, d), np.float32)
        x[:, 0], x[:, -1] = 1 + np.arange(n) % 7, 2
        matrix, norms = as_matrix(x), np.empty(n)
        for threads in (1, 2, 5, n + 1):
            _core.linear_norms(matrix, norms, threads)
            np.testing.assert_array_equal(norms, (x * x).sum(axis=1))
            total, largest = np.zeros(d), np.empty(d)
            _core.linear_sum_rows(matrix, np.ones(n), total, threads)
            np.testing.assert_array_equal(total, x.sum(axis=0))
            assert _core.linear_extents(matrix, largest, threads) == norms.max()
            np.testing.assert_array_equal(largest, x.max(axis=0))
