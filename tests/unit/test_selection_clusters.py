"""DCSVCCV: every cell against fits of its own in every cluster, the model, and how a search ends."""

from __future__ import annotations

import pickle
import signal
import warnings
from itertools import chain
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from maxmargin import DCSVC, SVC
from maxmargin.selection import DCSVCCV
from maxmargin.selection.clusters import ClusterFolds, _Race

GRID: dict[str, Any] = {"Cs": [0.3, 30.0], "gammas": [0.5, 4.0]}
SMALL: dict[str, Any] = {"samples_per_cluster": 100, "cv": 3, "random_state": 0, "tol": 1e-5, "search": "grid"}

pytestmark = pytest.mark.filterwarnings("ignore:.*edge of the grid")


def clusters_of(model: Any, X: Any) -> np.ndarray:
    """By the rule that prediction uses, which is that of training."""
    router = model._committee.router
    return np.zeros(X.shape[0], np.int64) if router is None else router.cluster(X, 1)


def brute(X: Any, y: Any, label: Any, params: Any, fold: Any, weight: Any, **options: Any) -> tuple[float, float, float]:
    """(objective, gap, accuracy) of machines that are fitted to each cluster's rows of the fold."""
    train, test = fold
    objective = gap = right = 0.0
    for c in np.unique(label):
        mine, judged = train[label[train] == c], test[label[test] == c]
        classes = np.unique(y[mine])
        if len(classes) < 2 and options.get("fit_intercept"):
            right += weight[judged[y[judged] == classes[:1]]].sum() if len(classes) else 0.0
            continue
        if len(classes) < 2:  # no intercept: the QP of one class, by a point of another that has no weight
            X2, y2 = np.vstack([X[mine], X[:1]]), np.append(y[mine], 1 - classes[0])
            C = np.append(weight[mine], 1e-9)
            one = SVC(fit_intercept=False, tol=1e-7, **options, **params).fit(X2, y2, C) if len(mine) else None
            objective += one.objective_ if one is not None else 0.0
            right += weight[judged[y[judged] == classes[0]]].sum()
            continue
        machine = SVC(tol=1e-7, **{"fit_intercept": False, **options}, **params).fit(X[mine], y[mine], weight[mine])
        objective, gap = objective + machine.objective_, gap + machine.dual_gap_
        right += weight[judged] @ (machine.predict(X[judged]) == y[judged]) if len(judged) else 0.0
    return objective, gap, right / weight[test].sum()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_cell_is_the_sum_of_its_clusters(fit_intercept: bool, weighted: bool) -> None:
    X, y = make_moons(500, noise=0.4, random_state=1)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(y)) if weighted else np.ones(len(y))
    given = {"sample_weight": weight} if weighted else {}
    model = DCSVCCV(**GRID, **SMALL, fit_intercept=fit_intercept).fit(X, y, **given)
    label = clusters_of(model, X)
    assert model.n_clusters_ == len(np.unique(label)) > 2 and set(model.cv_results_["status"]) == {"certified"}
    for cell, params in enumerate(model.cv_results_["params"]):
        for k, fold in enumerate(StratifiedKFold(3).split(X, y)):
            objective, gap, score = brute(X, y, label, params, fold, weight, fit_intercept=fit_intercept)
            mine, bound = (model.cv_results_[f"split{k}_{what}"][cell] for what in ("objective", "gap"))
            assert 0 <= bound <= 1e-4 * mine
            assert mine - bound <= objective * (1 + 1e-7) and objective - gap <= mine * (1 + 1e-7)
            assert abs(model.cv_results_[f"split{k}_test_score"][cell] - score) <= 2.01 / len(fold[1])  # ties of rounding


def test_the_model_is_the_early_one_in_the_same_clusters() -> None:
    X, y = make_moons(800, noise=0.3, random_state=0)
    model = DCSVCCV(**GRID, **SMALL).fit(X, y)
    assert model.status_ == "early" and model.levels_["clusters"].tolist() == [model.n_clusters_]
    assert model.level_gap_ <= 1e-3 * model.level_objective_
    label, total = clusters_of(model, X), 0.0
    decisions = model.decision_function(X)
    for c in np.unique(label):
        if len(np.unique(y[label == c])) < 2:
            continue
        own = SVC(C=model.C_, gamma=model.gamma_, fit_intercept=False, tol=1e-7).fit(X[label == c], y[label == c])
        total += own.objective_
        np.testing.assert_allclose(decisions[label == c], own.decision_function(X[label == c]), atol=1e-2)
    assert total <= model.level_objective_ * (1 + 1e-6)
    plain = model.chosen()
    assert type(plain) is DCSVC and (plain.predict(X) == model.predict(X)).all() and plain.C == model.C_


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3, 1e6])
def test_clusters_see_what_is_near_however_narrow_the_kernel(kernel: str, gamma: float) -> None:
    """Two groups far apart, and a kernel that may be 0 between any two points: the groups are the clusters."""
    X, group = make_blobs(200, 2, centers=[[-10, 0], [10, 0]], random_state=0)
    y = np.random.default_rng(0).integers(0, 2, 200)
    model = DCSVCCV(Cs=[1.0], gammas=[gamma], kernel=kernel, **SMALL).fit(X, y)
    assert model.n_clusters_ == 2 and len(set(zip(clusters_of(model, X), group))) == 2


def test_of_many_small_clusters_the_model_is_that_of_larger_ones_if_there_is_time() -> None:
    X, y = make_moons(1500, noise=0.3, random_state=0)
    plan = {**GRID, **SMALL, "samples_per_cluster": 10}
    model = DCSVCCV(**plan).fit(X, y)
    same = {name: getattr(model, name) for name in ("tol", "sample_size", "random_state")}
    usual = DCSVC(C=model.C_, gamma=model.gamma_, early=True, **same).fit(X, y)
    assert model.n_clusters_ > 64 and model.status_ == usual.status_
    assert model.levels_["clusters"].tolist() == usual.levels_["clusters"].tolist()
    np.testing.assert_array_equal(model.decision_function(X), usual.decision_function(X))
    stopped = DCSVCCV(**plan, callback=lambda row: True).fit(X, y)
    assert stopped.status_ == "early" and stopped.levels_["clusters"].tolist() == [stopped.n_clusters_]


def test_exact_goes_on_to_the_whole_problem() -> None:
    X, y = make_moons(400, noise=0.3, random_state=0)
    model = DCSVCCV(Cs=[1.0], gammas=[2.0], **SMALL, exact=True).fit(X, y)
    whole = SVC(C=1.0, gamma=2.0, fit_intercept=False, tol=1e-7).fit(X, y)
    assert model.status_ == "converged" and model.level_ == 0
    assert abs(model.objective_ - whole.objective_) <= 1e-4 * whole.objective_


def test_a_C_for_each_cluster() -> None:
    X, y = make_moons(900, noise=0.35, random_state=0)
    options = {"Cs": [0.01, 1.0, 100.0], "gammas": [1.0, 4.0], **SMALL}
    model = DCSVCCV(**options, choice="cluster").fit(X, y)
    assert model.cluster_C_.shape == (model.n_clusters_,) and set(model.cluster_C_) <= {0.01, 1.0, 100.0}
    label, decisions = clusters_of(model, X), model.decision_function(X)
    folds = list(StratifiedKFold(3).split(X, y))

    def right(C: float, mine: Any) -> int:
        total = 0
        for train, test in folds:
            a, b = np.intersect1d(train, mine), np.intersect1d(test, mine)
            one = SVC(C=C, gamma=model.gamma_, fit_intercept=False, tol=1e-6).fit(X[a], y[a])
            total += int((one.predict(X[b]) == y[b]).sum())
        return total

    for c in range(model.n_clusters_):
        mine = np.flatnonzero(label == c)
        if min(len(np.unique(y[np.intersect1d(train, mine)])) for train, _ in folds) < 2:
            continue
        C = float(model.cluster_C_[c])
        assert right(C, mine) >= max(right(other, mine) for other in (0.01, 1.0, 100.0)) - 1  # ties of rounding
        own = SVC(C=C, gamma=model.gamma_, fit_intercept=False, tol=1e-7).fit(X[mine], y[mine])
        np.testing.assert_allclose(decisions[mine], own.decision_function(X[mine]), atol=1e-2)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes_sparse_rows_and_class_weights(multi_class: str) -> None:
    X, y = make_classification(600, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    options = {**GRID, **SMALL, "multi_class": multi_class, "class_weight": "balanced"}
    model = DCSVCCV(**options).fit(X, y)
    assert set(model.cv_results_["status"]) == {"certified"} and model.best_score_ > 0.6
    sparse = DCSVCCV(**options).fit(sp.csr_matrix(X), y)
    assert abs(sparse.best_score_ - model.best_score_) < 0.02
    assert (sparse.predict(sp.csr_matrix(X)) == model.predict(X)).mean() > 0.95
    # One cluster: the scores are those of the machine itself.
    one = DCSVCCV(**{**options, "samples_per_cluster": 1000, "Cs": [1.0], "gammas": [0.5]}).fit(X, y)
    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        own = DCSVC(C=1.0, gamma=0.5, levels=0, multi_class=multi_class, class_weight="balanced", tol=1e-6)
        score = own.fit(X[train], y[train]).score(X[test], y[test])
        assert abs(one.cv_results_[f"split{k}_test_score"][0] - score) <= 1.01 / len(test)


def test_any_scorer_and_splits_that_overlap() -> None:
    X, y = make_moons(500, noise=0.4, random_state=1)
    model = DCSVCCV(Cs=[1.0], gammas=[1.0], **{**SMALL, "samples_per_cluster": 1000}, scoring="roc_auc").fit(X, y)
    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        own = SVC(C=1.0, gamma=1.0, fit_intercept=False, tol=1e-7).fit(X[train], y[train])
        area = roc_auc_score(y[test], own.decision_function(X[test]))
        assert abs(model.cv_results_[f"split{k}_test_score"][0] - area) < 1e-3
    cv = ShuffleSplit(4, test_size=0.5, random_state=0)
    plain, named = (DCSVCCV(**GRID, **{**SMALL, "cv": cv}, scoring=s).fit(X, y) for s in (None, "accuracy"))
    np.testing.assert_allclose(plain.cv_results_["mean_test_score"], named.cv_results_["mean_test_score"], atol=1e-3)


def test_halving_says_what_it_left_and_threads_change_nothing() -> None:
    X, y = make_moons(3000, noise=0.3, random_state=0)
    options = {"Cs": 4, "gammas": 4, "samples_per_cluster": 60, "cv": 3, "random_state": 0}
    one, two = (DCSVCCV(**options, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    status = one.cv_results_["status"]
    assert (status == "halved").sum() == 14 and (status == "certified").sum() == 2
    assert np.isnan(one.cv_results_["mean_test_score"][status == "halved"]).all()
    assert one.best_params_ == two.best_params_ and one.best_score_ == two.best_score_
    every = DCSVCCV(**options, search="grid").fit(X, y)
    assert one.best_score_ >= every.best_score_ - 0.01 and every.search_status_ == "converged"


def test_a_search_that_is_stopped_has_a_model() -> None:
    X, y = make_moons(3000, noise=0.3, random_state=0)
    options = {"Cs": 5, "gammas": 5, "samples_per_cluster": 100, "cv": 3, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        late = DCSVCCV(**options, max_time=1e-3).fit(X, y)
        assert late.search_status_ == "max_time" and late.predict(X).shape == y.shape
        rows: list[Any] = []
        stopped = DCSVCCV(**options, callback=lambda row: rows.append(row) or len(rows) == 9).fit(X, y)
    assert stopped.search_status_ == "callback" and stopped.status_ == "early" and stopped.score(X, y) > 0.8

    def press(row: dict[str, float]) -> bool:
        if len(rows) == 9:
            signal.raise_signal(signal.SIGINT)
        rows.append(row)
        return False

    with pytest.warns(ConvergenceWarning, match="before all settings were tried"):
        model = DCSVCCV(**options, callback=press).fit(X, y)
    assert model.search_status_ == "interrupted" and model.status_ == "early"


@given(st.lists(st.sampled_from([0.25, 0.5, 1.0, np.nan]), max_size=6), st.booleans())
def test_the_leader_is_the_best_of_those_that_have_a_score(scores: list[float], judged: bool) -> None:
    """The first of several; nobody leads where nothing is known."""
    race = _Race.__new__(_Race)
    race.seen, race.left = np.array([False, judged]), list(range(10, 10 + len(scores)))
    race._mean = lambda cell: scores[cell - 10]  # type: ignore[method-assign]
    known = [score for score in scores if score == score]
    assert race.leader() == (10 + scores.index(max(known)) if judged and known else None)


@pytest.mark.parametrize("stop", [{"max_time": 1e-9}, {"callback": lambda row: True}], ids=["before", "at once"])
def test_clusters_of_which_little_is_known_have_the_C_of_all(stop: dict[str, Any]) -> None:
    """One C for each cluster that there is by then, and for the whole if there is none."""
    X, y = make_moons(600, noise=0.3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DCSVCCV(**GRID, **SMALL, choice="cluster", **stop).fit(X, y)
    assert model.cluster_C_.tolist() == [model.best_params_["C"]] * max(1, model.n_clusters_)
    assert (model.n_clusters_ == 0) == ("max_time" in stop) and model.predict(X).shape == y.shape


@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_rungs_of_a_ninth_and_a_third_of_the_rows(count: int, cells: int, seed: int, halving: bool) -> None:
    """Every cluster is on one rung; a rung ends with the cluster that makes its share of the rows full."""
    sizes = np.random.default_rng(seed).integers(1, 50, count).tolist()
    engine = ClusterFolds.__new__(ClusterFolds)
    engine.halving, engine._random = halving, np.random.RandomState(seed)
    engine._members = [np.arange(size) for size in sizes]
    rungs = engine._rungs(cells)
    assert sorted(chain(*rungs)) == list(range(len(sizes)))
    steps = sum(cells >= 3**k for k in (1, 2)) if halving and len(sizes) >= 27 else 0
    assert len(rungs) == steps + 1
    for k in range(steps):
        until = list(chain(*rungs[: k + 1]))
        share = sum(sizes) / 3 ** (steps - k)
        assert sum(sizes[c] for c in until) >= share > sum(sizes[c] for c in until[:-1]) - 1e-9


def test_without_a_refit_there_is_the_table_and_nothing_of_the_samples() -> None:
    X, y = make_moons(4000, noise=0.3, random_state=0)
    model = DCSVCCV(**GRID, **{**SMALL, "samples_per_cluster": 400, "tol": 1e-3}, refit=False).fit(X, y)
    assert model.C_ in (0.3, 30.0) and len(pickle.dumps(model)) < X.nbytes / 2 and not hasattr(model, "support_")


def test_bad_parameters_are_named() -> None:
    X, y = make_moons(100, random_state=0)
    for options, word in (
        ({"samples_per_cluster": 1}, "samples_per_cluster"), ({"search": "all"}, "search"), ({"Cs": [-1.0]}, "C="),
        ({"kernel": "precomputed"}, "kernel"), ({"exact": 1}, "exact"), ({"choice": "none"}, "choice"),
        ({"choice": "cluster", "exact": True}, "exact"), ({"gammas": []}, "gammas"), ({"multi_class": "all"}, "multi_class"),
        ({"predict_with": "none"}, "predict_with"), ({"kernel": lambda a, b: a @ b.T}, "kernel"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=word):
            DCSVCCV(**{**GRID, **options}).fit(X, y)
