"""What is known of a point of the QP, and how well float64 lets it be known: multipliers, violation, gap, rounding.

    f_j = Σ_i β_i K(i, j) is known to about  noise · m_j · Σ_i |β_i| m_i,   |K(i, j)| ≤ m_i m_j,   noise: of one kernel value

For ordinary data that is far below any tolerance. With C, weights or features of many orders of magnitude it is not, and
then no solver can tell in float64 whether the violation is below tol: what is reported is the violation plus this rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem.formulations import QP, ROUNDING

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Point:
    """β, its f = Kβ per sample, and what follows from them. `known` says whose f is up to date."""

    qp: QP
    beta: FloatArray  # halves × samples
    f: FloatArray
    known: BoolArray

    @property
    def alpha(self) -> FloatArray:
        return np.asarray((self.qp.sign * self.beta.ravel()) + 0.0)

    @property
    def score(self) -> FloatArray:
        return np.asarray(self.qp.center - np.tile(self.f, len(self.beta)))

    def movable(self) -> tuple[BoolArray, BoolArray]:
        """Which variables' β can grow, and which can shrink, of those that are known."""
        signed = self.qp.sign * self.qp.upper
        beta, known = self.beta.ravel(), np.tile(self.known, len(self.beta))
        return (beta < np.maximum(signed, 0.0)) & known, (beta > np.minimum(signed, 0.0)) & known

    def multipliers(self) -> FloatArray:
        """Each group's b: the mean score of its free variables, or else the middle of what its bounds allow."""
        score, (up, low) = self.score, self.movable()
        b = np.zeros(len(self.qp.targets))
        for g in range(len(b)):
            rise, fall = up & (self.qp.group == g), low & (self.qp.group == g)
            free = score[rise & fall]
            if len(free):
                b[g] = free[0] + (free - free[0]).mean()
                continue
            ends = [x for x in (score[rise].max(initial=-np.inf), score[fall].min(initial=np.inf)) if np.isfinite(x)]
            b[g] = ends[0] + 0.5 * (ends[-1] - ends[0]) if ends else 0.0
        return b

    def extremes(self, rounding: FloatArray | float = 0.0) -> FloatArray:
        """(max_up of group 0, of 1, min_low of 0, of 1): the largest score that can be followed up, the least down.

        With `rounding` the worst that they can be when each sample's f is off by that.
        """
        score, (up, low) = self.score, self.movable()
        off = np.tile(rounding, len(self.beta)) if isinstance(rounding, np.ndarray) else rounding
        above, below = np.where(up, score + off, -np.inf), np.where(low, score - off, np.inf)
        groups = [self.qp.group == g for g in range(2)]
        return np.array([above[m].max(initial=-np.inf) for m in groups] + [below[m].min(initial=np.inf) for m in groups])

    def dual(self) -> float:
        """cᵀβ − ½ βᵀKβ: a lower bound on the primal objective, and what a turn raises."""
        return float(np.vdot(self.qp.center, self.beta.ravel()) - 0.5 * self.beta.sum(axis=0) @ self.f)

    def gap(self, multipliers: FloatArray) -> float:
        """Primal minus dual as a sum of terms none of which is negative: no cancellation."""
        b = multipliers[self.qp.group] if len(multipliers) else 0.0
        short = self.qp.sign * (self.score - b)
        alpha = self.alpha
        return float(np.sum(np.where(short > 0, (self.qp.upper - alpha) * short, -alpha * short)))

    def missed(self) -> BoolArray:
        """Which groups' sums miss their targets by more than adding them up explains."""
        signed, qp = self.beta.ravel(), self.qp
        sums = [(signed[qp.group == g], target) for g, target in enumerate(qp.targets)]
        off = [abs(float(np.sum(s, dtype=np.longdouble) - t)) > 4 * ROUNDING * np.abs(s).sum() for s, t in sums]
        return np.array(off, bool)


def violation_of(qp: QP, e: FloatArray) -> float:
    """(72) from the extremes; without groups a score of 0 is the other side. A group that cannot move violates nothing."""
    if not len(qp.targets):
        return float(max(e[0], -e[2], 0.0))
    gaps = [float(e[g] - e[2 + g]) for g in range(len(qp.targets))]
    return max([0.0, *(gap for gap in gaps if math.isfinite(gap))])


class Progress:
    """Notices when turns no longer raise the dual value: three that change nothing, or a hundred that hardly do."""

    def __init__(self, dual: float) -> None:
        self.turns, self._idle, self._dual = 0, 0, dual

    def stalled(self, gain: float, dual: float) -> bool:
        self.turns += 1
        self._idle = 0 if gain > 0 else self._idle + 1
        if self._idle >= 3:
            return True
        if self.turns % 100:
            return False
        before, self._dual = self._dual, dual
        return dual - before <= 1e-11 * abs(dual)
