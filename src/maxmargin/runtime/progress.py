"""What is seen of a run: a bar where it can be redrawn (a terminal, a notebook), a few plain lines where it cannot.

A log file gets a line when a fit has taken a quarter longer than at the last one: some forty in the first hour of it,
however many turns or problems it has, and none is overwritten.
"""

from __future__ import annotations

import sys
import time
from typing import Any

GROWTH = 1.25  # of the time between two lines of one fit
FIRST = 1.0  # seconds until the first line of a fit that goes on
_shown = (-1.0, 0.0)  # when the fit that wrote the last line began, and how long it had taken by then


def interactive() -> bool:
    """Whether what was written can be written over: a terminal, or a notebook with widgets."""
    from tqdm import autonotebook, std

    return autonotebook.tqdm is not std.tqdm or bool(getattr(sys.stderr, "isatty", lambda: False)())


def bar(title: str, unit: str, total: float | None = None, begun: float | None = None) -> Any:
    """A tqdm bar, or Lines, which have of tqdm's methods those that a run uses. `begun`: of the whole fit."""
    if not interactive():
        return Lines(title, unit, total, time.perf_counter() if begun is None else begun)
    from tqdm.auto import tqdm

    return tqdm(total=total, desc=title, unit=unit, dynamic_ncols=True)


class Lines:
    """Progress as lines of a log on stderr."""

    def __init__(self, desc: str, unit: str, total: float | None, begun: float) -> None:
        self.desc, self.unit, self.total = desc, unit, total
        self.n = 0.0
        self._begun, self._postfix = begun, ""

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *error: object) -> None:
        self._line(0.0)

    def set_postfix(self, values: dict[str, str], refresh: bool = False) -> None:
        self._postfix = "".join(f", {name}={value}" for name, value in values.items())

    def set_description_str(self, text: str, refresh: bool = False) -> None:
        self.desc = text

    def update(self, done: float) -> None:
        self.n += done
        self._line(FIRST)

    def refresh(self) -> None:
        """A bar is drawn again; a line is not."""

    def _line(self, first: float) -> None:
        global _shown
        begun, last = _shown
        spent = time.perf_counter() - self._begun
        if spent < (last * GROWTH if begun == self._begun else first):
            return
        _shown = (self._begun, spent)
        of = f"/{self.total:,.0f}" if self.total else ""
        print(f"{self.desc}: {spent:.1f} s, {self.n:,.0f}{of} {self.unit}{self._postfix}", file=sys.stderr, flush=True)
