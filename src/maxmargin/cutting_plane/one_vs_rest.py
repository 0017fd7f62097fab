"""One binary problem per class, one after the other, as one solver with one clock.

Classes are independent, so their objectives, bounds and gaps add up: the sum of the gaps bounds the distance of the
joint objective from its optimum. A run that is stopped early keeps what it has for every class, zero for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from maxmargin.cutting_plane.bundle import Bundle
from maxmargin.cutting_plane.certified import LinearResult
from maxmargin.cutting_plane.problem import FloatArray
from maxmargin.runtime import Status, Turn


class OneVsRest:
    """`make(k)` builds the solver of class k."""

    def __init__(self, make: Callable[[int], Any], classes: int) -> None:
        self._make = make
        self._solvers: list[Any] = []
        self._classes = classes
        self.statuses: list[Status] = []

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        for k in range(self._classes):
            solver = self._make(k)
            self._solvers.append(solver)
            ended: Status | None = yield from self._one(solver, k)
            self.statuses.append(ended or Status.CONVERGED)
        return Status.STALLED if Status.STALLED in self.statuses else None

    def _one(self, solver: Any, k: int) -> Generator[Turn | None, None, Status | None]:
        turns = solver.turns()
        while True:
            try:
                turn = next(turns)
            except StopIteration as end:
                status: Status | None = end.value
                return status
            if turn is not None:
                turn.extra["class"] = float(k)
            yield turn

    def result(self, status: Status) -> LinearResult:
        while len(self._solvers) < self._classes:
            self._solvers.append(self._make(len(self._solvers)))
        parts = [solver.result(status) for solver in self._solvers]
        timings: dict[str, float] = {}
        for part in parts:
            for name, seconds in part.timings.items():
                timings[name] = timings.get(name, 0.0) + seconds
        weights: FloatArray = np.array([part.w for part in parts])
        bundles: list[Bundle | None] = [part.bundle for part in parts]
        return LinearResult(
            status=status, objective=sum(p.objective for p in parts), gap=sum(p.gap for p in parts),
            violation=max(p.violation for p in parts), timings=timings, w=weights,
            lower=sum(p.lower for p in parts), bundles=bundles,
        )
