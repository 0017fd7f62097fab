"""OCAS and CPA: linear machines by cutting planes (Franc & Sonnenburg, ICML 2008, algorithm 1).

    minimise  F(w) = ½‖w‖² + C·R(w)        R is replaced by the largest of its cuts R(w) ≥ ⟨a_j, w⟩ + b_j

One turn: solve the reduced problem for w_t (its value bounds F from below), compute the outputs of w_t (the one pass
over X), search exactly along w_b + k(w_t − w_b) for the best point so far w_b (changes 1 and 2), and cut at
w_c = (1 − λ)w_b + λ w_t (change 3). `cpa` leaves the three changes out: it cuts at w_t and keeps the best w_t.

Cuts come from duals: a = −Σ alpha_i sign_i x_i with alpha_i = weight_i where m_i ≤ 1 at w_c. Between turns only the
samples whose alpha changed move the cut; where far heavier samples have come and gone than are left, and the rounding
that this has gathered matters, it is summed anew.

Stops at (F(w_b) − F_t)/F(w_b) ≤ tol. F_t never exceeds the optimum, so the gap is a certificate.
Cost per turn: one pass over X, the flipped rows, O(n) for the search, O(t²) for t cuts.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from maxmargin.linear.bundle import Cuts
from maxmargin.linear.certified import Certified
from maxmargin.linear.problem import LinearProblem, Pause, Sum
from maxmargin.linear.rounding import FloatArray
from maxmargin.runtime import Status, Turn


class Ocas(Certified):
    """Algorithm 1 (`optimised`), or the standard cutting plane algorithm."""

    def __init__(
        self, problem: LinearProblem, tol: float, *, optimised: bool = True, mix: float = 0.1,
        known: Cuts | None = None, start: FloatArray | None = None, duals: FloatArray | None = None,
    ) -> None:
        super().__init__(problem, tol, known, start, duals)
        self.optimised = optimised
        self.mix = mix if optimised else 1.0
        self._alpha, self._sum = np.zeros(problem.hinges), Sum(problem)  # of the last cut

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        problem, clock = self.problem, self.clock
        if (yield from self.judge_start()):
            yield self.turn(step=0.0)
            return None
        reduced, margins = self.best.w, self.best.m.copy()
        self.seed_cuts()
        self._alpha, self._sum = yield from self.seed_duals()
        self._store_cut()
        last, stuck = (np.inf, -np.inf), 0
        if self.bundle.count:
            reduced = self.bundle.solve()
            yield from problem.outputs(reduced, margins)
            self.improve(reduced, margins)
        while True:
            yield from self._cut(margins)
            reduced = self.bundle.solve()
            clock.lap("reduced problem")
            yield from problem.outputs(reduced, margins)
            clock.lap("outputs")
            step = self._step(reduced, margins)
            clock.lap("line search")
            if (yield from self.report(step=step)):
                return None
            # Both values at rest for many turns: float64 has no more to give.
            state = (self.objective, self.bundle.value)
            stuck = stuck + 1 if state[0] >= last[0] and state[1] <= last[1] else 0
            last = state
            if stuck >= 30:
                return Status.STALLED
            clock.start()

    def duals(self) -> FloatArray | None:
        return self._alpha

    def _step(self, w: FloatArray, m: FloatArray) -> float:
        """Changes 1 and 2, or for CPA: w_t itself when it is better."""
        if self.optimised:
            return self.improve(w, m)
        objective = self.problem.value(w, self.problem.risk(m))
        better = objective < self.objective
        self.keep(w, m, objective)
        return float(better)

    def _cut(self, margins: FloatArray) -> Pause:
        """Cut at (1 − mix)·best + mix·reduced."""
        found = self.problem.duals(self._alpha, self.best.m, margins, self.mix)
        cut = yield from self.summed(self._sum, self._alpha, found)
        self.bundle.add(cut)
        self.clock.lap("cutting plane")
