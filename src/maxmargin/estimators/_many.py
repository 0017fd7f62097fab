"""Several solver runs behind one fit: one report, one time limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime import Control, Result, Status

STOPPED = (Status.INTERRUPTED, Status.CALLBACK)  # by the user: what is left of the fit must not go on


def combined(results: Sequence[Result]) -> Result:
    """One report: objectives and gaps added, the worst violation, and the user's stop or else the first bad status."""
    if len(results) == 1:
        return results[0]
    bad = [r.status for r in results if r.status is not Status.CONVERGED]
    timings: dict[str, float] = {}
    for r in results:
        for name, value in r.timings.items():
            timings[name] = timings.get(name, 0) + value
    return Result(
        status=next((status for status in STOPPED if status in bad), bad[0] if bad else Status.CONVERGED),
        n_iter=sum(r.n_iter for r in results),
        objective=float(sum(r.objective for r in results)),
        gap=float(sum(r.gap for r in results)),
        violation=max(r.violation for r in results),
        trace=_stacked([r.trace for r in results]),
        timings=timings,
    )


def share_of_time(control: Control, start: float, left: int) -> float | None:
    """Seconds for the next of `left` runs: an equal part of what remains of max_time."""
    if control.max_time is None:
        return None
    return max(0.0, control.max_time - (time.perf_counter() - start)) / left


def after(result: Result, control: Control) -> Control:
    """The control of the next run of the same fit: once the user has stopped one, the others end after their first step."""
    return replace(control, max_time=0.0, callback=None) if result.status in STOPPED else control


def _stacked(traces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The traces one after the other, with a column that says which problem a row belongs to."""
    columns = max(traces, key=lambda t: len(t.dtype.names or ())).dtype
    out = np.zeros(sum(map(len, traces)), dtype=[*columns.descr, ("problem", np.int64)])
    start = 0
    for k, trace in enumerate(traces):
        part = out[start : start + len(trace)]
        for name in trace.dtype.names or ():
            part[name] = trace[name]
        part["problem"] = k
        start += len(trace)
    return out
