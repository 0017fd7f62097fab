"""Kernel values of rows that live in partitions: what divide and conquer asks of them, computed where they are."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.dask.partitions import IntArray, Partitions
from maxmargin.data.matrix import as_matrix
from maxmargin.data.rows import DistinctRows, grouped_rows
from maxmargin.decomposition.ending import Point, violations
from maxmargin.decomposition.options import DualResult
from maxmargin.divide.clustering import Elsewhere, Steps, gram_matrix, nearest_native, nearest_of_blocks
from maxmargin.divide.remote import Blocks
from maxmargin.kernel_values import Frame, KernelData, Samples
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel, checked_block, largest_value, power_sum, scale_of_variance, weighted_sums
from maxmargin.runtime import Status, drained, settled

FloatArray = NDArray[np.float64]
FRAME_ROWS = 1000  # whose mean stands for all rows': where distances are measured from, which any point near them serves for
MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number without a pattern, 2⁶⁴ over the golden ratio


class PartitionedData(KernelData):
    """Samples whose rows are in partitions: sample i is row rows[i] of them."""

    at_hand = False

    def __init__(
        self, X: Partitions, kernel: Kernel, rows: IntArray, dtype: Any, threads: int, frame: Frame | None,
        held: Held | None = None,
    ) -> None:  # fmt: skip
        super().__init__(X, kernel, rows, dtype, threads, frame)
        self.afar, self._held = self.blocks(), held or Held()

    def blocks(self) -> Blocks:
        """The partitions as they came, for rows to be moved out of."""
        block = np.searchsorted(self.X.start, self.rows, side="right") - 1
        return Blocks(self.X.carrier, len(self.rows), origin=(self.X.blocks, block, self.rows - self.X.start[block]))

    def source(self, ids: Any = None, threads: Any = None, dtype: Any = None) -> Any:
        return PartitionedValues(self)

    def known_frame(self) -> Frame | None:
        return self.frame

    def with_kernel(self, kernel: Kernel) -> PartitionedData:
        frame = self.frame
        if kernel.name != self.kernel.name:
            frame = frame_of(self.X, kernel, self.rows, self.dtype)
        elif frame is not None:  # γ alone differs, and norms are in units of it
            frame = frame[0], frame[1] * (kernel.gamma / self.kernel.gamma)
        return PartitionedData(self.X, kernel, self.rows, self.dtype, self.threads, frame, self._held)

    def rows_of(self, ids: IntArray) -> Any:
        fetch = super().rows_of
        return fetch(ids) if len(ids) * self.X.shape[1] > Held.most else self._held.of(ids, fetch)

    def at_zero(self, qp: QP, tol: float, status: Status) -> DualResult:
        """What is known of the QP of some samples before anything is solved, without their rows."""
        return judged(qp, np.zeros(qp.n_variables), np.zeros(qp.n), tol, status)

    def sums(self, ids: IntArray, others: IntArray, coef: FloatArray) -> Generator[None, None, FloatArray]:
        """Σ coef_i K(others_i, ·) at the samples `ids`, partition by partition, in float64: a certificate rests on it."""
        out = np.zeros(len(ids))
        if not len(others):
            return out
        vectors = self.rows_of(others)
        which, places, own = self.by_partition(ids)
        common = (vectors, coef, self.kernel, np.float64, self.frame)
        parts = yield from self.X.steps(block_sums, own, which, common)
        out[places] = np.concatenate(parts)
        return out

    def by_partition(self, ids: IntArray) -> tuple[list[int], IntArray, list[tuple[IntArray]]]:
        """(partitions that have some of the samples, the samples in that order, their places in each partition)."""
        rows = self.rows[ids]
        at = np.searchsorted(self.X.start, rows, side="right") - 1
        order = np.argsort(at, kind="stable")
        which, first = np.unique(at[order], return_index=True)
        parts = np.split(order, first[1:])
        return which.tolist(), order, [(rows[part] - self.X.start[b],) for b, part in zip(which, parts)]


class Held:
    """The few rows that were fetched last: clustering asks for its sample by one kernel, by another, and for its centres."""

    most = 1 << 20  # values of rows

    def __init__(self) -> None:
        self._ids = np.empty(0, np.int64)
        self._rows: Any = None

    def of(self, ids: IntArray, fetch: Callable[[IntArray], Any]) -> Any:
        at = np.searchsorted(self._ids, ids)
        if not (self._rows is not None and len(ids) and (self._ids[np.minimum(at, len(self._ids) - 1)] == ids).all()):
            self._ids, at = np.unique(ids, return_inverse=True)
            self._rows = fetch(self._ids)
        return self._rows[at]


class PartitionedValues(Elsewhere):
    """Kernel values between the samples of PartitionedData."""

    def __init__(self, data: PartitionedData) -> None:
        self._data, self.rows, self.kernel = data, data.rows, data.kernel

    def gram(self, ids: IntArray) -> FloatArray:
        data = self._data
        here = KernelData(data.rows_of(ids), data.kernel, np.arange(len(ids)), data.dtype, data.threads, data.frame)
        return gram_matrix(here.source(), np.arange(len(ids)))

    def nearest(self, ids: IntArray, rows: IntArray, end: IntArray, offset: FloatArray) -> Steps:
        data = self._data
        which, order, own = data.by_partition(ids)
        common = (data.rows_of(rows), end, offset, data.kernel, data.dtype, data.frame)
        parts = yield from data.X.steps(block_nearest, own, which, common)
        out = np.empty(len(ids), np.int64)
        out[order] = np.concatenate(parts)
        return out


def judged(qp: QP, alpha: FloatArray, f: FloatArray, tol: float, status: Status) -> DualResult:
    """What is known of a point of a QP, given its f = Kβ."""
    beta = (qp.sign * alpha).reshape(-1, qp.n)
    point = Point.of(qp, beta, f)
    multipliers = point.multipliers()
    gap = float(point.gap(multipliers)[0])
    violation = float(violations(len(qp.targets), point.extremes())[0])
    return DualResult(
        status=settled(status, violation, tol), objective=float(point.dual()[0]) + gap, gap=gap, violation=violation,
        n_support=int(np.count_nonzero(beta.any(axis=0))), alpha=alpha, multipliers=multipliers[0], f=f,
    )


def distinct_of(X: Partitions, target: FloatArray, weight: FloatArray) -> DistinctRows:
    """As data.rows.distinct_rows. Rows in different places are equal if two hashes of 64 bits each are."""
    hashes = X.each(block_hashes, [(part,) for part in X.parts(target)])
    first, second = (np.concatenate([pair[k] for pair in hashes]) for k in range(2))
    return grouped_rows(first, weight, lambda a, b: (second[a] == second[b]) & (target[a] == target[b]))


def gamma_of(X: Partitions, weight: FloatArray) -> float:
    """gamma='scale' by two passes over the partitions."""
    share = weight / (float(weight.sum()) * X.shape[1])
    parts = [(part,) for part in X.parts(share)]
    first = X[np.flatnonzero(weight > 0)[:1]]
    origin = float(first[0, 0]) if X.shape[1] else 0.0

    def sums(power: int, shift: float) -> float:
        return float(sum(X.each(block_powers, parts, common=(power, shift))))

    variance = sums(2, origin + sums(1, origin))
    return scale_of_variance(variance, X.shape[1], lambda: max(X.each(block_largest)))


def frame_of(X: Partitions, kernel: Kernel, rows: IntArray, dtype: Any) -> Frame | None:
    """A point among the rows to measure distances from, and the largest norm from there."""
    if not kernel.native:
        return None
    some = rows[:: max(1, len(rows) // FRAME_ROWS)]
    shift, _ = Samples(X[some], kernel, np.arange(len(some)), dtype, 1).frame
    return shift, float(max(X.each(block_norm, common=(kernel, dtype, shift))))


def block_hashes(block: Any, target: FloatArray) -> tuple[Any, Any]:
    """On a worker: the core's hash of each row with its label, and one of another kind of the row."""
    if not block.shape[0]:
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    own = _core.row_hashes(as_matrix(block), np.ascontiguousarray(target, np.float64), 1)
    weights = np.random.default_rng(7).integers(1, 2**63, block.shape[1], dtype=np.uint64) | np.uint64(1)
    other = np.zeros(block.shape[0], np.uint64)
    step = max(1, 2**20 // max(1, block.shape[1]))
    with np.errstate(over="ignore"):
        for i in range(0, block.shape[0], step):
            x = block[i : i + step]
            x = (x.toarray() if sp.issparse(x) else x).astype(np.float64) + 0.0  # −0 is 0
            bits = np.ascontiguousarray(x).view(np.uint64)
            bits = (bits ^ (bits >> np.uint64(32))) * MIX  # neighbours in value become strangers
            other[i : i + step] = ((bits ^ (bits >> np.uint64(29))) * weights).sum(axis=1, dtype=np.uint64)
    return np.asarray(own), other


def block_powers(block: Any, power: int, shift: float, share: FloatArray) -> float:
    """On a worker."""
    with np.errstate(over="ignore", invalid="ignore"):
        return power_sum(block, share, power, shift)


def block_largest(block: Any) -> float:
    """On a worker."""
    return largest_value(block, np.arange(block.shape[0]))


def block_norm(block: Any, kernel: Kernel, dtype: Any, shift: FloatArray) -> float:
    """On a worker: the largest norm of its rows, as the core counts it (native/kernel/points.hpp), seen from `shift`."""
    if not block.shape[0]:
        return 0.0
    if not len(shift):
        return float(Samples(block, kernel, np.arange(block.shape[0]), dtype, 1).points.largest_norm)
    largest = 0.0
    for i in range(0, block.shape[0], 16384):
        away = block[i : i + 16384].astype(np.float64) - shift
        size = np.abs(away).sum(axis=1) if kernel.name == "laplacian" else np.square(away).sum(axis=1)
        largest = max(largest, float(size.max()))
    return kernel.gamma * largest


def block_nearest(
    block: Any, vectors: Any, end: IntArray, offset: FloatArray, kernel: Kernel, dtype: Any, frame: Frame | None,
    places: IntArray,
) -> IntArray:  # fmt: skip
    """On a worker: the nearest centre of some of its rows."""
    every = np.arange(vectors.shape[0])
    if kernel.native:
        machine = Samples(vectors, kernel, every, dtype, 1, frame=frame)
        points = machine.points.like(as_matrix(block), 1)
        return drained(nearest_native(points, places, machine.points, every, end, offset, 1))
    function = kernel.function
    assert function is not None

    def values(some: IntArray) -> FloatArray:
        return checked_block(function(block[some], vectors), (len(some), len(every)))

    return drained(nearest_of_blocks(values, places, end, offset))


def block_sums(
    block: Any, vectors: Any, coef: FloatArray, kernel: Kernel, dtype: Any, frame: Frame | None, places: IntArray
) -> FloatArray:
    """On a worker: Σ coef_i K(vector_i, ·) at some of its rows."""
    every = np.arange(vectors.shape[0])
    if not kernel.native:
        assert kernel.function is not None
        values = checked_block(kernel.function(block[places], vectors), (len(places), len(every)))
        return weighted_sums(values, coef[None, :]).ravel()
    machine, out = Samples(vectors, kernel, every, dtype, 1, frame=frame), np.zeros((1, len(places)))
    machine.sum_at(block, np.ascontiguousarray(places), every, coef[None, :], out)
    return np.asarray(out[0])
