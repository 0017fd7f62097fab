"""ν-SVC with class weights: two QPs behind one run, so that its limits, its trace and its status are those of one fit.

    stage 1   the ν-SVC without the factors; its margin ρ fixes C = 1/ρ
    stage 2   the C-SVC with that C times each class's factor, from stage 1's solution

Stage 1 may take half of the time. The model is stage 2's; it counts as converged if both have.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.solver import Decomposition
from maxmargin.decomposition.state import over
from maxmargin.kernel_values import Source
from maxmargin.problem.formulations import c_svc, intercept_and_r, nu_svc
from maxmargin.runtime import Deadline, Status, Turn, known_to_all

FloatArray = NDArray[np.float64]


class WeightedNu:
    """A solver of both stages; `begin` is a warm start in units of the bounds.

    `kept` is the snapshot of an earlier run: alpha of stage 1, and `second`, that of stage 2, if it came so far.
    """

    def __init__(
        self, y: FloatArray, nu: float, weight: FloatArray, factor: FloatArray, begin: FloatArray | None,
        kept: dict[str, FloatArray] | None, kernel: Source, options: Options, deadline: Deadline,
    ) -> None:  # fmt: skip
        self.y, self.nu, self.weight, self.factor = y, nu, weight, factor
        self.options, self.deadline, self.half = options, deadline, deadline.share(2)
        self.team, self.over = kernel.team, over(kernel.comm)
        qp = nu_svc(y, nu, weight, self.over)
        alpha = None if begin is None else qp.repaired(begin * weight, self.over)
        alpha = qp.repaired(kept["alpha"], self.over) if kept else alpha
        self._later = kept.get("second") if kept else None
        self.first = Decomposition(qp, kernel, options, alpha=alpha, deadline=self.half)
        self.found: DualResult | None = None  # by stage 1
        self.margin = 1.0
        self.second: Decomposition | None = None

    @property
    def unit(self) -> FloatArray:
        """What a weight is multiplied with in stage 2's bounds."""
        return np.asarray(self.factor / self.margin)

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        ended = yield from self._staged(self.first, 1)
        second = self._stage_2(self.first.result(ended or Status.CONVERGED))
        return (yield from self._staged(second, 2))

    def result(self, status: Status) -> DualResult:
        second = self.second or self._stage_2(self.first.result(status))
        result = second.result(status)
        assert self.found is not None
        if self.found.status is not Status.CONVERGED and result.status is Status.CONVERGED:
            result.status = self.found.status
        for name, value in self.found.timings.items():
            result.timings[name] += value
        result.extra["margin"] = self.margin
        result.first = self.found.alpha
        return result

    def snapshot(self) -> dict[str, FloatArray]:
        if self.second is None or self.found is None:
            return self.first.snapshot()
        return {"alpha": self.found.alpha, "second": self.second.snapshot()["alpha"]}

    def _staged(self, solver: Decomposition, stage: int) -> Generator[Turn | None, None, Status | None]:
        turns = solver.turns()
        while True:
            try:
                turn = next(turns)
            except StopIteration as end:
                ended: Status | None = end.value
                return ended
            if turn is not None:
                turn.extra["stage"] = float(stage)
            yield turn
            if stage == 1 and self.half.passed_for_all(self.team):
                turns.close()
                return Status.MAX_TIME

    def _stage_2(self, found: DualResult) -> Decomposition:
        margin = -intercept_and_r(found.multipliers)[1]
        if margin <= 0 and found.status is Status.CONVERGED:
            raise known_to_all(
                ValueError(f"nu={self.nu:g} leaves no margin between two classes for class_weight to weigh: raise nu")
            )
        self.found, self.margin = found, margin if margin > 0 else 1.0
        qp = c_svc(self.y, self.unit * self.weight)
        kernel = self.first.kernel  # float64, if stage 1 needed that
        begin = found.alpha * self.unit if self._later is None else self._later
        self.second = Decomposition(
            qp, kernel, self.options, alpha=qp.repaired(begin, self.over), deadline=self.deadline
        )
        return self.second
