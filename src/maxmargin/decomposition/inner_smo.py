"""SMO for the sub-QP (PSMO paper, section 3.3), with the core's loop: see native/decomposition/inner_smo.hpp.

Two variables of a group at a time, the second chosen by the largest second-order gain; without groups one variable.

Inputs, outputs, stopping rule: decomposition.inner. Cost: two passes over q per step; steps grow with the accuracy.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _core
from maxmargin.decomposition.inner import FloatArray, GroupArray, InnerResult, kkt_violation

ROUNDS = 5  # the core's running scores drift by rounding: restart from fresh ones this often at most


def solve_inner(
    Q: FloatArray,
    grad: FloatArray,
    alpha: FloatArray,
    upper: FloatArray,
    sign: FloatArray,
    group: GroupArray,
    n_groups: int,
    tol: float,
    max_iter: int = 0,
) -> InnerResult:
    """SMO from `alpha`; `max_iter` counts steps (0: a million, or a thousand per variable if that is more)."""
    q = len(alpha)
    left = max_iter or max(1_000_000, 1000 * q)
    width = -(-q // 16) * 16  # the core reads whole vectors
    tile = np.zeros((width, width))
    tile[:q, :q] = Q * np.outer(sign, sign)
    signed = sign * upper
    low, high = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
    beta = sign * alpha
    current, violation, steps = grad, np.inf, 0
    for _ in range(ROUNDS):
        score = -sign * current
        done, _ = _core.inner_smo(tile, beta, low, high, score, group, n_groups, 0.9 * tol, left - steps)
        steps += done
        current = grad + Q @ (sign * beta - alpha)
        before, violation = violation, kkt_violation(current, sign * beta, upper, sign, group, n_groups)
        if violation <= tol or steps >= left or violation >= before:
            break
    ok, limited = bool(violation <= tol), steps >= left
    note = "" if ok else "out of steps" if limited else "no further progress"
    return InnerResult(np.clip(sign * beta, 0, upper), violation, steps, ok, note, limited and not ok)
