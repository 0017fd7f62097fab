"""How a search ends before its end, what it drops, what it says of it; the grid; bad input."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold

import maxmargin
from maxmargin import SVC, SVCCV, SVRCV, LinearSVCCV, NuSVCCV, certify_fit
from maxmargin.estimators._labelled import Labelled
from maxmargin.runtime import Deadline, Turn
from maxmargin.selection import DCSVCCV, EdgeWarning, kernel
from maxmargin.selection.board import Board, Outcome
from maxmargin.selection.fits import turn_of
from maxmargin.selection.folds import Fold
from maxmargin.selection.grid import Grid
from maxmargin.selection.kernel import KernelFolds
from maxmargin.selection.plan import Plan
from maxmargin.selection.search import Search, Task

GRID = {"Cs": [0.1, 1.0, 10.0, 100.0], "gammas": [0.05, 0.5, 5.0], "cv": 3, "n_jobs": 1}


def data(n: int = 150, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + X[:, 1] ** 2 + 0.4 * rng.normal(size=n) > 1).astype(int)


def fitted(search: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(X, y)


def true_of(search: Any, X: Any, y: Any) -> None:
    """Whatever the table calls certified is right, and the model is one of its cells."""
    table = search.cv_results_
    full = GridSearchCV(SVC(n_jobs=1), {"C": GRID["Cs"], "gamma": GRID["gammas"]}, cv=3).fit(X, y).cv_results_
    expected = {tuple(p.values()): s for p, s in zip(full["params"], full["mean_test_score"])}
    for params, status, mean, bound in zip(*(table[k] for k in ("params", "status", "mean_test_score", "score_bound"))):
        truth = expected[tuple(params.values())]
        assert status in ("certified", "dropped", "not tried", "halved")
        assert (status == "certified") == (not np.isnan(mean))
        if status == "certified":
            assert mean == pytest.approx(truth, abs=0.014)  # two rows: where tol leaves the sign open
        if status == "dropped":
            assert truth <= bound + 1e-9 < search.best_score_ + 1e-9
    assert search.best_params_ == {"C": search.C_, "gamma": search.gamma_}
    assert certify_fit(search, X, y).violation <= 2 * search.tol or search.status_ != "converged"


@pytest.mark.parametrize("cache_size", [200.0, 0.02], ids=["matrix", "chain"])
def test_what_is_dropped_does_not_depend_on_when_folds_end(cache_size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the search looks at them one by one or all at once, in one thread or more."""
    X, y = data(200)
    tables = []
    for seconds, threads in ((1e-5, 1), (1e-4, 2), (60.0, 1), (60.0, 3)):
        monkeypatch.setattr(kernel, "SLICE", seconds)
        grid = {**GRID, "cv": 5, "n_jobs": threads}
        tables.append(fitted(SVCCV(**grid, tol=1e-6, cache_size=cache_size), X, y).cv_results_)
    assert "dropped" in tables[0]["status"]
    for table in tables[1:]:
        for name in ("status", "mean_test_score", "score_bound", "split0_test_score"):
            np.testing.assert_array_equal(table[name], tables[0][name], err_msg=name)


def test_in_rounds_every_problem_comes_once_and_after_what_it_begins_from() -> None:
    """Of a plan with some folds known already, and whatever the order of the folds."""
    X, y = data(60)
    y = y + (X[:, 0] > 1)
    task = Task(Labelled.of(SVC(), X, y, None), y, [Fold(*split) for split in StratifiedKFold(4).split(X, y)])
    engine = KernelFolds(task, lambda params: SVC(n_jobs=1, **params), None, "C")
    sizes = [0.1, 1.0, 10.0]
    for wanted in ({(k, fold) for k in range(3) for fold in range(4)}, {(0, 3), (1, 1), (2, 1), (2, 2)}):
        plan = Plan(engine, [SVC(C=C) for C in sizes], sizes, wanted, engine.samples.pairs)
        for folds in permutations(range(4)):
            keys = plan.rounds(folds)
            assert sorted(keys) == sorted(plan.keys)
            place = {p: k for k, p in enumerate(p for key in keys for p in range(*plan.keys[key].indices(10**6)))}
            for p, problem in enumerate(plan.problems):
                assert all(place[q] < place[p] for q in (problem.parent, problem.like, problem.unlike) if q >= 0)
            rounds = [fold for _, fold in keys if fold >= 0]
            assert sorted(rounds, key=folds.index) == rounds


def test_the_choice_is_the_grid_searchs() -> None:
    for seed in range(5):
        X, y = data(seed=seed)
        search = fitted(SVCCV(**GRID), X, y)
        true_of(search, X, y)
        full = GridSearchCV(SVC(n_jobs=1), {"C": GRID["Cs"], "gamma": GRID["gammas"]}, cv=3).fit(X, y)
        assert search.best_score_ == pytest.approx(full.best_score_, abs=0.007)
        assert set(full.cv_results_) <= set(search.cv_results_)


def test_hopeless_cells_are_dropped() -> None:
    X, y = data(400)
    y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5, 1, 0)
    grid = {"Cs": [100.0, 1e-4], "gammas": [1.0, 1e-4], "cv": 10, "n_jobs": 1}
    search = fitted(SVCCV(**grid, working_set_size=100), X, y)  # fold by fold, so that it is known which come first
    assert search.cv_results_["status"].tolist() == ["certified", "dropped", "dropped", "dropped"]
    assert search.C_ == 100.0 and search.gamma_ == 1.0 and search.cv_results_["score_bound"][1:].max() < search.best_score_


@pytest.mark.parametrize("seconds", [1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1])
def test_time(seconds: float) -> None:
    X, y = data()
    search = fitted(SVCCV(max_time=seconds, **GRID), X, y)
    assert search.search_status_ in ("converged", "max_time")
    true_of(search, X, y)
    assert search.predict(X).shape == y.shape


@pytest.mark.parametrize("after", [1, 2, 5])
def test_callback(after: int) -> None:
    X, y = data(600)
    seen: list[dict[str, float]] = []

    def stop(row: dict[str, float]) -> bool:
        seen.append(row)
        return len(seen) >= after

    search = fitted(SVCCV(callback=stop, **GRID), X, y)
    assert search.search_status_ in ("callback", "converged") and len(seen) <= after
    assert {"folds", "best_score"} <= set(seen[0])
    true_of(search, X, y)


@pytest.mark.parametrize("make", [SVCCV, NuSVCCV, SVRCV, LinearSVCCV, DCSVCCV])
def test_rows_of_a_search_say_what_it_knows_and_no_more(make: Any) -> None:
    """Folds and the best score, which never fall; of objectives and support vectors, which are a machine's, nothing."""
    X, y = data()
    seen: list[dict[str, float]] = []
    fitted(make(callback=seen.append, cv=3), X, y)
    table = np.array([[row["folds"], np.nan_to_num(row["best_score"], nan=-np.inf)] for row in seen])
    assert len(seen) > 1 and (table[1:] >= table[:-1]).all()
    for row in seen:
        assert np.isnan([row[name] for name in ("objective", "dual", "gap", "violation")]).all() and row["n_support"] == -1


class Even:
    """An engine whose folds all take as long."""

    def solve(self, board: Board, cells: Sequence[int], deadline: Deadline) -> Iterator[Turn]:
        for cell in cells:
            for fold in range(board.n_folds):
                board.put(cell, fold, Outcome(0.5, seconds=3.0, score_seconds=1.0))
                yield turn_of(board)


@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize("axes", [{"C": [1.0]}, {"C": [0.1, 1.0, 10.0], "gamma": [0.5, 5.0]}], ids=["one", "six"])
def test_progress_is_the_share_of_the_time(axes: dict[str, list[float]], folds: int) -> None:
    """Of folds that all take as long their number; nothing before the first of them says how long that is."""
    search = Search(Grid(axes), Board(folds), None, lambda task: Even())  # type: ignore[arg-type]
    assert search.progress().done == 0
    count = folds * len(list(Grid(axes).cells()))
    for k, _ in enumerate(search.turns(), 1):
        said = search.progress()
        assert (said.done, said.total, said.unit) == (pytest.approx(100 * k / count), 100.0, "%")
        assert said.what == f"{k} of {count} folds"
    assert k == count


def test_ctrl_c_keeps_the_best_so_far() -> None:
    X, y = data(1500)
    timer = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        grid = {"Cs": np.geomspace(0.1, 1e4, 40).tolist(), "gammas": np.geomspace(0.01, 10, 40).tolist()}
        search = SVCCV(**grid, cv=5, n_jobs=1).fit(X, y)
    timer.join()
    assert search.search_status_ == "interrupted" and search.status_ == "converged"
    assert "not tried" in search.cv_results_["status"] and search.score(X, y) > 0.6


def test_halving_and_extend() -> None:
    X, y = data(1600)
    search = fitted(SVCCV(search="halving", random_state=0, **GRID), X, y)
    status = search.cv_results_["status"]
    assert (status == "halved").sum() >= 6 and status[search.best_index_] == "certified"
    X, y = data(200)
    with pytest.warns(EdgeWarning, match=r"C=0.1 \(the largest\)"):
        SVCCV(Cs=[0.01, 0.1], gammas=[0.5], cv=3, n_jobs=1).fit(X, y)
    wide = fitted(SVCCV(Cs=[0.01, 0.1], gammas=[0.5], cv=3, n_jobs=1, extend=True), X, y)
    assert 0.1 < wide.C_ < max(wide.cv_results_["param_C"])


def test_without_refit_there_is_no_model() -> None:
    X, y = data()
    search = fitted(SVCCV(refit=False, **GRID), X, y)
    assert search.C_ in GRID["Cs"]
    with pytest.raises(NotFittedError):
        search.predict(X)


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "neg_log_loss", lambda m, X, y: -len(m.support_)])
def test_scorers(scoring: Any) -> None:
    X, y = data()
    if scoring == "neg_log_loss":
        with pytest.raises((AttributeError, ValueError)):
            fitted(SVCCV(scoring=scoring, **GRID), X, y)
        return
    ours = fitted(SVCCV(scoring=scoring, tol=1e-6, **GRID), X, y)
    grid = {"C": GRID["Cs"], "gamma": GRID["gammas"]}
    theirs = GridSearchCV(SVC(n_jobs=1, tol=1e-6), grid, cv=3, scoring=scoring).fit(X, y)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=0.02 * max(1, abs(theirs.best_score_)))


def test_fits_of_their_own_find_the_same() -> None:
    X, y = data()
    one = fitted(SVCCV(**GRID, tol=1e-6), X, y)
    kernel = lambda a, b: np.exp(-one.gamma_ * _squares(a, b))  # noqa: E731
    for other in ({"cache_size": 0.01}, {"working_set_size": 50}, {"kernel": kernel}):
        again = fitted(SVCCV(**(GRID | other), tol=1e-6), X, y)
        assert again.best_score_ == pytest.approx(one.best_score_, abs=0.007)


def _squares(a: Any, b: Any) -> Any:
    return ((a[:, None] - b[None]) ** 2).sum(-1)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"Cs": 0}, "Cs=0"), ({"Cs": []}, "no values"), ({"Cs": [1.0, -1.0]}, "Cs=.*C=-1.0"), ({"Cs": 2.5}, "Cs=2.5"),
        ({"gammas": ["wide"]}, "gamma='wide'"), ({"search": "random"}, "search='random'"), ({"refit": 1}, "refit=1"),
        ({"cv": 1}, "k-fold|n_splits|folds"), ({"cv": []}, "fold"), ({"scoring": ["accuracy", "f1"]}, "one scorer"),
        ({"extend": "yes"}, "extend='yes'"), ({"max_time": -1.0}, "max_time=-1.0"),
        ({"cv": [([0, 1], [500])]}, "does not have"),
    ],
)  # fmt: skip
def test_bad_input(parameters: dict[str, Any], words: str) -> None:
    X, y = data()
    search = SVCCV(**(GRID | parameters))
    with pytest.raises(ValueError, match=words):
        search.fit(X, y)
    assert not hasattr(search, "cv_results_")


def test_grids_by_number() -> None:
    X, y = data()
    assert len(fitted(SVCCV(Cs=3, gammas=2, cv=2, n_jobs=1), X, y).cv_results_["params"]) == 6
    assert len(fitted(NuSVCCV(nus=3, gammas=1, cv=2, n_jobs=1), X, y).cv_results_["params"]) == 3
    assert len(fitted(SVRCV(Cs=2, gammas=1, epsilons=2, cv=2, n_jobs=1), X, y.astype(float)).cv_results_["params"]) == 4
    linear = fitted(SVCCV(Cs=3, gammas=5, kernel="linear", cv=2, n_jobs=1), X, y)
    assert len(linear.cv_results_["params"]) == 3  # which has no gamma


def test_the_model_without_its_search(tmp_path: Any) -> None:
    X, y = data()
    search = fitted(SVCCV(**GRID), X, y)
    alone = search.chosen()
    assert type(alone) is SVC and alone.C == search.C_ and alone.objective_ == search.objective_
    maxmargin.save(search, tmp_path / "model")
    np.testing.assert_array_equal(maxmargin.load(tmp_path / "model").decision_function(X), search.decision_function(X))
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))


def test_halving_of_a_given_matrix_is_that_of_its_kernel() -> None:
    X, y = data(1600)
    same = {"Cs": [0.01, 1.0, 100.0], "cv": 3, "search": "halving", "random_state": 0, "n_jobs": 1, "tol": 1e-6}
    own = fitted(SVCCV(gammas=[0.5], **same), X, y)
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    given = fitted(SVCCV(kernel="precomputed", **same), gram, y)
    assert list(given.cv_results_["status"]) == list(own.cv_results_["status"]) and given.C_ == own.C_
    assert given.best_score_ == pytest.approx(own.best_score_, abs=1e-3)
