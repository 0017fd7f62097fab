"""The reduced problem (3) in its dual: a QP with one variable per cut, solved by an interior-point method.

    maximise over β    C·⟨b, β⟩ − ½ C² βᵀGβ      s.t.  β ≥ 0,  Σβ ≤ 1,  and ⟨free, β⟩ = 0 with a free intercept
    G_jk = ⟨a_j, a_k⟩,   w = −C Σ β_j a_j,   the intercept is the multiplier of the equality

Method: Mehrotra's predictor-corrector with a slack for Σβ ≤ 1 (the cut "R ≥ 0"). Cost: some 15 Cholesky factors of a
matrix with one row per cut. It needs no warm start to be accurate; near-parallel cuts, which stall SMO, do not hurt it.
Any feasible β gives a valid bound, so `solve` repairs feasibility exactly before it returns.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from maxmargin.cutting_plane.problem import FloatArray


def solve(
    gram: FloatArray, offset: FloatArray, C: float, free: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(β, intercepts). `free` holds the cuts' components at free intercepts: one row per intercept, or one row."""
    t = len(offset)
    scale = max(C * float(np.abs(offset).max(initial=0.0)), np.finfo(float).tiny)
    H = np.zeros((t + 1, t + 1))
    H[:t, :t] = gram * (C * C / scale)
    f = np.append(offset * (C / scale), 0.0)
    balance = np.zeros((0, t)) if free is None else np.atleast_2d(free)
    unit = float(np.abs(balance).max(initial=0.0)) or 1.0
    E = np.vstack([np.ones(t + 1), np.hstack([balance / unit, np.zeros((len(balance), 1))])])
    e = np.zeros(len(E))
    e[0] = 1.0
    x, y = _interior_point(H, f, E, e)
    return _repair(x[:t], balance), y[1:] * (scale / (C * unit))


def _interior_point(H: FloatArray, f: FloatArray, E: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray]:
    """minimise ½xᵀHx − fᵀx, Ex = e, x ≥ 0. All data are scaled to order one."""
    size = len(f)
    x = np.full(size, 1.0 / size)
    z = np.full(size, 1.0)
    y = np.zeros(len(e))
    ridge = 1e-15 * (1.0 + float(np.trace(H)))
    for _ in range(60):
        dual = H @ x - f - E.T @ y - z
        primal = E @ x - e
        mu = float(x @ z) / size
        if mu < 1e-14 and np.abs(dual).max() < 1e-11 and np.abs(primal).max() < 1e-11:
            break
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
    """Feasible to the last bits of float64: clip dust, balance the intercepts, Σβ ≤ 1.

    One intercept is balanced by shrinking the heavier side. Several (one per class) by a correction of least norm
    relative to β, which keeps the weights positive when the imbalance is small; what remains after it costs all
    weights, because then only β = 0 is sure to be feasible.
    """
    beta = np.where(beta > 1e-13, beta, 0.0)
    if len(balance) == 1:
        up, down = float(beta @ np.maximum(balance[0], 0)), float(beta @ np.maximum(-balance[0], 0))
        if up > down:
            beta = np.where(balance[0] > 0, beta * (down / up), beta)
        elif down > up:
            beta = np.where(balance[0] < 0, beta * (up / down), beta)
    elif len(balance):
        for _ in range(3):
            scaled = balance * beta
            beta = beta * (1 - np.linalg.lstsq(scaled, balance @ beta, rcond=1e-12)[0])
        beta = np.maximum(beta, 0.0)
        if np.abs(balance @ beta).max() > 1e-12 * float((np.abs(balance) @ beta).max(initial=0.0)):
            beta = np.zeros_like(beta)
    total = float(beta.sum())
    return beta / total * (1 - 1e-15) if total > 1 else beta
