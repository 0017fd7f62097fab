"""The linear problem that every solver of this folder shares, and its passes over the samples.

    minimise over w, b    ½‖w‖² + C · R(w, b),     R(w, b) = Σ_i weight_i · loss(m_i),   m_i = sign_i (⟨x_i, w⟩ + b)

    hinge           loss(m) = max(0, 1 − m)
    squared_hinge   loss(m) = max(0, 1 − m)²

The intercept is coordinate d of one vector w of length `size`: a constant feature `bias` (0: there is none), either
penalised like the rest or, by default, free. A cut (a, b) says R(w) ≥ ⟨a, w⟩ + b for every w; it does not depend on C.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

FloatArray = NDArray[np.float64]
Pause = Generator[None, None, None]

BLOCK = 1 << 25  # stored values per native call: some 10 ms from memory, under a second from a disk
NONE = slice(0, 0)  # of the coordinates


def without(u: FloatArray, part: slice) -> FloatArray:
    """u with zeros at `part`."""
    if part == NONE:
        return u
    seen: FloatArray = u.copy()
    seen[part] = 0.0
    return seen


@dataclass
class Duals:
    """The dual point that belongs to margins: what changed since the last one, and its sums."""

    rows: NDArray[np.int64]
    delta: FloatArray
    band: NDArray[np.int64]
    slope: FloatArray
    offset: float
    risk: float
    bias: float


@dataclass
class LinearProblem:
    """Samples, labels, weights and loss of one binary problem."""

    X: Any
    sign: FloatArray
    weight: FloatArray
    C: float
    loss: str = "hinge"
    bias: float = 0.0
    penalised: bool = False
    threads: int = 1
    matrix: _core.Matrix = field(init=False, repr=False)
    passes: float = field(init=False, default=0.0)  # over X by `outputs`, and the seconds they took
    pass_seconds: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.matrix = as_matrix(self.X)
        self.sign = np.ascontiguousarray(self.sign, dtype=np.float64)
        self.weight = np.ascontiguousarray(self.weight, dtype=np.float64)

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @property
    def size(self) -> int:
        return self.d + (self.bias != 0)

    @property
    def free_intercept(self) -> bool:
        return self.bias != 0 and not self.penalised

    @property
    def free(self) -> slice:
        """Coordinates of w that are not penalised."""
        return slice(self.d, None) if self.free_intercept else NONE

    @property
    def stored(self) -> int:
        """Values that one pass reads."""
        return int(self.X.nnz) if hasattr(self.X, "nnz") else self.n * self.d

    def subset(self, rows: NDArray[np.int64]) -> LinearProblem:
        """The same problem on some rows, C raised so that the risk keeps its scale."""
        weight = self.weight[rows]
        scale = float(self.weight.sum() / weight.sum())
        return replace(self, X=self.X[rows], sign=self.sign[rows], weight=weight, C=self.C * scale)

    def inner(self, u: FloatArray, v: FloatArray) -> float:
        """The regulariser's inner product: a free intercept does not count."""
        return float(without(u, self.free) @ v)

    def zeros(self) -> FloatArray:
        """The margins of w = 0."""
        return np.zeros(self.n)

    def rows_per_call(self) -> int:
        return max(1, BLOCK * self.n // max(self.stored, 1))

    def outputs(self, w: FloatArray, out: FloatArray) -> Pause:
        """Margins of w into `out`: the one full pass of an iteration. Pauses between blocks of rows."""
        step = self.rows_per_call()
        for begin in range(0, self.n, step):
            end = min(self.n, begin + step)
            start = time.perf_counter()
            self.fill(w, begin, end, out)
            self.pass_seconds += time.perf_counter() - start
            self.passes += (end - begin) / self.n
            if end < self.n:
                yield

    def fill(self, w: FloatArray, begin: int, end: int, out: FloatArray) -> None:
        """Margins of the rows from begin to end."""
        shift = float(self.bias * w[-1]) if self.bias else 0.0
        weights = np.ascontiguousarray(w[: self.d])
        _core.linear_outputs(self.matrix, weights, shift, self.sign, begin, end, out, self.threads)

    def duals(self, alpha: FloatArray, m: FloatArray, other: FloatArray | None = None, mix: float = 0.0,
              h: float = 0.0, lazy: float = 0.0, path: FloatArray | None = None) -> Duals:
        """Set alpha to the duals at margins (1 − mix)·m + mix·other, of the hinge rounded over h; skip small moves."""
        second = m if other is None else other
        guess = np.empty(0) if path is None else path
        return Duals(
            *_core.linear_duals(self.loss, h, lazy, m, second, mix, self.weight, self.sign, guess, alpha, self.threads)
        )

    def add(self, a: FloatArray, rows: NDArray[np.int64], delta: FloatArray) -> Pause:
        """a ← a − Σ delta_i x̃_i: move a cut by the duals that changed."""
        step = self.rows_per_call()
        total = np.zeros(self.d)
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            _core.linear_add_rows(self.matrix, rows[part], delta[part], total, self.threads)
            if begin + step < len(rows):
                yield
        a[: self.d] -= total
        if self.bias:
            a[-1] -= self.bias * float(delta.sum())

    def risk(self, m: FloatArray) -> float:
        return float(_core.linear_advance(self.loss, m, m, 0.0, self.weight, self.threads))

    def advance(self, m: FloatArray, q: FloatArray, k: float) -> float:
        """m ← m + k·q; the risk there."""
        return float(_core.linear_advance(self.loss, m, q, k, self.weight, self.threads))

    def rounding(self, value: float) -> float:
        """What float64 sums over the samples may have added to a bound of this size (√n growth, generous factor)."""
        return 16 * float(np.finfo(np.float64).eps) * float(np.sqrt(self.n + self.size)) * abs(value)
