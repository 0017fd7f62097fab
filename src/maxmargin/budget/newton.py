"""Newton's method for the coefficients on fixed centres, on the hinge smoothed over a width delta around its corner.

    minimise  F(a) = ½·aᵀKa + pᵀa + Σ_i cost_i·loss(1 - y_i·(o_i + R_i·a))

    loss(z) = 0 (z < -delta/2),   (z + delta/2)²/(2·delta),   z (z > delta/2)

p and o are what coefficients that are held contribute. The Hessian K + 1/delta·Σ cost_i·R_iᵀR_i runs only over rows near
the corner, at most ROWS_PER_UNKNOWN per unknown (scaled up). A part of the rows and a wide delta come first. A stage stops
when the predicted decrease is below 1e-3 of F. The result is kept if it lowers F with the true hinge.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin.budget.model import FloatArray

ROWS_PER_UNKNOWN = 6  # more rows make a better Hessian than a step needs
FIRST_ROWS = 10  # per unknown, in the first stages
MOST_STEPS = 12  # per width of the corner; later ones gain little
STAGES = 4
# Bytes that a minimisation allocates beside R: per row (vectors of numbers) and per pair of unknowns (K, the Hessian and
# its factor). The Hessian's parts come on top, one number of R's type each for rows and product.
MOST_BYTES = 136, 24

Steps = Generator[bool, None, FloatArray]  # True at the end of a stage


class Problem:
    """F and its derivatives; `offset` is o and `pull` is p. Rows must be in random order: parts are the first of them."""

    def __init__(self, design: NDArray[Any], gram: FloatArray, sign: FloatArray, cost: FloatArray) -> None:
        self.design, self.gram, self.sign, self.cost = design, gram, sign, cost
        self.offset: FloatArray = np.zeros(len(sign))
        self.pull: FloatArray = np.zeros(len(gram))

    def part(self, n: int) -> Problem:
        """The first n rows, standing for all."""
        cost = self.cost[:n] * (self.cost.sum() / self.cost[:n].sum())
        part = Problem(self.design[:n], self.gram, self.sign[:n], cost)
        part.offset, part.pull = self.offset[:n], self.pull
        return part

    def product(self, a: FloatArray) -> FloatArray:
        return np.asarray(self.design @ a.astype(self.design.dtype), dtype=np.float64)

    def values(self, a: FloatArray) -> FloatArray:
        out = self.product(a)
        out += self.offset
        return out

    def regulariser(self, a: FloatArray) -> float:
        return float(a @ (self.gram @ a)) / 2 + float(self.pull @ a)

    def loss(self, values: FloatArray, delta: float) -> float:
        z = 1 - self.sign * values
        if delta == 0:
            return float(self.cost @ np.maximum(z, 0))
        bend = np.clip(z + delta / 2, 0, delta)
        return float(self.cost @ (bend**2 / (2 * delta) + np.maximum(z - delta / 2, 0)))

    def gradient(self, a: FloatArray, values: FloatArray, delta: float) -> FloatArray:
        slope = np.clip((1 - self.sign * values) / delta + 0.5, 0, 1) * self.cost * self.sign
        drawn = np.asarray(slope.astype(self.design.dtype) @ self.design, dtype=np.float64)
        return self.gram @ a + self.pull - drawn

    def hessian(self, values: FloatArray, delta: float) -> FloatArray:
        near = np.flatnonzero(np.abs(1 - self.sign * values) < delta / 2)
        cost, most = self.cost[near], ROWS_PER_UNKNOWN * len(self.gram)
        if len(near) > most:
            near = near[:most]
            cost = self.cost[near] * (cost.sum() / self.cost[near].sum())
        scale = np.sqrt(cost / delta).astype(self.design.dtype)
        out: FloatArray = self.gram.copy()
        step = len(self.gram)
        for begin in range(0, len(near), step):
            rows = self.design[near[begin : begin + step]]
            rows *= scale[begin : begin + step, None]
            out += rows.T @ rows
        return out


def minimise(problem: Problem, a: FloatArray) -> Steps:
    """Coarse to fine: a part of the rows first, then all; the corner sharper each time. STAGES stages."""
    some = FIRST_ROWS * len(a)
    first, start = a, problem
    if some < len(problem.sign):
        start = problem.part(some)
    a = yield from _newton(start, a, 1.0)
    if start is not problem:
        a = yield from _newton(start, a, 0.3)
    a = yield from _newton(problem, a, 0.3)
    a = yield from _newton(problem, a, 0.1)
    before, after = (problem.regulariser(v) + problem.loss(problem.values(v), 0) for v in (first, a))
    return a if after < before else first


def _newton(problem: Problem, a: FloatArray, delta: float) -> Steps:
    values = problem.values(a)
    ridge = 1e-8
    for _ in range(MOST_STEPS):
        gradient = problem.gradient(a, values, delta)
        solved = _stable_solve(problem.hessian(values, delta), -gradient, ridge)
        if solved is None:
            break
        move, ridge = solved
        change = problem.product(move)
        slope, bend = float(gradient @ move), float(move @ (problem.gram @ move)) / 2
        straight = float(a @ (problem.gram @ move)) + float(problem.pull @ move)
        held, lost = problem.regulariser(a), problem.loss(values, delta)
        length = 1.0
        while length > 1e-4:
            gained = length * (straight + length * bend) + problem.loss(values + length * change, delta) - lost
            if gained <= 1e-4 * length * slope:
                break
            length /= 2
        else:
            break
        a, values = a + length * move, values + length * change
        if not -slope >= 1e-3 * (max(held, 0.0) + lost):  # what is held may make its part negative
            break
        yield False
    yield True
    return a


def _stable_solve(matrix: FloatArray, right: FloatArray, ridge: float) -> tuple[FloatArray, float] | None:
    """Cholesky with the least ridge that rounding asks for, relative to the mean of the diagonal; None if none helps."""
    n = len(matrix)
    scale = float(np.trace(matrix)) / n
    while ridge < 1 and np.isfinite(scale):
        shifted = matrix.copy()
        shifted.flat[:: n + 1] += ridge * scale
        try:
            factor = cho_factor(shifted.T, overwrite_a=True, check_finite=False)  # symmetric: .T is Fortran's order
        except LinAlgError:
            ridge *= 10
            continue
        move = cho_solve(factor, right, check_finite=False)
        return (np.asarray(move), ridge) if np.isfinite(move).all() else None
    return None
