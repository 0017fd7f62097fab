"""One level of divide and conquer: a QP per cluster and problem, solved side by side, put together.

With an intercept a cluster's start may miss its equality by what moved to other clusters; it is repaired. There a
cluster of one class has the optimum alpha = 0 and needs no QP; without an intercept it is a QP like any other.
Subproblems run largest first; one that is larger than an equal share of the work gets all threads to itself.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from dataclasses import replace

import joblib
import numpy as np
from numpy.typing import NDArray

from maxmargin.carriers import Carrier, active_carrier, by_joblib, workers
from maxmargin.decomposition.options import Options
from maxmargin.divide.clustering import Partition
from maxmargin.divide.model import Certificate, LevelModel, Plan, Problem, best_constant
from maxmargin.divide.remote import Afar, Blocks
from maxmargin.divide.side_by_side import in_threads
from maxmargin.divide.subproblem import (
    Piece,
    Solving,
    Subproblem,
    cut_short,
    one_class,
    restricted,
    solve_subproblem,
    variables,
)
from maxmargin.kernel_values import KernelData
from maxmargin.problem.formulations import intercept_and_r
from maxmargin.runtime import Status

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Of cache_size, for each subproblem. The cache decides the order of sums, and so the last digits: for the same model with
# any n_jobs it must not depend on it. Two subproblems at a time take all of it, more take more.
_CACHE_SHARE = 0.5


class Level:
    """The subproblems of one level, and what is known of their solutions. `place[p]` maps samples to problem p's."""

    def __init__(
        self,
        level: int,
        division: Partition,
        problems: Sequence[Problem],
        place: IntArray,
        data: KernelData,
        options: Options,
        plan: Plan,
        begin: Sequence[FloatArray] | None,
    ) -> None:
        """`begin` are the alphas to begin from: those of the level below, or of this one in an earlier run."""
        self.level, self.division, self.problems, self.place, self.data = level, division, problems, place, data
        self.options, self.plan = options, plan
        self.pieces: list[Piece] = []
        self._stop = threading.Event()
        self._alone: tuple[Subproblem, Solving] | None = None  # the one that has all threads
        self.begin = begin
        self.tasks = self._tasks()

    def _tasks(self) -> list[Subproblem]:
        """One per problem and cluster that has something to decide, largest first."""
        options = replace(self.options, threads=1, cache_size=_CACHE_SHARE * self.options.cache_size)
        tasks: list[Subproblem] = []
        for c, members in enumerate(self.division.members()):
            for p, problem in enumerate(self.problems):
                samples = self.place[p, members]
                samples = samples[samples >= 0]
                if not len(samples) or (len(problem.qp.targets) and one_class(problem.qp, samples)):
                    continue  # nothing to decide
                alpha = None if self.begin is None else self.begin[p][variables(problem.qp, samples)]
                tasks.append(
                    Subproblem(
                        p, c, samples, problem.chosen[samples], restricted(problem.qp, samples), self.data,
                        alpha if alpha is not None and alpha.any() else None, options, self.plan.max_iter,
                        self.plan.deadline, self._stop,
                    )
                )  # fmt: skip
        return sorted(tasks, key=lambda task: -task.size)

    def solve(self) -> Generator[None, None, None]:
        """All subproblems: giants one by one with all threads, then the rest in parallel. Safe points in between."""
        if self.tasks and self.data.kernel.native:
            self.data.source()  # prepared once, before the threads ask for it
        if not self.data.at_hand:
            yield from self._solve_afar(self.data.afar.carrier)
            return
        with active_carrier() as carrier:
            if carrier is not None:
                yield from self._solve_afar(carrier)
                return
        jobs, shared = workers(self.options.threads)
        work = np.array([float(task.size) ** 2 for task in self.tasks])
        giants = int(np.count_nonzero(work > work.sum() / jobs)) if shared else 0
        giants = len(self.tasks) if jobs == 1 else giants
        for task in self.tasks[:giants]:
            yield from self._solve_alone(task)
        rest = self.tasks[giants:]
        if rest:
            calls = [joblib.delayed(solve_subproblem)(task) for task in rest]
            yield from in_threads(rest, jobs, self._stop, self.pieces) if shared else by_joblib(calls, jobs, self.pieces)

    def _solve_afar(self, carrier: Carrier) -> Generator[None, None, None]:
        blocks = self.data.afar = self.data.afar or Blocks(carrier, len(self.data.rows), self.data.rows_of)
        yield from Afar(self.tasks, self.division.members(), blocks, self.data.known_frame()).solve(self.pieces)

    def _solve_alone(self, task: Subproblem) -> Generator[None, None, None]:
        solving = task.solving(self.options.threads)
        self._alone = task, solving
        going = solving.steps(task.max_iter, task.deadline)
        while True:
            try:
                next(going)
            except StopIteration as end:
                self._alone = None
                self.pieces.append(Piece.of(task, end.value))
                break
            yield None
        yield None

    @property
    def cut_short(self) -> Status | None:
        """Why a subproblem was left before its end, if one was."""
        return cut_short(piece.result for piece in self.pieces)

    @property
    def finished(self) -> bool:
        return len(self.pieces) == len(self.tasks) and self.cut_short is None

    def complete(self, status: Status) -> None:
        """Pieces for the subproblems that have none: what the one with all threads reached, and where the others began."""
        done = {(piece.problem, piece.cluster) for piece in self.pieces}
        for task in self.tasks:
            if (task.problem, task.cluster) not in done:
                if self._alone is not None and self._alone[0] is task:
                    reached = self._alone[1].reached(status)
                elif task.alpha is not None or self.data.at_hand:
                    reached = task.solving().reached(status)
                else:
                    reached = self.data.at_zero(task.qp, task.options.tol, status)  # type: ignore[attr-defined]
                self.pieces.append(Piece.of(task, reached))

    def snapshot(self) -> list[FloatArray]:
        """alpha of each problem: where the level began, and where its solved subproblems ended."""
        begin = self.begin or [np.zeros(problem.qp.n_variables) for problem in self.problems]
        alphas = [alpha.copy() for alpha in begin]
        reached = [(piece.problem, piece.samples, piece.result.alpha) for piece in self.pieces]
        if self._alone is not None:
            task, solving = self._alone
            reached.append((task.problem, task.samples, solving.alpha))
        for p, samples, alpha in reached:
            alphas[p][variables(self.problems[p].qp, samples)] = alpha
        return alphas

    def model(self) -> LevelModel:
        """The pieces put together."""
        alphas = [np.zeros(problem.qp.n_variables) for problem in self.problems]
        f = [np.zeros(problem.qp.n) for problem in self.problems]
        constant = self._only_class()
        intercept = np.nan_to_num(constant)  # overwritten by a QP's
        pieces = sorted(self.pieces, key=lambda piece: (piece.problem, piece.cluster))  # sums keep their bits
        for piece in pieces:
            p, result = piece.problem, piece.result
            qp = self.problems[p].qp
            alphas[p][variables(qp, piece.samples)] = result.alpha
            f[p][piece.samples] = result.f
            intercept[piece.cluster, p] = intercept_and_r(result.multipliers)[0]
            if result.status is not Status.CONVERGED and not result.alpha.any():
                constant[piece.cluster, p] = best_constant(restricted(qp, piece.samples))
        certificate = Certificate.of([piece.result for piece in pieces])
        return LevelModel(self.level, alphas, intercept, certificate, self.division, f, constant)

    def _only_class(self) -> FloatArray:
        """Per cluster and problem: the sign of a cluster that has only one, NaN elsewhere."""
        n_clusters = self.division.n_clusters
        constant = np.full((n_clusters, len(self.problems)), np.nan)
        for p, problem in enumerate(self.problems):
            if problem.qp.n_variables == problem.qp.n:
                label = self.division.label[problem.chosen]
                total, size = (np.bincount(label, w, n_clusters) for w in (problem.qp.sign, None))
                constant[:, p] = np.where((np.abs(total) == size) & (size > 0), np.sign(total), np.nan)
        return constant

    def iterations(self) -> IntArray:
        """Solver turns per problem."""
        out = np.zeros(len(self.problems), np.int64)
        for piece in self.pieces:
            out[piece.problem] += piece.result.n_iter
        return out
