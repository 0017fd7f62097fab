"""LinearSVCCV and LinearSVRCV: every cell against a fit of its own, what is carried over, how a search ends."""

from __future__ import annotations

import pickle
import signal
import threading
import warnings
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold

from maxmargin import LinearSVC, LinearSVR
from maxmargin.linear import LinearProblem, drive, make
from maxmargin.runtime import Control
from maxmargin.selection import LinearSVCCV, LinearSVRCV
from maxmargin.selection.paths import Paths

CS = [1e-3, 0.1, 10.0]


def samples(n: int = 700, classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    return make_classification(n, 8, n_informative=5, n_classes=classes, flip_y=0.2, random_state=seed)


def cells_agree(model: Any, brute: Any, X: Any, y: Any, weight: Any = None) -> None:
    """Every fold's objective is that of a fit of its own to the fold's rows, as far as both are proven."""
    n = X.shape[0]
    folds = list(StratifiedKFold(5).split(np.zeros(n), y)) if hasattr(model, "classes_") else None
    if folds is None:
        from sklearn.model_selection import KFold

        folds = list(KFold(5).split(np.zeros(n)))
    for cell, params in enumerate(model.cv_results_["params"]):
        for k, (train, _) in enumerate(folds):
            own = brute(**params).fit(X[train], y[train], None if weight is None else weight[train])
            objective, gap = (model.cv_results_[f"split{k}_{what}"][cell] for what in ("objective", "gap"))
            if np.isnan(objective):
                assert model.cv_results_["status"][cell] == "dropped"
                continue
            assert gap <= model.tol * objective * (1 + 1e-9)
            assert objective - gap <= own.objective_ * (1 + 1e-12)  # the bound is one
            assert objective >= (own.objective_ - own.dual_gap_) * (1 - 1e-12)


@pytest.mark.parametrize("n", [300, 700])  # up to 500 rows equal ones are merged
@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "hinge"}, {"intercept_scaling": None}, {"loss": "hinge", "intercept_scaling": None}, {"solver": "ocas"},
     {"solver": "descent", "loss": "hinge"}, {"solver": "descent"}, {"class_weight": "balanced"}, {"fit_intercept": False}],
    ids=str,
)  # fmt: skip
def test_every_cell_is_the_solution_of_its_fold(options: dict[str, Any], n: int) -> None:
    X, y = samples(n)
    tol = 1e-4 if options.get("solver") else 1e-6
    model = LinearSVCCV(Cs=CS, tol=tol, **options).fit(X, y)
    cells_agree(model, lambda **p: LinearSVC(tol=1e-8 if tol < 1e-5 else tol, max_iter=-1, **options, **p), X, y)


@pytest.mark.parametrize("n", [499, 500, 501])
@pytest.mark.filterwarnings("ignore:.*edge of the grid")
def test_equal_rows_are_as_many_on_either_side_of_the_limit(n: int) -> None:
    """Up to it each fold merges its own, beyond it all folds are weights of the same samples: never both."""
    X, y = (part[np.arange(n) % (n // 2)] for part in samples(n))
    cells_agree(LinearSVCCV(Cs=CS, tol=1e-6).fit(X, y), lambda **p: LinearSVC(tol=1e-8, **p), X, y)


def test_several_classes_weights_and_sparse_rows() -> None:
    X, y = samples(600, classes=3)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], len(y))
    model = LinearSVCCV(Cs=CS).fit(X, y, sample_weight=weight)
    cells_agree(model, lambda **p: LinearSVC(tol=1e-8, **p), X, y, weight)
    sparse = LinearSVCCV(Cs=CS).fit(sp.csr_matrix(X.astype(np.float32)), y, sample_weight=weight)
    assert sparse.C_ == model.C_ and abs(sparse.best_score_ - model.best_score_) < 0.01


def test_the_choice_is_that_of_a_grid_search_with_any_scorer() -> None:
    X, y = samples(800)
    for scoring in (None, "roc_auc", "f1"):
        model = LinearSVCCV(Cs=CS, scoring=scoring, tol=1e-8).fit(X, y)
        search = GridSearchCV(LinearSVC(tol=1e-8), {"C": CS}, scoring=scoring, cv=5).fit(X, y)
        known = ~np.isnan(model.cv_results_["mean_test_score"])
        np.testing.assert_allclose(
            model.cv_results_["mean_test_score"][known], search.cv_results_["mean_test_score"][known], atol=2e-3
        )
        assert model.best_score_ >= search.best_score_ - 2e-3
        np.testing.assert_allclose(model.coef_, LinearSVC(C=model.C_, tol=1e-8).fit(X, y).coef_, rtol=1e-3, atol=1e-4)


def test_regression_with_tubes() -> None:
    X, y = make_regression(600, 6, noise=10.0, random_state=0)
    model = LinearSVRCV(Cs=[0.01, 1.0, 100.0], epsilons=[0.0, 5.0]).fit(X, y)
    assert set(model.best_params_) == {"C", "epsilon"} and model.C_ >= 1 and model.status_ == "converged"
    assert model.epsilon_ in (0.0, 5.0)
    cells_agree(model, lambda **p: LinearSVR(tol=1e-8, **p), X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["descent", "ocas"])
def test_duals_of_the_rows_that_folds_share_make_a_cut(loss: str, solver: str) -> None:
    X, y = samples(400)
    sign, half = np.where(y == 1, 1.0, -1.0), np.arange(400) % 4 != 0
    other = np.arange(400) % 4 != 1

    def fold(rows: Any) -> LinearProblem:
        return LinearProblem(X, sign, rows.astype(float), 0.5, loss=loss, bias=1.0, penalised=True)

    first = drive(make(fold(half), 1e-8, solver), Control())
    best = drive(make(fold(other), 1e-10, "auto"), Control())
    assert first.duals[0] is not None
    seeded = make(fold(other), 1e-3, solver, duals=first.duals[0], start=first.w)
    for _ in seeded.seed_duals():
        pass
    assert 0 < seeded.bundle.lower <= best.objective * (1 + 1e-12)
    result = drive(seeded, Control())
    assert result.lower <= best.objective * (1 + 1e-12) <= result.objective * (1 + 1e-9)
    # A cut of the other fold as it is would not be one: it counts rows that are not there.
    assert np.abs(first.duals[0][~other]).sum() > 0


@pytest.mark.parametrize("n", [200, 700])  # beyond 500 rows folds are weights of the same samples, and share duals
@pytest.mark.filterwarnings("ignore:.*edge of the grid")
def test_a_fold_begins_where_the_one_before_has_come_to(n: int) -> None:
    X, y = samples(n)
    begun: list[tuple[int, Any]] = []
    ends: dict[int, Any] = {}
    original = Paths._outcome

    def outcome(self: Paths, cell: int, params: Any, fold: int, deadline: Any) -> Any:
        key = self._key(params)
        if (key, fold) not in self._memory:
            begun.append((fold, self._from_before(key, fold, self._samples(self.make(params), key, fold))))
        out = original(self, cell, params, fold, deadline)
        ends.setdefault(fold, self._memory[key, fold])
        return out

    with mock.patch.object(Paths, "_outcome", outcome):
        LinearSVCCV(Cs=[0.1, 1.0], cv=4, loss="hinge").fit(X, y)
    assert [fold for fold, _ in begun] == [0, 1, 2, 3] and begun[0][1] == {}
    for fold, memory in begun[1:]:
        np.testing.assert_array_equal(memory[0].start, ends[fold - 1][0].start)
        assert memory[0].cuts is None and (memory[0].duals is not None) == (n > 500)


def test_rows_without_weight_do_not_slow_a_fit_down() -> None:
    X, y = samples(2000)
    some = np.arange(2000) % 5 != 0
    for loss in ("hinge", "squared_hinge"):
        with_zeros = LinearSVC(C=0.1, loss=loss).fit(X, y, sample_weight=some.astype(float))
        without = LinearSVC(C=0.1, loss=loss).fit(X[some], y[some])
        assert abs(with_zeros.objective_ - without.objective_) <= 2e-6 * without.objective_
        assert with_zeros.n_iter_ <= 2 * without.n_iter_ + 10


def test_groups_lists_of_splits_and_a_class_that_a_fold_does_not_see() -> None:
    X, y = samples(200, classes=3)
    groups = np.arange(200) % 7
    model = LinearSVCCV(Cs=CS, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert model.n_splits_ == 3 and model.search_status_ == "converged"
    rare = np.where(np.arange(200) < 3, 2, y % 2)
    splits = [(np.arange(3, 200), np.arange(3)), (np.arange(100), np.arange(100, 200))]
    model = LinearSVCCV(Cs=CS, cv=splits).fit(X, rare)
    assert model.cv_results_["split0_test_score"][0] == 0.0 and len(model.classes_) == 3


def test_a_search_that_is_stopped_has_a_model() -> None:
    X, y = samples(3000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        late = LinearSVCCV(Cs=20, tol=1e-9, max_time=1e-3).fit(X, y)
        assert late.search_status_ == "max_time" and late.coef_.shape == (1, 8)
        assert "not tried" in late.cv_results_["status"].tolist()
        seen: list[float] = []
        stopped = LinearSVCCV(Cs=5, callback=lambda row: seen.append(row["folds"]) or len(seen) == 7).fit(X, y)
    assert stopped.search_status_ == "callback" and len(seen) == 7 and stopped.status_ == "converged"
    assert np.isfinite(stopped.best_score_)


def test_ctrl_c_ends_the_search_and_not_the_refit() -> None:
    X, y = samples(3000)

    def press(row: dict[str, float]) -> bool:
        if row["folds"] == 6:
            signal.raise_signal(signal.SIGINT)
        return False

    assert threading.current_thread() is threading.main_thread()
    with pytest.warns(ConvergenceWarning, match="before all settings were tried"):
        model = LinearSVCCV(Cs=5, callback=press).fit(X, y)
    assert model.search_status_ == "interrupted" and model.status_ == "converged"


def test_bad_parameters_are_named() -> None:
    X, y = samples(60)
    for options, word in (
        ({"Cs": []}, "Cs"), ({"Cs": [0.0]}, "C="), ({"Cs": 0}, "Cs"), ({"search": "all"}, "search"),
        ({"loss": "log"}, "loss"),
        ({"cv": 1}, "k-fold"), ({"scoring": "no such"}, "scoring"), ({"refit": 2}, "refit"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=word):
            LinearSVCCV(**{"Cs": [1.0], **options}).fit(X, y)
    with pytest.raises(ValueError, match="epsilon"):
        LinearSVRCV(epsilons=[-1.0]).fit(X, y.astype(float))


def test_a_search_leaves_no_samples_behind() -> None:
    X, y = samples(2000)
    for refit in (False, True):
        model = LinearSVCCV(Cs=[0.1, 1.0], refit=refit).fit(X, y)
        assert len(pickle.dumps(model)) < X.nbytes / 4 and hasattr(model, "coef_") == refit
        assert model.C_ in (0.1, 1.0)


def test_extend_and_halving() -> None:
    X, y = samples(3000)
    model = LinearSVCCV(Cs=[1e-7, 1e-6], extend=True).fit(X, y)
    tried = np.asarray(model.cv_results_["param_C"])
    assert tried.min() < model.C_ < tried.max() and len(tried) > 2
    halved = LinearSVCCV(Cs=9, search="halving", random_state=0).fit(X, y)
    assert "halved" in halved.cv_results_["status"].tolist() and halved.status_ == "converged"
