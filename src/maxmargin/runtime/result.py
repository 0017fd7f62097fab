"""What a solver says while it runs (Turn) and when it ends (Result)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Status(str, Enum):
    """Why a solver stopped. Only CONVERGED means that the tolerance was reached.

    COMPLETED: all the passes that were asked for were made, by a solver that has no tolerance to test.
    """

    CONVERGED = "converged"
    COMPLETED = "completed"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    CALLBACK = "callback"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Turn:
    """One line of a solver's report, made once per turn of its outer loop.

    `gap` is the duality gap (NaN while unknown), `violation` what the solver compares with its tolerance.
    """

    objective: float
    gap: float
    violation: float
    n_support: int
    extra: dict[str, float] = field(default_factory=dict)


@dataclass
class Result:
    """What every solver returns; each solver's own subclass adds its solution."""

    status: Status = Status.CONVERGED
    n_iter: int = 0
    objective: float = float("nan")
    gap: float = float("nan")
    violation: float = float("nan")
    trace: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    timings: dict[str, float] = field(default_factory=dict)
