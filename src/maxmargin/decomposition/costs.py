"""What a run has spent: seconds per step, counts, kernel values; and from that, what a pass to come would take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

HIT_COST = 0.8  # what a cached row saves of the time of a computed one, about


class Costs:
    """Seconds by step, and how often what was done."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(("start", "select", "tile", "inner", "update", "shrink"), 0.0)
        self.counts = dict.fromkeys(("inner_steps", "rows", "cache_hits", "unshrinks", "inner_fallbacks"), 0)
        self._updated = self._summed = 0.0  # kernel values computed in updates, and in sums at the start

    @contextmanager
    def clock(self, step: str) -> Iterator[None]:
        """Adds the time spent inside to a step's."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - begin

    def updated(self, rows: int, hits: int, samples: int) -> None:
        """So many rows of kernel values went into f, so many of them from the cache."""
        self.counts["rows"] += rows
        self.counts["cache_hits"] += hits
        self._updated += (rows - HIT_COST * hits) * samples

    def summed(self, values: float) -> None:
        self._summed += values

    def expected(self, values: float) -> float:
        """About how many seconds so many kernel values take."""
        of_updates = (self.seconds["update"], self._updated)
        spent, made = of_updates if self._updated else (self.seconds["start"], self._summed)
        return values * spent / max(made, 1.0)
