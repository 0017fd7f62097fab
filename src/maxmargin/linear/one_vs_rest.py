"""One binary problem per class as one solver with one clock: one after the other, or several side by side.

Classes are independent, so their objectives, bounds and gaps add up: the sum of the gaps bounds the distance of the
joint objective from its optimum. A run that is stopped early keeps what it has for every class, zero for classes it
has not reached. Where a limit is set (`fair`) the classes take turns, so that each has a model when the limit comes;
otherwise one is finished before the next begins, which leaves its rows in cache.

Side by side: `workers` threads take one class each, turn by turn, and the next class when one is done or, if fair, has
had its turn (the core releases the interpreter). A class computes what it would compute alone, so the result does not
depend on `workers`. Turns are reported as they come; with `ordered` the classes at work report in turn, so that a limit
on the number of turns cuts every run at the same place.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from maxmargin.linear.certified import LinearResult
from maxmargin.linear.rounding import FloatArray
from maxmargin.runtime import Status, Turn

PAUSE = 0.05  # seconds after which a long turn lets the run look at its clock and at Ctrl-C


class OneVsRest:
    """`make(k)` builds the solver of class k."""

    def __init__(
        self, make: Callable[[int], Any], classes: int, *, workers: int = 1, ordered: bool = False, fair: bool = False
    ) -> None:
        self._make = make
        self._solvers: dict[int, Any] = {}
        self._turns: dict[int, Generator[Turn | None, None, Status | None]] = {}
        self._classes = classes
        self._workers = min(workers, classes)
        self._ordered = ordered
        self._fair = fair
        self.statuses: dict[int, Status] = {}

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        yield from self._side_by_side() if self._workers > 1 else self._one_by_one()
        return Status.STALLED if Status.STALLED in self.statuses.values() else None

    def _one_by_one(self) -> Generator[Turn | None, None, None]:
        waiting = deque(range(self._classes))
        while waiting:
            k = waiting.popleft()
            self._start(k)
            turn = self._advance(k)
            self._queue(k, waiting)
            yield turn

    def _side_by_side(self) -> Generator[Turn | None, None, None]:
        stop = threading.Event()
        waiting = deque(range(self._classes))
        running: dict[Future[Turn | None], int] = {}
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                while waiting or running:
                    while waiting and len(running) < self._workers:
                        k = waiting.popleft()
                        self._start(k)
                        running[pool.submit(self._whole_turn, k, stop)] = k
                    oldest = next(iter(running))
                    wait([oldest] if self._ordered else running, PAUSE, FIRST_COMPLETED)
                    done = [future for future in running if future.done() and (not self._ordered or future is oldest)]
                    for future in done:
                        self._queue(running.pop(future), waiting)
                        yield future.result()
                    if not done:
                        yield None
            finally:  # also when the run is stopped: the workers end at their next safe point
                stop.set()

    def _start(self, k: int) -> None:
        if k not in self._solvers:
            self._solvers[k] = self._make(k)
            self._turns[k] = self._solvers[k].turns()

    def _queue(self, k: int, waiting: deque[int]) -> None:
        """A class that is not done is the next, or if fair the last."""
        if k in self.statuses:
            return
        if self._fair:
            waiting.append(k)
        else:
            waiting.appendleft(k)

    def _whole_turn(self, k: int, stop: threading.Event) -> Turn | None:
        turn = None
        while turn is None and k not in self.statuses and not stop.is_set():
            turn = self._advance(k)
        return turn

    def _advance(self, k: int) -> Turn | None:
        """To the next yield of class k, or to its end."""
        try:
            turn: Turn | None = next(self._turns[k])
        except StopIteration as end:
            self.statuses[k] = end.value or Status.CONVERGED
            return None
        if turn is not None:
            turn.extra["problem"] = k
        return turn

    def result(self, status: Status) -> LinearResult:
        parts = [
            (self._solvers[k] if k in self._solvers else self._make(k)).result(status) for k in range(self._classes)
        ]
        timings: dict[str, float] = {}
        for part in parts:
            for name, seconds in part.timings.items():
                timings[name] = timings.get(name, 0.0) + seconds
        weights: FloatArray = np.array([part.w for part in parts])
        statuses = [part.status for part in parts if part.status is not Status.CONVERGED]
        return LinearResult(
            status=statuses[0] if statuses else Status.CONVERGED, objective=sum(p.objective for p in parts),
            gap=sum(p.gap for p in parts), violation=max(p.violation for p in parts),
            n_support=sum(p.n_support for p in parts), problems=len(parts), timings=timings, w=weights,
            lower=sum(p.lower for p in parts), cuts=[cuts for part in parts for cuts in part.cuts],
        )
