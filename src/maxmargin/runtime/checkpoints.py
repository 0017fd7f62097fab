"""When a run puts its state away, so that another can go on from there: every so many seconds, and at its end.

A solver that can be gone on from has a method

    snapshot()      what its turns have reached, in arrays of its own order; asked for at a yield, or after `result`

Whoever starts the run says what becomes of that (`write`): runtime knows no files and no problems. Where several ranks share
the run, a snapshot is that of a rank's own samples; all put theirs away at the same yield, by the first one's clock.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin.runtime.comm import ALONE, Comm


class Checkpoints:
    """Of one run; `write(snapshot, done)` puts one away. A disk that is full must not end a fit of hours: it is told."""

    def __init__(self, write: Callable[[Any, bool], None], every: float, comm: Comm = ALONE) -> None:
        self._write, self._every, self._comm = write, every, comm
        self._next = time.perf_counter() + every
        self.seconds = 0.0  # that writing took

    def look(self, solver: Any) -> None:
        """At a yield: put its state away if it is time."""
        due = self._comm.rank == 0 and time.perf_counter() >= self._next
        if self._comm.allreduce(np.array(due, np.int64), "max"):
            self.put(solver, False)

    def put(self, solver: Any, done: bool) -> None:
        """`done`: what was asked for is reached, so nothing is left to go on with."""
        begun = time.perf_counter()
        try:
            self._write(solver.snapshot(), done)
        except OSError as error:
            warnings.warn(
                f"checkpoint not written: {error}. The fit goes on; the last checkpoint stays as it is",
                RuntimeWarning,
                stacklevel=2,
            )
        now = time.perf_counter()
        self.seconds += now - begun
        self._next = now + self._every
