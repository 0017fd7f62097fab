"""Kernel rows of a part (native/decomposition/part.hpp, looked_up.hpp): sums, tiles and what is filled in, next to NumPy.

Of many features a value costs more than to look it up, and rows are put together from each other's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core

FEW, MANY = 7, 515  # features: rows computed, and put together
CLOSE = {np.float32: 3e-6, np.float64: 1e-13}


class Rows:
    """A part of the samples of a matrix, in any order of its rows, and all their kernel values."""

    def __init__(self, n: int, features: int, dtype: Any, form: str = "dense", *, kernel: str = "rbf", share: float = 1.0,
                 cache_bytes: int = 1 << 26, threads: int = 1, seed: int = 0) -> None:  # fmt: skip
        rng = np.random.default_rng([n, features, seed])
        X = rng.normal(size=(n + 3, features)).astype(dtype)
        X[rng.random(X.shape) < 0.4] = 0
        gamma = 0.3 / features
        exact = X.astype(float)
        dots, norm = exact @ exact.T, np.square(exact).sum(axis=1)
        K = {"rbf": lambda: np.exp(-gamma * np.maximum(norm[:, None] + norm - 2 * dots, 0)), "linear": lambda: dots,
             "poly": lambda: (gamma * dots + 1) ** 2}[kernel]()  # fmt: skip
        csr = sp.csr_matrix(X)
        csr.indices, csr.indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int32)
        view = _core.Matrix.csr(csr.data, csr.indices, csr.indptr, features) if form == "csr" else _core.Matrix.dense(X)
        Points, Part = (_core.Points32, _core.Part32) if dtype == np.float32 else (_core.Points64, _core.Part64)
        self.points = Points(view, kernel, gamma, 1.0, 2, np.arange(n + 3), threads)
        self.row = rng.permutation(n + 3)[:n]  # of each sample in the matrix
        self.K, self.dtype, self.size = K[np.ix_(self.row, self.row)], dtype, np.abs(K).max()
        first, held = (0, n) if share == 1.0 else (n // 4, int(share * n))
        self.mine = np.arange(first, first + held)
        zeros, group = np.zeros((1, held)), np.zeros((1, held), np.int8)
        state = zeros, zeros - 1, zeros + 1, zeros, group, np.zeros(held)
        self.part = Part(self.points, self.row[self.mine], *state, cache_bytes, threads, first, n)

    def update(self, ids: Any, coef: Any) -> Any:
        """The sum of rows into numbers that begin at one; what was cached is told."""
        hits, out = np.isin(ids, self.part.cached).sum(), np.ones(self.part.size)
        assert self.part.update_into(ids, coef, self.points, self.row[ids], out) == (hits if len(out) else 0)
        return out

    def true(self, out: Any, ids: Any, coef: Any) -> None:
        close = CLOSE[self.dtype] * self.size * (1 + np.abs(coef).sum())
        np.testing.assert_allclose(out, 1 + coef @ self.K[np.ix_(ids, self.part.active)], rtol=0, atol=close)

    def all_true(self) -> None:
        """Each row in the cache by itself; to read it changes none."""
        for v in self.part.cached:
            one = np.array([v])
            self.true(self.update(one, np.ones(1)), one, np.ones(1))

    def tile(self, ids: Any) -> Any:
        tile, place = self.part.tile(ids, self.points, self.row[ids])
        assert sorted(place.tolist()) == list(range(len(ids))) and np.isfinite(tile[: len(ids)]).all()
        values = tile[np.ix_(place, place)]
        np.testing.assert_allclose(values, self.K[np.ix_(ids, ids)], rtol=0, atol=CLOSE[self.dtype] * self.size)
        return values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel, features, form", [
    ("rbf", 1, "dense"), ("rbf", FEW, "csr"), ("linear", FEW, "dense"), ("poly", 33, "csr"), ("rbf", MANY, "dense"),
    ("poly", MANY, "dense"), ("rbf", MANY, "csr"),
])  # fmt: skip
@pytest.mark.parametrize("n", [1, 15, 16, 17, 31, 33, 100])
def test_sums_of_rows_and_what_is_kept(n: int, kernel: str, features: int, form: str, dtype: Any) -> None:
    """Whatever is in the cache and has room in it, for a part or all; the same by one thread and by two."""
    for share in (1.0, 0.6) if n > 2 else (1.0,):
        for rows in (0, 3, 40, 1000):
            cache_bytes = rows * (n + 32) * np.dtype(dtype).itemsize
            ones, twos = (Rows(n, features, dtype, form, kernel=kernel, share=share, cache_bytes=cache_bytes, threads=t)
                          for t in (1, 2))  # fmt: skip
            rng = np.random.default_rng(rows)
            for _ in range(4):
                ids = rng.permutation(n)[: rng.integers(0, n + 1)]
                coef = rng.normal(size=len(ids))
                one, two = ones.update(ids, coef), twos.update(ids, coef)
                ones.true(one, ids, coef)
                np.testing.assert_array_equal(one, two)
                held, slots = ones.part.cached, ones.part.cache_slots
                np.testing.assert_array_equal(held, twos.part.cached)
                assert np.isin(ids, held).sum() == min(len(ids), slots) and slots * len(ones.mine) <= rows * (n + 32)
            ones.all_true()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [383, 385, 800])
def test_many_rows_put_together(n: int, dtype: Any, threads: int) -> None:
    """Some from rows that are there, more than are put together at a time, and those of samples left out."""
    rows = Rows(n, MANY, dtype, threads=threads)
    rng = np.random.default_rng(n)
    for some in (rng.permutation(n)[:40], rng.permutation(n)):
        coef = rng.normal(size=len(some))
        rows.true(rows.update(some, coef), some, coef)
    rows.all_true()
    fewer = Rows(n, MANY, dtype, threads=threads)
    fewer.update(np.arange(0, n, 7), np.ones(len(np.arange(0, n, 7))))
    fewer.part.restrict(np.flatnonzero(rng.random(n) < 0.7))
    some = rng.permutation(n)[: n - 20]
    some = some[np.isin(some, fewer.part.active)]
    fewer.true(fewer.update(some, np.ones(len(some))), some, np.ones(len(some)))
    fewer.all_true()


@pytest.mark.parametrize("features, form", [(FEW, "dense"), (FEW, "csr"), (MANY, "dense")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 5, 70, 300])
def test_tiles_of_one_working_set_after_another(rows: int, dtype: Any, features: int, form: str) -> None:
    """Of members, newcomers whose row is there and newcomers whose row is not; rows stay right."""
    n, room = 130, rows * 160 * np.dtype(dtype).itemsize
    by_threads = [Rows(n, features, dtype, form, cache_bytes=room, threads=t) for t in (1, 2)]
    rng = np.random.default_rng(rows)
    for turn in range(8):
        if turn == 5:
            for r in by_threads:
                r.part.restrict(np.arange(3, n - 10))
        ids = rng.permutation(by_threads[0].part.active)[: rng.choice([1, 15, 16, 17, 33, 64, 100])]
        one, two = (r.tile(ids) for r in by_threads)
        np.testing.assert_array_equal(one, two)
        moved = ids[rng.random(len(ids)) < 0.7]
        for r in by_threads:
            r.true(r.update(moved, np.ones(len(moved))), moved, np.ones(len(moved)))
    by_threads[0].all_true()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_many_features_come_before_the_tile(dtype: Any) -> None:
    """Where all of them have room: what the tile has computed is not computed again."""
    rows, ids = Rows(64, MANY, dtype), np.arange(0, 60, 3)
    assert rows.part.cache_slots == 64
    rows.tile(ids)
    assert len(rows.part.missing(ids)) == 0 and len(rows.part.cached) == len(ids)
    short = Rows(64, MANY, dtype, cache_bytes=63 * 64 * np.dtype(dtype).itemsize)
    assert short.part.cache_slots == 63
    short.tile(ids)
    assert len(short.part.cached) == 0
    few = Rows(64, FEW, dtype)
    few.tile(ids)
    assert len(few.part.cached) == 0


@pytest.mark.parametrize("features, form", [(FEW, "dense"), (FEW, "csr"), (MANY, "dense")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 15, 16, 17, 33, 100])
def test_samples_taken_back_are_filled_in(n: int, dtype: Any, features: int, form: str) -> None:
    """Rows that were kept, and rows that came meanwhile, have values for all samples again."""
    rng = np.random.default_rng(n)
    for rows in (1, 2, n, 3 * n):
        one = Rows(n, features, dtype, form, cache_bytes=rows * (n + 32) * np.dtype(dtype).itemsize, threads=2)
        for keep in (np.arange(n - 1), np.flatnonzero(rng.random(n) < 0.5), np.arange(n)):
            some = rng.permutation(n)[: n // 2 + 1]
            one.update(some, np.ones(len(some)))
            one.part.restrict(keep[keep < one.part.size])
            other = one.part.active
            one.update(other[::2].copy(), np.ones(len(other[::2])))
            begin = one.part.size
            one.part.take_back(9.0, 9.0, -9.0, -9.0)
            assert one.part.size == n
            order = rng.permutation(one.part.cached)
            one.part.fill(begin, order, one.points, one.row[order])
            one.all_true()


@pytest.mark.parametrize("features", [FEW, MANY])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [64, 100])
def test_rows_used_last_stay_when_samples_come_back(n: int, dtype: Any, features: int) -> None:
    """Fewer rows of more samples fit: those used longest ago go, and are missing."""
    rng = np.random.default_rng(n)
    for rows in (1, 3, 10):
        one = Rows(n, features, dtype, cache_bytes=rows * (n + 32) * np.dtype(dtype).itemsize)
        one.part.restrict(np.arange(n // 4))
        used = rng.permutation(n // 4)
        for v in used:
            one.update(np.array([v]), np.ones(1))
        assert len(one.part.cached) == min(one.part.cache_slots, len(used)) > rows
        one.part.take_back(9.0, 9.0, -9.0, -9.0)
        slots = one.part.cache_slots
        assert sorted(one.part.cached.tolist()) == sorted(used[max(0, len(used) - slots) :].tolist())
        assert sorted([*one.part.missing(np.arange(n)), *one.part.cached]) == list(range(n))
        one.part.fill(n // 4, one.part.cached, one.points, one.row[one.part.cached])
        one.all_true()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_in_panels_are_in_the_budget(dtype: Any) -> None:
    """They take at most a quarter of it, and never more is used than is allowed."""
    n, rows = 192, 40
    for features in (1, 4, 10, 11, 100):
        slots = Rows(n, features, dtype, cache_bytes=rows * n * np.dtype(dtype).itemsize).part.cache_slots
        assert rows - rows // 4 <= slots <= rows and slots in (rows, rows - features)


def test_more_values_to_fill_in_than_at_a_time() -> None:
    """A buffer holds some of the rows; the next ones follow."""
    rows = Rows(3300, 2, np.float32)
    rows.part.restrict(np.arange(3))
    ids = np.arange(0, 3300, 2)
    rows.update(ids, np.ones(len(ids)))
    rows.part.take_back(9.0, 9.0, -9.0, -9.0)
    rows.part.fill(3, ids, rows.points, rows.row[ids])
    coef = np.random.default_rng(0).normal(size=len(ids))
    assert len(rows.part.missing(ids)) == 0
    rows.true(rows.update(ids, coef), ids, coef)
    for v in (0, 1262, 1264, 2526, 2528, 3298):
        rows.true(rows.update(np.array([v]), np.ones(1)), np.array([v]), np.ones(1))
