"""A fit leaves nothing of the one before: a machine fitted twice is the machine fitted once, to the second data."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import maxmargin

sys.path.insert(0, str(Path(__file__).parent))
from machines import CASES, SEARCHES, Case, data, decisions

OF_MACHINES = pytest.mark.parametrize("case", CASES + SEARCHES, ids=str)


def other(task: str) -> tuple[Any, Any]:
    """Other rows, with one feature and one class more."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4))
    y = X[:, 0] + X[:, 1] if task in ("numbers", "none") else rng.integers(0, 4, 150)
    return X, y


def fitted(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def same(twice: Any, once: Any, X: Any) -> None:
    assert set(vars(twice)) == set(vars(once))
    np.testing.assert_array_equal(decisions(twice, X), decisions(once, X))
    if hasattr(once, "predict"):
        np.testing.assert_array_equal(twice.predict(X), once.predict(X))


@OF_MACHINES
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_on_other_data(case: Case, form: Any) -> None:
    X, y = data(case.task)
    once = fitted(case.build(), form(X), y)
    same(fitted(fitted(case.build(), *other(case.task)), form(X), y), once, form(X))


FEW = {"cv": 2, "Cs": 2, "gammas": 2}
CHANGES = [
    (maxmargin.SVC, {"probability": True}, {"probability": False}, "three"),
    (maxmargin.SVC, {"warm_start": True}, {"warm_start": False}, "three"),
    (maxmargin.SVC, {"kernel": "linear"}, {"kernel": "rbf"}, "two"),
    (maxmargin.NuSVC, {"class_weight": "balanced"}, {"class_weight": None}, "two"),
    (maxmargin.DCSVC, {"early": True, "random_state": 0}, {"early": False}, "two"),
    (maxmargin.DCSVC, {"levels": 1, "stop_level": 1, "random_state": 0}, {"levels": 1, "stop_level": 0}, "three"),
    (maxmargin.DCSVC, {"multi_class": "ovr", "random_state": 0}, {"multi_class": "ovo"}, "three"),
    (maxmargin.LinearSVC, {"multi_class": "crammer_singer"}, {"multi_class": "ovr"}, "three"),
    (maxmargin.LinearSVC, {"penalty": "l1", "loss": "squared_hinge"}, {"penalty": "l2", "loss": "hinge"}, "two"),
    (maxmargin.LinearSVC, {"warm_start": True}, {"warm_start": False}, "two"),
    (maxmargin.LinearSVC, {"fit_intercept": True}, {"fit_intercept": False}, "two"),
    (maxmargin.BudgetSVC, {"refit": True, "random_state": 0}, {"refit": False}, "two"),
    (maxmargin.SVCCV, {"probabilities": True, **FEW}, {"probabilities": False}, "two"),
    (maxmargin.DCSVCCV, {"choice": "cluster", "random_state": 0, **FEW}, {"choice": "global"}, "two"),
]


@pytest.mark.parametrize("cls, before, after, task", CHANGES, ids=lambda v: v.__name__ if isinstance(v, type) else str(v))
def test_with_other_parameters(cls: Any, before: dict[str, Any], after: dict[str, Any], task: str) -> None:
    X, y = data(task)
    twice = fitted(fitted(cls(**before), X, y).set_params(**after), X, y)
    once = fitted(cls(**{**before, **after}), X, y)
    assert set(vars(twice)) == set(vars(once))
    if hasattr(once, "classes_") and hasattr(once, "dual_coef_"):
        np.testing.assert_array_equal(decisions(twice, X), decisions(once, X))


@pytest.mark.parametrize("case", SEARCHES, ids=str)
def test_a_search_without_a_model_has_not_that_of_another_search(case: Case) -> None:
    X, y = data(case.task)
    searched = fitted(fitted(case.build(), *other(case.task)).set_params(refit=False), X, y)
    assert set(vars(searched)) == set(vars(fitted(case.build(refit=False), X, y)))
    with pytest.raises(NotFittedError):
        searched.predict(X)


def test_probabilities_of_an_earlier_fit_are_not_handed_out() -> None:
    X, y = data("three")
    model = fitted(fitted(maxmargin.SVC(probability=True), X, y).set_params(probability=False), X, y)
    with pytest.raises(NotFittedError, match="fit it again"):
        model.set_params(probability=True).predict_proba(X)


def test_the_order_of_a_file_is_not_that_of_a_later_fit(tmp_path: Path) -> None:
    """A model that was read votes in its file's order; fitted to more classes, that would leave some out."""
    X, y = data("three")
    maxmargin.save(maxmargin.SVC().fit(X, np.unique(y, return_inverse=True)[1]), tmp_path / "model", format="libsvm")
    text = (tmp_path / "model").read_text().replace("label 0 1 2", "label 7 3 5")
    (tmp_path / "model").write_text(text)
    model = maxmargin.load(tmp_path / "model")
    X, y = other("classes")
    same(model.fit(X, y), maxmargin.SVC(**model.get_params()).fit(X, y), X)
