"""The reduced problem (3) in its dual: a QP with one variable per cut, solved by an active-set method.

    maximise over β    C·⟨b, β⟩ − ½ C² βᵀGβ      s.t.  β ≥ 0,  Σβ ≤ 1,  and ⟨free, β⟩ = 0 with a free intercept
    G_jk = ⟨a_j, a_k⟩,   w = −C Σ β_j a_j,   the intercept is the multiplier of the equality

Method: `_core.reduced_solve` from the last β, with a slack for Σβ ≤ 1 (the cut "R ≥ 0"). One more cut changes few of
the β that are not zero, so it takes a few steps of O(t²) for t cuts, far less than a pass over the samples (the paper's
section 3.1). Any feasible β gives a valid bound, so `solve` repairs feasibility to the last bits before it returns.

Scaling: when weights span many orders so do the cuts (a cut through heavy samples is 1e8 times one through light ones)
and the β that balance them, and the value may be far below any single cut's. Hence the variables are β_j times the size
of cut j, in units of the value itself; as that is only known afterwards, a value far below the unit is solved for again.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _core
from maxmargin.linear.rounding import FloatArray

SMALL = 1e-3  # a value below this part of the unit, or above by as much, leaves too few digits of float64
TRIES = 6


def solve(
    gram: FloatArray, offset: FloatArray, C: float, free: FloatArray | None = None, guess: float = 0.0,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """(β, intercepts). `free` holds the cuts' components at free intercepts: one row per intercept, or one row.

    G is the leading part of `gram`, one row per offset. `guess` at the optimal value: that of the problem with fewer cuts,
    or 0. `start`: a feasible β; 0 is one.
    """
    t = len(offset)
    balance = np.zeros((0, t)) if free is None else np.ascontiguousarray(np.atleast_2d(free))
    size = np.abs(offset)
    for row in balance:
        size = np.maximum(size, np.abs(row))
    highest = max(C * float(size.max()), np.finfo(float).tiny)  # no mixture of cuts can promise more
    level = guess if 0 < guess < highest else highest
    best = (-np.inf, np.zeros(t) if start is None else start, np.zeros(len(balance)))
    for _ in range(TRIES):
        beta = best[1].copy()
        intercepts = _core.reduced_problem(gram, offset, C, balance, np.maximum(size, level / C), level, beta)
        beta = _repair(beta, balance)
        value = C * float(beta @ offset) - 0.5 * C * C * float(beta @ gram[:t, :t] @ beta)
        if value > best[0]:
            best = (value, beta, intercepts)
        if value < SMALL * level:
            level = highest if level == guess else max(2 * value, 1e-4 * level)
        elif value * SMALL > level:
            level = value
        else:
            break
    return best[1], best[2]


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
