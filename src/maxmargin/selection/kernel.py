"""The engine of the exact kernel machines: all C and all folds of one γ on one kernel matrix (docs/selection.md).

For each γ one matrix; on it, for each pair of classes, the problem on all rows for C₁ < C₂ < …, each from the last one's
solution, and for every C its folds, each from the solution on all rows (native/decomposition/family.hpp; where no matrix
fits, chain.py). Every solution is judged here in float64. What is not sure, or stalled, is fitted again by the machine
itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.decomposition.ending import Point, cancels, violations
from maxmargin.decomposition.options import DualResult
from maxmargin.decomposition.solver import MOST_STEPS
from maxmargin.decomposition.working_set import MB
from maxmargin.estimators._kernel import Begin, KernelMachine, Setup
from maxmargin.estimators._prediction import dense_if_small
from maxmargin.estimators.svc import Pair, Solution
from maxmargin.problem.formulations import QP, InfeasibleError, intercept_and_r
from maxmargin.problem.kernels import NATIVE
from maxmargin.problem.sums import HERE
from maxmargin.runtime import Deadline, thread_count
from maxmargin.selection.board import Board, Outcome
from maxmargin.selection.chain import CONVERGED, DROPPED, chain
from maxmargin.selection.fits import Fits, turn_of
from maxmargin.selection.grid import Params
from maxmargin.selection.matrices import Matrices, but_for_rounding
from maxmargin.selection.samples import Samples, Side
from maxmargin.selection.scoring import Scoring, known
from maxmargin.selection.search import Steps, Task

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SLICE = 0.03  # seconds between two looks at the clock, Ctrl-C and what is solved
STATE_BYTES = 100 * MB  # of the problems that are under way at once
_PER_VARIABLE = 48  # bytes of a problem's state


def can_share(machine: Any, task: Task) -> bool:
    """Whether this engine is for such a machine: a kernel that is no function, the usual inner solver, no limits."""
    if not isinstance(machine, KernelMachine) or callable(machine.kernel) or machine._objects is not None:
        return False
    usual = machine.inner_solver == "smo" and machine.working_set_size is None and machine.max_iter == -1
    weighted_nu = hasattr(machine, "nu") and getattr(machine, "class_weight", None) is not None
    return usual and not weighted_nu


@dataclass
class Problem:
    """A QP of the family: of cell and fold (−1: on all rows), for a pair of classes."""

    cell: int
    fold: int
    pair: tuple[int, int]
    qp: QP
    both: Pair | None  # the two classes; None: regression
    parent: int = -1
    like: int = -1
    unlike: int = -1
    ratio: float = 1.0
    extra: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Judged:
    """A solution, whether it is proven, and the decision values of the samples that it is judged by."""

    problem: Problem
    proven: bool
    objective: float
    gap: float
    alpha: FloatArray
    values: FloatArray  # of test samples
    f: FloatArray | None = None  # on all rows, by a chain: with what it has gone through and its precision
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
        self._fits = Fits(task, single, scoring)
        self.seeds: dict[int, dict[tuple[int, int], Begin]] = {}  # of the best cell
        self.found: dict[tuple[int, int], list[Judged]] = {}  # by cell and fold
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

    def qp(self, machine: Any, side: Side, pair: tuple[int, int]) -> tuple[QP, Pair | None]:
        chosen = self.samples.chosen(pair)
        weight = side.weight[chosen]
        if pair[1] < 0:
            return machine._qp(self.samples.target[chosen], weight, HERE), None
        i, j = pair
        label = self.samples.label[chosen]
        y = np.where(label == (j if len(self.samples.classes) == 2 else i), 1.0, -1.0)
        # all that a QP asks it for
        setup: Any = SimpleNamespace(data=SimpleNamespace(factors=side.factors), over=HERE)
        both = Pair(setup, pair, chosen, y, weight, side.factors[label])
        return machine._problem(both).qp, both

    def judge(
        self, machine: Any, problem: Problem, solution: tuple[FloatArray, ...], converged: bool, tol: float
    ) -> Judged:
        beta, f, extra = solution
        qp, samples, side = problem.qp, self.samples, self.sides[problem.fold]
        coef = beta.reshape(-1, qp.n).sum(axis=0)
        with np.errstate(all="ignore"):  # what is not a finite number is not proven
            point, moved = Point.of(qp, beta.reshape(-1, qp.n), f), 0.0
            if point.missed()[0]:  # by the rounding of many steps: restored, and what that does to f counts as its error
                mended = qp.sign * qp.repaired(point.alpha)
                moved = float(np.abs(mended - beta).sum())
                beta, coef = mended, mended.reshape(-1, qp.n).sum(axis=0)
                point = Point.of(qp, beta.reshape(-1, qp.n), f)
            multipliers = point.multipliers()
            gap = float(point.gap(multipliers)[0])
            dual = float(qp.center @ beta - 0.5 * coef @ f)
            violation = float(violations(len(qp.targets), point.extremes())[0])
            error = self._error(machine, coef)
            good = violation <= tol and self._sure(machine, error, moved) and not point.missed()[0]
            doubt = 2 * error * float(np.abs(coef).sum())  # of ½ βᵀKβ, and of the losses, whose samples have all of their β
        values = np.empty(0)
        if problem.fold >= 0:
            everywhere = np.full(samples.n, np.nan)
            everywhere[samples.chosen(problem.pair)] = f
            everywhere[problem.extra] = extra
            result = DualResult(multipliers=multipliers[0])
            found: Solution | None = machine._solution(problem.both, result) if problem.both else None
            scale = found.scale if found else 1.0
            values = (but_for_rounding(everywhere[side.test], f) + intercept_and_r(multipliers[0])[0]) / scale
        proven = converged and good and bool(np.isfinite([gap, dual]).all())
        return Judged(problem, proven, dual + gap + doubt, gap + 2 * doubt, point.alpha, values)

    def _error(self, machine: Any, coef: FloatArray) -> float:
        """Of f, by kernel values in fixed point; a chain's runs have values of their own, and have judged them."""
        if not self.matrices.fits:
            return 0.0
        m = self.matrices.magnitude(machine.gamma)
        return self.matrices.noise(machine.gamma) * m * m * float(np.sqrt(np.square(coef).sum()))

    def _sure(self, machine: Any, error: float, moved: float) -> bool:
        """Whether kernel values are fine enough to tell; of a chain's runs, of β as they left it."""
        if not self.matrices.fits:
            return moved == 0
        m = self.matrices.magnitude(machine.gamma)
        return bool(cancels(error, machine.tol)) and 2 * m * m * moved <= 1e-6 * machine.tol

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
        values = np.column_stack([part.values for part in parts])
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
            alpha = part.alpha.reshape(-1, part.problem.qp.n)
            used[self.samples.chosen(part.problem.pair)[(alpha != 0).any(axis=0)]] = True
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


class _Group:
    """The cells of one γ, for some pairs of classes."""

    def __init__(
        self, engine: KernelFolds, board: Board, cells: list[int], pairs: list[tuple[int, int]], deadline: Deadline
    ) -> None:
        self.engine, self.board, self.cells, self.pairs, self.deadline = engine, board, cells, pairs, deadline
        self.machines = {cell: engine.single(board.cells[cell]) for cell in cells}
        self.problems: list[Problem] = []
        self.failed: dict[tuple[int, int], str] = {}
        self.at: dict[tuple[int, int, tuple[int, int]], int] = {}
        self.dropped: set[int] = set()

    def steps(self) -> Steps:
        begun = time.perf_counter()
        self._build()
        family = self._family()
        ready = (time.perf_counter() - begun) / max(1, len(self.cells) * self.board.n_folds)
        for (cell, fold), reason in self.failed.items():
            self.board.put(cell, fold, Outcome(float("nan"), f"failed: {reason}"))
        collected = np.zeros(len(self.problems), bool)
        try:
            while not collected.all():
                left = self.deadline.left()
                family.run(SLICE if left is None else min(SLICE, left))
                stage = np.asarray(family.stage)
                for p in np.flatnonzero((stage >= CONVERGED) & ~collected):
                    collected[p] = True
                    if stage[p] != DROPPED:
                        self._take(family, int(p), bool(stage[p] == CONVERGED), ready)
                self._drop(family)
                yield turn_of(self.board)
        finally:
            self._keep_best(family)

    # ---- problems ----------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        before: int | None = None
        for cell in self.cells:
            for pair in self.pairs:
                self._add(cell, -1, pair, before)
            for fold in range(self.board.n_folds):
                if not self.board.wanted(cell) or fold in self.board.outcomes(cell):
                    continue
                for pair in self.pairs:
                    self._add(cell, fold, pair, before)
            before = cell

    def _add(self, cell: int, fold: int, pair: tuple[int, int], before: int | None) -> None:
        engine, side = self.engine, self.engine.sides[fold]
        if pair[1] >= 0:
            if len(side.present) < 2:
                self.failed[cell, fold] = "the fold has rows of one class only"
            if not set(pair) <= set(side.present.tolist()):
                return
        try:
            qp, both = engine.qp(self.machines[cell], side, pair)
        except InfeasibleError as error:
            if fold >= 0:
                self.failed[cell, fold] = str(error)
            return
        value = self.board.cells
        step = 1.0 if before is None else self._size(value[cell]) / self._size(value[before])
        whole = self.at.get((cell, -1, pair), -1)
        then = {f: -1 if before is None else self.at.get((before, f, pair), -1) for f in (-1, fold)}
        if fold < 0:
            problem = Problem(cell, fold, pair, qp, both, parent=then[-1], ratio=step)
        else:
            in_pair = np.zeros(engine.samples.n, bool)
            in_pair[engine.samples.chosen(pair)] = True
            extra = np.unique(side.test[~in_pair[side.test]])
            like, unlike = (then[fold], then[-1]) if whole >= 0 and min(then.values()) >= 0 else (-1, -1)
            problem = Problem(cell, fold, pair, qp, both, whole, like, unlike, extra=extra)
        self.at[cell, fold, pair] = len(self.problems)
        self.problems.append(problem)

    def _size(self, params: Params) -> float:
        value = float(params.get(self.engine.path, 1.0))
        return value if np.isfinite(value) else 1e10

    def _family(self) -> Any:
        """On one matrix, or where it does not fit with rows that are computed again."""
        problems, samples, machine = self.problems, self.engine.samples, self.machines[self.cells[0]]
        if not self.engine.matrices.fits:
            return chain(problems, samples, Setup(machine, self.engine.task.data), self.engine.loose)
        qps = [p.qp for p in problems]
        signed = np.concatenate([qp.sign * qp.upper for qp in qps] or [np.empty(0)])
        return _core.Family(
            gram=self.engine.matrices.gram(machine.gamma),
            range=np.array([samples.ranges(p.pair) for p in problems], np.int64).ravel(),
            at=np.cumsum([0, *(qp.n for qp in qps)]),
            parent=np.array([p.parent for p in problems], np.int64),
            like=np.array([p.like for p in problems], np.int64),
            unlike=np.array([p.unlike for p in problems], np.int64),
            ratio=np.array([p.ratio for p in problems]),
            center=np.concatenate([qp.center for qp in qps]),
            lo=np.minimum(signed, 0.0),
            hi=np.maximum(signed, 0.0),
            beta=np.concatenate([qp.sign * qp.start() for qp in qps]),
            target=np.concatenate([qp.targets for qp in qps]),
            group=np.concatenate([qp.group for qp in qps]),
            extra_at=np.cumsum([0, *(len(p.extra) for p in problems)]),
            extra=np.concatenate([p.extra for p in problems]),
            groups=len(qps[0].targets),
            halves=qps[0].n_variables // qps[0].n,
            tol=machine.tol,
            max_steps=MOST_STEPS + 1000 * samples.n,
            threads=min(self.engine.threads, len(problems)),
        )

    # ---- solutions ---------------------------------------------------------------------------------------------------

    def _take(self, family: Any, p: int, converged: bool, ready: float) -> None:
        problem, engine = self.problems[p], self.engine
        machine = self.machines[problem.cell]
        tol = machine.tol if engine.matrices.fits else float(family.tol[p])
        solution = family.solution(p)
        judged = engine.judge(machine, problem, solution, converged, tol)
        if problem.fold < 0 and not engine.matrices.fits:
            path, dtype = family.precision(p)
            judged = replace(judged, f=solution[1], path=path, dtype=dtype)
        key = problem.cell, problem.fold
        parts = engine.found.setdefault(key, [])
        parts.append(judged)
        engine.seconds[key] = engine.seconds.get(key, 0.0) + float(family.seconds[p])
        present = engine.sides[problem.fold].present
        wanted = max(1, len(present) * (len(present) - 1) // 2) if problem.pair[1] >= 0 else 1
        if problem.fold < 0 or len(parts) < wanted or key in self.failed:
            return
        parts.sort(key=lambda part: part.problem.pair)
        whole = engine.seconds.get((problem.cell, -1), 0.0) / self.board.n_folds
        if all(part.proven for part in parts):
            outcome = engine.outcome(machine, problem.fold, parts, engine.seconds[key] + whole + ready)
        else:
            outcome = engine.again(self.board.cells[problem.cell], problem.fold, self.deadline)
        self.board.put(problem.cell, problem.fold, outcome)
        del engine.found[key]

    def _drop(self, family: Any) -> None:
        for cell in self.cells:
            if cell not in self.dropped and not self.board.wanted(cell):
                self.dropped.add(cell)
                for p, problem in enumerate(self.problems):
                    if problem.cell == cell and problem.fold >= 0:
                        family.drop(p)

    def _keep_best(self, family: Any) -> None:
        """The solution on all rows of the best cell, from which it is fitted in the end."""
        best, engine = self.board.best, self.engine
        if best in self.cells:
            for judged in engine.found.get((best, -1), []):
                upper = np.maximum(judged.problem.qp.upper, np.finfo(float).tiny)
                shares = (judged.alpha / upper).reshape(-1, judged.problem.qp.n)
                chosen = engine.samples.chosen(judged.problem.pair)
                full = np.zeros((len(shares), engine.samples.n))
                full[:, chosen] = shares
                shares, f = np.array([engine.samples.by_row(half) for half in full]), None
                if judged.f is not None:
                    every = np.zeros(engine.samples.n)
                    every[chosen] = judged.f
                    f = engine.samples.by_row(every)
                engine.seeds.setdefault(best, {})[judged.problem.pair] = Begin(shares, f, judged.path, judged.dtype)
        for cell in [c for c in engine.seeds if c != best]:
            del engine.seeds[cell]
