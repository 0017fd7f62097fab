"""What is known of points of QPs, and how well float64 lets it be known: multipliers, violation, gap, rounding.

    f_j = Σ_i β_i K(i, j) is known to about  noise · m_j · Σ_i |β_i| m_i,   |K(i, j)| ≤ m_i m_j,   noise: of one kernel value

For ordinary data that is far below any tolerance. With C, weights or features of many orders of magnitude it is not, and
then no solver can tell in float64 whether the violation is below tol: what is reported is the violation plus this rounding.

One problem or thousands of small ones: their variables stand one after the other, and sums go by problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem.formulations import QP, ROUNDING
from maxmargin.problem.sums import HERE, Sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)
SIDES = np.array([1.0, 1.0, -1.0, -1.0])  # so that of all four extremes the largest is wanted


@dataclass(frozen=True)
class Point:
    """β of one or several QPs of a kind, f = Kβ for every variable, and what follows from them: arrays by problem."""

    sign: FloatArray
    center: FloatArray
    upper: FloatArray
    group: NDArray[np.int8]
    targets: FloatArray  # problems × groups
    begin: IntArray  # where each problem's variables begin
    beta: FloatArray
    f: FloatArray
    known: BoolArray  # whose f is up to date
    over: Sums = HERE  # of one problem whose samples several ranks hold, all of them

    @classmethod
    def of(
        cls, qp: QP, beta: FloatArray, f: FloatArray, known: BoolArray | None = None, over: Sums = HERE
    ) -> Point:
        """Of one problem; β has a row per half of the samples, f and known an entry per sample."""
        halves = len(beta)
        whose = np.ones(qp.n_variables, bool) if known is None else np.tile(known, halves)
        start = np.zeros(1, np.int64)
        state = (beta.ravel(), np.tile(f, halves), whose)
        return cls(qp.sign, qp.center, qp.upper, qp.group, qp.targets[None, :], start, *state, over)

    @cached_property
    def alpha(self) -> FloatArray:
        return np.asarray(self.sign * self.beta + 0.0)

    @cached_property
    def score(self) -> FloatArray:
        return np.asarray(self.center - self.f)

    def total(self, terms: FloatArray) -> FloatArray:
        """Sums by problem."""
        if len(self.begin) == 1:  # pairwise, and so more accurate than reduceat
            return np.array([self.over.of(terms)])
        return np.asarray(np.add.reduceat(terms, self.begin))

    @cached_property
    def movable(self) -> tuple[BoolArray, BoolArray]:
        """Which variables' β can grow, and which can shrink, of those that are known."""
        signed = self.sign * self.upper
        up, low = self.beta < np.maximum(signed, 0.0), self.beta > np.minimum(signed, 0.0)
        return up & self.known, low & self.known

    @cached_property
    def _plain_extremes(self) -> FloatArray:
        return self._extremes(0.0)

    def extremes(self, rounding: FloatArray | None = None) -> FloatArray:
        """(max_up of group 0, of 1, min_low of 0, of 1): the largest score that can be followed up, the least down.

        With `rounding` the worst that they can be when f is off by that.
        """
        mine = self._plain_extremes if rounding is None else self._extremes(rounding)
        return np.asarray(self.over.most(mine) * SIDES)

    def _extremes(self, rounding: FloatArray | float) -> FloatArray:
        """With the signs of SIDES, and of the samples held here."""
        score, (up, low) = self.score, self.movable
        above, below = np.where(up, score + rounding, -np.inf), np.where(low, score - rounding, np.inf)
        mine = [self.group == g for g in range(2)]
        tops = [self._most(np.where(m, above, -np.inf)) for m in mine]
        bottoms = [self._most(np.where(m, -below, -np.inf)) for m in mine]
        return np.stack([*tops, *bottoms], axis=1)

    def _most(self, values: FloatArray) -> FloatArray:
        """The largest by problem."""
        if len(self.begin) == 1:
            return np.array([values.max(initial=-np.inf)])
        return np.asarray(np.maximum.reduceat(values, self.begin))

    def multipliers(self) -> FloatArray:
        """Each group's b: the mean score of its free variables, or else the middle of what its bounds allow."""
        score, (up, low), e = self.score, self.movable, self.extremes()
        b: FloatArray = np.zeros(self.targets.shape)
        sizes = np.diff(np.append(self.begin, len(score)))
        for g in range(self.targets.shape[1]):
            top, bottom = e[:, g], e[:, 2 + g]
            free = up & low & (self.group == g)
            near = np.where(np.isfinite(top), top, 0.0)  # the mean of differences is more accurate than that of scores
            number = self.total(free.astype(np.float64))
            mean = near + self.total(np.where(free, score - np.repeat(near, sizes), 0.0)) / np.maximum(number, 1.0)
            some = np.where(np.isfinite(top), top, np.where(np.isfinite(bottom), bottom, 0.0))
            other = np.where(np.isfinite(bottom), bottom, some)
            b[:, g] = np.where(number > 0, mean, some + 0.5 * (other - some))
        return b

    def dual(self) -> FloatArray:
        """cᵀβ − ½ βᵀKβ: a lower bound on the primal objective, and what a turn raises."""
        return np.asarray(self.total(self.center * self.beta) - 0.5 * self.total(self.beta * self.f))

    def gap(self, multipliers: FloatArray) -> FloatArray:
        """Primal minus dual as a sum of terms none of which is negative: no cancellation."""
        b: FloatArray | float = 0.0
        if multipliers.shape[1]:
            problem = np.repeat(np.arange(len(self.begin)), np.diff(np.append(self.begin, len(self.beta))))
            b = multipliers[problem, self.group]
        short, alpha = self.sign * (self.score - b), self.alpha
        return self.total(np.where(short > 0, (self.upper - alpha) * short, -alpha * short))

    def missed(self) -> BoolArray:
        """Of each problem, whether a group's sum misses its target by more than adding it up explains."""
        off = np.zeros(len(self.begin), bool)
        for g in range(self.targets.shape[1]):
            mine = np.where(self.group == g, self.beta, 0.0)
            one = len(self.begin) == 1
            sums = np.array([self.over.exact(mine)]) if one else np.add.reduceat(mine.astype(np.longdouble), self.begin)
            off |= np.abs(sums - self.targets[:, g]).astype(np.float64) > 4 * ROUNDING * self.total(np.abs(mine))
        return off


def cancels(error: FloatArray | float, tol: float) -> Any:
    """Whether float32 kernel values are fine enough, `error` being what chance leaves of their rounding in f.

    Rounding of many values cancels for the most part: four times what chance leaves of it is no reason to look.
    """
    return 4 * error <= 0.25 * tol


def violations(targets: int, e: FloatArray) -> FloatArray:
    """(72) from the extremes, a row per problem; without groups a score of 0 is the other side. A group that cannot move
    violates nothing."""
    if not targets:
        return np.asarray(np.maximum(np.maximum(e[:, 0], -e[:, 2]), 0.0))
    gaps = e[:, :targets] - e[:, 2 : 2 + targets]
    return np.asarray(np.where(gaps == -np.inf, 0.0, gaps).max(axis=1, initial=0.0))  # NaN if one is


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
