"""Whole kernel matrices for all gammas of a search: what these have in common is computed once (gram.hpp in native/).

    rbf        |x − z| from dot products in double (of rows shifted to their mean), then exp(−γ |x − z|²) for every γ
    laplacian  Σ|x − z|;  linear, poly, sigmoid: xᵀz
    precomputed: the user's matrix itself

The values have 31 bits. How far they are off, in units of the largest, is `noise`: half a step of the fixed point, and what
half a step of |x − z| does to exp(−γ |x − z|²), which is at most 0.86 √γ times it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix
from maxmargin.problem.kernels import Kernel, dense64

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_ROWS = 256  # of a block of doubles on its way into a matrix
_ENTRY = 4  # bytes
_STEP = 2.0**-32  # half a step of the fixed point, in units of the largest value
_ROUNDING = 1e-12  # of the largest f: what thousands of steps leave in the last digits; below the step of the fixed point


class Matrices:
    """Kernel values between X[rows]; `room` bytes for the matrix, and for what all gammas have in common if it fits too."""

    def __init__(self, X: Any, rows: IntArray, name: str, coef0: float, degree: int, threads: int, room: float) -> None:
        self.X, self.rows, self.name, self.threads = X, rows, name, threads
        self.coef0, self.degree, self.n = coef0, degree, len(rows)
        one = _ENTRY * self.n * (self.n + 16)
        self.fits = one <= room
        self._both = 2 * one <= room and name != "precomputed"
        self._base: Any = None
        self._gram: Any = None
        self._of: tuple[float, float] = (float("nan"), 0.0)
        self._magnitude: dict[float, float] = {}

    def gram(self, gamma: float) -> Any:
        """The matrix of this γ, in the memory of the last one."""
        kernel = Kernel(self.name, gamma, self.coef0, self.degree)
        largest = self._largest(kernel)
        if self._of != (gamma, largest):
            if self._gram is None or self._of[1] != largest:
                self._gram = None  # its memory first
                self._gram = _core.Gram(self.n, largest)
            if self._both:
                self._gram.fill(self._common(), self.name, gamma, self.coef0, self.degree, self.threads)
            else:
                self._fill(self._gram, kernel)
            self._of = (gamma, largest)
        return self._gram

    def noise(self, gamma: float) -> float:
        """Of a value, in units of the largest."""
        if self.name == "rbf" and self._both:
            return float(_STEP * (1 + 0.86 * np.sqrt(gamma) * self._reach()))
        if self.name == "laplacian" and self._both:
            return float(_STEP * (1 + gamma * self._reach()))
        if self.name in ("poly", "sigmoid") and self._both:
            return float(_STEP * (1 + self.degree + gamma * self._reach()))
        return _STEP

    def magnitude(self, gamma: float) -> float:
        """|K| ≤ its square."""
        if gamma not in self._magnitude:
            self._magnitude[gamma] = float(np.sqrt(self._largest(Kernel(self.name, gamma, self.coef0, self.degree))))
        return self._magnitude[gamma]

    def _largest(self, kernel: Kernel) -> float:
        if self.name == "precomputed":
            return float(np.abs(self.X[np.ix_(self.rows, self.rows)]).max()) if self._gram is None else self._of[1]
        return float(np.max(kernel.magnitude(self.X, self.rows)) ** 2)

    # ---- what all gammas have in common --------------------------------------------------------------------------------

    def _reach(self) -> float:
        """The largest of it that there can be."""
        points, norm = self._points()
        if self.name == "rbf":
            return float(2 * np.sqrt(norm.max()))
        if self.name == "laplacian":
            return float(2 * np.abs(points).sum(axis=1).max())
        return float(norm.max())

    def _common(self) -> Any:
        if self._base is None:
            points, norm = self._points()
            self._base = base = _core.Gram(self.n, self._reach())
            unit = 1.0 / max(self._reach(), np.finfo(float).tiny)  # so that exp(−unit · sum) is far from 0
            kind = "laplacian" if self.name == "laplacian" else "linear"
            every = np.arange(self.n)
            core: Any = _core.Points64(as_matrix(points), kind, unit, 0.0, 1, every, self.threads)
            for first in range(0, self.n, _ROWS):
                some = every[first : first + _ROWS]
                block = np.empty((len(some), self.n))
                core.block(every, core, some, block, self.threads)
                if self.name == "rbf":
                    base.put_distances(first, block, norm, self.threads)
                else:
                    base.put(first, block if kind == "linear" else -np.log(block) / unit, self.threads)
        return self._base

    def _points(self) -> tuple[Any, FloatArray]:
        """The rows, shifted to their mean where only differences count, and their squared norms."""
        if not hasattr(self, "_shifted"):
            points = self.X[self.rows]
            if sp.issparse(points):
                points = points.astype(np.float64)
                norm = np.asarray(points.multiply(points).sum(axis=1)).ravel()
            else:
                points = dense64(points)
                if self.name in ("rbf", "laplacian"):
                    points = points - points.mean(axis=0)
                norm = np.einsum("ij,ij->i", points, points)
            self._shifted = (points if sp.issparse(points) else np.ascontiguousarray(points), norm)
        return self._shifted

    def _fill(self, gram: Any, kernel: Kernel) -> None:
        """One matrix, block by block from the kernel itself."""
        every = np.arange(self.n)
        core: Any = None
        if kernel.native:
            args = (kernel.name, kernel.gamma, kernel.coef0, int(kernel.degree))
            core = _core.Points64(as_matrix(self.X), *args, self.rows, self.threads)
        for first in range(0, self.n, _ROWS):
            some = self.rows[every[first : first + _ROWS]]
            if core is None:
                block = np.ascontiguousarray(self.X[np.ix_(some, self.rows)], np.float64)
            else:
                block = np.empty((len(some), self.n))
                core.block(self.rows, core, some, block, self.threads)
            gram.put(first, block, self.threads)


def but_for_rounding(values: FloatArray, largest: FloatArray | float) -> FloatArray:
    """`values` of f at rows that are left out, 0 where they are within rounding of the largest of the solution's f.

    A row is taken out of a solution by subtracting what it had added. Where nothing else is near it, rounding is all that
    remains, with the sign of its own label: a machine without an intercept would seem to know it.
    """
    return np.where(np.abs(values) <= _ROUNDING * largest, 0.0, values)
