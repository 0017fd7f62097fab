"""maxmargin.dask.BudgetSVC on two worker processes: the stream of one machine, bit by bit, and an objective that is true."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin.dask import BudgetSVC

PLAN = {"C": 10.0, "gamma": 0.5, "budget": 40, "epochs": 2, "shuffle": False}


def rings(n=1200, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 2
    return X, np.digitize(np.hypot(*X.T), [2.0, 3.5][: classes - 1])


def primal(model, X, y, C, weight):
    """½|w|² + C Σ loss of each output, in plain NumPy."""
    def kernel(a, b):
        return np.exp(-model.gamma_ * np.square(a[:, None].astype(float) - b[None].astype(float)).sum(axis=2))

    own, total = kernel(model.support_vectors_, model.support_vectors_), 0.0
    values = kernel(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    for c, label in enumerate(model.classes_ if len(model.classes_) > 2 else model.classes_[1:]):
        sign = np.where(y == label, 1.0, -1.0)
        norm = model.dual_coef_[c] @ own @ model.dual_coef_[c] + model.intercept_[c] ** 2
        total += 0.5 * norm + C * (weight @ np.maximum(0, 1 - sign * values[:, c]))
    return total


@pytest.mark.parametrize("classes", [2, 3])
def test_partitions_in_order_are_a_stream(client, classes):
    """Rows of weight 0 and a partition without rows are visited by neither."""
    X, y = rings(classes=classes)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    parts = [slice(0, 500), slice(500, 500), slice(500, 900), slice(900, 1200)]
    rows = da.concatenate([da.from_array(X[part], chunks=(500, 2)) for part in parts])
    labels, weights = (da.concatenate([da.from_array(v[part], chunks=500) for part in parts]) for v in (y, weight))
    there = BudgetSVC(**PLAN, client=client).fit(rows, labels, weights)
    chunks = [(X[p], y[p], weight[p]) for p in parts if p.start < p.stop]
    here = maxmargin.BudgetSVC(**PLAN).fit_stream(chunks, range(classes))
    np.testing.assert_array_equal(there.support_vectors_, here.support_vectors_)
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)
    assert there.status_ == "completed" and there.n_iter_ == 2 and len(there.trace_) == 2
    assert there.objective_ == pytest.approx(primal(there, X, y, 10.0, weight), rel=1e-5)
    assert there.trace_["objective"][-1] == there.objective_
    lazily = there.predict(rows)
    assert isinstance(lazily, da.Array)
    np.testing.assert_array_equal(client.compute(lazily).result(), here.predict(X))
    assert type(there.to_local()) is maxmargin.BudgetSVC


def test_shuffled_limited_and_stopped(client):
    X, y = rings()
    rows, labels = da.from_array(X, chunks=(400, 2)), da.from_array(y, chunks=400)
    plan = {**PLAN, "shuffle": True, "gamma": "scale", "client": client}
    one, two = (BudgetSVC(**plan, random_state=3).fit(rows, labels) for _ in range(2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert one.gamma_ == pytest.approx(1 / (2 * X.var()), rel=1e-12) and one.score(rows, labels) > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        none = BudgetSVC(**plan, max_time=1e-6).fit(rows, labels)
    assert none.status_ == "max_time"
    stopped = BudgetSVC(**plan, callback=lambda row: True).fit(rows, labels)
    assert stopped.status_ == "callback" and stopped.n_iter_ == 1
