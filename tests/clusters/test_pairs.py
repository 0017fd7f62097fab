"""The pairs of classes of one machine in other processes: joblib's, Dask's, Ray's. The same bits as in threads."""

from __future__ import annotations

import os
import signal
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Future
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from maxmargin import SVC, NuSVC, certify_fit
from maxmargin.carriers.on_dask import DaskCarrier
from maxmargin.decomposition import apart
from maxmargin.decomposition.apart import Apart

BACKENDS = ["loky", "multiprocessing", "dask", "ray"]
DIGITS = load_digits(return_X_y=True)


def dot(a, b):
    return np.asarray(a @ b.T)


def refuses(a, b):
    raise RuntimeError("no kernel today")


def gram(X):
    return np.exp(-0.001 * np.square(X[:, None] - X).sum(axis=2))


def cases():
    X, y = (part[:900] for part in DIGITS)
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    return {
        "dense": (SVC(C=10), *DIGITS, None),  # more than 1,000 samples: float32
        "float32": (SVC(kernel="poly", degree=2), X.astype(np.float32), y, None),
        "csr": (SVC(kernel="linear"), sp.csr_matrix(X), y, None),
        "weights": (SVC(class_weight="balanced"), X, y, weights),
        "nu": (NuSVC(nu=0.2), X, y, None),
        "two stages": (NuSVC(nu=0.1, class_weight={3: 2.0}), X, y, None),
        "large pairs": (SVC(working_set_size=50), X, y, None),
        "gram": (SVC(kernel="precomputed"), gram(X[:300]), y[:300], None),
        "function": (SVC(kernel=dot), X[:300], y[:300], None),
    }


@pytest.fixture
def on(request, cluster):
    """Within a test: the backend of that name is the active one."""
    if request.param == "ray":
        request.getfixturevalue("local_ray")
    with cluster.client.as_current(), joblib.parallel_config(request.param, n_jobs=2):
        yield


@pytest.fixture
def used(monkeypatch):
    """The machines that were solved apart."""
    seen = []

    class Seen(Apart):
        def __init__(self, *args):
            super().__init__(*args)
            seen.append(self)

    monkeypatch.setattr("maxmargin.estimators._pairs.Apart", Seen)
    return seen


def at_home(machine, X, y, weight=None):
    with joblib.parallel_config("threading", n_jobs=1):
        return machine.fit(X, y, sample_weight=weight)


def same(there, here, X):
    np.testing.assert_array_equal(there.support_, here.support_)
    np.testing.assert_array_equal(there._dual, here._dual)
    np.testing.assert_array_equal(there.intercept_, here.intercept_)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    assert (there.status_, there.objective_, there.dual_gap_) == (here.status_, here.objective_, here.dual_gap_)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("on", BACKENDS, indirect=True)
def test_every_backend_gives_the_same_bits(on, used):
    for name, (machine, X, y, weight) in cases().items():
        rows = []
        there = machine.set_params(callback=rows.append).fit(X, y, sample_weight=weight)
        assert len(used) == 1, name
        used.clear()
        done = [row["done"] for row in rows]
        assert done == sorted(done) and 0 < done[0] < done[-1] == 45, name
        kept = dict(vars(there))
        here = at_home(machine.set_params(callback=None), X, y, weight)
        assert not used
        there = type(machine)()
        vars(there).update(kept)
        same(there, here, X)


def test_the_certificate_is_true(on_dask, used):
    X, y = DIGITS
    model = SVC(C=10, tol=1e-4).fit(X, y)
    judged = certify_fit(model, X, y)
    assert used and model.status_ == "converged"
    assert model.objective_ == pytest.approx(judged.primal, rel=1e-6) and judged.gap <= 1e-3 * judged.primal


def test_rows_of_a_class_are_sent_once_and_nothing_large_by_the_scheduler(on_dask, used, monkeypatch):
    put, inline = [], []
    put_all, solve = DaskCarrier.put_all, DaskCarrier.solve

    def seen_put(self, values, at=None):
        put.extend(value for value in values if isinstance(value, np.ndarray))
        return put_all(self, values, at)

    def seen_solve(self, function, *args):
        inline.extend(arg for arg in args if not isinstance(arg, Future))
        return solve(self, function, *args)

    monkeypatch.setattr(DaskCarrier, "put_all", seen_put)
    monkeypatch.setattr(DaskCarrier, "solve", seen_solve)
    X, y = DIGITS
    SVC().fit(X, y)
    assert sum(map(len, put)) == len(X) and not inline


def test_a_worker_killed_in_the_middle_does_not_lose_the_fit(on_dask, cluster, used):
    X, y = DIGITS
    killed = []

    def kill(row):
        if not killed:
            killed.append(sorted(name for name in cluster.processes if name != "scheduler")[0])
            cluster.kill(killed[0])

    try:
        there = SVC(C=10, callback=kill).fit(X, y)
    finally:
        assert killed
        cluster.add(killed[0])
        cluster.client.wait_for_workers(2, timeout=60)
    same(there, at_home(SVC(C=10), X, y), X)


def test_workers_that_all_die_are_an_error_that_says_what_they_need(on_dask, monkeypatch):
    monkeypatch.setattr(DaskCarrier, "get", lambda self, ref: (_ for _ in ()).throw(apart.LostError("killed")))
    with pytest.raises(RuntimeError, match=r"4 workers died .* problems of up to \d+ samples: killed.* 200 MB"):
        SVC().fit(*DIGITS)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("on", BACKENDS, indirect=True)
def test_an_error_there_is_the_users_to_see(on):
    X, y = make_blobs(60, centers=3, random_state=0)
    with pytest.raises(RuntimeError, match="no kernel today"):
        SVC(kernel=refuses).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("on", BACKENDS, indirect=True)
@pytest.mark.parametrize("why", ["callback", "max_time", "max_iter"])
def test_stopped_runs_say_so_and_have_a_model_of_every_pair(on, why):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 2)), rng.integers(0, 4, 2000)  # nothing to learn: tol = 1e-12 is far away
    plan = {
        "callback": {"callback": lambda row: True},
        "max_time": {"max_time": 0.3, "tol": 1e-12, "C": 1e3},
        "max_iter": {"max_iter": 1, "C": 1e3},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(gamma=50.0, working_set_size=50, **plan[why]).fit(X, y)
    assert model.status_ == why and np.isfinite(model.decision_function(X)).all()
    judged = certify_fit(model, X, y)
    assert model.objective_ == pytest.approx(judged.primal, rel=1e-5)  # sums of float32 values
    assert judged.gap <= model.dual_gap_ + 1e-5 * judged.primal


def test_ctrl_c_keeps_the_best_and_frees_the_workers(on_dask):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 2)), rng.integers(0, 4, 3000)

    def interrupt(row):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVC(C=100.0, callback=interrupt).fit(X, y)
    assert model.status_ == "interrupted" and np.isfinite(model.decision_function(X)).all()


def test_a_checkpoint_of_pairs_that_were_solved_elsewhere(on_dask, tmp_path):
    X, y = DIGITS
    plan = {"C": 10.0, "checkpoint": tmp_path / "fit.ckpt", "checkpoint_every": 1e-9}
    SVC(**plan, callback=lambda row: row["done"] >= 10).fit(X, y)
    with joblib.parallel_config("threading", n_jobs=1):
        there = SVC(**plan).fit(X, y)
    here = at_home(SVC(C=10.0), X, y)
    assert there.status_ == "converged" and there.objective_ == pytest.approx(here.objective_, rel=1e-3)


def test_fits_of_a_grid_on_the_cluster_keep_their_pairs(on_dask):
    """The grid has the workers already: a fit there does not ask for them again."""
    X, y = DIGITS
    search = GridSearchCV(SVC(), {"C": [0.1, 10.0]}, cv=2, n_jobs=2).fit(X[:600], y[:600])
    with joblib.parallel_config("threading", n_jobs=1):
        here = GridSearchCV(SVC(), {"C": [0.1, 10.0]}, cv=2).fit(X[:600], y[:600])
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"])


def test_two_classes_stay_here(on_dask, used):
    X, y = DIGITS
    SVC().fit(X, y > 4)
    assert not used
