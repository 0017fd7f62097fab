"""Subproblems on other machines: rows that stay where they were sent, and a loop that a lost worker does not end.

Each row of the samples is sent once. A level's cluster is then put together by the workers, out of the rows that they have
from the level below: only the numbers of rows and what belongs to a QP (bounds, signs, start) come from here, and alpha
and f go back.

    level 2     put(rows of cluster 0), put(rows of cluster 1), …
    level 1     on each worker pick(from the clusters that it has), then join(what was picked)

A worker that dies takes rows and results along. What was lost with it is sent anew and solved again, a few times: a
subproblem that takes its worker down every time has not enough memory there, and that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.carriers import ATTEMPTS, GONE, LOOK, Carrier, LostError
from maxmargin.data.rows import stacked
from maxmargin.decomposition.options import DualResult
from maxmargin.decomposition.sent import Sent, Stopped, to_its_end
from maxmargin.divide.side_by_side import Steps
from maxmargin.divide.subproblem import Piece, Solving, Subproblem
from maxmargin.kernel_values import Frame
from maxmargin.problem.formulations import QP

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

AT_ONCE = 64  # subproblems that are sent together
TOGETHER = 8  # lists of rows that are picked by one task


class Blocks:
    """Rows 0 … n−1 in blocks that workers hold: row i is row place[i] of block[i]; −1 is with `fetch`, here.

    `origin` are blocks that the rows have come in, and that can be had again: (references, block, place).
    Worked example: blocks 0 = rows 4 7 9, 1 = rows 2 5; move([5, 9]) makes block 2 of row 1 of block 1 and row 2 of block 0.
    """

    def __init__(
        self,
        carrier: Carrier,
        n: int,
        fetch: Callable[[IntArray], Any] | None = None,
        origin: tuple[list[Any], IntArray, IntArray] | None = None,
    ) -> None:
        refs, block, place = origin or ([], np.full(n, -1, np.int64), np.zeros(n, np.int64))
        self.carrier, self._fetch = carrier, fetch
        self._origin, self._kept = (block, place), len(refs)
        self.block, self.place = block.copy(), place.copy()
        self.refs: dict[int, Any] = dict(enumerate(refs))
        self._count: dict[int, int] = {}  # rows of each block that was made here
        self._next = len(refs)
        self.sent = 0  # rows that have left from here

    def move(self, rows: Sequence[IntArray], homes: Sequence[Any] | None = None) -> list[Any]:
        """A block of each of these lists of rows, in their order, each on one worker: best at its home."""
        refs = self._gathered(rows, homes or [None] * len(rows))
        for some, ref in zip(rows, refs):
            self._leave(some)
            self.block[some], self.place[some] = self._next, np.arange(len(some))
            self.refs[self._next], self._count[self._next] = ref, len(some)
            self._next += 1
        return refs

    def restore(self, rows: IntArray) -> Any:
        """The block of these rows, anew after it was lost."""
        self._back_to_origin(rows)
        return self.move([rows])[0]

    def _back_to_origin(self, rows: IntArray) -> None:
        self._leave(rows)
        self.block[rows], self.place[rows] = self._origin[0][rows], self._origin[1][rows]

    def _leave(self, rows: IntArray) -> None:
        """The rows go out of their blocks; a block that has none left is given up, unless the data came in it."""
        for b, count in zip(*np.unique(self.block[rows], return_counts=True)):
            if b >= self._kept:
                self._count[int(b)] -= int(count)
                if not self._count[int(b)]:
                    del self.refs[int(b)], self._count[int(b)]

    def _homes(self, rows: IntArray) -> dict[Any, list[int]]:
        """Home: the blocks there that have some of the rows. Blocks that were lost are as at the beginning."""
        known = [int(b) for b in np.unique(self.block[rows]) if b >= 0]
        places = self.carrier.homes([self.refs[b] for b in known]) if known else []
        gone = [b for b, home in zip(known, places) if home is GONE]
        if gone:
            if min(gone) < self._kept:
                raise LostError("a partition of the data was lost, and nobody knows how to compute it again")
            back = np.flatnonzero(np.isin(self.block, gone))
            self._back_to_origin(back)
            return self._homes(rows)
        groups: dict[Any, list[int]] = {}
        for b, home in zip(known, places):
            groups.setdefault(home, []).append(b)
        return groups

    def _gathered(self, wanted: Sequence[IntArray], at: Sequence[Any]) -> list[Any]:
        """The rows out of the blocks that they are in: picked at each home, some lists at a time, joined at their own."""
        homes = self._homes(np.concatenate(wanted))
        chunks = _chunks(at)
        moves = {home: Moves(blocks) for home, blocks in homes.items()}
        order: list[list[IntArray]] = [[] for _ in wanted]
        for _, chunk in chunks:
            sorted_by_block = [(i, np.argsort(self.block[wanted[i]], kind="stable")) for i in chunk]
            for move in moves.values():
                move.begin()
                for i, by_block in sorted_by_block:
                    rows = wanted[i][by_block]
                    order[i].append(by_block[move.add(self.block[rows], self.place[rows])])
        plans = {home: self.carrier.put(move.plan, home) for home, move in moves.items()}
        fresh, new = self._sent_now(wanted, at)
        for i, some in enumerate(new):
            order[i].append(some)
        back = [np.argsort(np.concatenate(some), kind="stable").astype(np.int32) for some in order]
        refs = list(fresh)
        for number, (home, chunk) in enumerate(chunks):
            join = [i for i in chunk if len(new[i]) < len(wanted[i])]
            if not join:
                continue
            there = self.carrier.put([back[i] for i in join], home)
            parts = [
                self.carrier.call(picked, plans[h], number, *(self.refs[b] for b in move.sources[number]), at=h)
                for h, move in moves.items()
                if move.sources[number]
            ]
            for k, i in enumerate(join):
                refs[i] = self.carrier.call(joined, there, k, chunk.index(i), fresh[i], *parts, at=home)
        return refs

    def _sent_now(self, wanted: Sequence[IntArray], at: Sequence[Any]) -> tuple[list[Any], list[IntArray]]:
        """(the rows of each list that no worker has, sent; which of the list these are)."""
        new = [np.flatnonzero(self.block[rows] < 0) for rows in wanted]
        refs: list[Any] = [None] * len(wanted)
        for i, some in enumerate(new):
            if len(some):
                assert self._fetch is not None
                refs[i] = self.carrier.put(self._fetch(wanted[i][some]), at[i])
                self.sent += len(some)
        return refs, new


class Moves:
    """What is picked out of the blocks of one home: plan[chunk][list] are (number of the source, places in it), several."""

    def __init__(self, blocks: list[int]) -> None:
        self.blocks = np.array(blocks)
        self.plan: list[list[list[tuple[int, NDArray[np.int32]]]]] = []
        self.sources: list[list[int]] = []  # of each chunk: the blocks that it needs

    def begin(self) -> None:
        """The next chunk."""
        self.plan.append([])
        self.sources.append([])

    def add(self, block: IntArray, place: IntArray) -> IntArray:
        """Rows that are so placed, sorted by block; returns which of them are here, in the order that they are picked in."""
        first, last = (np.searchsorted(block, self.blocks, side=side) for side in ("left", "right"))
        picks, here, sources = [], [np.empty(0, np.int64)], self.sources[-1]
        for b, begin, end in zip(self.blocks.tolist(), first.tolist(), last.tolist()):
            if end > begin:
                if b not in sources:
                    sources.append(b)
                picks.append((sources.index(b), place[begin:end].astype(np.int32)))
                here.append(np.arange(begin, end))
        self.plan[-1].append(picks)
        return np.concatenate(here)


def _chunks(at: Sequence[Any]) -> list[tuple[Any, list[int]]]:
    """(home, some of the lists that go there): few tasks, and little memory for rows that are on their way."""
    by_home: dict[Any, list[int]] = {}
    for i, home in enumerate(at):
        by_home.setdefault(home, []).append(i)
    return [(home, lists[i : i + TOGETHER]) for home, lists in by_home.items() for i in range(0, len(lists), TOGETHER)]


def picked(plan: list[list[list[tuple[int, NDArray[np.int32]]]]], chunk: int, *blocks: Any) -> list[Any]:
    """The rows that a home has of each list of a chunk; None where it has none."""
    return [stacked([blocks[b][some] for b, some in picks]) if picks else None for picks in plan[chunk]]


def joined(plan: list[NDArray[np.int32]], number: int, within: int, fresh: Any, *parts: list[Any]) -> Any:
    """What was picked of the list `within` its chunk, below it `fresh` rows; row plan[number][i] of these at place i."""
    return stacked([part for part in (*(part[within] for part in parts), fresh) if part is not None])[plan[number]]


@dataclass(frozen=True)
class Order(Sent):
    """A subproblem without its rows: `within` are its samples' places among those of the cluster."""

    within: IntArray
    qp: QP
    alpha: FloatArray | None

    @classmethod
    def of(cls, task: Subproblem, within: IntArray, frame: Frame | None) -> Order:
        terms = task.data.kernel, task.data.dtype, frame, task.options, task.max_iter, task.deadline
        return cls(*terms, within=within, qp=task.qp, alpha=task.alpha)


def solve_order(order: Order, rows: Any, stopped: Stopped) -> DualResult:
    """Where the rows are."""
    data = order.data(rows, order.within)
    solving = Solving(order.qp, data, np.arange(len(order.within)), order.options, order.alpha)
    return to_its_end(lambda over: solving.steps(order.max_iter, order.deadline, over), stopped)


class Afar:
    """One level's subproblems on a carrier's workers."""

    def __init__(
        self, tasks: Sequence[Subproblem], members: Sequence[IntArray], blocks: Blocks, frame: Frame | None
    ) -> None:
        self._tasks, self._members, self._blocks, self._frame = tasks, members, blocks, frame
        self._carrier = blocks.carrier
        self._rows: dict[int, Any] = {}  # cluster: reference to its rows
        self._home: dict[int, Any] = {}  # cluster: where they are to be
        self._waiting: dict[Any, tuple[Subproblem, Any, int]] = {}  # reference: task, its rows, attempts before

    def solve(self, pieces: list[Piece]) -> Steps:
        """Safe points until all are done; closed before that, it leaves the rest alone."""
        try:
            self._move_rows()
            for i in range(0, len(self._tasks), AT_ONCE):
                self._submit(self._tasks[i : i + AT_ONCE], 0)
                yield None
            while self._waiting:
                for ref in self._carrier.wait(list(self._waiting), LOOK):
                    task, rows, attempts = self._waiting.pop(ref)
                    try:
                        pieces.append(Piece.of(task, self._carrier.get(ref)))
                    except LostError as lost:
                        self._again(task, rows, attempts + 1, lost)
                yield None
        finally:
            self._carrier.drop(list(self._waiting))

    def _move_rows(self) -> None:
        """Those of every cluster that has something to solve to one worker, before anything is solved.

        A worker that solves one cluster does not hand out its rows of the next: the others would wait for it.
        """
        if self._precomputed or not self._tasks:
            return
        work: dict[int, float] = {}
        for task in self._tasks:
            work[task.cluster] = work.get(task.cluster, 0.0) + float(task.size) ** 2
        homes = self._carrier.spread(list(work.values()))
        self._rows = dict(zip(work, self._blocks.move([self._members[c] for c in work], homes)))
        self._home = dict(zip(work, homes))

    @property
    def _precomputed(self) -> bool:
        """Not rows, but a block of the Gram matrix, another one at each level."""
        return bool(self._tasks) and self._tasks[0].data.kernel.name == "precomputed"

    def _submit(self, tasks: Sequence[Subproblem], attempts: int) -> None:
        within = [np.searchsorted(self._members[task.cluster], task.ids) for task in tasks]
        if self._precomputed:
            rows = self._carrier.put_all([task.data.restricted(task.ids).X for task in tasks])
            within = [np.arange(len(task.ids)) for task in tasks]
        else:
            rows = [self._rows[task.cluster] for task in tasks]
        places: dict[Any, list[int]] = {}
        for i, task in enumerate(tasks):
            places.setdefault(None if attempts else self._home.get(task.cluster), []).append(i)
        orders: dict[int, Any] = {}
        for home, some in places.items():
            made = [Order.of(tasks[i], within[i], self._frame) for i in some]
            orders.update(zip(some, self._carrier.put_all(made, home)))
        for i, task in enumerate(tasks):  # in their order: the largest first
            self._waiting[self._carrier.solve(solve_order, orders[i], rows[i])] = task, rows[i], attempts

    def _again(self, task: Subproblem, rows: Any, attempts: int, lost: LostError) -> None:
        if attempts >= ATTEMPTS:
            raise RuntimeError(
                f"{attempts} workers died while they solved a cluster of {task.size} samples: {lost}. Most often that is "
                f"memory: beside its rows it needs {task.options.cache_size:.0f} MB for kernel values (cache_size) and "
                f"{task.size * 200 / 1e6:.0f} MB of its own. Give workers more, or lower cache_size, or raise levels or k"
            ) from lost
        if self._rows.get(task.cluster) is rows:
            self._rows[task.cluster] = self._blocks.restore(self._members[task.cluster])
        self._submit([task], attempts)
