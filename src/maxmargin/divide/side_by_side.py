"""Subproblems several at a time: in threads of this process, or wherever the active joblib backend runs them.

Dask and Ray are not asked by way of joblib, which would ship every row again at every level: see remote.py.

Each way is a generator of safe points that adds to a list of pieces as they are done. Closed before its end, it stops
what runs, in threads after the turn that is under way, and the pieces have what those threads reached.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import joblib

from maxmargin.divide.subproblem import Piece, Subproblem, solve_subproblem

Steps = Generator[None, None, None]

LOOK = 0.1  # seconds between safe points while all threads are busy: how long Ctrl-C or a callback may have to wait


def workers(threads: int) -> tuple[int, bool]:
    """(subproblems at a time, whether they share this process's memory): as the active joblib backend says, or one per
    thread of this process."""
    backend, configured = joblib.parallel.get_active_backend(prefer="threads")
    shared = bool(getattr(backend, "supports_sharedmem", False))
    return threads if configured in (None, 1) else int(joblib.effective_n_jobs(configured)), shared


def in_threads(tasks: Sequence[Subproblem], jobs: int, stop: threading.Event, pieces: list[Piece]) -> Steps:
    """In threads that look at `stop` after each turn."""
    pool = ThreadPoolExecutor(jobs)
    waiting: set[Future[Piece]] = {pool.submit(solve_subproblem, task) for task in tasks}
    try:
        while waiting:
            done, waiting = wait(waiting, LOOK, FIRST_COMPLETED)
            pieces += [future.result() for future in done]
            yield None
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        pieces += [future.result() for future in waiting if not (future.cancelled() or future.exception())]


def by_joblib(tasks: Sequence[Subproblem], jobs: int, pieces: list[Piece]) -> Steps:
    """By the active backend; what it cannot stop runs to the subproblem's own time limit, and is not waited for."""
    parallel, one_by_one = _parallel(jobs)
    calls = [joblib.delayed(solve_subproblem)(task) for task in tasks]
    if not one_by_one:
        with parallel:
            for i in range(0, len(calls), jobs):
                pieces += parallel(calls[i : i + jobs])
                yield None
        return
    results = parallel(calls)
    try:
        for piece in results:
            pieces.append(piece)
            yield None
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib announces that it cancels what is queued: that is the wish
            results.close()


def _parallel(jobs: int) -> tuple[joblib.Parallel, bool]:
    """joblib's loop, and whether it hands over results one by one: not all backends can (multiprocessing, Ray), nor in
    any order (joblib before 1.4). Those that cannot get as many subproblems at a time as they have workers."""
    for way in ("generator_unordered", "generator"):
        try:
            return joblib.Parallel(n_jobs=jobs, return_as=way, batch_size=1, pre_dispatch=jobs), True
        except ValueError:
            continue
    return joblib.Parallel(n_jobs=jobs, batch_size=1), False
