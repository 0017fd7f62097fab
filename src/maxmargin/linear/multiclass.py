"""Crammer & Singer's joint multi-class machine by cutting planes.

The risk of the joint problem is again a sum of convex, piecewise linear functions, so algorithm 1 of Franc & Sonnenburg
carries over: the cut at W takes each sample for the class that attains its maximum. Along a line a sample's loss has up
to K pieces; `_core.joint_search` brackets the minimum by bisection and drops the samples that are straight inside the
bracket. Each turn also adds the cut and tries the point of some epochs of dual descent, until they fall behind.

Stops at a relative gap of tol, certified by the reduced problem's value. Cost per turn: two passes over X with K outputs
per row, the rows whose class changed, some ten passes over the scores, the epochs. The result is the same for any
number of threads.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.linear.bundle import Cuts
from maxmargin.linear.certified import FAR, Known, LinearResult
from maxmargin.linear.joint_descent import JointDescent
from maxmargin.linear.joint_problem import JointProblem
from maxmargin.linear.ocas import Ocas
from maxmargin.linear.problem import LinearProblem, Pause
from maxmargin.linear.rounding import UNIT, Cut, FloatArray, gamma
from maxmargin.runtime import Status

BEHIND = 2.0  # the gap of descent's own bound, in units of the gap of all cuts, that counts as behind,
CATCH_UP = 0.7  # unless it has become smaller by this factor in one turn
PATIENCE = 3  # turns behind in a row; where descent is of use it leads from the first turns on


class CrammerSinger(Ocas):
    """OCAS for the joint problem. `known`: cuts of an earlier fit on the same rows; `start`: a point to start from."""

    problem: JointProblem

    def __init__(
        self, one: LinearProblem, labels: NDArray[np.integer], classes: int, tol: float, *, seed: int = 0,
        known: Cuts | None = None, start: FloatArray | None = None,
    ) -> None:
        problem = JointProblem.of(one, labels, classes)
        super().__init__(problem, tol, known=known, start=start)
        self._taken = problem.labels  # the classes that the last cut took the samples for
        self._a, self._drift = np.zeros(problem.size), 0.0  # of that cut
        self._descent: JointDescent | None = JointDescent(problem, seed)
        self._behind, self._own_gap = 0, np.inf

    def seed_cuts(self) -> None:
        """Class c taken for class c + 1, for each c: mixed in proportion they balance every free intercept."""
        problem = self.problem
        if not problem.free_intercept or self.bundle.count:
            return
        weights, sums = problem.totals()
        for c in range(problem.classes):
            a = np.zeros((problem.classes, problem.d + 1))
            a[c], a[(c + 1) % problem.classes] = -sums[c], sums[c]
            mass = float(weights[c])
            self.bundle.add(Cut.of(a.ravel(), mass, mass, gamma(problem.n + 4) * mass, problem.n, mass))

    def _search(self, m: FloatArray, q: FloatArray, quad: float, lin: float) -> float:
        problem, C = self.problem, self.problem.C
        return float(_core.joint_search(
            m, q, problem.labels, problem.weight, quad / C, lin / C, FAR, problem.threads
        ))

    def _cut(self, margins: FloatArray) -> Pause:
        problem, labels, weight = self.problem, self.problem.labels, self.problem.weight
        taken = problem.worst(self.best.m, margins, self.mix)
        mass = float(weight[taken != labels].sum())
        cut = yield from self._moved(taken, mass)
        if cut.drift > 4 * gamma(problem.n) * mass and self.matters(cut):  # summed up anew
            self._taken, self._a, self._drift = labels, np.zeros(problem.size), 0.0
            cut = yield from self._moved(taken, mass)
        self.bundle.add(cut)
        self.clock.lap("cutting plane")
        if self._descent is not None:
            yield from self._descend(self._descent, margins)
            self.clock.lap("descent")

    def _moved(self, taken: NDArray[np.int64], mass: float) -> Generator[None, None, Cut]:
        """The cut that takes the samples for these classes, from the one before."""
        rows = np.flatnonzero(taken != self._taken)
        yield from self.problem.move(self._a, rows, self._taken[rows], taken[rows])
        moved = float(self.problem.weight[rows].sum())
        self._drift += gamma(2 * len(rows) + 4) * 2 * moved + 4 * UNIT * mass
        self._taken = taken
        return Cut.of(self._a, mass, mass, self._drift, self.problem.n, mass)

    def _descend(self, descent: JointDescent, scores: FloatArray) -> Pause:
        """Descent's cut and point join the others. `scores` is overwritten."""
        problem, C = self.problem, self.problem.C
        yield from descent.descend()
        cut = descent.cut()
        self.bundle.add(cut)
        w = descent.point()
        yield from problem.outputs(w, scores)
        self.improve(w, scores)
        descent.choose(scores)
        gap = self.objective - (C * cut.b - 0.5 * C * C * problem.inner(cut.a, cut.a))
        late = gap > max(BEHIND * self.gap, CATCH_UP * self._own_gap)
        self._behind, self._own_gap = self._behind + 1 if late else 0, gap
        if self._behind >= PATIENCE:
            self._descent = None

    def snapshot(self) -> Known:
        return replace(super().snapshot(), duals=None)  # those of a cut here, not of the problem

    def result(self, status: Status) -> LinearResult:
        result = super().result(status)
        result.w = result.w.reshape(self.problem.classes, -1)
        return result
