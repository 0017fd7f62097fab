"""Ranks that stay in step: what one of them decides or fails at, all do.

An exchange waits for every rank, so that a rank which leaves early, or takes another branch, would leave the others waiting
for ever. Hence three rules:

    together(comm)         around what each rank does by itself (reading, validation): an error of one is raised on all
    agree(comm, code, …)   between two steps: the largest code of all ranks, and an error when they have not seen the same
    or_all_fail(comm)      around a whole fit: an error that the others cannot know of (out of memory within a step) ends
                           them too, through comm.fail
"""

from __future__ import annotations

import builtins
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from maxmargin.runtime.comm import Comm, RankError

FAILED = 1 << 20  # a code above all others
KINDS = (FileNotFoundError, OSError, MemoryError, ImportError, TypeError, ValueError)  # whose one argument is a message


@contextmanager
def together(comm: Comm) -> Iterator[None]:
    """Within: this rank's own work, without an exchange. What fails on one rank fails on all, with that rank's message."""
    error: Exception | None = None
    try:
        yield
    except Exception as caught:
        if comm.size == 1:
            raise
        error = caught
    if comm.size > 1:
        failed = comm.allreduce(np.array(error is not None, np.int64), "max")
        if failed:
            _raise(comm, error)


def agree(comm: Comm, code: int, seen: bytes, error: Exception | None = None) -> int:
    """The largest `code` of all ranks. An `error` of one is raised on all, and so is that they have not `seen` the same."""
    if comm.size == 1:
        return code
    mark = zlib.crc32(seen)
    worst, most, least = comm.allreduce(np.array([code if error is None else FAILED, mark, -mark]), "max").tolist()
    if worst == FAILED:
        _raise(comm, error)
    if most != -least:
        raise known_to_all(RankError(f"the ranks are out of step; rank {comm.rank} of {comm.size} has seen {seen!r}"))
    return int(worst)


@contextmanager
def or_all_fail(comm: Comm) -> Iterator[Comm]:
    """Within: exchanges. An error that the other ranks do not know of ends them too, instead of leaving them waiting."""
    try:
        yield comm
    except BaseException as error:
        if comm.size > 1 and not getattr(error, "known_to_all_ranks", False):
            comm.fail(error)
        raise


def known_to_all(error: Exception) -> Exception:
    """The error, marked as one that every rank raises."""
    error.known_to_all_ranks = True  # type: ignore[attr-defined]
    return error


@contextmanager
def raised_by_all() -> Iterator[None]:
    """Within: what depends on nothing but what all ranks know, so that its errors are raised on all of them."""
    try:
        yield
    except ValueError as error:
        raise known_to_all(error)  # noqa: B904  (it is the same one)


def _raise(comm: Comm, error: Exception | None) -> None:
    """On all ranks: its own error where there is one, elsewhere the first rank's, of the same kind if it is a usual one."""
    base = next((kind for kind in type(error).__mro__ if kind in KINDS), None)
    report = (None if base is None else base.__name__, type(error).__name__, str(error))
    reports = comm.share(None if error is None else report)
    if error is not None:
        raise known_to_all(error)
    rank, (known, name, text) = next((rank, report) for rank, report in enumerate(reports) if report is not None)
    where = f"(on rank {rank} of {comm.size})"
    if known is None:
        raise known_to_all(RankError(f"{name}: {text} {where}"))
    kind: type[Exception] = getattr(builtins, known)
    raise known_to_all(kind(f"{text} {where}"))
