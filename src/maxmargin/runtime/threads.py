"""How many threads an entry point of the core gets."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import joblib

ONE_SLICE = 1 << 17  # multiplications that the core gives to one thread, however many there are (native/base/threads.hpp)

@lru_cache(maxsize=1)
def _available() -> int:
    """Cores this process may use: affinity and cgroup limits count, and LOKY_MAX_CPU_COUNT."""
    return int(joblib.cpu_count())


# Of each fit under way that several processes share, how many they are on this machine: fits may begin and end in any order.
_sharers: list[int] = []


@contextmanager
def sharing(processes: int) -> Iterator[None]:
    """Within: so many processes on this machine, this one included, work on one fit."""
    _sharers.append(processes)
    try:
        yield
    finally:
        _sharers.remove(processes)


def thread_count(n_jobs: int | None = None) -> int:
    """Threads for `n_jobs`: None and -1 mean every core available, -2 all but one, and so on.

    `OMP_NUM_THREADS`, which joblib sets in its workers, and `OMP_THREAD_LIMIT`, which schedulers set, cap the default, so
    that a parallel grid search does not start cores² threads. Ranks on one machine share its cores out. An explicit
    positive `n_jobs` is taken as it is.
    """
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs={n_jobs!r} has no meaning: give a number of threads, or None or -1 for all cores")
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    caps = [os.environ.get(name, "").split(",")[0].strip() for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT")]
    share = max(1, _available() // max([1, *_sharers]))
    cores = min([share, *(int(cap) for cap in caps if cap.isdecimal() and int(cap) > 0)])
    return max(1, cores + 1 + n_jobs) if n_jobs is not None else cores
