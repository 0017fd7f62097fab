"""What fits publish, by the definitions of coefficients, scores, clusters, paths and warm starts."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, certify_fit
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.divide.model import DivideResult
from maxmargin.estimators import _setup
from maxmargin.estimators._labelled import Labelled, encoded_classes
from maxmargin.estimators._linear_state import Past
from maxmargin.estimators._weighted_nu import WeightedNu
from maxmargin.estimators.multiclass import ovr_decision, pair_votes
from maxmargin.kernel_values import KernelData
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Deadline, Result, Status


def data(n=240, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.normal(size=(n, 3)) + 1.2 * y[:, None] * [1, -1, 0.5], y


# ---- divide and conquer


@pytest.mark.parametrize("stop", [0, 1])
@pytest.mark.parametrize("multi", ["ovo", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [False, True])
def test_one_machine_of_divide_and_conquer_is_the_sum_of_its_coefficients(classes, multi, stop, intercept):
    X, y = data(classes=classes)
    names = np.array(["c", "a", "b"])[y]
    model = DCSVC(
        C=2.0, gamma=0.4, multi_class=multi, levels=1, k=3, stop_level=stop, fit_intercept=intercept, random_state=0,
        predict_with="all",
    ).fit(X, names)  # fmt: skip
    ovr = multi == "ovr" and classes == 3
    assert model.level_ == stop and model.classes_.tolist() == sorted(set(names))
    code = np.searchsorted(model.classes_, names)
    own, K = code[model.support_], model._fitted_kernel(X, X[model.support_])
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_array_equal(model.n_support_, np.bincount(own, minlength=classes))
    assert (np.diff(own) >= 0).all() and len(model.intercept_) == (1 if classes == 2 else 3)
    assert all((np.diff(model.support_[own == c]) > 0).all() for c in range(classes))
    assert (model.intercept_ != 0).any() == intercept
    if ovr:
        assert model.dual_coef_.shape[0] == 3
        for c, row in enumerate(model.dual_coef_):
            assert (np.sign(row) * np.where(own == c, 1, -1) >= 0).all()
        values = K @ model.dual_coef_.T + model.intercept_
        np.testing.assert_allclose(model.decision_function(X), values, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), model.classes_[values.argmax(axis=1)])
    elif classes == 3:
        pair = np.zeros((len(X), 3))
        for k, (i, j) in enumerate(combinations(range(3), 2)):
            a, b = own == i, own == j
            pair[:, k] = K[:, a] @ model.dual_coef_[j - 1, a] + K[:, b] @ model.dual_coef_[i, b] + model.intercept_[k]
        np.testing.assert_allclose(
            model.decision_function(X), ovr_decision(pair, 3, zero_is_first=False), rtol=1e-6, atol=1e-6
        )
        np.testing.assert_array_equal(model.predict(X), model.classes_[pair_votes(pair, 3).argmax(axis=1)])
        model.decision_function_shape = "ovo"
        np.testing.assert_allclose(model.decision_function(X), pair, rtol=1e-9, atol=1e-9)
        model.set_params(decision_function_shape="ovr", break_ties=True)
        np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    else:
        value = K @ model.dual_coef_[0] + model.intercept_[0]
        np.testing.assert_allclose(model.decision_function(X), value, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(model.predict(X), model.classes_[(value > 0).astype(int)])
    assert np.abs(model.dual_coef_).max() <= 2.0 * (1 + 1e-12)
    assert model.score(X, names) > 0.7 and model.fit_status_ == 0 and (model.n_iter_ >= 0).all()


@pytest.mark.parametrize("make", [DCSVC, DCSVR])
@pytest.mark.parametrize("sparse", [False, True])
def test_each_support_vector_is_of_the_cluster_that_its_row_is_sent_to(make, sparse):
    X, y = data(400)
    target = y if make is DCSVC else np.sin(X[:, 0])
    form = sp.csr_matrix if sparse else np.asarray
    weight = np.where(np.arange(400) % 9 == 0, 0.0, 1.0)
    model = make(gamma=0.5, levels=1, k=4, stop_level=1, random_state=0).fit(form(X), target, weight)
    router = model._committee.router
    assert model.level_ == 1 and model.levels_["level"].tolist() == [1]
    cluster = router.cluster(form(X[model.support_]), 1)
    np.testing.assert_array_equal(cluster, model.support_cluster_)
    assert not (weight[model.support_] == 0).any()
    assert model.cluster_intercept_.shape[0] == model.levels_["clusters"][0] and np.isfinite(model.cluster_intercept_).all()
    assert model.level_objective_ > 0 and model.level_gap_ >= 0 and model.level_violation_ <= 1e-3 * 1.001
    for rule in ("early", "all", "bcm"):
        model.predict_with = rule
        whole = model.predict(X)
        np.testing.assert_array_equal(whole[:7], model.predict(X[:7]))
    for bad in ("other", None):
        model.predict_with = bad
        with pytest.raises(ValueError, match="choose one of 'early', 'all', 'bcm'"):
            model.predict(X)


def test_early_prediction_asks_the_machine_of_the_cluster_alone():
    X, _ = data(400)
    model = DCSVR(C=3.0, gamma=0.5, levels=1, k=4, stop_level=1, random_state=0, fit_intercept=True).fit(X, np.sin(X[:, 0]))
    cluster, K = model._committee.router.cluster(X, 1), model._fitted_kernel(X, model.support_vectors_)
    mine = cluster[:, None] == model.support_cluster_
    np.testing.assert_allclose(
        model.predict(X), (K * mine) @ model.dual_coef_[0] + model.cluster_intercept_[cluster, 0], rtol=1e-6, atol=1e-6
    )
    model.predict_with = "all"
    np.testing.assert_allclose(model.predict(X), K @ model.dual_coef_[0] + model.intercept_[0], rtol=1e-9, atol=1e-9)
    size = np.bincount(cluster)
    assert model.intercept_[0] == pytest.approx(size @ model._committee.intercept[:, 0] / size.sum())
    assert model.n_support_.tolist() == [len(model.support_)] and model.dual_coef_.shape == (1, len(model.support_))
    assert np.abs(model.dual_coef_).max() <= 3.0 * (1 + 1e-12) and isinstance(model.n_iter_, int)


def test_a_decision_of_zero_is_for_the_second_class_in_scores_and_predictions_of_divide_and_conquer(monkeypatch):
    """It is no accident: a cluster may have no samples of either class."""
    X, y = data()
    model = DCSVC(levels=1, k=3, stop_level=1, random_state=0, gamma=0.4).fit(X, y)
    values = np.random.default_rng(0).integers(-1, 2, (len(X), 3)).astype(float)
    monkeypatch.setattr(DCSVC, "_decisions", lambda self, X, coef: values)
    scores = ovr_decision(values, 3, zero_is_first=False)
    assert (scores != ovr_decision(values, 3, zero_is_first=True)).any()
    np.testing.assert_array_equal(model.decision_function(X), scores)
    np.testing.assert_array_equal(model.predict(X), pair_votes(values, 3).argmax(axis=1))
    model.break_ties = True
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


def test_levels_that_cannot_be():
    for options, fine in (
        ({"levels": 2, "stop_level": 2}, True), ({"levels": 1, "stop_level": 2}, False), ({"stop_level": 9}, True),
        ({"early": True}, True), ({"early": True, "levels": 1}, True), ({"early": True, "levels": 0}, False),
        ({"early": True, "stop_level": 1}, False), ({"levels": 0}, True), ({"levels": -1}, False),
        ({"stop_level": -1}, False),
        ({"k": 0}, False), ({"k": 1}, True), ({"sample_size": 1}, False), ({"sample_size": 2}, True), ({"early": 1}, False),
        ({"predict_with": "one"}, False), ({"C": 0.0}, False), ({"random_state": -1}, False),
    ):  # fmt: skip
        for make in (DCSVC, DCSVR):
            if fine:
                make(**options)._check_parameters()
            else:
                with pytest.raises(ValueError):
                    make(**options)._check_parameters()
    for bad in ({"multi_class": "crammer"}, {"decision_function_shape": "one"}):
        with pytest.raises(ValueError, match="choose one of"):
            DCSVC(**bad)._check_parameters()
    for epsilon, fine in ((0.0, True), (-0.1, False)):
        for make in (DCSVR, SVR, LinearSVR):
            if fine:
                make(epsilon=epsilon)._check_parameters()
            else:
                with pytest.raises(ValueError, match=r"epsilon=-0\.1"):
                    make(epsilon=epsilon)._check_parameters()


def test_weights_of_a_level_exist_where_one_machine_predicts():
    X, y = data(400, 2)
    model = DCSVC(kernel="linear", levels=1, stop_level=1, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="predict_with='all' adds them up"):
        _ = model.coef_
    model.predict_with = "all"
    np.testing.assert_allclose(model.coef_, model.dual_coef_ @ model.support_vectors_)
    exact = DCSVC(kernel="linear", levels=0, random_state=0).fit(X, y)
    np.testing.assert_allclose(exact.coef_, exact.dual_coef_ @ exact.support_vectors_)
    assert exact.level_ == 0 and exact._committee.router is None and (exact.support_cluster_ == 0).all()


# ---- linear machines


def test_a_path_is_in_the_order_asked_for_and_each_model_has_its_certificate():
    X, y = data(120)
    strengths = [10.0, 0.1, 1.0]
    for make in (LinearSVC, LinearSVR):
        model = make(warm_start=True, tol=1e-5)
        path = model.path(X, y, strengths)
        assert [one.C for one in path] == strengths and all(one.warm_start for one in path) and not hasattr(model, "coef_")
        for one in path:
            alone = make(C=one.C, tol=1e-5).fit(X, y)
            assert one.objective_ == pytest.approx(alone.objective_, rel=2e-5) and one.n_features_in_ == 3
            assert one.status_ == "converged" and one.dual_gap_ <= 1e-5 * one.objective_
        with pytest.raises(ValueError, match="Cs is empty"):
            model.path(X, y, [])
        with pytest.raises(ValueError, match="a path has many"):
            make(checkpoint="file").path(X, y, strengths)
        with pytest.raises(ValueError, match="C=-1"):
            model.path(X, y, [1.0, -1.0])


def test_a_path_that_is_interrupted_has_the_models_of_the_smallest_strengths(monkeypatch):
    X, y = data(120)
    driven, count = LinearSVC._driven, []

    def stops(self, samples, memory, control):
        result = driven(self, samples, memory, control)
        count.append(self.C)
        if len(count) == 2:
            result.status = Status.INTERRUPTED
        return result

    monkeypatch.setattr(LinearSVC, "_driven", stops)
    with pytest.warns(ConvergenceWarning):
        path = LinearSVC().path(X, y, [10.0, 0.1, 1.0, 5.0])
    assert count == [0.1, 1.0] and [model.C for model in path] == [0.1, 1.0]


@pytest.mark.parametrize("make", [LinearSVC, LinearSVR])
def test_what_a_warm_start_takes_from_the_last_fit(make):
    X, y = data(90)
    model = make(warm_start=True, fit_intercept=True, solver="ocas", tol=1e-3).fit(X, y)

    def recalled(X=X, y=y, weight=None, **options):
        machine = make(**{**model.get_params(), **options})
        machine.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_") or k == "_memory"})
        return machine._recall(machine._data(Labelled.of(machine, X, y, weight)))

    count = 3 if make is LinearSVC else 1
    same = recalled()
    assert sorted(same) == list(range(count)) and all(
        past.cuts is not None and past.start is not None for past in same.values()
    )
    coef = np.atleast_2d(model.coef_)
    for k, past in same.items():
        np.testing.assert_allclose(past.start, [*coef[k], model.intercept_[k]])
    assert all(past.cuts is not None for past in recalled(C=7.0).values())
    for other in (recalled(weight=np.linspace(1, 2, 90)), recalled(X=X[::-1] * 1.01)):
        assert all(past.cuts is None and past.start is not None for past in other.values()) and len(other) == count
    assert recalled(X=X[:, :2]) == {} == recalled(warm_start=False)
    if make is LinearSVC:
        assert recalled(y=y + 1) == {}
    assert make(warm_start=True)._recall(None) == {}
    assert not hasattr(make(solver="ocas").fit(X, y), "_memory")


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_linear_machines_are_by_class(classes):
    X, y = data(classes=classes)
    names = np.array(["c", "a", "b"])[y]
    for multi in ("ovr", "crammer_singer"):
        model = LinearSVC(multi_class=multi, tol=1e-4).fit(X, names)
        scores = X @ model.coef_.T + model.intercept_
        said = model.decision_function(X)
        assert model.coef_.shape == ((1 if classes == 2 else 3), 3) and model.intercept_.shape == (len(model.coef_),)
        np.testing.assert_allclose(said, scores[:, 0] if classes == 2 else scores, rtol=1e-9, atol=1e-12)
        wanted = (scores[:, 0] > 0).astype(int) if classes == 2 else scores.argmax(axis=1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[wanted])
        assert model.score(X, names) > 0.6 and model.lower_bound_ <= model.objective_
        assert model.objective_ - model.lower_bound_ == pytest.approx(model.dual_gap_, rel=1e-6, abs=1e-9)
    regression = LinearSVR(tol=1e-4).fit(X, X[:, 0])
    assert regression.coef_.shape == (3,) and regression.intercept_.shape == (1,)
    np.testing.assert_allclose(regression.predict(X), X @ regression.coef_ + regression.intercept_, rtol=1e-9, atol=1e-12)


def test_rows_of_an_absent_class_are_left_out_of_linear_machines():
    X, y = data(60)
    weight = np.where(y == 1, 0.0, 1.0)
    machine = LinearSVC()
    samples = machine._read(Labelled.of(machine, X, y, weight))
    assert samples.X.shape[0] == 40 and (samples.target >= 0).all() and len(samples.weight) == 40
    assert samples.classes.tolist() == [0, 2]
    there = machine._read(Labelled.of(machine, X, y, np.where(np.arange(60) == 4, 0.0, 1.0)))
    assert there.X is X and len(there.weight) == 60


# ---- the exact machines


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_coefficients_stand_where_scikit_learn_has_them_and_are_certified(make, classes):
    X, y = data(90, classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, 90)
    factors = {} if make is NuSVC else {"class_weight": {0: 2.0, 1: 0.5}}
    model = make(tol=1e-6, **factors, **({"nu": 0.3} if make is NuSVC else {"C": 2.0})).fit(X, y, weight)
    answer = certify_fit(model, X, y, weight)
    assert (
        answer.infeasibility < 1e-9
        and answer.violation <= 1.1e-6
        and answer.primal == pytest.approx(model.objective_, rel=1e-6)
    )
    own = y[model.support_]
    assert (np.diff(own) >= 0).all() and model.support_.dtype == np.int32 and model.n_support_.dtype == np.int32
    np.testing.assert_array_equal(model.n_support_, np.bincount(own, minlength=classes))
    for c in range(classes):
        for row in range(classes - 1):
            other = row if row < c else row + 1
            coef = model.dual_coef_[row, own == c]
            positive = (c == 1) if classes == 2 else c < other
            assert (coef >= 0).all() if positive else (coef <= 0).all()
            assert (coef != 0).any()
    assert model.dual_coef_.shape == (classes - 1, len(own)) and model.intercept_.shape == (classes * (classes - 1) // 2,)
    assert model.n_iter_.shape == model.intercept_.shape
    if make is SVC:
        np.testing.assert_array_equal(model.class_weight_, [2.0, 0.5, 1.0][:classes])
        bound = 2.0 * weight[model.support_] * model.class_weight_[own]
        assert (np.abs(model.dual_coef_) <= bound * (1 + 1e-12)).all()


@pytest.mark.parametrize("make", [SVR, NuSVR])
def test_coefficients_of_regression_are_the_difference_of_its_halves(make):
    X, _ = data(90)
    t, weight = np.sin(X[:, 0]), np.random.default_rng(0).uniform(0.5, 2, 90)
    model = make(C=2.0, tol=1e-6).fit(X, t, weight)
    answer = certify_fit(model, X, t, weight)
    assert answer.infeasibility < 1e-9 and answer.violation <= 1.1e-6
    error = t[model.support_] - model.predict(X[model.support_])
    tube = model.epsilon_ if make is NuSVR else 0.1
    coef, bound = model.dual_coef_[0], 2.0 * weight[model.support_]
    outside = np.abs(error) > tube + 1e-4
    np.testing.assert_allclose(coef[outside], (np.sign(error) * bound)[outside], rtol=1e-9)
    assert (np.sign(coef) == np.sign(error)).all() and model.n_support_.tolist() == [len(coef)]
    assert hasattr(model, "epsilon_") == (make is NuSVR)


def test_objects_and_gram_matrices_take_the_place_of_features():
    X, y = data(40, 2)
    plain = SVC(kernel="linear", tol=1e-6).fit(X, y)
    objects = [{"row": row} for row in X]

    def inner(a, b):
        return np.array([[u["row"] @ v["row"] for v in b] for u in a])

    given = SVC(kernel=inner, tol=1e-6).fit(objects, y)
    gram = SVC(kernel="precomputed", tol=1e-6).fit(X @ X.T, y)
    for model, ask in ((given, objects), (gram, X @ X.T)):
        np.testing.assert_allclose(model.decision_function(ask), plain.decision_function(X), rtol=1e-3, atol=1e-3)
        assert model.support_vectors_.shape == (0, 0) and len(model.support_) == model.dual_coef_.shape[1]
        assert model.decision_function(ask[:3]).shape == (3,)
    assert given._objects is objects
    again = SVC(kernel=lambda a, b: a @ b.T, tol=1e-6).fit(X, y)
    assert again._objects is None and again.support_vectors_.shape[1] == 3
    with pytest.raises(ValueError, match="must be the square Gram matrix"):
        SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(X @ X.T), y)
    regression = SVR(kernel=inner).fit(objects, X[:, 0])
    assert regression.predict(objects[:2]).shape == (2,)
    for name in ("support_", "n_support_", "dual_coef_"):
        broken = SVC().fit(X, y)
        value = getattr(broken, name)
        setattr(broken, name, value[:, :-1] if name == "dual_coef_" else value[:-1])
        with pytest.raises(ValueError, match="was altered"):
            broken.predict(X)


# ---- ν-SVC with class weights


def staged(**more):
    X, y = data(60, 2)
    sign, weight = np.where(y, 1.0, -1.0), np.linspace(0.5, 1.5, 60)
    source = KernelData(X, Kernel("rbf", 0.5), np.arange(60), np.float64, 1).source()
    given = {"begin": None, "kept": None, "deadline": Deadline(), **more}
    factor = np.where(y, 2.0, 0.5)
    return WeightedNu(sign, 0.3, weight, factor, given["begin"], given["kept"], source, Options(tol=1e-6), given["deadline"])


def run(solver):
    turns, seen = solver.turns(), []
    while True:
        try:
            turn = next(turns)
            seen += [turn.extra["stage"]] if turn is not None else []
        except StopIteration as end:
            return end.value, seen


def test_the_second_stage_weighs_with_the_margin_of_the_first():
    solver = staged()
    assert list(solver.snapshot()) == ["alpha"] and solver.margin == 1.0
    status, stages = run(solver)
    assert status is None and set(stages) == {1.0, 2.0} and stages == sorted(stages)
    found = solver.result(Status.CONVERGED)
    multipliers = solver.found.multipliers
    margin = 0.5 * (multipliers[1] - multipliers[0])
    assert found.extra["margin"] == solver.margin == pytest.approx(margin) and margin > 0
    np.testing.assert_allclose(solver.unit, solver.factor / margin)
    assert (found.alpha <= solver.unit * solver.weight * (1 + 1e-12)).all() and found.first is solver.found.alpha
    np.testing.assert_allclose(solver.second.qp.upper, solver.factor / margin * solver.weight)
    assert abs(found.alpha @ solver.y) < 1e-9
    kept = solver.snapshot()
    np.testing.assert_array_equal(kept["alpha"], found.first)
    np.testing.assert_array_equal(kept["second"], found.alpha)
    again = staged(kept=kept)
    _, stages = run(again)
    assert len(stages) <= 2 and again.result(Status.CONVERGED).objective == pytest.approx(found.objective, rel=1e-6)
    one = staged(begin=found.first / solver.weight)
    np.testing.assert_allclose(one.first.snapshot()["alpha"], found.first, atol=1e-12)
    apart = staged()
    run(apart)
    first = apart.found.timings["rows"]
    second = apart.second.result(Status.CONVERGED).timings["rows"]
    assert apart.result(Status.CONVERGED).timings["rows"] == first + second


@pytest.mark.parametrize("first", [Status.CONVERGED, Status.MAX_TIME, Status.STALLED])
@pytest.mark.parametrize("second", [Status.CONVERGED, Status.MAX_ITER])
def test_both_stages_must_have_converged(first, second):
    solver = staged()
    solver.found = DualResult(status=first, alpha=np.ones(3), timings={"rows": 2.0})
    solver.second = SimpleNamespace(result=lambda status: DualResult(status=second, timings={"rows": 3.0}))
    said = solver.result(Status.CONVERGED)
    assert said.status is (first if second is Status.CONVERGED else second) and said.timings["rows"] == 5.0


@pytest.mark.parametrize("margin", [0.5, 0.0, -1.0])
@pytest.mark.parametrize("status", [Status.CONVERGED, Status.MAX_TIME])
def test_a_margin_that_is_none_is_an_error_or_for_a_stopped_run_one(margin, status):
    solver = staged()
    found = DualResult(status=status, alpha=np.full(60, 0.1), multipliers=np.array([-margin, margin]))
    if margin <= 0 and status is Status.CONVERGED:
        with pytest.raises(ValueError, match=r"nu=0\.3 leaves no margin"):
            solver._stage_2(found)
    else:
        solver._stage_2(found)
        assert solver.margin == (margin if margin > 0 else 1.0)


def test_the_first_stage_has_half_of_the_time():
    solver = staged(deadline=Deadline.after(10_000.0))
    assert 4000 < solver.half.left() <= 5000 and solver.first.deadline is solver.half
    solver.half = Deadline.after(-1.0)
    status, stages = run(solver)
    assert solver.found.status in (Status.MAX_TIME, Status.CONVERGED) and stages.count(1.0) <= 1
    assert solver.second.deadline is solver.deadline and status is None
    assert staged().half.left() is None


# ---- budgets


@pytest.mark.parametrize("classes", [2, 3])
def test_a_budgeted_machine_is_the_sum_of_its_centres(classes):
    X, y = data(150, classes)
    names = np.array(["c", "a", "b"])[y]
    model = BudgetSVC(budget=20, gamma=0.5, fit_intercept=True, random_state=0).fit(X, names)
    distance = ((X[:, None] - model.support_vectors_[None]) ** 2).sum(axis=2)
    coef = model.dual_coef_ if model.dual_coef_.shape[1] == len(model.support_vectors_) else model.dual_coef_.T
    values = np.exp(-0.5 * distance) @ coef.T + model.intercept_
    said = model.decision_function(X)
    assert len(model.support_vectors_) <= 20 and model.gamma_ == 0.5
    np.testing.assert_allclose(said, values[:, 0] if classes == 2 else values, rtol=1e-3, atol=1e-3)
    wanted = (said > 0).astype(int) if classes == 2 else said.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[wanted])
    assert model.refit_ and not BudgetSVC(refit=False, random_state=0).fit(X, names).refit_


def test_an_error_leaves_a_machine_as_it_was():
    X, y = data(60, 2)
    for make in (SVC, OneClassSVM, LinearSVC, BudgetSVC, DCSVC):
        model = make().fit(X, y)
        before = dict(vars(model))
        with pytest.raises(ValueError):
            model.fit(np.where(X > 0, np.nan, X), y)
        assert all(vars(model)[k] is v for k, v in before.items())
        assert list(vars(model)) == list(before)


def test_what_is_known_of_a_level_is_said_where_the_whole_problem_is_not_known():
    model = DCSVC(max_time=2.0)
    known = SimpleNamespace(objective=8.0, gap=2.0, violation=0.5)
    levels = [{"stage": "level", "level": 3}, {"stage": "refine", "level": 1}]
    result = DivideResult(status=Status.MAX_TIME, objective=4.0, gap=np.nan, violation=0.1)
    result.levels, result.model = levels, SimpleNamespace(level=3, certificate=known)
    said = model._advice(result)
    assert "gap 2 (0.25 of the objective), violation 0.5" in said and "kernel is 0 between clusters" in said
    assert "The model is of level 3; finished: level 3, refine 1." in said
    result.gap, result.levels = 1.0, []
    said = model._advice(result)
    assert (
        "gap 1 (0.25 of the objective), violation 0.1" in said
        and "between clusters" not in said
        and "finished: none." in said
    )
    stalled = SVC()._advice(
        Result(status=Status.STALLED, objective=1.0, gap=0.5, violation=0.1, timings={"inner_steps": 1234.0})
    )
    assert "or at 1e+07 + 1000 n inner steps (made: 1.23e+03)" in stalled
    with_time = SVC(max_time=2.5)._advice(Result(status=Status.MAX_TIME, objective=0.0, gap=0.0, violation=0.0))
    assert "gap 0 (0 of the objective)" in with_time and "raise max_time (2.5 s)" in with_time


# ---- what solvers are told


class Enough(Exception):
    """What was wanted is known."""


def told(monkeypatch, module, name, fit):
    """What a fit gives to the solver of this name."""
    seen = []

    def made(*given, **options):
        seen.append((given, options))
        raise Enough

    with monkeypatch.context() as patch:
        patch.setattr(f"maxmargin.estimators.{module}.{name}", made)
        with pytest.raises(Enough):
            fit()
    return seen[0]


def test_a_budgeted_run_is_told_its_visits(monkeypatch):
    X, y = data(40)
    X, y = np.vstack([X, X[:10]]), np.append(y, y[:10])
    weight = np.where(np.arange(50) == 20, 0.0, 1.0)
    for classes, outputs in ((3, 3), (2, 1)):
        some = y < classes
        distinct = len(np.unique(X[some & (weight > 0)], axis=0))
        rows = np.count_nonzero(some & (weight > 0))
        for budget, epochs in ((10, 2), (1000, 3)):
            model = BudgetSVC(C=3.0, budget=budget, epochs=epochs, gamma=0.5, random_state=0, fit_intercept=True)
            (options, chunks), more = told(
                monkeypatch, "budget", "BudgetSolver", lambda m=model, s=some: m.fit(X[s], y[s], weight[s])
            )
            assert options.budget == min(budget, distinct) and options.outputs == outputs and options.features == 3
            assert (
                options.gamma == 0.5 and options.C == 3.0 and options.intercept and options.averaging and not options.audit
            )
            assert more["rows"] == epochs * options.visits and options.visits <= rows
            assert more["refit"] is not None and more["objective"] is not None and len(list(chunks)) == epochs
    ordered = BudgetSVC(shuffle=False, epochs=1, refit=False)
    (options, chunks), more = told(monkeypatch, "budget", "BudgetSolver", lambda: ordered.fit(X, y, weight))
    ((chunk,),) = list(chunks)
    assert chunk.order.tolist() == [i for i in range(50) if i != 20] and more["refit"] is None and options.visits == 49
    for size, epochs in ((None, 2), (7, 1), (7, 3)):
        model = BudgetSVC(stream_size=size, epochs=epochs)
        parts = [(X[:30], y[:30]), (X[30:], y[30:], weight[30:])]
        (options, chunks), more = told(
            monkeypatch, "budget", "BudgetSolver", lambda m=model, p=parts: m.fit_stream(p, [0, 1, 2])
        )
        assert more["rows"] == (None if size else 50 * epochs) and options.visits == (size or 50)
        assert [[len(batch.order) for batch in every] for every in chunks] == [[30, 20]] * epochs
        (options, chunks, state, counters), more = told(
            monkeypatch, "budget", "BudgetSolver", lambda m=model: m.partial_fit(X[:30], y[:30], [0, 1, 2])
        )
        assert state is None and counters is None
        assert more["rows"] == 30 and options.visits == (size or 30) and [len(part) for part in chunks] == [1]


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_of_linear_machines_share_threads_where_there_is_enough_work(classes, joint, monkeypatch):
    X, y = data(40, classes)
    multi = "crammer_singer" if joint else "ovr"
    if classes == 3 and joint:
        given, options = told(
            monkeypatch, "linear", "CrammerSinger", lambda: LinearSVC(multi_class=multi, C=3.0, tol=1e-4).fit(X, y)
        )
        assert given[0].C == 3.0 and given[0].loss == "hinge" and given[2:] == (3, 1e-4)
        assert options["known"] is None and options["start"] is None
        return
    if classes == 2:
        given, options = told(monkeypatch, "linear", "make", lambda: LinearSVC(multi_class=multi, C=3.0, n_jobs=3).fit(X, y))
        strength = 6.0 if joint else 3.0
        assert strength == given[0].C and given[0].threads == 3 and given[1:] == (1e-6, "auto")
        assert given[0].loss == ("hinge" if joint else "squared_hinge")
        np.testing.assert_array_equal(np.sort(given[0].sign), np.sort(np.where(y == 1, 1.0, -1.0)))
        assert options == {"seed": 0, "known": None, "start": None, "duals": None, "rounding": None}
        return
    for stored, jobs, workers, each in ((120, 4, 3, 1), (120, 7, 3, 2), (120, 2, 2, 1), (121, 4, 1, 4)):
        monkeypatch.setattr("maxmargin.estimators.linear.SIDE_BY_SIDE", stored)
        for form in (np.asarray, sp.csr_matrix):
            model = LinearSVC(n_jobs=jobs, max_iter=77)
            (build, count), options = told(monkeypatch, "linear", "OneVsRest", lambda m=model, f=form: m.fit(f(X), y))
            assert count == 3 and options == {"workers": workers, "fair": False, "most": 77}
            given, _ = told(monkeypatch, "linear", "make", lambda b=build: b(2))
            assert given[0].threads == each and (given[0].sign > 0).sum() == (y == 2).sum()
    (build, _), options = told(monkeypatch, "linear", "OneVsRest", lambda: LinearSVC("l1", max_time=50.0).fit(X, y))
    assert options["fair"]
    given, _ = told(monkeypatch, "linear", "OneNorm", lambda: build(0))
    assert given[1] == 1e-6


@pytest.mark.parametrize("squared", [False, True])
def test_regression_is_two_hinges_for_each_sample_in_units_of_the_targets(squared, monkeypatch):
    X, _ = data(40)
    t = 50 * np.sin(X[:, 0]) + 1000
    loss = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
    for scaling in (None, 1.0):
        model = LinearSVR(loss=loss, epsilon=0.5, C=3.0, intercept_scaling=scaling)
        (problem, tol, solver), _ = told(monkeypatch, "linear", "make", lambda m=model: m.fit(X, t))
        samples = model._data(Labelled.of(model, X, t, None))
        unit, target = samples.unit, (samples.target - samples.level) / samples.unit
        assert (tol, solver) == (1e-6, "auto") and unit > 1
        strength = 3.0 if squared else 3.0 / unit
        assert strength == problem.C
        assert problem.loss == ("squared_hinge" if squared else "hinge") and problem.penalised == (scaling is not None)
        np.testing.assert_allclose(problem.shift, np.concatenate([1 + 0.5 / unit - target, 1 + 0.5 / unit + target]))
        np.testing.assert_array_equal(problem.sign, np.repeat([1.0, -1.0], 40))
        np.testing.assert_array_equal(problem.weight, np.tile(samples.weight, 2))
        assert problem.level == samples.level / unit and problem.bias == 1.0
        past = {0: SimpleNamespace(cuts=None, start=np.arange(4.0), duals=None, rounding=None)}
        _, options = told(monkeypatch, "linear", "make", lambda m=model, s=samples, p=past: m._solver(s, p))
        np.testing.assert_allclose(options["start"], np.arange(4.0) / unit)


@pytest.mark.parametrize("make", [SVC, LinearSVC])
def test_a_sparse_matrix_is_taken_as_the_sum_of_its_entries_and_left_alone(make):
    X, y = data(30, 2)
    entries = sp.csr_matrix(X)
    twice = sp.csr_matrix(
        (np.repeat(0.5 * entries.data, 2), np.repeat(entries.indices, 2), 2 * entries.indptr), shape=X.shape
    )
    assert not twice.has_canonical_format
    count = twice.nnz
    model, plain = make(tol=1e-6).fit(twice, y), make(tol=1e-6).fit(entries, y)
    assert twice.nnz == count
    np.testing.assert_allclose(model.decision_function(twice), plain.decision_function(entries), rtol=1e-9, atol=1e-12)


def test_a_checkpoint_tells_fits_apart_by_what_their_kernel_depends_on(monkeypatch, tmp_path):
    X, y = data(30, 2)
    for kernel, wanted in (
        ("linear", []), ("rbf", ["gamma"]), ("laplacian", ["gamma"]), ("sigmoid", ["gamma", "coef0"]),
        ("poly", ["gamma", "coef0", "degree"]),
    ):  # fmt: skip
        seen = []

        def opened(machine, given, threads, among, seen=seen, **more):
            seen.append(more)
            raise Enough

        with monkeypatch.context() as patch:
            patch.setattr("maxmargin.estimators._kernel.Checkpoint.opened", opened)
            with pytest.raises(Enough):
                SVC(kernel=kernel, gamma=0.25, coef0=2.0, degree=4).fit(X, y)
        every = {"gamma": 0.25, "coef0": 2.0, "degree": 4}
        assert seen[0] == {"kernel": kernel, **{name: every[name] for name in wanted}}


@pytest.mark.parametrize("classes", [2, 3])
def test_several_pairs_are_solved_two_at_a_time_or_elsewhere(classes, monkeypatch):
    X, y = data(30, classes)
    pairs = classes * (classes - 1) // 2
    given, _ = told(monkeypatch, "_pairs", "Together", lambda: SVC(C=2.0, n_jobs=3, cache_size=9).fit(X, y))
    problems, _, members, options, control, _ = given
    assert len(problems) == pairs and options.beside == (2 if pairs > 1 else 1) and options.cache_size == 9
    assert [len(some) for some in members] == [len(X) // classes] * classes and control.max_iter == -1
    for problem, (i, j) in zip(problems, combinations(range(classes), 2)):
        assert problem.blocks == (i, j) and (problem.qp.upper == 2.0).all() and problem.alpha is None
        np.testing.assert_array_equal(problem.chosen, np.concatenate([members[i], members[j]]))
        first = 1.0 if classes > 2 else -1.0
        np.testing.assert_array_equal(problem.qp.sign, np.repeat([first, -first], len(X) // classes))
    asked = []
    monkeypatch.setattr("maxmargin.estimators._pairs.elsewhere", lambda count: asked.append(count) or True)
    (_, _, blocks, options, _, sent), _ = told(monkeypatch, "_pairs", "Apart", lambda: SVC().fit(X, y))
    assert (
        asked == [pairs]
        and len(blocks) == classes
        and sent.kernel.name == "rbf"
        and options.beside == (2 if pairs > 1 else 1)
    )


def test_large_pairs_are_put_in_an_order_of_their_own(monkeypatch):
    X, y = data(90)
    for small in (59, 60):
        monkeypatch.setattr("maxmargin.estimators._pairs.SMALL", small)
        (problems, *_), _ = told(monkeypatch, "_pairs", "Together", lambda: SVC().fit(X, y))
        ascending = [bool((np.diff(problem.chosen) > 0).all()) for problem in problems]
        assert ascending == [small == 59] * 3


def test_clusters_that_are_given_are_those_of_the_lowest_level(monkeypatch):
    X, y = data(60, 2)
    model = DCSVC(random_state=3, sample_size=50, k=2, levels=2, max_iter=9)
    (problems, kernel, _, plan, given), _ = told(monkeypatch, "_divided", "DivideAndConquer", lambda: model.fit(X, y))
    assert given is None and len(problems) == 1 and kernel.dtype == np.float64
    assert (plan.k, plan.levels, plan.stop_level, plan.sample_size, plan.max_iter, plan.look) == (2, 2, 0, 50, 9, False)
    assert plan.seed == np.random.RandomState(3).randint(np.iinfo(np.int32).max) and sorted(plan.order) == list(range(60))
    model._division = SimpleNamespace(partition=lambda rows: len(rows.index))
    (*_, given), _ = told(monkeypatch, "_divided", "DivideAndConquer", lambda: model.fit(X, y))
    assert given == 60
    (*_, plan, _), _ = told(monkeypatch, "_divided", "DivideAndConquer", lambda: DCSVC(early=True).fit(X, y))
    assert plan.look


def test_samples_have_half_of_the_cache_and_are_made_wider_with_the_run(monkeypatch):
    X, y = data(1200, 2)
    model = SVC(cache_size=10)
    setup = _setup.Setup(model, Labelled.of(model, X, y, None))
    assert setup.dtype == np.float32 and setup._prepared().dtype == np.float32 and setup.kernel_data().dtype == np.float32
    setup.widen(np.dtype(np.float32))
    assert setup.dtype == np.float32
    setup.widen(np.dtype(np.float64))
    assert setup.dtype == np.float64 and setup._prepared().dtype == np.float64 and setup.source().dtype == np.float64
    np.testing.assert_array_equal(setup.source(np.array([3, 5])).rows, setup.rows.index[[3, 5]])
    given, more = told(monkeypatch, "_setup", "Samples", lambda: SVC(cache_size=10).fit(X, y))
    assert [*given, *more.values()][-1] == 5 * 2**20
    few = SVC()
    unknown = _setup.Setup(few, Labelled.of(few, X[:50], y[:50], None))
    unknown._samples = None
    unknown.widen(np.float32)
    assert unknown._samples is None and unknown.dtype == np.float32


@pytest.mark.parametrize("make", [OneClassSVM, SVR, NuSVR])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_fit_to_one_sample(make, rows, tmp_path):
    """One row, or one several times, which is one sample of more weight."""
    X, t = np.repeat([[1.0, -2.0, 0.5]], rows, axis=0), np.full(rows, 7.0)
    path = tmp_path / "a.ckpt"
    options = {} if make is OneClassSVM else {"C": 100.0}
    for _ in range(2):  # the second goes on from the file
        model = make(checkpoint=path, **options).fit(X, t)
        assert model.status_ == "converged"
        if make is OneClassSVM:
            assert model.dual_coef_.sum() == pytest.approx(0.5 * rows) and model.predict(X).tolist() == [1] * rows
        else:
            np.testing.assert_allclose(model.predict(X), 7.0, atol=0.1 + 1e-3)


METHODS = ("predict", "decision_function", "score_samples", "predict_proba", "coef_", "dual_coef_", "sparsify", "densify")


@pytest.mark.parametrize("make", [SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, DCSVC, DCSVR, BudgetSVC])
def test_what_was_not_fitted_says_so(make):
    X, _ = data(5)
    for name in METHODS:
        model = make(**({"kernel": "linear"} if "kernel" in make().get_params() else {}))
        if name.endswith("_") and make in (LinearSVC, LinearSVR, BudgetSVC):
            continue
        if name == "dual_coef_":
            with pytest.raises(AttributeError, match="fit it first"):
                _ = model.dual_coef_
        elif name == "coef_":
            with pytest.raises(NotFittedError):
                _ = model.coef_
        elif hasattr(model, name):
            with pytest.raises(NotFittedError):
                getattr(model, name)(*([] if name in ("sparsify", "densify") else [X]))
    if hasattr(make(), "_decisions"):
        with pytest.raises(NotFittedError):
            make()._decisions(X, None)
    if hasattr(make(), "_kernel_sums"):
        with pytest.raises(NotFittedError):
            make()._kernel_sums(X, None)
        with pytest.raises(NotFittedError):
            make()._coefficients()
        with pytest.raises(NotFittedError):
            make()._decision_values(X, None)


@pytest.mark.parametrize("make", [LinearSVC, BudgetSVC, DCSVC])
def test_few_rows_are_decided_by_the_thread_that_asks(make, monkeypatch):
    X, y = data(90)
    module = {LinearSVC: "_linear", BudgetSVC: "budget", DCSVC: "_divided"}[make]
    options = {"levels": 1, "stop_level": 1, "k": 2} if make is DCSVC else {}
    model, asked = make(random_state=0, n_jobs=2, **options).fit(X, y), []
    limit = {LinearSVC: "ONE_SLICE", BudgetSVC: "ONE_SLICE", DCSVC: "WORTH_THREADS"}[make]
    work = 90 * (3 if make is LinearSVC else model.support_vectors_.size)
    expected = model.decision_function(X)
    monkeypatch.setattr(f"maxmargin.estimators.{module}.thread_count", lambda jobs: asked.append(jobs) or 1)
    for most, alone in ((work - 1, False), (work, make is not DCSVC), (work + 1, True)):
        asked.clear()
        monkeypatch.setattr(f"maxmargin.estimators.{module}.{limit}", most)
        np.testing.assert_array_equal(model.decision_function(X), expected)
        assert asked == ([] if alone else [2])


def test_scikit_learn_looks_at_whole_numbers_where_more_than_half_of_the_rows_are_classes(monkeypatch):
    asked = []
    monkeypatch.setattr("maxmargin.estimators._labelled.check_classification_targets", lambda y: asked.append(len(y)))
    for y, looks in (
        ([0, 1, 0, 1], 0),
        ([0, 1, 2, 0], 1),
        ([0, 1, 2, 0, 1, 2], 0),
        ([0, 1, 2, 0, 1], 1),
        (["a", "b", "a", "b"], 1),
    ):
        asked.clear()
        encoded_classes(np.array(y), np.ones(len(y)))
        assert len(asked) == looks


def test_a_checkpoint_is_written_durably_every_minute_and_says_what_it_is(monkeypatch, tmp_path):
    X, y = data(30, 2)
    assert SVC().checkpoint_every == LinearSVC().checkpoint_every == DCSVC().checkpoint_every == 60.0
    given, more = told(monkeypatch, "_checkpoints", "write", lambda: SVC(C=3.0, checkpoint=tmp_path / "a").fit(X, y))
    path, header, arrays = given
    assert path == tmp_path / "a" and more == {"durable": True} and len(arrays) == 4
    assert (header["format"], header["layout"], header["done"]) == ("maxmargin checkpoint", 1, True)
    of = header["of"]
    assert (of["machine"], of["C"], of["kernel"], of["fit_intercept"], of["class_weight"]) == (
        "SVC",
        3.0,
        "rbf",
        True,
        [1.0, 1.0],
    )
    assert (of["n_samples"], of["n_features"], of["n_classes"]) == (30, 3, 2) and len(of["samples"]) == 32
    assert "tol" not in of
    (_, header, _), _ = told(monkeypatch, "_checkpoints", "write", lambda: SVR(checkpoint=tmp_path / "b").fit(X, y))
    assert "class_weight" not in header["of"]


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
def test_fits_for_probabilities_are_plain_ones_on_parts_of_the_rows(monkeypatch):
    X, y = data(50, 2)
    fitted, fit = [], SVC.fit
    monkeypatch.setattr(
        SVC, "fit",
        lambda self, X, y, sample_weight=None: fitted.append((self.get_params(), X, y, sample_weight, self._warns))
        or fit(self, X, y, sample_weight),
    )  # fmt: skip
    model = SVC(
        probability=True, C=3.0, warm_start=True, verbose=0, callback=lambda row: None, max_time=1e4, break_ties=False
    )
    model.fit(X, y, np.where(np.arange(50) == 7, 0.0, 2.0))
    assert len(fitted) == 6
    for k, (params, rows, labels, weight, warns) in enumerate(fitted[1:]):
        assert params["probability"] == "deprecated" and params["C"] == 3.0 and params["callback"] is None and not warns
        assert not (params["warm_start"] or params["verbose"] or params["break_ties"]) and params["checkpoint"] is None
        assert 38 <= len(rows) == len(labels) <= 41 and (weight == 2.0).all()
        assert 0.9 * 1e4 / (5 - k) < params["max_time"] <= 1e4 / (5 - k)
    assert not hasattr(SVC().fit(X, y), "_probA")


# ---- borders


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (SVC, "_pair_decisions"),
        (NuSVC, "_pair_decisions"),
        (DCSVC, "_decisions"),
        (LinearSVC, "decision_function"),
        (BudgetSVC, "decision_function"),
    ],
)
def test_a_decision_of_zero_is_for_the_first_of_two_classes(make, values, monkeypatch):
    X, y = data(40, 2)
    model = make().fit(X, np.where(y, "b", "a"))
    border = np.linspace(-1, 1, 5)
    shape = (5,) if values == "decision_function" else (5, 1)
    monkeypatch.setattr(make, values, lambda self, X, coef=None: border.reshape(shape))
    assert model.predict(X[:5]).tolist() == ["a", "a", "a", "b", "b"]


def test_a_joint_problem_begins_at_the_weights_of_all_classes_with_its_one_set_of_cuts(monkeypatch):
    X, y = data(40)
    model = LinearSVC(multi_class="crammer_singer")
    samples = model._data(Labelled.of(model, X, y, None))
    for memory, start, cuts in (
        ({0: Past("cuts", np.ones(4)), 1: Past(None, np.zeros(4)), 2: Past(None, np.full(4, 2.0))}, [1.0, 0.0, 2.0], "cuts"),
        ({0: Past("cuts", None)}, None, "cuts"),
        ({1: Past("cuts", np.ones(4))}, [1.0], None),
    ):
        _, options = told(monkeypatch, "linear", "CrammerSinger", lambda m=memory: model._solver(samples, m))
        assert options["known"] == cuts
        assert (options["start"] is None) if start is None else options["start"].tolist() == np.repeat(start, 4).tolist()


def test_later_chunks_beyond_the_range_of_a_model_are_refused_and_leave_it_as_it_was():
    X, y = data(60, 2)
    far = 1e25 * X
    for gamma in (0.5, "scale"):
        model = BudgetSVC(gamma=gamma, random_state=0).partial_fit(X, y, [0, 1])
        before = model.decision_function(X)
        with pytest.raises(ValueError, match="beyond the range of float32"):
            model.partial_fit(far, y)
        with pytest.raises(ValueError, match="beyond the range of float32"):
            BudgetSVC(gamma=gamma, epochs=1, stream_size=60).fit_stream([(X, y), (far, y)], [0, 1])
        np.testing.assert_array_equal(model.decision_function(X), before)
    double = BudgetSVC(gamma=1e-45, random_state=0).partial_fit(far, y, [0, 1])
    assert double.support_vectors_.dtype == np.float64
    double.partial_fit(2 * far, y)  # which float64 holds
    with pytest.raises(ValueError, match="whose squares overflow"):
        BudgetSVC(gamma=1e-301).fit(1e200 * X, y)
    for classes, table in ((2, "uniform"), (3, "scaled")):
        some = np.arange(60) % classes
        BudgetSVC(merge_table=table, epochs=1, budget=5).fit(X, some)
    with pytest.raises(ValueError, match="is for two classes, y has 3"):
        BudgetSVC(merge_table="uniform").fit(X, np.arange(60) % 3)
