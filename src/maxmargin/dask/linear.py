"""LinearSVC on dask collections: cutting planes, whose cuts are sums over the partitions.

A turn of the algorithm (linear/ocas.py) asks for the margins of a new point, one pass over the rows where they are, and
for Σ delta_i x_i over the samples whose duals have changed, which each partition adds up for itself. The client keeps
numbers per row (label, weight, margins, duals) and solves the reduced problem; bounds and their allowances for rounding
are those of one machine, the additions between partitions counted in.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin.dask.machine import DecidesOnDask, no_checkpoint
from maxmargin.dask.partitions import IntArray
from maxmargin.data.matrix import as_matrix
from maxmargin.estimators import linear as local
from maxmargin.estimators._base import check_choice
from maxmargin.estimators._linear import NOTHING, Samples
from maxmargin.linear import Extent, LinearProblem
from maxmargin.linear.rounding import FloatArray


@dataclass
class PartitionedProblem(LinearProblem):
    """A linear problem whose passes are made where the rows are."""

    at_hand = False

    def outputs(self, w: FloatArray, out: FloatArray, shifted: bool = True) -> Generator[None, None, None]:
        start = time.perf_counter()
        shift = float(self.bias * w[-1]) if self.bias else 0.0
        parts = yield from self.X.steps(block_outputs, common=(np.ascontiguousarray(w[: self.d]), shift))
        np.multiply(np.concatenate(parts), self.sign, out=out)
        self.passes += 1
        self.pass_seconds += time.perf_counter() - start

    def add(self, a: FloatArray, rows: IntArray, delta: FloatArray) -> Generator[None, None, tuple[int, float]]:
        if (np.diff(rows) < 0).any():
            order = np.argsort(rows, kind="stable")
            rows, delta = rows[order], delta[order]
        cuts = np.searchsorted(rows, self.X.start)
        which = np.flatnonzero(np.diff(cuts))
        own = [(rows[cuts[b] : cuts[b + 1]] - self.X.start[b], delta[cuts[b] : cuts[b + 1]]) for b in which]
        parts = yield from self.X.steps(block_sum, own, which)
        total = np.zeros(self.d)
        for part, _ in parts:  # in the order of the partitions: the same bits each time
            total += part
        a[: self.d] -= total
        depth = max((deep for _, deep in parts), default=0) + len(parts)
        return max(depth, self.add_bias(a, delta)), float(np.abs(delta).sum())


def block_outputs(block: Any, w: FloatArray, shift: float) -> FloatArray:
    """On a worker: ⟨x, w⟩ + shift of its rows."""
    out = np.empty(block.shape[0])
    if len(out):
        _core.linear_outputs(as_matrix(block), w, shift, np.ones(len(out)), NOTHING, 0, len(out), out, 1)
    return out


def block_sum(block: Any, rows: IntArray, delta: FloatArray) -> tuple[FloatArray, int]:
    """On a worker: Σ delta_i x_i, and the additions that a term has gone through."""
    total = np.zeros(block.shape[1])
    return total, int(_core.linear_add_rows(as_matrix(block), rows, delta, total, 1))


def block_extent(block: Any) -> Extent:
    """On a worker."""
    if not block.shape[0]:
        return Extent(np.zeros(block.shape[1]), 0.0)
    return Extent.of(as_matrix(block), block.shape[1], 1)


class LinearSVC(DecidesOnDask, local.LinearSVC):
    """`maxmargin.LinearSVC` on dask arrays and frames that live on workers.

    The rows stay where they are; a turn is one pass over them. `objective_`, `dual_gap_`, `lower_bound_` and `status_`
    mean what they mean on one machine.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that was made last.
    C, loss, tol, fit_intercept, intercept_scaling, class_weight, max_iter, max_time, verbose, callback
        As in `maxmargin.LinearSVC`. Features far from 0 compared with their spread should be standardised: here they are
        not moved.
    multi_class : {"ovr"}
        The joint problem is for one machine.
    solver : {"auto", "ocas", "cpa"}
        Cutting planes, the only ones that need nothing but passes.
    warm_start : bool, default=False
        Start from the last solution. Cuts are gathered anew: nobody has looked whether the rows are the same.
    n_jobs : int or None
        Threads of the client, for what is there per row. Workers give each partition one of theirs.

    Examples
    --------
    See `maxmargin.dask`.
    """

    _local = local.LinearSVC
    _problem_type = PartitionedProblem

    def _check_parameters(self) -> None:
        super()._check_parameters()
        no_checkpoint(self)
        check_choice("multi_class", self.multi_class, ("ovr",))
        check_choice("solver", self.solver, ("auto", "ocas", "cpa"))

    def _data(self, given: Any) -> Any:
        data = Samples(given.X, given.code, given.effective, given.classes)
        extents = given.X.each(block_extent)
        columns = np.max([extent.columns for extent in extents], axis=0)
        data.extent = Extent(columns, max(extent.norm for extent in extents))
        return data


    def _fingerprint(self, data: Any) -> str:
        return ""
