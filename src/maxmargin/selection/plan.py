"""The problems of a group of cells that follow one another (along C, or ν), in the order in which they are begun.

Nothing in them depends on γ, whose cells are other groups: a plan is made once for all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.problem.formulations import QP, InfeasibleError

IntArray = NDArray[np.int64]
Key = tuple[int, int]  # a cell's place in its group, and the fold (−1: all rows)
Classes = tuple[int, int]


@dataclass
class Problem:
    """A QP of a pair of classes, and which ones it begins from (−1: none)."""

    fold: int
    pair: Classes
    qp: QP
    parent: int = -1
    like: int = -1
    unlike: int = -1
    ratio: float = 1.0
    extra: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


class Plan:
    """`machines` and the `sizes` of what they follow one another by, cell by cell; `wanted`: folds that are to be solved.

    A cell's problem on all rows comes before the folds of the cell before it, so that one thread can be at that, for which
    its own folds wait, while others are at these.
    """

    def __init__(self, engine: Any, machines: list[Any], sizes: list[float], wanted: set[Key], pairs: list[Classes]) -> None:
        self.engine, self.machines, self.sizes, self.pairs = engine, machines, sizes, pairs
        self.problems: list[Problem] = []
        self.keys: dict[Key, slice] = {}  # their problems
        self.failed: dict[Key, str] = {}
        self._at: dict[tuple[int, int, Classes], int] = {}
        for k in range(len(machines) + 1):
            if k < len(machines):
                self._add_pairs(k, -1)
            for fold in range(len(engine.task.folds)):
                if (k - 1, fold) in wanted:
                    self._add_pairs(k - 1, fold)

    def _add_pairs(self, cell: int, fold: int) -> None:
        first = len(self.problems)
        for pair in self.pairs:
            self._add(cell, fold, pair)
        self.keys[cell, fold] = slice(first, len(self.problems))

    def _add(self, cell: int, fold: int, pair: Classes) -> None:
        engine, side = self.engine, self.engine.sides[fold]
        if pair[1] >= 0:
            if len(side.present) < 2:
                self.failed[cell, fold] = "the fold has rows of one class only"
            if not set(pair) <= set(side.present.tolist()):
                return
        try:
            qp = engine.qp(self.machines[cell], fold, pair)
        except InfeasibleError as error:
            if fold >= 0:
                self.failed[cell, fold] = str(error)
            return
        others = (cell, -1, pair), (cell - 1, -1, pair), (cell - 1, fold, pair)
        whole, before, then = (self._at.get(other, -1) for other in others)
        if fold < 0:
            ratio = self.sizes[cell] / self.sizes[cell - 1] if cell else 1.0
            problem = Problem(fold, pair, qp, parent=before, ratio=ratio)
        else:
            like, unlike = (then, before) if min(whole, before, then) >= 0 else (-1, -1)
            problem = Problem(fold, pair, qp, whole, like, unlike, extra=engine.extra(fold, pair))
        self._at[cell, fold, pair] = len(self.problems)
        self.problems.append(problem)

    def rounds(self, folds: Sequence[int]) -> list[Key]:
        """`keys` in another order: the first of `folds` for every cell, then the second, and so on. A cell of which a fold
        says that it is hopeless needs no others."""
        last = len(self.machines) - 1
        begun = [key for k in range(last + 1) for key in ((k, -1), (k - 1, folds[0]))]
        later = [(k, fold) for fold in folds[1:] for k in range(last + 1)]
        return [key for key in (*begun, (last, folds[0]), *later) if key in self.keys]

    @cached_property
    def state(self) -> Any:
        """As a family takes it (native/decomposition/family_state.hpp)."""
        problems, qps = self.problems, [p.qp for p in self.problems]
        signed = np.concatenate([qp.sign * qp.upper for qp in qps])
        arrays = {
            "range": np.array([self.engine.samples.ranges(p.pair) for p in problems], np.int64).ravel(),
            "at": np.cumsum([0, *(qp.n for qp in qps)]),
            "parent": np.array([p.parent for p in problems], np.int64),
            "like": np.array([p.like for p in problems], np.int64),
            "unlike": np.array([p.unlike for p in problems], np.int64),
            "ratio": np.array([p.ratio for p in problems]),
            "center": np.concatenate([qp.center for qp in qps]),
            "lo": np.minimum(signed, 0.0),
            "hi": np.maximum(signed, 0.0),
            "start": np.concatenate([qp.sign * qp.start() for qp in qps]),
            "target": np.concatenate([qp.targets for qp in qps]),
            "group": np.concatenate([qp.group for qp in qps]),
            "extra_at": np.cumsum([0, *(len(p.extra) for p in problems)]),
            "extra": np.concatenate([p.extra for p in problems]),
            "groups": len(qps[0].targets),
            "halves": qps[0].n_variables // qps[0].n,
        }
        return _core.FamilyState(**arrays)
