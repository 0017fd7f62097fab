"""OCAS and CPA: linear machines by cutting planes (Franc & Sonnenburg, ICML 2008, algorithm 1).

    minimise  F(w) = ½‖w‖² + C·R(w)        R is replaced by the largest of its cuts R(w) ≥ ⟨a_j, w⟩ + b_j

One turn: solve the reduced problem for w_t (its value bounds F from below), compute the outputs of w_t (the one pass
over X), search exactly along w_b + k(w_t − w_b) for the best point so far w_b (changes 1 and 2), and cut at
w_c = (1 − λ)w_b + λ w_t (change 3). `cpa` leaves the three changes out: it cuts at w_t and keeps the best w_t.

Cuts come from duals: a = −Σ alpha_i sign_i x_i with alpha_i = weight_i where m_i ≤ 1 at w_c. Between turns only the
samples whose alpha changed move the cut; every 20 turns, or when far heavier samples have come and gone than are left,
it is summed anew, so that rounding does not gather.

Stops at (F(w_b) − F_t)/F(w_b) ≤ tol. F_t never exceeds the optimum, so the gap is a certificate.
Cost per turn: one pass over X, the flipped rows, O(n) for the search, O(t²) for t cuts.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from maxmargin.cutting_plane.bundle import Bundle
from maxmargin.cutting_plane.certified import Certified
from maxmargin.cutting_plane.problem import FloatArray, LinearProblem, Pause
from maxmargin.runtime import Status, Turn

REBUILD = 20  # turns between two fresh sums of the cut
CANCELLED = 1e3  # weight added and taken away, per weight left, that calls for a fresh sum before


class Ocas(Certified):
    """Algorithm 1 (`optimised`), or the standard cutting plane algorithm."""

    def __init__(
        self, problem: LinearProblem, tol: float, *, optimised: bool = True, mix: float = 0.1,
        bundle: Bundle | None = None, start: FloatArray | None = None,
    ) -> None:
        super().__init__(problem, tol, bundle, start)
        self.optimised = optimised
        self.mix = mix if optimised else 1.0
        self._alpha, self._a, self._moved = np.zeros(problem.n), np.zeros(problem.size), 0.0  # of the last cut

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        problem, clock = self.problem, self.clock
        if (yield from self.judge_start()):
            yield self.turn(step=0.0)
            return None
        reduced, margins = self.w, self.m.copy()
        self.seed_cuts()
        last, stuck, count = (np.inf, -np.inf), 0, 0
        if self.bundle.count:
            reduced = self.bundle.solve()
            yield from problem.outputs(reduced, margins)
            self.improve(reduced, margins)
        while True:
            yield from self._cut(margins, fresh=count % REBUILD == 0)
            reduced = self.bundle.solve()
            clock.lap("reduced problem")
            yield from problem.outputs(reduced, margins)
            clock.lap("outputs")
            step = self._step(reduced, margins)
            clock.lap("line search")
            count += 1
            yield self.turn(step=step)
            if self.certified:
                return None
            # Both values at rest for many turns: float64 has no more to give.
            state = (self.objective, self.bundle.value)
            stuck = stuck + 1 if state[0] >= last[0] and state[1] <= last[1] else 0
            last = state
            if stuck >= 30:
                return Status.STALLED
            clock.start()

    def _step(self, w: FloatArray, m: FloatArray) -> float:
        """Changes 1 and 2, or for CPA: w_t itself when it is better."""
        if self.optimised:
            return self.improve(w, m)
        objective = 0.5 * self.problem.inner(w, w) + self.problem.C * self.problem.risk(m)
        if objective < self.objective:
            self.w, self.m, self.objective = w, m.copy(), objective
            return 1.0
        return 0.0

    def _cut(self, margins: FloatArray, fresh: bool) -> Pause:
        """Cut at (1 − mix)·best + mix·reduced."""
        alpha, a = self._alpha, self._a
        if fresh:
            alpha[:], a[:], self._moved = 0.0, 0.0, 0.0
        found = self.problem.duals(alpha, self.m, margins, self.mix)
        rows, delta = found.rows, found.delta
        self._moved += float(np.abs(delta).sum())
        if self._moved > CANCELLED * float(alpha.sum()):
            rows, a[:] = np.flatnonzero(alpha), 0.0
            delta = self.problem.sign[rows] * alpha[rows]
            self._moved = float(alpha.sum())
        yield from self.problem.add(a, rows, delta)
        self.bundle.add(a, found.offset)
        self.clock.lap("cutting plane")
