"""A Dask cluster as a carrier. Needs `distributed`, which whoever has a client has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

import numpy as np
from distributed import KilledWorker, get_worker
from distributed.client import _wait as wait
from distributed.worker import thread_state

from maxmargin.carriers.protocol import GONE, LOOK, LostError

# What a future says of itself when its value is gone for good. One that is "lost" is computed again.
LOST = ("cancelled", "error")
PATIENCE = 5.0  # seconds, with one worker
FIRST = 1 << 30  # above the priorities of all that takes long


class DaskCarrier:
    """By a client. Values go straight to the workers, unless the client was made with direct_to_workers=False."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.direct = client.direct_to_workers is not False
        self._calls = 0

    def put(self, value: Any, at: Any = None) -> Any:
        return self.put_all([value], at)[0]  # in a list, as a list would be taken apart

    def put_all(self, values: Sequence[Any], at: Any = None) -> list[Any]:
        options = {"direct": self.direct, "hash": False}  # equal values need not be found out
        if at is not None:
            with suppress(OSError, TimeoutError):  # where nobody is any more: any other place will do
                return list(self.client.scatter(list(values), workers=[at], timeout=PATIENCE, **options))
        try:
            return list(self.client.scatter(list(values), **options))
        except (OSError, TimeoutError) as error:
            raise RuntimeError(
                f"the Dask workers of {self.client.scheduler.address} cannot be reached from here: {error}. Where only the "
                "scheduler can be, make the client with direct_to_workers=False"
            ) from error

    def call(self, function: Callable[..., Any], *args: Any, at: Any = None) -> Any:
        where = {} if at is None else {"workers": [at], "allow_other_workers": True}
        return self.client.submit(function, *args, pure=False, priority=FIRST + self._later(), **where)

    def solve(self, function: Callable[..., Any], *args: Any) -> Any:
        name = f"{function.__name__}-{uuid4()}"
        return self.client.submit(until_cancelled, function, *args, key=name, pure=False, priority=self._later())

    def _later(self) -> int:
        """First come, first served; but whoever waits for a row is not kept waiting by a QP."""
        self._calls += 1
        return -self._calls

    def spread(self, work: Sequence[float]) -> list[Any]:
        """The largest first, each to the worker that would be done with it first."""
        threads = self.client.nthreads()
        busy = dict.fromkeys(sorted(threads), 0.0)
        homes: list[Any] = [None] * len(work)
        for i in np.argsort(-np.asarray(work), kind="stable").tolist():
            if busy:
                home = min(busy, key=lambda name: (busy[name] + work[i]) / threads[name])
                homes[i], busy[home] = home, busy[home] + work[i]
        return homes

    def homes(self, refs: Sequence[Any]) -> list[Any]:
        while True:
            there = [ref for ref in refs if ref.status not in LOST]
            try:
                held = self.client.who_has(there) if there else {}
            except CancelledError:  # one was lost since we looked
                continue
            unknown = [ref for ref in there if not held.get(ref.key)]
            if not unknown:
                return [GONE if ref.status in LOST else held[ref.key][0] for ref in refs]
            self._wait(unknown, LOOK, "ALL_COMPLETED")

    def wait(self, refs: Sequence[Any], seconds: float, every: bool = False) -> list[Any]:
        self._wait(refs, seconds, "ALL_COMPLETED" if every else "FIRST_COMPLETED")
        return [ref for ref in refs if ref.status in ("finished", *LOST)]

    def _wait(self, refs: Sequence[Any], seconds: float | None, until: str) -> None:
        """By this client. The public `wait` takes the current one, and `as_current` sets Dask's configuration for all
        threads: of two that overlap, the second to leave would put back what the first had set."""
        with suppress(TimeoutError, CancelledError):
            self.client.sync(wait, list(refs), timeout=seconds, return_when=until)

    def get(self, ref: Any) -> Any:
        try:
            return self.client.gather(ref, direct=self.direct)
        except (CancelledError, KilledWorker, OSError) as error:
            raise LostError(str(error)) from error

    def values(self, refs: Sequence[Any]) -> list[Any]:
        """All at once, where nothing is lost; else a LostError in the place of what is."""
        try:
            return list(self.client.gather(list(refs), direct=self.direct)) if refs else []
        except (CancelledError, KilledWorker, OSError):
            return [self._value_or_loss(ref) for ref in refs]

    def _value_or_loss(self, ref: Any) -> Any:
        try:
            return self.get(ref)
        except LostError as lost:
            return lost

    def drop(self, refs: Sequence[Any]) -> None:
        if refs and self.client.status == "running":
            self.client.cancel(list(refs), force=True)


def until_cancelled(function: Callable[..., Any], *args: Any) -> Any:
    """On a worker: a task that nobody waits for any more ends after the turn that is under way."""
    worker, key = get_worker(), thread_state.key

    def stopped() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    return function(*args, stopped)
