"""The order in which stochastic gradient descent visits the rows, and how weights enter it.

A weighted sample is a measure on (x, y), and the visits are a function of that measure alone: equal rows of equal
label are one row with the sum of their weights, rows of weight 0 do not exist, and the rows are put into an order that
depends on their contents, not on their places, before a seeded permutation shuffles them. So a row of weight 2 equals
the row given twice, exactly, and the order of the input does not matter.

A row of total weight c is visited ceil(c / unit) times per epoch, each visit with an equal share of c. unit is 1 unless
the mean weight of a distinct row is above MOST_VISITS: an epoch has at most about MOST_VISITS visits per distinct row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core

FloatArray = NDArray[np.float64]
MOST_VISITS = 16


@dataclass(frozen=True)
class Visits:
    """`rows`: one row index per visit, in canonical order. `share`: weight of one visit, indexed by row."""

    rows: NDArray[np.int64]
    share: FloatArray
    distinct: NDArray[np.int64]
    total: FloatArray


def plan_visits(x: Any, labels: NDArray[np.int32], weight: FloatArray, threads: int) -> Visits:
    """Visits of one epoch over the rows of the core matrix `x`."""
    distinct, total = _distinct(x, labels, weight, threads)
    unit = max(1.0, float(total.sum()) / (MOST_VISITS * len(distinct)))
    times = np.ceil(total / unit * (1 - 1e-12)).astype(np.int64)
    share = np.zeros(len(labels))
    share[distinct] = total / times
    return Visits(np.repeat(distinct, times), share, distinct, total)


def _distinct(
    x: Any, labels: NDArray[np.int32], weight: FloatArray, threads: int
) -> tuple[NDArray[np.int64], FloatArray]:
    """One row index per distinct (row, label) of positive weight, in the order of their hashes; total weights."""
    hashes = np.empty(len(labels), dtype=np.uint64)
    _core.hash_rows(x, labels, 0, hashes, threads)
    order = np.argsort(hashes, kind="stable").astype(np.int64)
    order = order[weight[order] > 0]
    repeats = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    first = np.ones(len(order), dtype=bool)
    if len(repeats):
        a, b = order[repeats], order[repeats + 1]
        same = np.empty(len(repeats), dtype=bool)
        _core.same_rows(x, a, b, same)
        first[repeats + 1] = ~(same & (labels[a] == labels[b]))
    starts = np.flatnonzero(first)
    return order[starts], np.add.reduceat(weight[order], starts)
