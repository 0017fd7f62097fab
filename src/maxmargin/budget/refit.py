"""The best coefficients on support vectors that no longer move: a convex problem of `budget` variables.

    minimise  F(a) = ½·aᵀKa + C·Σ_i c_i·loss(1 - y_i·(R_i·a))        R_ij = k(x_i, s_j),  K_jl = k(s_j, s_l)

one problem per output, all sharing R. An intercept is a column of ones in R and a 1 on K's diagonal. Newton's method on
the hinge smoothed over a width delta around its corner,

    loss(z) = 0 (z < -delta/2),   (z + delta/2)²/(2·delta),   z (z > delta/2)

whose Hessian K + C/delta·Σ c_i·R_iᵀR_i runs only over rows near the corner, at most ROWS_PER_UNKNOWN·budget of them
(scaled up). It starts from the coefficients of the stochastic gradient, on a part of the rows and a wide delta first.
Stops when the predicted decrease is below 1e-3 of F. The result is kept if it lowers F with the true hinge.

Cost: R once (rows·budget kernel values), then two products with R and a Cholesky factorisation per step.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from maxmargin.budget.model import Options, kernel_matrix

FloatArray = NDArray[np.float64]
ROWS_PER_UNKNOWN = 6  # more rows make a better Hessian than a step needs
MOST_STEPS = 12  # per width of the corner; later ones gain little
CHUNK = 8192  # rows of X gathered at a time


class Refit:
    """Improve the coefficients of a model on these rows of x; `weight` is one number per entry of rows.

    BLAS runs on one thread: the products are bound by memory, and the pools of NumPy and SciPy would fight for cores.
    """

    def __init__(
        self,
        x: Any,
        rows: NDArray[np.int64],
        labels: NDArray[np.int32],
        weight: FloatArray,
        megabytes: float,
        rng: np.random.Generator,
        threads: int,
    ) -> None:
        self._x, self._rows, self._labels, self._weight = x, rows, labels, weight
        self._megabytes, self._rng, self._threads = megabytes, rng, threads
        self.seconds = 0.0

    def turns(
        self, centres: NDArray[Any], coef: FloatArray, intercept: FloatArray, options: Options
    ) -> Generator[None, None, None]:
        """Change coef and intercept in place, one output after the other; a safe point after every Newton step."""
        start = time.perf_counter()
        budget = len(centres)
        rows, weight, order = self._sample(budget, centres.itemsize)
        design = self._design(rows, centres, options)
        gram = kernel_matrix(centres.astype(np.float64), centres.astype(np.float64), options.gamma, self._threads)
        if options.intercept:
            gram = block_diag(gram, 1.0)
        with threadpool_limits(1, "blas"):
            for c in range(options.outputs):
                sign = np.where(self._labels[rows] == (1 if options.outputs == 1 else c), 1.0, -1.0)
                a = np.append(coef[c], intercept[c]) if options.intercept else coef[c]
                best = yield from _solve(_Problem(design, gram, sign, options.C * weight), a, order)
                coef[c] = best[:budget]
                if options.intercept:
                    intercept[c] = best[budget]
                self.seconds = time.perf_counter() - start

    def _sample(self, budget: int, itemsize: int) -> tuple[NDArray[np.int64], FloatArray, NDArray[np.int64]]:
        """Rows, weights and a random order of them; a random part stands for the whole when memory is short."""
        most = max(int(self._megabytes * 1e6 / (budget * itemsize)), 10 * budget)
        order = self._rng.permutation(len(self._rows))
        if len(self._rows) <= most:
            return self._rows, self._weight, order
        part = order[:most]
        weight = self._weight[part]
        return self._rows[part], weight * (self._weight.sum() / weight.sum()), np.arange(most)

    def _design(self, rows: NDArray[np.int64], centres: NDArray[Any], options: Options) -> NDArray[Any]:
        """R, gathered in chunks so that X is not copied as a whole."""
        design = np.ones((len(rows), len(centres) + options.intercept), dtype=centres.dtype)
        for begin in range(0, len(rows), CHUNK):
            part = slice(begin, begin + CHUNK)
            block = self._x[rows[part]]
            design[part, : len(centres)] = kernel_matrix(block, centres, options.gamma, self._threads)
        return design


class _Problem:
    """F and its derivatives on some rows. cost is C·c_i."""

    def __init__(self, design: NDArray[Any], gram: FloatArray, sign: FloatArray, cost: FloatArray) -> None:
        self.design, self.gram, self.sign, self.cost = design, gram, sign, cost

    def part(self, rows: NDArray[np.int64]) -> _Problem:
        cost = self.cost[rows] * (self.cost.sum() / self.cost[rows].sum())
        return _Problem(self.design[rows], self.gram, self.sign[rows], cost)

    def product(self, a: FloatArray) -> FloatArray:
        return np.asarray(self.design @ a.astype(self.design.dtype), dtype=np.float64)

    def value(self, values: FloatArray, norm: float, delta: float) -> float:
        z = 1 - self.sign * values
        if delta == 0:
            return norm / 2 + float(self.cost @ np.maximum(z, 0))
        bend = np.clip(z + delta / 2, 0, delta)
        return norm / 2 + float(self.cost @ (bend**2 / (2 * delta) + np.maximum(z - delta / 2, 0)))

    def gradient(self, a: FloatArray, values: FloatArray, delta: float) -> FloatArray:
        slope = np.clip((1 - self.sign * values) / delta + 0.5, 0, 1) * self.cost * self.sign
        return self.gram @ a - np.asarray(slope.astype(self.design.dtype) @ self.design, dtype=np.float64)

    def hessian(self, values: FloatArray, delta: float) -> FloatArray:
        near = np.flatnonzero(np.abs(1 - self.sign * values) < delta / 2)
        cost = self.cost[near]
        most = ROWS_PER_UNKNOWN * len(self.gram)
        if len(near) > most:  # rows are in canonical order, random with respect to everything that matters here
            near = near[:: len(near) // most]
            cost = self.cost[near] * (cost.sum() / self.cost[near].sum())
        rows = self.design[near] * np.sqrt(cost / delta)[:, None].astype(self.design.dtype)
        return np.asarray(self.gram + rows.T @ rows)


Steps = Generator[None, None, FloatArray]


def _solve(problem: _Problem, a: FloatArray, order: NDArray[np.int64]) -> Steps:
    """Coarse to fine: a part of the rows first, then all; the corner sharper each time."""
    n, unknowns = len(problem.sign), len(a)
    some = min(n, 10 * unknowns)
    first = a
    if some < n:
        part = problem.part(np.sort(order[:some]))
        a = yield from _newton(part, a, 1.0)
        a = yield from _newton(part, a, 0.3)
    else:
        a = yield from _newton(problem, a, 1.0)
    a = yield from _newton(problem, a, 0.3)
    a = yield from _newton(problem, a, 0.1)
    values = [problem.value(problem.product(v), float(v @ problem.gram @ v), 0) for v in (first, a)]
    return a if values[1] < values[0] else first


def _newton(problem: _Problem, a: FloatArray, delta: float) -> Steps:
    values = problem.product(a)
    ridge = 1e-8
    for _ in range(MOST_STEPS):
        gradient = problem.gradient(a, values, delta)
        move, ridge = _stable_solve(problem.hessian(values, delta), -gradient, ridge)
        change = problem.product(move)
        norms = float(a @ problem.gram @ a), float(a @ problem.gram @ move), float(move @ problem.gram @ move)
        slope, now = float(gradient @ move), problem.value(values, norms[0], delta)
        length = 1.0
        while length > 1e-4:
            norm = norms[0] + length * (2 * norms[1] + length * norms[2])
            if problem.value(values + length * change, norm, delta) <= now + 1e-4 * length * slope:
                break
            length /= 2
        else:
            return a
        a, values = a + length * move, values + length * change
        if -slope < 1e-3 * now:
            break
        yield
    return a


def _stable_solve(matrix: FloatArray, right: FloatArray, ridge: float) -> tuple[FloatArray, float]:
    """Cholesky with the least ridge that rounding asks for, relative to the mean of the diagonal."""
    scale, identity = float(np.trace(matrix)) / len(matrix), np.eye(len(matrix))
    while True:
        try:
            factor = cho_factor(matrix + ridge * scale * identity, overwrite_a=True, check_finite=False)
        except LinAlgError:
            ridge *= 10
            continue
        return np.asarray(cho_solve(factor, right, check_finite=False)), ridge
