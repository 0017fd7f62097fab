"""The reduced problem (3) in its dual: a QP with one variable per cut, solved by an interior-point method.

    maximise over β    C·⟨b, β⟩ − ½ C² βᵀGβ      s.t.  β ≥ 0,  Σβ ≤ 1,  and ⟨free, β⟩ = 0 with a free intercept
    G_jk = ⟨a_j, a_k⟩,   w = −C Σ β_j a_j,   the intercept is the multiplier of the equality

Method: Mehrotra's predictor-corrector with a slack for Σβ ≤ 1 (the cut "R ≥ 0"). Cost: some 15 Cholesky factors of a
matrix with one row per cut. It needs no warm start to be accurate; near-parallel cuts, which stall SMO, do not hurt it.
Any feasible β gives a valid bound, so `solve` repairs feasibility exactly before it returns.

Scaling: when weights span many orders so do the cuts (a cut through heavy samples is 1e8 times one through light ones)
and the β that balance them, and the value may be far below any single cut's. Hence the variables are β_j times the size
of cut j, in units of the value itself; as that is only known afterwards, a value far below the unit is solved for again.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from maxmargin.cutting_plane.problem import FloatArray

SMALL = 1e-3  # a value below this part of the unit, or above by as much, leaves too few digits of float64
TRIES = 6


def solve(
    gram: FloatArray, offset: FloatArray, C: float, free: FloatArray | None = None, guess: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """(β, intercepts). `free` holds the cuts' components at free intercepts: one row per intercept, or one row.

    `guess` at the optimal value: that of the problem with fewer cuts, or 0.
    """
    balance = np.zeros((0, len(offset))) if free is None else np.atleast_2d(free)
    size = np.abs(np.vstack([offset, balance])).max(axis=0)
    highest = max(C * float(size.max(initial=0.0)), np.finfo(float).tiny)  # no mixture of cuts can promise more
    level = guess if 0 < guess < highest else highest
    best = (-np.inf, np.zeros(len(offset)), np.zeros(len(balance)))
    for _ in range(TRIES):
        beta, intercepts = _scaled(gram, offset, C, balance, np.maximum(size, level / C), level)
        value = C * float(beta @ offset) - 0.5 * C * C * float(beta @ gram @ beta)
        if value > best[0]:
            best = (value, beta, intercepts)
        if value < SMALL * level:
            level = highest if level == guess else max(2 * value, 1e-4 * level)
        elif value * SMALL > level:
            level = value
        else:
            break
    return best[1], best[2]


def _scaled(
    gram: FloatArray, offset: FloatArray, C: float, balance: FloatArray, size: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """The problem in x_j = β_j·size_j·C/level: values, products and balances are of order one."""
    t = len(offset)
    H = np.zeros((t + 1, t + 1))
    H[:t, :t] = gram / np.outer(size, size) * level
    f = np.append(offset / size, 0.0)
    E = np.zeros((1 + len(balance), t + 1))
    E[0, :t], E[0, t] = level / (C * size), 1.0
    unit = np.abs(balance / size).max(axis=1, initial=np.finfo(float).tiny)  # classes of little weight count as well
    E[1:, :t] = balance / size / unit[:, None]
    e = np.zeros(len(E))
    e[0] = 1.0
    x, y = _interior_point(H, f, E, e)
    beta = np.where(x[:t] > 1e-13 * x[:t].max(initial=0.0), x[:t], 0.0) * (level / C) / size
    return _repair(beta, balance), y[1:] / unit


def _interior_point(H: FloatArray, f: FloatArray, E: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray]:
    """minimise ½xᵀHx − fᵀx, Ex = e, x ≥ 0. All data are scaled to order one."""
    size = len(f)
    x = np.full(size, 1.0 / size)
    z = np.full(size, 1.0)
    y = np.zeros(len(e))
    ridge = 1e-15 * (1.0 + float(np.trace(H)))
    last = np.inf
    for _ in range(60):
        dual = H @ x - f - E.T @ y - z
        primal = E @ x - e
        mu = float(x @ z) / size
        residual = max(float(np.abs(dual).max()), float(np.abs(primal).max()))
        if mu < 1e-14 and (residual < 1e-11 or residual > 0.1 * last):  # at rest: a large H rounds more coarsely
            break
        last = residual
        M = H + np.diag(z / x + ridge)
        try:
            factor = sl.cho_factor(M, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            break
        solved = sl.cho_solve(factor, E.T, check_finite=False)
        schur = E @ solved

        def direction(
            centre: FloatArray, dual: FloatArray = dual, primal: FloatArray = primal, z: FloatArray = z,
            x: FloatArray = x, factor: tuple[FloatArray, bool] = factor, solved: FloatArray = solved,
            schur: FloatArray = schur,
        ) -> tuple[FloatArray, FloatArray, FloatArray]:
            rhs = -dual + (centre - x * z) / x
            base = sl.cho_solve(factor, rhs, check_finite=False)
            dy = np.linalg.lstsq(schur, -primal - E @ base, rcond=1e-14)[0]
            dx = base + solved @ dy
            return dx, dy, (centre - x * z - z * dx) / x

        dx, dy, dz = direction(np.zeros(size))
        reach = min(_reach(x, dx), _reach(z, dz))
        after = float((x + reach * dx) @ (z + reach * dz)) / size
        centre = np.full(size, mu * (after / mu) ** 3) - dx * dz
        dx, dy, dz = direction(centre)
        reach = 0.9995 * min(_reach(x, dx), _reach(z, dz))
        if not (np.isfinite(dx).all() and np.isfinite(dz).all()) or reach < 1e-10:
            break
        x, y, z = x + reach * dx, y + reach * dy, z + reach * dz
    return x, y


def _reach(v: FloatArray, dv: FloatArray) -> float:
    """The longest step ≤ 1 (before damping) that keeps v positive."""
    falling = dv < 0
    return min(1.0, float(np.min(-v[falling] / dv[falling]))) if falling.any() else 1.0


def _repair(beta: FloatArray, balance: FloatArray) -> FloatArray:
    """Feasible to the last bits of float64: balance the intercepts, Σβ ≤ 1.

    One intercept is balanced by shrinking the heavier side. Several (one per class) by a correction of least norm
    relative to β, which keeps the weights positive when the imbalance is small; what remains after it costs all
    weights, because then only β = 0 is sure to be feasible.
    """
    if len(balance) == 1:
        up, down = float(beta @ np.maximum(balance[0], 0)), float(beta @ np.maximum(-balance[0], 0))
        if up > down:
            beta = np.where(balance[0] > 0, beta * (down / up), beta)
        elif down > up:
            beta = np.where(balance[0] < 0, beta * (up / down), beta)
    elif len(balance):
        for _ in range(3):
            scaled = balance * beta
            scaled /= np.abs(scaled).sum(axis=1, keepdims=True) + np.finfo(float).tiny
            beta = beta * (1 - np.linalg.lstsq(scaled, scaled.sum(axis=1), rcond=1e-12)[0])
        beta = np.maximum(beta, 0.0)
        if np.abs(balance @ beta).max() > 1e-12 * float((np.abs(balance) @ beta).max(initial=0.0)):
            beta = np.zeros_like(beta)
    total = float(beta.sum())
    return beta / total * (1 - 1e-15) if total > 1 else beta
