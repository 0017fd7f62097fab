"""A machine's own score, computed without scikit-learn, is scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, get_scorer, make_scorer, r2_score

from maxmargin import SVC, SVR
from maxmargin.selection import SVCCV, SVRCV, NuSVCCV, calibrated, cross_val_decisions
from maxmargin.selection.scoring import Known, Scoring


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", [["no", "yes"], [3, 1, 7]])
def test_accuracy(labels: list[Any], weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.array(labels)[rng.integers(0, len(labels), 60)]
    weight = rng.uniform(0, 2, 60) if weighted else None
    machine = SVC().fit(X[:40], y[:40])
    expected = accuracy_score(y, machine.predict(X), sample_weight=weight)
    assert Scoring(machine, None)(machine, X, y, weight) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("target", ["numbers", "constant", "missed"])
def test_r2(target: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = {"numbers": X[:, 0], "constant": np.full(60, 2.0), "missed": np.full(60, 2.0)}[target]
    machine = SVR().fit(X[:40], y[:40])
    judged = np.full(60, 3.0) if target == "missed" else y
    for weight in (None, rng.uniform(0, 2, 60)):
        expected = r2_score(judged, machine.predict(X), sample_weight=weight)
        assert Scoring(machine, None)(machine, X, judged, weight) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", range(1, 6))
def test_r2_of_few_rows(rows: int) -> None:
    """Two are enough for one; of fewer there is none, which scikit-learn warns of."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(20, 3))
    machine = SVR().fit(X, X[:, 0])
    found = Scoring(machine, None)(machine, X[:rows], X[:rows, 0], None)
    expected = r2_score(X[:rows, 0], machine.predict(X[:rows])) if rows > 1 else np.nan
    assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


def share_right(y: Any, found: Any) -> float:
    return float(np.mean(y == found))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc", "labels alone", "a function"])
def test_weights_go_to_scorers_that_take_them(scoring: Any, weighted: bool) -> None:
    """And to no other: a metric of labels alone, or a function of machine and rows, is asked without."""
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(60, 2)), rng.integers(0, 2, 60), rng.uniform(0.1, 9.0, 60)
    machine = SVC().fit(X[:40], y[:40])
    own = {"labels alone": make_scorer(share_right), "a function": lambda machine, X, y: share_right(y, machine.predict(X))}
    scorer = own.get(scoring) or get_scorer(scoring)
    taken = {"sample_weight": weight} if weighted and scoring not in own else {}
    found = Scoring(machine, own.get(scoring, scoring))(machine, X, y, weight if weighted else None)
    assert found == pytest.approx(scorer(machine, X, y, **taken), rel=1e-12)
    assert not taken or found != pytest.approx(scorer(machine, X, y), rel=1e-6)


def test_a_score_of_its_own_is_asked() -> None:
    class Own(SVC):
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            return 0.25

    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    machine = Own().fit(X, y)
    assert Scoring(machine, None)(machine, X, y, None) == 0.25


def no_machine(*_: Any) -> Any:
    raise AssertionError("a machine was put together")


@pytest.mark.parametrize("ties", [{}, {"break_ties": True}, {"decision_function_shape": "ovo"}], ids=str)
@pytest.mark.parametrize("scoring", [None, "accuracy", "balanced_accuracy", "f1_macro", "neg_mean_squared_error"])
@pytest.mark.parametrize("make, classes", [(SVCCV, 2), (SVCCV, 3), (SVCCV, 5), (NuSVCCV, 2), (NuSVCCV, 3), (SVRCV, 0)])
def test_decisions_that_are_known_are_judged_without_a_machine(monkeypatch, make, classes, scoring, ties) -> None:
    """Else every fold would be solved twice: by the family, and by the machine that is put together to be judged."""
    if not classes and (ties or scoring not in (None, "neg_mean_squared_error")):
        pytest.skip("of classes")
    monkeypatch.setattr(Known, "_complete", no_machine)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    X[:, 0] += (y := rng.integers(0, classes or 9, 90))
    grid: dict[str, Any] = {"nus": [0.1, 0.2]} if make is NuSVCCV else {"Cs": [0.1, 1.0]}
    model = make(gammas=[0.1, 1.0], scoring=scoring, cv=3, **grid, **ties).fit(X, y)
    assert set(model.cv_results_["status"]) <= {"certified", "dropped"}


@pytest.mark.parametrize("classes", [2, 4])
def test_decisions_outside_of_folds_and_probabilities_need_no_machine_of_a_fold(monkeypatch, classes) -> None:
    monkeypatch.setattr(Known, "_complete", no_machine)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    X[:, 0] += (y := rng.integers(0, classes, 90))
    assert np.isfinite(cross_val_decisions(SVC(), X, y, cv=3)).all()
    assert calibrated(SVC(), X, y).predict_proba(X).shape == (90, classes)
