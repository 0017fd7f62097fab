"""The stand-alone QP solver: answers against SciPy, and what it refuses."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from maxmargin.decomposition import qp, solve_qp
from maxmargin.problem.formulations import InfeasibleError
from maxmargin.runtime import Status

SOLVERS = ("smo", "ipm", "gpm")


def random_problem(seed: int, q: int = 12) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(q, q))
    return {
        "Q": root @ root.T / q + 0.1 * np.eye(q),
        "p": rng.normal(size=q),
        "upper": rng.uniform(0.5, 2, size=q),
        "sign": rng.choice([-1.0, 1.0], size=q),
        "group": np.arange(q) % 2,
    }


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("targets", [(), (0.3,), (0.4, -0.2)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_agrees_with_a_generic_solver(solver: str, targets: tuple[float, ...], seed: int) -> None:
    problem = random_problem(seed)
    if len(targets) < 2:
        problem["group"] = np.zeros(12)
    result = solve_qp(**problem, targets=targets, inner_solver=solver, tol=1e-8)
    Q, p, rows = problem["Q"], problem["p"], [problem["sign"] * (problem["group"] == g) for g in range(len(targets))]
    reference = scipy.optimize.minimize(
        lambda a: 0.5 * a @ Q @ a + p @ a,
        np.full(12, 0.3),
        jac=lambda a: Q @ a + p,
        bounds=[(0, u) for u in problem["upper"]],
        constraints=[{"type": "eq", "fun": lambda a, r=r, t=t: r @ a - t} for r, t in zip(rows, targets)],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert result.status is Status.CONVERGED
    assert result.objective == pytest.approx(reference.fun, abs=1e-7)
    assert 0 <= result.gap < 1e-6
    assert result.timings["fallbacks"] == 0
    np.testing.assert_allclose([r @ result.alpha for r in rows], targets, atol=1e-12)
    # b_g is the multiplier: grad + b s = 0 for free variables
    free = (result.alpha > 1e-6) & (result.alpha < problem["upper"] - 1e-6)
    b = sum((r * t for r, t in zip(rows, result.multipliers)), np.zeros(12))
    assert np.abs((Q @ result.alpha + p + b)[free]).max(initial=0) < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_variable(solver: str) -> None:
    one = solve_qp([[2.0]], [-1.0], 10.0, inner_solver=solver, tol=1e-9)
    assert one.alpha == pytest.approx([0.5], abs=1e-8)
    pinned = solve_qp([[2.0]], [-1.0], 10.0, targets=[3.0], inner_solver=solver)
    assert pinned.alpha == pytest.approx([3.0])
    assert pinned.status is Status.CONVERGED


def test_smo_finishes_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.decomposition import inner_ipm

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise inner_ipm.FactorisationError("broken on purpose")

    monkeypatch.setattr(inner_ipm, "_newton", broken)
    problem = random_problem(0) | {"group": None}
    result = solve_qp(**problem, targets=[0.2], inner_solver="ipm")
    assert result.status is Status.CONVERGED
    assert result.timings["fallbacks"] == 1
    assert "broken on purpose, finished by smo" in result.note
    assert result.objective == pytest.approx(solve_qp(**problem, targets=[0.2]).objective, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_iteration_limit_is_reported(solver: str) -> None:
    result = solve_qp(**random_problem(0, q=60), targets=[0.5, 0.5], inner_solver=solver, tol=1e-9, max_iter=2)
    assert result.status is Status.MAX_ITER
    assert result.violation > 1e-9
    assert result.gap > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Q": np.ones((0, 0)), "p": [], "upper": []}, "Q is empty"),
        ({"Q": np.ones((2, 3))}, r"Q\.shape == \(2, 3\)"),
        ({"Q": np.array([[1.0, 2.0], [0.0, 1.0]])}, "not symmetric"),
        ({"Q": np.array([[1.0, np.nan], [np.nan, 1.0]])}, "Q contains NaN"),
        ({"p": [1.0]}, r"p\.shape == \(1,\)"),
        ({"upper": [1.0, np.inf]}, "upper contains NaN or infinity"),
        ({"upper": [1.0, -1.0]}, "upper has negative entries"),
        ({"sign": [1.0, 0.0]}, r"sign must hold \+1 and -1"),
        ({"group": [0, 1]}, "group must count from 0 to 0"),
        ({"targets": [0.0, 0.0, 0.0]}, "at most two"),
        ({"inner_solver": "simplex"}, "inner_solver='simplex' is unknown: choose one of 'smo', 'ipm', 'gpm'"),
        ({"tol": 0.0}, "tol=0.0 must be a positive number"),
        ({"max_iter": 0}, "max_iter=0 must be a positive integer"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    good = {"Q": np.eye(2), "p": np.zeros(2), "upper": np.ones(2), "targets": [1.0]}
    assert solve_qp(**good).status is Status.CONVERGED
    with pytest.raises(ValueError, match=message):
        solve_qp(**(good | change))


def test_infeasible_targets_are_named() -> None:
    with pytest.raises(InfeasibleError, match=r"targets\[0\]=3 is infeasible: .* from 0 to 2"):
        solve_qp(np.eye(2), np.zeros(2), 1.0, targets=[3.0])
    with pytest.raises(InfeasibleError, match=r"targets\[1\]=1 is infeasible: .* from -1 to 0"):
        solve_qp(np.eye(2), np.zeros(2), 1.0, sign=[1, -1], group=[0, 1], targets=[0.5, 1.0])


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(qp).failed == 0
