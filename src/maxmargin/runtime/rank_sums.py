"""Sums and extremes over the samples of several ranks (see problem.sums, which these methods are named after)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.runtime.comm import Comm

FloatArray = NDArray[np.float64]


class RankSums:
    """The same bits on all ranks: each adds up its own terms, and these sums are added in the order of the ranks."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm

    def of(self, terms: ArrayLike) -> float:
        return float(self.comm.allreduce(np.array(np.sum(terms), np.float64)))

    def exact(self, terms: FloatArray) -> Any:
        mine = np.sum(terms, dtype=np.longdouble)
        high = np.float64(mine)
        parts = self._by_rank(np.array([high, np.float64(mine - high)]))  # two doubles: no machine need know the other's
        return np.sum(parts.astype(np.longdouble))

    def before(self, terms: FloatArray) -> float:
        return float(np.sum(self._by_rank(np.array([np.sum(terms)]))[: self.comm.rank]))

    def most(self, values: ArrayLike) -> FloatArray:
        return np.asarray(self.comm.allreduce(np.asarray(values, np.float64), "max"))

    def any(self, flag: bool) -> bool:
        return bool(self.comm.allreduce(np.array(flag, np.int64), "max"))

    def all(self, flag: bool) -> bool:
        return bool(self.comm.allreduce(np.array(flag, np.int64), "min"))

    def _by_rank(self, mine: FloatArray) -> FloatArray:
        return np.asarray(np.stack(self.comm.allgather(mine)))
