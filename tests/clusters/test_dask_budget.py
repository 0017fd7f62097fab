"""maxmargin.dask.BudgetSVC on two worker processes: the stream of one machine, bit by bit, and an objective that is true."""

from __future__ import annotations

import itertools
import warnings

import dask.array as da
import numpy as np
import pytest
from dask import delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin.budget.model import averaged_state, decision_values, model_coefficients
from maxmargin.budget.sgd import BudgetSolver
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


def spread(client, X, y, weight):
    """Three partitions on each of two workers, whose classes and numbers of rows differ.

    Each has a name of its own (hash=False): equal rows scattered twice share one, and the farewell to the first may
    overtake the second's arrival.
    """
    homes = sorted(client.scheduler_info(n_workers=-1)["workers"])
    ends = [0, 100, 400, 600, 900, 1000, len(y)]
    parts = [slice(*pair) for pair in itertools.pairwise(ends)]

    def there(values):
        futures = [
            client.scatter(values[part], workers=homes[i % 2], direct=True, hash=False) for i, part in enumerate(parts)
        ]
        shapes = [values[part].shape for part in parts]
        return da.concatenate([da.from_delayed(delayed(f), s, values.dtype) for f, s in zip(futures, shapes)])

    return [there(values) for values in (X, y, weight)]


@pytest.mark.parametrize("classes", [2, 3])
def test_one_model_per_worker_is_one_model_in_the_end(client, classes):
    X, y = rings(classes=classes)
    order = np.argsort(y[:600], kind="stable")  # the first partitions lack a class
    X[:600], y[:600] = X[order], y[order]
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    rows = []
    plan = {**PLAN, "client": client, "per_worker": True, "fit_intercept": True, "callback": rows.append}
    there = spread(client, X, y, weight)
    model = BudgetSVC(**plan).fit(*there)
    assert model.status_ == "completed" and len(model.support_vectors_) <= 40 and model.n_iter_ == len(rows) == 2
    assert model.objective_ == pytest.approx(primal(model, X, y, 10.0, weight), rel=1e-5)
    assert model.score(X, y) > 0.9
    travelled = BudgetSVC(**plan | {"per_worker": False}).fit(*there)
    assert not np.array_equal(travelled.support_vectors_, model.support_vectors_)
    twin = clone(model)
    assert twin.per_worker and type(model.to_local()) is maxmargin.BudgetSVC and not hasattr(model.to_local(), "per_worker")


@pytest.mark.parametrize("maintenance", ["merge", "remove", "project"])
def test_the_mean_of_models_and_what_merging_makes_of_it(maintenance):
    """The mean is exact; merged down to the budget it is near (what is lost by removing is what was removed)."""
    X, y = rings(600)
    state, options = [], None
    for part in (slice(0, 200), slice(200, 600)):
        here = maxmargin.BudgetSVC(C=10.0, gamma=0.5, budget=40, maintenance=maintenance, stream_size=600)
        here.partial_fit(X[part], y[part], classes=[0, 1])
        state.append(here._state)
        options = here._resumed()
    mean = averaged_state(state, options.lam, options.averaging)
    models = [model_coefficients(s, options.lam, options.averaging) for s in state]
    each = [decision_values(X, np.arange(600), s["centres"], *m, 0.5, 1) for s, m in zip(state, models)]
    wanted = each[0] / 3 + each[1] * 2 / 3  # 200 and 400 steps
    coef, intercept = model_coefficients(mean, options.lam, options.averaging)
    got = decision_values(X, np.arange(600), mean["centres"], coef, intercept, 0.5, 1)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    count = sum(len(s["centres"]) for s in state)
    core = BudgetSolver(options, [])._resumed(mean, count)
    assert core.count == count > 60
    core.reduce(1)
    assert core.count == count - 1
    core.reduce(1000)
    assert core.count == 40
    reduced = core.state()
    coef, intercept = model_coefficients(reduced, options.lam, options.averaging)
    after = decision_values(X, np.arange(600), reduced["centres"], coef, intercept, 0.5, 1)
    lost = np.abs(after - wanted).mean() / np.abs(wanted).mean()
    assert lost < {"merge": 0.3, "remove": 1.0, "project": 0.3}[maintenance]
    assert np.mean((after > 0) == (wanted > 0)) > {"merge": 0.95, "remove": 0.7, "project": 0.95}[maintenance]


def test_per_worker_stopped_and_wrong(client):
    X, y = rings()
    parts, plan = spread(client, X, y, np.ones(len(y))), {**PLAN, "client": client, "per_worker": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        none = BudgetSVC(**plan, max_time=1e-6).fit(*parts)
    assert none.status_ == "max_time"
    assert none.objective_ == pytest.approx(primal(none, X, y, 10.0, np.ones(len(y))), rel=1e-5)
    stopped = BudgetSVC(**plan, callback=lambda row: True).fit(*parts)
    assert stopped.status_ == "callback" and stopped.n_iter_ == 1 and len(stopped.support_vectors_) <= 40
    with pytest.raises(ValueError, match="per_worker=2"):
        BudgetSVC(**plan | {"per_worker": 2}).fit(*parts)


def test_scattered_rows_that_are_gone_are_named(client):
    X, y = rings(300)
    futures = [client.scatter(X[part], hash=False) for part in (slice(0, 200), slice(200, 300))]
    rows = da.concatenate([da.from_delayed(delayed(f), (n, 2), X.dtype) for f, n in zip(futures, (200, 100))])
    client.cancel(futures[1], force=True)
    with pytest.raises(RuntimeError, match="partitions of the data were lost"):
        BudgetSVC(**PLAN, client=client).fit(rows, da.from_array(y, chunks=((200, 100),)))
