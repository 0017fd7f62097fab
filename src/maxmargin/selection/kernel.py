"""The engine of the exact kernel machines: all C and all folds of one γ on one kernel matrix (docs/selection.md).

For each γ one matrix; on it, for each pair of classes, the problem on all rows for C₁ < C₂ < …, each from the last one's
solution, and for every C its folds, each from the solution on all rows (native/decomposition/family.hpp; where no matrix
fits, chain.py). Every solution is judged in float64. What is not sure, or stalled, is fitted again by the machine itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.decomposition.solver import MOST_STEPS
from maxmargin.decomposition.working_set import MB
from maxmargin.estimators._kernel import KernelMachine
from maxmargin.estimators._pairs import Pair
from maxmargin.estimators._prediction import dense_if_small
from maxmargin.estimators._setup import Begin, Setup
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import NATIVE
from maxmargin.problem.sums import HERE
from maxmargin.runtime import Deadline, thread_count
from maxmargin.runtime.ahead import ahead
from maxmargin.selection.board import Board, Outcome
from maxmargin.selection.chain import CONVERGED, DROPPED, chain
from maxmargin.selection.fits import Fits, turn_of
from maxmargin.selection.grid import Params
from maxmargin.selection.judged import Judged, Layout, judge, numbers_of
from maxmargin.selection.matrices import Matrices
from maxmargin.selection.plan import Key, Plan, Problem
from maxmargin.selection.samples import Samples
from maxmargin.selection.scoring import Scoring, known
from maxmargin.selection.search import Steps, Task

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SLICE = 0.01  # seconds between two looks at the clock, Ctrl-C and what is solved: hopeless cells are left the sooner
STATE_BYTES = 100 * MB  # of the problems that are under way at once
_PER_VARIABLE = 48  # bytes of a problem's state


def can_share(machine: Any, task: Task) -> bool:
    """Whether this engine is for such a machine: a kernel that is no function, the usual inner solver, no limits."""
    if not isinstance(machine, KernelMachine) or callable(machine.kernel) or machine._objects is not None:
        return False
    usual = machine.inner_solver == "smo" and machine.working_set_size is None and machine.max_iter == -1
    weighted_nu = hasattr(machine, "nu") and getattr(machine, "class_weight", None) is not None
    return usual and not weighted_nu


@dataclass(frozen=True)
class Whole:
    """A solution on all rows, from which the machine may be fitted in the end; by a chain also f, with what it has gone
    through and its precision. That fit proves it."""

    problem: Problem
    beta: FloatArray
    f: FloatArray | None = None
    path: float = 0.0
    dtype: Any = None


class KernelFolds:
    """`single(params)` is a machine, not fitted; `path` the parameter along which solutions follow one another."""

    def __init__(self, task: Task, single: Callable[[Params], Any], scoring: Scoring, path: str) -> None:
        self.task, self.single, self.scoring, self.path = task, single, scoring, path
        some = single({})
        self.threads = thread_count(some.n_jobs)
        self.X = dense_if_small(task.data.X)
        self.samples = Samples(task, getattr(some, "class_weight", None), some.kernel in NATIVE, self.threads)
        index = self.samples.rows.index
        room = some.cache_size * MB
        self.matrices = Matrices(self.X, index, some.kernel, float(some.coef0), int(some.degree), self.threads, room)
        self.sides = {fold: self.samples.side(fold) for fold in range(-1, len(task.folds))}
        self._tests: dict[int, tuple[Any, Any]] = {}
        self._extra: dict[tuple[int, tuple[int, int]], IntArray] = {}
        self._both: dict[tuple[int, tuple[int, int]], Pair] = {}
        self._layouts: dict[tuple[int, tuple[tuple[int, int], ...]], Layout] = {}
        self._plan: tuple[Any, Plan] | None = None
        self._fits = Fits(task, single, scoring)
        self.seeds: dict[int, dict[tuple[int, int], Begin]] = {}  # of the best cell
        self.found: dict[tuple[int, int], list[Judged]] = {}  # by cell and fold
        self.wholes: dict[int, list[Whole]] = {}  # by cell
        self.seconds: dict[tuple[int, int], float] = {}
        self.decisions: dict[int, FloatArray] | None = None  # by fold, where somebody wants to keep them
        self.loose = 0.0  # to which share of the spread of f folds are solved, where no matrix fits; 0: to tol

    # ---- in which order ----------------------------------------------------------------------------------------------

    def solve(self, board: Board, cells: Sequence[int], deadline: Deadline) -> Steps:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for cell in cells:
            rest = tuple(value for name, value in board.cells[cell].items() if name != self.path)
            groups.setdefault(rest, []).append(cell)
        middle = (len(groups) - 1) / 2
        # The best is seldom at an end: from the middle on, hopeless cells are told as such sooner.
        for _, group in sorted(enumerate(groups.values()), key=lambda item: abs(item[0] - middle)):
            group = sorted(group, key=lambda c: board.cells[c].get(self.path, 0.0))
            for pairs in self._chunks(len(group)):
                yield from _Group(self, board, group, pairs, deadline).steps()
            self.found.clear()
            self.wholes.clear()
            self.seconds.clear()

    def _chunks(self, n_cells: int) -> Iterator[list[tuple[int, int]]]:
        """Pairs of classes whose problems are held at once."""
        chunk: list[tuple[int, int]] = []
        size, halves = 0, 1 if len(self.samples.classes) else 2
        for pair in self.samples.pairs:
            one = len(self.samples.chosen(pair)) * halves * n_cells * (len(self.task.folds) + 1) * _PER_VARIABLE
            if chunk and size + one > STATE_BYTES:
                yield chunk
                chunk, size = [], 0
            chunk.append(pair)
            size += one
        yield chunk

    # ---- problems ----------------------------------------------------------------------------------------------------

    def plan(self, machines: list[Any], cells: list[Params], wanted: set[Key], pairs: list[tuple[int, int]]) -> Plan:
        """That of the last group, if nothing but γ is another."""
        same = ([{**cell, "gamma": None} for cell in cells], wanted, pairs)
        if self._plan is None or self._plan[0] != same:
            self._plan = None  # its memory first
            self._plan = same, Plan(self, machines, [self._size(cell) for cell in cells], wanted, pairs)
        return self._plan[1]

    def _size(self, params: Params) -> float:
        value = float(params.get(self.path, 1.0))
        return value if np.isfinite(value) else 1e10

    def qp(self, machine: Any, fold: int, pair: tuple[int, int]) -> QP:
        if pair[1] < 0:
            chosen = self.samples.chosen(pair)
            return machine._qp(self.samples.target[chosen], self.sides[fold].weight[chosen], HERE)  # type: ignore[no-any-return]
        return machine._problem(self.both(fold, pair)).qp  # type: ignore[no-any-return]

    def both(self, fold: int, pair: tuple[int, int]) -> Pair:
        """Two classes as a fold has them, whatever the setting."""
        if (fold, pair) not in self._both:
            side, chosen, (i, j) = self.sides[fold], self.samples.chosen(pair), pair
            label = self.samples.label[chosen]
            y = np.where(label == (j if len(self.samples.classes) == 2 else i), 1.0, -1.0)
            # all that a QP asks it for
            setup: Any = SimpleNamespace(data=SimpleNamespace(factors=side.factors), over=HERE)
            self._both[fold, pair] = Pair(setup, pair, chosen, y, side.weight[chosen], side.factors[label])
        return self._both[fold, pair]

    def extra(self, fold: int, pair: tuple[int, int]) -> IntArray:
        """Samples of other classes that the fold's machine is judged by."""
        if (fold, pair) not in self._extra:
            test, in_pair = self.sides[fold].test, np.zeros(self.samples.n, bool)
            in_pair[self.samples.chosen(pair)] = True
            self._extra[fold, pair] = np.unique(test[~in_pair[test]])
        return self._extra[fold, pair]

    def layout(self, fold: int, pairs: tuple[tuple[int, int], ...]) -> Layout:
        """Of problems of a fold, whatever the setting."""
        if (fold, pairs) not in self._layouts:
            extra = [self.extra(fold, pair) for pair in pairs]
            self._layouts[fold, pairs] = Layout.of(self.samples, pairs, extra, self.sides[fold].test)
        return self._layouts[fold, pairs]

    # ---- scores ------------------------------------------------------------------------------------------------------

    def test_rows(self, fold: int) -> tuple[Any, Any]:
        if fold not in self._tests:
            rows = self.task.folds[fold]
            given = self.matrices.name == "precomputed"
            X = self.task.data.X[np.ix_(rows.test, rows.train)] if given else self.task.data.X[rows.test]
            self._tests[fold] = (X, self.task.y[rows.test])
        return self._tests[fold]

    def outcome(self, machine: Any, fold: int, parts: list[Judged], seconds: float) -> Outcome:
        """Of all pairs of one cell and fold."""
        side, task, begun = self.sides[fold], self.task, time.perf_counter()
        values = np.concatenate([part.values for part in parts]).T
        if len(side.present) == 2 < len(self.samples.classes):
            values = -values  # of two classes the second is the positive one
        X, y = self.test_rows(fold)
        classes = {"classes_": self.samples.classes[side.present]} if len(self.samples.classes) else {}
        train = task.folds[fold].train

        def make() -> Any:
            return machine.fit(task.data.X[train], task.y[train], sample_weight=task.data.weight[train])

        judge = known(machine, X, values, make, **classes)
        score = self.scoring(judge, X, y, task.weight(task.folds[fold].test))
        if self.decisions is not None:
            self.decisions[fold] = values
        used = np.zeros(self.samples.n, bool)
        for part in parts:
            used[part.used] = True
        return Outcome(
            score, "converged", sum(p.objective for p in parts), sum(p.gap for p in parts), int(used.sum()), seconds,
            time.perf_counter() - begun,
        )  # fmt: skip

    def again(self, params: Params, fold: int, deadline: Deadline) -> Outcome:
        """A fold of which the family was not sure: fitted from nothing by the machine itself."""
        if self.decisions is not None:
            machine, X = self._fits.fitted(params, fold, deadline)
            self.decisions[fold] = machine._decision_values(X, machine.intercept_)
            return Outcome(0.0, machine.status_)
        return self._fits.outcome(params, fold, deadline)


@dataclass(frozen=True)
class _Said:
    """What a family said of its problems after a run; a chain's are judged later."""

    stage: NDArray[np.int8]
    seconds: FloatArray
    judged: FloatArray | None


class _Group:
    """The cells of one γ, for some pairs of classes."""

    def __init__(
        self, engine: KernelFolds, board: Board, cells: list[int], pairs: list[tuple[int, int]], deadline: Deadline
    ) -> None:
        self.begun = time.perf_counter()
        self.engine, self.board, self.cells, self.deadline = engine, board, cells, deadline
        self.machines = [engine.single(board.cells[cell]) for cell in cells]
        wanted = {
            (k, fold)
            for k, cell in enumerate(cells) if board.wanted(cell)
            for fold in range(board.n_folds) if fold not in board.outcomes(cell)
        }  # fmt: skip
        self.plan = engine.plan(self.machines, [board.cells[cell] for cell in cells], wanted, pairs)
        self.ended: dict[int, Any] = {}  # a chain's solutions, which it does not keep, until they are taken
        self.collected: set[int] = set()
        self.dropped: set[int] = set()

    def steps(self) -> Steps:
        for (k, fold), reason in self.plan.failed.items():
            self.board.put(self.cells[k], fold, Outcome(float("nan"), f"failed: {reason}"))
        if not self.plan.problems:
            return
        keys, taken = self._order(), 0
        each = [np.arange(at.start, at.stop) for at in (self.plan.keys[key] for key in keys)]
        order, end = np.concatenate(each), np.cumsum([len(problems) for problems in each])
        family = self._family(order)
        ready = (time.perf_counter() - self.begun) / max(1, len(self.cells) * self.board.n_folds)
        try:
            with ahead(lambda: self._run(family), self.engine.matrices.fits and self.engine.threads > 1) as runs:
                while taken < len(keys):
                    said = next(runs)
                    # In their order, whenever they came: which cells are dropped depends on nothing but scores.
                    open_ = np.append(said.stage[order] < CONVERGED, True)
                    done = int(np.searchsorted(end, open_.argmax(), side="right"))
                    self._take(family, keys[taken:done], said, ready)
                    taken = done
                    self._drop(family)
                    yield turn_of(self.board)
        finally:
            self._keep_best(family)

    def _run(self, family: Any) -> _Said:
        left = self.deadline.left()
        family.run(SLICE if left is None else min(SLICE, left))
        stage = np.asarray(family.stage)
        self._collect(family, stage)
        numbers = np.asarray(family.judged).reshape(len(stage), -1) if self.engine.matrices.fits else None
        return _Said(stage, np.asarray(family.seconds), numbers)

    def _order(self) -> list[tuple[int, int]]:
        """Cell by cell; once there is a best one in rounds, the fold first that it was worst in: others will be, too."""
        best = self.board.best
        if best is None or not self.engine.matrices.fits:
            return list(self.plan.keys)
        outcomes = self.board.outcomes(best)
        return self.plan.rounds(sorted(range(self.board.n_folds), key=lambda fold: outcomes[fold].score))

    def _family(self, order: IntArray) -> Any:
        """On one matrix, or where it does not fit with rows that are computed again."""
        plan, engine, machine = self.plan, self.engine, self.machines[0]
        if not engine.matrices.fits:
            return chain(plan.problems, engine.samples, Setup(machine, engine.task.data), engine.loose)
        return _core.Family(
            gram=engine.matrices.gram(machine.gamma), state=plan.state, order=order, tol=machine.tol,
            max_steps=MOST_STEPS + 1000 * engine.samples.n, threads=min(engine.threads, len(plan.problems)),
        )  # fmt: skip

    # ---- solutions ---------------------------------------------------------------------------------------------------

    def _collect(self, family: Any, stage: NDArray[np.int8]) -> None:
        """A chain forgets solutions from which nothing more begins."""
        if self.engine.matrices.fits:
            return
        for p in np.flatnonzero((stage >= CONVERGED) & (stage != DROPPED)).tolist():
            if p not in self.collected:
                self.collected.add(p)
                self.ended[p] = family.solution(p), family.precision(p)

    def _take(self, family: Any, keys: list[tuple[int, int]], said: _Said, ready: float) -> None:
        """What was solved, of all pairs: on all rows it is kept, a fold is judged."""
        engine, stage = self.engine, said.stage
        for key in keys:
            (k, fold), at = key, self.plan.keys[key]
            cell, machine = self.cells[k], self.machines[k]
            if at.start == at.stop or (stage[at] == DROPPED).any() or (fold >= 0 and not self.board.wanted(cell)):
                continue
            engine.seconds[cell, fold] = engine.seconds.get((cell, fold), 0.0) + float(said.seconds[at].sum())
            if fold < 0:
                engine.wholes.setdefault(cell, []).extend(self._wholes(family, at))
                continue
            problems = self.plan.problems[at]
            qps = [problem.qp for problem in problems]
            tol: FloatArray | float = machine.tol
            if said.judged is not None:
                solution, numbers = family.solutions(at.start, at.stop), said.judged[at].copy()
            else:
                each = [self.ended.pop(p)[0] for p in range(at.start, at.stop)]
                beta, f, extra = (np.concatenate(some) for some in zip(*each))
                solution, tol = (beta, f, extra), family.tol[at]
                numbers = np.array([numbers_of(qp, mine[0], mine[1]) for qp, mine in zip(qps, each)])
            layout = engine.layout(fold, tuple(problem.pair for problem in problems))
            judged = judge(machine, qps, layout, solution, numbers, tol, engine.matrices)
            self._put(key, replace(judged, proven=judged.proven and bool((stage[at] == CONVERGED).all())), ready)

    def _wholes(self, family: Any, at: slice) -> Iterator[Whole]:
        problems = self.plan.problems[at]
        if self.engine.matrices.fits:
            ends = np.cumsum([problem.qp.n_variables for problem in problems])[:-1]
            yield from map(Whole, problems, np.split(family.solutions(at.start, at.stop)[0], ends))
            return
        for p, problem in enumerate(problems, at.start):
            (beta, f, _), precision = self.ended.pop(p)
            yield Whole(problem, beta, f, *precision)

    def _put(self, key: tuple[int, int], judged: Judged, ready: float) -> None:
        """Of some pairs of a fold: with the last of them the fold has its outcome."""
        engine, (k, fold) = self.engine, key
        cell = self.cells[k]
        parts = engine.found.setdefault((cell, fold), [])
        parts.append(judged)
        present = engine.sides[fold].present
        wanted = len(present) * (len(present) - 1) // 2 if len(engine.samples.classes) else 1
        if sum(len(part.values) for part in parts) < wanted or key in self.plan.failed:
            return
        whole = engine.seconds.get((cell, -1), 0.0) / self.board.n_folds
        if all(part.proven for part in parts):
            outcome = engine.outcome(self.machines[k], fold, parts, engine.seconds[cell, fold] + whole + ready)
        else:
            outcome = engine.again(self.board.cells[cell], fold, self.deadline)
        self.board.put(cell, fold, outcome)
        del engine.found[cell, fold]

    def _drop(self, family: Any) -> None:
        for cell in self.cells:
            if cell not in self.dropped and not self.board.wanted(cell):
                self.dropped.add(cell)
                for (k, fold), at in self.plan.keys.items():
                    for p in range(at.start, at.stop) if self.cells[k] == cell and fold >= 0 else ():
                        family.drop(p)

    def _keep_best(self, family: Any) -> None:
        """The solution on all rows of the best cell, from which it is fitted in the end."""
        best, engine = self.board.best, self.engine
        if best in self.cells:
            for whole in engine.wholes.get(best, []):
                qp = whole.problem.qp
                upper = np.maximum(qp.upper, np.finfo(float).tiny)
                shares = ((qp.sign * whole.beta + 0.0) / upper).reshape(-1, qp.n)
                chosen = engine.samples.chosen(whole.problem.pair)
                full = np.zeros((len(shares), engine.samples.n))
                full[:, chosen] = shares
                shares, f = np.array([engine.samples.by_row(half) for half in full]), None
                if whole.f is not None:
                    every = np.zeros(engine.samples.n)
                    every[chosen] = whole.f
                    f = engine.samples.by_row(every)
                engine.seeds.setdefault(best, {})[whole.problem.pair] = Begin(shares, f, whole.path, whole.dtype)
        for cell in [c for c in engine.seeds if c != best]:
            del engine.seeds[cell]
