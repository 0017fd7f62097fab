"""maxmargin.dask.LinearSVC on two worker processes: certificates that code of its own confirms, and errors as at home."""

from __future__ import annotations

import doctest
import pickle
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hinge import hinge_svc
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin
import maxmargin.dask


def LinearSVC(**options):
    """With the hinge and a free intercept, which `primal` judges."""
    return maxmargin.dask.LinearSVC(**{"loss": "hinge", "intercept_scaling": None, "tol": 1e-4, "max_iter": -1, **options})


def blobs(n=600, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    return rng.normal(size=(n, d)) + 1.5 * np.eye(classes, d)[y], y


def primal(model, X, y, C, weight=None):
    """½|w|² + C Σ hinge of each one-vs-rest problem, summed, in plain NumPy."""
    weight = np.ones(len(y)) if weight is None else weight
    labels = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    total = 0.0
    for w, b, label in zip(model.coef_, model.intercept_, labels):
        sign = np.where(y == label, 1.0, -1.0)
        total += 0.5 * w @ w + C * (weight @ np.maximum(0, 1 - sign * (X @ w + b)))
    return total


@pytest.mark.parametrize(("kind", "classes"), [("array", 2), ("frame", 3), ("sparse", 2), ("float32", 2)])
def test_certificates_are_true_and_the_model_is_the_local_one(client, kind, classes):
    X, y = blobs(classes=classes)
    weight = np.random.default_rng(1).random(len(y)) + 0.5
    rows, labels = da.from_array(X, chunks=(250, 4)), da.from_array(y, chunks=250)
    weights = da.from_array(weight, chunks=170)
    if kind == "frame":
        frame = pd.DataFrame({**dict(zip("abcd", X.T)), "y": y, "weight": weight})
        table = dd.from_pandas(frame, npartitions=3)
        rows, labels, weights = table[list("abcd")], table["y"], table["weight"]
    elif kind == "sparse":
        X = X * (np.abs(X) > 0.5)
        rows = da.from_array(X, chunks=(250, 4)).map_blocks(sp.csr_matrix)
    elif kind == "float32":
        X = X.astype(np.float32)
        rows = da.from_array(X, chunks=(250, 2))
    model = LinearSVC(client=client, tol=1e-3).fit(rows, labels, weights)
    objective = primal(model, X.astype(np.float64), y, 1.0, weight)
    assert model.status_ == "converged" and model.dual_gap_ <= 1e-3 * model.objective_
    assert objective == pytest.approx(model.objective_, rel=1e-9)
    here = hinge_svc(tol=1e-3).fit(X, y, weight)
    assert model.lower_bound_ <= here.objective_ and here.lower_bound_ <= model.objective_
    predicted = model.predict(rows)
    assert isinstance(predicted, da.Array) and isinstance(model.decision_function(rows), da.Array)
    there = client.compute(predicted).result()
    np.testing.assert_array_equal(there, model.to_local().predict(X))
    assert client.compute(model.decision_function(rows)).result().shape == ((len(y),) if classes == 2 else (len(y), 3))
    assert type(model.to_local()) is maxmargin.LinearSVC
    assert model.trace_["objective"][-1] == model.objective_


def test_empty_partitions_and_classes_that_some_lack(client):
    X, y = blobs(300)
    order = np.argsort(y, kind="stable")  # one class per partition, nearly
    X, y = X[order], y[order]
    parts = [slice(0, 100), slice(100, 100), slice(100, 300)]
    rows = da.concatenate([da.from_array(X[part], chunks=(200, 4)) for part in parts])
    labels = da.concatenate([da.from_array(y[part], chunks=200) for part in parts])
    model = LinearSVC(client=client).fit(rows, labels)
    assert primal(model, X, y, 1.0) == pytest.approx(model.objective_, rel=1e-9)
    empty = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=2)
    with pytest.raises(ValueError, match="all of its 2 partitions are empty"):
        LinearSVC(client=client).fit(empty[empty.a > 1e9], y)


def test_unknown_chunk_sizes_are_computed_with_a_word(client):
    X, y = blobs(300)
    rows, labels = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    keep = rows[:, 0] > -1
    with pytest.warns(UserWarning, match="unknown sizes"):
        model = LinearSVC(client=client).fit(rows[keep], labels[keep])
    kept = X[:, 0] > -1
    assert primal(model, X[kept], y[kept], 1.0) == pytest.approx(model.objective_, rel=1e-9)


def test_errors_say_what_and_where(client):
    X, y = blobs(300)
    rows, labels = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    bad = X.copy()
    bad[250, 1] = np.nan
    machine = LinearSVC(client=client)
    cases = [
        (da.from_array(bad, chunks=(100, 4)), labels, None, r"partition 2 \(of 0 … 2\).*NaN"),
        (rows, da.from_array(y[:-1], chunks=100), None, "X has 300 rows and y has 299"),
        (rows, da.zeros(300, chunks=100, dtype=int), None, "number of classes has to be greater than one"),
        (rows, labels, da.full(300, np.nan, chunks=100), "sample_weight contains NaN"),
        (rows, None, None, "requires y"),
    ]
    for X_, y_, weight, message in cases:
        with pytest.raises(ValueError, match=message):
            machine.fit(X_, y_, weight)
        assert not hasattr(machine, "coef_")
    with pytest.raises(TypeError, match="give a dask array or frame"):
        machine.fit(X, y)
    with pytest.raises(ValueError, match="choose one of 'auto', 'ocas', 'cpa'"):
        LinearSVC(client=client, solver="newton").fit(rows, labels)
    with pytest.raises(ValueError, match=r"there is no Dask client.*client=\.\.\."):
        LinearSVC().fit(rows, labels)
    model = machine.fit(rows, labels)
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.predict(rows[:, :3])


def test_too_little_memory_is_said_before_anything_is_computed(client):
    """512 TB: no block of it is ever made."""
    huge = da.zeros((2**40, 64), chunks=(2**34, 64))
    with pytest.raises(MemoryError, match=r"X takes 5\.63e\+05 GB.*2 workers.*GB together: add workers"):
        LinearSVC(client=client).fit(huge, da.zeros(2**40, chunks=2**34))


def test_limits_callback_and_a_worker_that_dies(client, cluster):
    X, y = blobs(600)
    rows, labels = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    seen, killed = [], []

    def kill(row):
        seen.append(row)
        if len(seen) == 2:
            killed.append(sorted(name for name in cluster.processes if name != "scheduler")[0])
            cluster.kill(killed[0])

    try:
        model = LinearSVC(client=client, tol=1e-3, callback=kill).fit(rows, labels)
    finally:
        assert killed
        cluster.add(killed[0])
        cluster.client.wait_for_workers(2, timeout=60)
    assert model.status_ == "converged" and primal(model, X, y, 1.0) == pytest.approx(model.objective_, rel=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        short = LinearSVC(client=client, tol=1e-9, max_iter=2).fit(rows, labels)
        none = LinearSVC(client=client, max_time=1e-6).fit(rows, labels)
    assert short.status_ == "max_iter" and primal(short, X, y, 1.0) == pytest.approx(short.objective_, rel=1e-9)
    assert none.status_ == "max_time" and none.objective_ - none.dual_gap_ <= model.objective_
    stopped = LinearSVC(client=client, tol=1e-9, callback=lambda row: row["iteration"] >= 2).fit(rows, labels)
    assert stopped.status_ == "callback"


def test_the_example_of_the_package_runs():
    assert doctest.testmod(maxmargin.dask).failed == 0


def test_clones_pickles_and_parameters(client):
    X, y = blobs(300)
    model = LinearSVC(client=client, C=2.0).fit(da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100))
    twin, read = clone(model), pickle.loads(pickle.dumps(model))
    assert twin.client is client and twin.C == 2.0 and not hasattr(twin, "coef_")
    assert read.client is None
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    assert model.set_params(C=3.0).C == 3.0 and "client" not in model.get_params()
