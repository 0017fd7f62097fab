"""Kernel values that are given: a Gram matrix, or a function of two blocks of samples."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.kernel_values.source import FloatArray, IntArray, pieces
from maxmargin.problem.kernels import Kernel, checked_block
from maxmargin.runtime import ALONE, Comm


class GivenValues:
    """Kernel values from a Gram matrix or a function of two blocks of samples; rows go through the same cache."""

    comm: Comm = ALONE
    team: Comm = ALONE

    def __init__(self, X: Any, kernel: Kernel, rows: IntArray, dtype: Any, threads: int) -> None:
        self.X, self.kernel, self.rows, self.threads = X, kernel, rows, threads
        self.dtype = np.dtype(dtype)
        self.noise = 2 * float(np.finfo(self.dtype).eps)
        self.first, self.total = 0, len(rows)
        self.ends: IntArray = np.array([0, self.total])
        self._largest = 0.0  # of the values that a function has returned so far

    def wider(self) -> GivenValues | None:
        return None if self.dtype == np.float64 else GivenValues(self.X, self.kernel, self.rows, np.float64, self.threads)

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
        hits = int(part.update(ids[~missing], coef[~missing], None, ids[~missing]))
        active = part.active
        step = max(1, min(part.cache_slots, 2**24 // max(1, len(active))))  # at most 128 MB of block at a time
        fresh, fresh_coef = ids[missing], coef[missing]
        for i in range(0, len(fresh), step):
            some = fresh[i : i + step]
            part.put(some, self.block(some, active))
            part.update(some, fresh_coef[i : i + step], None, some)
        return hits

    def sum(self, samples: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        total = np.zeros(len(samples))
        step = max(1, 2**24 // max(1, len(samples)))  # 128 MB of block at a time
        for i in range(0, len(others), step):
            total += coef[i : i + step] @ self.block(others[i : i + step], samples)
        return total

    def fill(self, part: Any, begin: int) -> None:
        """Nothing: the part has dropped its rows, as they would have to be asked for again."""

    pieces = staticmethod(pieces)
