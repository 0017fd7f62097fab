"""What is known of the cells of a grid: one outcome per cell and fold, which cells may be left, which one is best.

    certified    every fold was solved to tol, with a gap to prove it
    dropped      the scores of some folds and the best score there is for the others cannot reach the best mean: exact
    halved       halving left it on fewer rows than all: a guess, as in HalvingGridSearchCV
    not tried    the time, the callback or Ctrl-C came first (some of its folds may have been)
    stalled, max_iter, failed: …   a fold ended so; the cell has its scores, but nothing is proven of it

The best cell is the one with the highest mean over the folds, the first of them if there are several, as in GridSearchCV.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.selection.grid import Params

FloatArray = NDArray[np.float64]

CERTIFIED, DROPPED, HALVED, NOT_TRIED = "certified", "dropped", "halved", "not tried"
_ROUNDING = 1e-12  # of a mean of scores: a cell must be worse than the best by more to be dropped


@dataclass(frozen=True)
class Outcome:
    """One machine on one fold. `status` is that of its run; `gap` and `objective` are of its own problem."""

    score: float
    status: str = "converged"
    objective: float = float("nan")
    gap: float = float("nan")
    n_support: int = -1
    seconds: float = 0.0
    score_seconds: float = 0.0


@dataclass
class Board:
    """The cells in the order in which they came, and their outcomes. `ceiling` is the best score of a fold, if known."""

    n_folds: int
    ceiling: float | None = None
    cells: list[Params] = field(default_factory=list)
    _found: list[dict[int, Outcome]] = field(default_factory=list)
    _left: dict[int, str] = field(default_factory=dict)  # cells that are left, and why
    _best: int | None = None

    def add(self, cells: Iterable[Params]) -> list[int]:
        """New cells; their numbers."""
        new = list(cells)
        first = len(self.cells)
        self.cells += new
        self._found += [{} for _ in new]
        return list(range(first, len(self.cells)))

    def put(self, cell: int, fold: int, outcome: Outcome) -> None:
        self._found[cell][fold] = outcome
        if len(self._found[cell]) == self.n_folds and (mean := self.mean(cell)) == mean:
            best = -np.inf if self._best is None else self.mean(self._best)
            if mean > best or (mean == best and self._best is not None and cell < self._best):
                self._best = cell

    def wanted(self, cell: int) -> bool:
        """Whether the cell can still be the best. It is marked when it cannot, and stays so."""
        if cell in self._left:
            return False
        if self.ceiling is None or self._best is None or self.complete(cell):
            return True
        if self.bound(cell) >= self.mean(self._best) - _ROUNDING:
            return True
        self._left[cell] = DROPPED
        return False

    def leave(self, cell: int) -> None:
        """A cell that halving leaves."""
        self._left[cell] = HALVED

    def complete(self, cell: int) -> bool:
        return len(self._found[cell]) == self.n_folds

    def outcomes(self, cell: int) -> dict[int, Outcome]:
        return self._found[cell]

    def mean(self, cell: int) -> float:
        """The mean score of a complete cell, else NaN."""
        if not self.complete(cell):
            return float("nan")
        return float(np.mean([self._found[cell][k].score for k in range(self.n_folds)]))

    def bound(self, cell: int) -> float:
        """No mean of the cell can be larger: folds that are not known have the best score that there is."""
        if self.ceiling is None:
            return float("inf") if not self.complete(cell) else self.mean(cell)
        known = [o.score for o in self._found[cell].values()]
        return float((sum(known) + (self.n_folds - len(known)) * self.ceiling) / self.n_folds)

    @property
    def best(self) -> int | None:
        """The best of the complete cells."""
        return self._best

    @property
    def best_score(self) -> float:
        return float("nan") if self._best is None else self.mean(self._best)

    def status(self, cell: int) -> str:
        if cell in self._left:
            return self._left[cell]
        if not self.complete(cell):
            return NOT_TRIED
        bad = [o.status for o in self._found[cell].values() if o.status != "converged"]
        return bad[0] if bad else CERTIFIED

    @property
    def settled(self) -> int:
        """Folds of cells that need no more work."""
        return sum(self.n_folds if k in self._left else len(self._found[k]) for k in range(len(self.cells)))

    def seconds(self, cell: int) -> float:
        return float(sum(o.seconds + o.score_seconds for o in self._found[cell].values()))

    def remaining(self) -> float:
        """Seconds that the open cells will take, each as long per fold as the nearest cell that is known: cells near in the
        grid take about as long. NaN if none is known."""
        open_ = [k for k in range(len(self.cells)) if k not in self._left and not self.complete(k)]
        known = [k for k in range(len(self.cells)) if self._found[k]]
        if not open_:
            return 0.0
        if not known:
            return float("nan")
        place = np.array([[self._place(name, p[name]) for name in p] for p in self.cells])
        cost = np.array([self.seconds(k) / len(self._found[k]) for k in known])
        distance = np.abs(place[open_][:, None, :] - place[known][None, :, :]).sum(axis=2)
        folds = np.array([self.n_folds - len(self._found[k]) for k in open_])
        return float(folds @ cost[distance.argmin(axis=1)])

    @staticmethod
    def _place(name: str, value: Any) -> float:
        return float(np.log(value)) if isinstance(value, (int, float, np.number)) and value > 0 else 0.0
