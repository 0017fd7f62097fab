"""The samples of a search, for all of its problems: distinct rows by class, and how much each weighs in every fold.

A fold is nothing but other weights: a sample that it leaves out has weight 0, of copies of a row some may be in.
So all folds have the same variables, and a solution on all rows is a start for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.rows import DistinctRows, distinct_rows
from maxmargin.estimators._labelled import class_weights
from maxmargin.selection.search import Task

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """The samples as one fold has them, or (fold −1) all: weights, factors of the classes, which classes there are."""

    weight: FloatArray
    factors: FloatArray  # one per class
    present: IntArray  # classes
    test: IntArray  # samples of the rows that it is judged by, in their order


class Samples:
    """Distinct rows, sorted by class; `ends` are where classes begin and end (of regression one)."""

    def __init__(self, task: Task, class_weight: Any, merge: bool, threads: int) -> None:
        data = task.data
        rows = distinct_rows(data.X, data.target, data.weight, merge=merge, threads=threads)
        label = data.code[rows.index] if len(data.classes) else np.zeros(len(rows.index), np.intp)
        self.rows: DistinctRows = rows.reordered(np.argsort(label, kind="stable"))
        self.classes, self.n, self.target = data.classes, len(rows.index), data.target[self.rows.index]
        self.label = np.sort(label)
        self.ends = np.searchsorted(self.label, np.arange(max(1, len(data.classes)) + 1))
        self._class_weight = class_weight
        self._task = task
        self._chosen: dict[tuple[int, int], IntArray] = {}
        self._sample = np.full(data.X.shape[0], -1, np.int64)  # of each row
        self._sample[self.rows.member] = self.rows.owner

    def side(self, fold: int) -> Side:
        task, rows = self._task, self.rows
        counts = np.zeros(task.data.X.shape[0], bool)
        counts[slice(None) if fold < 0 else task.folds[fold].train] = True
        mine = np.where(counts[rows.member], rows.member_weight, 0.0)
        weight = np.bincount(rows.owner, mine, minlength=self.n).astype(np.float64)
        test = np.empty(0, np.int64) if fold < 0 else self.sample_of(task.folds[fold].test)
        if not len(self.classes):
            return Side(weight, np.ones(1), np.zeros(1, np.int64), test)
        present = np.flatnonzero(np.bincount(self.label, weight, minlength=len(self.classes)) > 0)
        factors = np.ones(len(self.classes))
        some = np.searchsorted(present, self.label[weight > 0])
        factors[present] = class_weights(self._class_weight, self.classes[present], some, weight[weight > 0])
        return Side(weight, factors, present, test)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Two classes each; (0, −1): regression."""
        return list(combinations(range(len(self.classes)), 2)) or [(0, -1)]

    def ranges(self, pair: tuple[int, int]) -> tuple[int, int, int, int]:
        """Where the samples of a pair begin and end."""
        i, j = pair
        first = (int(self.ends[i]), int(self.ends[i + 1]))
        return (*first, int(self.ends[j]), int(self.ends[j + 1])) if j >= 0 else (*first, first[1], first[1])

    def chosen(self, pair: tuple[int, int]) -> IntArray:
        if pair not in self._chosen:
            a, b, c, d = self.ranges(pair)
            self._chosen[pair] = np.concatenate([np.arange(a, b), np.arange(c, d)])
        return self._chosen[pair]

    def sample_of(self, rows: IntArray) -> IntArray:
        """The sample that each of some rows is, −1: it does not count."""
        return self._sample[rows]

    def by_row(self, values: FloatArray) -> FloatArray:
        """One value per row of X, NaN for those that do not count."""
        out = np.full(self._task.data.X.shape[0], np.nan)
        out[self.rows.member] = values[self.rows.owner]
        return out
