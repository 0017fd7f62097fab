"""The neutral evaluator: right against explicit formulas, certified optima, and never fooled by an infeasible point."""

import pathlib
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn import svm
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import kernels, objectives
from benchmarks.base import Data, KernelModel, LinearModel, Predictions, Problem

RNG = np.random.default_rng(3)
X = RNG.standard_normal((70, 4))
LABELS = np.where(X[:, 0] + X[:, 1] ** 2 + 0.7 * RNG.standard_normal(70) > 0.6, 1, -1)
TARGET = np.sin(X[:, 0]) + 0.2 * RNG.standard_normal(70)
CLASSES = {
    "svc": (svm.SVC, ("C",)),
    "nu_svc": (svm.NuSVC, ("nu",)),
    "svr": (svm.SVR, ("C", "epsilon")),
    "nu_svr": (svm.NuSVR, ("C", "nu")),
    "one_class": (svm.OneClassSVM, ("nu",)),
}


def data_for(task):
    y = TARGET if task in ("svr", "nu_svr") else LABELS
    return Data(X, y, X, y)


def fitted(task, tol=1e-10, nu=0.37):
    problem = Problem(task, C=2.0, nu=nu, epsilon=0.1, gamma=0.3)
    make, names = CLASSES[task]
    data = data_for(task)
    estimator = make(gamma=0.3, tol=tol, **{name: getattr(problem, name) for name in names}).fit(X, data.y_train)
    model = KernelModel(estimator.dual_coef_.ravel(), float(estimator.intercept_[0]), estimator.support_)
    return problem, data, model, estimator


@pytest.mark.parametrize("task", CLASSES)
@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_gap_closes_at_the_optimum(task, nu):
    problem, data, model, _ = fitted(task, nu=nu)
    judged = objectives.evaluate(problem, data, model)
    assert judged.infeasible < 1e-9
    assert -1e-12 <= judged.gap < 5e-6  # LIBSVM's kernel rows are float32
    assert judged.primal == pytest.approx(judged.primal_best, rel=1e-6)


def test_svc_against_the_formulas():
    problem, data, model, estimator = fitted("svc", tol=1e-1)  # a rough model: nothing cancels
    judged = objectives.evaluate(problem, data, model)
    K, alpha = rbf_kernel(X, X, 0.3), np.zeros(70)
    alpha[model.support] = np.abs(model.coef)
    f = K @ (LABELS * alpha)
    norm = (LABELS * alpha) @ K @ (LABELS * alpha)

    def primal(b):
        return 0.5 * norm + 2.0 * sum(max(0.0, 1 - y * (v + b)) for y, v in zip(LABELS, f))

    assert judged.primal == pytest.approx(primal(estimator.intercept_[0]), rel=1e-12)
    assert judged.primal_best == pytest.approx(min(primal(y - v) for y, v in zip(LABELS, f)), rel=1e-12)
    assert judged.dual == pytest.approx(alpha.sum() - 0.5 * norm, rel=1e-6)
    assert judged.score == pytest.approx(estimator.score(X, LABELS))
    assert judged.n_support == len(model.support)


def test_svr_against_the_formulas():
    problem, data, model, estimator = fitted("svr", tol=1e-1)
    judged = objectives.evaluate(problem, data, model)
    beta = np.zeros(70)
    beta[model.support] = model.coef
    K = rbf_kernel(X, X, 0.3)
    norm, error = beta @ K @ beta, TARGET - K @ beta

    def primal(b):
        return 0.5 * norm + 2.0 * np.maximum(0, np.abs(error - b) - 0.1).sum()

    assert judged.primal == pytest.approx(primal(estimator.intercept_[0]), rel=1e-12)
    best = minimize_scalar(primal, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10}).fun
    assert judged.primal_best == pytest.approx(best, rel=1e-8)
    assert judged.dual == pytest.approx(TARGET @ beta - 0.1 * np.abs(beta).sum() - 0.5 * norm, rel=1e-6)
    assert judged.score == pytest.approx(estimator.score(X, TARGET))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(CLASSES)), st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 30.0]))
def test_no_point_however_infeasible_beats_the_optimum(task, seed, size):
    problem, data, best, _ = fitted(task)
    optimum = objectives.evaluate(problem, data, best)
    rng = np.random.default_rng(seed)
    support = rng.choice(70, 40, replace=False)
    coef = size * rng.standard_normal(40)
    if task == "one_class":
        coef = np.abs(coef)
    elif task == "nu_svc":
        coef = np.abs(coef) * LABELS[support]
    judged = objectives.evaluate(problem, data, KernelModel(coef, rng.standard_normal(), support))
    slack = 1e-6 * abs(optimum.primal_best)
    assert judged.primal >= judged.primal_best >= optimum.primal_best - slack
    feasible_sum = task in ("nu_svc", "one_class")  # 40 rows may be too few to carry the sum that these two demand
    if not feasible_sum:
        assert judged.dual <= optimum.dual + slack


def test_without_intercept_there_is_no_equality():
    problem = Problem("svc", C=2.0, gamma=0.3, fit_intercept=False)
    model = KernelModel(np.array([0.5]), 0.0, np.array([int(np.flatnonzero(LABELS == 1)[0])]))
    judged = objectives.evaluate(problem, data_for("svc"), model)
    assert judged.infeasible == 0
    assert judged.dual == pytest.approx(0.5 - 0.5 * 0.25)
    assert judged.primal_best == judged.primal


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear", "laplacian"])
def test_tiles_and_formats_agree(kernel, monkeypatch):
    problem = Problem("svc", kernel=kernel, gamma=0.3, degree=2, coef0=0.5)
    coef = RNG.standard_normal((30, 2))
    known = {
        "rbf": lambda: rbf_kernel(X, X[:30], 0.3),
        "poly": lambda: polynomial_kernel(X, X[:30], 2, 0.3, 0.5),
        "sigmoid": lambda: sigmoid_kernel(X, X[:30], 0.3, 0.5),
        "linear": lambda: X @ X[:30].T,
        "laplacian": lambda: laplacian_kernel(X, X[:30], 0.3),
    }
    expected = known[kernel]() @ coef
    monkeypatch.setattr(kernels, "TILE_ROWS", 16)
    monkeypatch.setattr(kernels, "TILE_COLUMNS", 7)
    rows = sp.csr_matrix(X)
    np.testing.assert_allclose(kernels.expansion(problem, X, X[:30], coef), expected, atol=1e-12)
    np.testing.assert_allclose(kernels.expansion(problem, rows, rows[:30], coef), expected, atol=1e-12)
    monkeypatch.setattr(kernels, "DENSE_WIDTH", 1)  # as if the rows were too wide to unpack
    np.testing.assert_allclose(kernels.expansion(problem, rows, rows[:30], coef), expected, atol=1e-12)


def test_a_model_without_support_vectors():
    problem, data = Problem("svc", C=2.0), data_for("svc")
    judged = objectives.evaluate(problem, data, KernelModel(np.empty(0), 0.0, np.empty(0, dtype=int)))
    assert judged.dual == 0 and judged.primal == 2.0 * 70 and judged.n_support == 0
    assert judged.primal_best == 2.0 * 2 * min((LABELS > 0).sum(), (LABELS < 0).sum())


def test_a_model_with_vectors_of_its_own_has_a_primal_value_only():
    problem, data, model, _ = fitted("svc")
    by_index = objectives.evaluate(problem, data, model)
    by_value = objectives.evaluate(problem, data, KernelModel(model.coef, model.intercept, vectors=X[model.support]))
    assert by_value.primal == pytest.approx(by_index.primal, rel=1e-12)
    assert by_value.dual is None and by_value.gap is None


@pytest.mark.parametrize("loss, power", [("hinge", 1), ("squared_hinge", 2)])
@pytest.mark.parametrize("sparse", [False, True])
def test_linear_models(loss, power, sparse):
    w, b = np.array([0.3, -0.2, 0.1, 0.5]), 0.25
    rows = sp.csr_matrix(X, dtype=np.float32) if sparse else X.astype(np.float32)
    data = Data(rows, LABELS, rows, LABELS)
    single = X.astype(np.float32).astype(np.float64)
    loss_sum = (np.maximum(0, 1 - LABELS * (single @ w + b)) ** power).sum()
    free = objectives.evaluate(Problem("linear", C=3.0, loss=loss), data, LinearModel(w, b))
    assert free.primal == pytest.approx(0.5 * w @ w + 3.0 * loss_sum, rel=1e-12)
    assert free.primal_best <= free.primal
    bound = objectives.evaluate(Problem("linear", C=3.0, loss=loss), data, LinearModel(w, b, penalised=True))
    assert bound.primal == pytest.approx(free.primal + 0.5 * b * b, rel=1e-12)
    assert bound.primal_best == bound.primal


@pytest.mark.parametrize("penalised", [False, True])
def test_linear_models_under_the_one_norm(penalised):
    w, b, data = np.array([0.3, -0.2, 0.0, 0.5]), -0.25, data_for("svc")
    judged = objectives.evaluate(Problem("linear_l1", C=3.0, loss="squared_hinge"), data, LinearModel(w, b, penalised))
    norm = 1.0 + (0.25 if penalised else 0.0)
    assert judged.primal == pytest.approx(norm + 3 * sum(max(0, 1 - y * (x @ w + b)) ** 2 for x, y in zip(X, LABELS)))
    assert judged.n_support == 3 and judged.score == np.mean((X @ w + b > 0) == (LABELS > 0))


@pytest.mark.parametrize("loss, power", [("epsilon_insensitive", 1), ("squared_epsilon_insensitive", 2)])
def test_linear_regression_with_a_tube(loss, power):
    w, b, data = np.array([0.3, -0.2, 0.1, 0.5]), 0.25, data_for("svr")
    judged = objectives.evaluate(Problem("linear_svr", C=3.0, epsilon=0.2, loss=loss), data, LinearModel(w, b, True))
    errors = [max(0, abs(y - x @ w - b) - 0.2) ** power for x, y in zip(X, TARGET)]
    assert judged.primal == pytest.approx(0.5 * (w @ w + b * b) + 3 * sum(errors)) and judged.auc is None
    assert judged.score == pytest.approx(1 - ((TARGET - X @ w - b) ** 2).sum() / ((TARGET - TARGET.mean()) ** 2).sum())


def test_linear_hinge_equals_the_linear_kernel():
    estimator = svm.SVC(kernel="linear", C=2.0, tol=1e-8).fit(X, LABELS)
    model = KernelModel(estimator.dual_coef_.ravel(), float(estimator.intercept_[0]), estimator.support_)
    data = data_for("svc")
    kernel = objectives.evaluate(Problem("svc", C=2.0, kernel="linear"), data, model)
    linear = LinearModel(estimator.coef_.ravel(), float(estimator.intercept_[0]))
    assert objectives.evaluate(Problem("linear", C=2.0), data, linear).primal == pytest.approx(kernel.primal, rel=1e-9)


@pytest.mark.parametrize("decimals", [0, 8])  # rounded values have ties
def test_area_under_the_roc_curve(decimals):
    w = np.array([1.0, 0.2, 0.0, 0.0])
    shown = objectives.evaluate(Problem("linear"), Data(X, LABELS, np.round(X, decimals), LABELS), LinearModel(w))
    assert shown.auc == pytest.approx(roc_auc_score(LABELS, np.round(X, decimals) @ w), abs=1e-12)
    one_class = Data(X, LABELS, X[LABELS > 0], LABELS[LABELS > 0])
    assert objectives.evaluate(Problem("linear"), one_class, LinearModel(w)).auc is None


def test_scores_of_bare_predictions():
    y = np.array([0, 1, 2, 2])
    data = Data(X[:4], y, X[:4], y)
    judged = objectives.evaluate(Problem("svc"), data, Predictions(np.array([0, 1, 2, 1])))
    assert judged.score == 0.75 and judged.primal is None


def test_linear_models_of_several_classes_are_sums_against_the_rest():
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    W, b = RNG.standard_normal((3, 4)), RNG.standard_normal(3)
    problem, data = Problem("linear", C=3.0), Data(X, y, X, y)
    judged = objectives.evaluate(problem, data, LinearModel(W, b, penalised=True))
    parts = []
    for label in range(3):
        sign = np.where(y == label, 1, -1)
        one = LinearModel(W[label], float(b[label]), penalised=True)
        parts.append(objectives.evaluate(problem, Data(X, sign, X, sign), one).primal)
    assert judged.primal == pytest.approx(sum(parts), rel=1e-12) and judged.primal_best == judged.primal
    assert judged.score == pytest.approx(np.mean((X @ W.T + b).argmax(axis=1) == y))
    with pytest.raises(ValueError, match="2 vectors w for 3 classes"):
        objectives.evaluate(problem, data, LinearModel(W[:2], b[:2]))
