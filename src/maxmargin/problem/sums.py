"""Sums and extremes over all samples of a problem: here those of one process.

Where several processes share a problem, each holds some of its samples; `runtime.RankSums` then has the same methods, and
what they return is the same, to the last bit, on all of them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


class Sums(Protocol):
    """What is asked of them."""

    def of(self, terms: ArrayLike) -> float:
        """Σ terms."""
        ...

    def exact(self, terms: FloatArray) -> Any:
        """Σ terms in long double."""
        ...

    def before(self, terms: FloatArray) -> float:
        """Σ terms of the processes before this one."""
        ...

    def most(self, values: ArrayLike) -> FloatArray:
        """The largest of all processes, number by number. NaN if one is."""
        ...

    def any(self, flag: bool) -> bool:
        """Whether it is so on some process."""
        ...

    def all(self, flag: bool) -> bool:
        """Whether it is so on all."""
        ...


class Here:
    """Those of one process."""

    def of(self, terms: ArrayLike) -> float:
        return float(np.asarray(terms).sum())

    def exact(self, terms: FloatArray) -> Any:
        return np.sum(terms, dtype=np.longdouble)

    def before(self, terms: FloatArray) -> float:
        return 0.0

    def most(self, values: ArrayLike) -> FloatArray:
        return np.asarray(values)

    def any(self, flag: bool) -> bool:
        return bool(flag)

    def all(self, flag: bool) -> bool:
        return bool(flag)


HERE = Here()
