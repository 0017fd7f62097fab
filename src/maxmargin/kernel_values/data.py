"""Samples with their kernel, whole or in part, here or on their way to another process."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernel_values.given import GivenValues
from maxmargin.kernel_values.native import Frame, NativeValues, Samples
from maxmargin.problem.kernels import Kernel

IntArray = NDArray[np.int64]


class KernelData:
    """Samples 0 … n−1, which are X[rows], with their kernel; prepared for the core at most once per precision.

    `at_hand`: whether the rows are in this process. `frame` is that of the data they are a part of, if they are: see
    Samples.
    """

    at_hand = True

    def __init__(
        self, X: Any, kernel: Kernel, rows: IntArray, dtype: Any, threads: int, frame: Frame | None = None
    ) -> None:
        self.X, self.kernel, self.rows, self.threads = X, kernel, np.ascontiguousarray(rows, np.int64), threads
        self.dtype, self.frame = np.dtype(dtype), frame
        self.afar: Any = None  # where a cluster's workers have the rows: remote.Blocks
        self._prepared: dict[Any, Samples] = {}
        self._lock = threading.Lock()

    def source(self, ids: IntArray | None = None, threads: int | None = None) -> NativeValues | GivenValues:
        """Kernel values between the samples `ids` (all by default)."""
        threads = self.threads if threads is None else threads
        dtype = self.dtype
        rows = self.rows if ids is None else self.rows[ids]
        if not self.kernel.native:
            return GivenValues(self.X, self.kernel, rows, dtype, threads)
        with self._lock:
            if dtype not in self._prepared:
                self._prepared[dtype] = Samples(self.X, self.kernel, self.rows, dtype, self.threads, frame=self.frame)
        return NativeValues(self._prepared[dtype].with_threads(threads), rows)

    def restricted(self, ids: IntArray) -> KernelData:
        """The samples `ids` alone, with copies of their rows; kernel values keep their bits."""
        rows = self.rows[ids]
        X = self.X[np.ix_(rows, rows)] if self.kernel.name == "precomputed" else self.X[rows]
        return KernelData(X, self.kernel, np.arange(len(rows)), self.dtype, 1, self.known_frame())

    def known_frame(self) -> Frame | None:
        """What some of the samples need to have the same kernel values elsewhere."""
        if self.frame is not None:
            return self.frame
        source = self.source()
        return source.samples.frame if isinstance(source, NativeValues) else None

    def with_kernel(self, kernel: Kernel) -> KernelData:
        """The same samples with another kernel."""
        return KernelData(self.X, kernel, self.rows, self.dtype, self.threads)

    def rows_of(self, ids: IntArray) -> Any:
        """Copies of these samples' rows."""
        return self.X[self.rows[ids]]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_prepared", "_lock", "afar")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _prepared={}, _lock=threading.Lock(), afar=None)
