"""What goes into a run of the decomposition method beside the QP and its kernel, and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.runtime import Result

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """How to solve; none of it changes what the answer is."""

    tol: float = 1e-3
    working_set_size: int | None = None
    cache_size: float = 200.0  # MB
    shrinking: bool = True
    threads: int = 1
    inner_solver: str = "smo"
    beside: int = 1  # large problems of a fit that may be solved at a time; each has such a part of the cache
    processes: int = 1  # of one machine that solve parts of the fit at a time


@dataclass
class DualResult(Result):
    """Solution of the QP: alpha per variable, one multiplier per group, f = Kβ per sample, and the precision to predict in.

    A number that nobody waited for is NaN: after Ctrl-C, or time that ended before the first pass, f may not be known
    for all samples. `first` is the alpha of the stage before, where there are two (ν-SVC with class weights).
    """

    alpha: FloatArray = field(default_factory=lambda: np.empty(0))
    multipliers: FloatArray = field(default_factory=lambda: np.empty(0))
    f: FloatArray = field(default_factory=lambda: np.empty(0))
    dtype: Any = np.float64
    first: FloatArray | None = None

    def snapshot(self) -> dict[str, FloatArray]:
        """As that of its solver."""
        return {"alpha": self.alpha} if self.first is None else {"alpha": self.first, "second": self.alpha}
