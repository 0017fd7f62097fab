"""Certificates against the textbook objectives, brute force, and fits of scikit-learn's LIBSVM."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin.problem import certificates, fitted, formulations
from maxmargin.problem.certificates import best_multipliers, certify, kernel_block
from maxmargin.problem.fitted import certify_fit
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel


def problem(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Gram matrix, ±1 labels, targets, weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = rng.choice([-1.0, 1.0], size=n)
    y[:2] = 1, -1
    return Kernel("rbf", gamma=0.7)(X, X), y, rng.normal(size=n), rng.uniform(0.5, 2, size=n)


def all_formulations(y: np.ndarray, t: np.ndarray, weight: np.ndarray) -> list[QP]:
    return [
        formulations.c_svc(y, 3 * weight),
        formulations.c_svc(y, 3 * weight, fit_intercept=False),
        formulations.epsilon_svr(t, 0.2, 3 * weight),
        formulations.epsilon_svr(t, 0.2, 3 * weight, fit_intercept=False),
        formulations.nu_svc(y, 0.1, weight),
        formulations.nu_svr(t, 0.5, 3.0, weight),
        formulations.one_class(0.5, weight),
    ]


def random_feasible(qp: QP, rng: np.random.Generator) -> np.ndarray:
    """A feasible point away from `start`: exchanges inside groups that keep both sums and bounds."""
    alpha = qp.start()
    if len(qp.targets) == 0:
        return rng.uniform(0, 1, qp.n_variables) * qp.upper
    for _ in range(10 * qp.n_variables):
        v, w = rng.integers(qp.n_variables, size=2)
        if v == w or qp.group[v] != qp.group[w]:
            continue
        room = [min(qp.upper[u] - alpha[u] if d > 0 else alpha[u] for u, d in ((v, qp.sign[v]), (w, -qp.sign[w])))]
        step = rng.uniform(0, room[0])
        alpha[v] += qp.sign[v] * step
        alpha[w] -= qp.sign[w] * step
    return np.clip(alpha, 0, qp.upper)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_gap_is_primal_minus_dual_and_never_negative(seed: int) -> None:
    gram, y, t, weight = problem(seed)
    rng = np.random.default_rng(seed)
    for qp in all_formulations(y, t, weight):
        alpha = random_feasible(qp, rng)
        given_b = certify(qp, gram, alpha, multipliers=rng.normal(size=len(qp.targets)))
        best_b = certify(qp, gram, alpha)
        for answer in (given_b, best_b):
            assert answer.infeasibility < 1e-10
            assert answer.gap >= 0
            assert answer.gap == pytest.approx(answer.primal - answer.dual, rel=1e-9, abs=1e-9)
        assert best_b.primal <= given_b.primal + 1e-9


def test_primal_and_dual_are_the_textbook_objectives() -> None:
    gram, y, t, weight = problem(3)
    rng = np.random.default_rng(3)
    n, C, b, margin = len(y), 3.0, 0.3, 0.4

    def loss(values: np.ndarray) -> float:
        return float(weight @ np.maximum(values, 0))

    qp = formulations.c_svc(y, C * weight)
    a = random_feasible(qp, rng)
    f = gram @ (y * a)
    answer = certify(qp, gram, a, [b])
    assert answer.primal == pytest.approx(0.5 * (y * a) @ f + C * loss(1 - y * (f + b)))
    assert answer.dual == pytest.approx(a.sum() - 0.5 * (y * a) @ f)

    qp = formulations.epsilon_svr(t, 0.2, C * weight)
    a = random_feasible(qp, rng)
    beta = a[:n] - a[n:]
    f = gram @ beta
    answer = certify(qp, gram, a, [b])
    tube = loss(t - f - b - 0.2) + loss(f + b - t - 0.2)
    assert answer.primal == pytest.approx(0.5 * beta @ f + C * tube)
    assert answer.dual == pytest.approx(t @ beta - 0.2 * a.sum() - 0.5 * beta @ f)

    nu = 0.1
    qp = formulations.nu_svc(y, nu, weight)
    a = random_feasible(qp, rng)
    f = gram @ (y * a)
    answer = certify(qp, gram, a, [b - margin, b + margin])  # margin is the textbook's ρ
    assert answer.primal == pytest.approx(
        0.5 * (y * a) @ f - nu * weight.sum() * margin + loss(margin - y * (f + b))
    )
    assert answer.dual == pytest.approx(-0.5 * (y * a) @ f)

    nu, epsilon = 0.5, 0.4
    qp = formulations.nu_svr(t, nu, C, weight)
    a = random_feasible(qp, rng)
    beta = a[:n] - a[n:]
    f = gram @ beta
    answer = certify(qp, gram, a, [b + epsilon, b - epsilon])
    tube = loss(t - f - b - epsilon) + loss(f + b - t - epsilon)
    assert answer.primal == pytest.approx(0.5 * beta @ f + C * (nu * weight.sum() * epsilon + tube))
    assert answer.dual == pytest.approx(t @ beta - 0.5 * beta @ f)

    qp = formulations.one_class(0.5, weight)
    a = random_feasible(qp, rng)
    f = gram @ a
    answer = certify(qp, gram, a, [-b])
    assert answer.primal == pytest.approx(0.5 * a @ f - 0.5 * weight.sum() * b + loss(b - f))
    assert answer.dual == pytest.approx(-0.5 * a @ f)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_best_multipliers_beat_every_knot(seed: int) -> None:
    gram, y, t, weight = problem(seed, n=8)
    rng = np.random.default_rng(seed)
    for qp in all_formulations(y, t, weight):
        alpha = random_feasible(qp, rng)
        best = certify(qp, gram, alpha)
        # the primal is piecewise linear in each multiplier: its knots are the scores, so some knot is optimal
        score = qp.center - (gram @ formulations.coefficients(qp, alpha))[np.arange(qp.n_variables) % qp.n]
        for g in range(len(qp.targets)):
            for knot in score[qp.group == g]:
                other = best.multipliers.copy()
                other[g] = knot
                assert best.primal <= certify(qp, gram, alpha, other).primal + 1e-10


def test_multipliers_are_finite_when_every_variable_is_at_its_bound() -> None:
    y = np.array([1.0, 1.0, -1.0, -1.0])
    qp = formulations.nu_svc(y, 1.0, np.ones(4))
    gram = np.diag([1.0, 2.0, 3.0, 4.0])
    answer = certify(qp, gram, np.ones(4))
    assert np.isfinite(answer.multipliers).all()
    assert answer.violation == 0
    assert answer.gap == pytest.approx(0, abs=1e-12)
    assert len(best_multipliers(formulations.c_svc(y, np.ones(4), fit_intercept=False), y)) == 0


def test_infeasibility_is_measured() -> None:
    qp = formulations.c_svc(np.array([1.0, -1.0]), np.ones(2))
    answer = certify(qp, np.eye(2), [1.5, -0.25])
    assert answer.bounds == 0.5
    assert answer.equality == 1.75
    assert answer.infeasibility == 1.75


def test_violation_without_groups_is_the_projected_gradient() -> None:
    y = np.array([1.0, -1.0, 1.0])
    qp = formulations.c_svc(y, np.ones(3), fit_intercept=False)
    # gradient a − 1 on the identity: −1 at 0 (can grow), 0 at the upper bound, −½ inside
    assert certify(qp, np.eye(3), [0.0, 1.0, 0.5]).violation == 1.0
    assert certify(qp, np.eye(3), [1.0, 1.0, 1.0]).violation == 0.0
    # twice the identity: gradient +1 at the upper bound, which can shrink
    assert certify(qp, 2 * np.eye(3), [0.5, 0.5, 1.0]).violation == 1.0


def test_blocks_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    qp = formulations.c_svc(y, np.full(50, 2.0))
    alpha = random_feasible(qp, rng)
    kernel = Kernel("rbf", gamma=0.3)
    whole = certify(qp, kernel(X, X), alpha)
    monkeypatch.setattr(certificates, "BLOCK_VALUES", 130)
    for gram in (kernel_block(kernel, X), kernel_block(kernel, sp.csr_array(X))):
        blocked = certify(qp, gram, alpha)
        assert blocked.primal == pytest.approx(whole.primal, rel=1e-12)
        assert blocked.gap == pytest.approx(whole.gap, rel=1e-10)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "precomputed", "callable"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_fits_of_libsvm_are_certified(name: str, weighted: bool, kernel: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    labels = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, "yes", "no")
    y = labels if name.endswith("SVC") else X[:, 1] ** 2 + 0.1 * rng.normal(size=40)
    weight = rng.uniform(0.5, 2, size=40) if weighted else None
    X = Kernel("rbf", gamma=0.4)(X, X) if kernel == "precomputed" else X
    linear = Kernel("linear")
    # LIBSVM keeps kernel values in float32: a tighter tol may never be reached on the rank-deficient kernels
    options = {"tol": 1e-6, "kernel": linear if kernel == "callable" else kernel}
    estimator = getattr(sklearn.svm, name)(**options).fit(X, y, sample_weight=weight)
    answer = certify_fit(estimator, X, y, weight)
    assert answer.infeasibility < 1e-6
    assert answer.violation < 1e-4
    assert 0 <= answer.gap < 1e-5 * (1 + abs(answer.primal))


def test_a_loose_fit_shows_its_gap() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    loose = certify_fit(sklearn.svm.SVC(tol=0.5, C=10).fit(X, y), X, y)
    tight = certify_fit(sklearn.svm.SVC(tol=1e-9, C=10).fit(X, y), X, y)
    assert 0.05 < loose.violation < 1.0
    assert loose.relative_gap > 1e-4 > 1e-6 > tight.relative_gap


@pytest.mark.parametrize("nu", [0.9, 1.0])
def test_a_closed_tube_is_certified(nu: float) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 2))
    t = X[:, 0]  # can be fitted exactly: the tube closes, and a and a* overlap
    fit = sklearn.svm.NuSVR(nu=nu, C=20, gamma=1.0, tol=1e-6).fit(X, t)
    answer = certify_fit(fit, X, t)
    assert np.abs(fit.dual_coef_).sum() < 0.9 * nu * 20 * 30
    assert answer.infeasibility < 1e-3
    assert answer.relative_gap < 1e-4


def test_class_weights_are_bounds() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0.8).astype(int)
    fit = sklearn.svm.SVC(class_weight="balanced", tol=1e-9).fit(X, y)
    assert certify_fit(fit, X, y).relative_gap < 1e-6


def three_classes(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.5, 0.5])]


@pytest.mark.parametrize("machine", [
    sklearn.svm.SVC(tol=1e-7, class_weight="balanced"), sklearn.svm.NuSVC(nu=0.2, tol=1e-7), maxmargin.SVC(tol=1e-7),
    maxmargin.SVC(tol=1e-7, class_weight={"a": 3.0}, fit_intercept=False), maxmargin.NuSVC(nu=0.2, tol=1e-7),
    maxmargin.DCSVC(tol=1e-7, levels=1, k=2, random_state=0),
    maxmargin.DCSVC(tol=1e-7, multi_class="ovr", levels=1, k=2, fit_intercept=True, random_state=0),
    sklearn.svm.SVC(kernel="precomputed", tol=1e-7),
], ids=repr)  # fmt: skip
def test_several_classes_are_judged_by_the_sum_of_their_problems(machine) -> None:
    X, y = three_classes()
    X = Kernel("rbf", gamma=0.4)(X, X) if machine.kernel == "precomputed" else X
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = machine.fit(X, y, sample_weight=weight)
    answer = certify_fit(model, X, y, weight)
    assert answer.infeasibility < 1e-6 and answer.violation < 1e-5 and 0 <= answer.relative_gap < 1e-5
    # a ν fit reports the ν problem's objective, in which alpha and b are not yet divided by the margin
    if hasattr(model, "objective_"):
        assert answer.primal == pytest.approx(model.objective_, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalised", "none"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_linear_machines_are_judged_without_their_bound(loss, intercept, classes, sparse) -> None:
    X, y = three_classes()
    y = y if classes == 3 else np.where(y == "a", "a", "b")
    X = sp.csr_matrix(X) if sparse else X
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    scaling = {"free": None, "penalised": 2.0, "none": 1.0}[intercept]
    model = maxmargin.LinearSVC(
        C=0.3, loss=loss, intercept_scaling=scaling, fit_intercept=intercept != "none", tol=1e-6, class_weight="balanced"
    ).fit(X, y, weight)
    answer = certify_fit(model, X, y, weight)
    assert answer.infeasibility < 1e-9
    assert answer.primal == pytest.approx(model.objective_, rel=1e-9)
    assert -1e-9 < answer.relative_gap < 1e-3
    assert model.objective_ - model.dual_gap_ <= answer.primal * (1 + 1e-9)
    if intercept != "free":
        theirs = sklearn.svm.LinearSVC(
            C=0.3, loss=loss, intercept_scaling=2.0, fit_intercept=intercept != "none", tol=1e-8, max_iter=10**6,
            class_weight="balanced" if classes == 2 else None,
        ).fit(X, y, weight)  # fmt: skip
        model.set_params(class_weight=theirs.class_weight).fit(X, y, weight)
        answer = certify_fit(model, X, y, weight)
        judged = certify_fit(theirs, X, y, weight)
        assert judged.primal == pytest.approx(answer.primal, rel=1e-3) and judged.relative_gap < 1e-3


def test_a_pipeline_is_judged_by_its_last_step() -> None:
    X, y = three_classes()
    pipeline = make_pipeline(StandardScaler(), maxmargin.SVC()).fit(X, y)
    answer = certify_fit(pipeline, X, y)
    assert answer.primal == pytest.approx(pipeline[-1].objective_, rel=1e-9)
    assert answer.gap == pytest.approx(pipeline[-1].dual_gap_, rel=1e-6)


def test_a_level_of_divide_and_conquer_is_judged_on_the_whole_problem() -> None:
    X, y = make_moons(400, noise=0.2, random_state=0)
    early = maxmargin.DCSVC(C=2.0, k=2, levels=2, stop_level=2, random_state=0).fit(X, y)
    exact = maxmargin.SVC(C=2.0, fit_intercept=False, tol=1e-6).fit(X, y)
    answer = certify_fit(early, X, y)
    assert answer.dual <= exact.objective_ <= answer.primal and answer.infeasibility < 1e-9


def test_what_cannot_be_judged_is_refused_with_a_reason() -> None:
    X, y = three_classes()
    with pytest.raises(ValueError, match="cannot judge BudgetSVC: its support vectors are no samples"):
        certify_fit(maxmargin.BudgetSVC(budget=10).fit(X, y), X, y)
    with pytest.raises(ValueError, match="cannot judge RidgeClassifier"):
        certify_fit(RidgeClassifier().fit(X, y), X, y)
    with pytest.raises(ValueError, match="crammer_singer"):
        certify_fit(maxmargin.LinearSVC(multi_class="crammer_singer").fit(X, y), X, y)
    with pytest.raises(ValueError, match="ν-SVC with class weights"):
        certify_fit(sklearn.svm.NuSVC(nu=0.2, class_weight={"a": 2.0}).fit(X, y), X, y)


@pytest.mark.parametrize("C", [1.0, 1e6, 1e12])
def test_alphas_far_below_a_huge_bound_can_still_shrink(C: float) -> None:
    """Separable samples: for every C above some the solution is the same, and so is how far a point is from it."""
    y = np.array([1.0, -1.0, 1.0, -1.0])
    x = y[:, None] * np.array([1.0, 1.0, 2.0, 3.0])[:, None]
    qp = formulations.c_svc(y, np.full(4, C))
    best = certify(qp, x @ x.T, [0.5, 0.5, 0.0, 0.0])
    assert best.violation == 0
    worse = certify(qp, x @ x.T, [0.4, 0.4, 0.05, 0.05])  # all free, at scores s (1 − 1.05 |x|)
    assert worse.violation == pytest.approx(2.15 + 1.1)


def test_a_published_margin_and_tube_are_what_is_judged() -> None:
    X, y = three_classes()
    weighted = maxmargin.NuSVC(nu=0.2, class_weight={"a": 2.0}).fit(X, y)
    answer = certify_fit(weighted, X, y)
    assert answer.primal == pytest.approx(weighted.objective_, rel=1e-9)
    assert answer.gap == pytest.approx(weighted.dual_gap_, rel=1e-6, abs=1e-9)
    tube = maxmargin.NuSVR(nu=0.3, tol=0.1).fit(X, X[:, 0] ** 2)
    exact = certify_fit(tube, X, X[:, 0] ** 2)
    assert exact.primal == pytest.approx(tube.objective_, rel=1e-9)
    tube.epsilon_ += 1.0
    assert certify_fit(tube, X, X[:, 0] ** 2).primal > exact.primal


def test_of_several_problems_the_worst_counts() -> None:
    """One coefficient of one pair of classes changed: how far that pair is off, whatever the others are."""
    X, y = three_classes()
    model = maxmargin.SVC(tol=1e-6).fit(X, y)
    before = certify_fit(model, X, y)
    model.dual_coef_ = model.dual_coef_.copy()
    model.dual_coef_[0, 0] += 5.0
    after = certify_fit(model, X, y)
    assert before.infeasibility < 1e-9 and before.violation < 2e-6
    assert after.equality == pytest.approx(5.0) and after.bounds >= 3.9 and after.violation > 1.0


def test_wrong_shapes_are_refused() -> None:
    qp = formulations.c_svc(np.array([1.0, -1.0]), np.ones(2))
    with pytest.raises(ValueError, match=r"alpha\.shape == \(3,\)"):
        certify(qp, np.eye(2), np.zeros(3))
    with pytest.raises(ValueError, match="2 multipliers given"):
        certify(qp, np.eye(2), np.zeros(2), [0.0, 1.0])


def test_examples_in_the_docstrings() -> None:
    assert doctest.testmod(certificates).failed == doctest.testmod(fitted).failed == 0
