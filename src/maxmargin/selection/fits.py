"""The engine that knows nothing of the machine: every fold of every cell is a fit of its own, from nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime import Deadline, Turn
from maxmargin.selection.board import Board, Outcome
from maxmargin.selection.grid import Params
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Steps, Task


class Fits:
    """`make(params)` is a machine that is not fitted yet."""

    def __init__(self, task: Task, make: Callable[[Params], Any], scoring: Scoring) -> None:
        self.task, self.make, self.scoring = task, make, scoring

    def solve(self, board: Board, cells: Sequence[int], deadline: Deadline) -> Steps:
        for cell in cells:
            for fold in range(board.n_folds):
                if not board.wanted(cell):
                    break
                board.put(cell, fold, self.outcome(board.cells[cell], fold, deadline))
                yield turn_of(board)

    def outcome(self, params: Params, fold: int, deadline: Deadline) -> Outcome:
        task, test, begun = self.task, self.task.folds[fold].test, time.perf_counter()
        try:
            machine, X = self.fitted(params, fold, deadline)
        except ValueError as error:
            return Outcome(float("nan"), f"failed: {error}", seconds=time.perf_counter() - begun)
        fitted = time.perf_counter()
        score = self.scoring(machine, X, task.y[test], task.weight(test))
        return Outcome(
            score, machine.status_, machine.objective_, machine.dual_gap_, support_count(machine), fitted - begun,
            time.perf_counter() - fitted,
        )  # fmt: skip

    def fitted(self, params: Params, fold: int, deadline: Deadline) -> tuple[Any, Any]:
        """The machine of a fold, and the rows that it is judged by."""
        task, (train, test) = self.task, (self.task.folds[fold].train, self.task.folds[fold].test)
        machine = self.make(params)
        machine._warns = False  # the table says it
        limit = deadline.limit()
        if limit is not None:
            machine.set_params(max_time=limit)
        machine.fit(part_of(machine, task.data.X, train, train), task.y[train], sample_weight=task.data.weight[train])
        return machine, part_of(machine, task.data.X, test, train)


def part_of(machine: Any, X: Any, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Any:
    """Some rows, of a Gram matrix against others."""
    return X[np.ix_(rows, columns)] if getattr(machine, "kernel", None) == "precomputed" else X[rows]


def support_count(machine: Any) -> int:
    return len(machine.support_) if hasattr(machine, "support_") else -1


def turn_of(board: Board) -> Turn:
    """A line of the search's report."""
    return Turn(np.nan, np.nan, np.nan, -1, {"folds": float(board.settled), "best_score": board.best_score})


def fitted_from(machine: Any, seed: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """The machine, fitted; the fit begins from the solution `seed` (KernelMachine._begin_from), which it does not keep."""
    machine._begin_from = seed
    machine.fit(X, y, sample_weight=sample_weight)
    del machine._begin_from
    return machine
