"""NumPy's and SciPy's linear algebra on one thread, by fits that may run in several threads of Python.

Where a library has one number of threads for the whole process, as OpenBLAS with threads of its own, the first fit that
comes in sets it and the last that leaves puts it back. If each put back what it had found, one would lift the limit of
another that is still at work, whose sums then change their order; and the last could leave the limit behind for good.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any


class _Limit:
    """Libraries put on one thread."""

    def __init__(self, libraries: Sequence[Any]) -> None:
        before = [(library, library.num_threads) for library in libraries]
        self._changed = [(library, count) for library, count in before if count is not None and count != 1]
        for library, _ in self._changed:
            _set(library, 1)

    def lift(self) -> None:
        """Put those back that were changed, and that nobody has changed since."""
        for library, count in self._changed:
            if library.num_threads == 1:
                _set(library, count)


class _Everyone:
    """The limit of the whole process, while anybody wants it."""

    def __init__(self) -> None:
        self._inside = 0
        self._limit = _Limit([])
        self._renew()
        if hasattr(os, "register_at_fork"):  # a thread that holds the lock stays behind, and would never let it go
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def enter(self, libraries: Sequence[Any]) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _Limit(libraries)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.lift()


_everyone = _Everyone()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within: NumPy's and SciPy's linear algebra use one thread."""
    by_thread, by_process = _libraries()
    own = _Limit(by_thread)
    _everyone.enter(by_process)
    try:
        yield
    finally:
        _everyone.leave()
        own.lift()


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """Libraries whose number of threads is the calling thread's, and those that have one for the process.

    They are looked up once: that takes 20 ms.
    """
    import scipy.linalg  # noqa: F401  (so that its LAPACK is among them)
    from threadpoolctl import ThreadpoolController

    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    own = [getattr(library, "threading_layer", None) == "openmp" for library in found]
    return [a for a, mine in zip(found, own) if mine], [a for a, mine in zip(found, own) if not mine]


def _set(library: Any, count: int) -> None:
    """threadpoolctl 3.8 takes orders of the thread that gave the last one alone, until that says that it is done."""
    library.set_num_threads(count)
    done = getattr(library, "clear_controlling_thread", None)
    if done is not None:
        done()
