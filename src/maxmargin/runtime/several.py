"""Several problems as one solver: one clock, one bar, one Ctrl-C, one trace (rows carry `problem`).

Problems are independent, so objectives, gaps and bounds add up. `make(k, deadline)` builds the solver of problem k.

    one after the other    each has an equal share of the time that is left; what it leaves over goes to the others
    take_turns             each has one turn after the other, so that all have a model when the limit comes; all their
                           states are held at once
    workers > 1            side by side in threads, one problem each (the core releases the interpreter). A problem
                           computes what it would compute alone, so the result does not depend on `workers`. Turns are
                           reported as they come; with `ordered` the problems at work report in turn, so that a limit on
                           the number of turns cuts every run at the same place. The first `alone` of them have nobody
                           beside them.

A run that is stopped keeps what it has of every problem; `at_least` says how many turns those have that it has not come to.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from maxmargin.runtime.comm import ALONE, Comm
from maxmargin.runtime.deadline import NEVER, Deadline
from maxmargin.runtime.result import Progress, Result, Status, Turn
from maxmargin.runtime.run import ResultT, Solver

PAUSE = 0.05  # seconds after which a long turn lets the run look at its clock and at Ctrl-C
Turns = Generator[Turn | None, None, Status | None]


@dataclass
class Total(Result, Generic[ResultT]):
    """The report of several problems, and theirs."""

    parts: Sequence[ResultT] = field(default_factory=list)


def total(parts: Sequence[ResultT]) -> Total[ResultT]:
    """One report: objectives and gaps added, the worst violation, and the user's stop or else the first bad status."""
    bad = [part.status for part in parts if part.status is not Status.CONVERGED]
    timings: dict[str, float] = {}
    for part in parts:
        for name, value in part.timings.items():
            timings[name] = timings.get(name, 0.0) + value
    return Total(
        status=next((status for status in bad if status.by_user), bad[0] if bad else Status.CONVERGED),
        objective=float(sum(part.objective for part in parts)),
        gap=float(sum(part.gap for part in parts)),
        violation=float(np.array([part.violation for part in parts]).max()),  # NaN if one is
        n_support=sum(part.n_support for part in parts),
        problems=len(parts),
        timings=timings,
        extra=dict(parts[0].extra) if len(parts) == 1 else {},
        parts=parts,
    )


class Several(Generic[ResultT]):
    """A solver of `count` problems."""

    def __init__(
        self, make: Callable[[int, Deadline], Solver[ResultT]], count: int, *, deadline: Deadline = NEVER,
        max_turns: int = -1, workers: int = 1, ordered: bool = False, take_turns: bool = False, at_least: int = 0,
        numbers: Sequence[int] | None = None, comm: Comm = ALONE, alone: int = 0, before: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """`max_turns` is a limit for each problem (-1: none), `numbers` what their rows of the trace call them, `before` the
        turns that they have had.

        `comm`: the ranks that share every one of the problems (one after the other, without workers).

        Without numbers they are 0, 1, …, and a single one has none.
        """
        self._numbers = range(count) if numbers is None and count > 1 else numbers
        self._make, self._count, self._deadline = make, count, deadline
        self._workers, self._ordered, self._take_turns = min(workers, count), ordered, take_turns
        self._max_turns, self._at_least, self._comm, self._alone = max_turns, at_least, comm, alone
        self._before = [0] * count if before is None else before
        self._solvers: dict[int, Solver[ResultT]] = {}
        self._turns: dict[int, Turns] = {}
        self._made: dict[int, int] = {}  # turns of each
        self._until: dict[int, Deadline] = {}
        self._parts: dict[int, ResultT] = {}
        self._busy: set[int] = set()  # in a thread, where nobody else may look at them
        self._wanted: set[int] = set()  # of these, whose snapshots are due
        self._seen: dict[int, Any] = {}  # the last snapshots

    def progress(self) -> Progress:
        return Progress(len(self._parts), self._count, "problem")

    def turns(self) -> Turns:
        yield from self._side_by_side() if self._workers > 1 else self._one_by_one()
        return total(self._in_order()).status

    def result(self, status: Status) -> Total[ResultT]:
        self._busy.clear()
        for k in range(self._count):
            if k not in self._parts:
                self._complete(k, status)
        return total(self._in_order())

    def snapshot(self) -> list[Any]:
        """Of each problem; None for those not begun.

        Those at work in threads cannot be looked at: of them what they had after the turn that the last call fell into.
        """
        self._wanted = set(self._busy)
        for k in list(self._solvers):
            if k not in self._busy:
                self._look(k)
        done = {k: part.snapshot() for k, part in list(self._parts.items())}  # type: ignore[attr-defined]
        return [done[k] if k in done else self._seen.get(k) for k in range(self._count)]

    def _look(self, k: int) -> None:
        if k in self._solvers:
            self._seen[k] = self._solvers[k].snapshot()  # type: ignore[attr-defined]

    # ---- in which order ------------------------------------------------------------------------------------------

    def _one_by_one(self) -> Generator[Turn | None, None, None]:
        waiting = deque(range(self._count))
        while waiting:
            k = waiting.popleft()
            self._start(k, 1 if self._take_turns else len(waiting) + 1)
            turn = self._advance(k)
            self._queue(k, waiting)
            yield turn

    def _side_by_side(self) -> Generator[Turn | None, None, None]:
        stop = threading.Event()
        waiting = deque(range(self._count))
        running: dict[Future[Turn | None], int] = {}
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < self._at_once(waiting[0], *running.values()):
                        k = waiting.popleft()
                        rest = -(-(len(waiting) + 1) // self._workers)
                        self._start(k, 1 if self._take_turns else rest)
                        self._busy.add(k)
                        running[pool.submit(self._whole_turn, k, stop)] = k
                    oldest = next(iter(running))
                    wait([oldest] if self._ordered else running, PAUSE, FIRST_COMPLETED)
                    done = [future for future in running if future.done() and (not self._ordered or future is oldest)]
                    for future in done:
                        k = running.pop(future)
                        self._busy.discard(k)
                        if k in self._wanted:
                            self._look(k)
                        self._queue(k, waiting)
                        yield future.result()
                    if not done:
                        yield None
            finally:  # also when the run is stopped: the workers end at their next safe point
                stop.set()

    def _at_once(self, *problems: int) -> int:
        """How many of these may be at work."""
        return 1 if min(problems) < self._alone else self._workers

    def _queue(self, k: int, waiting: deque[int]) -> None:
        """A problem that is not done is the next, or the last where they take turns."""
        if k not in self._parts:
            (waiting.append if self._take_turns else waiting.appendleft)(k)

    # ---- one problem ---------------------------------------------------------------------------------------------

    def _start(self, k: int, share: int) -> None:
        if k not in self._solvers:
            self._until[k] = self._deadline.share(share)
            self._solvers[k] = self._make(k, self._until[k])
            self._turns[k], self._made[k] = self._solvers[k].turns(), self._before[k]

    def _whole_turn(self, k: int, stop: threading.Event) -> Turn | None:
        turn = None
        while turn is None and k not in self._parts and not stop.is_set():
            turn = self._advance(k)
        return turn

    def _advance(self, k: int) -> Turn | None:
        """To the next yield of problem k, or to its end."""
        try:
            turn = next(self._turns[k])
        except StopIteration as end:
            self._end(k, end.value or Status.CONVERGED)
            return None
        if turn is not None:
            self._made[k] += 1
            if self._numbers is not None:
                turn.extra["problem"] = self._numbers[k]
            if 0 <= self._max_turns <= self._made[k]:
                self._end(k, Status.MAX_ITER)
        if k not in self._parts and self._until[k].passed_for_all(self._comm):
            self._end(k, Status.MAX_TIME)
        return turn

    def _end(self, k: int, status: Status) -> None:
        self._turns.pop(k).close()
        part = self._solvers.pop(k).result(status)  # the solver's memory is the next one's
        part.n_iter = self._made[k]
        self._parts[k] = part

    def _complete(self, k: int, status: Status) -> None:
        """Of a problem that the run has not finished, what there is of it."""
        self._start(k, 1)
        self._until[k] = NEVER
        while self._made[k] < self._at_least and k not in self._parts:
            self._advance(k)
        if k not in self._parts:
            self._end(k, status)

    def _in_order(self) -> list[ResultT]:
        return [self._parts[k] for k in range(self._count)]
