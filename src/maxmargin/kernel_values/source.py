"""Where kernel values come from: the core, a Gram matrix, or a Python function. One shape for the three."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime import Comm

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Kernel values per call of `sum`: at the slowest (hundreds of features, float64) 1e8 take about half a second.
_VALUES_PER_CALL = 10**8


class Source(Protocol):
    """Kernel values between the samples of one QP, which have the ids 0 … total − 1.

    Where several ranks share the QP, each holds the samples first … first + len(rows) − 1, and makes the same calls; `sum`
    knows its own samples by their numbers from 0 on.
    """

    rows: IntArray  # of the user's X, by sample held here
    first: int
    total: int
    ends: IntArray  # where the samples of each of `comm` end, from 0 on
    comm: Comm  # the ranks among which the samples are divided
    team: Comm  # the ranks that compute together: those, or more, which then all hold all samples
    dtype: np.dtype[Any]

    @property
    def magnitude(self) -> FloatArray | float:
        """|K(i, j)| ≤ m_i m_j: an array, or a number for all."""

    @property
    def noise(self) -> float:
        """The error of a value, in units of that."""

    def part(self, center: Any, lo: Any, hi: Any, beta: Any, group: Any, f: Any, cache_bytes: float) -> Any:
        """The state of the samples, with its row cache (native/decomposition/part.hpp)."""

    def tile(self, part: Any, ids: IntArray) -> tuple[NDArray[Any], IntArray]:
        """K between a few samples, padded to a multiple of 16, and where each one stands in it. On the first rank."""

    def update(self, part: Any, ids: IntArray, coef: FloatArray) -> int:
        """f += Σ coef_i K(·, i) over the part's active samples, the ids being of the last tile; returns cache hits."""

    def sum(self, samples: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        """Σ coef_i K(others_i, ·) at some of the samples held here, for ascending ids `others`; nothing cached."""

    def fill(self, part: Any, begin: int) -> None:
        """The values of cached rows at the part's active positions from `begin` on, which were taken back."""

    def pieces(self, n: int, m: int) -> Iterator[slice]:
        """Slices of range(n) such that one sum over m rows stays well under a second."""

    def wider(self) -> Source | None:
        """The same in float64, or None if this is."""

    def describe(self) -> str:
        """Kernel, parameters and the size of the data, for an error."""


def pieces(n: int, m: int) -> Iterator[slice]:
    step = max(1024, _VALUES_PER_CALL // max(m, 1))
    return (slice(i, i + step) for i in range(0, n, step))
