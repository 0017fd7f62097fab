"""One cluster's share of a QP: restricted, solved anywhere, sent back as a few arrays.

A subproblem runs in a thread of this process, where it shares the prepared samples and the stop flag, or is pickled by
a joblib backend; then it takes the rows of its own cluster along and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.carriers import never
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.sent import to_its_end
from maxmargin.decomposition.solver import Decomposition
from maxmargin.kernel_values import KernelData
from maxmargin.problem.formulations import QP
from maxmargin.runtime import NEVER, Control, Deadline, Status, steps

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Row = dict[str, float]


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


def cut_short(results: Iterable[DualResult]) -> Status | None:
    """Why one of these was left before its end, if one was. Too many turns and stalls are ends of their own."""
    return next((r.status for r in results if r.status is Status.MAX_TIME or r.status.by_user), None)


class Solving:
    """One QP solved step by step.

    `alpha` is where to begin. Without `f`, its K·β, it need not be feasible and is repaired.
    """

    def __init__(
        self,
        qp: QP,
        data: KernelData,
        ids: IntArray,
        options: Options,
        alpha: FloatArray | None = None,
        f: FloatArray | None = None,
    ) -> None:
        self.n_iter = 0
        begin = alpha if alpha is None or f is not None else qp.repaired(alpha)
        self._solver = Decomposition(qp, data.source(ids, options.threads), options, alpha=begin, f=f)

    def steps(
        self, max_iter: int = -1, deadline: Deadline = NEVER, stopped: Callable[[], bool] = lambda: False
    ) -> Generator[Row | None, None, DualResult]:
        """A row after each turn and None at other safe points, to the solution or a limit."""
        self._solver.deadline = deadline
        going = steps(self._solver, Control(max_iter=max_iter, deadline=deadline), stopped)
        while True:
            try:
                row = next(going)
            except StopIteration as end:
                result: DualResult = end.value
                return replace(result, trace=np.empty(0))
            self.n_iter += row is not None
            yield row

    @property
    def alpha(self) -> FloatArray:
        """As far as it got."""
        return self._solver.snapshot()["alpha"]

    def reached(self, status: Status) -> DualResult:
        """The solution as far as it got, with what is known about it."""
        return replace(self._solver.result(status), n_iter=self.n_iter)


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

    def solving(self, threads: int = 1) -> Solving:
        return Solving(self.qp, self.data, self.ids, replace(self.options, threads=threads), self.alpha)


@dataclass(frozen=True)
class Piece:
    """A solved subproblem."""

    problem: int
    cluster: int
    samples: IntArray
    result: DualResult

    @classmethod
    def of(cls, task: Subproblem, result: DualResult) -> Piece:
        return cls(task.problem, task.cluster, task.samples, result)


def solve_subproblem(task: Subproblem) -> Piece:
    """All of it at once, in a thread or a process of its own; Ctrl-C reaches such a process, too, and ends it in order."""
    stopped = never if task.stop is None else task.stop.is_set
    return Piece.of(task, to_its_end(lambda over: task.solving().steps(task.max_iter, task.deadline, over), stopped))
