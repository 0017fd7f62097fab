"""Steps of SMO on all free variables at once (native/decomposition/free_step.hpp), through the core's own loop.

Each law is checked on a solution that shares nothing with the core: conditions of optimality in numpy, and the optimum by
bounded least squares. Steps of pairs alone need hundreds of thousands of them here, so that counts tell which were taken.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as so
from sklearn.datasets import make_classification

from maxmargin import SVC, SVR, _core, certify_fit

STEPS = 1_000_000


def spectrum(q: int, condition: float, seed: int) -> np.ndarray:
    """A matrix whose eigenvalues go evenly from 1 down to 1/condition: what pairs of variables are slow on."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(q, q)))[0]
    return (basis * np.geomspace(1, 1 / condition, q)) @ basis.T


def solved(K: np.ndarray, c: np.ndarray, bound: float, groups: int, dtype: type, tol: float) -> tuple[np.ndarray, int]:
    q = len(K)
    width = -(-q // 16) * 16
    tile = np.zeros((width, width), dtype)
    tile[:q, :q] = K
    group = (np.arange(q) % max(1, groups)).astype(np.int8)
    beta, score = np.zeros(q), c.copy()
    steps, _ = _core.inner_smo(tile, beta, np.full(q, -bound), np.full(q, bound), score, group, groups, tol, STEPS)
    return beta, steps


def violation(K: np.ndarray, c: np.ndarray, beta: np.ndarray, bound: float, groups: int) -> float:
    score = c - K @ beta
    if groups == 0:
        return max(score[beta < bound].max(initial=0.0), -score[beta > -bound].min(initial=0.0))
    worst = 0.0
    for g in range(groups):
        mine = np.arange(len(c)) % groups == g
        up, low = score[mine & (beta < bound)], score[mine & (beta > -bound)]
        worst = max(worst, up.max() - low.min()) if len(up) and len(low) else worst
    return worst


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("bound", [1e6, 30.0, 3.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_ends_where_pairs_would_and_long_before(groups: int, bound: float, seed: int) -> None:
    q, tol = 96 + seed, 1e-8
    K, c = spectrum(q, 1e5, seed), np.random.default_rng(seed + 9).normal(size=q)
    beta, steps = solved(K, c, bound, groups, np.float64, tol)
    assert violation(K, c, beta, bound, groups) <= 2 * tol
    assert steps < 20_000
    assert (np.abs(beta) <= bound).all()
    for g in range(groups):
        assert abs(beta[np.arange(q) % groups == g].sum()) <= 1e-12 * np.abs(beta).sum()


@pytest.mark.parametrize("bound", [1e6, 30.0, 3.0])
def test_the_optimum_is_that_of_bounded_least_squares(bound: float) -> None:
    """Without an equality the problem is one of least squares in a root of K."""
    K, c = spectrum(80, 1e4, 3), np.random.default_rng(3).normal(size=80)
    root = np.linalg.cholesky(K).T
    best = so.lsq_linear(root, np.linalg.solve(root.T, c), bounds=(-bound, bound), tol=1e-14, method="bvls").x
    beta, _ = solved(K, c, bound, 0, np.float64, 1e-10)
    value = lambda b: 0.5 * b @ K @ b - c @ b  # noqa: E731
    assert value(beta) == pytest.approx(value(best), rel=1e-10)
    assert np.array_equal(np.abs(beta) == bound, np.abs(np.abs(best) - bound) <= 1e-9 * bound)


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("kind", ["rank three", "copies", "zero"])
def test_singular_matrices(groups: int, kind: str) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 3))
    if kind == "copies":
        X = np.repeat(X[:18], 5, axis=0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)) if kind == "copies" else X @ X.T * (kind != "zero")
    c = np.where(rng.random(90) < 0.5, 1.0, -1.0)
    beta, _ = solved(K, c, 100.0, groups, np.float64, 1e-6)
    assert violation(K, c, beta, 100.0, groups) <= 2e-6
    assert (np.abs(beta) <= 100.0).all()


def test_values_in_float_and_a_matrix_that_is_none() -> None:
    K, c = spectrum(120, 1e3, 0), np.random.default_rng(0).normal(size=120)
    beta, steps = solved(K, c, 1e6, 1, np.float32, 1e-3)
    assert violation(K, c, beta, 1e6, 1) <= 3e-3 and steps < 20_000
    crooked = K - 0.3 * np.eye(120)  # no factor: pairs go on by themselves, within the bounds
    beta, _ = solved(crooked, c, 2.0, 1, np.float64, 1e-6)
    assert (np.abs(beta) <= 2.0).all() and abs(beta.sum()) <= 1e-10
    assert 0.5 * beta @ crooked @ beta - c @ beta < 0


@pytest.mark.parametrize("C", [1e3, 1e5])
def test_a_linear_kernel_and_a_large_C_converge(C: float) -> None:
    """LIBSVM takes millions of steps for such a fit, and pairs alone stall here at 0.03."""
    X, y = make_classification(300, 20, n_informative=8, n_classes=3, random_state=0)
    model = SVC(kernel="linear", C=C, tol=1e-5).fit(X, y)
    assert model.status_ == "converged" and model.timings_["inner_steps"] < 100_000
    certificate = certify_fit(model, X, y)
    assert certificate.violation <= 1.01e-5 and certificate.primal == pytest.approx(model.objective_, rel=1e-9)
    target = X[:, 0] - 2 * X[:, 1] + 0.1 * y
    regression = SVR(kernel="linear", C=C, epsilon=1e-3, tol=1e-5).fit(X, target)
    assert regression.status_ == "converged"
    assert certify_fit(regression, X, target).violation <= 1.01e-5
