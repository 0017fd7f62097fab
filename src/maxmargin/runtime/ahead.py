"""Work of the core that goes on while Python looks at what came before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def ahead(step: Callable[[], T], beside: bool) -> Iterator[Iterator[T]]:
    """What `step()` returns, call after call, for ever.

    `beside`: the next call goes on in a thread of its own while the caller looks at what the last one returned; at the end
    of the block it has ended.
    """
    if not beside:
        yield iter(step, object())
        return
    with ThreadPoolExecutor(1) as thread:

        def calls() -> Iterator[T]:
            running = thread.submit(step)
            while True:
                done = running.result()
                running = thread.submit(step)
                yield done

        yield calls()
