"""Several solver runs behind one fit: one report, one time limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from maxmargin.runtime import Control, Deadline, Result, Status
from maxmargin.runtime.trace import stacked


def combined(results: Sequence[Result]) -> Result:
    """One report: objectives and gaps added, the worst violation, and the user's stop or else the first bad status."""
    if len(results) == 1:
        return results[0]
    bad = [r.status for r in results if r.status is not Status.CONVERGED]
    timings: dict[str, float] = {}
    for r in results:
        for name, value in r.timings.items():
            timings[name] = timings.get(name, 0) + value
    total = Result(
        status=next((status for status in bad if status.by_user), bad[0] if bad else Status.CONVERGED),
        n_iter=sum(r.n_iter for r in results),
        objective=float(sum(r.objective for r in results)),
        gap=float(sum(r.gap for r in results)),
        violation=float(np.max([r.violation for r in results])),  # NaN if one is
        n_support=sum(r.n_support for r in results),
        timings=timings,
    )
    total.trace = stacked([r.trace for r in results], total)
    return total


def after(result: Result, control: Control) -> Control:
    """The control of the next run of the same fit: once the user has stopped one, the others end after their first step."""
    return replace(control, deadline=Deadline.after(0.0), callback=None) if result.status.by_user else control
