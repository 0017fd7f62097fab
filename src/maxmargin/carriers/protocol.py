"""A cluster as solvers see it: values are put on workers, functions are called there, both are known here by references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

LOOK = 0.1  # seconds between safe points while all workers are busy: how long Ctrl-C or a callback may have to wait
ATTEMPTS = 4  # at one piece of work: a machine may be taken away twice, and a third time by chance
GONE = object()  # the home of a value that is lost


class LostError(Exception):
    """What was asked for is gone with the worker that had it, or that had what it needs."""


def never() -> bool:
    """Whether nobody waits any more, where nobody can tell: Ctrl-C, or an own time limit, ends such work."""
    return False


class Carrier(Protocol):
    """A cluster of workers. References are its own; those among the arguments of a call stand for their values."""

    def put(self, value: Any, at: Any = None) -> Any:
        """Send a value to a worker (the one at that home), past whoever schedules."""
        ...

    def put_all(self, values: Sequence[Any], at: Any = None) -> list[Any]:
        """The same of several values, in one go."""
        ...

    def spread(self, work: Sequence[float]) -> list[Any]:
        """A home for each of these amounts of work, so that all workers get about as much; None: any."""
        ...

    def call(self, function: Callable[..., Any], *args: Any, at: Any = None) -> Any:
        """A reference to what the function returns; `at` is a home (see `homes`) to prefer."""
        ...

    def solve(self, function: Callable[..., Any], *args: Any) -> Any:
        """The same of a function that takes long; its last argument is one that says whether nobody waits any more."""
        ...

    def homes(self, refs: Sequence[Any]) -> list[Any]:
        """Where each value is: equal for those in one place, GONE for lost ones. Waits for those being computed."""
        ...

    def wait(self, refs: Sequence[Any], seconds: float) -> list[Any]:
        """Those that are there, failed or lost, as soon as there is one; none when the time is up."""
        ...

    def get(self, ref: Any) -> Any:
        """The value; the error that the function raised; or LostError."""
        ...

    def drop(self, refs: Sequence[Any]) -> None:
        """Nobody needs these any more: those not begun need not be, those under way may stop."""
        ...
