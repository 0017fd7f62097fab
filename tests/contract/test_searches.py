"""What machines with a search inside promise beside what all do: a true table and choice, at every end of the search."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score

from maxmargin import certify_fit
from maxmargin.selection import EdgeWarning

sys.path.insert(0, str(Path(__file__).parent))
from machines import SEARCHES, Case, data, decisions, equally_good, judged, last_row_is_the_model, time_is_up

every = pytest.mark.parametrize("case", SEARCHES, ids=str)
whole = pytest.mark.parametrize("case", [c for c in SEARCHES if not c.rough], ids=str)  # not in clusters


def fit(model: Any, X: Any, y: Any, weight: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", EdgeWarning)
        return model.fit(X, y, sample_weight=weight)


def folds(y: Any) -> list[tuple[Any, Any]]:
    """By a rule that any order of the rows can follow: each row has a number of its own."""
    code = np.unique(y, return_inverse=True)[1] if y.dtype.kind == "U" else np.zeros(len(y), int)
    return list(StratifiedKFold(2, shuffle=True, random_state=0).split(np.zeros(len(y)), code))


def told_truly(model: Any, X: Any, y: Any, weight: Any = None) -> None:
    """The machine, by whoever judges all machines; the table, as far as it must agree with itself."""
    judged(model, X, y, weight)
    last_row_is_the_model(model)
    table = model.cv_results_
    assert model.best_params_ == table["params"][model.best_index_]
    assert all(getattr(model, f"{name}_") == value for name, value in model.best_params_.items())
    assert all(getattr(model.chosen(), name) == value for name, value in model.best_params_.items())
    np.testing.assert_array_equal(decisions(model, X), decisions(model.chosen(), X))
    known = np.isfinite(table["mean_test_score"])
    assert not known[np.isin(table["status"], ["not tried", "dropped"])].any()
    if known.any():
        assert model.best_score_ == table["mean_test_score"][known].max() == table["mean_test_score"][model.best_index_]
    else:
        assert np.isnan(model.best_score_) and model.search_status_ != "converged"
    assert np.isfinite(decisions(model, X)).all()


@every
def test_a_finished_search_says_the_truth(case: Case) -> None:
    X, y = data(case.task)
    model = fit(case.build(), X, y)
    assert model.search_status_ == "converged" and model.status_ in ("converged", "early")
    assert set(model.cv_results_["status"]) <= {"certified", "dropped", "halved"}
    told_truly(model, X, y)


@whole
def test_cells_are_what_fits_of_their_own_are(case: Case) -> None:
    """Each fold's objective and gap enclose what an independent evaluator says of a fit of its own, and scores are its."""
    X, y = data(case.task)
    split = folds(y)
    model = fit(case.build(cv=split), X, y)
    table = model.cv_results_
    for cell in np.flatnonzero(table["status"] == "certified"):
        machine = clone(model._single(table["params"][cell])).set_params(tol=1e-8)
        for k, (train, _) in enumerate(split):
            truth = certify_fit(fit(machine, X[train], y[train]), X[train], y[train])
            rounding = 1e-6 * abs(truth.primal)
            high, gap = table[f"split{k}_objective"][cell], table[f"split{k}_gap"][cell]
            assert gap >= 0 and high - gap <= truth.primal + rounding and high >= truth.dual - rounding
        scores = cross_val_score(machine, X, y, cv=split)
        np.testing.assert_allclose([table[f"split{k}_test_score"][cell] for k in range(2)], scores, atol=0.034)  # two rows


@every
@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize("how", ["callback", "interrupted"])
def test_a_stopped_search_returns_a_machine_and_says_the_truth(case: Case, turns: int, how: str) -> None:
    X, y = data(case.task)
    seen: list[dict[str, float]] = []

    def look(row: dict[str, float]) -> bool:
        seen.append(row)
        if len(seen) == turns and how == "interrupted":
            signal.raise_signal(signal.SIGINT)
        return len(seen) == turns and how == "callback"

    model = fit(case.build(**case.slow, callback=look), X, y)
    assert (model.search_status_ == how) == (len(seen) >= turns)
    assert len(seen) <= turns or how == "interrupted"
    told_truly(model, X, y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@every
@pytest.mark.parametrize("looks", [0, 1, 4, 20])
def test_a_search_whose_time_is_up_says_the_truth(case: Case, looks: int, monkeypatch: Any) -> None:
    X, y = data(case.task)
    made = time_is_up(monkeypatch, looks)
    model = fit(case.build(**case.slow, max_time=3600.0), X, y)
    assert model.search_status_ == "max_time" or len(made) <= looks or model.search_status_ == "converged"
    told_truly(model, X, y)


@whole
def test_the_order_of_rows_does_not_matter_where_folds_follow_it(case: Case) -> None:
    X, y = data(case.task, 80)
    order = np.random.default_rng(3).permutation(len(y))
    place = np.argsort(order)
    split = folds(y)
    one = fit(case.tight(cv=split), X, y)
    other = fit(case.tight(cv=[(place[train], place[test]) for train, test in split]), X[order], y[order])
    assert one.best_params_ == other.best_params_
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"], atol=1e-6)
    equally_good(one, other, X)


@whole
def test_a_weight_of_two_is_the_row_twice_where_folds_hold_both(case: Case) -> None:
    X, y = data(case.task, 80)
    times = np.random.default_rng(2).integers(1, 4, len(y))
    row = np.repeat(np.arange(len(y)), times)
    split = folds(y)
    weighted = fit(case.tight(cv=split), X, y, times.astype(float))
    repeated = [tuple(np.flatnonzero(np.isin(row, side)) for side in pair) for pair in split]
    twice = fit(case.tight(cv=repeated), X[row], y[row])
    told_truly(weighted, X, y, times.astype(float))
    assert weighted.best_params_ == twice.best_params_
    equally_good(weighted, twice, X)
