"""Kernel values computed by the core: samples prepared once, and the source of them for one QP."""

from __future__ import annotations

import copy
import threading
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix, entries, mostly_zero
from maxmargin.kernel_values.source import FloatArray, IntArray, pieces
from maxmargin.problem.kernels import Kernel, largest_value
from maxmargin.runtime import ALONE, Comm

Frame = tuple[FloatArray, float]

# Bytes of kernel rows worth keeping when a value is computed in about a nanosecond: what stays in the processor's cache.
_ENOUGH_WHEN_CHEAP = 16 << 20
_CHEAP = 16.0  # features per value, those that need not be computed counted as none
# Samples from which on, and zeros among kernel values from which on, an order that brings the zeros together pays.
_WORTH_ORDERING = 4096
_WORTH_SKIPPING = 0.3
# The error of an rbf or laplacian value, however large the norms that it comes from: the core recomputes what it expects to
# be off by more than 4e-6 or 1e-13 (native/kernel/packed_rows.hpp), which in double is judged by its worst case.
_ENTRY_ERROR = {np.dtype(np.float32): 4e-6, np.dtype(np.float64): 4e-13}
_FAR = 25.0  # γ d² beyond which the core's float32 values are 0 (native/kernel/kernel.hpp, kFar)


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
        self._matrix = as_matrix(X if held is None else held)
        self.points = self._prepared(*((rows,) if frame is None else frame))

    def _prepared(self, *frame: Any) -> Any:
        Points: Any = _core.Points32 if self.dtype == np.float32 else _core.Points64
        k = self.kernel
        return Points(self._matrix, k.name, k.gamma, k.coef0, int(k.degree), *frame, self.threads)

    @property
    def frame(self) -> Frame:
        return self.points.shift, self.points.largest_norm

    def within(self, frame: Frame) -> Samples:
        """The same samples as part of a larger set of this frame."""
        other = copy.copy(self)
        other._again = (*self._again[:2], frame)
        other._wide, other.points = [], other._prepared(*frame)
        return other

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
        if sp.issparse(self.X) or not len(rows):
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
        """Other samples X, of the form that these came in or are held in, prepared for kernel values with these."""
        return self.points.like(as_matrix(self.as_held(X)), self.threads)

    def as_held(self, X: Any) -> Any:
        """Other samples X of the form that these came in, in the form that these are held in."""
        if not self.held_bytes or sp.issparse(X):
            return X
        return sp.csr_matrix(X) if not X.shape[0] else entries(X, np.arange(X.shape[0]), float("inf"), self.threads)

    def sum_at(self, X: Any, rows: IntArray, others: IntArray, coef: FloatArray, out: FloatArray) -> None:
        """out[c, j] += Σ_i coef[c, i] K(sample others[i], X[rows[j]]) for other samples X of the same form."""
        self.like(X).sum(rows, self.points, others, coef, out, self.threads)

    def sum_by_block(self, X: Any, ends: IntArray, coef: FloatArray, out: FloatArray) -> None:
        """out[b · outputs + c, j] += Σ_i coef[c, i] K(sample i, X[j]) over samples ends[b] … ends[b + 1] of block b."""
        self.like(X).sum_by_block(np.arange(X.shape[0]), self.points, ends, coef, out, self.threads)


class NativeValues:
    """Kernel values computed by the core from rows[id] of X."""

    first = 0
    comm: Comm = ALONE
    team: Comm = ALONE

    def __init__(self, samples: Samples, rows: IntArray) -> None:
        self.samples, self.rows = samples, np.ascontiguousarray(rows, np.int64)
        self.dtype = samples.dtype
        self.total = len(self.rows)
        self.ends: IntArray = np.array([0, self.total])

    def wider(self) -> NativeValues | None:
        return None if self.dtype == np.float64 else type(self)(self.samples.wider(), self.rows)

    def with_threads(self, threads: int) -> NativeValues:
        return type(self)(self.samples.with_threads(threads), self.rows)

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
        state = (center, lo, hi, beta, group, f)
        return s.Part(s.points, self.rows, *state, int(cache_bytes), s.threads, self.first, self.total)

    def tile(self, part: Any, ids: IntArray) -> tuple[NDArray[Any], IntArray]:
        tile, place = part.tile(ids, self.samples.points, self.rows[ids])
        return tile, place

    def update(self, part: Any, ids: IntArray, coef: FloatArray) -> int:
        return int(part.update(ids, coef, self.samples.points, self.rows[ids]))

    def sum(self, samples: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        s = self.samples
        out = np.zeros((1, len(samples)))
        s.points.sum(self.rows[samples], s.points, self.rows[others], coef[None, :], out, s.threads)
        return np.asarray(out[0])

    def fill(self, part: Any, begin: int) -> None:
        ids = part.cached
        part.fill(begin, ids, self.samples.points, self.rows[ids])

    pieces = staticmethod(pieces)
