"""The one loop that drives any solver: clock, iteration limit, progress bar, callback, Ctrl-C, trace.

A solver is an object with two methods:

    turns()         a generator. `yield Turn(...)` ends a turn of the outer loop; `yield None` is a safe point inside a
                    long turn, where the run may be stopped but nothing is reported. It returns when converged, or
                    returns a Status of its own (a stall). At every yield the solver's state is consistent.
    result(status)  the Result for the state reached, converged or not. The status it carries is `settled`: whatever
                    limit struck, what reached the tolerance has converged, and nothing else has.

    progress()      optional: a Progress. Without it the bar counts turns.
    snapshot()      optional, for checkpoints: see runtime/checkpoints.py

`steps` is the loop as a generator, for whoever drives several solvers; `run` drains it, with progress and Ctrl-C.

Where several ranks share a fit, each drives its part of the same solver, and at every yield they agree (one small exchange)
whether to go on: the clock, callback or Ctrl-C of any of them stops all, an error in a callback is raised on all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from maxmargin.runtime import progress
from maxmargin.runtime.checkpoints import Checkpoints
from maxmargin.runtime.comm import ALONE, Comm
from maxmargin.runtime.deadline import Deadline
from maxmargin.runtime.interrupt import deferred_interrupt
from maxmargin.runtime.result import Progress, Result, Status, Turn
from maxmargin.runtime.together import agree
from maxmargin.runtime.trace import WHOLE, Log

T = TypeVar("T")
ResultT = TypeVar("ResultT", bound=Result)
ResultT_co = TypeVar("ResultT_co", bound=Result, covariant=True)
Row = dict[str, float]

WEIGHTIER = (None, Status.MAX_TIME, Status.MAX_ITER, Status.CALLBACK, Status.INTERRUPTED)  # what ranks agree on: the last
SEEN = ("iteration", "objective", "dual", "violation")  # of a turn, the same bits on all ranks


class Solver(Protocol[ResultT_co]):
    def turns(self) -> Generator[Turn | None, None, Status | None]: ...

    def result(self, status: Status) -> ResultT_co: ...


@dataclass(frozen=True)
class Control:
    """Limits of a run and who watches it.

    max_time is in seconds (None: no limit) from the moment that this is made, which is when a fit begins; a run that is
    one of several gets an own `deadline`. max_iter counts turns (-1: no limit). `callback` gets each turn as a dict
    (the columns of runtime.trace); a true return value stops. `comm`: the ranks that share the run.
    """

    max_time: float | None = None
    max_iter: int = -1
    verbose: bool | int = False
    callback: Callable[[Row], Any] | None = None
    title: str = "fit"
    begun: float = field(default_factory=time.perf_counter)
    deadline: Deadline = None  # type: ignore[assignment]  # made from max_time
    comm: Comm = ALONE
    checkpoints: Checkpoints | None = None

    def __post_init__(self) -> None:
        if self.deadline is None:
            object.__setattr__(self, "deadline", Deadline.after(self.max_time))

    def part(self, k: int) -> Control:
        """For the next of k runs that follow one another: an equal part of the time that is left."""
        return replace(self, deadline=self.deadline.share(k))

    def verdict(self, row: Row | None, iterations: int) -> Status | None:
        """Why to stop after this step, if at all."""
        if row is not None:
            if self.callback is not None and self.callback(row):
                return Status.CALLBACK
            if 0 <= self.max_iter <= iterations:
                return Status.MAX_ITER
        return Status.MAX_TIME if self.deadline.passed() else None

    def agreed(self, row: Row | None, iterations: int, stopped: Callable[[], bool]) -> Status | None:
        """Why to stop, on all ranks."""
        verdict, error = None, None
        try:
            verdict = self.verdict(row, iterations)
        except Exception as caught:  # of the callback
            if self.comm.size == 1:
                raise
            error = caught
        if stopped():
            verdict = Status.INTERRUPTED
        if self.comm.size == 1:
            return verdict
        seen = "" if row is None else ", ".join(f"{name}={row[name]!r}" for name in SEEN)
        return WEIGHTIER[agree(self.comm, WEIGHTIER.index(verdict), seen.encode(), error)]


def settled(status: Status, violation: float, tol: float) -> Status:
    """The status of a run with this final violation of the whole problem: converged is converged, and only that is.

    What the user stopped stays stopped by the user, so that the rest of a fit ends as well.
    """
    if status.by_user:
        return status
    if violation <= tol:
        return Status.CONVERGED
    return Status.STALLED if status is Status.CONVERGED else status


def steps(
    solver: Solver[ResultT], control: Control, stopped: Callable[[], bool] = lambda: False
) -> Generator[Row | None, None, ResultT]:
    """Drive `solver`, yielding after each of its steps (the turn as a row, or None), to its result with trace and time."""
    begun = time.perf_counter()
    log = Log(control.begun)
    turns = solver.turns()
    while True:
        try:
            turn = next(turns)
        except StopIteration as end:
            status: Status = end.value or Status.CONVERGED
            agree(control.comm, 0, b"the end")
            break
        row = None if turn is None else log.add(turn)
        if control.checkpoints is not None:
            control.checkpoints.look(solver)
        yield row
        verdict = control.agreed(row, log.iterations, stopped)
        if verdict is not None:
            status = verdict
            break
    turns.close()
    result = solver.result(status)
    if agree(control.comm, int(stopped()), b"the result"):
        result.status = Status.INTERRUPTED
    result.n_iter = log.iterations
    result.trace = log.close(result)
    if control.checkpoints is not None:
        control.checkpoints.put(solver, result.status.done)
        result.timings["checkpoints"] = control.checkpoints.seconds
    result.timings["total"] = time.perf_counter() - begun
    return result


def run(solver: Solver[ResultT], control: Control) -> ResultT:
    """Drive `solver` until it converges or a limit is reached; its result, with trace and total time."""
    with deferred_interrupt() as interrupted, _progress(control, getattr(solver, "progress", None)) as show:
        going = steps(solver, control, interrupted.is_set)
        while True:
            try:
                row = next(going)
            except StopIteration as end:
                result: ResultT = end.value
                return result
            show(row)


def drained(steps: Generator[Any, None, T]) -> T:
    """What a generator of steps returns, when nobody waits in between."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def _worth_showing(name: str, value: float) -> bool:
    """Not what the bar counts itself, nor what is not known (NaN), nor a -1 that stands for no number at all."""
    return name not in ("iteration", "time", "done") and value == value and not (name in WHOLE and value < 0)


@contextmanager
def _progress(control: Control, measure: Callable[[], Progress] | None) -> Iterator[Callable[[Row | None], None]]:
    """Within: a function that shows a step, a turn or none. A bar or lines on stderr when verbose, else nothing.

    The bar counts turns, or what `measure` says.
    """
    if not control.verbose:
        yield lambda row: None
        return
    total = control.max_iter if control.max_iter >= 0 else None
    with progress.bar(control.title, "it", total, control.begun) as bar:

        def show(row: Row | None) -> None:
            if row is not None:
                bar.set_postfix({k: f"{v:.4g}" for k, v in row.items() if _worth_showing(k, v)}, refresh=False)
            if measure is None:
                bar.update(row is not None)
                return
            at = measure()
            bar.total, bar.unit = at.total, at.unit
            bar.set_description_str(f"{control.title}, {at.what}" if at.what else control.title, refresh=False)
            bar.update(at.done - bar.n)

        yield show
        if measure is not None:
            show(None)
