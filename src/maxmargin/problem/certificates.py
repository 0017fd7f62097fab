"""How good is an answer: feasibility, primal, dual, duality gap and KKT violation in plain NumPy float64.

Slow, obvious, and sharing no code with the core, so that it can judge it. For the QP of `formulations`, with
f_i = Σ_v s_v a_v K(i, v mod n), score_v = c_v − f_{v mod n} and one multiplier b_g per group,

    r_v    = −s_v (score_v − b_g)                 the gradient of the Lagrangian; −r_v is v's margin error
    primal = ½ Σ_v s_v a_v f_v + Σ_v upper_v max(0, −r_v) + Σ_g b_g target_g    the regularised loss
    dual   = −(½ aᵀQa + pᵀa)                      a lower bound of the primal when a is feasible
    gap    = primal − dual = Σ_v [a_v r_v + upper_v max(0, −r_v)]

Every term of the last sum is ≥ 0 for 0 ≤ a ≤ upper, so the gap is summed that way and suffers no cancellation. It holds
when Σ s a meets the targets; `bounds` and `equality` say how far a is from that.

    violation = max over groups of  max_{up} score − min_{low} score;  without groups the largest projected gradient

Cost: one kernel block per pair (sample, sample with a non-zero coefficient), in blocks of rows: n² values never exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.problem import formulations
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel, dense64

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
#: The whole Gram matrix, or a function of row and column indices that returns that block of it.
Gram: TypeAlias = FloatArray | Callable[[IntArray, IntArray], FloatArray]

BLOCK_VALUES = 2**22  # kernel values at a time: 32 MB of float64
AT_BOUND = 1e-12  # nearer than this is rounding, and counts as at the bound; relative to the size of the numbers there


class CertificateError(RuntimeError):
    """A lower bound lies above an objective by more than rounding explains: a bug in maxmargin, never a property of data."""

    def __init__(self, lower: float, objective: float) -> None:
        super().__init__(
            f"the lower bound {lower!r} lies above the objective {objective!r}: this is a bug in maxmargin and no fault of "
            "your data. Please report it, with the parameters and, if you can, the data; no model was handed out"
        )


@dataclass(frozen=True)
class Certificate:
    """What is known about a point of the QP. All values are absolute; `relative_gap` is gap / max(|primal|, |dual|)."""

    bounds: float  # largest distance of an alpha from [0, upper]
    equality: float  # largest |Σ s a − target|
    primal: float
    dual: float
    gap: float
    violation: float
    multipliers: FloatArray

    @property
    def infeasibility(self) -> float:
        return max(self.bounds, self.equality)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), abs(self.dual), float(np.finfo(float).tiny))


def certify(qp: QP, gram: Gram, alpha: ArrayLike, multipliers: ArrayLike | None = None) -> Certificate:
    """Judge `alpha`; without `multipliers` those that make the primal smallest for this alpha are used.

    Parameters
    ----------
    qp : QP
    gram : array of shape (n, n), or callable
        Kernel values between the n samples, or `gram(rows, columns)` that returns the block for two index arrays.
    alpha : array of shape (n_variables,)
    multipliers : array with one number per group, optional

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.problem.certificates import certify
    >>> from maxmargin.problem.formulations import c_svc
    >>> x, y = np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0])
    >>> answer = certify(c_svc(y, upper=np.full(2, 10.0)), x @ x.T, alpha=[0.5, 0.5])
    >>> answer.primal, answer.dual, answer.gap
    (0.5, 0.5, 0.0)
    """
    a = np.asarray(alpha, dtype=np.float64)
    if a.shape != (qp.n_variables,):
        raise ValueError(f"alpha.shape == {a.shape}, expected ({qp.n_variables},): one value per variable of the QP")
    sample = np.arange(qp.n_variables) % qp.n
    f = decision_values(gram, formulations.coefficients(qp, a))[sample]
    score = qp.center - f
    if multipliers is None:
        b = best_multipliers(qp, score)
    else:
        b = np.array(multipliers, dtype=np.float64).reshape(-1)
        if b.shape != qp.targets.shape:
            raise ValueError(f"{len(b)} multipliers given, but the QP has {len(qp.targets)} equality groups")
    r = -qp.sign * (score - (b[qp.group] if len(b) else 0.0))
    slack = np.maximum(-r, 0)
    norm = float(qp.sign * a @ f)
    members = [qp.group == g for g in range(len(b))]
    missed = [abs(qp.sign[m] @ a[m] - target) for m, target in zip(members, qp.targets)]
    return Certificate(
        bounds=float(np.maximum(np.maximum(-a, a - qp.upper), 0).max(initial=0)),
        equality=float(max(missed, default=0.0)),
        primal=float(0.5 * norm + qp.upper @ slack + b @ qp.targets),
        dual=float(-(0.5 * norm + qp.linear @ a)),
        gap=float((a * r + qp.upper * slack).sum()),
        violation=kkt_violation(score, a, qp.upper, qp.sign, qp.group, len(b)),
        multipliers=b,
    )


def decision_values(gram: Gram, coef: FloatArray) -> FloatArray:
    """f = K·coef, in blocks of rows and with the columns of non-zero coefficients only."""
    columns = np.flatnonzero(coef)
    f = np.zeros(len(coef))
    block = max(1, BLOCK_VALUES // max(1, len(columns)))
    for start in range(0, len(coef), block):
        rows = np.arange(start, min(start + block, len(coef)))
        values = gram(rows, columns) if callable(gram) else gram[np.ix_(rows, columns)]
        f[rows] = np.asarray(values, dtype=np.float64) @ coef[columns]
    return f


def kernel_block(kernel: Kernel, X: Any) -> Gram:
    """A kernel on samples as `gram(rows, columns)`; for a precomputed kernel X is the Gram matrix itself."""
    if kernel.name == "precomputed":
        return lambda rows, columns: dense64(X[rows][:, columns])
    return lambda rows, columns: kernel(X[rows], X[columns])


def kkt_violation(
    score: FloatArray, alpha: FloatArray, upper: FloatArray, sign: FloatArray, group: NDArray[np.int8], n_groups: int
) -> float:
    """The largest pair violation inside a group; without groups the largest projected gradient. At least 0."""
    can_grow = alpha < upper * (1 - AT_BOUND)
    # No alpha comes near an upper bound of 1e12, and its rounding has nothing to do with it.
    can_shrink = alpha > AT_BOUND * np.minimum(upper, alpha.max(initial=0.0))
    up = np.where(sign > 0, can_grow, can_shrink)
    low = np.where(sign > 0, can_shrink, can_grow)
    if n_groups == 0:
        return float(max(score[up].max(initial=0), (-score[low]).max(initial=0)))
    worst = 0.0
    for g in range(n_groups):
        mine = group == g
        worst = max(worst, score[up & mine].max(initial=-np.inf) - score[low & mine].min(initial=np.inf))
    return float(worst)


def best_multipliers(qp: QP, score: FloatArray) -> FloatArray:
    """For each group the b that makes the primal smallest with f held fixed."""
    best = [
        smallest_loss(qp.sign[mine], score[mine], qp.upper[mine], float(target))
        for mine, target in ((qp.group == g, t) for g, t in enumerate(qp.targets))
    ]
    return np.array(best, dtype=np.float64)


def smallest_loss(sign: FloatArray, score: FloatArray, upper: FloatArray, target: float) -> float:
    """argmin_b Σ upper max(0, s (score − b)) + b·target; the middle when a whole interval is optimal, or its only end.

    The slope is target − Σ_{s=+1, score>b} upper + Σ_{s=−1, score<b} upper: it grows by `upper` at each score.
    """
    order = np.argsort(score, kind="stable")
    knots = score[order]
    if len(knots) == 0:
        return 0.0
    slope_after = target - upper[sign > 0].sum() + np.cumsum(upper[order])  # on (knots[i], knots[i + 1])
    rounding = 1e-12 * max(abs(target), upper.sum())
    first = int(np.argmax(slope_after >= -rounding))  # from here on the loss no longer falls
    last = min(int(np.searchsorted(slope_after, rounding, side="right")), len(knots) - 1)  # from here on it rises
    if slope_after[0] - upper[order[0]] > -rounding:  # already flat before the first knot: no left end
        return float(knots[last])
    if slope_after[-1] < rounding:  # still flat after the last: no right end
        return float(knots[first])
    return float(0.5 * (knots[first] + knots[max(first, last)]))
