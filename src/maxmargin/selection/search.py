"""The search over a grid as one run: which cells are tried, in which order, and when it ends.

    grid       every cell, unless an exact bound on its score says that it cannot be the best
    halving    all cells on a part of the rows (the same part of each class), the best third on three times as many, …,
               the last third on all rows: which cells are left out is a guess, and they are marked so
    extend     while the best cell lies on an end of the grid, values beyond that end are tried as well

How the folds of cells are solved is an Engine's business, and in which order. It reports to the board.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from maxmargin.estimators._labelled import Labelled
from maxmargin.runtime import NEVER, Deadline, Progress, Result, Status, Turn
from maxmargin.selection.board import Board
from maxmargin.selection.folds import Fold
from maxmargin.selection.grid import Grid

IntArray = NDArray[np.int64]
Steps = Generator[Turn | None, None, None]

FACTOR = 3  # by which halving grows the rows and shrinks the cells
LEAST_ROWS = 500  # of the first rung
SPARE = 1.5  # of the time that the refit is expected to take is kept for it


@dataclass(frozen=True)
class Task:
    """Samples, folds, whether weights were given (`weighed`), and whether X is a Gram matrix of the samples (`square`)."""

    data: Labelled
    y: NDArray[Any]  # labels as they came
    folds: list[Fold]
    weighed: bool = False
    square: bool = False

    def part(self, rows: IntArray) -> Task:
        """The same on some of the rows, which are ascending."""
        place = np.full(self.data.X.shape[0], -1, np.int64)
        place[rows] = np.arange(len(rows))
        X = self.data.X[np.ix_(rows, rows)] if self.square else self.data.X[rows]
        data = replace(self.data, X=X, target=self.data.target[rows], weight=self.data.weight[rows])
        inside = [Fold(*(p[p >= 0] for p in (place[fold.train], place[fold.test]))) for fold in self.folds]
        return replace(self, data=data, y=self.y[rows], folds=inside)

    def weight(self, rows: IntArray) -> NDArray[np.float64] | None:
        """For a score: None where no weights were given."""
        return self.data.weight[rows] if self.weighed else None


class Engine(Protocol):
    """Solves the folds of cells, each of which it puts on the board."""

    def solve(self, board: Board, cells: Sequence[int], deadline: Deadline) -> Steps:
        """Yields when the run may be stopped; asks `board.wanted(cell)` before it begins with a fold."""


@dataclass
class Found(Result):
    """How a search ended; the grid with what was tried beyond it."""

    grid: Grid = field(default_factory=lambda: Grid({}))


class Search:
    """A solver of a whole grid, for runtime.run."""

    def __init__(
        self, grid: Grid, board: Board, task: Task, engine: Callable[[Task], Engine], *, method: str = "grid",
        extend: bool = False, random_state: Any = None, deadline: Deadline = NEVER,
    ) -> None:  # fmt: skip
        self.grid, self.board, self.task, self.engine = grid, board, task, engine
        self.method, self.extend, self.random_state, self.deadline = method, extend, random_state, deadline
        self._what, self._rung = "", board
        self.last_engine: Engine | None = None  # that solved cells on all rows

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        cells = self.board.add(self.grid.cells())
        if self.method == "halving":
            cells = yield from self._halved(cells)
        self.last_engine = engine = self.engine(self.task)
        self._rung, self._what = self.board, ""
        if (yield from self._solve(engine, self.board, cells)):
            return Status.MAX_TIME
        while self.extend and (more := self._beyond()):
            if (yield from self._solve(engine, self.board, more)):
                return Status.MAX_TIME
        return None

    def result(self, status: Status) -> Found:
        return Found(status=status, grid=self.grid)

    def progress(self) -> Progress:
        board, remaining = self._rung, self._rung.remaining()
        spent = sum(board.seconds(c) for c in range(len(board.cells)))
        done = 100 * spent / (spent + remaining) if spent > 0 else 0.0  # some cell is known then, and what remains
        folds = f"{board.settled} of {len(board.cells) * board.n_folds} folds"
        return Progress(done, 100.0, "%", folds + self._what)

    def reserve(self) -> float:
        """Seconds to keep for the refit: it has seen none of them yet if no cell is complete."""
        best = self.board.best
        if best is None:
            return 0.0
        return SPARE * max(o.seconds for o in self.board.outcomes(best).values())

    def _solve(self, engine: Engine, board: Board, cells: Sequence[int]) -> Generator[Turn | None, None, bool]:
        """Whether the time for it is over."""
        for turn in engine.solve(board, cells, self.deadline):
            yield turn
            if self.deadline.passed(self.reserve()):
                return True
        return False

    def _halved(self, cells: list[int]) -> Generator[Turn | None, None, list[int]]:
        """The cells that are left for all rows. A cell that is not solved in time on a part of them is left as well."""
        for rows in rungs(self.task, len(cells), self.random_state):
            part = self.task.part(rows)
            self._rung = rung = Board(self.board.n_folds, self.board.ceiling)
            rung.add(self.board.cells[c] for c in cells)
            self._what = f", {len(rows)} rows"
            if (yield from self._solve(self.engine(part), rung, range(len(cells)))):
                break
            keep = -(-len(cells) // FACTOR)
            order = sorted(range(len(cells)), key=lambda k: (-_known(rung.mean(k)), k))
            for k in order[keep:]:
                self.board.leave(cells[k])
            cells = sorted(cells[k] for k in order[:keep])
        return cells

    def _beyond(self) -> list[int]:
        """New cells past the ends that the best one lies on."""
        if self.board.best is None:
            return []
        for name, upper in self.grid.edges(self.board.cells[self.board.best]):
            grid = self.grid.beyond(name, upper)
            if grid is not None:
                known = [tuple(params.values()) for params in self.board.cells]
                self.grid = grid
                return self.board.add(p for p in grid.cells() if tuple(p.values()) not in known)
        return []


def _known(score: float) -> float:
    return score if score == score else -np.inf


def rungs(task: Task, n_cells: int, random_state: Any) -> list[IntArray]:
    """The rows of each rung of halving before the last one, which has all: growing parts, spread over classes and folds."""
    counts = np.flatnonzero(task.data.weight > 0)
    steps = int(min(np.log(max(1.0, len(counts) / LEAST_ROWS)) / np.log(FACTOR), np.log(n_cells) / np.log(FACTOR)))
    rng = check_random_state(random_state)
    share = np.empty(len(counts))  # of its class that comes before a row
    order = rng.permutation(len(counts))
    code = task.data.code[counts] if len(task.data.classes) else np.zeros(len(counts), np.intp)
    for c in np.unique(code):
        mine = order[code[order] == c]
        share[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
    return [np.sort(counts[share <= FACTOR**-k]) for k in range(steps, 0, -1)]
