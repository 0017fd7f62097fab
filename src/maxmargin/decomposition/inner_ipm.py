"""A primal-dual interior point method for the sub-QP: PSMO paper, section 3.1 (LOQO), equations (28)-(47).

    minimise ½ aᵀQa + pᵀa   s.t.  A a = b (Lagrange multiplier y),  a − g = 0 (z ≥ 0),  a + t = upper (s ≥ 0),  g, t > 0
    optimal:  Qa + p − Aᵀy + s = z,   g∘z = 0,   t∘s = 0

Each iteration takes one Newton step on these equations with μ in place of the last two zeros: g, t, z, s are eliminated
(37), and the reduced system (38) is solved by Cholesky factors of Q + z/g + s/t and of the groups' 1×1 or 2×2 Schur
complement (39)-(44), twice with the same factors: predictor (μ = 0), then corrector (μ by (45), second-order terms).

Where we differ from the paper, and why
  - It uses upper/100 as the smallest start of g, t and also of z and s (47). The last two are gradients, not alphas: we
    take a tenth of the largest gradient, so that neither scaling Q nor scaling the bounds changes the iterates, and
    upper/10 for the others. Likewise the "1" in (46) is the mean of Q's diagonal.
  - (45) gives μ = 0 after a full predictor step and never more than 1/100 of the average product. After a short step
    that is too little to come off the boundary (the paper's trouble with ν): we then keep Mehrotra's (1 − ξ)³.
  - The iterates are inside the box. What is judged and returned has the variables whose multiplier dominates on their
    bound, and the equalities restored on the others.
  - A working set whose Cholesky factorisation fails gets a multiple of the identity added, in the Newton matrix only:
    the steps become shorter, the solution stays the same, and `note` says so.

Inputs, outputs, stopping rule: decomposition.inner. Cost: q³/3 per iteration; 10 to 30 iterations for any accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from maxmargin.decomposition.inner import FloatArray, GroupArray, InnerResult, SubQP, finish, reduce

TO_BOUNDARY = 0.995  # of the way to the nearest bound
FLOOR = 0.1  # smallest start of a distance (in upper) and of a multiplier (in the largest gradient)
NEAR = 1e-2  # on the bound: what the distance is worth as a gradient is less than this part of the multiplier
PATIENCE = 10  # iterations in which neither the violation nor the products g∘z, t∘s shrink, before giving up


class FactorisationError(ArithmeticError):
    """The reduced system cannot be factorised, even with a large multiple of the identity added."""


def solve_inner(
    Q: FloatArray,
    grad: FloatArray,
    alpha: FloatArray,
    upper: FloatArray,
    sign: FloatArray,
    group: GroupArray,
    n_groups: int,
    tol: float,
    max_iter: int = 100,
) -> InnerResult:
    """Interior point; `alpha` fixes the equalities' right-hand side, the iterates start elsewhere."""
    problem = reduce(Q, grad, alpha, upper, sign, group, n_groups)
    if len(problem) == 0 or problem.violation(problem.start, problem.grad) <= tol:
        return finish(problem, alpha, problem.start, 0, tol, max_iter)
    system = ReducedSystem(problem)
    best, best_violation, best_products = problem.start, np.inf, np.inf
    iteration, last_gain, note = 0, 0, ""
    try:
        point = _start(problem, system)
        for iteration in range(1, max_iter + 1):
            point = _newton(problem, system, point)
            if not np.isfinite(point.a).all():
                raise FactorisationError("the iterates are no longer finite")
            candidate = _on_bounds(problem, point)
            violation = problem.violation(candidate, problem.gradient(candidate))
            if violation < best_violation:
                best, best_violation, last_gain = candidate, violation, iteration
            if point.products() < 0.9 * best_products:
                best_products, last_gain = point.products(), iteration
            if best_violation <= tol or iteration - last_gain >= PATIENCE:
                break
    except FactorisationError as error:
        note = str(error)
    if system.ridge > 0:
        note = "; ".join(filter(None, [note, f"Cholesky failed: {system.ridge:.1e} added to the diagonal"]))
    return finish(problem, alpha, best, iteration, tol, max_iter, note)


@dataclass(frozen=True)
class Point:
    """Iterate: alpha, its distances g and t from the bounds, their multipliers z and s, the equalities' y."""

    a: FloatArray
    y: FloatArray
    g: FloatArray
    t: FloatArray
    z: FloatArray
    s: FloatArray

    def products(self) -> float:
        return float(self.g @ self.z + self.s @ self.t)


class ReducedSystem:
    """(38) for the present diagonal: −(Q + D) Δa + Aᵀ Δy = c1,  A Δa + Q2 Δy = c2, by (39)-(44)."""

    def __init__(self, problem: SubQP) -> None:
        self._Q, self._A = problem.Q, problem.A
        self._work = np.empty_like(problem.Q)
        # what "1" means for Q; a Q of zeros leaves gradients per alpha as the only unit
        linear = float(np.abs(problem.grad).max() / problem.upper.mean())
        self.scale = float(np.abs(problem.Q.diagonal()).mean()) or linear or 1.0
        self.ridge = 0.0  # largest multiple of the identity that had to be added

    def factorise(self, diagonal: FloatArray | float, Q2: float = 0.0) -> None:
        ridge = 0.0
        while True:
            self._work[:] = self._Q
            self._work.flat[:: len(self._Q) + 1] += diagonal + ridge
            # the matrix is symmetric: its transpose is the same, and in LAPACK's order without a copy
            self._L1, failed = lapack.dpotrf(self._work.T, lower=1, clean=0, overwrite_a=1)
            if not failed:
                break
            ridge = max(10 * ridge, 1e-12 * self.scale)
            if ridge > 1e6 * self.scale:
                raise FactorisationError("the reduced KKT system could not be factorised")
        self.ridge = max(self.ridge, ridge)
        self._Y1 = solve_triangular(self._L1, self._A.T, lower=True, check_finite=False)
        schur = self._Y1.T @ self._Y1 + Q2 * np.eye(len(self._A))
        self._schur = np.linalg.pinv(schur, hermitian=True)  # 1×1 or 2×2; two groups' rows share no variable

    def solve(self, c1: FloatArray, c2: FloatArray) -> tuple[FloatArray, FloatArray]:
        Y2 = solve_triangular(self._L1, c1, lower=True, check_finite=False)
        y = self._schur @ (c2 + self._Y1.T @ Y2)
        a = solve_triangular(self._L1, self._Y1 @ y - Y2, lower=True, trans="T", check_finite=False)
        return a, y


def _start(problem: SubQP, system: ReducedSystem) -> Point:
    """(46) and (47)."""
    p = problem.grad - problem.Q @ problem.start
    system.factorise(system.scale, Q2=1.0 / system.scale)
    a, y = system.solve(p, problem.b)
    upper = problem.upper
    a = np.clip(a, FLOOR * upper, upper - FLOOR * upper)
    residual = problem.gradient(a) - y @ problem.A
    floor = max(float(np.abs(residual).max()), float(np.finfo(float).tiny)) * FLOOR
    return Point(a, y, a.copy(), upper - a, np.maximum(residual, 0) + floor, np.maximum(-residual, 0) + floor)


def _newton(problem: SubQP, system: ReducedSystem, point: Point) -> Point:
    """Predictor and corrector with one factorisation, and the step to the boundary."""
    a, y, g, t, z, s = point.a, point.y, point.g, point.t, point.z, point.s
    rho = problem.b - problem.A @ a
    nu = g - a
    tau = problem.upper - a - t
    sigma = problem.gradient(a) - y @ problem.A + s - z
    system.factorise(z / g + s / t)

    def direction(gamma_z: FloatArray, gamma_s: FloatArray) -> Point:
        nu_hat = nu + g * gamma_z / z
        tau_hat = tau - t * gamma_s / s
        da, dy = system.solve(sigma - z / g * nu_hat - s / t * tau_hat, rho)
        dz = z / g * (nu_hat - da)
        ds = s / t * (da - tau_hat)
        return Point(da, dy, g / z * (gamma_z - dz), t / s * (gamma_s - ds), dz, ds)

    predictor = direction(-z, -s)
    xi = min(1.0, _to_boundary(point, predictor))
    average = point.products() / (2 * len(a))
    mu = average * max(((xi - 1) / (xi + 10)) ** 2, (1 - xi) ** 3)
    d = direction(mu / g - z - predictor.g * predictor.z / g, mu / t - s - predictor.t * predictor.s / t)
    xi = min(1.0, TO_BOUNDARY * _to_boundary(point, d))
    return Point(a + xi * d.a, y + xi * d.y, g + xi * d.g, t + xi * d.t, z + xi * d.z, s + xi * d.s)


def _to_boundary(point: Point, d: Point) -> float:
    """How often the step fits before one of g, t, z, s becomes 0."""
    steepest = max(
        float((-change / value).max())
        for value, change in ((point.g, d.g), (point.t, d.t), (point.z, d.z), (point.s, d.s))
    )
    return 1.0 / steepest if steepest > 0 else np.inf


def _on_bounds(problem: SubQP, point: Point) -> FloatArray:
    """A feasible point: on the bounds where the multipliers say so, equalities restored on the others."""
    per_distance = np.maximum(problem.Q.diagonal().max(), max(point.z.max(), point.s.max()) / problem.upper)
    low = per_distance * point.g < NEAR * point.z
    high = per_distance * point.t < NEAR * point.s
    a = np.clip(point.a, 0, problem.upper)
    a[low] = 0
    a[high] = problem.upper[high]
    return problem.feasible(a)
