"""One cluster's share of a QP: restricted, solved anywhere, sent back as a few arrays.

A subproblem runs in a thread of this process, where it shares the prepared samples and the stop flag, or is pickled by
a joblib backend; then it takes the rows of its own cluster along and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.rows import Frame, GivenRows, NativeRows, Samples
from maxmargin.decomposition.solver import Decomposition, DualResult, Options, solve
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import NEVER, Control, Deadline, Status

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class KernelData:
    """Samples 0 … n−1, which are X[rows], with their kernel; prepared for the core at most once per precision.

    `frame` is that of the data they are a part of, if they are: see Samples.
    """

    def __init__(
        self, X: Any, kernel: Kernel, rows: IntArray, dtype: Any, threads: int, frame: Frame | None = None
    ) -> None:
        self.X, self.kernel, self.rows, self.threads = X, kernel, np.ascontiguousarray(rows, np.int64), threads
        self.dtype, self.frame = np.dtype(dtype), frame
        self._prepared: dict[Any, Samples] = {}
        self._lock = threading.Lock()

    def source(self, ids: IntArray | None = None, threads: int | None = None, dtype: Any = None) -> NativeRows | GivenRows:
        """Kernel values between the samples `ids` (all by default)."""
        threads = self.threads if threads is None else threads
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        rows = self.rows if ids is None else self.rows[ids]
        if not self.kernel.native:
            return GivenRows(self.X, self.kernel, rows, dtype, threads)
        with self._lock:
            if dtype not in self._prepared:
                self._prepared[dtype] = Samples(self.X, self.kernel, self.rows, dtype, self.threads, frame=self.frame)
        return NativeRows(self._prepared[dtype].with_threads(threads), rows)

    def restricted(self, ids: IntArray) -> KernelData:
        """The samples `ids` alone, with copies of their rows; kernel values keep their bits."""
        rows = self.rows[ids]
        source = self.source()
        frame = source.samples.frame if isinstance(source, NativeRows) else None
        X = self.X[np.ix_(rows, rows)] if self.kernel.name == "precomputed" else self.X[rows]
        return KernelData(X, self.kernel, np.arange(len(rows)), self.dtype, 1, frame)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_prepared", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _prepared={}, _lock=threading.Lock())


def variables(qp: QP, samples: IntArray) -> IntArray:
    """The variables of some samples of a QP: one each, or two for regression."""
    halves = qp.n_variables // qp.n
    return (samples[None, :] + qp.n * np.arange(halves)[:, None]).ravel()


def restricted(qp: QP, samples: IntArray) -> QP:
    """The QP of some samples only. Sums of groups are zero for all formulations that are divided, so they stay."""
    at = variables(qp, samples)
    return QP(len(samples), qp.sign[at], qp.center[at], qp.upper[at], qp.group[at], qp.targets)


def one_class(qp: QP, samples: IntArray) -> bool:
    """Whether a classification problem has samples of one sign only."""
    sign = qp.sign[samples]
    return qp.n_variables == qp.n and bool((sign == sign[0]).all())


def at_zero(qp: QP, source: NativeRows | GivenRows, status: Status) -> DualResult:
    """alpha = 0 with its gap and violation: what is known of a QP that was not begun."""
    return Decomposition(qp, source, Options()).result(status)


def dual_value(result: DualResult) -> float:
    return result.objective - result.gap


def worst_violation(results: Sequence[DualResult]) -> float:
    return float(np.max([r.violation for r in results], initial=0.0))  # NaN if one is unknown


@dataclass
class Subproblem:
    """The variables of one problem in one cluster. `samples` are places in the problem, `ids` those in the data."""

    problem: int
    cluster: int
    samples: IntArray
    ids: IntArray
    qp: QP
    data: KernelData
    alpha: FloatArray | None
    options: Options
    max_iter: int = -1
    deadline: Deadline = NEVER
    stop: threading.Event | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        here = np.arange(len(self.ids))
        return vars(self) | {"data": self.data.restricted(self.ids), "ids": here, "stop": None}

    @property
    def size(self) -> int:
        return len(self.samples)


def solve_subproblem(task: Subproblem) -> tuple[int, int, IntArray, DualResult]:
    """(problem, cluster, samples, solution); float32 kernel values that stall are replaced by float64 ones."""
    start = None if task.alpha is None else task.qp.repaired(task.alpha)
    result = _solve(task, start, task.data.dtype)
    if result.status is Status.STALLED and task.data.dtype == np.float32:
        first, result = result, _solve(task, result.alpha, np.float64)
        result.n_iter += first.n_iter
    return task.problem, task.cluster, task.samples, replace(result, trace=np.empty(0))


def _solve(task: Subproblem, alpha: FloatArray | None, dtype: Any) -> DualResult:
    stop = task.stop
    watch = None if stop is None else lambda row: stop.is_set()
    control = Control(max_iter=task.max_iter, callback=watch, deadline=task.deadline)
    return solve(task.qp, task.data.source(task.ids, task.options.threads, dtype), task.options, control, alpha=alpha)
