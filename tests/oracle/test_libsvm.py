"""The exact machines against scikit-learn's LIBSVM at a tight tolerance, and against a generic QP solver.

Objectives are compared first: alpha is not unique, its objective is. Every model, ours or LIBSVM's, is judged by
`certificates` in float64.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import make_blobs, make_classification, make_moons

import maxmargin
from maxmargin import SVC, NuSVC
from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify
from maxmargin.problem.fitted import certify_fit
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel

# nu is such that ν·n/2 is no integer: else every variable may end at a bound, and a whole interval of margins is optimal.
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
OPTIONS = {
    "SVC": {"C": 1.0}, "NuSVC": {"nu": 0.613}, "SVR": {"C": 1.0}, "NuSVR": {"C": 1.0, "nu": 0.4}, "OneClassSVM": {"nu": 0.3},
}  # fmt: skip


def square(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A kernel as a user would write it; works on dense and sparse blocks."""
    product = a @ b.T
    return (np.asarray(product.todense() if sp.issparse(product) else product) / 10 + 1) ** 2


KERNELS = {
    "rbf": {"kernel": "rbf"},
    "rbf-auto": {"kernel": "rbf", "gamma": "auto"},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.1},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.02},
    "callable": {"kernel": square},
    "precomputed": {"kernel": "precomputed"},
}


def data(n: int = 160) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Samples, two classes named by strings, targets, weights."""
    X, label = make_classification(n, 5, n_informative=3, n_redundant=0, flip_y=0.1, class_sep=0.8, random_state=3)
    rng = np.random.default_rng(3)
    t = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    return X, np.where(label == 1, "yes", "no"), t, rng.uniform(0.5, 2.0, size=n)


def pair(name: str, **options: object) -> tuple[object, object]:
    """Ours and LIBSVM's with the same parameters."""
    # LIBSVM keeps kernel values in float32, and on kernels without full rank may never reach a much smaller tol
    options = {**OPTIONS[name], "tol": 1e-6, **options}
    return getattr(maxmargin, name)(**options), getattr(sklearn.svm, name)(**options)


def scores(model: object, X: np.ndarray) -> np.ndarray:
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
def test_objective_and_decision_values(name: str, kernel: str) -> None:
    X, label, t, _ = data()
    new = data(240)[0][160:]
    y = label if name.endswith("SVC") else t
    if name == "OneClassSVM":  # around the origin the best half-space of a linear kernel is none: w = 0
        X, new = X + 2, new + 2
    if kernel == "precomputed":
        rbf = Kernel("rbf", gamma=0.2)
        X, new = rbf(X, X), rbf(new, X)
    ours, theirs = (model.fit(X, y) for model in pair(name, **KERNELS[kernel]))
    assert ours.status_ == "converged"
    mine, libsvm = certify_fit(ours, X, y), certify_fit(theirs, X, y)
    assert mine.relative_gap < 1e-5
    assert mine.dual == pytest.approx(libsvm.dual, rel=1e-6)
    assert mine.primal <= libsvm.primal + 1e-6 * abs(libsvm.primal)  # LIBSVM keeps kernel values in float32
    size = np.abs(scores(theirs, X)).max()
    for points in (X, new):
        assert np.abs(scores(ours, points) - scores(theirs, points)).max() < 1e-3 * size
    if name.endswith("SVC"):
        assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("name", MACHINES)
def test_weights(name: str) -> None:
    X, label, t, weight = data()
    y = label if name.endswith("SVC") else t
    ours, theirs = (model.fit(X, y, sample_weight=weight) for model in pair(name, gamma=0.2))
    assert certify_fit(ours, X, y, weight).dual == pytest.approx(certify_fit(theirs, X, y, weight).dual, rel=1e-6)
    assert np.abs(scores(ours, X) - scores(theirs, X)).max() < 1e-3


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 4.0}, {"yes": 0.5, "no": 3}])
def test_class_weights(class_weight: object) -> None:
    X, label, _, _ = data()
    ours, theirs = (model.fit(X, label) for model in pair("SVC", class_weight=class_weight))
    assert ours.class_weight_ == pytest.approx(theirs.class_weight_)
    assert certify_fit(ours, X, label).dual == pytest.approx(certify_fit(theirs, X, label).dual, rel=1e-6)
    assert np.abs(ours.decision_function(X) - theirs.decision_function(X)).max() < 1e-3


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_multiclass_layout(name: str, storage) -> None:
    X, y = make_blobs(200, n_features=3, centers=4, cluster_std=3.0, random_state=1)
    y = np.array(["d", "a", "c", "b"])[y]
    X = storage(X)
    ours, theirs = (model.fit(X, y) for model in pair(name, gamma=0.1))
    assert np.array_equal(ours.classes_, theirs.classes_)
    assert ours.dual_coef_.shape == (3, len(ours.support_))
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-3)
    # free variables of the exact optimum are the same; the layout is what is compared here
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    assert ours.n_iter_.shape == theirs.n_iter_.shape == (6,)
    libsvm_coef = theirs.dual_coef_.toarray() if sp.issparse(theirs.dual_coef_) else theirs.dual_coef_
    assert np.abs(ours.dual_coef_ - libsvm_coef).max() < 1e-3 * np.abs(libsvm_coef).max()
    difference = ours.support_vectors_ - theirs.support_vectors_
    assert abs(difference).max() == 0
    for shape in ("ovr", "ovo"):
        one, two = (m.set_params(decision_function_shape=shape).decision_function(X) for m in (ours, theirs))
        assert one.shape == two.shape
        assert np.abs(one - two).max() < 1e-3
    for break_ties in (False, True):
        one, two = (
            m.set_params(decision_function_shape="ovr", break_ties=break_ties).predict(X) for m in (ours, theirs)
        )
        assert np.array_equal(one, two)


def test_break_ties_follows_the_decision_function() -> None:
    X, y = make_blobs(150, n_features=2, centers=5, cluster_std=4.0, random_state=0)
    model = SVC(break_ties=True).fit(X, y)
    grid = np.random.default_rng(0).uniform(-15, 15, size=(500, 2))
    assert np.array_equal(model.predict(grid), model.classes_[model.decision_function(grid).argmax(axis=1)])


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("classes", [2, 3])
def test_coef_of_the_linear_kernel(name: str, classes: int) -> None:
    X, y = make_blobs(120, n_features=3, centers=classes, cluster_std=2.0, random_state=2)
    ours, theirs = (model.fit(X / 4, y) for model in pair(name, kernel="linear"))
    assert ours.coef_.shape == theirs.coef_.shape
    assert np.abs(ours.coef_ - theirs.coef_).max() < 1e-3 * max(1.0, np.abs(theirs.coef_).max())


def test_coef_is_only_for_the_linear_kernel() -> None:
    X, label, _, _ = data()
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        _ = SVC().fit(X, label).coef_
    assert not hasattr(SVC(kernel="rbf").fit(X, label), "coef_")


def test_two_class_layout_and_signs() -> None:
    X, label, _, _ = data()
    ours, theirs = (model.fit(X, label) for model in pair("SVC"))
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    assert ours.dual_coef_ == pytest.approx(theirs.dual_coef_, abs=1e-4)
    assert ours.decision_function(X).shape == (len(X),)
    assert np.array_equal(ours.predict(X), ours.classes_[(ours.decision_function(X) > 0).astype(int)])


def test_nu_and_c_meet() -> None:
    """ν-SVC with margin ρ is C-SVC with C = 1/ρ."""
    X, label, _, _ = data()
    nu = NuSVC(nu=0.4, gamma=0.2, tol=1e-8).fit(X, label)
    C = float(np.abs(nu.dual_coef_).max())
    c = SVC(C=C, gamma=0.2, tol=1e-8).fit(X, label)
    assert np.abs(nu.decision_function(X) - c.decision_function(X)).max() < 1e-4


def generic_optimum(qp: QP, gram: np.ndarray) -> float:
    """The dual optimum by SciPy's SLSQP, which knows nothing of SVMs."""
    sample = np.arange(qp.n_variables) % qp.n
    Q = np.outer(qp.sign, qp.sign) * gram[np.ix_(sample, sample)]
    rows = np.array([qp.sign * (qp.group == g) for g in range(len(qp.targets))])
    constraints = [scipy.optimize.LinearConstraint(rows, qp.targets, qp.targets)] if len(rows) else []
    out = scipy.optimize.minimize(
        lambda a: 0.5 * a @ Q @ a + qp.linear @ a,
        qp.start() + 0.0,
        jac=lambda a: Q @ a + qp.linear,
        bounds=[(0, u) for u in qp.upper],
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    return certify(qp, gram, np.clip(out.x, 0, qp.upper)).dual


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
@pytest.mark.parametrize(("name", "fit_intercept"), [*((name, True) for name in MACHINES), ("SVC", False), ("SVR", False)])
def test_a_generic_solver_agrees(name: str, kernel: str, fit_intercept: bool) -> None:
    X, label, t, _ = data(24)
    extra = {} if fit_intercept else {"fit_intercept": False}
    options = {**OPTIONS[name], "kernel": kernel, "gamma": 0.3, "tol": 1e-9, **extra}
    y = label if name.endswith("SVC") else t
    ours = certify_fit(getattr(maxmargin, name)(**options).fit(X, y), X, y)
    sign = np.where(label == "yes", 1.0, -1.0)
    qp = {
        "SVC": lambda: formulations.c_svc(sign, np.full(24, 1.0), fit_intercept),
        "NuSVC": lambda: formulations.nu_svc(sign, 0.613, np.ones(24)),
        "SVR": lambda: formulations.epsilon_svr(t, 0.1, np.full(24, 1.0), fit_intercept),
        "NuSVR": lambda: formulations.nu_svr(t, 0.4, 1.0, np.ones(24)),
        "OneClassSVM": lambda: formulations.one_class(0.3, np.ones(24)),
    }[name]()
    best = generic_optimum(qp, Kernel(kernel, gamma=0.3)(X, X))
    assert ours.dual == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert ours.gap <= 1e-6 * max(1.0, abs(best))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("far", [1e2, 1e4])
def test_values_far_from_the_origin_and_clusters_far_apart(form, far) -> None:
    """Squares of 1e4 leave float32 no digits for distances of 1: such data is computed in double precision."""
    X, y = make_moons(1600, noise=0.3, random_state=0)
    apart = X + np.where(np.arange(len(X)) % 2, far, -far)[:, None]
    for Z in (X + far, apart):
        ours = SVC(gamma=1.0, C=10).fit(form(Z), y)
        peer = sklearn.svm.SVC(gamma=1.0, C=10).fit(Z, y)
        np.testing.assert_allclose(ours.decision_function(form(Z)), peer.decision_function(Z), atol=0.02)
