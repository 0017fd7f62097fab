"""Dual coordinate descent with the cutting planes' certificate (Hsieh et al., ICML 2008, algorithm 3).

    maximise over 0 ≤ alpha_i ≤ C·weight_i    Σ (1 − shift_i) alpha_i − ½‖Σ alpha_i sign_i x_i‖² − ½ Σ diag_i alpha_i²

One round: epochs over the active rows in random order (each coordinate solved exactly, rows stuck at a bound set
aside), then one pass over X for the margins of w = Σ alpha_i sign_i x_i. The pass serves three ends: alpha is a cut
(lower bound), the line search moves the best point towards w (upper bound), and the margins choose the next active
rows: free, violating, or within `width` of the margin.

A free intercept adds Σ alpha_i sign_i = 0. It is treated by the method of multipliers: a penalised constant feature
around a centre that moves by the penalty's multiplier after each round; the cuts of the two classes then turn the
almost balanced alpha into a valid bound.
Stops at a relative gap of tol. Cost: reads of active rows; best where rows are short or the active ones few.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.linear.bundle import Cuts
from maxmargin.linear.certified import Certified
from maxmargin.linear.ocas import Ocas
from maxmargin.linear.problem import NOTHING, LinearProblem, Pause, Sum
from maxmargin.linear.rounding import UNIT, Cut, FloatArray, gamma
from maxmargin.runtime import Status, Turn

EPOCHS = 50  # per round, at most
LAGS = 0.1  # a bound that rises by less than this part of the gap is ahead of the objective
READS = 4.0  # rows read per round, in units of n: the certificate that follows costs one


class Coordinates:
    """alpha, the sum of rows that belongs to it, and epochs over chosen rows."""

    def __init__(self, problem: LinearProblem, seed: int) -> None:
        self.problem = problem
        self.upper = problem.C * problem.weight
        self.diag = np.zeros(problem.hinges)
        if problem.loss == "squared_hinge":
            self.diag = 1 / (2 * np.maximum(self.upper, np.finfo(float).tiny))
            self.upper = np.where(problem.weight > 0, np.inf, 0.0)
        self.norms = np.empty(problem.n)
        _core.linear_norms(problem.matrix, self.norms, problem.threads)
        self.feature = problem.bias
        if problem.free_intercept:
            # A penalty of the size of the other curvatures, and under a small C one that lets a round move the
            # intercept by 1: it moves by feature² Σ alpha_i sign_i, at most feature² C Σ weight_i.
            reach = max(problem.C * float(problem.weight.sum()), np.finfo(float).tiny)
            self.feature = float(np.sqrt(max(self.norms.mean(), 1 / reach)))
        self.centre = 0.0
        self.target = NOTHING if problem.shift is None else 1 - problem.shift
        self.alpha = np.zeros(problem.hinges)
        self.v = np.zeros(problem.size)
        self.drift = 0.0  # of v, in units of alpha (see `rounding`)
        self.epochs = 0
        self._seed = seed

    def place(self, alpha: FloatArray, total: Sum, intercept: float) -> None:
        """Start at alpha (per unit of C), whose sum of rows is `total`, around an intercept."""
        C = self.problem.C
        self.alpha, self.v = C * alpha, -C * total.a
        self.drift = C * total.drift + 4 * UNIT * float(self.alpha.sum())
        if self.problem.free_intercept:
            self.v[-1] *= self.feature / self.problem.bias
            self.centre = intercept * self.problem.bias

    def renew(self) -> Pause:
        """v anew from alpha."""
        total = Sum(self.problem)
        yield from total.renew(self.alpha)
        self.v, self.drift = -total.a, total.drift + 4 * UNIT * float(self.alpha.sum())
        if self.problem.free_intercept:
            self.v[-1] *= self.feature / self.problem.bias

    def descend(self, active: NDArray[np.int64], reads: float, goal: float) -> Generator[None, None, float]:
        """Epochs over `active` until `reads` rows are read or the violations' range falls to `goal`; that range."""
        problem, count, spread = self.problem, len(active), 0.0
        above, below = np.inf, -np.inf
        for epoch in range(EPOCHS):
            if count == 0:
                break
            reads -= count
            mass = float(self.alpha.sum())
            count, largest, smallest, moved, steps = _core.descent_epoch(
                problem.matrix, active, count, problem.sign, self.target, self.upper, self.diag, self.norms, self.feature,
                self.centre, above, below, self.alpha, self.v, self._seed + self.epochs,
            )
            self.epochs += 1
            # A step rounds what it adds, and the coordinate of v that it adds to: at most Σ alpha at that moment.
            self.drift += gamma(steps + 1) * (mass + moved) + 4 * UNIT * moved
            spread = max(largest, 0.0) - min(smallest, 0.0)
            above = largest if largest > 0 else np.inf
            below = smallest if smallest < 0 else -np.inf
            if reads <= 0 or spread <= goal:
                break
            if epoch % 4 == 3:
                yield
        return spread

    def point(self) -> FloatArray:
        """The primal point of alpha; a free intercept is the centre plus the penalty's multiplier."""
        w: FloatArray = self.v.copy()
        if self.problem.free_intercept:
            w[-1] = (self.centre + self.feature * self.v[-1]) / self.problem.bias
        return w

    def value(self) -> float:
        """The dual objective that the epochs raise (with a free intercept: the penalised one)."""
        linear = self.target if len(self.target) else np.ones(len(self.alpha))
        if self.problem.free_intercept:
            linear = linear - self.centre * self.problem.sign
        curve = 0.5 * (self.diag * self.alpha * self.alpha).sum() + 0.5 * float(self.v @ self.v)
        return float((linear * self.alpha).sum() - curve)

    def cut(self) -> Cut:
        """alpha as a cut of the risk."""
        C, mass = self.problem.C, float(self.alpha.sum())
        a = -self.v / C
        if self.problem.free_intercept:
            a[-1] *= self.problem.bias / self.feature
        curve = float(0.5 * (self.diag * self.alpha * self.alpha).sum())
        total, size = self.problem.offset(self.alpha, mass, curve)
        return Cut.of(a, total / C, mass / C, (self.drift + 4 * UNIT * mass) / C, self.problem.terms, size / C)


class Descent(Certified):
    """Dual coordinate descent from scratch, or (`rounds`) from duals that another method has found."""

    def __init__(
        self, problem: LinearProblem, tol: float, *, seed: int = 0, known: Cuts | None = None,
        start: FloatArray | None = None, patience: float = np.inf, duals: FloatArray | None = None,
    ) -> None:
        super().__init__(problem, tol, known, start, duals)
        self._seed = seed
        self._dual: Coordinates | None = None
        self.patience = patience  # turns after which cutting planes take over

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        if (yield from self.judge_start()):
            yield self.turn(step=0.0)
            return None
        self.seed_cuts()
        alpha, total = yield from self.seed_duals()
        dual = self._duals_of()
        dual.place(alpha, total, 0.0 if self.start is None else float(self.start[-1]))
        return (yield from self.rounds(dual, self.problem.weighty()))

    def duals(self) -> FloatArray | None:
        return None if self._dual is None else self._dual.alpha / self.problem.C

    def _duals_of(self) -> Coordinates:
        if self._dual is None:
            self._dual = Coordinates(self.problem, self._seed)
        return self._dual

    def rounds(self, dual: Coordinates, active: NDArray[np.int64]) -> Generator[Turn | None, None, Status | None]:
        """Epochs over the active rows, then a pass for the certificate and the next active rows."""
        problem, clock = self.problem, self.clock
        m = np.empty(problem.hinges)
        goal, rest, value = 0.1, 0, -np.inf
        for count in itertools.count(1):
            spread = yield from dual.descend(active, READS * problem.n, goal)
            clock.lap("descent")
            w = dual.point()
            yield from problem.outputs(w, m)
            clock.lap("outputs")
            before, value, lower = value, dual.value(), self.bundle.lower
            self.bound((yield from self.proven(dual)))
            step = self.improve(w, m)
            if self.bundle.lower - lower < LAGS * self.gap:
                self.stretch(w, m)
            if problem.free_intercept:
                dual.centre = float(w[-1]) * problem.bias
            clock.lap("line search")
            if (yield from self.report(step=step, epochs=float(dual.epochs))):
                return None
            if count >= self.patience:
                return (yield from self.fall_back())
            rest = rest + 1 if value <= before else 0
            if rest >= 5 and spread <= 1e-10:
                return (yield from self.at_rest())
            goal = max(min(goal, 0.2 * spread), 1e-13)
            u = 1.0 - m
            idle = ((dual.alpha <= 0) & (u < -spread)) | ((dual.alpha >= dual.upper) & (u > spread)) | (dual.upper <= 0)
            active = np.flatnonzero(~idle.reshape(-1, problem.n).all(axis=0))
        return None

    def proven(self, dual: Coordinates) -> Generator[None, None, Cut]:
        """The cut of these duals; their sum is made anew when the rounding of many steps has gathered and matters."""
        cut = dual.cut()
        if cut.drift > 4 * gamma(self.problem.hinges) * cut.mass and self.matters(cut):
            yield from dual.renew()
            cut = dual.cut()
        return cut

    def at_rest(self) -> Generator[Turn | None, None, Status | None]:
        """Nothing moves any more: "auto" (of finite patience) has another method, a solver asked for by name has not."""
        if np.isfinite(self.patience):
            return (yield from self.fall_back())
        return Status.STALLED

    def fall_back(self) -> Generator[Turn | None, None, Status | None]:
        """Cutting planes from the best point: slower where this solver is at home, but never caught in a corner."""
        return (yield from self.hand_over(Ocas(self.problem, self.tol)))
