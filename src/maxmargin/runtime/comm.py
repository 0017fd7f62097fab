"""Talk between the processes that share one fit. `Serial` is one process; others keep its five names."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Comm(Protocol):
    """What a solver may ask of its fellow processes."""

    rank: int
    size: int

    def allreduce(self, value: NDArray[Any], op: str = "sum") -> NDArray[Any]:
        """Elementwise sum, max or min over the ranks, the same on every rank."""
        ...

    def allgather(self, value: NDArray[Any]) -> list[NDArray[Any]]:
        """The arrays of all ranks in rank order (lengths may differ)."""
        ...

    def bcast(self, value: Any, root: int = 0) -> Any:
        """`value` as it is on `root`."""
        ...


class Serial:
    """A single process: every exchange is the identity."""

    rank = 0
    size = 1

    def allreduce(self, value: NDArray[Any], op: str = "sum") -> NDArray[Any]:
        return np.asarray(value)

    def allgather(self, value: NDArray[Any]) -> list[NDArray[Any]]:
        return [np.asarray(value)]

    def bcast(self, value: Any, root: int = 0) -> Any:
        return value
