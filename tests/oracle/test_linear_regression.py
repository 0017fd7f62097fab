"""LinearSVR against LIBLINEAR and a generic QP solver; equal answers where the problems are equal."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from scipy.optimize import minimize
from sklearn.datasets import dump_svmlight_file, make_regression

from maxmargin import LinearSVR, certify_fit

LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
SOLVERS = ["newton", "descent", "ocas", "auto"]


def data(n=400, d=8, seed=0, bias=20.0):
    return make_regression(n, d, n_informative=5, noise=10.0, bias=bias, random_state=seed)


def objective(model, X, y, weight=None):
    error = np.maximum(np.abs(y - np.asarray(X @ model.coef_).ravel() - model.intercept_[0]) - model.epsilon, 0)
    weight = np.ones(len(y)) if weight is None else weight
    norm = model.coef_ @ model.coef_
    if model.fit_intercept and model.intercept_scaling is not None:
        norm += (model.intercept_[0] / model.intercept_scaling) ** 2
    return 0.5 * norm + model.C * weight @ (error**2 if model.loss.startswith("squared") else error)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C, epsilon", [(0.01, 0.0), (0.3, 5.0), (3.0, 0.0)])
def test_matches_liblinear(loss, C, epsilon):
    X, y = data()
    X[:, 0] *= 0.1
    common = {"C": C, "epsilon": epsilon, "loss": loss, "intercept_scaling": 2.0}
    theirs = sklearn.svm.LinearSVR(**common, tol=1e-9, max_iter=1_000_000, dual=True, random_state=0).fit(X, y)
    for solver in SOLVERS:
        ours = LinearSVR(**common, tol=1e-7, solver=solver, max_iter=3000).fit(X, y)
        assert ours.status_ == "converged" and ours.coef_.shape == theirs.coef_.shape == (8,)
        assert ours.objective_ == pytest.approx(objective(ours, X, y), rel=1e-12)
        assert ours.objective_ == pytest.approx(objective(theirs, X, y), rel=3e-7)
        assert ours.lower_bound_ <= objective(theirs, X, y)
        scale = np.abs(theirs.coef_).max()
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2 * scale)
        judge = certify_fit(ours, X, y)
        assert judge.primal == pytest.approx(ours.objective_, rel=1e-12) and judge.dual <= ours.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("loss, free", [*itertools.product(LOSSES, [True, False])])
def test_a_tiny_problem_matches_a_generic_qp(loss, free):
    """The dual of 12 weighted samples (24 hinges), solved by SLSQP."""
    rng = np.random.default_rng(7)
    X, y, weight, C, epsilon = rng.normal(size=(12, 3)), rng.normal(size=12) + 3, rng.uniform(0.3, 2, 12), 1.3, 0.4
    x = X if free else np.column_stack([X, np.ones(12)])
    s = np.repeat([1.0, -1.0], 12)
    z, t = s[:, None] * np.vstack([x, x]), s * np.tile(y, 2) - epsilon
    top = np.tile(C * weight, 2)
    Q = z @ z.T + (np.diag(0.5 / top) if loss.startswith("squared") else 0)
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - t @ a, np.full(24, 0.1), jac=lambda a: Q @ a - t, method="SLSQP",
        bounds=[(0, None if loss.startswith("squared") else u) for u in top],
        constraints={"type": "eq", "fun": lambda a: a @ s, "jac": lambda a: s} if free else (),
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    for solver in SOLVERS:
        model = LinearSVR(
            C=C, epsilon=epsilon, tol=1e-8, loss=loss, solver=solver, intercept_scaling=None if free else 1.0, max_iter=5000
        ).fit(X, y, sample_weight=weight)
        assert model.status_ == "converged"
        assert model.objective_ == pytest.approx(-found.fun, rel=1e-6)
        assert model.objective_ == pytest.approx(objective(model, X, y, weight), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_free_intercept_follows_the_targets(loss):
    """Targets of any size, anywhere: the same fit in other units."""
    X, y = data(700)
    base = LinearSVR(loss=loss, C=0.1, epsilon=3.0, intercept_scaling=None, tol=1e-7).fit(X, y)
    for size, level in ((1.0, 1e7), (2.0**40, 0.0), (2.0**-40, -3.0)):
        C = 0.1 if loss.startswith("squared") else 0.1 * size
        moved = LinearSVR(loss=loss, C=C, epsilon=3.0 * size, intercept_scaling=None, tol=1e-7).fit(X, (y + level) * size)
        assert moved.status_ == "converged"
        assert moved.objective_ / size**2 == pytest.approx(base.objective_, rel=1e-6)
        np.testing.assert_allclose(moved.coef_ / size, base.coef_, atol=1e-2 * np.abs(base.coef_).max())
        assert moved.intercept_[0] / size - level == pytest.approx(base.intercept_[0], abs=0.05 * np.abs(y).std())


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("level", [0.0, 0.1, -1e6])
def test_targets_that_fit_into_the_tube_are_met_exactly(level, loss, solver):
    X, _ = data(30)
    flat = LinearSVR(loss=loss, solver=solver, intercept_scaling=None).fit(X, np.full(30, level))
    assert flat.status_ == "converged" and flat.objective_ == 0 and not flat.coef_.any() and flat.intercept_[0] == level
    y = level + np.linspace(-1, 1, 30)
    tube = LinearSVR(loss=loss, solver=solver, intercept_scaling=None, epsilon=1.5).fit(X, y)
    assert tube.status_ == "converged" and tube.objective_ == 0 and np.abs(tube.predict(X) - y).max() <= 1.5


@pytest.mark.parametrize("loss", LOSSES)
def test_forms_of_the_same_data_agree(loss, tmp_path):
    X, y = data(600)
    X = np.round(X, 2).astype(np.float32).astype(np.float64)
    options = {"loss": loss, "C": 0.2, "epsilon": 1.0, "tol": 1e-6}
    base = LinearSVR(**options, n_jobs=1).fit(X, y)
    dump_svmlight_file(X, y, str(tmp_path / "train.svm"))
    counts = np.random.default_rng(0).integers(0, 3, 600)
    rows = np.repeat(np.arange(600), counts)
    for model, expected in (
        (LinearSVR(**options, n_jobs=1).fit(X.astype(np.float32), y), base),
        (LinearSVR(**options, n_jobs=2).fit(sp.csr_matrix(X), y), base),
        (LinearSVR(**options).fit_file(tmp_path / "train.svm", dtype=np.float64), base),
        (LinearSVR(**options).fit(X, y, sample_weight=counts), LinearSVR(**options).fit(X[rows], y[rows])),
    ):
        assert model.objective_ == pytest.approx(expected.objective_, rel=2e-6)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=2e-2 * y.std())


@pytest.mark.parametrize("loss, scaling", [*itertools.product(LOSSES, [1.0, None])])
def test_paths_and_warm_starts_reuse_cuts(loss, scaling):
    X, y = data(700)
    Cs = [1.0, 0.01, 0.1]
    options = {"loss": loss, "epsilon": 2.0, "intercept_scaling": scaling, "tol": 1e-5, "solver": "ocas"}
    for model, C in zip(LinearSVR(**options).path(X, y, Cs), Cs):
        alone = LinearSVR(**options, C=C).fit(X, y)
        assert model.C == C and model.status_ == "converged"
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-5)
        assert model.lower_bound_ <= alone.objective_ * (1 + 1e-12)
    model = LinearSVR(**options, C=0.1, warm_start=True).fit(X, y)
    cold = LinearSVR(**options, C=0.12).fit(X, y)
    model.set_params(C=0.12).fit(X, y)
    assert model.trace_["gap"][0] < 0.1 * cold.trace_["gap"][0]
    for other in (-y, y + 50.0, 3 * y):  # the old cuts do not hold
        model.fit(X, other)
        best = LinearSVR(**options, C=0.12).set_params(tol=1e-8, solver="newton").fit(X, other)
        assert model.lower_bound_ <= best.objective_
    model.set_params(epsilon=9.0).fit(X, y)
    assert model.lower_bound_ <= LinearSVR(**options, C=0.12).set_params(epsilon=9.0, tol=1e-8).fit(X, y).objective_


@pytest.mark.parametrize(
    "options, message",
    [({"epsilon": -1.0}, "epsilon=-1.0"), ({"loss": "hinge"}, "loss='hinge'"), ({"dual": "yes"}, "dual='yes'"),
     ({"C": 0}, "C=0"), ({"intercept_scaling": 0.0}, "intercept_scaling=0.0"), ({"tol": 2.0}, "tol=2.0")],
)  # fmt: skip
def test_bad_parameters_are_named_and_change_nothing(options, message):
    X, y = data(60)
    model = LinearSVR().fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match=message):
        model.set_params(**options).fit(X, y)
    assert model.coef_ is before


def test_limits_are_honest():
    X, y = data(2000)
    with pytest.warns(Warning, match="max_iter"):
        model = LinearSVR(C=10.0, solver="ocas", max_iter=3).fit(X, y)
    assert model.status_ == "max_iter" and model.n_iter_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dual in (True, False, "auto"):
            assert LinearSVR(C=0.1, dual=dual).fit(X, y).status_ == "converged"
