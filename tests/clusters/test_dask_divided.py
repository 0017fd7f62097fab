"""maxmargin.dask.DCSVC and DCSVR on two worker processes: the local fit's answers, certified, and X never here."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import maxmargin
import maxmargin.dask
from maxmargin.dask import DCSVC, DCSVR, divided
from maxmargin.dask.partitions import Partitions
from maxmargin.kernel_values import Samples

PLAN = {"C": 10.0, "gamma": 0.5, "k": 3, "levels": 2, "sample_size": 100, "random_state": 0}


def spiral(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 2
    return X, ((np.sin(2 * X[:, 0]) + X[:, 1] > 0) ^ (rng.random(n) < 0.1)).astype(int)


def on_workers(X, y, size=400):
    return da.from_array(X, chunks=(size, X.shape[1])), da.from_array(y, chunks=size)


@pytest.fixture
def fetched(monkeypatch):
    """How many rows the client has asked for, a call at a time."""
    counts, original = [], Partitions.__getitem__

    def counting(self, rows):
        counts.append(len(rows))
        return original(self, rows)

    monkeypatch.setattr(Partitions, "__getitem__", counting)
    return counts


def same_level(there, here):
    """Two certificates of one problem: the bottom level, whose clusters are the same. Those above it depend on the
    support vectors below, which are known to tol."""
    np.testing.assert_array_equal(there.levels_["clusters"], here.levels_["clusters"])
    np.testing.assert_array_equal(there.levels_["largest"], here.levels_["largest"])
    assert 0 <= there.level_gap_ <= 1e-2 * there.level_objective_
    assert there.level_objective_ - there.level_gap_ <= here.level_objective_ * (1 + 1e-6)
    assert here.level_objective_ - here.level_gap_ <= there.level_objective_ * (1 + 1e-6)


def test_a_level_is_the_local_one_and_x_stays_away(client, fetched):
    """Rows 3300 … 3399 are 0 … 99 again, in another partition: one sample each, of twice the weight."""
    X, y = spiral(3900)
    X[3300:3400], y[3300:3400] = X[:100], y[:100]
    rows, labels = on_workers(X, y, 1000)
    there = DCSVC(**PLAN, stop_level=2, client=client).fit(rows, labels)
    here = maxmargin.DCSVC(**PLAN, stop_level=2).fit(X, y)
    assert there.status_ == "early" and there.level_ == 2
    same_level(there, here)
    assert np.mean(there.predict(X) == here.predict(X)) > 0.99
    assert max(fetched) < len(X) / 2  # samples of the clusterings, support vectors; never all rows
    lazily = there.predict(rows)
    assert isinstance(lazily, da.Array)
    np.testing.assert_array_equal(client.compute(lazily).result(), there.to_local().predict(X))
    assert type(there.to_local()) is maxmargin.DCSVC
    assert np.isnan(there.objective_) and there.trace_["level_objective"][-1] == there.level_objective_


@pytest.mark.parametrize("intercept", [False, True])
def test_the_whole_problem_is_certified_by_independent_code(client, intercept):
    X, y = spiral(1200)
    there = DCSVC(**PLAN, fit_intercept=intercept, client=client).fit(*on_workers(X, y))
    assert there.status_ == "converged" and there.level_ == 0
    known = maxmargin.certify_fit(there.to_local(), X, y)
    assert known.violation <= there.tol * (1 + 1e-6)
    assert known.primal == pytest.approx(there.objective_, rel=1e-6)
    assert known.gap == pytest.approx(there.dual_gap_, rel=1e-3, abs=1e-9 * known.primal)
    exact = maxmargin.SVC(C=10.0, gamma=0.5, fit_intercept=intercept, tol=1e-5).fit(X, y)
    assert exact.objective_ - exact.dual_gap_ <= there.objective_ <= exact.objective_ + there.dual_gap_ + exact.dual_gap_
    assert list(there.levels_["stage"]) == ["level", "level", "refine", "whole"]


def test_several_classes_weights_sparse_rows_and_scale(client):
    X, _ = spiral(900)
    y = np.digitize(X[:, 0], [-1, 1])
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    X = X * (np.abs(X) > 0.3)
    rows = da.from_array(X, chunks=(300, 2)).map_blocks(sp.csr_matrix)
    plan = {**PLAN, "gamma": "scale", "class_weight": "balanced"}
    there = DCSVC(**plan, client=client).fit(rows, y, weight)
    here = maxmargin.DCSVC(**plan).fit(sp.csr_matrix(X), y, weight)
    assert there._gamma == pytest.approx(here._gamma, rel=1e-12)
    assert there.status_ == here.status_ == "converged"  # of the whole problem, which knows no clusters
    assert there.objective_ - there.dual_gap_ <= here.objective_ * (1 + 1e-9)
    assert here.objective_ - here.dual_gap_ <= there.objective_ * (1 + 1e-9)
    assert np.mean(there.predict(sp.csr_matrix(X)) == here.predict(sp.csr_matrix(X))) > 0.99


def test_regression(client):
    X, _ = spiral(900)
    target = np.sin(X[:, 0]) + X[:, 1] / 4
    plan = {**PLAN, "epsilon": 0.05, "stop_level": 2}
    there, here = DCSVR(**plan, client=client).fit(*on_workers(X, target)), maxmargin.DCSVR(**plan).fit(X, target)
    same_level(there, here)
    np.testing.assert_allclose(there.predict(X), here.predict(X), atol=0.02)
    assert not hasattr(there, "decision_function")


def test_limits_and_a_worker_that_dies(client, cluster):
    X, y = spiral()
    rows, labels = on_workers(X, y)
    killed = []

    def kill(row):
        if row["stage"] == 1 and row["solved"] >= 1 and not killed:
            killed.append(sorted(name for name in cluster.processes if name != "scheduler")[0])
            cluster.kill(killed[0])

    try:
        there = DCSVC(**PLAN, stop_level=1, callback=kill, client=client).fit(rows, labels)
    finally:
        assert killed
        cluster.add(killed[0])
        cluster.client.wait_for_workers(2, timeout=60)
    whole = DCSVC(**PLAN, stop_level=1, client=client).fit(rows, labels)
    assert there.status_ == "early" and there.level_objective_ == whole.level_objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        none = DCSVC(**PLAN, max_time=1e-6, client=client).fit(rows, labels)
        first = DCSVC(**PLAN, callback=lambda row: row["stage"] == 1 and row["solved"] > 0, client=client).fit(rows, labels)
    assert none.status_ == "max_time" and none.objective_ == pytest.approx(10.0 * len(y))  # of w = 0
    assert first.status_ == "callback" and len(first.levels_) == 0 and np.isfinite(first.decision_function(X)).all()


def test_errors(client, monkeypatch):
    X, y = spiral(300)
    rows, labels = on_workers(X, y, 100)
    with pytest.raises(ValueError, match=r"precomputed.*no rows that could move"):
        DCSVC(kernel="precomputed", client=client).fit(rows, labels)
    with pytest.raises(ValueError, match=r"C=-1"):
        DCSVC(C=-1, client=client).fit(rows, labels)
    original = divided.check_memory
    monkeypatch.setattr(divided, "check_memory", lambda client, n, copies: original(client, n * 1e12, copies))
    with pytest.raises(MemoryError, match="2 times that is needed"):
        DCSVC(client=client).fit(rows, labels)


@pytest.mark.parametrize("name", maxmargin.dask.__all__)
def test_no_machine_passes_over_a_checkpoint(client, tmp_path, name):
    """What it cannot write it refuses, before anything is computed and with no file left behind."""
    machine, path = getattr(maxmargin.dask, name)(client=client), tmp_path / "fit.ckpt"
    X, y = spiral(60)
    try:
        machine.set_params(checkpoint=path)
    except ValueError as error:
        assert "Invalid parameter" in str(error)  # a machine without
    else:
        with pytest.raises(ValueError, match=r"fits to dask collections have none.*" + name):
            machine.fit(*on_workers(X, y, 20))
    assert not list(tmp_path.iterdir())


def test_clusters_are_the_local_ones_where_those_samples_are_held_by_neighbours(client, monkeypatch):
    """On one machine samples are put in an order in which far ones are apart; what is drawn does not depend on it."""
    orders, original = [], Samples.neighbour_order

    def seen(self, rows):
        orders.append(original(self, rows))
        return orders[-1]

    monkeypatch.setattr(Samples, "neighbour_order", seen)
    X, y = spiral(6000)
    plan = {**PLAN, "gamma": 300.0, "stop_level": 2}
    here = maxmargin.DCSVC(**plan).fit(X, y)
    assert any(order is not None and (order != np.arange(len(order))).any() for order in orders)
    there = DCSVC(**plan, client=client).fit(*on_workers(X, y, 1000))
    same_level(there, here)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
