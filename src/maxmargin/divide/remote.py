"""Subproblems on other machines: rows that stay where they were sent, and a loop that a lost worker does not end.

A carrier is a cluster as this folder sees it: values are put on workers, functions are called there, and both are known
here by references. Each row of the samples is sent once. A level's cluster is then put together by the workers, out of
the rows that they have from the level below: only the numbers of rows and what belongs to a QP (bounds, signs, start)
come from here, and alpha and f go back.

    level 2     put(rows of cluster 0), put(rows of cluster 1), …
    level 1     on each worker pick(from the clusters that it has), then join(what was picked)

A worker that dies takes rows and results along. What was lost with it is sent anew and solved again, a few times: a
subproblem that takes its worker down every time has not enough memory there, and that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.decomposition.options import DualResult, Options
from maxmargin.divide.clustering import drained
from maxmargin.divide.side_by_side import LOOK, Steps
from maxmargin.divide.subproblem import KernelData, Piece, Solving, Subproblem
from maxmargin.kernel_values import Frame
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Deadline, deferred_interrupt

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ATTEMPTS = 4  # at one subproblem: a machine may be taken away twice, and a third time by chance


GONE = object()  # the home of a value that is lost


class LostError(Exception):
    """What was asked for is gone with the worker that had it, or that had what it needs."""


class Carrier(Protocol):
    """A cluster of workers. References are its own; those among the arguments of a call stand for their values."""

    def put(self, value: Any) -> Any:
        """Send a value to a worker, past whoever schedules."""
        ...

    def call(self, function: Callable[..., Any], *args: Any, at: Any = None) -> Any:
        """A reference to what the function returns; `at` is a home (see `homes`) to prefer."""
        ...

    def homes(self, refs: Sequence[Any]) -> list[Any]:
        """Where each value is: equal for those in one place, GONE for lost ones. Waits for those being computed."""
        ...

    def wait(self, refs: Sequence[Any], seconds: float) -> list[Any]:
        """Those that are there, failed or lost, as soon as there is one; none when the time is up."""
        ...

    def get(self, ref: Any) -> Any:
        """The value; the error that the function raised; or LostError."""
        ...

    def drop(self, refs: Sequence[Any]) -> None:
        """Nobody needs these any more: those not begun need not be, those under way may stop."""
        ...


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

    def move(self, rows: IntArray) -> Any:
        """A block of these rows, in this order, on one worker."""
        ref = self._gathered(rows)
        self._leave(rows)
        self.block[rows], self.place[rows] = self._next, np.arange(len(rows))
        self.refs[self._next], self._count[self._next] = ref, len(rows)
        self._next += 1
        return ref

    def restore(self, rows: IntArray) -> Any:
        """The same after their block was lost."""
        self._back_to_origin(rows)
        return self.move(rows)

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

    def _gathered(self, rows: IntArray) -> Any:
        """The rows out of the blocks that they are in: picked at each home, joined at one."""
        homes = self._homes(rows)
        block, place = self.block[rows], self.place[rows]
        new = np.flatnonzero(block < 0)
        if len(new):
            assert self._fetch is not None
            self.sent += len(new)
            if len(new) == len(rows):
                return self.carrier.put(self._fetch(rows))
        parts, order = [], []
        for home, group in homes.items():
            wanted = [np.flatnonzero(block == b) for b in group]
            order.append(np.concatenate(wanted))
            places = self.carrier.put([place[some].astype(np.int32) for some in wanted])
            parts.append(self.carrier.call(picked, places, *(self.refs[b] for b in group), at=home))
        if len(new):
            order.append(new)
            assert self._fetch is not None
            parts.append(self.carrier.put(self._fetch(rows[new])))
        back = np.argsort(np.concatenate(order), kind="stable").astype(np.int32)
        return self.carrier.call(joined, self.carrier.put(back), *parts)


def stacked(parts: Sequence[Any]) -> Any:
    """Rows below rows, dense or CSR."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def picked(places: list[IntArray], *blocks: Any) -> Any:
    """Some rows of each block."""
    return stacked([block[some] for block, some in zip(blocks, places)])


def joined(order: IntArray, *parts: Any) -> Any:
    """The parts one below the other, row order[i] at place i."""
    return stacked(parts)[order]


@dataclass(frozen=True)
class Order:
    """A subproblem without its rows: `within` are its samples' places among those of the cluster."""

    within: IntArray
    qp: QP
    alpha: FloatArray | None
    kernel: Kernel
    dtype: Any
    frame: Frame | None
    options: Options
    max_iter: int
    deadline: Deadline

    @classmethod
    def of(cls, task: Subproblem, within: IntArray, frame: Frame | None) -> Order:
        return cls(
            within, task.qp, task.alpha, task.data.kernel, task.data.dtype, frame, task.options, task.max_iter, task.deadline
        )


def solve_order(order: Order, rows: Any, stopped: Callable[[], bool] = lambda: False) -> DualResult:
    """Where the rows are. Ctrl-C, and a carrier that says so, end it in order."""
    data = KernelData(rows, order.kernel, order.within, order.dtype, order.options.threads, order.frame)
    solving = Solving(order.qp, data, np.arange(len(order.within)), order.options, order.alpha)
    with deferred_interrupt() as interrupted:
        return drained(solving.steps(order.max_iter, order.deadline, lambda: interrupted.is_set() or stopped()))


class Afar:
    """One level's subproblems on a carrier's workers."""

    def __init__(
        self, tasks: Sequence[Subproblem], members: Sequence[IntArray], blocks: Blocks, frame: Frame | None
    ) -> None:
        self._tasks, self._members, self._blocks, self._frame = tasks, members, blocks, frame
        self._carrier = blocks.carrier
        self._rows: dict[int, Any] = {}  # cluster: reference to its rows
        self._waiting: dict[Any, tuple[Subproblem, Any, int]] = {}  # reference: task, its rows, attempts before

    def solve(self, pieces: list[Piece]) -> Steps:
        """Safe points until all are done; closed before that, it leaves the rest alone."""
        try:
            for task in self._tasks:
                self._submit(task, 0)
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

    def _submit(self, task: Subproblem, attempts: int) -> None:
        c = task.cluster
        within = np.searchsorted(self._members[c], task.ids)
        if task.data.kernel.name == "precomputed":  # not rows, but a block of the Gram matrix, another one at each level
            rows, within = self._carrier.put(task.data.restricted(task.ids).X), np.arange(len(task.ids))
        else:
            if c not in self._rows:
                self._rows[c] = self._blocks.move(self._members[c])
            rows = self._rows[c]
        order = self._carrier.put(Order.of(task, within, self._frame))
        self._waiting[self._carrier.call(solve_order, order, rows)] = task, rows, attempts

    def _again(self, task: Subproblem, rows: Any, attempts: int, lost: LostError) -> None:
        if attempts >= ATTEMPTS:
            raise RuntimeError(
                f"{attempts} workers died while they solved a cluster of {task.size} samples: {lost}. Most often that is "
                f"memory: beside its rows it needs {task.options.cache_size:.0f} MB for kernel values (cache_size) and "
                f"{task.size * 200 / 1e6:.0f} MB of its own. Give workers more, or lower cache_size, or raise levels or k"
            ) from lost
        if self._rows.get(task.cluster) is rows:
            self._rows[task.cluster] = self._blocks.restore(self._members[task.cluster])
        self._submit(task, attempts)
