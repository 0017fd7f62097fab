"""Newton steps along the central path, certified by cuts: the default for linear machines of moderate width.

    minimise  F_h(w) = ½‖w‖² + C Σ weight_i (u_i + √(u_i² + 4h²))/2,    u_i = 1 − m_i,   h → 0

The rounded hinge is the one that an interior-point method follows (Chen & Harker; Kanzow; Smale). Its derivative
gives duals alpha_i ∈ (0, weight_i), hence a cut of the true risk and a lower bound; the true F(w) is the upper one:

    gap = C Σ (weight_i·hinge(u_i) − alpha_i u_i) + ½‖w + C·a‖²      rounding (falls with h²)  +  distance from the path

One turn: duals and their cut; the Newton direction (`direction.py`); one pass for its outputs; a search along it.
Newton's method runs on the pair (w, duals): the linearised equations promise duals after the step, kept as `path`, and
the curvature of a row is that of the pair (Chan, Golub & Mulet, SIAM J. Sci. Comput. 1999). Steps stay long when h has
just fallen, where Newton's method on w alone would creep. The promised duals make a second cut, exact to first order.

h falls when the step was long and the decrease small. Close to the end the duals near the margin are polished by
coordinate descent over those rows alone, which stay in cache (not over ranks: it goes from row to row). Where rows are
many times the features, a random part of them is solved first, roughly, to start near the solution.

The squared hinge is smooth enough by itself: the same loop with h = 0 and no polishing.
Stops at a relative gap of tol. Cost per turn: one to two passes over X and width² per row near the margin.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import replace

import numpy as np

from maxmargin import _core
from maxmargin.linear import line_search
from maxmargin.linear.bundle import Cuts
from maxmargin.linear.certified import Known
from maxmargin.linear.descent import Descent
from maxmargin.linear.direction import Directions
from maxmargin.linear.problem import Duals, LinearProblem, Sum
from maxmargin.linear.rounding import FloatArray, dot
from maxmargin.runtime import Status, Turn

START = 0.5       # first rounding: wide enough that most rows bend the loss at w = 0
SAMPLED = 32      # rows per feature of the sample that finds a start: fewer are no guide to the rest
ROUGH = 0.06      # rounding at which the sample has told what it can
WARM = 0.02       # rounding to begin with at a point that was given: of another C or of most of the samples
FALL = 0.3        # h falls by at most this factor per turn
NEAR = 0.015      # rows with this part of the largest slope (|u| < 8h) have their duals polished
SHORT = 0.5       # steps below it, three in a row: a sample of the band is no guide to the rest of it
EASY = 0.05       # violation after a polish that shows coordinate descent to be quick here: it takes over


class Newton(Descent):
    """The whole method; `rough` stops at a good starting point for a larger problem."""

    def __init__(
        self, problem: LinearProblem, tol: float, *, start: FloatArray | None = None, seed: int = 0,
        rough: bool = False, known: Cuts | None = None, patience: float = np.inf, rounding: float | None = None,
    ) -> None:
        super().__init__(problem, tol, seed=seed, known=known, start=start, patience=patience)
        self.h = START if problem.loss == "hinge" else 0.0
        if rounding is not None:
            self.h = min(self.h, rounding)
        self.rough = rough
        self._random = np.random.default_rng(seed)
        self._penalty = np.ones(problem.size)
        if problem.free_intercept:
            self._penalty[-1] = 0.0
        self._directions = Directions(problem, self._penalty, self._random)
        self._wide = self._directions.wide and not rough
        self._short = 0  # steps in a row, along directions from a sample
        self._alpha: FloatArray | None = None
        self._promised, self._promise = np.zeros(0), Sum(problem)  # duals of the path and their cut

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        problem, clock = self.problem, self.clock
        if not self.rough:
            if (yield from self.judge_start()):
                yield self.turn(step=0.0, rounding=self.h)
                return None
            if self.best.w.any():  # the point given, and its margins are known
                self.start, self.h = self.best.w, min(self.h, WARM)
            else:
                yield from self._sample()
        clock.start()
        self.seed_cuts()
        w = np.zeros(problem.size) if self.start is None else self.start
        m, q = problem.zeros(), np.empty(problem.hinges)
        if w is self.best.w:
            m[:] = self.best.m
        elif w.any():
            yield from problem.outputs(w, m)
        alpha, total = np.zeros(problem.hinges), Sum(problem)
        self._alpha, a = alpha, total.a
        path: FloatArray | None = None
        step, rest, best = 0.0, 0, np.inf
        for count in itertools.count(1):
            before = (best, self.bundle.lower)
            lazy = 0.1 * self.tol * self.objective / (problem.C * problem.mass)
            found = problem.duals(alpha, m, h=self.h, lazy=lazy, path=path)
            clock.lap("duals")
            cut = yield from self.summed(total, alpha, found)
            clock.lap("cutting plane")
            objective = problem.value(w, found.risk)
            self.keep(w, m, objective)
            best = min(best, objective)  # of these turns: a warm start ahead of them must not look like a stall
            self.bound(cut)
            rounding = problem.C * (found.risk - found.offset - dot(a, w))
            if (self._wide or not problem.alone) and path is not None and rounding < 0.05 * self.objective:
                yield from self._path_cut(path, lazy)
                clock.lap("cutting plane")
            if self._near(rounding, step):
                spread = yield from self._polish(alpha, total, found, w)
                clock.lap("polish")
                easy = spread <= EASY and problem.shift is None  # errors of regression may be far smaller than its targets
                if (easy or rest >= 4) and not problem.free_intercept:
                    return (yield from self.rounds(self._duals_of(), problem.weighty()))
            carried = not self.best.settled
            done = yield from self.report(step=step, rounding=self.h)
            if done or (self.rough and self.h <= ROUGH and step >= 0.5):
                return None
            if (carried and self.best.settled) or rest == 4:  # rounding may have taken the margins from the point
                yield from problem.outputs(w, m)
            rest = rest + 1 if before == (best, self.bundle.lower) else 0
            if count >= self.patience:
                return (yield from self.fall_back())
            if rest >= 8:
                return (yield from self.at_rest())
            grad = problem.C * a + self._penalty * w
            exact = self._exact(rounding)
            p = yield from self._directions.direction(grad, found, self.h, 0.1 * self.tol * self.objective, exact)
            clock.lap("direction")
            yield from problem.outputs(p, q, shifted=False)
            clock.lap("outputs")
            if self.h > 0:
                path = alpha.copy() if path is None else path
                _core.linear_predict(self.h, m, q, problem.weight, path, problem.threads)
            step = line_search.smooth(
                problem, m, q, problem.inner(p, p), problem.inner(w, p), self.h, accuracy=0.05
            )
            w = w + step * p
            problem.advance(m, q, step)
            clock.lap("line search")
            self._tighten(step, -0.5 * dot(grad, p), rounding)
            if not exact:
                self._short = self._short + 1 if step < SHORT else 0
        return None

    def duals(self) -> FloatArray | None:
        return self._alpha if self._dual is None else super().duals()

    def snapshot(self) -> Known:
        return replace(super().snapshot(), rounding=self.h)

    def _sample(self) -> Generator[None, None, None]:
        """Start at the rough solution for a random part of the rows, when that is much cheaper than the whole."""
        problem = self.problem
        rows = max(problem.count // 16, SAMPLED * problem.size)
        if rows > problem.count // 4:
            return
        weighty = problem.weighty()
        mine = min(-(-rows * problem.n // problem.count), len(weighty))
        part = problem.subset(np.sort(self._random.choice(weighty, mine, replace=False)))
        if not all(problem.total(float((part.sign > 0).sum()), float((part.sign < 0).sum()))):
            return
        first = Newton(part, 1e-2, rough=True, seed=self._seed)
        for _ in first.turns():
            yield
        self.h = first.h
        self.start = first.best.w
        self.clock.seconds["sample"] = sum(first.clock.seconds.values())

    def _path_cut(self, path: FloatArray, lazy: float) -> Generator[None, None, None]:
        """The duals that the last step promised are a cut as well, and the better one while h still falls."""
        problem = self.problem
        if not len(self._promised):
            self._promised = np.zeros(problem.hinges)
        move = path - self._promised
        rows = np.flatnonzero(np.abs(move) > lazy * problem.weight)
        self._promised[rows] = path[rows]
        mass = float(self._promised.sum())
        offset, size, mass = problem.total(*problem.offset(self._promised, mass, 0.0), mass)
        yield from self._promise.move(rows, (problem.sign * move)[rows], mass)
        self.bound(self._promise.cut(offset, mass, size))

    def _exact(self, rounding: float) -> bool:
        """Whether what a sample of the band leaves out would show in the gap, or has shown in the steps."""
        if self._short >= 3 and not self.rough:
            return True
        if self.problem.loss == "squared_hinge":
            return self.relative_gap < 0.05 or self.tol < 1e-5
        return (self._wide and rounding < 3 * self.tol * self.objective) or self.tol < 1e-5

    def _near(self, rounding: float, step: float) -> bool:
        """Whether the rows near the margin are known well enough to polish their duals."""
        if self.rough or self.problem.loss != "hinge" or step < 0.1 or not self.problem.alone:
            return False
        return rounding < max(10 * self.tol, 1e-2) * self.objective and not self.certified

    def _polish(self, alpha: FloatArray, total: Sum, found: Duals, w: FloatArray) -> Generator[None, None, float]:
        """Coordinate descent over the band, for a quarter of a pass in reads, raises the bound; the violation left."""
        problem, dual = self.problem, self._duals_of()
        dual.place(alpha, total, float(w[-1]))
        weight = problem.weight[found.band]
        near = found.band[(4 * self.h * found.slope >= NEAR * weight) & (weight > 0)]
        rows, _ = problem.per_sample(near, np.ones(len(near)))
        spread = yield from dual.descend(rows, 0.25 * problem.n, 1e-3)
        self.bound((yield from self.proven(dual)))
        return spread

    def _tighten(self, step: float, decrease: float, rounding: float) -> None:
        """Lower h once Newton's method is at home at the present one."""
        target = 0.4 * self.tol * self.objective
        if self.problem.loss == "hinge" and step >= 0.5 and decrease < 0.5 * rounding and rounding > target:
            self.h *= max(FALL, 0.9 * float(np.sqrt(target / rounding)))
