"""Ranks that are threads of one process: for tests and examples, where a mistake must end in an error, not in a hang."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from maxmargin.runtime.comm import (
    REDUCE,
    AnyArray,
    Comm,
    Counts,
    RankError,
    Traffic,
    known_counts,
    known_op,
    one_per_rank,
    row_kind,
)

T = TypeVar("T")

PATIENCE = 60.0  # seconds after which an exchange is taken for a deadlock


class Room:
    """Where ranks that are threads meet: each puts something down, and goes on when all have."""

    def __init__(self, size: int, timeout: float) -> None:
        self.size, self.timeout = size, timeout
        self.error: BaseException | None = None  # the first, which ends all
        self._changed = threading.Condition()
        self._brought: dict[int, tuple[str, Any]] = {}
        self._all: list[Any] = []
        self._meeting = 0
        self._left: set[int] = set()

    def meet(self, rank: int, kind: str, value: Any) -> list[Any]:
        """What all ranks brought, in their order; `kind` must be everyone's."""
        with self._changed:
            self._go_on()
            if self._left:
                self._break(RuntimeError(f"rank {rank} waits for {kind}, but ranks {sorted(self._left)} have returned"))
            self._brought[rank] = kind, value
            number = self._meeting
            if len(self._brought) == self.size:
                self._close()
            elif not self._changed.wait_for(lambda: self._meeting > number or self.error is not None, self.timeout):
                here = {who: what for who, (what, _) in sorted(self._brought.items())}
                self._break(TimeoutError(f"a deadlock: after {self.timeout:g} s only these ranks have come: {here}"))
            if self._meeting == number:
                self._go_on()
            return self._all  # the next meeting waits for this rank: nobody has replaced it

    def leave(self, rank: int, error: BaseException | None) -> None:
        """A rank has returned, or raised."""
        with self._changed:
            self._left.add(rank)
            waiting = {who: what for who, (what, _) in sorted(self._brought.items())}
            if error is None and waiting:
                error = RuntimeError(f"rank {rank} has returned while others wait: {waiting}")
            if error is not None and self.error is None:
                self.error = error
                self._changed.notify_all()

    def _close(self) -> None:
        kinds = {who: what for who, (what, _) in sorted(self._brought.items())}
        if len(set(kinds.values())) > 1:
            self._break(RuntimeError(f"the ranks are out of step: {kinds}"))
        self._all = [self._brought[rank][1] for rank in range(self.size)]
        self._brought.clear()
        self._meeting += 1
        self._changed.notify_all()

    def _break(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        self._changed.notify_all()
        raise error

    def _go_on(self) -> None:
        if self.error is not None:
            raise _Ended(f"{type(self.error).__name__}: {self.error}")


class _Ended(RankError):
    """Another thread's error has ended this one too."""


class Threads:
    """One of several ranks that are threads of this process: `Threads.run(3, lambda comm: …)`."""

    neighbours = 1

    def __init__(self, room: Room, rank: int) -> None:
        self.room, self.rank, self.size = room, rank, room.size
        self.traffic = Traffic()

    @classmethod
    def run(cls, size: int, function: Callable[[Comm], T], timeout: float = PATIENCE) -> list[T]:
        """What `function` returns on each of `size` ranks. The first error of any rank ends all, and is raised here.

        So is a TimeoutError when some rank waits longer than `timeout` seconds for the others.
        """
        room = Room(size, timeout)
        results: list[Any] = [None] * size

        def one(rank: int) -> None:
            error: BaseException | None = None
            try:
                results[rank] = function(cls(room, rank))
            except BaseException as caught:
                error = caught
            room.leave(rank, error)

        threads = [threading.Thread(target=one, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(size)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C, which comes to this thread
            room.leave(-1, error)
            raise
        if room.error is not None:
            raise room.error
        return results

    def allreduce(self, array: AnyArray, op: str = "sum") -> AnyArray:
        mine = np.array(array)
        self.traffic.count("allreduce", mine.nbytes)
        kind = f"allreduce {known_op(op)} {mine.dtype} {mine.shape}"
        return np.asarray(REDUCE[op].reduce(np.stack(self.room.meet(self.rank, kind, mine)), axis=0))

    def allgather(self, array: AnyArray, counts: Counts = None) -> list[AnyArray]:
        mine = np.atleast_1d(np.array(array))
        self.traffic.count("allgather", mine.nbytes)
        kind = f"allgather {row_kind(mine)}{known_counts(counts, self.rank, mine)}"
        return [part.copy() for part in self.room.meet(self.rank, kind, mine)]

    def gather(self, array: AnyArray, counts: Counts) -> list[AnyArray]:
        mine = np.atleast_1d(np.array(array))
        self.traffic.count("gather", mine.nbytes if self.rank else 0)
        every = self.room.meet(self.rank, f"gather {row_kind(mine)}{known_counts(counts, self.rank, mine)}", mine)
        return [] if self.rank else every

    def alltoall(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        mine = [np.array(array) for array in one_per_rank(arrays, self.size)]
        self.traffic.count("alltoall", sum(part.nbytes for part in mine) - mine[self.rank].nbytes)
        sent = self.room.meet(self.rank, f"alltoall {row_kind(*mine)}", mine)
        return [parts[self.rank] for parts in sent]

    def bcast(self, value: Any, root: int = 0, doubles: int | None = None) -> Any:
        mine = pickle.dumps(value) if self.rank == root else b""
        self.traffic.count("bcast", len(mine))
        kind = f"bcast from {root}" + ("" if doubles is None else f" of {doubles}")
        return pickle.loads(self.room.meet(self.rank, kind, mine)[root])

    def share(self, value: Any) -> list[Any]:
        mine = pickle.dumps(value)
        self.traffic.count("share", len(mine))
        return [pickle.loads(part) for part in self.room.meet(self.rank, "share", mine)]

    def fail(self, error: BaseException) -> None:
        self.room.leave(self.rank, error)
