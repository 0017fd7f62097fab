"""The one loop that drives any solver: clock, iteration limit, progress bar, callback, Ctrl-C, trace.

A solver is an object with two methods:

    turns()         a generator. `yield Turn(...)` ends a turn of the outer loop; `yield None` is a safe point inside a
                    long turn, where the run may be stopped but nothing is reported. It returns when converged, or
                    returns a Status of its own (a stall). At every yield the solver's state is consistent.
    result(status)  the Result for the state reached, converged or not.

Ctrl-C: while a run is under way, SIGINT only sets a flag that is looked at at the yields, so that no step is torn
apart. The result then carries Status.INTERRUPTED; the estimator keeps the model and raises KeyboardInterrupt.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime.result import Result, Status, Turn

ResultT_co = TypeVar("ResultT_co", bound=Result, covariant=True)


class Solver(Protocol[ResultT_co]):
    def turns(self) -> Generator[Turn | None, None, Status | None]: ...

    def result(self, status: Status) -> ResultT_co: ...


@dataclass(frozen=True)
class Control:
    """Limits of a run and who watches it.

    max_time is in seconds (None: no limit); max_iter counts turns (-1: no limit). `callback` gets each turn as a dict
    (iteration, time, objective, gap, violation, n_support, and the solver's own numbers); a true return value stops.
    """

    max_time: float | None = None
    max_iter: int = -1
    verbose: bool | int = False
    callback: Callable[[dict[str, float]], Any] | None = None
    title: str = "fit"


def run(solver: Solver[ResultT_co], control: Control) -> ResultT_co:
    """Drive `solver` until it converges or a limit is reached; add trace and total time to its result."""
    start = time.perf_counter()
    log = _Log(start)
    status: Status | None = Status.CONVERGED
    with _deferred_interrupt() as interrupted, _progress(control) as show:
        turns = solver.turns()
        while True:
            try:
                turn = next(turns)
            except StopIteration as end:
                status = end.value or Status.CONVERGED
                break
            if turn is not None:
                row = log.add(turn)
                show(row)
                if control.callback is not None and control.callback(row):
                    status = Status.CALLBACK
                    break
                if 0 <= control.max_iter <= log.iterations:
                    status = Status.MAX_ITER
                    break
            if interrupted.is_set():
                status = Status.INTERRUPTED
                break
            if control.max_time is not None and time.perf_counter() - start >= control.max_time:
                status = Status.MAX_TIME
                break
        turns.close()
        result = solver.result(status)
        if interrupted.is_set():
            result.status = Status.INTERRUPTED
    result.n_iter = log.iterations
    result.trace = log.table()
    result.timings["total"] = time.perf_counter() - start
    return result


class _Log:
    """The turns so far; becomes a structured array with one column per number."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._rows: list[dict[str, float]] = []

    @property
    def iterations(self) -> int:
        return len(self._rows)

    def add(self, turn: Turn) -> dict[str, float]:
        row = {
            "iteration": len(self._rows) + 1,
            "time": time.perf_counter() - self._start,
            "objective": turn.objective,
            "gap": turn.gap,
            "violation": turn.violation,
            "n_support": turn.n_support,
            **turn.extra,
        }
        self._rows.append(row)
        return row

    def table(self) -> NDArray[Any]:
        names = ["iteration", "time", "objective", "gap", "violation", "n_support"]
        for row in self._rows:
            names += [name for name in row if name not in names]
        kinds = [(name, np.int64 if name in ("iteration", "n_support") else np.float64) for name in names]
        table = np.zeros(len(self._rows), dtype=kinds)
        for i, row in enumerate(self._rows):
            table[i] = tuple(row.get(name, np.nan) for name in names)
        return table


class _Flag:
    """As a threading.Event that nobody waits for, at a tenth of its cost."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def is_set(self) -> bool:
        return self._set


@contextmanager
def _deferred_interrupt() -> Iterator[_Flag]:
    """Within: SIGINT sets the event. A second Ctrl-C gets Python's usual treatment. Main thread only."""
    flag = _Flag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # someone else handles it (a notebook, an outer run): leave it
        yield flag
        return

    def note(signum: int, frame: Any) -> None:
        flag.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(control: Control) -> Iterator[Callable[[dict[str, float]], None]]:
    """Within: a function that shows one turn. A tqdm bar on stderr when verbose, else nothing."""
    if not control.verbose:
        yield lambda row: None
        return
    from tqdm.auto import tqdm

    total = control.max_iter if control.max_iter >= 0 else None
    with tqdm(total=total, desc=control.title, unit="it", dynamic_ncols=True) as bar:

        def show(row: dict[str, float]) -> None:
            shown = {k: f"{v:.4g}" for k, v in row.items() if k not in ("iteration", "time") and v == v}
            bar.set_postfix(shown, refresh=False)
            bar.update()

        yield show
