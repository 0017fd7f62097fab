"""Where a run of the decomposition method stands: β, f = Kβ, and which samples are active.

    part     the state of the samples held here, in the core, with the cache of kernel rows: it alone has β and f
    left     samples left out by shrinking, with the β that their f reflects
    pending  samples whose f is still to be summed up, at the start

All passes over many samples go piece by piece: a run stopped between two of them can go on, or report what it knows.

Where several ranks share a run, each has a part, and all call the same methods in the same order. Sums and extremes are then
those of all ranks, and so is what is decided by them: a branch that a single rank took would leave the others waiting.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.costs import Costs
from maxmargin.decomposition.ending import SIDES, Point, violations
from maxmargin.decomposition.options import Options
from maxmargin.decomposition.working_set import MB, largest_tile, row_bytes, working_set_size
from maxmargin.kernel_values import Source
from maxmargin.problem.formulations import QP
from maxmargin.problem.sums import HERE, Sums
from maxmargin.runtime import Comm, RankSums, raised_by_all

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Overflow(ArithmeticError):
    """A kernel value, a sum of them or a variable is not a finite number."""


@dataclass(frozen=True)
class Seats:
    """State of some samples, of whichever rank: a row per half and a column per sample, and f by sample."""

    samples: IntArray
    beta: FloatArray
    lo: FloatArray
    hi: FloatArray
    center: FloatArray
    group: NDArray[np.int8]
    f: FloatArray

    @property
    def coef(self) -> FloatArray:
        return np.asarray(self.beta.sum(axis=0))


class State:
    """β has a row per half of the samples: one, or two for regression. `qp` is that of the samples held here."""

    def __init__(
        self, qp: QP, kernel: Source, options: Options, alpha: FloatArray, f: FloatArray | None, costs: Costs, halves: int
    ) -> None:
        self.qp, self.kernel, self.options, self.comm, self.costs = qp, kernel, options, kernel.comm, costs
        self.over: Sums = over(self.comm)
        self.halves, self.shape = halves, (halves, qp.n)
        self.center = np.ascontiguousarray(qp.center.reshape(self.shape))
        signed = qp.sign * qp.upper
        self.bounds = np.minimum(signed, 0.0).reshape(self.shape), np.maximum(signed, 0.0).reshape(self.shape)
        self.longest = int(self.over.most(qp.n))  # row of kernel values on any rank
        with raised_by_all():
            self.size = working_set_size(
                options.working_set_size, options.cache_size, self.longest, halves * kernel.total, kernel.dtype.itemsize,
                halves,
            )  # fmt: skip
        self.stand_at((qp.sign * alpha).reshape(self.shape), f)

    def stand_at(self, beta: FloatArray, f: FloatArray | None = None) -> None:
        """At β, with its f or with all of it to be computed."""
        known = np.zeros(self.qp.n) if f is None else np.ascontiguousarray(f, np.float64)
        group = self.qp.group.reshape(self.shape)
        with self.costs.clock("start"):
            self.part: Any = self.kernel.part(
                self.center, *self.bounds, np.ascontiguousarray(beta), group, known, self._bytes_for_rows()
            )
        self.support = int(self.over.of(self.part.support))
        some = f is None and self.support
        self.pending: list[slice] = list(self.kernel.pieces(self.longest, self.support)) if some else []
        self.left: list[tuple[IntArray, FloatArray]] = []
        self.active = self.kernel.total
        self.violation = np.inf  # of the active samples
        self.exact: tuple[FloatArray, FloatArray] | None = None  # f in float64 (NaN: not known), and the coef it is of
        self.error = 0.0  # of f, in units of m: the largest that any sample was found to have
        self._path = 0.0

    def widen(self, beta: FloatArray) -> bool:
        """Go on from β with float64 kernel values; whether they can be had and one row of them fits the cache."""
        wider = self.kernel.wider()
        if wider is None or row_bytes(self.longest, wider.dtype.itemsize) > self.options.cache_size * MB:
            return False
        self.kernel = wider
        self.size = min(self.size, largest_tile(self.options.cache_size, wider.dtype.itemsize))
        self.stand_at(beta)
        return True

    @property
    def beta(self) -> FloatArray:
        """Of the samples held here."""
        return np.asarray(self.part.beta).reshape(self.shape)

    @property
    def f(self) -> FloatArray:
        """Of the samples held here; of those left out, as of when they were."""
        return np.asarray(self.part.f)

    @property
    def coef(self) -> FloatArray:
        """What f = K·coef is summed from: of regression's two halves, which may both be large, their sum."""
        return np.asarray(self.beta.sum(axis=0))

    @property
    def path(self) -> float:
        """What β has gone through since f was summed: Σ |Δβ_i| m_i."""
        return self.over.of(self._path)

    @property
    def summed(self) -> float:
        """What f is a sum of: where β stands, and what it has gone through, as a given f had been on its way before."""
        return self.path + self.over.of(np.abs(self.coef) * self.kernel.magnitude)

    def came(self, path: float) -> None:
        """What a given f had gone through before this run."""
        self._path += path

    # ---- f ---------------------------------------------------------------------------------------------------------

    def sum_up(self) -> Generator[None, None, None]:
        """f where it is pending."""
        if not self.pending:
            return
        everyone = np.arange(self.qp.n)
        support, coef = self.gathered(self.coef)
        while self.pending:
            with self.costs.clock("start"):
                piece = everyone[self.pending[0]]
                self.part.add(self.kernel.first + piece, self.kernel.sum(piece, support, coef))
                self.pending.pop(0)
                self.costs.summed(float(len(piece)) * len(support))
            yield None

    def gathered(self, values: FloatArray) -> tuple[IntArray, FloatArray]:
        """The ids of all ranks' samples, ascending, whose value is not zero, and these values."""
        mine = np.flatnonzero(values)
        if self.comm.size == 1:
            return mine, values[mine]
        every = np.concatenate(self.comm.allgather(np.stack([(mine + self.kernel.first).view(float), values[mine]], axis=1)))
        ids, found = np.ascontiguousarray(every.T)
        return ids.view(np.int64), found

    def dual_at_start(self) -> float:
        """The dual value, once f is known."""
        with self.costs.clock("start"):
            dual = self.dual()
        if not np.isfinite(dual):
            raise Overflow
        return dual

    def _bytes_for_rows(self) -> float:
        """What the tile, and a smaller one while it grows, leave of the cache; they never take more than half of it."""
        budget = self.options.cache_size * MB
        itemsize = int(self.kernel.dtype.itemsize)
        return max(budget - 1.25 * self.size**2 * itemsize, budget / 2, row_bytes(self.longest, itemsize))

    def seats(self, samples: IntArray) -> Seats:
        """What is known of some samples, by ascending ids, on all ranks."""
        mine = slice(None) if self.comm.size == 1 else self._held(samples)
        *state, f = self.part.read(samples[mine])
        rows = [a.reshape(self.halves, -1) for a in state]
        if self.comm.size > 1:
            sent = np.concatenate([*rows, f[None]]).T  # the groups' numbers become doubles on the way
            counts = np.diff(np.searchsorted(samples, self.kernel.ends))
            every = np.concatenate(self.comm.allgather(np.ascontiguousarray(sent), counts))
            *rows, f = (np.ascontiguousarray(a) for a in np.split(every.T, np.arange(1, 6) * self.halves))
            f = f[0]
        beta, lo, hi, center, group = rows
        return Seats(samples, beta, lo, hi, center, group.astype(np.int8), f)

    def _held(self, ids: IntArray) -> BoolArray:
        """Which of the samples are here."""
        return np.asarray((ids >= self.kernel.first) & (ids < self.kernel.first + self.qp.n))

    def move(self, seats: Seats, beta: FloatArray) -> bool:
        """Samples of the last tile take new values and f follows: whether anything moved."""
        with self.costs.clock("update"):
            samples, then, now = seats.samples, seats.coef, beta.sum(axis=0)
            self.part.write(samples, beta)
            self.support += int(np.count_nonzero(now)) - int(np.count_nonzero(then))
            change = now - then
            moved = change != 0
            hits = self.kernel.update(self.part, samples[moved], change[moved])
            self.costs.updated(int(moved.sum()), hits, self.part.size)
            m = self.kernel.magnitude  # an array, or the number that stands for all
            if self.comm.size > 1:
                mine = self._held(samples)
                samples, change = samples[mine], change[mine]
            each = m[samples - self.kernel.first] if isinstance(m, np.ndarray) else m
            self._path += float(np.sum(np.abs(change) * each))
        return bool(moved.any())

    # ---- what it says ----------------------------------------------------------------------------------------------

    def point(self, known: BoolArray | None = None) -> Point:
        """All samples, with what is known of them."""
        return Point.of(self.qp, self.beta, self.f, known, self.over)

    def dual(self) -> float:
        """cᵀβ − ½ βᵀKβ. By sample: regression's halves may be large where their sum, and so f, is small.

        Not by `@`: of many values linear algebra wakes its threads, which then keep a core from ours for a while.
        """
        beta = self.beta
        return self.over.of(np.sum(self.center * beta) - 0.5 * np.sum(beta.sum(axis=0) * self.f))

    def look(self) -> FloatArray:
        """(max_up per group, min_low per group) over the active samples of all ranks; keeps the violation."""
        extremes = self._reduced(self.part.extremes())
        self.violation = self.violation_at(extremes)
        return extremes

    def _reduced(self, mine: Any) -> FloatArray:
        """Extremes over all ranks."""
        extremes = self.over.most(np.array(mine) * SIDES) * SIDES
        if np.isnan(extremes).any():
            raise Overflow
        if not len(self.qp.targets):  # no equality: a score of 0 is the other side
            extremes[0], extremes[2] = max(extremes[0], 0.0), min(extremes[2], 0.0)
        return np.asarray(extremes)

    def violation_at(self, extremes: FloatArray) -> float:
        return float(violations(len(self.qp.targets), extremes[None, :])[0])

    # ---- shrinking -------------------------------------------------------------------------------------------------

    def shrink(self, extremes: FloatArray) -> bool:
        """Leave out the samples that cannot move, if that is worth it: whether it was."""
        with self.costs.clock("shrink"):
            keep = self.part.movable(*extremes)
            kept = int(self.over.of(len(keep)))
            if kept >= 0.8 * self.active or kept < 2:
                return False
            self.left.append((np.delete(self.part.active, keep) - self.kernel.first, self.coef))
            self.part.restrict(keep)
            self.active = kept
            return True

    def are_active(self, samples: IntArray) -> BoolArray:
        """Which of some samples, of whichever rank, were not left out."""
        mine = self._held(samples)
        active = np.zeros(len(samples))
        active[mine] = self.part.are_active(samples[mine])
        return np.asarray(self.over.most(active) > 0)

    def unshrink(self) -> Generator[None, None, None]:
        """Bring the inactive samples up to date and take back those that can move."""
        self.costs.counts["unshrinks"] += 1
        now, first = self.coef, self.kernel.first
        while True:  # each piece once
            stale = next((k for k, (_, then) in enumerate(self.left) if then is not now), None)
            if stale is None:
                break
            with self.costs.clock("shrink"):
                samples, then = self.left.pop(stale)
                moved, change = self.gathered(now - then)
                end = next(iter(self.kernel.pieces(self.longest, len(moved)))).stop
                some, rest = samples[:end], samples[end:]
                if len(moved):
                    self.part.add(first + some, self.kernel.sum(some, moved, change))
                self.left += [(some, now)] + ([(rest, then)] if self.over.any(len(rest) > 0) else [])
            yield None
        with self.costs.clock("shrink"):
            extremes, begin = self._reduced(self.part.extremes(True)), self.part.size
            self.part.take_back(*extremes)
            before, self.active = self.active, int(self.over.of(self.part.size))
            if self.active > before:
                self.kernel.fill(self.part, begin)
            samples = np.concatenate([samples for samples, _ in self.left])
            out = samples[~self.part.are_active(first + samples)]
            self.left = [(out, now)] if self.active < self.kernel.total else []

    def unshrink_seconds(self) -> float:
        """About how long it would take to bring the inactive samples up to date."""
        return self.costs.expected(sum(len(samples) for samples, _ in self.left) * float(self.support))


def over(comm: Comm) -> Sums:
    """Sums over the samples of these ranks."""
    return HERE if comm.size == 1 else RankSums(comm)
