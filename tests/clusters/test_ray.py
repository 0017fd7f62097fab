"""Clusters of DCSVC on a local Ray of two worker processes."""

from __future__ import annotations

import os
import signal

import joblib
import numpy as np
import pytest

from maxmargin import DCSVC

ray = pytest.importorskip("ray")  # has no wheels for the newest Python

PLAN = {"C": 10.0, "gamma": 0.05, "k": 3, "levels": 2, "sample_size": 100, "random_state": 0, "stop_level": 1}


@pytest.fixture(scope="module")
def on_ray():
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    register_ray()
    with joblib.parallel_config("ray"):
        yield
    ray.shutdown()


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
