"""A linear problem whose samples are spread over ranks: what is kept per hinge stays there, sums travel.

    a turn of OCAS sends     the solution of the reduced problem, d numbers (from rank 0, which alone need not be believed to
                             round as the others do)
                             the sum of samples of the cut, d numbers, with Σ|delta| and how deep each rank added
                             four sums of the duals, the risks of the points tried
                             the line search: the slope, a histogram of 514 rises (two if k > 2), one bucket of hinges

and no number per sample but those of that bucket, about one in 512. A sum over the ranks adds at most P − 1 roundings to a
term's path, which the allowances (`rounding`) count. Every decision follows from numbers that have the same bits on all
ranks: sums that were reduced, vectors from rank 0, and arithmetic that no processor does differently (`rounding.dot`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.linear.problem import AnyFloats, Extent, LinearProblem, Pause
from maxmargin.linear.rounding import FloatArray
from maxmargin.runtime import Comm
from maxmargin.runtime.comm import ALONE

BUCKETS = 512  # of the core's histogram; one more is for hinges beyond, and one for rows without


@dataclass
class RankedProblem(LinearProblem):
    """This rank's samples of a problem that all ranks of `comm` solve together. `extent` must be that of all samples."""

    comm: Comm = field(default=ALONE, repr=False)
    alone = False

    def __post_init__(self) -> None:
        self._ranks = self.comm.size
        super().__post_init__()
        self._blocks = int(self.highest(float(-(-self.n // self.rows_per_call())))[0])
        samples, hinges, stored = (int(value) for value in self.total(self.n, self.hinges, self.stored))
        self._count, self._terms, self._entries = samples, hinges + self._ranks, stored / samples

    def total(self, *sums: float) -> tuple[float, ...]:
        return tuple(self.comm.allreduce(np.array(sums, np.float64)).tolist())

    def sum_of(self, array: AnyFloats) -> AnyFloats:
        return self.comm.allreduce(array)

    def highest(self, *values: float) -> tuple[float, ...]:
        return tuple(self.comm.allreduce(np.array(values, np.float64), "max").tolist())

    def first(self, values: FloatArray) -> FloatArray:
        found: FloatArray = self.comm.bcast(values)
        return found

    @property
    def terms(self) -> int:
        return self._terms

    @property
    def count(self) -> int:
        return self._count

    @property
    def entries(self) -> float:
        return self._entries

    def outputs(self, w: FloatArray, out: FloatArray, *, shifted: bool = True) -> Pause:
        """As many pauses on each rank, however many rows it has."""
        start = time.perf_counter()
        cuts = np.linspace(0, self.n, self._blocks + 1).astype(np.int64)
        for block, (begin, end) in enumerate(itertools.pairwise(cuts.tolist())):
            if block:
                self.pass_seconds += time.perf_counter() - start
                yield
                start = time.perf_counter()
            if begin < end:
                self.fill(w, begin, end, out, shifted)
        self.pass_seconds += time.perf_counter() - start
        self.passes += 1.0

    def add(self, a: FloatArray, rows: NDArray[np.int64], delta: FloatArray) -> Generator[None, None, tuple[int, float]]:
        """Each rank's sum, and the sum of those: d + 2 numbers, and one for each rank's depth."""
        mine = np.zeros(self.d + 2 + self._ranks)
        depth, step = 0, self.rows_per_call()
        for begin in range(0, len(rows), step):  # no pauses: ranks have different numbers of rows that changed
            part = slice(begin, begin + step)
            depth += _core.linear_add_rows(
                self.matrix, self.samples(rows[part]), delta[part], mine[: self.d], self.threads
            )
        bias = np.zeros(1)
        mine[self.d + 2 + self.comm.rank] = max(depth, self.add_bias(bias, delta))
        mine[self.d], mine[self.d + 1] = bias[0], np.abs(delta).sum()
        whole = self.comm.allreduce(mine)
        a[: self.d] -= whole[: self.d]
        if self.bias:
            a[-1] += whole[self.d]
        return int(whole[self.d + 2 :].max()) + self._ranks, float(whole[self.d + 1])
        yield  # a generator, as the problem of one process has it

    def crossing(self, m: FloatArray, q: FloatArray, quad: float, lin: float) -> float:
        """`_core.hinge_search`, whose histograms are added up and whose last bucket is gathered."""
        slope = lin - self.total(_core.hinge_slope(m, q, self.weight, self.threads))[0]
        if slope >= 0:
            return 0.0
        low, high = 0.0, 2.0
        while True:
            rise = self.comm.allreduce(_core.hinge_rises(m, q, self.weight, low, high, self.threads))
            before = slope + np.append(0.0, np.cumsum(rise[:BUCKETS]))  # the steps left of each bucket
            right = low + np.arange(1, BUCKETS + 1) * ((high - low) / BUCKETS)
            crossed = np.flatnonzero(quad * right + before[1:] >= 0)
            if len(crossed):
                b = int(crossed[0])
                at, jump = (np.concatenate(self.comm.allgather(part)) for part in _core.hinge_bucket(
                    m, q, self.weight, low, high, b, self.threads
                ))
                return _crossing(at, jump, quad, float(before[b]), low, float(right[b]))
            slope = float(before[-1])
            if rise[BUCKETS] == 0:
                return max(low, -slope / quad) if quad > 0 else low
            low, high = high, 8 * high


def _crossing(at: FloatArray, jump: FloatArray, quad: float, before: float, low: float, right: float) -> float:
    """Where quad·k + before + Σ (jump_i for at_i < k) changes sign, which it does left of `right`."""
    order = np.argsort(at, kind="stable")
    at, jump = at[order], jump[order]
    left = before + np.append(0.0, np.cumsum(jump))
    ramp = np.flatnonzero(quad * at + left[:-1] >= 0)  # left of these hinges the derivative is positive already
    step = np.flatnonzero(quad * at + left[1:] >= 0)
    first_ramp = int(ramp[0]) if len(ramp) else len(at)
    first_step = int(step[0]) if len(step) else len(at)
    if first_step < first_ramp:
        return float(at[first_step])
    return max(low, -float(left[first_ramp]) / quad) if quad > 0 else right


def extent_of_all(mine: Extent, comm: Comm) -> Extent:
    """From the extents of the ranks."""
    if comm.size == 1:
        return mine
    most = comm.allreduce(np.append(mine.columns, mine.norm), "max")
    return Extent(most[:-1], float(most[-1]))
