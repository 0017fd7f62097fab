"""Divide and conquer on the one QP (DC-SVM paper, Algorithm 1), several problems on the same samples at once.

    minimise  f(a) = ½ aᵀQa + pᵀa    0 ≤ a ≤ upper    (and, with an intercept, Σ s a = 0)      see problem/formulations.py

    for level l = l_max, …, stop_level (or 1):
        cluster the samples into k^l clusters: two-step kernel k-means on m points, sampled from everything at l_max and
        from the support vectors of the level below after that (adaptive clustering)
        solve each cluster's QP from the solution of the level below; concatenated they are the level's solution, and
        the optimum of f with K replaced by 0 between clusters (Lemma 1)                      level.py
    stop_level = 0 only:
        refine: solve the QP of level 1's support vectors, from level 1                       whole.py
        solve the whole QP from there

    A run that would stop at a level looks at some samples first: where few of them are support vectors, the whole problem is
    solved in less time than a level, and is solved instead.

    stop     as decomposition/solver.py, per QP, to the same tolerance at all levels: the last digits are cheap in small
             clusters and dear in the whole problem
    cost     level l: n·m kernel values for the clusters, about n·|S|/k^l for the warm starts, and the QPs themselves;
             the final solve n·|S| for f, of which refine has done the part on S

Stopped on the way, the model is that of the last level finished. Before the first is, it is what its clusters reached:
those not begun stay at alpha = 0, which the reported gap and violation tell, and predict by a constant. Once the whole
problem's gradient is known, its own state is the model (whole.py says why not before).

What a level solves is not the whole problem: its kernel is 0 between clusters. So the objective, gap and violation that
a run reports are NaN until they are known of the whole problem, and a level's own stand beside them.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.options import DualResult, Options
from maxmargin.divide.bound import theorem_1
from maxmargin.divide.clustering import Partition, clustering_kernel, partition
from maxmargin.divide.level import Level
from maxmargin.divide.model import STAGES, TABLE, Certificate, DivideResult, Kept, LevelModel, Plan, Problem, support
from maxmargin.divide.subproblem import Solving, one_class, restricted
from maxmargin.divide.whole import Row, Rows, Whole
from maxmargin.kernel_values import KernelData
from maxmargin.runtime import Status, Turn, drained

IntArray = NDArray[np.int64]
Alphas = Sequence[NDArray[np.float64]]
Turns = Generator[Turn | None, None, Status | None]

HEARTBEAT = 0.25  # seconds after which a safe point becomes a turn: progress and callbacks a few times per second
# Easy is a problem with at most this share of support vectors among so many of its samples: the whole of it is then solved
# in less time than a level. (CPU time of a level to that of the whole at 30,000 to 50,000 rows: 4.7 and 2.3 at shares of 5
# and 12 %, 0.7 at 18 %, 0.6 at 23 %, 0.2 at 97 %.) The look takes milliseconds; of fewer samples there is little to gain.
LOOKED_AT, EASY, WORTH_A_LOOK = 1000, 0.15, 10_000
ROWS_PER_LEVEL = 100  # turns that report solved subproblems: many classes in many clusters have thousands of them


class DivideAndConquer:
    """One run of Algorithm 1; driven by runtime.run. A turn is some progress; `table` has the stages that were finished."""

    whole_type: type[Whole] = Whole

    def __init__(
        self, problems: Sequence[Problem], data: KernelData, options: Options, plan: Plan, given: Partition | None = None
    ) -> None:
        """`given`: the clusters of the lowest level, where they are known."""
        self.problems, self.data, self.options, self.plan, self.given = list(problems), data, options, plan, given
        self.n = len(data.rows)
        self.model: LevelModel | None = None  # of the last level finished
        self.bound = np.nan  # of that level
        self.level: Level | None = None  # the one under way
        self.whole: Whole | None = None
        self.everyone = np.arange(self.n) if plan.order is None else plan.order
        self.population = self.everyone  # what the level's clusters are sampled from
        self.origin = self.population  # the same of the last level finished
        self.behind = plan.kept  # what an earlier run had reached, until this one is there
        self.stage, self.at = "clustering", plan.levels  # where the run is
        self.seen: tuple[int, Row] | None = None  # the last report of a solver in refine or whole, and its problem
        self.took: dict[str, float] = {}  # seconds of the last stage of each kind
        self.table: list[tuple[Any, ...]] = []
        self.samples_used: list[IntArray] = []
        self.timings = {"clustering": 0.0, "solving": 0.0, "refine": 0.0, "whole": 0.0}
        self.iterations = np.zeros(len(self.problems), np.int64)
        self.place = np.full((len(self.problems), self.n), -1, np.int64)  # sample → its place in each problem
        for p, problem in enumerate(self.problems):
            self.place[p, problem.chosen] = np.arange(len(problem.chosen))

    # ---- the stages ----------------------------------------------------------------------------------------------

    def turns(self) -> Turns:
        last = -np.inf
        with closing(self._stages()) as stages:
            while True:
                try:
                    turn = next(stages)
                except StopIteration as end:
                    status: Status | None = end.value
                    return status
                now = time.perf_counter()
                if turn is None and now - last >= HEARTBEAT:
                    turn = self._turn()
                last = last if turn is None else now
                yield turn

    def _stages(self) -> Turns:
        kept = self.plan.kept
        if (kept is None or not kept.level) and (yield from self._easy()):
            self.plan = replace(self.plan, levels=0, stop_level=0)
        top = self.plan.levels
        if kept is not None and kept.level:
            top = kept.level - 1
            status = yield from self._solve_again(kept)
            if status is not None:
                return status
        for level in range(top, max(self.plan.stop_level, 1) - 1, -1):
            begun = kept.begun if kept is not None and kept.stage == "level" and level == top else None
            below = None if self.model is None else self.model.alphas
            status = yield from self._solve_level(level, self._next_population(), begun or below)
            if status is not None:
                return status
        return None if self.plan.stop_level > 0 else (yield from self._conquer())

    def _solve_again(self, kept: Kept) -> Turns:
        """The last level that an earlier run finished, from where its clusters ended: what is left is to certify them."""
        rows = [tuple(row) for row in kept.table]
        at = next(i for i, row in enumerate(rows) if row[0] == "level" and row[1] == kept.level)
        self.table = rows[:at]
        status = yield from self._solve_level(kept.level, self._in_order(kept.population), kept.finished)
        if status is None:
            self.table[-1] = (*self.table[-1][:-2], *rows[at][-2:])  # the seconds that it took then
            self.table += rows[at + 1 :]
            self.behind = None if kept.stage == "" else kept
        return status

    def _solve_level(self, level: int, population: IntArray, begin: Alphas | None) -> Turns:
        """Cluster and solve; why it was cut short, or None when it is finished and the model."""
        self.stage, self.at, self.level, self.population = "clustering", level, None, population
        yield self._turn()
        with self._clock("clustering"):
            division = yield from self._cluster(level)
        self.stage = "level"
        self.level = Level(level, division, self.problems, self.place, self.data, self.options, self.plan, begin)
        if self.behind is not None and begin is self.behind.begun:
            self.behind = None
        with self._clock("solving"):
            yield from self._watched(self.level)
        if not self.level.finished:
            return self.level.cut_short
        self._finish(self.level)
        yield self._turn()
        return None

    def _easy(self) -> Generator[None, None, bool]:
        """Whether a look was asked for and is worth it, and the problems of some samples have few support vectors."""
        if not (self.plan.look and self.data.at_hand and self.n >= WORTH_A_LOOK):
            return False
        rng = np.random.default_rng([self.plan.seed, LOOKED_AT])
        some = np.sort(rng.choice(self.everyone, LOOKED_AT, replace=False))
        found = size = 0
        for place, problem in zip(self.place, self.problems):
            mine = place[some]
            mine = mine[mine >= 0]
            if len(mine) < 2 or one_class(problem.qp, mine):
                continue
            solving = Solving(restricted(problem.qp, mine), self.data, problem.chosen[mine], self.options)
            result = yield from _silent(solving.steps(deadline=self.plan.deadline))
            found, size = found + result.n_support, size + len(mine)
        return found <= EASY * size

    def _conquer(self) -> Turns:
        """Refine, where there are levels, and the whole problem."""
        whole, self.at = self.whole_type(self.problems, self.data, self.options, self.plan, self.model), 0
        self.whole, kept, self.behind = whole, self.plan.kept, None
        later = kept is not None and kept.stage == "whole"
        if kept is not None and later:
            whole.go_on(kept.begun)
        if self.model is not None and not later:
            self.stage = "refine"
            largest = max(len(whole.support(p)) for p in range(len(self.problems)))
            with self._clock("refine"):
                yield from self._reported(whole.refine(kept.begun if kept and kept.stage == "refine" else None))
            if whole.cut_short is not None:
                return whole.cut_short
            self._add_row(0, 1, largest, whole.alphas, Certificate.of(whole.refined), np.nan)
        self.stage, self.seen = "whole", None
        with self._clock("whole"):
            yield from whole.begin()
            yield self._turn()
            yield from self._reported(whole.solve())
        self.seen = None
        if whole.cut_short is None:
            model = whole.model()
            bound = 0.0 if model.certificate.status is Status.CONVERGED else np.nan
            self._add_row(0, 1, self.n, model.alphas, model.certificate, bound)
        yield self._turn()
        return whole.cut_short

    def _next_population(self) -> IntArray:
        """Where the sample for the next clustering comes from: adaptive clustering asks for support vectors."""
        if self.model is not None and self.plan.adaptive:
            some = np.flatnonzero(support(self.problems, self.model.alphas, self.n))
            if len(some):
                return self._in_order(some)
        return self.everyone

    def _in_order(self, some: IntArray) -> IntArray:
        """Some samples, in the order of everyone."""
        chosen = np.zeros(self.n, bool)
        chosen[some] = True
        return self.everyone[chosen[self.everyone]]

    def _cluster(self, level: int) -> Generator[None, None, Partition]:
        if self.given is not None and level == self.plan.levels:
            self.samples_used.append(self.given.sample)
            return self.given
        data, own, population = self.data, self.data.source(), self.population
        rng = np.random.default_rng([self.plan.seed, level])
        spread = population[:: max(1, len(population) // 1000)]
        kernel = clustering_kernel(data.kernel, data.X, data.rows[spread], rng)
        source = own
        if kernel != data.kernel:
            source = data.with_kernel(kernel).source()
        clusters = min(self.plan.k**level, self.n)
        division = yield from partition(source, own, population, clusters, self.plan.sample_size, rng, self.everyone)
        self.samples_used.append(division.sample)
        return division

    def _watched(self, level: Level) -> Generator[Turn | None, None, None]:
        """Solve a level, with a turn whenever some more of its subproblems are done."""
        reported, step = 0, -(-len(level.tasks) // ROWS_PER_LEVEL)
        with closing(level.solve()) as steps:
            for _ in steps:
                news = len(level.pieces) - reported >= step
                reported = len(level.pieces) if news else reported
                yield self._turn() if news else None

    def _reported(self, rows: Rows) -> Generator[Turn | None, None, None]:
        with closing(rows):
            for row in rows:
                self.seen = row or self.seen
                yield None if row is None else self._turn()

    def _finish(self, level: Level) -> None:
        """A finished level is the model."""
        self.model, self.origin = level.model(), self.population
        self.iterations += level.iterations()
        division = level.division
        self.bound = theorem_1(self.data.source(), division, self.problems, self.place, self.population)
        largest = int(np.bincount(division.label).max())
        self._add_row(level.level, division.n_clusters, largest, self.model.alphas, self.model.certificate, self.bound)

    # ---- the report ----------------------------------------------------------------------------------------------

    @contextmanager
    def _clock(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:  # a run that is stopped comes by here, too
            self.took[name] = time.perf_counter() - start
            self.timings[name] += self.took[name]

    def _add_row(self, level: int, clusters: int, largest: int, alphas: Alphas, known: Certificate, bound: float) -> None:
        """The stage that was just finished, for the table."""
        count = self._count(alphas)
        divided = self.stage == "level"
        times = self.took["clustering"] if divided else 0.0, self.took["solving" if divided else self.stage]
        self.table.append((self.stage, level, clusters, largest, count, known.objective, known.gap, bound, *times))

    def _turn(self) -> Turn:
        """Where the run is, and what is known of the whole problem: from refine on what its solver says."""
        objective, dual, violation, count, problem = np.nan, np.nan, np.nan, -1, -1
        if self.seen is not None:
            problem, row = self.seen
            dual, count = row["dual"], int(row["n_support"])
            violation = row["violation"] if self.stage == "whole" else np.nan  # refine sees some of the samples only
        elif self.whole is not None and self.whole.begun:
            known = Certificate.of(self.whole.solutions)
            objective, dual, violation = known.objective, known.objective - known.gap, known.violation
            count = self._count([solution.alpha for solution in self.whole.solutions])
        elif self.model is not None:
            count = self._count(self.model.alphas)
        extra = {"stage": float(STAGES.index(self.stage)), "level": float(self.at), **self._progress()}
        if len(self.problems) > 1:
            extra["problem"] = float(problem)
        return Turn(objective, dual, violation, count, extra | _of_level(self.model, self.bound))

    def _progress(self) -> dict[str, float]:
        """How far the stage is: subproblems, and how many of them are solved."""
        if self.stage in ("refine", "whole") and self.whole is not None:
            return {"clusters": 1.0, "subproblems": float(len(self.problems)), "solved": float(self.whole.solved)}
        if self.level is None:
            return {"clusters": np.nan, "subproblems": np.nan, "solved": np.nan}
        sizes = self.level.division.n_clusters, len(self.level.tasks), len(self.level.pieces)
        return dict(zip(("clusters", "subproblems", "solved"), map(float, sizes)))

    def _count(self, alphas: Alphas) -> int:
        return int(np.count_nonzero(support(self.problems, alphas, self.n)))

    def snapshot(self) -> Kept:
        """The last level finished, and how far the stage after it is."""
        if self.behind is not None:
            return self.behind
        stage, begun, at = "", [], self.model.level if self.model is not None else 0
        if self.whole is not None:
            stage, begun = self.stage, self.whole.snapshot()
        elif self.level is not None and self.level.level != at:
            stage, begun = "level", self.level.snapshot()
        finished = list(self.model.alphas) if self.model is not None else []
        rows = [row for row in self.table if row[0] != "whole"]  # which is not finished when somebody goes on with it
        return Kept(self.plan.seed, np.array(rows, TABLE), at, self.origin, finished, stage, begun)

    # ---- the end -------------------------------------------------------------------------------------------------

    def result(self, status: Status) -> DivideResult:
        """The best level finished; the whole problem's state from the moment that it is known how good that is."""
        model, bound = self._model(status)
        extra = {"level": float(model.level), **_of_level(model, bound)}
        if len(self.problems) > 1:
            extra["problem"] = -1.0
        known, whole = model.certificate, (np.nan, np.nan, np.nan)
        if model.undivided:
            whole = known.objective, known.gap, known.violation
        asked = self.plan.stop_level == model.level and (model.level == 0 or self.model is model)
        if asked and not status.by_user:
            natural = Status.EARLY if model.level and known.status is Status.CONVERGED else known.status
            status = natural if natural.done or status is Status.CONVERGED else status
        return DivideResult(
            status,
            objective=whole[0],
            gap=whole[1],
            violation=whole[2],
            n_support=self._count(model.alphas),
            timings=dict(self.timings),
            extra=extra,
            model=model,
            levels=np.array(self.table, TABLE),
            iterations=np.maximum(self.iterations, 1),  # clusters of one class take no turn at all
            samples=self.samples_used,
        )

    def _model(self, status: Status) -> tuple[LevelModel, float]:
        """What to hand over, and the bound on its distance from the optimum."""
        if self.whole is not None and self.whole.begun:
            self.whole.stop(status)
            self.iterations += self.whole.iterations
            model = self.whole.model()
            return model, 0.0 if model.certificate.status is Status.CONVERGED else np.nan
        level = self.level
        if level is not None and level.finished and (self.model is None or self.model.level != level.level):
            self._finish(level)  # stopped right after its last subproblem
        if self.model is not None:
            return self.model, self.bound
        if level is not None:  # stopped in the first level
            level.complete(status)
            self.iterations += level.iterations()
            return level.model(), np.nan
        nothing = self.whole_type(self.problems, self.data, self.options, self.plan, None)  # stopped while clustering
        drained(nothing.begin())
        return replace(nothing.model(), level=self.plan.levels), np.nan


def _silent(steps: Generator[Row | None, None, DualResult]) -> Generator[None, None, DualResult]:
    """Safe points without reports."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: DualResult = end.value
            return result
        yield None


def _of_level(model: LevelModel | None, bound: float) -> dict[str, float]:
    """A model's own certificate, which is of the kernel without what lies between clusters."""
    known = (np.nan, np.nan) if model is None else (model.certificate.objective, model.certificate.gap)
    return {"level_objective": known[0], "level_gap": known[1], "bound": bound}
