"""Kernel values of samples that all ranks hold, by rows: the scheme of the PSMO paper, section 5.

Each rank computes some of the rows that a turn needs, over all samples, and keeps them in its cache; so P ranks keep P times
as many. What its rows add to f is summed over the ranks: n numbers a turn, where by columns (shared.py) f never travels.

    who computes a row    a rank that has it in its cache; the others are dealt out such that all have about as many

It is here to be compared with. All ranks must compute the same bits: they need processors of one kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernel_values.native import NativeValues, Samples
from maxmargin.kernel_values.source import FloatArray, IntArray
from maxmargin.runtime import Comm


class DealtValues(NativeValues):
    """Kernel values computed by the core between all samples, a share of the rows on each rank."""

    def __init__(self, samples: Samples, rows: IntArray, team: Comm) -> None:
        super().__init__(samples, rows)
        self.team = team

    def wider(self) -> DealtValues | None:
        return None if self.dtype == np.float64 else DealtValues(self.samples.wider(), self.rows, self.team)

    def tile(self, part: Any, ids: IntArray) -> tuple[NDArray[Any], IntArray]:
        return super().tile(part, ids) if self.team.rank == 0 else (np.empty((0, 0), self.dtype), ids)

    def update(self, part: Any, ids: IntArray, coef: FloatArray) -> int:
        held = np.stack(self.team.allgather(~np.isin(ids, part.missing(ids))))
        mine = dealt_out(held) == self.team.rank
        total = np.zeros(part.size)
        hits = part.update_into(ids[mine], coef[mine], self.samples.points, self.rows[ids[mine]], total)
        part.add_active(self.team.allreduce(total))
        return int(hits)

    def sum(self, samples: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        mine = slice(self.team.rank, None, self.team.size)
        return np.asarray(self.team.allreduce(super().sum(samples, others[mine], np.ascontiguousarray(coef[mine]))))


def dealt_out(held: NDArray[np.bool_]) -> IntArray:
    """The rank that computes each row; held[r] says which ones rank r has.

    Rows go to the first rank that has them, the others to who has fewest, one each in turn.
    """
    who = np.where(held.any(axis=0), held.argmax(axis=0), -1)
    fresh = np.flatnonzero(who < 0)
    count = np.bincount(who[who >= 0], minlength=len(held))
    for row in fresh.tolist():
        rank = int(count.argmin())
        who[row] = rank
        count[rank] += 1
    return who
