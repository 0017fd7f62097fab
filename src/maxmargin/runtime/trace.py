"""The report of a run as a table: one row per turn, one meaning per column in every engine.

    iteration, time        turns so far; seconds since the run began
    objective, dual, gap   primal value, best lower bound, their difference; NaN where unknown
    violation              what the solver compares with its tolerance
    n_support              samples that the model rests on, -1 where that is not known
    …                      what a solver adds of its own, and with several problems in a fit their number, `problem`

The last row is the model that was handed out. With several problems it is their total, and its `problem` is -1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime.result import Result, Turn

COLUMNS = ("iteration", "time", "objective", "dual", "gap", "violation", "n_support")
WHOLE = ("iteration", "n_support", "problem")


class Log:
    """The turns so far."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._rows: list[dict[str, float]] = []
        self.iterations = 0

    def add(self, turn: Turn) -> dict[str, float]:
        self.iterations += 1
        row = {
            "iteration": self.iterations,
            "time": time.perf_counter() - self._start,
            "objective": turn.objective,
            "dual": turn.dual,
            "gap": turn.gap,
            "violation": turn.violation,
            "n_support": turn.n_support,
            **turn.extra,
        }
        self._rows.append(row)
        return row

    def close(self, result: Result) -> NDArray[Any]:
        """The table; its last row, which is the last turn's or the total's, tells of the model that is handed out."""
        last: dict[str, float] = {"iteration": self.iterations}
        if result.problems > 1:
            last["problem"] = -1
        elif self._rows:
            last = self._rows.pop()
        return table([*self._rows, {**last, "time": time.perf_counter() - self._start, **summary(result)}])


def summary(result: Result) -> dict[str, float]:
    """What the last row says of a result."""
    return {
        "objective": result.objective,
        "dual": result.objective - result.gap,
        "gap": result.gap,
        "violation": result.violation,
        "n_support": result.n_support,
        **result.extra,
    }


def table(rows: Sequence[dict[str, float]]) -> NDArray[Any]:
    """Rows as a structured array; a column that a row does not have is NaN there."""
    names = tuple(dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)]))
    return np.array([tuple([row.get(name, np.nan) for name in names]) for row in rows], dtype=_kind(names))


@lru_cache
def _kind(names: tuple[str, ...]) -> np.dtype[Any]:
    return np.dtype([(name, np.int64 if name in WHOLE else np.float64) for name in names])
