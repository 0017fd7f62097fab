"""DCSVC and DCSVR as a user meets them: exact and early models, limits, odd data, bad parameters."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC, DCSVR, SVC, SVR
from maxmargin.runtime import Control


def moons(n=600, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    return X, np.where(y == 1, "yes", "no")


DIVIDED = {"k": 3, "levels": 2, "sample_size": 100, "random_state": 0}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "linear", "sigmoid"])
def test_exact_equals_svc(kernel, intercept):
    X, y = moons()
    same = {"C": 3.0, "kernel": kernel, "gamma": 0.2, "coef0": 1.0 if kernel == "poly" else 0.0, "tol": 1e-4}
    dc = DCSVC(**same, **DIVIDED, fit_intercept=intercept).fit(X, y)
    svc = SVC(**same, fit_intercept=intercept).fit(X, y)
    assert dc.status_ == "converged" and dc.level_ == 0
    if kernel != "sigmoid":  # not convex: any stationary point is an answer
        assert dc.objective_ == pytest.approx(svc.objective_, rel=2e-3)
        np.testing.assert_allclose(dc.decision_function(X), svc.decision_function(X), atol=0.02)


@pytest.mark.parametrize("machine", ["two", "three", "regression"])
def test_early_solves_the_whole_problem_where_that_is_easy(monkeypatch, machine):
    monkeypatch.setattr("maxmargin.divide.levels.WORTH_A_LOOK", 1500)
    X, y = make_blobs(2000, 4, centers=3 if machine == "three" else 2, random_state=0)
    make, cold = (DCSVR, SVR) if machine == "regression" else (DCSVC, SVC)
    target = np.sign(y - 0.5) if machine == "regression" else y
    easy = make(early=True, random_state=0).fit(X, target)
    assert easy.status_ == "converged" and easy.level_ == 0 and list(easy.levels_["stage"]) == ["whole"]
    alone = cold(fit_intercept=False).fit(X, target)
    assert easy.objective_ == pytest.approx(alone.objective_, abs=easy.dual_gap_ + alone.dual_gap_)
    np.testing.assert_array_equal(easy.predict(X[:20]).round(), alone.predict(X[:20]).round())
    noise = np.random.default_rng(0).permutation(target)
    assert make(early=True, random_state=0).fit(X, noise).status_ == "early"
    below = make(stop_level=1, levels=1, random_state=0).fit(X, target)
    assert below.status_ == "early" and below.level_ == 1  # a level that was asked for is what is given


def test_exact_equals_svr():
    X = np.random.default_rng(0).normal(size=(500, 3))
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    for intercept in (False, True):
        dc = DCSVR(C=2.0, **DIVIDED, fit_intercept=intercept, tol=1e-5).fit(X, y)
        exact = SVR(C=2.0, fit_intercept=intercept, tol=1e-5).fit(X, y)
        assert dc.objective_ == pytest.approx(exact.objective_, rel=1e-3)
        np.testing.assert_allclose(dc.predict(X), exact.predict(X), atol=2e-3)


@pytest.mark.parametrize("rule", ["early", "all", "bcm"])
def test_early_with_one_cluster_equals_exact(rule):
    X, y = moons()
    one = DCSVC(C=3.0, k=1, levels=1, stop_level=1, random_state=0, tol=1e-6, predict_with=rule).fit(X, y)
    exact = DCSVC(C=3.0, levels=0, tol=1e-6).fit(X, y)
    assert one.level_ == 1 and len(one.cluster_intercept_) == 1
    if rule == "bcm":
        agree = np.corrcoef(one.decision_function(X), exact.decision_function(X))[0, 1]
        assert agree > 1 - 1e-6  # an increasing function of the one machine's decision
    else:
        np.testing.assert_allclose(one.decision_function(X), exact.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_early_prediction_asks_the_cluster_that_training_chose(form):
    X, y = moons()
    model = DCSVC(C=3.0, gamma=1.0, stop_level=1, k=4, levels=1, random_state=0).fit(form(X), y)
    router = model._committee.router
    cluster = router.cluster(form(X), 1)
    np.testing.assert_array_equal(cluster[model.support_], model.support_cluster_)
    values = model.decision_function(form(X))
    gram = np.exp(-((X[:, None, :] - X[None, :, :]) ** 2).sum(-1))
    for c in np.unique(cluster):
        mine, own = cluster == c, model.support_cluster_ == c
        coef = model._dual[0, own]
        expected = gram[np.ix_(mine, model.support_[own])] @ coef + model.cluster_intercept_[c, 0]
        np.testing.assert_allclose(values[mine], expected, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(form(X)[5:6]), values[5:6], atol=1e-12)
    assert model.score(form(X), y) > 0.9


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("stop_level", [0, 1])
def test_several_classes_share_the_clusters(multi_class, stop_level):
    X, y = make_blobs(600, centers=8, cluster_std=1.0, random_state=0)
    y = y % 4
    model = DCSVC(C=2.0, gamma=0.5, **DIVIDED, multi_class=multi_class, stop_level=stop_level, fit_intercept=True).fit(X, y)
    problems = 6 if multi_class == "ovo" else 4
    assert model.cluster_intercept_.shape[1] == problems and model.score(X, y) > 0.9
    assert model.decision_function(X).shape == (600, 4)
    if stop_level == 0 and multi_class == "ovo":
        exact = SVC(C=2.0, gamma=0.5).fit(X, y)
        assert (model.predict(X) == exact.predict(X)).mean() > 0.995
    for rule, better_than in (("all", 0.6), ("bcm", 0.4)):  # guessing: 0.25
        assert model.set_params(predict_with=rule).score(X, y) > better_than


@pytest.mark.parametrize("rule", ["early", "all", "bcm"])
def test_regression_predicts_from_a_level(rule):
    X = np.random.default_rng(0).uniform(0, 6, size=(800, 1))
    y = np.sin(X).ravel()
    model = DCSVR(C=10.0, gamma=2.0, epsilon=0.02, **DIVIDED, stop_level=1, predict_with=rule).fit(X, y)
    assert model.level_ == 1 and np.isfinite(model.predict(X)).all()
    if rule == "early":
        assert model.score(X, y) > 0.99


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("value", [0.0, 5.0, 1e-170])
def test_the_committee_of_a_constant_is_finite_and_with_intercepts_that_constant(value, intercept):
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = DCSVR(k=3, levels=1, stop_level=1, random_state=0, predict_with="bcm", fit_intercept=intercept, C=100.0)
    predicted = model.fit(X, np.full(300, value)).predict(X)
    assert np.isfinite(predicted).all() and (predicted >= -0.2).all() and (predicted <= value + 0.2).all()
    if intercept:  # without, a machine falls to 0 far from its cluster
        np.testing.assert_allclose(predicted, value, atol=0.2)


def test_no_point_is_sent_to_a_cluster_without_training_points():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, far = (rng.normal(size=(n, 2)) * np.exp(2 * rng.normal(size=(n, 1))) for n in (300, 2000))
        for kernel in ("rbf", "laplacian", "sigmoid"):
            model = DCSVR(kernel=kernel, k=40, levels=1, stop_level=1, sample_size=20, random_state=0, gamma=0.5)
            router = model.fit(X, X[:, 0])._committee.router
            assert np.isin(router.cluster(far, 1), router.cluster(X, 1)).all()
            assert len(model.cluster_intercept_) == len(np.unique(router.cluster(X, 1)))


def test_coef_exists_only_where_one_machine_predicts():
    X, y = moons(300)
    model = DCSVC(kernel="linear", k=2, levels=1, stop_level=1, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="each cluster has weights of its own"):
        _ = model.coef_
    model.predict_with = "all"
    np.testing.assert_allclose(X @ model.coef_.ravel(), model.decision_function(X), atol=1e-9)


def test_precomputed_and_callable_kernels():
    X, y = moons(300)

    def gram(a, b):
        return np.exp(-((a[:, None, :] - b[None, :, :]) ** 2).sum(-1))

    plan = {"k": 3, "levels": 1, "stop_level": 1, "random_state": 0, "C": 2.0}
    called = DCSVC(kernel=gram, **plan).fit(X, y)
    given = DCSVC(kernel="precomputed", **plan).fit(gram(X, X), y)
    assert called.score(X, y) > 0.9 and given.score(gram(X, X), y) > 0.9
    exact = DCSVC(kernel=gram, k=3, levels=1, C=2.0, tol=1e-5).fit(X, y)
    native = SVC(gamma=1.0, C=2.0, fit_intercept=False, tol=1e-5).fit(X, y)
    assert exact.objective_ == pytest.approx(native.objective_, rel=1e-3)


@pytest.mark.parametrize("stop_level", [0, 1])
def test_weights_equal_repeated_rows(stop_level):
    X, y = moons(300)
    weight = np.random.default_rng(0).integers(0, 3, size=300)
    params = {"C": 2.0, "k": 3, "levels": 1, "stop_level": stop_level, "random_state": 0, "gamma": 1.0}
    weighted = DCSVC(**params).fit(X, y, sample_weight=weight)
    repeated = DCSVC(**params).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-9)
    balanced = DCSVC(**params, class_weight="balanced").fit(X, y)
    assert balanced.class_weight_.shape == (2,)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_time_up_without_levels_leaves_no_pair_of_classes_out(multi_class):
    X, y = make_blobs(400, centers=5, cluster_std=0.5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine = DCSVC(levels=0, max_time=1e-9, multi_class=multi_class, C=10.0, working_set_size=20, fit_intercept=True)
        model = machine.fit(X, y)
    assert model.status_ == "max_time" and model.level_ == 0 and len(model.levels_) == 0
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("stop_level", [0, 1])
def test_odd_data(stop_level):
    same = DCSVC(k=4, levels=2, stop_level=stop_level, random_state=0)
    X, y = np.ones((50, 2)), np.arange(50) % 2
    assert np.isfinite(same.fit(X, y).decision_function(X)).all()
    few = DCSVC(k=100, levels=2, stop_level=stop_level, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    assert few.predict([[0.0]]).shape == (1,)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 2)), 50 + rng.normal(size=(80, 2))])
    apart = DCSVC(k=2, levels=1, stop_level=stop_level, gamma=0.5, random_state=0).fit(X, np.repeat([0, 1], 80))
    assert apart.score(X, np.repeat([0, 1], 80)) == 1.0
    far = apart.decision_function([[1e6, -1e6], [0.0, 0.0]])
    assert np.isfinite(far).all()
    if stop_level:  # both clusters have one class, which is what they predict
        assert sorted(apart.cluster_intercept_.ravel()) == [-1.0, 1.0]


@pytest.mark.parametrize("intercept", [False, True])
def test_clusters_of_one_class_are_solved_where_alpha_0_is_not_their_optimum(intercept):
    rng = np.random.default_rng(0)
    X, y = np.concatenate([rng.normal(size=(80, 2)), 50 + rng.normal(size=(80, 2))]), np.repeat([0, 1], 80)
    level = DCSVC(k=2, levels=1, stop_level=1, gamma=0.5, random_state=0, fit_intercept=intercept).fit(X, y)
    exact = SVC(gamma=0.5, fit_intercept=False).fit(X, y)
    if intercept:
        assert len(level.support_) == 0 and level.level_objective_ == 0
        return
    assert level.levels_["bound"][0] == 0 and level.level_objective_ == pytest.approx(exact.objective_, rel=1e-3)
    for rule in ("early", "all", "bcm"):
        assert level.set_params(predict_with=rule).score(X, y) == 1.0


def test_levels_are_fewer_for_small_data_and_early_means_64_clusters():
    X, y = moons(500)
    assert len(DCSVC(random_state=0).fit(X[:150], y[:150]).levels_) == 1
    assert DCSVC(random_state=0, stop_level=1).fit(X, y).levels_["clusters"].tolist() == [4]
    X, y = moons(7000)
    early = DCSVC(early=True, random_state=0, gamma=2.0, C=5.0).fit(X, y)
    assert early.level_ == 3 and early.levels_["clusters"][-1] >= 64
    assert early.timings_["whole"] == 0 and early.score(X, y) > 0.9


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 8, 50, 64, 1000])
def test_the_levels_that_are_meant(k):
    """As documented, for any number of samples: 4 levels or those down to stop_level, early those of about 64 clusters;
    fewer where the clusters of the bottom would have less than 1,000 samples, 100 if a level is the answer."""
    for n in (50, 99, 100, 399, 400, 5_000, 10**6, 10**12, 10**40):
        for stop in (0, 1, 3, 6, None):
            model = DCSVC(k=k, early=True) if stop is None else DCSVC(k=k, stop_level=stop)
            plan = model._plan(n, Control())
            most = 4 if stop is None else max(4, stop)
            if stop is None:
                near = [abs(level * np.log(k) - np.log(64)) for level in range(1, 8)]
                most = 1 if k == 1 else 1 + int(np.argmin(near))
            least = 1000 if stop == 0 else 100
            assert plan.levels == max(level for level in range(most + 1) if level == 0 or n >= least * k**level)
            assert plan.stop_level == min(most if stop is None else stop, plan.levels)
            given = model.set_params(levels=2)._plan(n, Control())
            assert given.levels == 2 and given.stop_level == min(most if stop is None else stop, 2)


def test_models_survive_pickling():
    X, y = moons(300)
    model = DCSVC(k=4, levels=1, stop_level=1, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_float32_data_stays_float32():
    X, y = moons(300)
    model = DCSVC(k=4, levels=1, stop_level=1, random_state=0).fit(X.astype(np.float32), y)
    assert model.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(model.decision_function(X), model.decision_function(X.astype(np.float32)), atol=1e-6)


def test_max_iter_is_reported_as_such():
    X, y = moons(2000)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = DCSVC(C=100.0, gamma=20.0, k=2, levels=1, max_iter=1, working_set_size=16, random_state=0).fit(X, y)
    assert model.status_ == "max_iter" and np.isnan(model.levels_["bound"][-1])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"k": 0}, "k=0 must be an integer"),
        ({"k": 2.5}, "k=2.5 must be an integer"),
        ({"levels": -1}, "levels=-1"),
        ({"levels": 2, "stop_level": 3}, "stop_level=3 is below the bottom"),
        ({"stop_level": -1}, "stop_level=-1"),
        ({"early": True, "stop_level": 1}, "early=True chooses the level itself"),
        ({"early": True, "levels": 0}, "levels=0 has none"),
        ({"early": "yes"}, "early='yes' must be True or False"),
        ({"predict_with": "vote"}, "predict_with='vote' is unknown"),
        ({"sample_size": 1}, "sample_size=1"),
        ({"multi_class": "all"}, "multi_class='all' is unknown"),
        ({"C": 0}, "C=0 must be a number"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_parameters_get_clear_errors(params, message):
    X, y = moons(60)
    with pytest.raises(ValueError, match=message):
        DCSVC(**params).fit(X, y)


def test_numpy_integers_do_not_overflow():
    X, y = moons(60)
    model = DCSVC(k=np.int32(50000), levels=np.int64(4), stop_level=np.int64(4), random_state=0).fit(X, y)
    assert model.level_ == 4 and model.levels_["clusters"][0] > 1


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = moons(200)
    model = DCSVC(k=2, levels=1, random_state=0).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="classes has to be greater than one"):
        model.fit(X, np.zeros(200))
    np.testing.assert_array_equal(model.decision_function(X), before)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)
