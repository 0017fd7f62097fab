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
    EARLY: the level of divide and conquer that was asked for is finished; the whole problem was not solved.
    """

    CONVERGED = "converged"
    COMPLETED = "completed"
    EARLY = "early"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    CALLBACK = "callback"

    def __str__(self) -> str:
        return self.value

    @property
    def done(self) -> bool:
        """Whether what was asked for was reached."""
        return self in (Status.CONVERGED, Status.COMPLETED, Status.EARLY)

    @property
    def by_user(self) -> bool:
        """Whether the user stopped it: then what is left of a fit must not go on."""
        return self in (Status.INTERRUPTED, Status.CALLBACK)


@dataclass(frozen=True)
class Turn:
    """One line of a solver's report, made once per turn of its outer loop. Unknown numbers are NaN.

    objective   the primal value of the model reached: no optimum lies above it
    dual        the best lower bound known: no model has an objective below it
    violation   what the solver compares with its tolerance
    n_support   samples that the model rests on; -1 where that is not known
    """

    objective: float
    dual: float
    violation: float
    n_support: int
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        return self.objective - self.dual


@dataclass(frozen=True)
class Progress:
    """How far a run has come, for a solver that knows it better than by its turns: `done` of `total` units of work.

    A solver says it by a method `progress()`, which is asked at every yield when somebody watches. `what` names the part
    of the work under way, where it has several.
    """

    done: float
    total: float | None
    unit: str
    what: str = ""


@dataclass
class Result:
    """What every solver returns; each solver's own subclass adds its solution. `objective` is the primal value.

    `extra` is what the last row of the trace says in columns of the solver's own.
    """

    status: Status = Status.CONVERGED
    n_iter: int = 0
    objective: float = float("nan")
    gap: float = float("nan")
    violation: float = float("nan")
    n_support: int = -1
    problems: int = 1  # solved side by side behind one run; their turns carry `problem`
    trace: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    timings: dict[str, float] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
