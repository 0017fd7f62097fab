"""The order in which stochastic gradient descent visits the rows, and how weights enter it.

A weighted sample is a measure on (x, y), and the visits are a function of that measure alone: equal rows of equal
label are one row with the sum of their weights, rows of weight 0 do not exist, and the rows are put into an order that
depends on their contents, not on their places (data/rows.py), before a seeded permutation shuffles them. So a row of
weight 2 equals the row given twice, exactly, and the order of the input does not matter.

A row of total weight c is visited ceil(c / unit) times per epoch, each visit with an equal share of c. unit is 1 unless
the mean weight of a distinct row is above MOST_VISITS: an epoch has at most about MOST_VISITS visits per distinct row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.rows import distinct_rows

FloatArray = NDArray[np.float64]
MOST_VISITS = 16


@dataclass(frozen=True)
class Visits:
    """`rows`: one row index per visit, in canonical order. `share`: weight of one visit, indexed by row.

    `distinct` and `total`: the distinct rows and the weight of each.
    """

    rows: NDArray[np.int64]
    share: FloatArray
    distinct: NDArray[np.int64]
    total: FloatArray


def plan_visits(x: Any, labels: NDArray[np.int32], weight: FloatArray, threads: int) -> Visits:
    """Visits of one epoch over the rows of x."""
    rows = distinct_rows(x, labels.astype(np.float64), weight, merge=True, threads=threads)
    unit = max(1.0, float(rows.weight.sum()) / (MOST_VISITS * len(rows.index)))
    times = np.ceil(rows.weight / unit * (1 - 1e-12)).astype(np.int64)
    share = np.zeros(len(labels))
    share[rows.index] = rows.weight / times
    return Visits(np.repeat(rows.index, times), share, rows.index, rows.weight)
