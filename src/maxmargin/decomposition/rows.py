"""Where kernel values come from: the core, a Gram matrix, or a Python function. One shape for the three.

A source knows the samples of one QP by id 0 … n−1 and offers
    part(...)                 the per-sample state with its row cache
    tile(part, ids)           K between a few samples, padded to a multiple of 16, and where each one stands in it
    update(part, ids, coef)   f += Σ coef_i K(·, i) over the part's active samples; returns cache hits
    sum(ids, others, coef)    Σ coef_i K(others_i, ·) at some samples, nothing cached
    pieces(n, m)              slices of range(n) such that one sum over m rows stays well under a second
    wider()                   the same in float64, or None if this is
    magnitude, noise          |K(i, j)| ≤ m_i m_j (an array, or a number for all), and the error of a value in units of that
    describe()                kernel, parameters and the size of the data, for an error
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix, entries, mostly_zero
from maxmargin.problem.kernels import Kernel, checked_block, largest_value

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Frame = tuple[FloatArray, float]

# Kernel values per call of `sum`: at the slowest (hundreds of features, float64) 1e8 take about half a second.
_VALUES_PER_CALL = 10**8
# Bytes of kernel rows worth keeping when a value is computed in about a nanosecond: what stays in the processor's cache.
_ENOUGH_WHEN_CHEAP = 16 << 20
_CHEAP = 16.0  # features per value, those that need not be computed counted as none
# Samples from which on, and zeros among kernel values from which on, an order that brings the zeros together pays.
_WORTH_ORDERING = 4096
_WORTH_SKIPPING = 0.3
# The core's error of an rbf or laplacian value, however large the norms that it comes from (native/kernel/packed_rows.hpp).
_ENTRY_ERROR = {np.dtype(np.float32): 4e-6, np.dtype(np.float64): 1e-13}
_FAR = 25.0  # γ d² beyond which the core's float32 values are 0 (native/kernel/kernel.hpp, kFar)


def pieces(n: int, m: int) -> Iterator[slice]:
    step = max(1024, _VALUES_PER_CALL // max(m, 1))
    return (slice(i, i + step) for i in range(0, n, step))


class Samples:
    """X prepared once for a native kernel in one precision; several QPs (pairs of classes, clusters) share it.

    A dense X that is mostly zeros is also held by its entries, where these take at most `room` bytes (`held_bytes` then
    counts them): kernel values come so much faster that cached rows which had to make room for them are not missed.
    Not for the laplacian kernel, whose values near 1 are exact only from dense rows.

    The last bits of kernel values depend on the samples' mean and largest norm, their frame. Some of the samples prepared
    on their own, in another process, must be given that of all to have the same values.
    """

    def __init__(
        self, X: Any, kernel: Kernel, rows: IntArray, dtype: Any, threads: int, room: float = 0.0,
        frame: Frame | None = None,
    ) -> None:  # fmt: skip
        self.X, self.kernel, self.dtype, self.threads = X, kernel, np.dtype(dtype), threads
        self._again = (rows, room, frame)
        self._wide: list[Samples] = []  # the same in float64, once somebody has asked; shared by all copies
        self._lock = threading.Lock()
        single = self.dtype == np.float32
        self.Part: Any = _core.Part32 if single else _core.Part64
        worth = room > 0 and kernel.name != "laplacian" and mostly_zero(X, rows, threads)
        held = entries(X, rows, room, threads) if worth else None
        self.held_bytes = 0 if held is None else held.data.nbytes + held.indices.nbytes + held.indptr.nbytes
        Points: Any = _core.Points32 if single else _core.Points64
        self.points = Points(
            as_matrix(X if held is None else held), kernel.name, kernel.gamma, kernel.coef0, int(kernel.degree),
            *((rows,) if frame is None else frame), threads,
        )  # fmt: skip

    @property
    def frame(self) -> Frame:
        return self.points.shift, self.points.largest_norm

    def wider(self) -> Samples:
        """The same samples in float64."""
        if self.dtype == np.float64:
            return self
        with self._lock:
            if not self._wide:
                rows, room, frame = self._again
                self._wide.append(Samples(self.X, self.kernel, rows, np.float64, self.threads, room, frame))
        return self._wide[0].with_threads(self.threads)

    def cheap(self, rows: IntArray) -> bool:
        """Whether a kernel value between these rows costs less than the memory to keep it in, on the average."""
        if sp.issparse(self.X):
            return False
        return bool(self.X.shape[1] * (1.0 - self.points.far_share(rows)) <= _CHEAP)

    def neighbour_order(self, rows: IntArray) -> IntArray | None:
        """An order of `rows` in which many kernel values are zero by blocks, or None if there is none worth having."""
        if self.kernel.name != "rbf" or sp.issparse(self.X) or len(rows) < _WORTH_ORDERING:
            return None
        some = rows[:: max(1, len(rows) // 512)][:512]
        distances = np.square(self.X[some[1:]].astype(np.float64) - self.X[some[:-1]]).sum(axis=1)
        if np.mean(self.kernel.gamma * distances > _FAR) < _WORTH_SKIPPING:
            return None
        order = np.asarray(self.points.neighbour_order(rows, self.threads))
        return order if self.points.far_share(rows[order]) >= _WORTH_SKIPPING else None

    def packed_bytes(self, n: int) -> int:
        """What the core takes of the cache for its own packing of n samples, four times over: it asks for a quarter."""
        return int(4 * (n + 32) * self.X.shape[1] * self.dtype.itemsize)

    def with_threads(self, threads: int) -> Samples:
        """The same prepared samples for calls with another number of threads."""
        if threads == self.threads:
            return self
        other = copy.copy(self)
        other.threads = threads
        return other

    def like(self, X: Any) -> Any:
        """Other samples X, of the form that these came in, prepared for kernel values with these."""
        if self.held_bytes:
            X = entries(X, np.arange(X.shape[0]), float("inf"), self.threads)
        return self.points.like(as_matrix(X), self.threads)

    def sum_at(self, X: Any, rows: IntArray, others: IntArray, coef: FloatArray, out: FloatArray) -> None:
        """out[c, j] += Σ_i coef[c, i] K(sample others[i], X[rows[j]]) for other samples X of the same form."""
        points = self.like(X)
        points.sum(rows, self.points, others, coef, out, self.threads)


class NativeRows:
    """Kernel values computed by the core from rows[id] of X."""

    def __init__(self, samples: Samples, rows: IntArray) -> None:
        self.samples, self.rows = samples, np.ascontiguousarray(rows, np.int64)
        self.dtype = samples.dtype

    def wider(self) -> NativeRows | None:
        return None if self.dtype == np.float64 else type(self)(self.samples.wider(), self.rows)

    @cached_property
    def magnitude(self) -> FloatArray | float:
        return self.samples.kernel.magnitude(self.samples.X, self.rows)

    @cached_property
    def noise(self) -> float:
        rounding = 2 * float(np.finfo(self.dtype).eps)
        if self.samples.kernel.name in ("rbf", "laplacian"):
            norms = 2 * float(self.samples.points.largest_norm)
            return min(rounding * (1 + norms), _ENTRY_ERROR[self.dtype])
        return rounding

    def describe(self) -> str:
        return f"{self.samples.kernel} and features up to {largest_value(self.samples.X, self.rows):.3g}"

    def part(self, center: Any, lo: Any, hi: Any, beta: Any, group: Any, f: Any, cache_bytes: float) -> Any:
        s = self.samples
        row = (len(self.rows) + 32) * self.dtype.itemsize
        cache_bytes = max(cache_bytes - s.held_bytes, row)
        if s.cheap(self.rows):
            cache_bytes = min(cache_bytes, _ENOUGH_WHEN_CHEAP + s.packed_bytes(len(self.rows)))
        return s.Part(s.points, self.rows, center, lo, hi, beta, group, f, int(cache_bytes), s.threads)

    def tile(self, part: Any, ids: IntArray) -> tuple[NDArray[Any], IntArray]:
        tile, place = part.tile(ids)
        return tile, place

    def update(self, part: Any, ids: IntArray, coef: FloatArray) -> int:
        return int(part.update(ids, coef))

    def sum(self, ids: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        s = self.samples
        out = np.zeros((1, len(ids)))
        s.points.sum(self.rows[ids], s.points, self.rows[others], coef[None, :], out, s.threads)
        return np.asarray(out[0])

    pieces = staticmethod(pieces)


class GivenRows:
    """Kernel values from a Gram matrix or a function of two blocks of samples; rows go through the same cache."""

    def __init__(self, X: Any, kernel: Kernel, rows: IntArray, dtype: Any, threads: int) -> None:
        self.X, self.kernel, self.rows, self.threads = X, kernel, rows, threads
        self.dtype = np.dtype(dtype)
        self.noise = 2 * float(np.finfo(self.dtype).eps)
        self._largest = 0.0  # of the values that a function has returned so far

    def wider(self) -> GivenRows | None:
        return None if self.dtype == np.float64 else GivenRows(self.X, self.kernel, self.rows, np.float64, self.threads)

    @property
    def magnitude(self) -> FloatArray | float:
        return self._rows_of_matrix if self.kernel.name == "precomputed" else float(np.sqrt(self._largest))

    @cached_property
    def _rows_of_matrix(self) -> FloatArray:
        pieces = [slice(i, i + 1024) for i in range(0, len(self.rows), 1024)]
        return np.sqrt([v for p in pieces for v in np.abs(self.X[np.ix_(self.rows[p], self.rows)]).max(axis=1)])

    def describe(self) -> str:
        return f"{self.kernel}, whose values go up to {float(np.max(self.magnitude)) ** 2:.3g},"

    def block(self, ids: IntArray, others: IntArray) -> FloatArray:
        if self.kernel.name == "precomputed":
            return np.asarray(self.X[np.ix_(self.rows[ids], self.rows[others])], dtype=np.float64)
        assert self.kernel.function is not None
        a, b = self.X[self.rows[ids]], self.X[self.rows[others]]
        values = checked_block(self.kernel.function(a, b), (len(ids), len(others)))
        self._largest = max(self._largest, float(np.abs(values).max(initial=0.0)))
        return values

    def part(self, center: Any, lo: Any, hi: Any, beta: Any, group: Any, f: Any, cache_bytes: float) -> Any:
        Part = _core.Part32 if self.dtype == np.float32 else _core.Part64
        return Part(None, self.rows, center, lo, hi, beta, group, f, int(cache_bytes), self.threads)

    def tile(self, part: Any, ids: IntArray) -> tuple[NDArray[Any], IntArray]:
        out = np.zeros((-(-len(ids) // 16) * 16,) * 2, self.dtype)
        out[: len(ids), : len(ids)] = self.block(ids, ids)
        return out, np.arange(len(ids))

    def update(self, part: Any, ids: IntArray, coef: FloatArray) -> int:
        missing = np.isin(ids, part.missing(ids))
        # Rows held are read before any new row may take their place.
        hits = int(part.update(ids[~missing], coef[~missing]))
        active = part.active
        step = max(1, min(part.cache_slots, 2**24 // max(1, len(active))))  # at most 128 MB of block at a time
        fresh, fresh_coef = ids[missing], coef[missing]
        for i in range(0, len(fresh), step):
            some = fresh[i : i + step]
            part.put(some, self.block(some, active))
            part.update(some, fresh_coef[i : i + step])
        return hits

    def sum(self, ids: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        total = np.zeros(len(ids))
        step = max(1, 2**24 // max(1, len(ids)))  # 128 MB of block at a time
        for i in range(0, len(others), step):
            total += coef[i : i + step] @ self.block(others[i : i + step], ids)
        return total

    pieces = staticmethod(pieces)
