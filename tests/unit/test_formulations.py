"""Formulations against a generic QP solver, scikit-learn's LIBSVM, repeated rows, and their own feasibility."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import sklearn.svm

from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify
from maxmargin.problem.fitted import certify_fit
from maxmargin.problem.formulations import QP, InfeasibleError
from maxmargin.problem.kernels import Kernel

WITH_INTERCEPT = ("c_svc", "nu_svc", "epsilon_svr", "nu_svr", "one_class")
FORMULATIONS = (*WITH_INTERCEPT, "c_svc_no_intercept", "epsilon_svr_no_intercept")


def data(seed: int, n: int = 14) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Samples, ±1 labels, targets, weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return X, y, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n), rng.integers(1, 4, size=n).astype(float)


def build(name: str, y: np.ndarray, t: np.ndarray, weight: np.ndarray) -> QP:
    return {
        "c_svc": lambda: formulations.c_svc(y, 2.0 * weight),
        "c_svc_no_intercept": lambda: formulations.c_svc(y, 2.0 * weight, fit_intercept=False),
        "nu_svc": lambda: formulations.nu_svc(y, 0.3, weight),
        "epsilon_svr": lambda: formulations.epsilon_svr(t, 0.1, 2.0 * weight),
        "epsilon_svr_no_intercept": lambda: formulations.epsilon_svr(t, 0.1, 2.0 * weight, fit_intercept=False),
        "nu_svr": lambda: formulations.nu_svr(t, 0.4, 2.0, weight),
        "one_class": lambda: formulations.one_class(0.4, weight),
    }[name]()


def generic_solution(qp: QP, gram: np.ndarray) -> np.ndarray:
    """SciPy's SLSQP on the QP as it stands in the module's first line."""
    sample = np.arange(qp.n_variables) % qp.n
    Q = np.outer(qp.sign, qp.sign) * gram[np.ix_(sample, sample)]
    constraints = [
        {"type": "eq", "fun": lambda a, s=s, t=t: s @ a - t, "jac": lambda a, s=s: s}
        for s, t in ((qp.sign * (qp.group == g), t) for g, t in enumerate(qp.targets))
    ]
    out = scipy.optimize.minimize(
        lambda a: 0.5 * a @ Q @ a + qp.linear @ a,
        qp.start(),
        jac=lambda a: Q @ a + qp.linear,
        bounds=[(0, u) for u in qp.upper],
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return np.clip(out.x, 0, qp.upper)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_generic_solver_s_optimum_has_no_gap(name: str, seed: int) -> None:
    X, y, t, weight = data(seed)
    qp = build(name, y, t, weight)
    gram = Kernel("rbf", gamma=0.5)(X, X)
    answer = certify(qp, gram, generic_solution(qp, gram))
    assert answer.infeasibility < 1e-8
    assert answer.relative_gap < 1e-5
    assert answer.violation < 1e-3


@pytest.mark.parametrize("name", FORMULATIONS)
def test_start_is_feasible(name: str) -> None:
    _, y, t, weight = data(0)
    qp = build(name, y, t, weight)
    assert certify(qp, np.eye(qp.n), qp.start()).infeasibility < 1e-12


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", WITH_INTERCEPT)
def test_the_optimal_value_is_libsvm_s(name: str, seed: int) -> None:
    X, y, t, weight = data(seed)
    options = {"kernel": "rbf", "gamma": 0.5, "tol": 1e-10}
    estimator, target = {
        "c_svc": (sklearn.svm.SVC(C=2.0, **options), y),
        "nu_svc": (sklearn.svm.NuSVC(nu=0.3, **options), y),
        "epsilon_svr": (sklearn.svm.SVR(C=2.0, epsilon=0.1, **options), t),
        "nu_svr": (sklearn.svm.NuSVR(C=2.0, nu=0.4, **options), t),
        "one_class": (sklearn.svm.OneClassSVM(nu=0.4, **options), y),
    }[name]
    libsvm = certify_fit(estimator.fit(X, target, sample_weight=weight), X, target, weight)
    qp = build(name, y, t, weight)
    gram = Kernel("rbf", gamma=0.5)(X, X)
    assert certify(qp, gram, generic_solution(qp, gram)).dual == pytest.approx(libsvm.dual, rel=1e-6)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_weights_are_repeated_rows(name: str) -> None:
    X, y, t, weight = data(5)
    repeat = np.repeat(np.arange(len(y)), weight.astype(int))
    gram = Kernel("rbf", gamma=0.5)(X, X)
    weighted = build(name, y, t, weight)
    repeated = build(name, y[repeat], t[repeat], np.ones(len(repeat)))
    alpha = generic_solution(weighted, gram)
    per_copy = (alpha.reshape(-1, len(y)) / weight)[:, repeat].ravel()
    one = certify(weighted, gram, alpha)
    many = certify(repeated, gram[np.ix_(repeat, repeat)], per_copy)
    assert many.dual == pytest.approx(one.dual, rel=1e-12)
    assert many.primal == pytest.approx(one.primal, rel=1e-9)
    assert many.infeasibility < 1e-9


def test_infeasible_nu_names_the_largest_feasible_value() -> None:
    y = np.array([1.0] * 8 + [-1.0] * 2)
    with pytest.raises(InfeasibleError, match=r"nu=0\.5 .*largest feasible value is 0\.4"):
        formulations.nu_svc(y, 0.5, np.ones(10))
    edge = formulations.nu_svc(y, 0.4, np.ones(10))
    assert np.array_equal(edge.start()[-2:], [1.0, 1.0])
    heavier = np.where(y < 0, 2.0, 1.0)
    with pytest.raises(InfeasibleError, match=r"largest feasible value is 0\.666667"):
        formulations.nu_svc(y, 0.9, heavier)


def test_intercept_and_r() -> None:
    assert formulations.intercept_and_r(np.array([])) == (0.0, 0.0)
    assert formulations.intercept_and_r(np.array([0.3])) == (0.3, 0.0)
    assert formulations.intercept_and_r(np.array([3.0, 1.0])) == (2.0, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_sum_that_is_off_by_rounding_is_left_alone(seed) -> None:
    """A solution is its own restoration, to the last bit."""
    rng = np.random.default_rng(seed)
    upper = 10.0 ** rng.uniform(-3, 3, size=60)
    alpha, sign = rng.uniform(size=60) * upper, rng.choice([-1.0, 1.0], size=60)
    target = float(np.sum((sign * alpha)[::-1].cumsum()[-1]))  # added up in another order
    assert np.sum(sign * alpha, dtype=np.longdouble) != target
    np.testing.assert_array_equal(formulations.restored(alpha, upper, sign, target), alpha)
