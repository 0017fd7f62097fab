"""Clusters with nothing to ask: of one class, or not begun when the run was stopped; and clusters that begin where the level
below them ended."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC
from maxmargin.divide.level import Level
from maxmargin.divide.subproblem import variables
from maxmargin.runtime import Deadline

DC = {"k": 2, "levels": 1, "stop_level": 1, "random_state": 0, "n_jobs": 1}


def blobs(share: float, n: int = 200):
    """Two blobs far apart: labels 1 in the first, in the second so large a share of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    X[n // 2 :] += 8.0
    y = np.ones(n, int)
    y[n // 2 :] = rng.uniform(size=n // 2) < share
    return X, y


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_cluster_of_one_class_says_that_class_and_nothing_else(fit_intercept) -> None:
    X, y = blobs(0.5)
    model = DCSVC(fit_intercept=fit_intercept, **DC).fit(X, y)
    assert model.status_ == "early"
    np.testing.assert_array_equal(model.decision_function(X[:100]), 1.0)
    assert len(np.unique(model.decision_function(X[100:]))) > 50  # the other is asked


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("looks", [0, 1, 2, 3])
def test_a_cluster_that_was_not_begun_says_its_majority(fit_intercept, looks, monkeypatch) -> None:
    """The clock strikes while clusters are made, or before the first of them is solved."""
    X, y = blobs(0.85)
    y[:10] = 0  # so that no cluster is of one class
    count = 0

    def passed(self: Deadline, margin: float = 0.0) -> bool:
        nonlocal count
        count += self.end is not None
        return self.end is not None and count > looks

    monkeypatch.setattr(Deadline, "passed", passed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DCSVC(fit_intercept=fit_intercept, max_time=3600.0, working_set_size=4, **DC).fit(X, y)
    assert model.status_ == "max_time"
    np.testing.assert_array_equal(model.predict(X), 1)


def test_clusters_begin_where_the_level_below_ended(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(int)
    tasks, warm = Level._tasks, []

    def watched(self, below):
        out = tasks(self, below)
        for task in out:
            mine = variables(self.problems[task.problem].qp, task.samples)
            given = None if below is None else below.alphas[task.problem][mine]
            if given is not None and given.any():
                np.testing.assert_array_equal(task.alpha, given)
                warm.append(task)
            else:
                assert task.alpha is None
        return out

    monkeypatch.setattr(Level, "_tasks", watched)
    DCSVC(**{**DC, "levels": 3}).fit(X, y)
    assert len(warm) >= 4
