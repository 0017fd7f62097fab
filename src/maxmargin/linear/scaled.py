"""A problem solved as another one whose values, and perhaps weights, are in other units."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from maxmargin.linear.certified import Known, LinearResult, relayed
from maxmargin.runtime import Status, Turn


class Scaled:
    """`solver`'s problem with its values times `values` and its weights times `weights`, powers of two: exactly.

    The joint problem of two classes: at the optimum w_1 = −w_0 = w/2, which leaves ½(½‖w‖² + 2C·hinge risk of w), half
    the binary problem at twice C.
    Regression in units of the targets, y = s·y', w = s·w': ½‖w‖² + C·Σ loss is s² times ½‖w'‖² + C/s·Σ loss' (squared: C).
    """

    def __init__(self, solver: Any, values: float, weights: float = 1.0) -> None:
        self._solver, self._values, self._weights = solver, values, weights

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        return relayed(self._solver.turns(), self._seen)

    def _seen(self, turn: Turn | None) -> Turn | None:
        if turn is None:
            return None
        return replace(turn, objective=self._values * turn.objective, dual=self._values * turn.dual)

    def result(self, status: Status) -> LinearResult:
        result: LinearResult = self._solver.result(status)
        result.objective, result.gap, result.lower = (
            self._values * value for value in (result.objective, result.gap, result.lower)
        )
        result.w = self._weights * result.w
        return result

    def snapshot(self) -> Known:
        known: Known = self._solver.snapshot()
        return replace(known, w=None if known.w is None else self._weights * known.w)
