"""Which variables the next turn may change (PSMO paper, section 4.1, after Zanni).

Take the worst violators in pairs, one that wants to rise and one that wants to fall, until `n_new` are chosen; fill up
with members of the last working set, those that entered most recently first: free ones, then those at the lower
bound, then at the upper. `n_new` then shrinks towards the number that really entered, which stops variables from
entering and leaving for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
MB = 1 << 20


class Violators(NamedTuple):
    """Candidates of one group, worst first: variables that can rise and those that can fall, with their scores."""

    up: IntArray
    up_score: FloatArray
    low: IntArray
    low_score: FloatArray


def merge(parts: Sequence[Violators], k: int) -> Violators:
    """The k worst of several ranks' candidates."""
    if len(parts) == 1:
        return parts[0]
    up, up_score, low, low_score = (np.concatenate(columns) for columns in zip(*parts))
    rise, fall = np.lexsort((up, -up_score))[:k], np.lexsort((low, low_score))[:k]
    return Violators(up[rise], up_score[rise], low[fall], low_score[fall])


def packed(groups: Sequence[Violators]) -> FloatArray:
    """As one array, to be sent; ids keep their bits."""
    return np.concatenate([
        part for g in groups
        for part in (np.array([len(g.up), len(g.low)], float), g.up.view(float), g.up_score, g.low.view(float), g.low_score)
    ])  # fmt: skip


def unpacked(sent: FloatArray, groups: int) -> list[Violators]:
    """What `packed` made one array of."""
    out, at = [], 0
    for _ in range(groups):
        ups, lows = sent[at : at + 2].astype(int).tolist()
        up, up_score, low, low_score = np.split(sent[at + 2 : at + 2 + 2 * (ups + lows)], np.cumsum([ups, ups, lows]))
        out.append(Violators(up.view(np.int64), up_score, low.view(np.int64), low_score))
        at += 2 + 2 * (ups + lows)
    return out


def without_partner(g: Violators) -> Violators:
    """No equality constraint: every violator stands alone. In pairs of neighbours in rank they are all taken in turn."""
    alone = np.concatenate([g.up, g.low])
    size = np.concatenate([g.up_score, -g.low_score])
    order = np.argsort(-size, kind="stable")
    if len(order) % 2:
        order = np.append(order, order[-1])
    first, second = order[0::2], order[1::2]
    return Violators(alone[first], size[first], alone[second], -size[second])


def working_set_size(wanted: int | None, cache_size: float, n: int, n_variables: int, itemsize: int, halves: int = 1) -> int:
    """1536 by default, 1024 in regression: a third of the turns that the paper's 512 takes.

    Rows are computed only for variables that changed, so a larger set costs its tile (9 MB in float32, which stays in
    L3) and not n·q kernel values; beyond that, and sooner in regression with its many inner steps, the tile and the
    inner steps outweigh the turns saved (measured on the seven sets of the benchmarks). The tile must fit the cache: a
    default size gives way, a wish that does not fit is refused, and so is a cache of less than one kernel row. (`n` is the
    length of a row: where several ranks share the samples, the largest of theirs; the variables are those of all.)
    """
    budget, row = int(cache_size * MB), row_bytes(n, itemsize)
    if budget < row:
        raise ValueError(
            f"cache_size={cache_size:g} MB does not hold one kernel row of {n} samples: give at least {row / MB:.3g} MB"
        )
    default = 1536 if halves == 1 else 1024
    size = min(wanted if wanted is not None else default, n_variables)
    if wanted is not None and size * size * itemsize > budget:
        raise ValueError(
            f"cache_size={cache_size:g} MB is too small for working_set_size={wanted}: "
            f"give at least {size * size * itemsize / MB:.3g} MB, or a smaller working set"
        )
    size = min(size, largest_tile(cache_size, itemsize))
    return max(2, size - size % 2 if size < n_variables else size)


def largest_tile(cache_size: float, itemsize: int) -> int:
    """The most variables whose kernel values with each other fit the cache, but two at least."""
    return max(2, int((cache_size * MB / itemsize) ** 0.5) & ~1)


def row_bytes(n: int, itemsize: int) -> int:
    return -(-n // 32) * 32 * itemsize  # the core pads rows to whole vectors


class WorkingSet:
    """The working set and its memory: for how many turns each member has been in."""

    def __init__(self, size: int, n_new: int) -> None:
        self.size = size
        self.n_new = max(2, n_new - n_new % 2)
        self.members: IntArray = np.empty(0, np.int64)
        self._turns: IntArray = np.empty(0, np.int64)
        self.place: FloatArray = np.empty(0)  # where each member's value lies: 0 free, 1 at its lower bound, 2 at its upper

    def select(self, groups: Sequence[Violators], n: int | None = None) -> IntArray:
        """The next working set, sorted; `place` must be that of the present one.

        With `n` (regression), variables v and v + n of one sample do not enter together: the tile then needs no row twice.
        """
        chosen = _pairs(groups, self.n_new)
        at = np.searchsorted(self.members, chosen)
        was = np.zeros(len(chosen), bool)
        known = at < len(self.members)
        was[known] = self.members[at[known]] == chosen[known]
        stay = np.ones(len(self.members), bool)
        stay[at[was]] = False
        fill = np.flatnonzero(stay)
        rank = 8192 * self.place[fill] + np.minimum(self._turns[fill], 8191)
        fill = fill[np.argsort(rank.astype(np.int16), kind="stable")][: self.size - len(chosen)]  # radix sort
        members = np.concatenate([chosen, self.members[fill]])
        turns = np.concatenate([np.zeros(len(chosen), np.int64), self._turns[fill] + 1])
        turns[: len(chosen)][was] = self._turns[at[was]] + 1
        order = np.unique(members % n, return_index=True)[1] if n is not None else np.arange(len(members))
        order = order[np.argsort(members[order])]
        self.members, self._turns = members[order], turns[order]
        entered = int(np.count_nonzero(self._turns == 0))
        tenth = (self.size // 10) & ~1
        self.n_new = min(self.n_new, max(10, tenth, entered & ~1))
        return self.members

    def forget(self, active: NDArray[np.bool_]) -> None:
        """Keep the members that are still active."""
        self.members, self._turns, self.place = self.members[active], self._turns[active], self.place[active]


def _pairs(groups: Sequence[Violators], count: int) -> IntArray:
    """Up to `count` variables, in pairs (rises, falls) of one group with score_up > score_low, worst gap first."""
    ups, lows, gaps = [], [], []
    for g in groups:
        pairs = min(len(g.up), len(g.low), count)
        gap = g.up_score[:pairs] - g.low_score[:pairs]
        pairs = int(np.count_nonzero(gap > 0))  # gaps fall along the lists
        ups.append(g.up[:pairs])
        lows.append(g.low[:pairs])
        gaps.append(gap[:pairs])
    best = count // 2 + len(groups)
    worst = np.argsort(-np.concatenate(gaps), kind="stable")[:best] if len(groups) > 1 else slice(best)
    both = np.stack([np.concatenate(ups)[worst], np.concatenate(lows)[worst]], axis=1).ravel()
    ascending = np.sort(both)
    if (ascending[1:] == ascending[:-1]).any():  # a free variable may be on both sides
        both = both[np.sort(np.unique(both, return_index=True)[1])]
    return both[:count]
