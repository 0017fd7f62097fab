"""The cuts gathered so far, their reduced problem, and the lower bound that never falls.

A cut that carried no weight for `IDLE` solves in a row is dropped. The weighted sum of all cuts, itself a cut, goes
in first, so that the bound survives the dropping.

Of the problem only numbers are kept: a bundle may outlive the fit (warm starts) and must not hold the samples.
"""

from __future__ import annotations

import numpy as np

from maxmargin.cutting_plane import reduced_qp
from maxmargin.cutting_plane.problem import NONE, FloatArray, LinearProblem, without

IDLE = 20  # the age at which the reference implementations drop a cut


class Bundle:
    """R(w) ≥ ⟨a_j, w⟩ + b_j for each of the cuts j."""

    def __init__(self, problem: LinearProblem) -> None:
        self._measure(problem)
        self.lower = 0.0
        self.value = 0.0  # of the last reduced problem; below `lower` while another solver's bound leads
        self._cuts = np.zeros((8, problem.size))
        self._offsets = np.zeros(8)
        self._gram = np.zeros((8, 8))
        self._idle = np.zeros(8, dtype=np.int64)
        self._beta = np.zeros(0)  # of the last reduced problem; cuts added since have none
        self.count = 0

    def add(self, a: FloatArray, b: float) -> None:
        """Keep one more cut."""
        t = self.count
        if t == len(self._offsets):
            self._grow()
        self._cuts[t], self._offsets[t], self._idle[t] = a, b, 0
        row = self._cuts[: t + 1] @ without(a, self._free)
        self._gram[t, : t + 1] = row
        self._gram[: t + 1, t] = row
        self.count += 1

    def solve(self) -> FloatArray:
        """Raise the bound; return the reduced problem's solution w."""
        t, C = self.count, self._C
        free = self._cuts[:t, self._free].T if self._free != NONE else None
        start = np.append(self._beta, np.zeros(t - len(self._beta)))
        beta, intercept = reduced_qp.solve(self._gram, self._offsets[:t], C, free, self.value, start)
        self._beta = beta
        total = beta @ self._cuts[:t]
        w = -C * total
        if free is not None:
            total[self._free] = 0.0
            w[self._free] = intercept
        value = C * float(beta @ self._offsets[:t])
        norm = float(without(w, self._free) @ w)
        self.value = value - 0.5 * norm - self._rounding * abs(value + norm)
        self.lower = max(self.lower, self.value)
        share = beta * np.abs(self._offsets[:t])  # not β itself: a heavy cut balances light ones with a tiny one
        self._idle[:t] = np.where(share > 1e-9 * share.sum(), 0, self._idle[:t] + 1)
        if (self._idle[:t] >= IDLE).any():
            self._drop(total, float(beta @ self._offsets[:t]))
        return w

    def adopt(self, problem: LinearProblem) -> None:
        """The same cuts under another C: they bound the risk, not the objective, so only the bound starts anew."""
        self._measure(problem)
        self.lower = self.value = 0.0
        if self.count:
            self.solve()

    def _measure(self, problem: LinearProblem) -> None:
        self._C, self._free = problem.C, problem.free
        self._rounding = problem.rounding(1.0)

    def _drop(self, total: FloatArray, offset: float) -> None:
        keep = np.flatnonzero(self._idle[: self.count] < IDLE)
        k = len(keep)
        self._cuts[:k], self._offsets[:k], self._idle[:k] = self._cuts[keep], self._offsets[keep], self._idle[keep]
        self._gram[:k, :k] = self._gram[np.ix_(keep, keep)]
        self.count = k
        self.add(total, offset)
        self._beta = np.append(np.zeros(k), 1.0)

    def _grow(self) -> None:
        size = 2 * len(self._offsets)
        t = self.count
        cuts, gram = np.zeros((size, self._cuts.shape[1])), np.zeros((size, size))
        cuts[:t], gram[:t, :t] = self._cuts[:t], self._gram[:t, :t]
        self._cuts, self._gram = cuts, gram
        self._offsets, self._idle = np.resize(self._offsets, size), np.resize(self._idle, size)
