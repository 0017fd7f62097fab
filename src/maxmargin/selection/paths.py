"""The folds of a linear machine along C: each begins where the fold's last C ended, with all the cuts that it has gathered.

    R_k(w) = Σ weight_i loss(m_i) over the rows of fold k.     What carries over, and why it changes no answer:

    C to C, same fold      every cut. R_k(w) ≥ ⟨a, w⟩ + b says nothing of C, so it bounds every C's objective from below.
                           w as a starting point; the duals as a point where dual coordinate descent begins.
    fold to fold, same C   no cut as it is: R_k is the whole risk less that of the rows left out, so a cut of one fold's
                           risk need not bound another's. But a cut is Σ alpha_i (1 − m_i) over rows, and any
                           0 ≤ alpha_i ≤ weight_i make one. The duals of the rows that both folds have, 0 for the
                           others: one sum over rows, and it is a cut of the new fold. (Squared hinge: any alpha ≥ 0,
                           Σ alpha_i (1 − m_i) − alpha_i² / 4 weight_i.) w as a starting point.

A fold is all rows with weight 0 for those left out: X, its largest values and its centre are those of all folds, no row is
copied. Every cell ends by its own certificate, a bound on its own objective, wherever it began.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxmargin.estimators._labelled import Labelled, class_weights, encoded_classes
from maxmargin.estimators._linear import SMALL, Memory, Samples, remembered
from maxmargin.estimators._linear_state import Past
from maxmargin.linear import LinearResult
from maxmargin.runtime import Control, Deadline
from maxmargin.selection.board import Board, Outcome
from maxmargin.selection.fits import turn_of
from maxmargin.selection.grid import Params
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Steps, Task

Key = tuple[Any, ...]


class Paths:
    """`make(params)` is a linear machine that is not fitted yet."""

    def __init__(self, task: Task, make: Callable[[Params], Any], scoring: Scoring) -> None:
        self.task, self.make, self.scoring = task, make, scoring
        self._machine = make({})
        self._shared: Samples | None = None
        self._folds: dict[tuple[Key, int], Samples | str] = {}
        self._memory: dict[tuple[Key, int], Memory] = {}  # of each fold's last C
        self.last: dict[int, Any] = {}  # a fold's machine of each cell: where a refit may begin
        if task.data.X.shape[0] > SMALL:
            self._shared = self._machine._data(task.data)

    def solve(self, board: Board, cells: Sequence[int], deadline: Deadline) -> Steps:
        for cell in sorted(cells, key=lambda c: (self._key(board.cells[c]), float(board.cells[c]["C"]))):
            for fold in range(board.n_folds):
                if not board.wanted(cell):
                    break
                outcome = self._outcome(cell, board.cells[cell], fold, deadline)
                if outcome.status not in ("interrupted", "max_time"):  # it has no say
                    board.put(cell, fold, outcome)
                yield turn_of(board)

    @staticmethod
    def _key(params: Params) -> Key:
        """Of a path: everything but C, which cuts say nothing of."""
        return tuple(value for name, value in params.items() if name != "C")

    def _outcome(self, cell: int, params: Params, fold: int, deadline: Deadline) -> Outcome:
        begun, key, machine = time.perf_counter(), self._key(params), self.make(params)
        samples = self._samples(machine, key, fold)
        if isinstance(samples, str):
            return Outcome(float("nan"), f"failed: {samples}")
        memory = self._memory.get((key, fold)) or self._from_before(key, fold, samples)
        result: LinearResult = machine._driven(samples, memory, Control(max_iter=machine.max_iter, deadline=deadline))
        self._memory[key, fold] = remembered(result)
        machine._warns = False  # the table says it
        machine.n_features_in_ = self.task.data.X.shape[1]
        machine._publish(result, **machine._attributes(result, samples))
        self.last[cell] = machine
        fitted = time.perf_counter()
        test = self.task.folds[fold].test
        score = self.scoring(machine, self.task.data.X[test], self.task.y[test], self.task.weight(test))
        return Outcome(
            score, machine.status_, result.objective, result.gap, result.n_support, fitted - begun,
            time.perf_counter() - fitted,
        )  # fmt: skip

    def _from_before(self, key: Key, fold: int, samples: Samples) -> Memory:
        """For the first C of a fold: points and duals of the fold before, whose cuts are of another risk."""
        before, there = self._memory.get((key, fold - 1)), self._folds.get((key, fold - 1))
        if before is None or not isinstance(there, Samples) or not np.array_equal(there.classes, samples.classes):
            return {}
        same = there.X is samples.X  # row by row
        return {k: Past(None, past.start, past.duals if same else None) for k, past in before.items()}

    def _samples(self, machine: Any, key: Key, fold: int) -> Samples | str:
        if (key, fold) not in self._folds:
            try:
                self._folds[key, fold] = self._of_fold(machine, fold)
            except ValueError as error:
                self._folds[key, fold] = str(error)
        return self._folds[key, fold]

    def _of_fold(self, machine: Any, fold: int) -> Samples:
        """All rows, with weight 0 for those that the fold leaves out; class weights are those of its rows."""
        data, n = self.task.data, self.task.data.X.shape[0]
        weight = data.weight * np.bincount(self.task.folds[fold].train, minlength=n)
        target, classes, factors = data.target, data.classes, data.factors
        if len(classes):
            classes, code = encoded_classes(self.task.y, weight)
            factors = class_weights(machine.class_weight, classes, code, weight)
            target = code.astype(np.float64)
        labelled = Labelled(data.X, target, weight, classes, factors)
        if self._shared is None:
            some = weight > 0
            few: Samples = machine._data(Labelled(data.X[some], target[some], weight[some], classes, factors))
            return few
        out = copy.copy(self._shared)
        out.target = labelled.code if len(classes) else target
        out.weight, out.classes = labelled.effective, classes
        machine._measure(out)
        return out
