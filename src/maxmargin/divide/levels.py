"""Divide and conquer on the one QP (seed 000, Algorithm 1), several problems on the same samples at once.

    minimise  f(a) = ½ aᵀQa + pᵀa    0 ≤ a ≤ upper    (and, with an intercept, Σ s a = 0)      see problem/formulations.py

    for level l = l_max, …, stop_level (or 1):
        cluster the samples into k^l clusters: two-step kernel k-means on m points, sampled from everything at l_max and
        from the support vectors of the level below after that (adaptive clustering)
        solve each cluster's QP from the solution of the level below; concatenated they are the level's solution, and
        the optimum of f with K replaced by 0 between clusters (Lemma 1)
    stop_level = 0 only:
        refine: solve the QP of level 1's support vectors, from level 1
        solve the whole QP from there

    stop     as decomposition/solver.py, per QP, to the same tolerance at all levels: the last digits are cheap in small
             clusters and dear in the whole problem (ten times looser levels made covtype's refine ten times slower)
    cost     level l: n·m kernel values for the clusters, about n·|S|/k^l for the warm starts, and the QPs themselves;
             the final solve n·|S| for f, of which refine has done the part on S

With an intercept a cluster's start may miss its equality by what moved to other clusters; it is repaired. There a
cluster of one class has the optimum alpha = 0 and needs no QP; without an intercept it is a QP like any other.
Subproblems run side by side, largest first; one that is larger than an equal share of the work gets all threads instead.

Stopped on the way, the model is that of the last level finished. Before the first is, it is what its clusters reached:
those not begun stay at alpha = 0, which the reported gap and violation tell, and predict by a constant.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.solver import Decomposition, DualResult, Options, solve
from maxmargin.divide.bound import theorem_1
from maxmargin.divide.clustering import Partition, clustering_kernel, partition
from maxmargin.divide.model import TABLE, DivideResult, LevelModel, Plan, Problem, best_constant
from maxmargin.divide.progress import progress_bar
from maxmargin.divide.subproblem import (
    KernelData,
    Subproblem,
    at_zero,
    dual_value,
    one_class,
    restricted,
    solve_subproblem,
    variables,
    worst_violation,
)
from maxmargin.problem.formulations import QP, coefficients, intercept_and_r
from maxmargin.runtime import NEVER, Control, Deadline, Status, Turn

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Steps = Generator[None, None, DualResult]

# Of cache_size, for each subproblem. The cache decides the order of sums, and so the last digits: for the same model with
# any n_jobs it must not depend on it. Two subproblems at a time take all of it, more take more.
_CACHE_SHARE = 0.5


class DivideAndConquer:
    """One run of Algorithm 1; driven by runtime.run. A turn is a level."""

    def __init__(self, problems: Sequence[Problem], data: KernelData, options: Options, plan: Plan) -> None:
        self.problems, self.data, self.options, self.plan = list(problems), data, options, plan
        self.n = len(data.rows)
        self.model: LevelModel | None = None
        self.pieces: list[tuple[int, int, IntArray, DualResult]] = []
        self.solutions: list[DualResult] = []
        self.duals: list[float] = []
        self.tasks: list[Subproblem] = []  # of the level under way
        self.running: Decomposition | None = None
        self.task: Subproblem | None = None  # whose solver is running
        self.whole: int | None = None  # the problem that is being solved in full
        self.division: Partition | None = None
        self.table: list[tuple[Any, ...]] = []
        self.samples_used: list[IntArray] = []
        self.timings = {"clustering": 0.0, "solving": 0.0, "refine": 0.0, "whole": 0.0}
        self.iterations = np.zeros(len(self.problems), np.int64)
        self.place = np.full((len(self.problems), self.n), -1, np.int64)  # sample → its place in each problem
        for p, problem in enumerate(self.problems):
            self.place[p, problem.chosen] = np.arange(len(problem.chosen))

    # ---- the levels ----------------------------------------------------------------------------------------------

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        for level in range(self.plan.levels, max(self.plan.stop_level, 1) - 1, -1):
            start = time.perf_counter()
            population = self._population()
            division = yield from self._cluster(population, level)
            self.division, self.pieces = division, []
            clustered = time.perf_counter()
            self.timings["clustering"] += clustered - start
            yield from self._solve_clusters(division, level)
            solved = time.perf_counter()
            self.timings["solving"] += solved - clustered
            if self._worst() is Status.MAX_TIME:
                return Status.MAX_TIME
            self._finish_level(level, division)
            times = clustered - start, solved - clustered
            largest = int(np.bincount(division.label).max())
            bound = theorem_1(self.data.source(), division, self.problems, self.place, population)
            yield self._row("level", level, division.n_clusters, largest, bound, times)
        if self.plan.stop_level > 0:
            return self._worst()
        if self.plan.levels > 0:
            yield from self._refine()
        yield from self._whole()
        return next((r.status for r in self.solutions if r.status is not Status.CONVERGED), None)

    def _population(self) -> IntArray:
        """Where the sample for the next clustering comes from: adaptive clustering asks for support vectors."""
        if self.model is not None and self.plan.adaptive:
            support = np.flatnonzero(self._is_support())
            if len(support):
                return support
        return np.arange(self.n)

    def _is_support(self) -> NDArray[np.bool_]:
        out = np.zeros(self.n, bool)
        if self.model is not None:
            for problem, alpha in zip(self.problems, self.model.alphas):
                out[problem.chosen[alpha.reshape(-1, problem.qp.n).any(axis=0)]] = True
        return out

    def _cluster(self, population: IntArray, level: int) -> Generator[None, None, Partition]:
        data, own = self.data, self.data.source()
        spread = population[:: max(1, len(population) // 1000)]
        kernel = clustering_kernel(data.kernel, data.X, data.rows[spread])
        source = own
        if kernel != data.kernel:
            source = KernelData(data.X, kernel, data.rows, data.dtype, data.threads).source()
        rng = np.random.default_rng([self.plan.seed, level])
        clusters = min(self.plan.k**level, self.n)
        division = yield from partition(source, own, population, clusters, self.plan.sample_size, rng)
        self.samples_used.append(division.sample)
        return division

    # ---- the clusters of a level ---------------------------------------------------------------------------------

    def _solve_clusters(self, division: Partition, level: int) -> Generator[None, None, None]:
        """All subproblems of a level into self.pieces: giants one by one with all threads, then the rest in parallel."""
        jobs, shared = _jobs(self.options.threads)
        options = replace(self.options, threads=1, cache_size=_CACHE_SHARE * self.options.cache_size)
        stop = threading.Event()
        tasks = self.tasks = self._tasks(division, options, stop)
        work = np.array([float(task.size) ** 2 for task in tasks])
        giants = int(np.count_nonzero(work > work.sum() / jobs)) if shared and jobs > 1 else 0
        giants = len(tasks) if jobs == 1 and shared else giants
        with progress_bar(self.plan.verbose, f"level {level}", len(tasks), "cluster") as done:
            for task in tasks[:giants]:
                self.task, task.options = task, replace(options, threads=self.options.threads)
                result = yield from self._inline(task.qp, task.ids, task.options, task.alpha, deadline=task.deadline)
                self.pieces.append((task.problem, task.cluster, task.samples, result))
                done()
                yield None
            if giants < len(tasks):
                yield from self._side_by_side(tasks[giants:], jobs, shared, stop, done)

    def _side_by_side(
        self, tasks: list[Subproblem], jobs: int, shared: bool, stop: threading.Event, done: Any
    ) -> Generator[None, None, None]:
        parallel = joblib.Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered", batch_size=1)
        results = parallel(joblib.delayed(solve_subproblem)(task) for task in tasks)
        try:
            for piece in results:
                self.pieces.append(piece)
                done()
                yield None
        except GeneratorExit:  # time is up, or Ctrl-C
            stop.set()
            if shared:
                self.pieces += list(results)  # threads see the flag and come back at once
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # joblib announces that it cancels what is queued: that is the wish
                    results.close()
            raise

    def _tasks(self, division: Partition, options: Options, stop: threading.Event) -> list[Subproblem]:
        """One per problem and cluster that has something to decide, largest first."""
        tasks: list[Subproblem] = []
        for c, members in enumerate(division.members()):
            for p, problem in enumerate(self.problems):
                samples = self.place[p, members]
                samples = samples[samples >= 0]
                if not len(samples) or (len(problem.qp.targets) and one_class(problem.qp, samples)):
                    continue  # nothing to decide
                alpha = None
                if self.model is not None:
                    alpha = self.model.alphas[p][variables(problem.qp, samples)]
                    alpha = alpha if alpha.any() else None
                qp = restricted(problem.qp, samples)
                tasks.append(
                    Subproblem(
                        p, c, samples, problem.chosen[samples], qp, self.data, alpha, options, self.plan.max_iter,
                        self.plan.deadline, stop,
                    )
                )  # fmt: skip
        if tasks and self.data.kernel.native:
            self.data.source()  # prepared once, before the threads ask for it
        return sorted(tasks, key=lambda task: -task.size)

    def _finish_level(self, level: int, division: Partition) -> None:
        """self.pieces concatenated: the level's model."""
        alphas = [np.zeros(problem.qp.n_variables) for problem in self.problems]
        f = [np.zeros(problem.qp.n) for problem in self.problems]
        constant = np.full((division.n_clusters, len(self.problems)), np.nan)
        for p, problem in enumerate(self.problems):
            if problem.qp.n_variables == problem.qp.n:  # the sign where a cluster has only one
                label = division.label[problem.chosen]
                total, size = (np.bincount(label, w, division.n_clusters) for w in (problem.qp.sign, None))
                constant[:, p] = np.where((np.abs(total) == size) & (size > 0), np.sign(total), np.nan)
        with_intercept = [len(problem.qp.targets) > 0 for problem in self.problems]
        intercept = np.where(with_intercept, np.nan_to_num(constant), 0.0)  # overwritten by a QP's
        for p, c, samples, result in self.pieces:
            qp = self.problems[p].qp
            alphas[p][variables(qp, samples)] = result.alpha
            f[p][samples] = result.f
            intercept[c, p] = intercept_and_r(result.multipliers)[0]
            if result.status is not Status.CONVERGED and not result.alpha.any():
                constant[c, p] = best_constant(restricted(qp, samples))
            self.iterations[p] += result.n_iter
        self.model = LevelModel(level, alphas, intercept, division, f, constant)
        self.solutions = [piece[3] for piece in sorted(self.pieces, key=lambda piece: piece[:2])]
        self.duals = [dual_value(result) for result in self.solutions]

    # ---- refine and the whole problem ----------------------------------------------------------------------------

    def _refine(self) -> Generator[Turn | None, None, None]:
        """The QP of level 1's support vectors; what it leaves at zero, and what was zero, is zero afterwards."""
        assert self.model is not None
        start = time.perf_counter()
        refined: list[tuple[IntArray, DualResult]] = []
        with progress_bar(self.plan.verbose, "refine", None, "turn") as done:
            for problem, alpha in zip(self.problems, self.model.alphas):
                support = np.flatnonzero(alpha.reshape(-1, problem.qp.n).any(axis=0))
                result = DualResult(objective=0.0, gap=0.0)  # without support vectors
                if len(support):
                    qp, begin = restricted(problem.qp, support), alpha[variables(problem.qp, support)]
                    result = yield from self._inline(
                        qp, problem.chosen[support], self.options, begin, deadline=self.plan.deadline, done=done
                    )
                refined.append((support, result))
        self.timings["refine"] += time.perf_counter() - start
        model = LevelModel(0, [], np.zeros((1, len(self.problems))))
        for p, (problem, (support, result)) in enumerate(zip(self.problems, refined)):
            alpha, f = np.zeros(problem.qp.n_variables), np.full(problem.qp.n, np.nan)
            alpha[variables(problem.qp, support)], f[support] = result.alpha, result.f
            model.alphas.append(alpha)
            model.f.append(f)
            model.intercept[0, p] = intercept_and_r(result.multipliers)[0]
            self.iterations[p] += result.n_iter
        self.model, self.duals = model, [dual_value(result) for _, result in refined]
        # What refine knows of gap and violation is that of its samples only.
        self.solutions = [replace(r, objective=np.nan, gap=np.nan, violation=np.nan) for _, r in refined]
        largest = max(len(support) for support, _ in refined)
        yield self._row("refine", 0, 1, largest, np.nan, (0.0, time.perf_counter() - start))

    def _whole(self) -> Generator[Turn | None, None, None]:
        """Each problem in full, from the refined solution or, without levels, from zero."""
        start = time.perf_counter()
        if self.model is None:
            self._begin_undivided(0, Status.MAX_TIME)
        assert self.model is not None
        with progress_bar(self.plan.verbose, "whole problem", None, "turn") as done:
            for p, problem in enumerate(self.problems):
                alpha = self.model.alphas[p]
                f = yield from self._complete(problem, alpha, self.model.f[p])
                self.whole, share = p, self.plan.deadline.share(len(self.problems) - p)
                result = yield from self._inline(
                    problem.qp, problem.chosen, self.options, alpha if alpha.any() else None, f, share, done
                )
                self._finish_whole(p, result)
        self.timings["whole"] += time.perf_counter() - start
        solved = all(result.status is Status.CONVERGED for result in self.solutions)
        yield self._row("whole", 0, 1, self.n, 0.0 if solved else np.nan, (0.0, time.perf_counter() - start))

    def _complete(
        self, problem: Problem, alpha: FloatArray, f: FloatArray
    ) -> Generator[None, None, FloatArray | None]:
        """K·β on all samples, given where refine knows it."""
        if not alpha.any():
            return None
        source = self.data.source(problem.chosen)
        coef = coefficients(problem.qp, alpha)
        support, rest = np.flatnonzero(coef), np.flatnonzero(np.isnan(f))
        for piece in source.pieces(len(rest), len(support)):
            f[rest[piece]] = source.sum(rest[piece], support, coef[support])
            yield None
        return f

    def _finish_whole(self, p: int, result: DualResult) -> None:
        assert self.model is not None
        self.model.alphas[p], self.solutions[p], self.duals[p] = result.alpha, result, dual_value(result)
        self.model.intercept[0, p] = intercept_and_r(result.multipliers)[0]
        self.iterations[p] += result.n_iter

    def _first_turns(self, first: int) -> None:
        """One turn of each problem from `first` on that is still at alpha = 0: a vote, when there is no time for more."""
        assert self.model is not None
        for p, problem in enumerate(self.problems[first:], first):
            if not self.model.alphas[p].any():
                source = self.data.source(problem.chosen)
                self._finish_whole(p, solve(problem.qp, source, self.options, Control(max_time=0.0)))

    # ---- parts ---------------------------------------------------------------------------------------------------

    def _inline(
        self,
        qp: QP,
        ids: IntArray,
        options: Options,
        alpha: FloatArray | None,
        f: FloatArray | None = None,
        deadline: Deadline = NEVER,
        done: Any = None,
    ) -> Steps:
        """Solve one QP in this thread, with a safe point after each turn; a float32 stall goes on in float64."""
        alpha = None if alpha is None else qp.repaired(alpha)
        count, status = 0, Status.CONVERGED
        for dtype in dict.fromkeys((self.data.dtype, np.dtype(np.float64))):
            source = self.data.source(ids, options.threads, dtype)
            solver = Decomposition(qp, source, options, alpha=alpha, f=f, deadline=deadline)
            self.running, status, turns = solver, Status.CONVERGED, solver.turns()
            while True:
                try:
                    turn = next(turns)
                except StopIteration as end:
                    status = end.value or Status.CONVERGED
                    break
                count += turn is not None
                if turn is not None and done is not None:
                    done()
                if 0 <= self.plan.max_iter <= count:
                    status = Status.MAX_ITER
                    break
                yield None
            result = solver.result(status)
            if status is not Status.STALLED:
                break
            alpha, f = result.alpha, None
        self.running = None
        result.n_iter = count
        return result

    def _row(self, stage: str, level: int, clusters: int, largest: int, bound: float, times: tuple[float, float]) -> Turn:
        """A line of the table, as a turn. The objective is f with K = 0 between clusters, to be minimised, in both."""
        support = int(np.count_nonzero(self._is_support()))
        objective = -float(sum(self.duals))
        self.table.append((stage, level, clusters, largest, support, objective, bound, *times))
        extra = {"level": float(level), "refine": float(stage == "refine"), "clusters": float(clusters), "bound": bound}
        return Turn(np.nan, np.nan, worst_violation(self.solutions), support, extra)

    def _worst(self) -> Status | None:
        """The first status of this level's subproblems that is not convergence."""
        statuses = [piece[3].status for piece in self.pieces]
        bad = [s for s in statuses if s is not Status.CONVERGED]
        return Status.MAX_TIME if Status.MAX_TIME in bad else (bad[0] if bad else None)

    def _begin_undivided(self, level: int, status: Status) -> None:
        """The model before anything is solved: alpha = 0 and the best constants."""
        self.solutions = [at_zero(problem.qp, self.data.source(problem.chosen), status) for problem in self.problems]
        self.duals = [dual_value(result) for result in self.solutions]
        constants = np.array([[best_constant(problem.qp) for problem in self.problems]])
        self.model = LevelModel(level, [r.alpha for r in self.solutions], constants, f=[r.f for r in self.solutions])

    def _complete_pieces(self, status: Status) -> None:
        """The level's subproblems that have no solution: what the running one reached, and alpha = 0."""
        done = {piece[:2] for piece in self.pieces}
        for task in self.tasks:
            if (task.problem, task.cluster) not in done:
                if task is self.task and self.running is not None:
                    result = self.running.result(status)
                else:
                    result = at_zero(task.qp, self.data.source(task.ids), status)
                self.pieces.append((task.problem, task.cluster, task.samples, result))

    def result(self, status: Status) -> DivideResult:
        """The best level finished; the whole problem counts from the moment that refine is done."""
        if self.model is None and self.division is None:  # stopped while clustering
            self._begin_undivided(self.plan.levels, status)
        elif self.model is None and self.division is not None:  # stopped in the first level
            self._complete_pieces(status)
            self._finish_level(self.plan.levels, self.division)
        elif self.whole is not None and self.running is not None:  # stopped on the way to the optimum
            self._finish_whole(self.whole, self.running.result(status))
            self._first_turns(self.whole + 1)
        assert self.model is not None
        return DivideResult(
            status=status,
            objective=float(sum(r.objective for r in self.solutions)),
            gap=float(sum(r.gap for r in self.solutions)),
            violation=worst_violation(self.solutions),
            timings=dict(self.timings),
            model=self.model,
            levels=np.array(self.table, TABLE),
            iterations=np.maximum(self.iterations, 1),  # clusters of one class take no turn at all
            samples=self.samples_used,
        )


def _jobs(threads: int) -> tuple[int, bool]:
    """(subproblems at a time, whether they share this process's memory): as the active joblib backend says, or one per
    thread of this process."""
    backend, configured = joblib.parallel.get_active_backend(prefer="threads")
    shared = bool(getattr(backend, "supports_sharedmem", False))
    return threads if configured in (None, 1) else int(joblib.effective_n_jobs(configured)), shared
