"""Kernel rows that a part keeps within its bytes (native/decomposition/row_cache.hpp): which ones, and what is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmargin import _core

PARTS = {np.float32: _core.Part32, np.float64: _core.Part64}
FIRST = 5
WHOLE = 64  # rows of a multiple of so many samples have nothing at their end, whatever the level of instructions


class Kept:
    """A part whose rows come from outside, and what it should hold: values of any row at the active samples."""

    def __init__(self, n: int, dtype: Any, cache_bytes: int, total: int, threads: int, rng: np.random.Generator) -> None:
        zeros, group = np.zeros((1, n)), np.zeros((1, n), np.int8)
        state = zeros, zeros - 1, zeros + 1, zeros, group, np.zeros(n)
        self.K = rng.normal(size=(total, n)).astype(np.float32).astype(float)
        self.part = PARTS[dtype](None, np.arange(n), *state, cache_bytes, threads, FIRST, total)
        self.active = np.arange(n)
        self.turn, self.used = 0, dict[int, int]()  # when each row that is held was used last

    def put(self, ids: Any) -> None:
        held = self.part.cached.tolist()
        new, room = len(ids), self.part.cache_slots - len(held)
        oldest = sorted(held, key=lambda v: (self.used[v], held.index(v)))
        self.part.put(ids, np.ascontiguousarray(self.K[np.ix_(ids, self.active)]))
        gone = set(held) - set(self.part.cached.tolist())
        assert len(gone) == max(0, new - room) and gone <= set(oldest[:new])  # exactly those where no room was left
        self.turn += 1
        self.used = {v: t for v, t in self.used.items() if v not in gone} | dict.fromkeys(ids.tolist(), self.turn)

    def use(self, ids: Any, rng: np.random.Generator) -> None:
        """Rows are read as their sums."""
        coef, out = rng.integers(-2, 3, len(ids)).astype(float), np.ones(len(self.active))
        assert self.part.update_into(ids, coef, None, np.zeros(len(ids), np.int64), out) == (len(ids) if len(out) else 0)
        np.testing.assert_allclose(out, 1 + coef @ self.K[np.ix_(ids, self.active)], rtol=0, atol=1e-11)
        if len(out):
            self.turn += 1
            self.used |= dict.fromkeys(ids.tolist(), self.turn)

    def same(self, rng: np.random.Generator) -> None:
        assert sorted(self.part.cached.tolist()) == sorted(self.used)
        assert len(self.used) <= self.part.cache_slots
        some = rng.permutation(len(self.K))[: rng.integers(0, len(self.K) + 1)]
        assert self.part.missing(some).tolist() == [v for v in some.tolist() if v not in self.used]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [WHOLE, 3 * WHOLE])
@pytest.mark.parametrize("rows", [0, 1, 2, 7, 70])
def test_as_many_rows_as_fit(rows: int, n: int, dtype: Any) -> None:
    """To the last byte, and no more than there are samples; rows of fewer samples are more."""
    rng, total, size = np.random.default_rng(rows), 3 * WHOLE + 40, np.dtype(dtype).itemsize
    exactly = rows * n * size
    assert Kept(n, dtype, exactly, total, 1, rng).part.cache_slots == rows
    assert Kept(n, dtype, exactly + n * size - 1, total, 1, rng).part.cache_slots == rows
    assert rows == 0 or Kept(n, dtype, exactly - 1, total, 1, rng).part.cache_slots == rows - 1
    assert Kept(n, dtype, 10 * total * n * size, total, 1, rng).part.cache_slots == total
    part = Kept(n, dtype, exactly, total, 1, rng).part
    for m in sorted({WHOLE, n // 2, n - 5, 3, 1}, reverse=True):
        part.restrict(np.arange(m))
        padded = (-(-m // panel) * panel for panel in (4, 8, 16, 32))
        assert part.cache_slots in [min(total, rows * n // width) for width in padded]
    part.restrict(np.empty(0, np.int64))
    part.take_back(9.0, 9.0, -9.0, -9.0)
    assert part.cache_slots == rows


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 2, 3, 10, 31])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 64, 100])
def test_rows_used_longest_ago_go_first(n: int, rows: int, dtype: Any, threads: int) -> None:
    """Whatever comes, is used, loses samples or gets them back: what is held is right, and the last ones are held."""
    rng, width = np.random.default_rng(100 * n + rows), -(-n // 32) * 32
    kept = Kept(n, dtype, rows * width * np.dtype(dtype).itemsize, n + FIRST + rng.integers(0, 2 * n), threads, rng)
    for turn in range(58):
        absent = rng.permutation(kept.part.missing(np.arange(len(kept.K))))
        held = rng.permutation(kept.part.cached)
        if turn % 20 == 17:
            keep = np.flatnonzero(rng.random(len(kept.active)) < rng.choice([0.1, 0.8, 1.0]))
            kept.active = kept.active[keep]
            kept.part.restrict(keep)
            if len(keep) == 0:
                kept.used.clear()
        elif turn % 20 == 19:
            kept.part.take_back(9.0, 9.0, -9.0, -9.0)
            kept.active = kept.part.active - FIRST
            kept.used.clear()  # nobody could compute what they lack
        elif turn % 2 or len(absent) == 0:
            kept.use(held[: rng.integers(0, len(held) + 1)], rng)
        else:
            most = min(len(absent), kept.part.cache_slots)
            kept.put(absent[: rng.integers(0, most + 1) if turn % 4 else min(most, 1)])
        kept.same(rng)
    kept.use(np.array(sorted(kept.used), np.int64), rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_lose_samples_side_by_side(dtype: Any) -> None:
    """Each moves towards the beginning of the memory, over places that others have left; by several threads."""
    n, rows = 700, 600
    for share in (0.02, 0.3, 0.7, 0.995, 1.0):
        rng = np.random.default_rng(int(100 * share))
        kept = Kept(n, dtype, rows * 704 * np.dtype(dtype).itemsize, n + FIRST, 3, rng)
        kept.put(rng.permutation(n + FIRST)[:rows])
        keep = np.flatnonzero(rng.random(n) < share)
        kept.active = kept.active[keep]
        kept.part.restrict(keep)
        kept.same(rng)
        for some in np.split(rng.permutation(kept.part.cached), 50):
            kept.use(some, rng)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 2047, 2048, 2049, 5000])
def test_sums_of_rows(n: int, dtype: Any, threads: int) -> None:
    """f gets every row times its coefficient, the first to the last of any number of them, in any order."""
    rng, rows = np.random.default_rng(n), 40
    K, zeros = rng.normal(size=(n, n if n < rows else rows)).T.astype(dtype), np.zeros((1, n))
    start = rng.normal(size=n)
    part = PARTS[dtype](None, np.arange(n), zeros, zeros, zeros, zeros, np.zeros((1, n), np.int8), start, 1 << 24, threads)
    part.put(np.arange(len(K)), K.astype(float))
    for count in (*range(10), 39):
        ids, coef = rng.permutation(len(K))[:count], rng.normal(size=min(count, len(K)))
        before = part.f
        assert part.update(ids, coef, None, ids) == len(ids)
        np.testing.assert_allclose(part.f, before + coef @ K[ids].astype(float), rtol=0, atol=1e-13)
