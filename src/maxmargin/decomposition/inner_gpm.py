"""Gradient projection for the sub-QP: PSMO paper, section 3.2, with Dai and Fletcher's projection and line search.

    minimise q(a) = ½ aᵀQa + pᵀa  over  Ω = {0 ≤ a ≤ upper, Σ_{v in group g} s_v a_v = b_g}

    d = P_Ω(a − θ grad) − a            θ: a Barzilai-Borwein step, 1/θ an estimate of Q's curvature along the last move
    a ← a + λ d                        λ = 1 if that keeps q below a reference value, else the exact minimiser on (0, 1)

The reference value is not the last objective but the worst of recent ones (adaptive, non-monotone), and θ alternates
between the two BB formulas by their ratio (a small ratio: the last move mixed very different curvatures).

Projection (48)-(52): P_Ω(z) = clip(z + λ s, 0, upper) with λ the root of the increasing, piecewise linear
r(λ) = Σ s_v clip(z_v + λ s_v, 0, upper_v) − b. The two constraints of the ν forms share no variable, so that they are
two such problems. (In (51) the paper squares Δ; the constraints are linear: Σ Δ_i = ½(c_1 ± c_2).)

Inputs, outputs, stopping rule: decomposition.inner. Cost: one Q·d, q², per iteration, and some ten passes over q for
the projection. Convergence is linear: quick to three digits, slow to nine.

Y. H. Dai, R. Fletcher: New algorithms for singly linearly constrained quadratic programs subject to lower and upper
bounds, Math. Program. 106 (2006).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maxmargin.decomposition.inner import FloatArray, GroupArray, InnerResult, SubQP, finish, reduce

REFERENCE_AGE = 5  # iterations without a new best objective before the reference value is lowered to the recent worst
REFRESH = 50  # iterations between gradients computed anew: the running sum drifts by rounding
MEMORY = 3  # the smallest of this many BB2 steps is taken when the ratio of the BB formulas is small
SHORTEST, LONGEST = 1e-10, 1e6  # of θ: in 1 / trace of Q, and in (largest bound) / (largest gradient entry)


def solve_inner(
    Q: FloatArray,
    grad: FloatArray,
    alpha: FloatArray,
    upper: FloatArray,
    sign: FloatArray,
    group: GroupArray,
    n_groups: int,
    tol: float,
    max_iter: int = 2_000,
) -> InnerResult:
    """Gradient projection from `alpha`; see the module and `decomposition.inner`."""
    problem = reduce(Q, grad, alpha, upper, sign, group, n_groups)
    if len(problem) == 0:
        return InnerResult(alpha.copy(), 0.0, 0, True)
    best, iterations = _iterate(problem, tol, max_iter)
    return finish(problem, alpha, best, iterations, tol, max_iter)


def _iterate(problem: SubQP, tol: float, max_iter: int) -> tuple[FloatArray, int]:
    """Iterate to tol; returns the last point (or the best one when tol is not reached)."""
    a, grad = problem.start, problem.grad
    steps = _StepSize(problem)
    reference = _Reference()
    value = 0.0  # objective minus the start's
    best, best_value = a, value
    # The groups' multipliers, estimated by the last projection, are taken out of the gradient: no change on Ω, where
    # Aᵀ·multiplier is constant, but what is left is small for free variables, and so are the rounding errors.
    multiplier = np.zeros(len(problem.b))
    for iteration in range(max_iter):
        if problem.violation(a, grad) <= tol:
            grad = problem.gradient(a)
            if problem.violation(a, grad) <= tol:
                return a, iteration
        reduced = grad - multiplier @ problem.A
        theta = steps.take(reduced)
        target, shift = project(problem, a - theta * reduced)
        multiplier = multiplier + shift / theta
        d = target - a
        Qd = problem.Q @ d
        slope, bend = float((grad - multiplier @ problem.A) @ d), float(d @ Qd)
        if not slope < 0:  # no descent left in this precision
            return best, iteration
        full = value + slope + 0.5 * bend
        if full <= reference.value:
            a, grad, value = target, grad + Qd, full
        else:
            fraction = -slope / bend if bend > -slope else 1.0  # beyond 1, or along no curvature, is outside of the box
            a, grad = a + fraction * d, grad + fraction * Qd
            value += fraction * slope + 0.5 * fraction**2 * bend
        if (iteration + 1) % REFRESH == 0:
            grad = problem.gradient(a)
            value = problem.change(a, grad)
        if value < best_value:
            best, best_value = a, value
        reference.note(value)
        steps.note(d, Qd, bend)
    return best, max_iter


class _Reference:
    """Dai and Fletcher's adaptive reference value: infinite until REFERENCE_AGE iterations bring no new best."""

    def __init__(self) -> None:
        self.value = np.inf
        self._best = 0.0
        self._worst = 0.0
        self._age = 0

    def note(self, value: float) -> None:
        if value < self._best:
            self._best = self._worst = value
            self._age = 0
            return
        self._worst = max(self._worst, value)
        self._age += 1
        if self._age == REFERENCE_AGE:
            self.value = self._worst
            self._worst = value
            self._age = 0


class _StepSize:
    """θ by adaptive alternation of BB1 = dᵀd / dᵀQd and BB2 = dᵀQd / ‖w‖² (BB2 ≤ BB1).

    w is the part of Qd in the face that d moved in: its rows with d = 0 left out, its component along the equalities'
    normals removed. The plain ‖Qd‖ measures curvature that the constraints forbid; with w some 25 % fewer iterations.
    """

    def __init__(self, problem: SubQP) -> None:
        self._reach = LONGEST * float(problem.upper.max())
        self._shortest = SHORTEST / max(float(np.trace(problem.Q)), np.finfo(float).tiny)
        self._A = problem.A
        self._ratio = 0.5
        self._recent: list[float] = []
        self._theta = self._first(problem)

    @staticmethod
    def _first(problem: SubQP) -> float:
        """The exact step along a gradient step that moves some variable across its box."""
        trial = float(problem.upper.max() / max(np.abs(problem.grad).max(), np.finfo(float).tiny))
        target, _ = project(problem, problem.start - trial * problem.grad)
        d = target - problem.start
        bend = float(d @ (problem.Q @ d))
        return float(d @ d) / bend if bend > 0 else trial

    def take(self, reduced: FloatArray) -> float:
        """θ, no longer than what takes every variable across its box: rounding grows with θ·gradient."""
        return min(self._theta, self._reach / max(float(np.abs(reduced).max()), np.finfo(float).tiny))

    def note(self, d: FloatArray, Qd: FloatArray, bend: float) -> None:
        if bend <= 0:  # flat: as far as the box allows
            self._theta = np.inf
            return
        moved = d != 0
        w = np.where(moved, Qd, 0.0)
        for row in self._A * moved:
            w -= row * (float(row @ w) / max(float(row @ row), 1.0))
        long, square = float(d @ d) / bend, float(w @ w)
        short = bend / square if square > 0 else long
        self._recent = [*self._recent[-(MEMORY - 1) :], short]
        if short < self._ratio * long:
            theta = min(self._recent)
            self._ratio *= 0.9
        else:
            theta = long
            self._ratio *= 1.1
        self._theta = max(theta, self._shortest)


def project(problem: SubQP, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """P_Ω(z), and each group's λ."""
    if len(problem.b) == 0:
        return np.clip(z, 0, problem.upper), problem.b
    out, roots = np.empty_like(z), np.empty_like(problem.b)
    for g, target in enumerate(problem.b):
        mine = slice(None) if len(problem.b) == 1 else problem.group == g
        out[mine], roots[g] = project_sum(z[mine], problem.sign[mine], problem.upper[mine], float(target))
    return out, roots


def project_sum(
    z: FloatArray, sign: FloatArray, upper: FloatArray, target: float
) -> tuple[FloatArray, float]:
    """The point of {0 ≤ x ≤ upper, Σ s x = target} nearest to z, and its λ: Dai-Fletcher's bracket, then secants.

    target must lie in the range of Σ s x over the box; at its ends (or past them by rounding) that is a corner.
    """
    signed = sign * z  # s clip(z + λs, 0, upper) = clip(sz + λ, bottom, top): one increasing ramp per variable
    bottom, top = np.where(sign > 0, 0.0, -upper), np.where(sign > 0, upper, 0.0)

    def residual(at: float) -> float:
        return float(np.minimum(np.maximum(signed + at, bottom), top).sum()) - target

    enough = 1e-14 * max(abs(target), float(upper.max()))
    lowest, highest = float((bottom - signed).min()), float((top - signed).max())  # all ramps flat outside
    root = _root(residual, min(max(0.0, lowest), highest), lowest, highest, enough)
    x = np.minimum(np.maximum(signed + root, bottom), top)
    for _ in range(len(z) + 3):  # r is linear around the root: what is left is spread over the variables that are inside
        left = float(x.sum()) - target
        if abs(left) <= enough:
            break
        before = x
        share = ((x > bottom) & (x < top)).astype(np.float64)
        if not share.any():  # λ is too coarse to see the corner's neighbour: the variable nearest to its ramp
            room = x > bottom if left > 0 else x < top
            if not room.any():
                break
            share[np.argmin(np.where(room, np.abs(signed + root - x), np.inf))] = 1
        x = np.minimum(np.maximum(x - left / share.sum() * share, bottom), top)
        if np.array_equal(x, before):  # less than rounding
            break
    return np.abs(x), root


def _root(residual: Callable[[float], float], at: float, lowest: float, highest: float, enough: float) -> float:
    """A λ with |r(λ)| ≤ enough. r increases; outside [lowest, highest] it is constant.

    Bracket: steps that grow as long as the sign stays. Then secants; when one end of the bracket moved little, the
    next point leans towards the other end (`lean` is 2 in the middle), so that both ends close in.
    """
    r = residual(at)
    if abs(r) <= enough:
        return at
    low, high, r_low, r_high = _bracket(residual, at, r, lowest, highest)
    if r_low >= -enough or r_high <= enough:
        return low if r_low >= -enough else high
    lean = 1 - r_low / r_high
    at = high - (high - low) / lean
    for _ in range(100):
        r = residual(at)
        if abs(r) <= enough or not low < at < high:
            break
        if r > 0:
            if lean <= 2:
                high, r_high = at, r
                lean = 1 - r_low / r_high
                at = high - (high - low) / lean
            else:
                step = (high - at) / max(r_high / r - 1, 0.1)
                high, r_high, at = at, r, max(at - step, 0.75 * low + 0.25 * at)
                lean = (high - low) / (high - at) if high > at else np.inf
        elif lean >= 2:
            low, r_low = at, r
            lean = 1 - r_low / r_high
            at = high - (high - low) / lean
        else:
            step = (at - low) / max(r_low / r - 1, 0.1)
            low, r_low, at = at, r, min(at + step, 0.75 * high + 0.25 * at)
            lean = (high - low) / (high - at) if high > at else np.inf
    return at


def _bracket(
    residual: Callable[[float], float], at: float, r: float, lowest: float, highest: float
) -> tuple[float, float, float, float]:
    """low, high, r(low) ≤ 0, r(high) ≥ 0, unless an end of [lowest, highest] is reached first."""
    step = max(1e-3 * (highest - lowest), np.finfo(float).tiny)
    direction = 1.0 if r < 0 else -1.0
    end = highest if r < 0 else lowest
    while True:
        before, r_before = at, r
        at = before + direction * step
        at = min(at, end) if direction > 0 else max(at, end)
        r = residual(at)
        if r * direction >= 0 or at == end:
            break
        step += step / max(r_before / r - 1, 0.1)
    return (before, at, r_before, r) if direction > 0 else (at, before, r, r_before)
