"""Every kernel machine as one QP, and back from its solution to coefficients and intercept.

    minimise  ½ aᵀQa + pᵀa    s.t.  0 ≤ a_v ≤ upper_v,   Σ_{v in group g} s_v a_v = target_g     Q_vw = s_v s_w K(v, w)

A variable v belongs to sample v mod n: classification and one-class have n variables, regression 2n (a, then a*).
With f_i = Σ_v s_v a_v K(i, v mod n), one number per sample, everything a solver needs is

    score_v = c_v − f_{v mod n},  c = −s∘p        (so grad_v = −s_v score_v)
    up(v):  s_v a_v can grow: s = +1 and a < upper, or s = −1 and a > 0        low(v): it can shrink
    optimal  ⇔  for each group  max_{up} score ≤ b_g ≤ min_{low} score;  without a group b = 0.

Weights w_i enter as bounds, so an integer weight is exactly that many repeated rows.

    formulation        variables  s        c                 upper   groups: Σ s a
    C-SVC              n          y        y                 C w     one: 0 (none without intercept)
    ν-SVC              n          y        0                 w       two, by y: ±ν Σw / 2
    ε-SVR              2n         +1, −1   t − ε, t + ε      C w     one: 0 (none without intercept)
    ν-SVR              2n         +1, −1   t, t              C w     two, by s: ±C ν Σw / 2
    one-class          n          +1       0                 w       one: ν Σw
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, isinf

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem.sums import HERE, Sums

FloatArray = NDArray[np.float64]
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # of Σ a: what a sum may miss its target by
# What C=inf stands for: no margin errors. Larger than the coefficients of a separable problem unless its margin is tiny (one
# of γ needs coefficients up to about 1/γ²); what is not separable is told by coefficients that reach it.
HARD_MARGIN = 1e10


class InfeasibleError(ValueError):
    """No point satisfies the constraints, whatever the data."""


@dataclass(frozen=True)
class QP:
    """The problem above, without its kernel. `group[v]` counts from 0; with no groups it is all zeros and unused."""

    n: int
    sign: FloatArray
    center: FloatArray  # c in the module's notation: −s∘p
    upper: FloatArray
    group: NDArray[np.int8]
    targets: FloatArray  # one per group; empty: no equality constraint

    @property
    def n_variables(self) -> int:
        return len(self.sign)

    @property
    def linear(self) -> FloatArray:
        return -self.sign * self.center

    def start(self, over: Sums = HERE) -> FloatArray:
        """A feasible point with few non-zeros: each group's target filled from its first variables on.

        Where several processes hold the samples, this is a part of the problem, but for its targets, and `over` sums over
        all of them.
        """
        alpha = np.zeros(self.n_variables)
        for g, target in enumerate(self.targets.tolist()):
            if target == 0:
                continue
            members = np.flatnonzero((self.group == g) & (self.sign == copysign(1.0, target)))
            upper = self.upper[members]
            filled = upper.cumsum() + over.before(upper)
            alpha[members] = np.minimum(np.maximum(abs(target) - (filled - upper), 0.0), upper)
        return alpha

    def repaired(self, alpha: FloatArray, over: Sums = HERE) -> FloatArray:
        """A feasible point near `alpha`: clipped to the bounds, then each group's sum restored."""
        alpha = np.clip(alpha, 0.0, self.upper)
        for g, target in enumerate(self.targets):
            mine = np.flatnonzero(self.group == g)
            alpha[mine] = restored(alpha[mine], self.upper[mine], self.sign[mine], float(target), over)
        return alpha


def restored(
    alpha: FloatArray, upper: FloatArray, sign: FloatArray, target: float, over: Sums = HERE
) -> FloatArray:
    """`alpha`, within its bounds, moved such that Σ s a = target to the rounding of Σ a.

    Variables between their bounds give first, in proportion to their distance from the nearer one, then in proportion to
    their room; those at a bound leave it only when that is not enough, one after the other, and never for rounding. So a
    solution is its own restoration, and zeros stay zeros in a warm start.
    """
    for _ in range(8):  # the first pass does it but for rounding, of which each pass leaves a part
        excess = float(over.exact(sign * alpha) - target)
        if abs(excess) <= ROUNDING * over.of(alpha):
            break
        falls = sign * excess > 0  # lowering these, and raising the others, takes the excess away
        room = np.where(falls, alpha, upper - alpha)
        inside = np.where((alpha > 0) & (alpha < upper), room, 0.0)
        shy = np.minimum(inside, upper - room)  # the distance from the nearer bound
        if (near := over.of(shy)) >= abs(excess):
            share = shy * (abs(excess) / near)
        elif (free := over.of(inside)) >= abs(excess):
            share = inside * (abs(excess) / free)
        else:
            outside = room - inside
            others = np.cumsum(outside) - outside + over.before(outside)
            share = inside + np.clip(abs(excess) - free - others, 0.0, outside)
        moved = np.clip(np.where(falls, alpha - share, alpha + share), 0.0, upper)
        if over.all(bool((moved == alpha).all())):
            break
        alpha = moved
    return alpha


def hard_margin(C: float) -> float:
    """C as a bound that numbers can be multiplied with."""
    return HARD_MARGIN if isinf(C) else float(C)


def c_svc(y: FloatArray, upper: FloatArray, fit_intercept: bool = True) -> QP:
    """C-SVC; y is ±1, upper = C·weight. Without intercept there is no equality (the problem of DC-SVM)."""
    return QP(len(y), y, y, upper, np.zeros(len(y), np.int8), np.zeros(int(fit_intercept)))


def epsilon_svr(t: FloatArray, epsilon: float, upper: FloatArray, fit_intercept: bool = True) -> QP:
    """ε-SVR with targets t."""
    n = len(t)
    sign = np.repeat([1.0, -1.0], n)
    center = np.concatenate([t - epsilon, t + epsilon])
    return QP(n, sign, center, np.tile(upper, 2), np.zeros(2 * n, np.int8), np.zeros(int(fit_intercept)))


def nu_svc(y: FloatArray, nu: float, weight: FloatArray, over: Sums = HERE) -> QP:
    """ν-SVC; infeasible when a class weighs less than ν·Σw/2."""
    total = over.of(weight)
    half = 0.5 * nu * total
    lightest = min(over.of(weight[y > 0]), over.of(weight[y < 0]))
    if half > lightest * (1 + 1e-12):
        raise InfeasibleError(
            f"specified nu is infeasible: nu={nu:g} is too large for these classes; "
            f"the largest feasible value is {2 * lightest / total:.6g}"
        )
    half = min(half, lightest)
    group = (y < 0).astype(np.int8)
    return QP(len(y), y, np.zeros(len(y)), weight, group, np.array([half, -half]))


def nu_svr(t: FloatArray, nu: float, C: float, weight: FloatArray, over: Sums = HERE) -> QP:
    """ν-SVR with targets t; feasible for every 0 < ν ≤ 1."""
    n = len(t)
    sign = np.repeat([1.0, -1.0], n)
    half = 0.5 * C * nu * over.of(weight)
    group = (sign < 0).astype(np.int8)
    return QP(n, sign, np.tile(t, 2), np.tile(C * weight, 2), group, np.array([half, -half]))


def one_class(nu: float, weight: FloatArray, over: Sums = HERE) -> QP:
    """One-class SVM; feasible for every 0 < ν ≤ 1."""
    n = len(weight)
    ones, zeros = np.ones(n), np.zeros(n)
    return QP(n, ones, zeros, weight, np.zeros(n, np.int8), np.array([nu * over.of(weight)]))


def coefficients(qp: QP, alpha: FloatArray) -> FloatArray:
    """One coefficient per sample: the decision function is Σ_i coef_i K(i, ·) + intercept."""
    signed = qp.sign * alpha
    return np.asarray(signed.reshape(-1, qp.n).sum(axis=0))


def intercept_and_r(multipliers: FloatArray) -> tuple[float, float]:
    """Intercept b and half difference r of the groups' multipliers.

    One group: (b, 0); none: (0, 0). Two: the first group's free variables have score b + r, the second's b − r, hence
    ν-SVR's tube is ε = r, and ν-SVC's margin is ρ = −r (alpha and b are divided by it).
    """
    if len(multipliers) == 2:
        return 0.5 * float(multipliers[0] + multipliers[1]), 0.5 * float(multipliers[0] - multipliers[1])
    return (float(multipliers[0]), 0.0) if len(multipliers) else (0.0, 0.0)
