"""Ctrl-C during a fit: the first ends it with the model reached, a second one is Python's KeyboardInterrupt.

While a fit is under way SIGINT only sets a flag that is looked at at the solver's yields, so that no step is torn apart.
A second Ctrl-C, during the same fit or within two seconds after the first, goes to whoever handled SIGINT before: a
program that makes one fit after the other (a grid search) is ended by pressing twice.

A fit holds SIGINT from its first line to its last; the runs inside it share its flag.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TWICE = 2.0  # seconds between two Ctrl-C that belong together

class Flag:
    """As a threading.Event that nobody waits for, at a tenth of its cost."""

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set


_last = -float("inf")  # when Ctrl-C last ended a fit: the one thing that two fits must share
_held: Flag | None = None  # of the fit that the main thread is in


@contextmanager
def deferred_interrupt() -> Iterator[Flag]:
    """Within: the first SIGINT sets the flag. In the main thread, and unless someone else (a notebook) handles it."""
    global _held
    here = threading.current_thread() is threading.main_thread()
    if here and _held is not None:
        yield _held
        return
    flag = Flag()
    before = signal.getsignal(signal.SIGINT) if here else None
    if before is not signal.default_int_handler:
        yield flag
        return

    def note(signum: int, frame: Any) -> None:
        global _last
        now, then = time.monotonic(), _last
        _last = now
        signal.signal(signal.SIGINT, before)
        if now - then < TWICE:
            raise KeyboardInterrupt
        flag.set()

    signal.signal(signal.SIGINT, note)
    _held = flag
    try:
        yield flag
    finally:
        _held = None
        signal.signal(signal.SIGINT, before)
