"""Where a run of the decomposition method stands: β, f = Kβ, and which samples are active.

    part     the active samples' state in the core, with the cache of kernel rows
    left     samples left out by shrinking, with the β that their f reflects
    pending  samples whose f is still to be summed up, at the start

All passes over many samples go piece by piece: a run stopped between two of them can go on, or report what it knows.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.costs import Costs
from maxmargin.decomposition.ending import Point, violations
from maxmargin.decomposition.options import Options
from maxmargin.decomposition.working_set import MB, largest_tile, row_bytes, working_set_size
from maxmargin.kernel_values import Source
from maxmargin.problem.formulations import QP
from maxmargin.runtime import Comm

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Overflow(ArithmeticError):
    """A kernel value, a sum of them or a variable is not a finite number."""


class State:
    """β has a row per half of the samples: one, or two for regression."""

    def __init__(
        self, qp: QP, kernel: Source, options: Options, comm: Comm, alpha: FloatArray, f: FloatArray | None, costs: Costs
    ) -> None:
        self.qp, self.kernel, self.options, self.comm, self.costs = qp, kernel, options, comm, costs
        self.halves = qp.n_variables // qp.n
        shape = (self.halves, qp.n)
        self.center = np.ascontiguousarray(qp.center.reshape(shape))
        signed = qp.sign * qp.upper
        self.lo = np.minimum(signed, 0.0).reshape(shape)
        self.hi = np.maximum(signed, 0.0).reshape(shape)
        self.group = qp.group.reshape(shape)
        self.size = working_set_size(
            options.working_set_size, options.cache_size, qp.n, qp.n_variables, kernel.dtype.itemsize
        )
        self.stand_at((qp.sign * alpha).reshape(shape), f)

    def stand_at(self, beta: FloatArray, f: FloatArray | None = None) -> None:
        """At β, with its f or with all of it to be computed."""
        self.beta = beta.copy()
        self.f = np.zeros(self.qp.n) if f is None else f.copy()
        self.pending: list[slice] = list(self.kernel.pieces(self.qp.n, self.support)) if f is None and self.support else []
        self.part: Any = None
        self.left: list[tuple[IntArray, FloatArray]] = []
        self.violation = np.inf  # of the active samples
        self.path = 0.0  # what β has gone through since f was summed: Σ |Δβ_i| m_i

    def widen(self, beta: FloatArray) -> bool:
        """Go on from β with float64 kernel values; whether they can be had and one row of them fits the cache."""
        wider = self.kernel.wider()
        if wider is None or row_bytes(self.qp.n, wider.dtype.itemsize) > self.options.cache_size * MB:
            return False
        self.kernel = wider
        self.size = min(self.size, largest_tile(self.options.cache_size, wider.dtype.itemsize))
        self.stand_at(beta)
        return True

    @property
    def support(self) -> int:
        """On how many samples the model rests: two halves that cancel are none."""
        return int(np.count_nonzero(self.coef))

    @property
    def coef(self) -> FloatArray:
        """What f = K·coef is summed from: of regression's two halves, which may both be large, their sum."""
        return np.asarray(self.beta.sum(axis=0))

    # ---- f ---------------------------------------------------------------------------------------------------------

    def sum_up(self) -> Generator[None, None, None]:
        """f where it is pending."""
        everyone = np.arange(self.qp.n)
        support = np.flatnonzero(self.coef)
        coef = self.coef[support]
        while self.pending:
            with self.costs.clock("start"):
                piece = everyone[self.pending[0]]
                self.f[piece] = self.kernel.sum(piece, support, coef)
                self.pending.pop(0)
                self.costs.summed(float(len(piece)) * len(support))
            yield None

    def activate(self) -> float:
        """Everyone is active from here. Returns the dual value."""
        with self.costs.clock("start"):
            state = (self.center, self.lo, self.hi, self.beta, self.group, self.f)
            self.part = self.kernel.part(*state, self._bytes_for_rows())
            dual = self.dual()
        if not np.isfinite(dual):
            raise Overflow
        return dual

    def _bytes_for_rows(self) -> float:
        """What the tile, and a smaller one while it grows, leave of the cache; they never take more than half of it."""
        budget = self.options.cache_size * MB
        itemsize = int(self.kernel.dtype.itemsize)
        return max(budget - 1.25 * self.size**2 * itemsize, budget / 2, row_bytes(self.qp.n, itemsize))

    def move(self, variables: IntArray, samples: IntArray, beta: FloatArray) -> tuple[float, bool]:
        """Variables of these samples take new values and f follows: what that gains beside, and whether anything moved."""
        with self.costs.clock("update"):
            then = self.beta[:, samples].sum(axis=0)
            self.beta.ravel()[variables] = beta
            gain = self._one_half_each(samples)
            self.part.write(variables, self.beta.ravel()[variables])
            change = self.beta[:, samples].sum(axis=0) - then
            moved = change != 0
            hits = self.kernel.update(self.part, samples[moved], change[moved])
            self.costs.updated(int(moved.sum()), hits, self.part.size)
            m = self.kernel.magnitude  # an array, or the number that stands for all
            self.path += float(np.sum(np.abs(change) * (m[samples] if isinstance(m, np.ndarray) else m)))
        return gain, bool(moved.any())

    def _one_half_each(self, samples: IntArray) -> float:
        """Regression with one sum: a and a* both positive gain nothing, and hide their difference. Returns what it gains."""
        if self.halves == 1 or len(self.qp.targets) == 2:
            return 0.0
        both = self.beta[:, samples]
        common = np.minimum(both[0], -both[1])
        some = samples[common > 0]
        if not len(some):
            return 0.0
        common, total = common[common > 0], self.beta[:, some].sum(axis=0)
        self.beta[0, some], self.beta[1, some] = np.maximum(total, 0.0), np.minimum(total, 0.0)
        self.part.write(np.concatenate([some, some + self.qp.n]), self.beta[:, some].ravel())
        return float(common @ (self.center[1, some] - self.center[0, some]))

    # ---- what it says ----------------------------------------------------------------------------------------------

    def point(self, known: BoolArray | None = None) -> Point:
        """All samples, with the f of the active ones brought up to date."""
        if self.part is not None:
            self.f[self.part.active] = self.part.f
        return Point.of(self.qp, self.beta, self.f, known)

    def dual(self) -> float:
        """cᵀβ − ½ βᵀKβ. By sample: regression's halves may be large where their sum, and so f, is small."""
        return float(np.vdot(self.center, self.beta) - 0.5 * self.coef @ self.f)

    def look(self) -> FloatArray:
        """(max_up per group, min_low per group) over the active samples of all ranks; keeps the violation."""
        mine = np.array(self.part.extremes())
        if np.isnan(mine).any():
            raise Overflow
        extremes = self.reduced(mine)
        self.violation = self.violation_at(extremes)
        return extremes

    def reduced(self, mine: FloatArray) -> FloatArray:
        """Extremes over all ranks."""
        if not len(self.qp.targets):  # no equality: a score of 0 is the other side
            mine = np.array([max(mine[0], 0.0), mine[1], min(mine[2], 0.0), mine[3]])
        up = self.comm.allreduce(mine[:2], "max")
        low = self.comm.allreduce(mine[2:], "min")
        return np.concatenate([up, low])

    def violation_at(self, extremes: FloatArray) -> float:
        return float(violations(len(self.qp.targets), extremes[None, :])[0])

    # ---- shrinking -------------------------------------------------------------------------------------------------

    def shrink(self, extremes: FloatArray) -> BoolArray | None:
        """Leave out the samples that cannot move: who stays, or None if it is not worth it."""
        with self.costs.clock("shrink"):
            keep = self.part.movable(*extremes)
            if len(keep) >= 0.8 * self.part.size or len(keep) < 2:
                return None
            active = self.part.active
            out = np.delete(active, keep)
            self.f[active] = self.part.f
            self.left.append((out, self.coef))
            self.part.restrict(keep)
            still = np.zeros(self.qp.n, bool)
            still[active[keep]] = True
            return still

    def unshrink(self) -> Generator[None, None, None]:
        """Bring the inactive samples up to date and take back those that can move."""
        self.costs.counts["unshrinks"] += 1
        now = self.coef
        while True:  # each piece once
            stale = next((k for k, (_, then) in enumerate(self.left) if then is not now), None)
            if stale is None:
                break
            with self.costs.clock("shrink"):
                ids, then = self.left.pop(stale)
                moved = np.flatnonzero(now != then)
                end = min(next(self.kernel.pieces(len(ids), len(moved))).stop, len(ids))
                some = ids[:end]
                if len(moved):
                    self.f[some] += self.kernel.sum(some, moved, (now - then)[moved])
                self.left += [(some, now)] + ([(ids[end:], then)] if end < len(ids) else [])
            yield None
        with self.costs.clock("shrink"):
            extremes = self.reduced(self.point().extremes()[0])
            ids = np.sort(np.concatenate([ids for ids, _ in self.left]))
            back = self._can_move(ids, extremes)
            took = ids[back]
            state = (self.center, self.lo, self.hi, self.beta, self.group)
            self.part.extend(took, *(np.ascontiguousarray(a[:, took]) for a in state), self.f[took])
            self.left = [(ids[~back], now)] if not back.all() else []

    def _can_move(self, ids: IntArray, e: FloatArray) -> BoolArray:
        """Which samples are not held at a bound by a score beyond the other side's extreme."""
        score, group, beta = self.center[:, ids] - self.f[ids], self.group[:, ids], self.beta[:, ids]
        rise = (beta < self.hi[:, ids]) & (score >= e[2 + group])
        fall = (beta > self.lo[:, ids]) & (score <= e[group])
        return np.asarray((rise | fall).any(axis=0))

    def unshrink_seconds(self) -> float:
        """About how long it would take to bring the inactive samples up to date."""
        return self.costs.expected(sum(len(ids) for ids, _ in self.left) * float(self.support))
