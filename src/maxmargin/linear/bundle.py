"""The cuts gathered so far, their reduced problem, and the lower bound that never falls.

A cut that carried no weight for `IDLE` solves in a row is dropped. The weighted sum of all cuts, itself a cut, goes
in first, so that the bound survives the dropping.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.linear import reduced_qp
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.rounding import NONE, Cut, FloatArray, gamma, without

IDLE = 20  # the age at which the reference implementations drop a cut


@dataclass(frozen=True)
class Cuts:
    """What outlives a fit, for warm starts: cuts hold for every C on the same samples, labels and weights.

    None of the arrays is ever changed, and none holds a sample.
    """

    a: FloatArray  # one row per cut
    numbers: FloatArray  # rows: offset, mass, drift
    gram: FloatArray
    idle: NDArray[np.int64]


class Bundle:
    """R(w) ≥ ⟨a_j, w⟩ + b_j for each of the cuts j, up to the drift of each (see `rounding`)."""

    def __init__(self, problem: LinearProblem, known: Cuts | None = None) -> None:
        self._bounds = problem.bounds
        self._first = None if problem.alone else problem.first
        self.lower = 0.0
        self.value = 0.0  # of the last reduced problem; below `lower` while another solver's bound leads
        self.count = 0 if known is None else len(known.idle)
        room = max(8, self.count)
        self._cuts = np.zeros((room, problem.size))
        self._numbers = np.zeros((3, room))  # rows: offset, mass, drift
        self._gram = np.zeros((room, room))
        self._idle = np.zeros(room, dtype=np.int64)
        self._beta = np.zeros(0)  # of the last reduced problem; cuts added since have none
        if known is not None and self.count:
            t = self.count
            self._cuts[:t], self._numbers[:, :t], self._gram[:t, :t] = known.a, known.numbers, known.gram
            self._idle[:t] = known.idle
            self.solve()

    def kept(self, one_more: Cut | None = None) -> Cuts:
        """A copy of the cuts, and of another."""
        if one_more is not None:
            count = self.count
            self.add(one_more)
            cuts = self.kept()
            self.count = count
            return cuts
        t = self.count
        return Cuts(
            self._cuts[:t].copy(), self._numbers[:, :t].copy(), self._gram[:t, :t].copy(), self._idle[:t].copy()
        )

    def add(self, cut: Cut) -> None:
        """Keep one more cut."""
        cut = self._balanced(cut)
        t = self.count
        if t == len(self._idle):
            self._grow()
        self._cuts[t], self._numbers[:, t], self._idle[t] = cut.a, (cut.b, cut.mass, cut.drift), 0
        row = self._cuts[: t + 1] @ without(cut.a, self._bounds.free)
        self._gram[t, : t + 1] = row
        self._gram[: t + 1, t] = row
        self.count += 1

    def solve(self) -> FloatArray:
        """Raise the bound; return the reduced problem's solution w."""
        t, C, where = self.count, self._bounds.C, self._bounds.free
        free = self._cuts[:t, where].T if where != NONE else None
        start = np.append(self._beta, np.zeros(t - len(self._beta)))
        beta, intercept = reduced_qp.solve(self._gram, self._numbers[0, :t], C, free, self.value, start)
        mixed = self._mixture(beta)
        if self._first is not None:
            beta, intercept, mixed = _agreed(self._first, beta, intercept, mixed)
        self.value = self._bounds.lower(mixed.a, mixed.b, mixed.drift)
        self.lower, self._beta = max(self.lower, self.value), beta
        w = -C * mixed.a
        w[where] = intercept
        share = beta * np.abs(self._numbers[0, :t])  # not β itself: a heavy cut balances light ones with a tiny one
        self._idle[:t] = np.where(share > 1e-9 * share.sum(), 0, self._idle[:t] + 1)
        if (self._idle[:t] >= IDLE).any():
            self._drop(mixed)
        return w

    def _mixture(self, beta: FloatArray) -> Cut:
        """Σ β_j times cut j, and how far the true one can be."""
        offset, masses, drifts = self._numbers[:, : len(beta)]
        rounded, mass = gamma(len(beta) + 2), float(beta @ masses)
        a, b = beta @ self._cuts[: len(beta)], float(beta @ offset) - rounded * float(beta @ np.abs(offset))
        where = self._bounds.free
        drift = float(beta @ drifts) + rounded * mass + float(np.abs(a[where]).sum()) / self._bounds.bias
        a[where] = 0.0  # but for rounding
        return Cut(a, b, mass, drift)

    def _balanced(self, cut: Cut) -> Cut:
        """A cut whose intercepts cancel but for rounding must not ask to be balanced: a share of 1e-18 is none."""
        where = self._bounds.free
        astray = float(np.abs(cut.a[where]).sum()) / self._bounds.bias
        if not 0 < astray <= cut.drift:
            return cut
        return Cut(without(cut.a, where), cut.b, cut.mass, cut.drift + astray)

    def _drop(self, mixed: Cut) -> None:
        """Leave out idle cuts, after the mixture that the bound rests on."""
        keep = np.flatnonzero(self._idle[: self.count] < IDLE)
        k = len(keep)
        self._cuts[:k], self._numbers[:, :k], self._idle[:k] = self._cuts[keep], self._numbers[:, keep], self._idle[keep]
        self._gram[:k, :k] = self._gram[np.ix_(keep, keep)]
        self.count = k
        self.add(mixed)
        self._beta = np.append(np.zeros(k), 1.0)

    def _grow(self) -> None:
        size, t = 2 * len(self._idle), self.count
        cuts, gram, numbers = np.zeros((size, self._cuts.shape[1])), np.zeros((size, size)), np.zeros((3, size))
        cuts[:t], gram[:t, :t], numbers[:, :t] = self._cuts[:t], self._gram[:t, :t], self._numbers[:, :t]
        self._cuts, self._gram, self._numbers, self._idle = cuts, gram, numbers, np.resize(self._idle, size)


def _agreed(
    first: Callable[[FloatArray], FloatArray], beta: FloatArray, intercept: FloatArray, mixed: Cut
) -> tuple[FloatArray, FloatArray, Cut]:
    """The solution of the process that leads: another one may have rounded it differently."""
    numbers = np.array([mixed.b, mixed.mass, mixed.drift])
    parts = [beta, intercept, numbers, mixed.a]
    beta, intercept, numbers, a = np.split(first(np.concatenate(parts)), np.cumsum([len(part) for part in parts[:-1]]))
    return beta, intercept, Cut(a, *numbers.tolist())
