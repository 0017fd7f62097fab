"""When a fit must end: one absolute moment, taken when the fit begins, so that set-up counts."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from maxmargin.runtime.comm import Comm

LEAST_SECONDS = 1e-3  # of a fit for which there is no time left


@dataclass(frozen=True)
class Deadline:
    """A moment on this process's monotonic clock; None is never. Pickled, it travels as the seconds that are left."""

    end: float | None = None

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """The moment `seconds` from now; None: never."""
        return cls(None if seconds is None else time.perf_counter() + seconds)

    def left(self) -> float | None:
        """Seconds to go, at least 0; None: no limit."""
        return None if self.end is None else max(0.0, self.end - time.perf_counter())

    def limit(self) -> float | None:
        """`max_time` of a fit that must end then, which is never 0: with no time left it ends after its first turn."""
        left = self.left()
        return None if left is None else max(left, LEAST_SECONDS)

    def passed(self, margin: float = 0.0) -> bool:
        """Whether the moment comes within `margin` seconds."""
        return self.end is not None and time.perf_counter() + margin >= self.end

    def passed_for_all(self, comm: Comm, margin: float = 0.0) -> bool:
        """The same for all ranks that share a run: whether it has for one of them. They agree about `max_time`, so that
        a moment that never comes does so for all."""
        if comm.size == 1 or self.end is None:
            return self.passed(margin)
        return bool(comm.allreduce(np.array(self.passed(margin), np.int64), "max"))

    def share(self, k: int) -> Deadline:
        """An equal part of what is left for the next of k runs that follow one another."""
        left = self.left()
        return self if left is None else Deadline.after(left / k)

    def __reduce__(self) -> tuple[object, tuple[float | None]]:
        return Deadline.after, (self.left(),)


NEVER = Deadline()
