"""Objectives against LIBSVM, LIBLINEAR and scikit-learn at tight tolerances."""

import numpy as np
import pytest
from hinge import hinge_svc
from scipy.optimize import minimize
from sklearn.datasets import make_blobs, make_classification
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

SOLVERS = ["auto", "newton", "descent", "ocas"]


def objective(coef, intercept, X, y, C, loss="hinge", scaling=None, weight=None):
    hinge = np.maximum(0, 1 - y * (X @ coef + intercept))
    penalty = 0.5 * coef @ coef + (0 if scaling is None else 0.5 * (intercept / scaling) ** 2)
    return penalty + C * np.sum((1 if weight is None else weight) * (hinge if loss == "hinge" else hinge**2))


@pytest.fixture(scope="module", params=[0, 1, 2])
def data(request):
    X, y = make_classification(150, 8, flip_y=0.1, class_sep=0.7, random_state=request.param)
    return X, np.where(y == 1, 1.0, -1.0)


@pytest.mark.parametrize("solver", ["auto", "newton", "ocas"])
@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_free_intercept_matches_libsvm(data, solver, C):
    X, y = data
    ours = hinge_svc(C, tol=1e-8, solver=solver).fit(X, y)
    theirs = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    best = objective(theirs.coef_[0], theirs.intercept_[0], X, y, C)
    assert ours.status_ == "converged"
    assert ours.objective_ == pytest.approx(objective(ours.coef_[0], ours.intercept_[0], X, y, C), rel=1e-12)
    assert ours.objective_ == pytest.approx(best, rel=1e-6)
    assert ours.lower_bound_ <= best * (1 + 1e-12)


def drawn(n, d, positive):
    """Samples of which a part `positive` is in class 1, with noise; as many as n < d separate."""
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + rng.normal(size=n)
    return X, np.where(score > np.quantile(score, 1 - positive), 1.0, -1.0)


@pytest.mark.parametrize("C", [1e-8, 1e-6, 1e-4, 1e-2, 1.0, 100.0, 1e4, 1e6])
@pytest.mark.parametrize("shape", [(30, 200), (120, 150), (200, 5)], ids=["wide", "square", "narrow"])
@pytest.mark.parametrize("positive", [0.5, 0.1])
@pytest.mark.filterwarnings("ignore:Solver terminated early")  # LIBSVM at large C: an upper bound all the same
def test_auto_with_a_free_intercept_is_exact_for_any_C(shape, positive, C):
    X, y = drawn(*shape, positive)
    ours = hinge_svc(C).fit(X, y)
    theirs = SVC(C=C, kernel="linear", tol=1e-6, max_iter=100_000).fit(X, y)
    best = objective(theirs.coef_[0], theirs.intercept_[0], X, y, C)
    assert ours.status_ == "converged"
    assert ours.objective_ == pytest.approx(objective(ours.coef_[0], ours.intercept_[0], X, y, C), rel=1e-7)
    assert ours.objective_ <= best * (1 + 1e-4)
    assert ours.lower_bound_ <= best * (1 + 1e-9)


@pytest.mark.parametrize("C", [1e-8, 1e-4, 1.0, 1e4, 1e6])
@pytest.mark.parametrize("shape", [(30, 200), (200, 5)], ids=["wide", "narrow"])
def test_auto_with_a_free_intercept_and_squared_hinge_is_exact_for_any_C(shape, C):
    """scikit-learn has no such machine; the certificate of our cutting planes judges it."""
    X, y = drawn(*shape, 0.1)
    ours = hinge_svc(C, loss="squared_hinge").fit(X, y)
    judge = hinge_svc(C, loss="squared_hinge", solver="ocas").fit(X, y)
    assert ours.status_ == "converged"
    assert judge.lower_bound_ * (1 - 1e-12) <= ours.objective_ <= judge.objective_ * (1 + 1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "ocas"])
def test_samples_without_information_have_only_an_intercept(solver, loss):
    model = hinge_svc(solver=solver, loss=loss).fit(np.zeros((6, 3)), [0, 1, 1, 0, 1, 1])
    assert model.status_ == "converged"
    assert model.objective_ == pytest.approx({"hinge": 4.0, "squared_hinge": 16 / 3}[loss], rel=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [1.0, 3.0, 0.0])
def test_penalised_or_no_intercept_matches_liblinear(data, solver, loss, scaling):
    X, y = data
    intercept = scaling > 0
    kind = {"fit_intercept": intercept, "loss": loss, "C": 0.5}
    theirs = Liblinear(tol=1e-10, dual=True, max_iter=200_000, intercept_scaling=scaling or 1.0, **kind).fit(X, y)
    ours = hinge_svc(tol=1e-8, solver=solver, intercept_scaling=scaling or None, **kind).fit(X, y)
    b = float(theirs.intercept_[0]) if intercept else 0.0
    best = objective(theirs.coef_[0], b, X, y, 0.5, loss, scaling or None)
    assert ours.objective_ == pytest.approx(best, rel=1e-6)
    assert ours.lower_bound_ <= best * (1 + 1e-9)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_tiny_problem_matches_a_generic_qp(loss):
    """The dual of 12 weighted samples, solved by SLSQP."""
    rng = np.random.default_rng(7)
    X, y, weight, C = rng.normal(size=(12, 3)), np.repeat([1.0, -1.0], 6), rng.uniform(0.3, 2, 12), 1.3
    Q = (y[:, None] * X) @ (y[:, None] * X).T
    diag = 0 if loss == "hinge" else 1 / (2 * C * weight)
    upper = C * weight if loss == "hinge" else np.full(12, np.inf)
    found = minimize(
        lambda a: 0.5 * a @ Q @ a + 0.5 * np.sum(diag * a * a) - a.sum(), np.full(12, 0.1),
        jac=lambda a: Q @ a + diag * a - 1, bounds=[(0, u) for u in upper],
        constraints={"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y}, method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    for solver in SOLVERS[:2] + SOLVERS[3:]:
        model = hinge_svc(C, tol=1e-8, loss=loss, solver=solver).fit(X, y, sample_weight=weight)
        assert model.objective_ == pytest.approx(-found.fun, rel=1e-6)
        assert model.objective_ == pytest.approx(
            objective(model.coef_[0], model.intercept_[0], X, y, C, loss, weight=weight), rel=1e-12
        )


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_crammer_singer_matches_scikit_learn(fit_intercept):
    X, y = make_blobs(150, 4, centers=4, cluster_std=4.0, random_state=0)
    X = (X - X.mean(0)) / X.std(0)
    C = 0.3

    def joint(W, b):
        scores = X @ W.T + b
        losses = scores + 1.0
        losses[np.arange(150), y] -= 1.0
        return losses.max(1) - scores[np.arange(150), y]

    kind = {"multi_class": "crammer_singer", "C": C, "fit_intercept": fit_intercept}
    ours = hinge_svc(tol=1e-6, intercept_scaling=1.0 if fit_intercept else None, **kind).fit(X, y)
    theirs = Liblinear(tol=1e-9, max_iter=100_000, **kind).fit(X, y)
    values = [
        0.5 * np.sum(m.coef_**2) + 0.5 * np.sum(np.asarray(m.intercept_) ** 2) * fit_intercept
        + C * joint(m.coef_, m.intercept_).sum()
        for m in (ours, theirs)
    ]
    assert ours.objective_ == pytest.approx(values[0], rel=1e-10)
    assert values[0] == pytest.approx(values[1], rel=2e-6)
    assert ours.lower_bound_ <= values[1] * (1 + 1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_crammer_singer_of_two_classes_matches_scikit_learn(fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) + 0.3
    y = np.where(X[:, 0] + rng.normal(size=200) > 0, "b", "a")
    kind = {"multi_class": "crammer_singer", "fit_intercept": fit_intercept, "intercept_scaling": 1.0}
    ours = hinge_svc(tol=1e-8, **kind).fit(X, y)
    theirs = Liblinear(tol=1e-9, max_iter=100_000, **kind).fit(X, y)
    assert ours.coef_.shape == (1, 4) and ours.intercept_.shape == (1,)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)
    assert (ours.predict(X) == theirs.predict(X)).all()
    # Two classes whose weights differ in sign only: half the binary problem at twice C.
    binary = hinge_svc(2.0, tol=1e-8, fit_intercept=fit_intercept, intercept_scaling=1.0).fit(X, y)
    assert ours.objective_ == pytest.approx(0.5 * binary.objective_, rel=1e-7)


def test_crammer_singer_with_free_intercepts_is_no_worse_than_with_penalised_ones():
    X, y = make_blobs(120, 3, centers=3, cluster_std=5.0, random_state=1)
    X = (X - X.mean(0)) / X.std(0) + 1.0
    free = hinge_svc(0.5, tol=1e-5, multi_class="crammer_singer").fit(X, y)
    held = hinge_svc(0.5, tol=1e-5, multi_class="crammer_singer", intercept_scaling=1.0).fit(X, y)
    assert free.status_ == "converged"
    assert free.objective_ <= held.objective_ * (1 + 1e-5)


def test_one_vs_rest_is_one_binary_problem_per_class():
    X, y = make_blobs(120, 3, centers=3, cluster_std=5.0, random_state=1)
    joint = hinge_svc(0.2, tol=1e-6).fit(X, y)
    single = [hinge_svc(0.2, tol=1e-6).fit(X, y == k) for k in range(3)]
    assert joint.objective_ == pytest.approx(sum(m.objective_ for m in single), rel=1e-6)
    assert joint.coef_.shape == (3, 3) and joint.intercept_.shape == (3,)
