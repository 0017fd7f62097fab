"""Clusters of DCSVC on real worker processes, Dask's and Ray's: the same bits, rows sent once, no worker indispensable."""

from __future__ import annotations

import pathlib
import pickle
import sys
import time
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, Event, Future
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier

from maxmargin import DCSVC, DCSVR, SVC, LinearSVC
from maxmargin.carriers.on_dask import DaskCarrier
from maxmargin.divide import level
from maxmargin.divide.remote import Afar, Blocks
from maxmargin.runtime import Deadline

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from subproblems import endless

PLAN = {"C": 10.0, "gamma": 0.05, "k": 3, "levels": 2, "sample_size": 100, "random_state": 0}


def outliers(n=1500):
    """From 1,001 samples on values are float32, where rounding shows; far outliers make for large norms."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)) * np.where(np.arange(n) < n // 15, 30.0, 5.0)[:, None]
    return X, (X[:, 0] > 0) ^ (rng.random(n) < 0.2)


def same_bits(there, here, X):
    np.testing.assert_array_equal(there.support_, here.support_)
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    assert there.status_ == here.status_ and there.level_objective_ == here.level_objective_


@pytest.fixture
def watched(monkeypatch):
    """All Blocks that a fit makes, and the bytes of every argument that went by way of the scheduler."""
    made, inline = [], []

    class Seen(Blocks):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    original = DaskCarrier.call

    def call(self, function, *args, at=None):
        inline.extend(len(pickle.dumps(arg)) for arg in args if not isinstance(arg, Future))
        return original(self, function, *args, at=at)

    monkeypatch.setattr(level, "Blocks", Seen)
    monkeypatch.setattr(DaskCarrier, "call", call)
    return made, inline


@pytest.mark.parametrize("stop_level", [0, 1])
def test_dask_gives_the_same_bits_and_sends_each_row_once(on_dask, watched, stop_level):
    X, y = outliers()
    there = DCSVC(**PLAN, stop_level=stop_level).fit(X, y)
    with joblib.parallel_config("threading", n_jobs=1):
        same_bits(there, DCSVC(**PLAN, stop_level=stop_level).fit(X, y), X)
    made, inline = watched
    assert [blocks.sent for blocks in made] == [len(X)] and max(inline, default=0) < 100
    assert len(made[0].refs) == there.levels_["clusters"][1]  # the level below has been given up


def test_several_classes_regression_and_kinds_of_rows(on_dask):
    X, _ = outliers(600)
    y, target = np.digitize(X[:, 0], [-3, 3]), np.sin(X[:, 0])
    gram = {**PLAN, "kernel": "precomputed"}
    cases = [
        (DCSVC(**PLAN, fit_intercept=True, stop_level=1), X, y),
        (DCSVC(**PLAN, stop_level=1), sp.csr_matrix(X * (np.abs(X) > 3)), y),
        (DCSVC(**gram, stop_level=1), np.exp(-0.05 * np.square(X[:, None] - X).sum(axis=2)), y),
        (DCSVR(**PLAN, stop_level=1), X, target),
    ]
    for machine, rows, labels in cases:
        there = machine.fit(rows, labels).predict(rows)
        with joblib.parallel_config("threading", n_jobs=1):
            np.testing.assert_array_equal(there, machine.fit(rows, labels).predict(rows))


def test_a_worker_killed_in_the_middle_does_not_lose_the_fit(on_dask, cluster):
    """Twice: in the bottom level, where rows are lost with it, and in the next, where what was put together is."""
    X, y = outliers()
    with joblib.parallel_config("threading", n_jobs=1):
        here = DCSVC(**PLAN, stop_level=1).fit(X, y)
    for at in (2, 1):
        killed = []

        def kill(row, at=at, killed=killed):
            if row["stage"] == 1 and row["level"] == at and row["solved"] >= 1 and not killed:
                killed.append(sorted(name for name in cluster.processes if name != "scheduler")[0])
                cluster.kill(killed[0])

        try:
            same_bits(DCSVC(**PLAN, stop_level=1, callback=kill).fit(X, y), here, X)
        finally:
            assert killed
            cluster.add(killed[0])
            cluster.client.wait_for_workers(2, timeout=60)


def afar(client, tasks, members, data):
    blocks, pieces = Blocks(DaskCarrier(client), len(data.rows), data.rows_of), []
    return Afar(tasks, members, blocks, data.known_frame()).solve(pieces), pieces


def test_deadlines_hold_on_the_workers(client):
    going, pieces = afar(client, *endless(deadline=Deadline.after(2.0)))
    for _ in going:
        pass
    assert sorted(piece.cluster for piece in pieces) == [0, 1, 2]
    assert {str(piece.result.status) for piece in pieces} <= {"max_time", "stalled"}


def test_a_stop_reaches_the_workers(on_dask):
    """After it they are free for others: nothing runs on to its own end."""
    X, y = outliers()

    def stop(row):
        return row["stage"] == 1 and row["solved"] > 0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DCSVC(**PLAN, callback=stop).fit(X, y)
    assert model.status_ == "callback" and model.level_ == 2 and len(model.levels_) == 0
    assert np.isfinite(model.decision_function(X)).all()
    going, _ = afar(on_dask, *endless())
    for _ in range(6):
        next(going)
    going.close()
    while any(on_dask.processing().values()):
        time.sleep(0.05)


def test_an_error_on_a_worker_is_the_users_to_see(on_dask):
    X, y = outliers(600)

    def refuses(a, b):
        if len(a) == len(b) == 600:
            return a @ b.T
        raise RuntimeError("no kernel today")

    with pytest.raises(RuntimeError, match="no kernel today"):
        DCSVC(kernel=refuses, k=3, levels=1, sample_size=600, stop_level=1, random_state=0).fit(X, y)


def test_dask_spreads_work_over_its_workers(client):
    homes = DaskCarrier(client).spread([5.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert len(set(homes)) == 2 and homes.count(homes[0]) == 1


def test_what_is_dropped_is_told_to_end_and_nothing_else_is(one_worker):
    """Though somebody holds on to it; also what has not begun. Afterwards the worker is free for others."""
    carrier, begun = DaskCarrier(one_worker), Event("begun", client=one_worker)

    def long(name, stopped):
        Event(name).set()
        while not stopped():
            time.sleep(0.01)

    assert carrier.get(carrier.solve(lambda stopped: [stopped() for _ in range(3)])) == [False] * 3
    refs = [carrier.solve(long, "begun") for _ in range(3)]
    assert begun.wait(60)
    assert carrier.wait(refs, 0.1) == []
    carrier.drop(refs)
    assert [ref.status for ref in refs] == ["cancelled"] * 3
    assert carrier.get(carrier.call(int, "3")) == 3


def test_with_a_client_that_is_closed_there_is_nothing_to_drop(client):
    with Client(client.scheduler.address, set_as_default=False) as other:
        carrier = DaskCarrier(other)
        ref = carrier.put(1)
    carrier.drop([ref])


def test_one_waits_for_what_comes_in_time_and_for_nothing_else(client):
    carrier, go = DaskCarrier(client), Event("go", client=client)

    def after(name, value):
        Event(name).wait()
        return value

    held, free = carrier.call(after, "go", 1), carrier.call(time.sleep, 0.3)
    assert carrier.wait([held, free], 60.0) == [free]
    assert carrier.wait([held], 0.05) == [] and carrier.wait([held, free], 0.05, every=True) == [free]
    more = carrier.call(time.sleep, 0.3)
    go.set()
    assert carrier.wait([held, more, free], 60.0, every=True) == [held, more, free] and carrier.get(held) == 1


@pytest.mark.parametrize("asked", [None, True, False])
def test_values_go_straight_to_the_workers_unless_the_client_says_no(client, monkeypatch, asked):
    with Client(client.scheduler.address, set_as_default=False, direct_to_workers=asked) as other:
        ways = []
        for name in ("scatter", "gather"):
            plain = getattr(other, name)
            monkeypatch.setattr(other, name, lambda *a, plain=plain, **b: ways.append(b["direct"]) or plain(*a, **b))
        carrier = DaskCarrier(other)
        ref = carrier.put(np.arange(3))
        assert carrier.get(ref).tolist() == carrier.values([ref])[0].tolist() == [0, 1, 2]
    assert ways == [asked is not False] * 3


def test_a_grid_on_dask_whose_fits_divide_themselves(on_dask):
    """Fits that run on workers and send their clusters to workers: one thread each must do for both."""
    X, y = outliers(600)
    grid = GridSearchCV(DCSVC(**PLAN, stop_level=2), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    with joblib.parallel_config("threading", n_jobs=1):
        here = GridSearchCV(DCSVC(**PLAN, stop_level=2), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    np.testing.assert_array_equal(grid.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])


def test_pairs_of_classes_and_points_of_a_grid_as_machines_of_their_own(on_dask):
    X = outliers(600)[0]
    y = np.digitize(X[:, 0], [-3.0, 3.0])

    def fits():
        pairs = OneVsOneClassifier(SVC(C=10.0, gamma=0.05), n_jobs=2).fit(X, y)
        grid = GridSearchCV(LinearSVC(), {"C": [0.1, 1.0, 10.0]}, cv=2, n_jobs=2).fit(X, y)
        return pairs.decision_function(X), grid.cv_results_["mean_test_score"]

    with joblib.parallel_config("threading", n_jobs=1):
        here = fits()
    for there, value in zip(fits(), here):
        np.testing.assert_array_equal(there, value)
