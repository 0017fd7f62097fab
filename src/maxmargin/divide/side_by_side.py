"""Subproblems several at a time in threads of this process; wherever else they may run, see carriers/ and remote.py."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from maxmargin.carriers import LOOK
from maxmargin.divide.subproblem import Piece, Subproblem, solve_subproblem

Steps = Generator[None, None, None]


def in_threads(tasks: Sequence[Subproblem], jobs: int, stop: threading.Event, pieces: list[Piece]) -> Steps:
    """Safe points, while pieces come in. Closed before its end, the threads stop after the turn that is under way, and the
    pieces have what they reached."""
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
