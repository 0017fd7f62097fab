"""The clusters of DCSVC on any joblib backend: the same bits, and limits that hold wherever the subproblems run."""

import pickle
import threading
import time
import warnings

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import MultiprocessingBackend
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC, DCSVR
from maxmargin.carriers import by_joblib
from maxmargin.decomposition.options import Options
from maxmargin.divide.level import Level
from maxmargin.divide.side_by_side import in_threads
from maxmargin.divide.subproblem import Subproblem, solve_subproblem
from maxmargin.kernel_values import KernelData
from maxmargin.problem.formulations import c_svc
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import NEVER, Deadline


class RayLike(MultiprocessingBackend):
    """As Ray's: a pool of processes that hands over a whole list and nothing before."""

    supports_return_generator = False


joblib.register_parallel_backend("ray-like", RayLike)
PROCESSES = ["loky", "multiprocessing", "ray-like"]


def outliers(n=1500):
    """From 1,001 samples on values are float32, where rounding shows; far outliers make for large norms."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3)) * np.where(np.arange(n) < n // 15, 30.0, 5.0)[:, None]
    return X, (X[:, 0] > 0) ^ (rng.random(n) < 0.2)


PLAN = {"C": 10.0, "gamma": 0.05, "k": 3, "levels": 2, "sample_size": 100, "random_state": 0}


@pytest.mark.parametrize("cache_size", [200, 1])
@pytest.mark.parametrize("stop_level", [0, 1])
def test_any_number_of_threads_gives_the_same_bits(stop_level, cache_size):
    X, y = outliers()
    one, two = (DCSVC(**PLAN, n_jobs=n, stop_level=stop_level, cache_size=cache_size).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(two.support_, one.support_)
    np.testing.assert_array_equal(two.dual_coef_, one.dual_coef_)
    assert two.level_objective_ == one.level_objective_


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("backend", [*PROCESSES, "threading", "sequential"])
def test_any_backend_gives_the_same_bits(backend):
    X, y = outliers()
    here = DCSVC(**PLAN, stop_level=1, n_jobs=2).fit(X, y)  # its threads are there when the processes fork
    rows = []
    with joblib.parallel_config(backend, n_jobs=1 if backend == "sequential" else 2):
        there = DCSVC(**PLAN, stop_level=1, callback=rows.append).fit(X, y)
    np.testing.assert_array_equal(there.support_, here.support_)
    np.testing.assert_array_equal(there.dual_coef_, here.dual_coef_)
    np.testing.assert_array_equal(there.decision_function(X), here.decision_function(X))
    assert there.status_ == "early" and there.level_objective_ == here.level_objective_
    solved = [row["solved"] for row in rows if row["stage"] == 1 and row["level"] == 2]
    assert solved == sorted(solved) and 0 < solved[0] < solved[-1] == there.levels_["clusters"][0]


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_several_classes_and_regression_in_processes(backend):
    X, _ = outliers(600)
    y, target = np.digitize(X[:, 0], [-3, 3]), np.sin(X[:, 0])
    machines = (DCSVC(**PLAN, fit_intercept=True, stop_level=2), y), (DCSVR(**PLAN, stop_level=2), target)
    for machine, labels in machines:
        here = machine.fit(X, labels).predict(X)
        with joblib.parallel_config(backend, n_jobs=2):
            np.testing.assert_array_equal(machine.fit(X, labels).predict(X), here)


def subproblems(count=4, n=60, deadline=NEVER, stop=None, **options):
    rng = np.random.default_rng(0)
    X, every = rng.normal(size=(count * n, 2)), np.arange(n)
    data = KernelData(X, Kernel("rbf", 5.0), np.arange(count * n), np.float64, 1)
    qp = c_svc(np.where(rng.random(n) < 0.5, 1.0, -1.0), np.full(n, 1e3), False)
    same = {"qp": qp, "data": data, "alpha": None, "options": Options(**options), "deadline": deadline, "stop": stop}
    return [Subproblem(0, c, every, c * n + every, **same) for c in range(count)]


def test_a_deadline_travels_as_the_seconds_that_are_left():
    task = subproblems(1, deadline=Deadline.after(100.0))[0]
    raw = pickle.dumps(task)
    time.sleep(0.2)  # on the way; the other machine's clock counts from its own start
    there = pickle.loads(raw)
    assert 99.9 < there.deadline.left() <= 100.0
    assert task.deadline.left() < 99.85


@pytest.mark.parametrize("backend", PROCESSES)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_time_that_is_up_stops_subproblems_in_processes(backend):
    """Each would take for ever: tol=0 is never reached."""
    tasks = subproblems(3, deadline=Deadline.after(0.3), tol=0.0, working_set_size=2)
    pieces = []
    with joblib.parallel_config(backend, n_jobs=2):
        for _ in by_joblib([joblib.delayed(solve_subproblem)(task) for task in tasks], 2, pieces):
            pass
    assert sorted(piece.cluster for piece in pieces) == [0, 1, 2]
    assert {str(piece.result.status) for piece in pieces} <= {"max_time", "stalled"}


@pytest.mark.parametrize("backend", PROCESSES)
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_stop_between_results_does_not_wait_for_the_rest(backend):
    X, y = outliers(600)
    with joblib.parallel_config(backend, n_jobs=2), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DCSVC(**PLAN, callback=lambda row: row["stage"] == 1 and row["solved"] > 0).fit(X, y)
    assert model.status_ == "callback" and model.level_ == 2 and len(model.levels_) == 0
    assert np.isfinite(model.decision_function(X)).all()
    solved = ~np.isnan(model.trace_["solved"])
    assert 0 < model.trace_["solved"][solved][-1] < model.trace_["subproblems"][solved][-1]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("jobs", [1, 2, 3, 5, 8])
def test_who_is_larger_than_an_equal_share_has_all_threads_to_itself(jobs, shared, monkeypatch):
    """Largest first; in processes nobody has, and with one worker everybody."""
    rng = np.random.default_rng(0)
    sizes = [150, 100, 60, 40, 40]
    X = np.concatenate([rng.normal(size=(n, 2)) + 100 * c for c, n in enumerate(sizes)])
    alone, beside = [], []
    solve_alone = Level._solve_alone
    monkeypatch.setattr(Level, "_solve_alone", lambda self, task: alone.append(task.size) or solve_alone(self, task))
    for way, given in (("in_threads", shared), ("by_joblib", not shared)):

        def one_by_one(tasks, *more, given=given):
            assert given
            beside.extend(tasks)
            more[-1].extend(solve_subproblem(task if shared else task[1][0]) for task in tasks)
            yield None

        monkeypatch.setattr(f"maxmargin.divide.level.{way}", one_by_one)
    monkeypatch.setattr("maxmargin.divide.level.workers", lambda threads: (jobs, shared))
    model = DCSVC(k=5, levels=1, stop_level=1, random_state=0, gamma=1e-3).fit(X, rng.integers(0, 2, len(X)))
    found = sorted(np.bincount(model._committee.router.cluster(X, 1)).tolist(), reverse=True)
    large = [n for n in found if n**2 > np.square(found).sum() / jobs] if shared else []
    assert alone == (found if jobs == 1 else large) and len(beside) == len(found) - len(alone)
    assert len(found) >= 3 and model.status_ == "early"


def test_threads_that_are_stopped_hand_over_what_they_reached():
    stop, pieces = threading.Event(), []
    steps = in_threads(subproblems(4, stop=stop, tol=0.0, working_set_size=2), 2, stop, pieces)
    next(steps)
    steps.close()
    assert stop.is_set() and 1 <= len(pieces) <= 3  # those that had begun; the rest never did
    assert all(piece.result.alpha.any() for piece in pieces)


def test_an_error_in_a_subproblem_reaches_the_user_and_changes_nothing():
    X, y = outliers(300)

    def kernel(a, b):
        if len(a) == len(b) == 300 or armed:
            raise RuntimeError("no kernel today")
        return Kernel("rbf", 0.05)(a, b)

    armed = False
    machine = DCSVC(**{**PLAN, "kernel": kernel, "stop_level": 1}).fit(X, y)
    before, armed = machine.dual_coef_.copy(), True
    for workers in (1, 2):
        with joblib.parallel_config("threading", n_jobs=workers), pytest.raises(RuntimeError, match="no kernel today"):
            machine.fit(X, y)
        np.testing.assert_array_equal(machine.dual_coef_, before)


def test_a_solved_subproblem_is_the_same_after_a_journey():
    task = subproblems(2)[1]
    here, there = solve_subproblem(task), solve_subproblem(pickle.loads(pickle.dumps(task)))
    np.testing.assert_array_equal(here.result.alpha, there.result.alpha)
    assert (here.problem, here.cluster) == (there.problem, there.cluster)
    assert len(pickle.dumps(task)) < 2 * task.data.X[: task.size].nbytes + 10_000  # its own rows, not those of others
