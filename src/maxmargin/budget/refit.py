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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from maxmargin.budget.sgd import BudgetResult, Options, kernel_matrix

FloatArray = NDArray[np.float64]
ROWS_PER_UNKNOWN = 8  # more rows make a better Hessian than a step needs
CHUNK = 8192  # rows of X gathered at a time


def refit_coefficients(
    result: BudgetResult,
    x: Any,
    rows: NDArray[np.int64],
    labels: NDArray[np.int32],
    weight: FloatArray,
    options: Options,
    C: float,
    megabytes: float,
    rng: np.random.Generator,
    threads: int,
) -> None:
    """Improve result.coef and result.intercept on these rows of x; `weight` is one number per entry of rows."""
    start = time.perf_counter()
    budget = len(result.centres)
    most = max(int(megabytes * 1e6 / (budget * result.centres.itemsize)), 10 * budget)
    order = rng.permutation(len(rows))
    if len(rows) > most:  # a random part stands for the whole
        part = order[:most]
        weight = weight[part] * (weight.sum() / weight[part].sum())
        rows, order = rows[part], np.arange(most)
    design = _kernel_rows(x, rows, result.centres, options, threads)
    gram = kernel_matrix(result.centres.astype(np.float64), result.centres.astype(np.float64), options.gamma, threads)
    if options.intercept:
        gram = np.block([[gram, np.zeros((budget, 1))], [np.zeros((1, budget)), np.ones((1, 1))]])
    with threadpool_limits(threads, "blas"):
        for c in range(options.outputs):
            sign = np.where(labels[rows] == (1 if options.outputs == 1 else c), 1.0, -1.0)
            a = np.append(result.coef[c], result.intercept[c]) if options.intercept else result.coef[c]
            best = _solve(_Problem(design, gram, sign, C * weight), a, order)
            result.coef[c] = best[:budget]
            if options.intercept:
                result.intercept[c] = best[budget]
    result.timings["refit"] = time.perf_counter() - start


def _kernel_rows(
    x: Any, rows: NDArray[np.int64], centres: NDArray[Any], options: Options, threads: int
) -> NDArray[Any]:
    """R, gathered in chunks so that X is not copied as a whole."""
    design = np.ones((len(rows), len(centres) + options.intercept), dtype=centres.dtype)
    for begin in range(0, len(rows), CHUNK):
        part = slice(begin, begin + CHUNK)
        design[part, : len(centres)] = kernel_matrix(x[rows[part]], centres, options.gamma, threads)
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
        return self.gram + rows.T @ rows


def _solve(problem: _Problem, a: FloatArray, order: NDArray[np.int64]) -> FloatArray:
    """Coarse to fine: a part of the rows first, then all; the corner sharper each time."""
    n, unknowns = len(problem.sign), len(a)
    some = min(n, 10 * unknowns)
    first = a
    if some < n:
        a = _newton(problem.part(np.sort(order[:some])), a, 1.0)
        a = _newton(problem.part(np.sort(order[:some])), a, 0.3)
    else:
        a = _newton(problem, a, 1.0)
    a = _newton(problem, a, 0.3)
    a = _newton(problem, a, 0.1)
    values = [problem.value(problem.product(v), float(v @ problem.gram @ v), 0) for v in (first, a)]
    return a if values[1] < values[0] else first


def _newton(problem: _Problem, a: FloatArray, delta: float, steps: int = 12) -> FloatArray:
    values = problem.product(a)
    for _ in range(steps):
        gradient = problem.gradient(a, values, delta)
        move = -_stable_solve(problem.hessian(values, delta), gradient)
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
    return a


def _stable_solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Cholesky with the least ridge that rounding asks for."""
    ridge = 1e-8 * float(np.trace(matrix)) / len(matrix)
    while True:
        try:
            factor = cho_factor(matrix + ridge * np.eye(len(matrix)), overwrite_a=True, check_finite=False)
        except LinAlgError:
            ridge *= 10
            continue
        return np.asarray(cho_solve(factor, right, check_finite=False))
