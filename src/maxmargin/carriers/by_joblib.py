"""Calls several at a time wherever the active joblib backend runs them.

Dask and Ray are not asked by way of joblib, which would ship all data again with every call: see active.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from typing import Any

import joblib


def workers(threads: int) -> tuple[int, bool]:
    """(calls at a time, whether they share this process's memory): as the active joblib backend says, or one per thread
    of this process."""
    backend, configured = joblib.parallel.get_active_backend(prefer="threads")
    shared = bool(getattr(backend, "supports_sharedmem", False))
    return threads if configured in (None, 1) else int(joblib.effective_n_jobs(configured)), shared


def by_joblib(calls: Sequence[Any], jobs: int, results: list[Any]) -> Generator[None, None, None]:
    """Delayed calls by the active backend: safe points, while results come in.

    Closed before its end it leaves alone what the backend cannot stop: that runs to its own time limit.
    """
    parallel, one_by_one = _parallel(jobs)
    if not one_by_one:
        with parallel:
            for i in range(0, len(calls), jobs):
                results += parallel(calls[i : i + jobs])
                yield None
        return
    coming = parallel(calls)
    try:
        for result in coming:
            results.append(result)
            yield None
    except BaseException:
        with warnings.catch_warnings():  # of the whole process, so only where there is something to cancel
            warnings.simplefilter("ignore")  # joblib announces that it cancels what is queued: that is the wish
            coming.close()
        raise


def _parallel(jobs: int) -> tuple[joblib.Parallel, bool]:
    """joblib's loop, and whether it hands over results one by one: not all backends can (multiprocessing, Ray), nor in
    any order (joblib before 1.4). Those that cannot get as many calls at a time as they have workers."""
    for way in ("generator_unordered", "generator"):
        try:
            return joblib.Parallel(n_jobs=jobs, return_as=way, batch_size=1, pre_dispatch=jobs), True
        except ValueError:
            continue
    return joblib.Parallel(n_jobs=jobs, batch_size=1), False
