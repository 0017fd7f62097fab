"""SMO, interior point and gradient projection against the certificates and against each other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.decomposition.inner import NAMES, InnerResult, inner_solver, kkt_violation, solve_tile
from maxmargin.decomposition.inner_gpm import project_sum
from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel

FORMULATIONS = (
    "c_svc", "c_svc_no_intercept", "nu_svc", "epsilon_svr", "epsilon_svr_no_intercept", "nu_svr", "one_class"
)
GRAMS = ("rbf", "linear", "duplicates", "rank one", "identity", "zero")
TOL = 1e-7


def build(name: str, n: int, C: float, nu: float, seed: int, zero_weights: bool = False) -> QP:
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1, -1
    t = rng.normal(size=n)
    weight = rng.uniform(0.5, 2, size=n)
    if zero_weights:
        weight[2:][rng.random(n - 2) < 0.3] = 0
    largest = 2 * min(weight[y > 0].sum(), weight[y < 0].sum()) / weight.sum()
    return {
        "c_svc": lambda: formulations.c_svc(y, C * weight),
        "c_svc_no_intercept": lambda: formulations.c_svc(y, C * weight, fit_intercept=False),
        "nu_svc": lambda: formulations.nu_svc(y, nu * largest, weight),
        "epsilon_svr": lambda: formulations.epsilon_svr(t, 0.1, C * weight),
        "epsilon_svr_no_intercept": lambda: formulations.epsilon_svr(t, 0.1, C * weight, fit_intercept=False),
        "nu_svr": lambda: formulations.nu_svr(t, nu, C, weight),
        "one_class": lambda: formulations.one_class(nu, weight),
    }[name]()


def gram_matrix(kind: str, n: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed + 1).normal(size=(n, 3))
    if kind == "duplicates":
        X = X[np.arange(n) // 3]
    if kind in ("rbf", "duplicates"):
        return Kernel("rbf", gamma=0.5)(X, X)
    if kind == "linear":
        return X @ X.T
    if kind == "rank one":
        return np.outer(X[:, 0], X[:, 0])
    return np.eye(n) * (kind == "identity")


def solve(name: str, qp: QP, gram: np.ndarray, alpha: np.ndarray | None = None, tol: float = TOL) -> InnerResult:
    sample = np.arange(qp.n_variables) % qp.n
    Q = np.outer(qp.sign, qp.sign) * gram[np.ix_(sample, sample)]
    alpha = qp.start() if alpha is None else alpha
    limit: dict[str, Any] = {"max_iter": 20_000} if name == "gpm" else {}
    return inner_solver(name)(
        Q, Q @ alpha + qp.linear, alpha, qp.upper, qp.sign, qp.group, len(qp.targets), tol, **limit
    )


def check(qp: QP, gram: np.ndarray, result: InnerResult, tol: float = TOL) -> float:
    """Feasible and optimal by the independent judge; returns the dual value."""
    answer = certify(qp, gram, result.alpha)
    scale = max(1.0, qp.upper.max())
    assert answer.bounds == 0
    assert answer.equality <= 1e-12 * scale * qp.n_variables
    assert result.ok and result.violation <= tol
    assert answer.violation <= tol * 1.001 + 1e-12
    assert answer.gap <= 2 * tol * qp.upper.sum() + 1e-12
    return answer.dual


@given(
    name=st.sampled_from(FORMULATIONS),
    kind=st.sampled_from(GRAMS),
    n=st.integers(2, 40),
    C=st.sampled_from([0.01, 1.0, 20.0]),
    nu=st.sampled_from([0.05, 0.5, 0.9]),
    seed=st.integers(0, 1000),
    zero_weights=st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_all_three_reach_the_same_certified_optimum(
    name: str, kind: str, n: int, C: float, nu: float, seed: int, zero_weights: bool
) -> None:
    qp = build(name, n, C, nu, seed, zero_weights)
    gram = gram_matrix(kind, n, seed)
    best = check(qp, gram, solve("ipm", qp, gram))
    for solver in ("smo", "gpm"):
        result = solve(solver, qp, gram)
        if kind in ("linear", "rank one") and not result.ok:
            # singular Q: first-order methods may crawl. They must say so, and be where they say they are.
            answer = certify(qp, gram, result.alpha)
            assert result.note and answer.dual <= best + 1e-9 * abs(best)
            assert answer.violation == pytest.approx(result.violation, rel=1e-3)
            continue
        assert check(qp, gram, result) == pytest.approx(best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("solver", NAMES)
@pytest.mark.parametrize("name", ["nu_svc", "nu_svr", "one_class"])
def test_nu_at_its_feasible_maximum(name: str, solver: str) -> None:
    qp = build(name, 20, 2.0, 1.0, seed=0)
    gram = gram_matrix("rbf", 20, seed=0)
    check(qp, gram, solve(solver, qp, gram))


@pytest.mark.parametrize("solver", NAMES)
@pytest.mark.parametrize("name", FORMULATIONS)
def test_no_variable_can_move(name: str, solver: str) -> None:
    qp = build(name, 8, 1.0, 0.5, seed=0)
    stuck = QP(qp.n, qp.sign, qp.center, np.zeros_like(qp.upper), qp.group, np.zeros_like(qp.targets))
    result = solve(solver, stuck, gram_matrix("rbf", 8, seed=0))
    assert result.ok and result.iterations == 0
    assert (result.alpha == 0).all()


@pytest.mark.parametrize("solver", NAMES)
def test_every_variable_ends_at_a_bound(solver: str) -> None:
    y = np.array([1.0] * 6 + [-1.0] * 6)
    gram = gram_matrix("rbf", 12, seed=3)
    qp = formulations.c_svc(y, np.full(12, 1e-3))  # so small that no margin is reached
    result = solve(solver, qp, gram)
    check(qp, gram, result)
    assert (result.alpha == qp.upper).all()


@pytest.mark.parametrize("solver", NAMES)
@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_solution_is_a_start_that_needs_no_iteration(name: str, solver: str) -> None:
    qp = build(name, 30, 5.0, 0.4, seed=1)
    gram = gram_matrix("rbf", 30, seed=1)
    first = solve(solver, qp, gram)
    again = solve(solver, qp, gram, alpha=first.alpha, tol=1.01 * TOL)
    assert again.ok and again.iterations == 0
    np.testing.assert_allclose(again.alpha, first.alpha, atol=1e-12)


@given(seed=st.integers(0, 999), n=st.integers(2, 12), where=st.sampled_from([0.01, 0.4, 0.99]), some=st.integers(0, 11))
@settings(max_examples=60, deadline=None)
def test_a_linear_objective_fills_the_best_variables_and_a_part_of_one(seed: int, n: int, where: float, some: int) -> None:
    """However small that part is, or what is missing from the whole, it stays with the variable that it belongs to."""
    rng = np.random.default_rng(seed)
    grad, upper, ones = rng.permutation(n) + rng.normal(), rng.uniform(0.5, 2, size=n), np.ones(n)
    order = np.argsort(grad)
    best = np.zeros(n)
    best[order[: some % n]] = upper[order[: some % n]]
    best[order[some % n]] = where * upper[order[some % n]]
    begin = best.sum() / upper.sum() * upper
    for solver in NAMES:
        result = inner_solver(solver)(np.zeros((n, n)), grad, begin, upper, ones, np.zeros(n, np.int8), 1, TOL)
        assert result.ok
        np.testing.assert_allclose(result.alpha, best, atol=1e-9)


@given(seed=st.integers(0, 1000), scale=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=20, deadline=None)
def test_interior_point_does_not_feel_the_units(seed: int, scale: float) -> None:
    """Gram·scale with bounds / scale is the same problem with alpha in other units."""
    qp = build("epsilon_svr", 15, 2.0, 0.4, seed)
    gram = gram_matrix("rbf", 15, seed)
    other = QP(qp.n, qp.sign, qp.center, qp.upper / scale, qp.group, qp.targets / scale)
    one, two = solve("ipm", qp, gram), solve("ipm", other, gram * scale)
    assert one.ok and two.ok
    assert abs(one.iterations - two.iterations) <= 1
    np.testing.assert_allclose(two.alpha * scale, one.alpha, atol=1e-5)


@pytest.mark.parametrize("solver", ["ipm", "gpm"])
def test_a_failure_is_said_and_leaves_nothing_worse(solver: str) -> None:
    rng = np.random.default_rng(0)
    n = 40
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    Q = np.outer(y, y) * gram_matrix("rbf", n, seed=0)
    qp = formulations.c_svc(y, np.full(n, 10.0))
    zeros = np.zeros(n)
    result = inner_solver(solver)(Q, qp.linear, zeros, qp.upper, y, qp.group, 1, 1e-9, max_iter=2)
    assert not result.ok
    assert result.note
    value = 0.5 * result.alpha @ Q @ result.alpha + qp.linear @ result.alpha
    assert value <= 0
    assert abs(y @ result.alpha) < 1e-12
    grad = Q @ result.alpha + qp.linear
    assert result.violation == pytest.approx(kkt_violation(grad, result.alpha, qp.upper, y, qp.group, 1))


def test_an_indefinite_matrix_is_regularised_and_reported() -> None:
    Q = np.diag([1.0, -2.0, 3.0])
    ones = np.ones(3)
    result = inner_solver("ipm")(Q, -ones, np.zeros(3), ones, ones, np.zeros(3, np.int8), 0, 1e-6)
    assert "added to the diagonal" in result.note
    assert ((result.alpha >= 0) & (result.alpha <= 1)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", NAMES)
@pytest.mark.parametrize("name", FORMULATIONS)
def test_the_outer_loop_s_shape_is_the_same_problem(name: str, solver: str, dtype: type) -> None:
    qp = build(name, 20, 5.0, 0.4, seed=2)
    gram = gram_matrix("rbf", 20, seed=2).astype(dtype)
    sample = np.arange(qp.n_variables) % qp.n
    q, width = qp.n_variables, -(-qp.n_variables // 16) * 16
    tile = np.zeros((width, width), dtype)
    tile[:q, :q] = gram[np.ix_(sample, sample)]
    beta = qp.sign * qp.start()
    signed = qp.sign * qp.upper
    score = qp.center - tile[:q, :q].astype(np.float64) @ beta
    _, fell_back = solve_tile(
        solver, tile, beta, np.minimum(signed, 0), np.maximum(signed, 0), score, qp.group, len(qp.targets), 1e-4, 10**6
    )
    assert not fell_back
    np.testing.assert_allclose(score, qp.center - tile[:q, :q].astype(np.float64) @ beta, atol=1e-4)
    answer = certify(qp, gram.astype(np.float64), qp.sign * beta)
    assert answer.violation <= (3e-4 if dtype is np.float32 else 1.01e-4)
    assert answer.infeasibility <= 1e-6


def test_smo_finishes_what_gradient_projection_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.decomposition import inner_gpm

    whole = inner_gpm.solve_inner
    monkeypatch.setattr(inner_gpm, "solve_inner", lambda *args: whole(*args, max_iter=3))
    qp = build("c_svc", 16, 5.0, 0.4, seed=2)
    gram = gram_matrix("rbf", 16, seed=2)
    beta = np.zeros(16)
    signed, score = qp.sign * qp.upper, qp.center.copy()
    _, fell_back = solve_tile(
        "gpm", gram, beta, np.minimum(signed, 0), np.maximum(signed, 0), score, qp.group, 1, 1e-6, 10**6
    )
    assert fell_back
    assert certify(qp, gram, qp.sign * beta).violation <= 1.01e-6


@given(seed=st.integers(0, 10_000), n=st.integers(1, 30), where=st.floats(0, 1), size=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=200, deadline=None)
def test_the_projection_is_the_nearest_feasible_point(seed: int, n: int, where: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1.0, 1.0], size=n)
    upper = rng.uniform(0.1, 2, size=n)
    z = size * rng.normal(size=n)
    least, most = -upper[sign < 0].sum(), upper[sign > 0].sum()
    target = least + where * (most - least)
    x, root = project_sum(z, sign, upper, target)
    assert ((x >= 0) & (x <= upper)).all()
    assert abs(sign @ x - target) <= 1e-12 * n
    # x = clip(z + λs) is the projection's optimality condition
    assert np.abs(x - np.clip(z + root * sign, 0, upper)).max() <= 1e-9 * max(1, size)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("size", [1.0, 1e16, 1e20])
def test_the_projection_keeps_its_sum_where_one_multiplier_is_that_of_several(size: float, n: int) -> None:
    """From so far away that no multiplier is fine enough: the variables give that can, of either sign."""
    upper = np.array([0.7, 1.9, 1.1])[:n]
    for sign, z in product(*(map(np.array, product(values, repeat=n)) for values in ([-1.0, 1.0], [-size, 0.0, size]))):
        least, most = -upper[sign < 0].sum(), upper[sign > 0].sum()
        for target in np.linspace(least, most, 6):
            x, _ = project_sum(z, sign, upper, float(target))
            assert ((x >= 0) & (x <= upper)).all()
            assert abs(sign @ x - target) <= 1e-12


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e8, 1e16, 1e20]))
def test_the_projection_of_many_variables_keeps_its_sum(n: int, seed: int, size: float) -> None:
    """Also where a corner is reached only by many of them, one after the other."""
    rng = np.random.default_rng(seed)
    sign, upper = rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 2.0, n)
    z = size * rng.choice([-1.0, 0.0, 1.0], n)
    target = rng.uniform(-upper[sign < 0].sum(), upper[sign > 0].sum())
    x, _ = project_sum(z, sign, upper, float(target))
    assert ((x >= 0) & (x <= upper)).all()
    assert abs(sign @ x - target) <= 1e-12 * n
