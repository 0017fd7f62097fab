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
@pytest.mark.parametrize("level", [True, False])
def test_a_cluster_that_was_not_begun_says_its_majority(fit_intercept, level, monkeypatch) -> None:
    """The clock strikes in the first turn of a level, or while clusters are made."""
    X, y = blobs(0.85)
    y[:10] = 0  # so that no cluster is of one class
    solve, begun = Level.solve, []

    def watched(self):
        begun.append(True)
        yield from solve(self)

    monkeypatch.setattr(Level, "solve", watched)
    monkeypatch.setattr(Deadline, "passed", lambda self, margin=0.0: self.end is not None and (bool(begun) or not level))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DCSVC(fit_intercept=fit_intercept, max_time=3600.0, working_set_size=4, **DC).fit(X, y)
    assert model.status_ == "max_time"
    blob = np.arange(200) // 100
    asleep = [c for c in (0, 1) if not (blob[model.support_] == c).any()]
    assert len(asleep) == (1 if level else 2)
    for c in asleep:
        np.testing.assert_array_equal(model.predict(X[blob == c]), 1)


def test_clusters_begin_where_the_level_below_ended(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=300) > 0).astype(int)
    tasks, warm = Level._tasks, []

    def watched(self):
        out = tasks(self)
        for task in out:
            mine = variables(self.problems[task.problem].qp, task.samples)
            given = None if self.begin is None else self.begin[task.problem][mine]
            if given is not None and given.any():
                np.testing.assert_array_equal(task.alpha, given)
                warm.append(task)
            else:
                assert task.alpha is None
        return out

    monkeypatch.setattr(Level, "_tasks", watched)
    DCSVC(**{**DC, "levels": 3}).fit(X, y)
    assert len(warm) >= 4
