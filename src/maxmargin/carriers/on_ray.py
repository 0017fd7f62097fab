"""A Ray cluster as a carrier: tasks and objects, not the pool of its joblib backend.

Ray keeps objects per machine, and moves them itself to where a task needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxmargin.carriers.protocol import LostError, never


class RayCarrier:
    """By the Ray that this process is connected to; a local one is started if there is none, as Ray's own backend does."""

    def __init__(self, remote_args: dict[str, Any] | None = None) -> None:
        import ray

        if not ray.is_initialized():
            ray.init()
        self._ray, self._args = ray, remote_args or {}

    def put(self, value: Any, at: Any = None) -> Any:
        return self._ray.put(value)

    def put_all(self, values: Sequence[Any], at: Any = None) -> list[Any]:
        return [self._ray.put(value) for value in values]

    def spread(self, work: Sequence[float]) -> list[Any]:
        return [None] * len(work)

    def call(self, function: Callable[..., Any], *args: Any, at: Any = None) -> Any:
        return self._ray.remote(function).options(**self._args).remote(*args)

    def solve(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.call(function, *args, never)  # Ray sends Ctrl-C instead

    def homes(self, refs: Sequence[Any]) -> list[Any]:
        return [None] * len(refs)

    def wait(self, refs: Sequence[Any], seconds: float) -> list[Any]:
        first, rest = self._ray.wait(list(refs), num_returns=1, timeout=seconds)
        more = self._ray.wait(rest, num_returns=len(rest), timeout=0)[0] if first and rest else []
        return [*first, *more]

    def get(self, ref: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except errors.RayTaskError:
            raise  # the function's own
        except (errors.WorkerCrashedError, errors.ObjectLostError, errors.RaySystemError) as error:
            raise LostError(str(error)) from error

    def drop(self, refs: Sequence[Any]) -> None:
        for ref in refs:
            self._ray.cancel(ref)  # Ctrl-C for the task, which ends it after the turn that is under way
