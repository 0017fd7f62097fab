"""From level 1 to the optimum: refine on its support vectors, then the whole problem from there.

    refine   the QP of level 1's support vectors, from level 1; what was 0, and what it leaves at 0, is 0 afterwards
    begin    f = K·β for all samples, of which refine has done the part on its own: |S|·n kernel values. From here on
             the whole problem's objective, gap and violation are known at every moment
    solve    each problem in full

Refined, the dual value of the whole problem is no lower than level 1's, where it began, and rises from then on; but
until f is known on all samples nobody can say how good that is. So a run that is stopped keeps level 1 until `begin` is
done, and hands over the whole problem's state after that.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.options import DualResult, Options
from maxmargin.divide.model import Certificate, LevelModel, Plan, Problem, best_constant
from maxmargin.divide.subproblem import Solving, cut_short, restricted, variables
from maxmargin.kernel_values import KernelData
from maxmargin.problem.formulations import coefficients, intercept_and_r
from maxmargin.runtime import Deadline, Status, drained

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Row = dict[str, float]
Rows = Generator[tuple[int, Row] | None, None, None]  # (problem, what its solver reports), or a safe point


class Whole:
    """All problems in full, from the level below (its alpha) or from zero."""

    def __init__(
        self,
        problems: Sequence[Problem],
        data: KernelData,
        options: Options,
        plan: Plan,
        below: LevelModel | None,
    ) -> None:
        self.problems, self.data, self.options, self.plan = problems, data, options, plan
        zero = [np.zeros(problem.qp.n_variables) for problem in problems]
        self.alphas = zero if below is None else list(below.alphas)
        self.f: list[FloatArray | None] = [None] * len(problems)  # NaN where it is not known yet
        self.refined: list[DualResult] = []
        self.solutions: list[DualResult] = []  # one per problem from `begin` on
        self.solved = 0  # problems that refine, or solve after it, is done with
        self.iterations = np.zeros(len(problems), np.int64)
        self._going: tuple[int, Solving] | None = None
        self._refined: list[FloatArray] = []  # alphas of the problems that refine is done with
        self._begin = self.alphas  # where refine begins

    @property
    def begun(self) -> bool:
        """Whether the whole problem's certificate is known."""
        return bool(self.solutions)

    @property
    def cut_short(self) -> Status | None:
        """Why a problem was left before its end, if one was."""
        return cut_short(self.solutions or self.refined)

    def refine(self, begin: Sequence[FloatArray] | None = None) -> Rows:
        """Every problem on its support vectors; only when all are done do their alphas count.

        `begin` is where an earlier run was with this.
        """
        alphas, f = self._refined, []
        self._begin = self.alphas if begin is None else list(begin)
        for p, (problem, alpha) in enumerate(zip(self.problems, self.alphas)):
            support = self.support(p)
            new, known = np.zeros_like(alpha), np.full(problem.qp.n, np.nan)
            if len(support):
                mine = variables(problem.qp, support)
                qp = restricted(problem.qp, support)
                solving = Solving(qp, self.data, problem.chosen[support], self.options, self._begin[p][mine])
                result = yield from self._solve(p, solving, self.plan.deadline)
                self.refined.append(result)
                if self.cut_short is not None:
                    return
                new[mine], known[support] = result.alpha, result.f
            alphas.append(new)
            f.append(known)
        self.alphas, self.f = alphas, list(f)

    def go_on(self, alphas: Sequence[FloatArray]) -> None:
        """From where an earlier run was in `solve`."""
        self.alphas = [problem.qp.repaired(alpha) for problem, alpha in zip(self.problems, alphas)]
        self._begin = self.alphas

    def snapshot(self) -> list[FloatArray]:
        """alpha of each problem."""
        alphas = [solution.alpha for solution in self.solutions] or [*self._refined, *self._begin[len(self._refined) :]]
        if self._going is not None:
            p, solving = self._going
            alphas[p] = solving.alpha if self.solutions else self._spread(p, solving.alpha)
        return alphas

    def _spread(self, p: int, alpha: FloatArray) -> FloatArray:
        """alpha of the support vectors of problem p among zeros."""
        out = np.zeros_like(self.alphas[p])
        out[variables(self.problems[p].qp, self.support(p))] = alpha
        return out

    def support(self, p: int) -> IntArray:
        """The samples of problem p with a non-zero alpha."""
        return np.flatnonzero(self.alphas[p].reshape(-1, self.problems[p].qp.n).any(axis=0))

    def begin(self) -> Generator[None, None, None]:
        """K·β on all samples, and with it the certificate of each problem."""
        solutions, self.solved = [], 0
        for p in range(len(self.problems)):
            self.f[p] = yield from self._complete(p)
            solutions.append(self._solving(p).reached(Status.MAX_TIME))  # converged, if its violation says so
        self.solutions = solutions

    def _complete(self, p: int) -> Generator[None, None, FloatArray]:
        problem, known = self.problems[p], self.f[p]
        coef = coefficients(problem.qp, self.alphas[p])
        support = np.flatnonzero(coef)
        f = np.zeros(problem.qp.n)
        if not len(support):
            return f
        rest = np.arange(problem.qp.n)
        if known is not None:
            f, rest = known.copy(), np.flatnonzero(np.isnan(known))
        source = self.data.source(problem.chosen)
        for piece in source.pieces(len(rest), len(support)):
            yield None  # before, not after: a stop during the last piece finds the certificate complete
            f[rest[piece]] = source.sum(rest[piece], support, coef[support])
        return f

    def _solving(self, p: int) -> Solving:
        problem, alpha, f = self.problems[p], self.alphas[p], self.f[p]
        if f is None or not alpha.any():
            return Solving(problem.qp, self.data, problem.chosen, self.options)
        return Solving(problem.qp, self.data, problem.chosen, self.options, alpha, f.copy())  # it is worked on

    def solve(self) -> Rows:
        """Each problem in an equal part of the time."""
        for p in range(len(self.problems)):
            share = self.plan.deadline.share(len(self.problems) - p)
            self.solutions[p] = yield from self._solve(p, self._solving(p), share)

    def _solve(self, p: int, solving: Solving, deadline: Deadline) -> Generator[tuple[int, Row] | None, None, DualResult]:
        self._going = p, solving
        going = solving.steps(self.plan.max_iter, deadline)
        while True:
            try:
                row = next(going)
            except StopIteration as end:
                result: DualResult = end.value
                break
            yield None if row is None else (p, row)
        self._going, self.solved = None, self.solved + 1
        self.iterations[p] += result.n_iter
        return result

    def stop(self, status: Status) -> None:
        """Take over what the running solver reached; problems still at alpha = 0 make one turn: a vote each."""
        if self._going is not None:
            p, solving = self._going
            self.solutions[p] = solving.reached(status)
            self.iterations[p] += self.solutions[p].n_iter
        for p, solution in enumerate(self.solutions):
            if not solution.alpha.any() and solution.status is not Status.CONVERGED:
                self.solutions[p] = drained(self._solving(p).steps(max_iter=1))
                self.iterations[p] += 1

    def model(self) -> LevelModel:
        intercept = np.array([[intercept_and_r(result.multipliers)[0] for result in self.solutions]])
        unsolved = [r.status is not Status.CONVERGED and not r.alpha.any() for r in self.solutions]
        constant = [best_constant(q.qp) if bad else np.nan for q, bad in zip(self.problems, unsolved)]
        alphas, f = [r.alpha for r in self.solutions], [r.f for r in self.solutions]
        return LevelModel(0, alphas, intercept, Certificate.of(self.solutions), None, f, np.array([constant]))
