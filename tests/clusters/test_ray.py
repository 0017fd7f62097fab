"""Clusters of DCSVC on a local Ray of two worker processes."""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import time

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier

from maxmargin import DCSVC, SVC
from maxmargin.carriers.on_ray import RayCarrier
from maxmargin.divide.remote import Afar, Blocks
from maxmargin.runtime import Deadline

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from subproblems import endless

ray = pytest.importorskip("ray")  # has no wheels for the newest Python

PLAN = {"C": 10.0, "gamma": 0.05, "k": 3, "levels": 2, "sample_size": 100, "random_state": 0, "stop_level": 1}


@pytest.fixture(scope="module")
def on_ray(local_ray):
    with joblib.parallel_config("ray"):
        yield


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 3)) * np.where(np.arange(1500) < 100, 30.0, 5.0)[:, None]
    return X, (X[:, 0] > 0) ^ (rng.random(1500) < 0.2)


@pytest.fixture(scope="module")
def here(data):
    return DCSVC(**PLAN).fit(*data)


@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_bits(data, here, on_ray):
    rows = []
    there = DCSVC(**PLAN, callback=rows.append).fit(*data)
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)
    assert there.status_ == "early" and there.level_objective_ == here.level_objective_
    solved = [row["solved"] for row in rows if row["stage"] == 1 and row["level"] == 2]
    assert solved == sorted(solved) and solved[-1] == there.levels_["clusters"][0]


@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_does_not_lose_the_fit(data, here, on_ray):
    @ray.remote
    def where():
        return os.getpid()

    killed = []

    def kill(row):
        if row["stage"] == 1 and row["solved"] >= 1 and not killed:
            killed.append(ray.get(where.remote()))
            os.kill(killed[0], signal.SIGKILL)

    there = DCSVC(**PLAN, callback=kill).fit(*data)
    assert killed
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)


@pytest.mark.filterwarnings("ignore")
def test_an_error_on_a_worker_is_the_users_to_see(data, on_ray):
    def refuses(a, b):
        if len(b) == 100:  # k-means, which runs here
            return a @ b.T
        raise RuntimeError("no kernel today")

    with pytest.raises(RuntimeError, match="no kernel today"):
        DCSVC(kernel=refuses, k=1, levels=1, sample_size=100, stop_level=1, random_state=0).fit(*data)


@pytest.mark.filterwarnings("ignore")
def test_deadlines_hold_on_the_workers(on_ray):
    """Subproblems that would go on for ever: the seconds that are left travel with them."""
    going, pieces = afar(*endless(deadline=Deadline.after(4.0)))
    for _ in going:
        pass
    assert sorted(piece.cluster for piece in pieces) == [0, 1, 2]
    assert {str(piece.result.status) for piece in pieces} <= {"max_time", "stalled"}


@pytest.mark.filterwarnings("ignore")
def test_a_stop_reaches_the_workers(data, on_ray):
    """After it they are free for others: of two worker processes, both answer."""
    X, y = data
    model = DCSVC(**PLAN, callback=lambda row: row["stage"] == 1 and row["solved"] > 0).fit(X, y)
    assert model.status_ == "callback" and model.level_ == 2 and len(model.levels_) == 0
    assert np.isfinite(model.decision_function(X)).all()
    going, _ = afar(*endless())
    for _ in range(6):
        next(going)
    going.close()

    @ray.remote
    def free():
        time.sleep(0.2)
        return True

    assert ray.get([free.remote(), free.remote()], timeout=60) == [True, True]


@pytest.mark.filterwarnings("ignore")
def test_max_time_ends_a_fit(data, on_ray):
    X, y = data
    model = DCSVC(**PLAN, max_time=1e-3).fit(X, y)
    assert model.status_ == "max_time" and np.isfinite(model.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore")
def test_pairs_of_classes_and_points_of_a_grid(data, on_ray):
    """Clusters of every pair of DCSVC; pairs as machines of their own; fits of a grid."""
    X = data[0][:600]
    y = np.digitize(X[:, 0], [-3.0, 3.0])
    with joblib.parallel_config("threading", n_jobs=1):
        here = DCSVC(**PLAN).fit(X, y), *pairs_and_grid(X, y)
    there = DCSVC(**PLAN).fit(X, y), *pairs_and_grid(X, y)
    np.testing.assert_array_equal(there[0].dual_coef_, here[0].dual_coef_)
    np.testing.assert_array_equal(there[1].decision_function(X), here[1].decision_function(X))
    np.testing.assert_array_equal(there[2].cv_results_["mean_test_score"], here[2].cv_results_["mean_test_score"])


def pairs_and_grid(X, y):
    pairs = OneVsOneClassifier(SVC(C=10.0, gamma=0.05), n_jobs=2).fit(X, y)
    return pairs, GridSearchCV(SVC(gamma=0.05), {"C": [0.1, 1.0, 10.0]}, cv=2, n_jobs=2).fit(X, y)


def afar(tasks, members, data):
    blocks, pieces = Blocks(RayCarrier(), len(data.rows), data.rows_of), []
    return Afar(tasks, members, blocks, data.known_frame()).solve(pieces), pieces
