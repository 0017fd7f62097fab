"""The QP inside a decomposition step, its stopping rule, and the three solvers of it behind one shape.

    minimise ½ aᵀQa + pᵀa   s.t.  0 ≤ a_v ≤ upper_v,   Σ_{v in group g} s_v a_v as at the start   (no groups: box only)

    solve_inner(Q, grad, alpha, upper, sign, group, n_groups, tol) -> InnerResult

Q is q×q float64 with Q_vw = s_v s_w K(v, w); `grad` is the gradient at `alpha`, the feasible start, so that p need not
be known and the variables outside the working set are already in it. All three stop on the same number,

    score = −s∘grad,   violation = max over groups of max_{up} score − min_{low} score     (see problem.formulations)

(without groups: the largest projected gradient), measured at a point that is feasible. `ok` says that violation ≤ tol.
If not, `alpha` is still feasible and its objective not above the start's: the caller finishes with SMO and counts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.problem.formulations import restored
from maxmargin.runtime import one_blas_thread

FloatArray = NDArray[np.float64]
GroupArray = NDArray[np.int8]

NAMES = ("smo", "ipm", "gpm")


@dataclass(frozen=True)
class InnerResult:
    """A feasible point of the sub-QP. `limited`: out of iterations. `note`: what was unusual ("" when nothing was)."""

    alpha: FloatArray
    violation: float
    iterations: int
    ok: bool
    note: str = ""
    limited: bool = False


InnerSolver = Callable[
    [FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, GroupArray, int, float], InnerResult
]


def inner_solver(name: str) -> InnerSolver:
    """The solver of that name, imported when first asked for: SciPy's LAPACK loads for "ipm" alone."""
    if name == "smo":
        from maxmargin.decomposition.inner_smo import solve_inner as smo

        return smo
    if name == "ipm":
        from maxmargin.decomposition.inner_ipm import solve_inner as ipm

        return ipm
    if name == "gpm":
        from maxmargin.decomposition.inner_gpm import solve_inner as gpm

        return gpm
    raise ValueError(f"inner_solver={name!r} is unknown: choose one of {', '.join(map(repr, NAMES))}")


def kkt_violation(
    grad: FloatArray, alpha: FloatArray, upper: FloatArray, sign: FloatArray, group: GroupArray, n_groups: int
) -> float:
    """What every inner solver compares with tol. Bounds are compared exactly."""
    score = -sign * grad
    up, low = can_move(alpha, upper, sign)
    if n_groups == 0:
        return float(max(score[up].max(initial=0), (-score[low]).max(initial=0)))
    if n_groups == 1:
        return float(max(score[up].max(initial=-np.inf) - score[low].min(initial=np.inf), 0))
    pairs = (
        score[up & (group == g)].max(initial=-np.inf) - score[low & (group == g)].min(initial=np.inf)
        for g in range(n_groups)
    )
    return float(max(*pairs, 0))


def can_move(
    alpha: FloatArray, upper: FloatArray, sign: FloatArray
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which s_v a_v can grow (up) and which can shrink (low)."""
    plus, below, above = sign > 0, alpha < upper, alpha > 0
    return np.where(plus, below, above), np.where(plus, above, below)


@dataclass(frozen=True)
class SubQP:
    """The sub-QP without the variables that cannot move; the rows of A are the groups' signs, b = A·start.

    A variable cannot move when its bound is 0, or when its group's sum is at an end of its range (ν at its feasible
    maximum): then the group has one feasible point. Without these the feasible set has an interior.
    """

    Q: FloatArray
    grad: FloatArray  # at start
    start: FloatArray
    upper: FloatArray
    sign: FloatArray
    group: GroupArray
    A: FloatArray
    b: FloatArray
    kept: NDArray[np.intp]  # positions in the working set

    def __len__(self) -> int:
        return len(self.kept)

    def feasible(self, alpha: FloatArray) -> FloatArray:
        """A point near `alpha` within the bounds, with the sums of the start."""
        out = np.clip(alpha, 0.0, self.upper)
        for row, target in zip(self.A, self.b):
            mine = row != 0
            out[mine] = restored(out[mine], self.upper[mine], self.sign[mine], float(target))
        return out

    def gradient(self, alpha: FloatArray) -> FloatArray:
        """From the start's gradient: near the end of a run the difference is small and so is the rounding."""
        return self.grad + self.Q @ (alpha - self.start)

    def change(self, alpha: FloatArray, grad: FloatArray) -> float:
        """Objective at alpha, whose gradient is given, minus objective at the start."""
        return 0.5 * float((alpha - self.start) @ (self.grad + grad))

    def violation(self, alpha: FloatArray, grad: FloatArray) -> float:
        return kkt_violation(grad, alpha, self.upper, self.sign, self.group, len(self.b))


def reduce(
    Q: FloatArray,
    grad: FloatArray,
    alpha: FloatArray,
    upper: FloatArray,
    sign: FloatArray,
    group: GroupArray,
    n_groups: int,
) -> SubQP:
    """Leave out what cannot move and renumber the groups that remain."""
    moves = upper > 0
    up, low = can_move(alpha, upper, sign)
    remaining = []
    for g in range(n_groups):
        mine = moves & (group == g)
        if (mine & up).any() and (mine & low).any() and mine.sum() > 1:
            remaining.append(g)
        else:
            moves &= group != g
    kept = np.flatnonzero(moves)
    s, number = sign[kept], np.zeros(len(kept), np.int8)
    A = np.zeros((len(remaining), len(kept)))
    for row, g in enumerate(remaining):
        mine = group[kept] == g
        number[mine] = row
        A[row, mine] = s[mine]
    sub = Q if len(kept) == len(alpha) else Q[np.ix_(kept, kept)]
    return SubQP(sub, grad[kept], alpha[kept], upper[kept], s, number, A, A @ alpha[kept], kept)


def finish(
    problem: SubQP, alpha: FloatArray, best: FloatArray, iterations: int, tol: float, limit: int, note: str = ""
) -> InnerResult:
    """The result for the point `best` of the sub-QP, put back into the working set's `alpha`.

    A point that misses tol with a higher objective than the start's is not handed out: the start is.
    """
    best = problem.feasible(best)
    grad = problem.gradient(best)
    violation = problem.violation(best, grad)
    if not (violation <= tol or problem.change(best, grad) <= 0):  # NaN is neither
        best = problem.start
        violation = problem.violation(best, problem.grad)
    whole = alpha.copy()
    whole[problem.kept] = best
    ok = bool(violation <= tol)
    limited = not ok and iterations >= limit
    if not ok:
        note = note or ("out of iterations" if limited else "no further progress")
    return InnerResult(whole, violation, iterations, ok, note, limited)


def solve_tile(
    name: str,
    tile: NDArray[np.floating],
    beta: FloatArray,
    low: FloatArray,
    high: FloatArray,
    score: FloatArray,
    group: GroupArray,
    n_groups: int,
    tol: float,
    max_steps: int,
    all_free: _core.FreeStep | None = None,
) -> tuple[int, bool]:
    """The sub-QP in the outer loop's variables β = s∘a, with a padded kernel tile; `beta` and `score` change in place.

    `all_free` goes from one working set of a problem to the next: when SMO should move all free variables at once.
    Returns iterations, and whether the solver of that name failed and SMO finished in its place. The linear algebra of
    the other two uses one thread: systems of a working set are too small for more, and sums keep their order.
    """
    fell_back, iterations = False, 0
    if name != "smo":
        q = len(beta)
        sign = np.where(low < 0, -1.0, 1.0)
        upper = sign * np.where(low < 0, low, high)
        K = tile[:q, :q].astype(np.float64)
        Q = K * np.outer(sign, sign)
        with one_blas_thread():
            result = inner_solver(name)(Q, -sign * score, sign * beta, upper, sign, group, n_groups, tol)
            score -= K @ (sign * result.alpha - beta)
        beta[:] = sign * result.alpha
        if result.ok:
            return result.iterations, False
        fell_back, iterations = True, result.iterations
    steps, _ = _core.inner_smo(tile, beta, low, high, score, group, n_groups, tol, max_steps, all_free)
    return iterations + steps, fell_back
