"""One binary problem per class as one solver: their objectives, bounds and gaps add up (runtime/several.py).

The sum of the gaps bounds the distance of the joint objective from its optimum. A run that is stopped early keeps what it
has for every class, zero for classes it has not reached. Where a limit is set (`fair`) the classes take turns, so that
each has a model when the limit comes; otherwise one is finished before the next begins, which leaves its rows in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from maxmargin.linear.certified import Known, LinearResult
from maxmargin.runtime import Progress, Several, Solver, Status, Turn


class OneVsRest:
    """`make(k)` builds the solver of class k; `most`: turns of each class, -1 for any number."""

    def __init__(
        self, make: Callable[[int], Solver[LinearResult]], classes: int, *, workers: int = 1, ordered: bool = False,
        fair: bool = False, most: int = -1,
    ) -> None:  # fmt: skip
        self._several = Several(
            lambda k, deadline: make(k), classes, workers=workers, ordered=ordered, take_turns=fair, max_turns=most,
            numbers=range(classes),
        )  # fmt: skip

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        return self._several.turns()

    def progress(self) -> Progress:
        return self._several.progress()

    def snapshot(self) -> list[Known | None]:
        return self._several.snapshot()

    def result(self, status: Status) -> LinearResult:
        whole = self._several.result(status)
        parts = whole.parts
        return LinearResult(
            status=whole.status, objective=whole.objective, gap=whole.gap, violation=whole.violation,
            n_support=whole.n_support, problems=len(parts), timings=whole.timings, w=np.array([part.w for part in parts]),
            lower=sum(part.lower for part in parts), cuts=[cuts for part in parts for cuts in part.cuts],
            duals=[duals for part in parts for duals in part.duals],
        )  # fmt: skip
