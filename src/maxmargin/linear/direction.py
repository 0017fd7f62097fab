"""Newton directions p = −H⁻¹·grad,  H = penalty + C Σ slope_i x̃_i x̃_iᵀ over the rows that bend the loss (the band).

narrow  H itself, from all of the band or a sample of it, and its Cholesky factor.
wide    Conjugate gradients with products by H row by row, preconditioned by the float32 factor of a small sample's H.
        The factor serves until the rounding has fallen a lot or the iterations have become many.

Over ranks each adds up its own rows, and wide problems have no preconditioner: its matrix is larger than all else that
is sent.

A sample takes a row with a chance in proportion to its slope and divides by that chance: right on average.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.linear.problem import Duals, LinearProblem
from maxmargin.linear.rounding import FloatArray, dot

NARROW = 256      # up to this width H is factored at every turn
PLENTY = 1000     # rows per feature whose H is as good as that of all
VAST = 6000       # beyond this width not even a sample's H is formed
SAMPLE = 2.5      # rows of the preconditioner, in units of the width
ROWS = 10.0       # rows of the products while the solution is far
TIRED = 12        # iterations after which the next direction gets a factor of its own
MOST = 40         # iterations per direction
ACCURACY = 0.2    # of the direction, in the norm of the preconditioner

Band = tuple[NDArray[np.int64], FloatArray]


class Directions:
    """Directions for one problem; keeps the factor and its memory from turn to turn."""

    def __init__(self, problem: LinearProblem, penalty: FloatArray, random: np.random.Generator) -> None:
        self.problem = problem
        self.penalty = penalty
        self.wide = problem.size > NARROW
        self._random = random
        self._precise = False
        self._gram: NDArray[np.floating] | None = None
        self._factor: NDArray[np.floating] | None = None
        self._made_at = 0.0  # the rounding at which the factor was made
        self._iterations = 0

    def direction(
        self, grad: FloatArray, found: Duals, h: float, goal: float, exact: bool
    ) -> Generator[None, None, FloatArray]:
        """p with ½‖H p + grad‖² ≤ goal; from a sample of the band unless `exact`."""
        size, band = self.problem.size, self.problem.per_sample(found.band, found.slope)
        if not self.wide:
            return (yield from self._solve(grad, band, exact))
        if self._factor is None or self._iterations > TIRED or h < 0.5 * self._made_at:
            self._factor = self._sampled_factor(band) if size <= VAST and self.problem.alone else None
            self._made_at = h
            yield
        thinned = band if exact else self._thin(band, int(ROWS * size))
        return (yield from self._iterate(grad, thinned, goal if exact else np.inf))

    def _solve(self, grad: FloatArray, band: Band, exact: bool) -> Generator[None, None, FloatArray]:
        """By a factor of H in float64."""
        band = band if exact else self._thin(band, self._affordable())
        ridge = 1e-12
        while True:
            H = self._matrix(band, ridge, np.float64)
            try:
                factor = sl.cho_factor(H.T, lower=True, overwrite_a=True, check_finite=False)
                p = -sl.cho_solve(factor, grad, check_finite=False)
            except np.linalg.LinAlgError:  # float32 products on badly scaled data
                p = np.full(len(grad), np.nan)
            p = self.problem.first(p)
            if not np.isnan(p).all():
                return p
            if self._precise:
                ridge = max(10 * ridge, 1e-10)
            self._precise = True
            yield

    def _affordable(self) -> int:
        """Rows whose Gram matrix costs some passes over X, or enough of them."""
        problem = self.problem
        width, row = problem.size, max(1.0, problem.entries)
        cost = min(24 * row * row, width * width) / 32  # of one row's products, in units of a value read in a pass
        return min(max(4 * width, int(2 * problem.count * row / cost)), PLENTY * width)

    def _matrix(self, band: Band, ridge: float, kind: type[np.floating]) -> NDArray[np.floating]:
        """H in the upper triangle of memory that is used again: fresh pages cost more than the zeros."""
        problem = self.problem
        if self._gram is None:
            self._gram = np.empty((problem.size, problem.size), kind)
        H = self._gram
        H[:] = 0.0
        rows, slope = band
        _core.linear_gram(problem.matrix, rows, problem.C * slope, problem.bias, self._precise, H, problem.threads)
        if not problem.alone:
            upper = np.triu_indices(problem.size)
            H[upper] = problem.sum_of(H[upper])
        diagonal = np.diagonal(H) + self.penalty
        H[np.diag_indices(problem.size)] = diagonal + ridge * (1.0 + diagonal.max())
        return H

    def _sampled_factor(self, band: Band) -> NDArray[np.floating] | None:
        """The preconditioner; None (no preconditioner) where float32 cannot factor it."""
        H = self._matrix(self._thin(band, int(SAMPLE * self.problem.size)), 1e-6, np.float32)
        factor, info = sl.lapack.spotrf(H.T, lower=1, overwrite_a=1, clean=0)
        return factor if info == 0 else None

    def _thin(self, band: Band, most: int) -> Band:
        """About `most` rows of the band."""
        (rows, slope), total = band, self.problem.total
        count, height = total(float(len(rows)), float(slope.sum()))
        if count <= most:
            return band
        factor = most / height
        for _ in range(3 if self.wide else 0):  # rows that are taken for certain leave room for others
            factor *= min(4.0, most / total(float(np.minimum(1.0, factor * slope).sum()))[0])
        chance = np.minimum(1.0, factor * slope)
        chosen = np.flatnonzero(self._random.random(len(chance)) < chance)
        return rows[chosen], slope[chosen] / chance[chosen]

    def _precondition(self, r: FloatArray) -> FloatArray:
        out: FloatArray = r
        if self._factor is None:
            return out
        z = sl.blas.strsv(self._factor, r.astype(np.float32), lower=1)  # spotrs takes five times as long
        out = sl.blas.strsv(self._factor, z, lower=1, trans=1).astype(np.float64)
        return out

    def _iterate(self, grad: FloatArray, band: Band, goal: float) -> Generator[None, None, FloatArray]:
        """Preconditioned conjugate gradients."""
        problem = self.problem
        rows, weight = band[0], problem.C * band[1]
        p, r = np.zeros(problem.size), -grad
        z = self._precondition(r)
        s, Hs = z.copy(), np.empty(problem.size)
        size = first = dot(r, z)
        most = MOST if self._factor is not None else 5 * MOST
        for it in range(1, most + 1):
            if size <= 0:  # nothing left that float32 can see
                break
            self._iterations = it
            _core.linear_product(problem.matrix, rows, weight, problem.bias, s, Hs, problem.threads)
            Hs = problem.sum_of(Hs)
            Hs += (self.penalty + 1e-12) * s
            along = size / dot(s, Hs)
            p += along * s
            r -= along * Hs
            z = self._precondition(r)
            size, last = dot(r, z), size
            if size <= ACCURACY**2 * first and 0.5 * dot(r, r) <= goal:
                break
            s = z + (size / last) * s
            if it % 8 == 0:
                yield
        return p
