"""The generators that solvers are, for tests that ask what they say on the way (runtime.drained: what they return)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any


def listened(steps: Generator[Any, None, Any]) -> tuple[Any, list[Any]]:
    """The value of a generator, and what it said on the way."""
    said = []
    while True:
        try:
            said.append(next(steps))
        except StopIteration as end:
            return end.value, said


def paused(steps: Generator[Any, None, Any]) -> tuple[Any, int]:
    """The value of a generator, and how often it paused."""
    value, said = listened(steps)
    return value, len(said)
