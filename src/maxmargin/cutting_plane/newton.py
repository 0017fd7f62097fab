"""Newton steps along the central path, certified by cuts: the default for linear machines of moderate width.

    minimise  F_h(w) = ½‖w‖² + C Σ weight_i (u_i + √(u_i² + 4h²))/2,    u_i = 1 − m_i,   h → 0

The rounded hinge is the one that an interior-point method follows (Chen & Harker; Kanzow; Smale). Its derivative
gives duals alpha_i ∈ (0, weight_i), hence a cut of the true risk and a lower bound; the true F(w) is the upper one:

    gap = C Σ (weight_i·hinge(u_i) − alpha_i u_i) + ½‖w + C·a‖²      rounding (falls with h²)  +  distance from the path

One turn: duals and their cut; the Newton direction from the rows near the margin (a Cholesky factor, or conjugate
gradients when the width is large); one pass for its outputs; a search along it. h falls when the step was long and the
decrease small. Close to the end the duals near the margin are polished by coordinate descent over those rows alone,
which stay in cache. A random part of the samples is solved first, roughly, to start near the solution.

The squared hinge is smooth enough by itself: the same loop with h = 0 and no polishing.
Stops at a relative gap of tol. Cost per turn: one to two passes over X and width² per row near the margin.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.cutting_plane import line_search
from maxmargin.cutting_plane.bundle import Bundle
from maxmargin.cutting_plane.descent import Coordinates, Descent
from maxmargin.cutting_plane.problem import Duals, FloatArray, LinearProblem
from maxmargin.runtime import Status, Turn

START = 0.2       # first rounding: wide enough that most rows bend the loss at w = 0
ROUGH = 0.06      # rounding at which the sample has told what it can
FALL = 0.3        # h falls by at most this factor per turn
DIRECT = 1000     # up to this width the Newton matrix is always factored
NEAR = 0.015      # rows with this part of the largest slope (|u| < 8h) have their duals polished
EASY = 0.05       # violation after a polish that shows coordinate descent to be quick here: it takes over


class Newton(Descent):
    """The whole method; `rough` stops at a good starting point for a larger problem."""

    def __init__(
        self, problem: LinearProblem, tol: float, *, start: FloatArray | None = None, seed: int = 0,
        rough: bool = False, bundle: Bundle | None = None, patience: float = np.inf,
    ) -> None:
        super().__init__(problem, tol, seed=seed, bundle=bundle, patience=patience)
        self.start = start
        self.h = START if problem.loss == "hinge" else 0.0
        self.rough = rough
        self._random = np.random.default_rng(seed)
        self._dual: Coordinates | None = None
        self._penalty = np.ones(problem.size)
        if problem.free_intercept:
            self._penalty[-1] = 0.0
        self._precise = False
        self._iterations = 20.0  # of the last run of conjugate gradients

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        problem, clock = self.problem, self.clock
        if self.start is None and not self.rough:
            yield from self._sample()
        clock.start()
        self.seed_cuts()
        w = np.zeros(problem.size) if self.start is None else self.start
        m, q = np.zeros(problem.n), np.empty(problem.n)
        if w.any():
            yield from problem.outputs(w, m)
        alpha, a = np.zeros(problem.n), np.zeros(problem.size)
        step, rest = 0.0, 0
        for count in itertools.count(1):
            before = (self.objective, self.bundle.lower)
            lazy = 0.1 * self.tol * self.objective / (problem.C * float(problem.weight.sum()))
            found = problem.duals(alpha, m, h=self.h, lazy=lazy)
            clock.lap("duals")
            yield from problem.add(a, found.rows, found.delta)
            clock.lap("cutting plane")
            objective = 0.5 * problem.inner(w, w) + problem.C * found.risk
            self.keep(w, m, objective)
            self.bound(a, found.offset)
            rounding = problem.C * (found.risk - found.offset - float(a @ w))
            if self._near(rounding, step):
                spread = yield from self._polish(alpha, a, found, w)
                clock.lap("polish")
                if (spread <= EASY or rest >= 4) and not problem.free_intercept:
                    return (yield from self.rounds(self._duals_of(), np.arange(problem.n)))
            yield self.turn(step=step, rounding=self.h)
            if self.certified or (self.rough and self.h <= ROUGH and step >= 0.5):
                return None
            rest = rest + 1 if before == (self.objective, self.bundle.lower) else 0
            if count >= self.patience or (rest >= 8 and np.isfinite(self.patience)):
                return (yield from self.fall_back())
            if rest >= 8:
                return Status.STALLED
            grad = problem.C * a + self._penalty * w
            p = yield from self._direction(grad, found)
            clock.lap("direction")
            yield from problem.outputs(p, q)
            clock.lap("outputs")
            step = line_search.smooth(
                problem, m, q, problem.inner(p, p), problem.inner(w, p), self.h, accuracy=0.05
            )
            w = w + step * p
            problem.advance(m, q, step)
            clock.lap("line search")
            self._tighten(step, -0.5 * float(grad @ p), rounding)
        return None

    def _sample(self) -> Generator[None, None, None]:
        """Start at the rough solution for a random part of the rows, when that is much cheaper than the whole."""
        problem = self.problem
        rows = max(problem.n // 16, 8 * problem.size)
        if rows > problem.n // 4:
            return
        weighty = np.flatnonzero(problem.weight)
        part = problem.subset(np.sort(self._random.choice(weighty, min(rows, len(weighty)), replace=False)))
        if len(np.unique(part.sign)) < 2:
            return
        first = Newton(part, 1e-2, rough=True, seed=self._seed)
        for _ in first.turns():
            yield
        self.start = first.w
        self.h = first.h
        self.clock.seconds["sample"] = sum(first.clock.seconds.values())

    def _near(self, rounding: float, step: float) -> bool:
        """Whether the rows near the margin are known well enough to polish their duals."""
        if self.rough or self.problem.loss != "hinge" or step < 0.1:
            return False
        return rounding < max(10 * self.tol, 1e-2) * self.objective and not self.certified

    def _duals_of(self) -> Coordinates:
        if self._dual is None:
            self._dual = Coordinates(self.problem, self._seed)
        return self._dual

    def _polish(self, alpha: FloatArray, a: FloatArray, found: Duals, w: FloatArray) -> Generator[None, None, float]:
        """Coordinate descent over the band, for a quarter of a pass in reads, raises the bound; the violation left."""
        problem, dual = self.problem, self._duals_of()
        dual.place(problem.C * alpha, -problem.C * a, float(w[-1]))
        near = found.band[4 * self.h * found.slope >= NEAR * problem.weight[found.band]]
        spread = yield from dual.descend(near, 0.25 * problem.n, 1e-3)
        self.bound(*dual.cut())
        return spread

    def _direction(self, grad: FloatArray, found: Duals) -> Generator[None, None, FloatArray]:
        """−H⁻¹·grad, H = penalty + C Σ slope x̃x̃ᵀ over (a sample of) the band."""
        problem = self.problem
        band, slope = self._thin(found)
        weight = problem.C * slope
        if problem.size > DIRECT and self._iterating_pays(len(band)):
            return (yield from self._conjugate_gradients(grad, band, weight))
        ridge = 0.0
        while True:
            H = np.zeros((problem.size, problem.size))
            _core.linear_gram(problem.matrix, band, weight, problem.bias, self._precise, H, problem.threads)
            diagonal = np.diagonal(H) + self._penalty
            H[np.diag_indices(problem.size)] = diagonal + max(ridge, 1e-12) * (1.0 + diagonal.max())
            try:
                factor = sl.cho_factor(H.T, lower=True, overwrite_a=True, check_finite=False)
                p: FloatArray = -sl.cho_solve(factor, grad, check_finite=False)
                return p
            except np.linalg.LinAlgError:  # float32 products on badly scaled data
                if self._precise:
                    ridge = max(10 * ridge, 1e-10)
                self._precise = True
                yield

    def _thin(self, found: Duals) -> tuple[NDArray[np.int64], FloatArray]:
        """The band, sampled in proportion to its slopes when its Gram matrix would cost far more than a pass."""
        problem = self.problem
        width, row = problem.size, max(1.0, problem.stored / problem.n)
        cost = min(24 * row * row, width * width) / 32  # of one row's products, in units of a value read in a pass
        most = max(4 * width, int(2 * problem.n * row / cost))
        smooth = problem.loss == "squared_hinge" and self.relative_gap < 0.05
        if len(found.band) <= most or self.tol < 1e-5 or smooth:
            return found.band, found.slope
        chance = np.minimum(1.0, most * found.slope / found.slope.sum())
        chosen = np.flatnonzero(self._random.random(len(chance)) < chance)
        return found.band[chosen], found.slope[chosen] / chance[chosen]

    def _iterating_pays(self, rows: int) -> bool:
        """Conjugate gradients against a factor, in multiplications at the speed of each (16 and 8 per gather)."""
        width, row = self.problem.size, self.problem.stored / self.problem.n
        factor = rows * width**2 / 32 + width**3 / 48
        return self._iterations * rows * row * 2 < factor

    def _conjugate_gradients(
        self, grad: FloatArray, band: NDArray[np.int64], weight: FloatArray
    ) -> Generator[None, None, FloatArray]:
        problem = self.problem
        p, r = np.zeros(problem.size), -grad
        s, Hs = r.copy(), np.empty(problem.size)
        size = start = float(r @ r)
        for it in range(200):
            _core.linear_product(problem.matrix, band, weight, problem.bias, s, Hs, problem.threads)
            Hs += (self._penalty + 1e-12) * s
            along = size / float(s @ Hs)
            p += along * s
            r -= along * Hs
            size, last = float(r @ r), size
            self._iterations = it + 1.0
            if size <= 1e-3 * start:
                break
            s = r + (size / last) * s
            if it % 8 == 7:
                yield
        return p

    def _tighten(self, step: float, decrease: float, rounding: float) -> None:
        """Lower h once Newton's method is at home at the present one."""
        target = 0.4 * self.tol * self.objective
        if self.problem.loss == "hinge" and step >= 0.5 and decrease < 0.5 * rounding and rounding > target:
            self.h *= max(FALL, 0.9 * float(np.sqrt(target / rounding)))
