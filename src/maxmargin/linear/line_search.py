"""Exact line searches (appendix A of Franc & Sonnenburg 2008, with the cases its reference code gets wrong).

    k* = argmin over k ≥ 0 of  ½·quad·k² + lin·k + C·R(m + k·q)

hinge            The derivative is a line plus jumps. `_core.hinge_search` finds by histogram and selection, without a
                 sort, the hinge or the ramp between two hinges where it changes sign; k may pass 1 and the last hinge.
rounded, squared The derivative is piecewise linear and continuous: Newton's method inside a bracket ends on the right
                 piece, where it is exact.
"""

from __future__ import annotations

import numpy as np

from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.rounding import FloatArray


def exact(problem: LinearProblem, m: FloatArray, q: FloatArray, quad: float, lin: float) -> float:
    """The minimiser along m + k·q for the problem's own loss."""
    if problem.loss == "hinge":
        c = problem.C
        return problem.crossing(m, q, quad / c, lin / c)
    return smooth(problem, m, q, quad, lin, h=0.0, accuracy=1e-12)


def smooth(
    problem: LinearProblem, m: FloatArray, q: FloatArray, quad: float, lin: float, h: float, accuracy: float
) -> float:
    """The minimiser for the rounded hinge (h > 0) or the squared one, to `accuracy` times the slope at 0."""

    def slope(k: float) -> tuple[float, float]:
        first, second = problem.slope(h, m, q, k)
        return quad * k + lin + problem.C * first, quad + problem.C * second

    start, curvature = slope(0.0)
    if start >= 0:
        return 0.0
    goal = accuracy * -start
    low, high, k = 0.0, np.inf, 1.0
    for _ in range(100):
        first, curvature = slope(k)
        if abs(first) <= goal:
            break
        low, high = (k, high) if first < 0 else (low, k)
        newton = k - first / curvature if curvature > 0 else np.inf
        if not low < newton < high:
            newton = 2 * k if high == np.inf else 0.5 * (low + high)
        elif high == np.inf:
            newton = min(newton, 8 * k)
        if newton == k or (np.isfinite(high) and high - low <= 1e-15 * high):
            break
        k = newton
    return k
