"""A small dense QP, solved by any of the inner solvers on its own.

    minimise ½ aᵀQa + pᵀa   s.t.  0 ≤ a ≤ upper,   Σ_{v in group g} sign_v a_v = targets_g   (up to two groups, or none)

Q is positive semidefinite; with an indefinite one the answer is a point that satisfies the KKT conditions, no more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from maxmargin.decomposition.inner import NAMES, FloatArray, GroupArray, InnerResult, inner_solver
from maxmargin.problem.certificates import certify
from maxmargin.problem.formulations import QP, InfeasibleError
from maxmargin.runtime import Result, Status


@dataclass
class QPResult(Result):
    """Solution of the QP; `objective` is ½ aᵀQa + pᵀa, `timings["fallbacks"]` is 1 when SMO had to finish."""

    alpha: FloatArray = field(default_factory=lambda: np.empty(0))
    multipliers: FloatArray = field(default_factory=lambda: np.empty(0))
    note: str = ""


def solve_qp(
    Q: ArrayLike,
    p: ArrayLike,
    upper: ArrayLike,
    sign: ArrayLike | None = None,
    group: ArrayLike | None = None,
    targets: ArrayLike = (),
    *,
    inner_solver: str = "smo",
    tol: float = 1e-6,
    max_iter: int = -1,
) -> QPResult:
    """Solve a small dense QP with box bounds and at most two equality constraints that share no variable.

    Parameters
    ----------
    Q : array of shape (q, q)
        Symmetric, positive semidefinite.
    p : array of shape (q,)
    upper : array of shape (q,), or a number
        Upper bounds; the lower ones are 0.
    sign : array of shape (q,), optional
        +1 or −1: how a variable enters its group's sum. Ones by default.
    group : array of shape (q,), optional
        Which equality a variable belongs to, counted from 0. Zeros by default.
    targets : sequence of 0, 1 or 2 numbers
        Right-hand sides of the equalities.
    inner_solver : {"smo", "ipm", "gpm"}
        Sequential minimal optimisation, interior point, gradient projection. If one of the last two fails numerically,
        or runs into its default limit, SMO goes on from where it stopped, and `timings["fallbacks"]` says so.
    tol : float
        Largest KKT violation (in units of the gradient) that counts as solved.
    max_iter : int
        Limit on the solver's own iterations; -1 is its default limit.

    Returns
    -------
    QPResult
        alpha, multipliers, status, objective, gap, violation, n_iter, timings.

    Raises
    ------
    InfeasibleError
        No point of the box meets the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.decomposition import solve_qp
    >>> result = solve_qp(np.eye(3), [-1.0, -2.0, 0.0], upper=1.0, targets=[1.5], inner_solver="ipm", tol=1e-9)
    >>> result.alpha.round(6)
    array([0.5, 1. , 0. ])
    """
    start = time.perf_counter()
    if inner_solver not in NAMES:
        raise ValueError(f"inner_solver={inner_solver!r} is unknown: choose one of {', '.join(map(repr, NAMES))}")
    if not tol > 0:
        raise ValueError(f"tol={tol!r} must be a positive number")
    if max_iter != -1 and max_iter < 1:
        raise ValueError(f"max_iter={max_iter!r} must be a positive integer, or -1 for the solver's default")
    Q, qp = _checked(Q, p, upper, sign, group, targets)
    alpha = qp.start()
    result = _solve(inner_solver, Q, qp, alpha, tol, max_iter)
    iterations = result.iterations
    fell_back = not result.ok and inner_solver != "smo" and not (result.limited and max_iter != -1)
    note = result.note
    if fell_back:
        result = _solve("smo", Q, qp, result.alpha, tol, -1)
        iterations += result.iterations
        note = "; ".join(filter(None, [f"{inner_solver}: {note}, finished by smo", result.note]))
    status = Status.CONVERGED if result.ok else Status.MAX_ITER if result.limited else Status.STALLED
    answer = certify(qp, Q * np.outer(qp.sign, qp.sign), result.alpha)
    seconds = time.perf_counter() - start
    return QPResult(
        status=status,
        n_iter=iterations,
        objective=-answer.dual,
        gap=answer.gap,
        violation=result.violation,
        timings={"total": seconds, "fallbacks": float(fell_back)},
        alpha=result.alpha,
        multipliers=answer.multipliers,
        note=note,
    )


def _solve(name: str, Q: FloatArray, qp: QP, alpha: FloatArray, tol: float, max_iter: int) -> InnerResult:
    limit = {} if max_iter == -1 else {"max_iter": max_iter}
    grad = Q @ alpha + qp.linear
    return inner_solver(name)(Q, grad, alpha, qp.upper, qp.sign, qp.group, len(qp.targets), tol, **limit)


def _checked(
    Q: ArrayLike,
    p: ArrayLike,
    upper: ArrayLike,
    sign: ArrayLike | None,
    group: ArrayLike | None,
    targets: ArrayLike,
) -> tuple[FloatArray, QP]:
    """The problem as float64 arrays, or an error that names what is wrong with it."""
    Q = np.ascontiguousarray(Q, dtype=np.float64)
    if Q.ndim != 2 or Q.shape[0] != Q.shape[1]:
        raise ValueError(f"Q.shape == {Q.shape}, expected a square matrix")
    q = len(Q)
    if q == 0:
        raise ValueError("Q is empty: a problem needs at least one variable")
    vectors = {
        "p": np.asarray(p, dtype=np.float64),
        "upper": np.asarray(upper, dtype=np.float64),
        "sign": np.ones(q) if sign is None else np.asarray(sign, dtype=np.float64),
        "group": np.zeros(q) if group is None else np.asarray(group, dtype=np.float64),
    }
    if vectors["upper"].ndim == 0:
        vectors["upper"] = np.full(q, float(vectors["upper"]))
    for name, values in vectors.items():
        if values.shape != (q,):
            raise ValueError(f"{name}.shape == {values.shape}, expected ({q},): one value per row of Q")
    goals = np.array(targets, dtype=np.float64).reshape(-1)
    for name, values in {"Q": Q, **vectors, "targets": goals}.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} contains NaN or infinity: give finite values (a large upper bound for none)")
    skew = float(np.abs(Q - Q.T).max(initial=0))
    if skew > 1e-8 * float(np.abs(Q).max(initial=0)):
        raise ValueError(f"Q is not symmetric (largest difference {skew:g}): pass (Q + Q.T) / 2")
    if (vectors["upper"] < 0).any():
        raise ValueError(f"upper has negative entries (smallest {vectors['upper'].min():g}): the lower bounds are 0")
    if not np.isin(vectors["sign"], (-1.0, 1.0)).all():
        raise ValueError("sign must hold +1 and -1 only")
    if len(goals) > 2:
        raise ValueError(f"{len(goals)} targets given: at most two equality groups are possible")
    numbers = max(len(goals), 1)
    if not np.isin(vectors["group"], np.arange(numbers)).all():
        raise ValueError(f"group must count from 0 to {numbers - 1}, one number per target")
    groups: GroupArray = vectors["group"].astype(np.int8)
    qp = QP(q, vectors["sign"], -vectors["sign"] * vectors["p"], vectors["upper"], groups, goals)
    for g, target in enumerate(goals):
        _check_feasible(qp, g, float(target))
    return Q, qp


def _check_feasible(qp: QP, g: int, target: float) -> None:
    mine = qp.group == g
    most, least = qp.upper[mine & (qp.sign > 0)].sum(), 0.0 - qp.upper[mine & (qp.sign < 0)].sum()
    rounding = 1e-12 * max(most, -least)
    if not least - rounding <= target <= most + rounding:
        raise InfeasibleError(
            f"targets[{g}]={target:g} is infeasible: the bounds allow sums from {least:g} to {most:g} in this group"
        )
