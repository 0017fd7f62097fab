"""Machines for rows in partitions: fits whose workers are this process, against the machines that have all rows."""

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parent))
from partitioned import partitions

import maxmargin
from maxmargin.budget.model import decision_values
from maxmargin.budget.objective import Objective
from maxmargin.budget.precision import needs_double
from maxmargin.budget.sgd import Batch, BudgetSolver
from maxmargin.dask import DCSVC, DCSVR, BudgetSVC, LinearSVC
from maxmargin.dask import budget as budgeted
from maxmargin.dask import machine as machines
from maxmargin.dask.budget import PartitionedObjective, TravellingSolver, block_double, block_losses, block_visit
from maxmargin.dask.machine import _called, _one_column
from maxmargin.runtime import Control, Deadline, Status, drained, run, steps

FORMS = [np.asarray, sp.csr_matrix]
CUTS = (70, 70, 200, 330)  # of 400 rows: one of the partitions has none
CLIENT = SimpleNamespace(nthreads=lambda: {"one": 1})
PLAN = {"C": 10.0, "gamma": 0.5, "budget": 30, "epochs": 2, "random_state": 0}


def rows(n=400, d=3, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X[:, :classes] + 0.5 * rng.normal(size=(n, classes)), axis=1)
    weight = rng.integers(0, 3, n).astype(float)
    weight[200:330] = 0.0  # a partition that does not count
    return X, y, weight


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Arrays as collections, and all that was made of them."""
    made = []

    def given(client, X, y, weight):
        assert client is CLIENT
        made.append(partitions(X, CUTS, np.asarray(y), weight))
        return made[-1]

    monkeypatch.setattr(machines, "Partitions", given)
    return made


# ---- linear machines


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("intercept", [None, 2.0, False])
@pytest.mark.parametrize(("classes", "solver"), [(2, "ocas"), (2, "cpa"), (3, "ocas")])
def test_a_linear_machine_takes_the_turns_of_the_local_one(form, classes, intercept, solver, here):
    X, y, weight = rows(classes=classes)
    options = {"loss": "hinge", "tol": 1e-3, "solver": solver, "max_iter": 2000, "n_jobs": 1}
    options |= {"fit_intercept": False} if intercept is False else {"intercept_scaling": intercept}
    there = LinearSVC(client=CLIENT, **options).fit(form(X), y, weight)
    local = maxmargin.LinearSVC(**options).fit(form(X), y, weight)
    assert there.status_ == "converged" and abs(there.n_iter_ - local.n_iter_) <= 0.1 * local.n_iter_ + 2
    assert there.objective_ == pytest.approx(local.objective_, rel=1.1e-3)
    assert there.lower_bound_ <= local.objective_ and local.lower_bound_ <= there.objective_
    scores = X @ there.coef_.T + there.intercept_
    total = 0.0
    for k, score in enumerate(scores.T):
        sign = np.where(y == (k if classes > 2 else 1), 1.0, -1.0)
        bias = 0.0 if not intercept else (there.intercept_[k] / intercept) ** 2
        total += 0.5 * (there.coef_[k] @ there.coef_[k] + bias) + weight @ np.maximum(0, 1 - sign * score)
    assert there.objective_ == pytest.approx(total, rel=1e-9)
    again = LinearSVC(client=CLIENT, **options, warm_start=True).fit(form(X), y, weight)
    first = again.n_iter_
    assert again.fit(form(X), y, weight).n_iter_ <= max(1, first) and len(here) == 3
    assert again._fingerprint(None) == ""


def test_the_extent_of_all_partitions_is_the_largest_of_each(here):
    X, y, _ = rows()
    X[0], X[399] = [9.0, 0, 0], [0, -9.5, 0]
    model = LinearSVC(client=CLIENT)
    data = model._data(SimpleNamespace(X=partitions(X, CUTS), code=y, effective=np.ones(400), classes=[0, 1]))
    np.testing.assert_array_equal(data.extent.columns, np.abs(X).max(axis=0))
    assert 9.5 <= data.extent.norm <= 9.5 * (1 + 1e-14)


# ---- what all machines share


def test_a_machine_says_what_it_was_fitted_to(here, monkeypatch):
    X, y, weight = rows()
    model = LinearSVC(client=CLIENT).fit(X, y, weight)
    assert model.n_features_in_ == 3 and not hasattr(model, "feature_names_in_") and len(here) == 1
    given = machines.Partitions

    def named(names):
        def made(*asked):
            out = given(*asked)
            out.names = names
            return out

        return made

    monkeypatch.setattr(machines, "Partitions", named(["a", "b", "c"]))
    model.fit(X, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"] and model.feature_names_in_.dtype == object
    frame = pd.DataFrame(X, columns=list("abc"))
    model._check_names(frame)
    model._check_names(X)
    with pytest.raises(ValueError, match="feature names should match those"):
        model._check_names(frame[list("acb")])
    monkeypatch.setattr(machines, "Partitions", named(["a", 1, "c"]))
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    model._check_names(frame)


def test_local_twins_copies_and_connections(here):
    X, y, weight = rows()
    model = BudgetSVC(client=CLIENT, per_worker=True, **PLAN)
    assert "client" not in model.get_params() and model.get_params()["per_worker"] is True
    assert BudgetSVC._get_param_names() == sorted([*maxmargin.BudgetSVC._get_param_names(), "per_worker"])
    twin = clone(model)
    assert twin.client is CLIENT and twin.per_worker and twin.get_params() == model.get_params()
    model = LinearSVC(client=CLIENT, C=3.0, class_weight={0: 1.0, 1: 2.0}).fit(X, y, weight)
    assert clone(model).class_weight == model.class_weight and clone(model).class_weight is not model.class_weight
    assert pickle.loads(pickle.dumps(model)).client is None and model.client is CLIENT
    local = model.to_local()
    assert type(local) is maxmargin.LinearSVC and local.C == 3.0 and not hasattr(local, "client")
    np.testing.assert_array_equal(local.predict(X), model.predict(X))
    np.testing.assert_array_equal(local.decision_function(X), model.decision_function(X))
    assert not hasattr(BudgetSVC(client=CLIENT, per_worker=False, **PLAN).fit(X, y).to_local(), "per_worker")


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_for_collections_are_lazy_and_those_of_the_local_machine(classes, here):
    X, y, _ = rows(classes=classes)
    model = LinearSVC(client=CLIENT).fit(X, np.array(["low", "mid", "top"])[y])
    for chunks in ((150, 3), (150, 2), (400, 1)):
        lazily = model.predict(da.from_array(X, chunks=chunks)), model.decision_function(da.from_array(X, chunks=chunks))
        for found, expected in zip(lazily, (model.predict(X), model.decision_function(X))):
            assert isinstance(found, da.Array) and found.shape == expected.shape and found.dtype == expected.dtype
            assert found.chunks[0] == da.from_array(X, chunks=chunks).chunks[0]
            np.testing.assert_array_equal(found.compute(scheduler="sync"), expected)
    kept = da.from_array(X, chunks=(150, 3))
    kept = kept[kept[:, 0] > 1.5]  # some chunks may have no rows
    np.testing.assert_array_equal(model.predict(kept).compute(scheduler="sync"), model.predict(X[X[:, 0] > 1.5]))
    assert _called(np.empty((0, 3)), model.to_local(), "predict").shape == (0,)
    assert _called(np.empty((0, 3)), model.to_local(), "decision_function").shape == ((0, 3) if classes == 3 else (0,))
    for wrong in (da.from_array(X[:, :2], chunks=100), da.from_array(X[:, 0], chunks=100)):
        with pytest.raises(ValueError, match="is expecting 3 features as input"):
            model.predict(wrong)


def test_labels_are_one_column_of_numbers_that_are_finite():
    for y in (np.arange(3), np.arange(3)[:, None], np.array(["a", "b", "c"])):
        assert _one_column(y, False).tolist() == y.ravel().tolist()
    out = _one_column(np.arange(3), True)
    assert out.dtype == np.float64 and out.tolist() == [0.0, 1.0, 2.0]
    for wrong in (np.ones((3, 2)), np.ones((3, 1, 1)), np.array(1.0)):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            _one_column(wrong, False)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="y contains NaN or infinity"):
            _one_column(np.array([1.0, value]), True)


# ---- budgeted machines


def options_of(model, X, weight, classes=2):
    return model._options(X, classes, 0.5, weight, int((weight > 0).sum()))


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("form", FORMS)
def test_a_visit_is_a_pass_of_the_local_solver_over_the_rows_that_count(seed, form):
    X, y, weight = rows()
    options = options_of(BudgetSVC(**PLAN), X, weight)
    labels, state, counters = y.astype(np.int32), None, None
    for part in (slice(0, 70), slice(70, 200)):
        kept = (form(X[part]), labels[part], weight[part])
        order = np.flatnonzero(weight[part] > 0)
        order = order if seed is None else np.random.default_rng(seed).permutation(order)
        solver = BudgetSolver(options, [[Batch(kept[0], order, kept[1], kept[2])]], state)
        expected = drained(steps(solver, Control()))
        found, counters = block_visit(kept[0], options, Deadline(), kept[1], kept[2], seed, state)
        assert counters["steps"] == len(order) == expected.steps
        for name, value in expected.state.items():
            np.testing.assert_array_equal(found[name], value)
        state = found


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_the_objective_of_a_budgeted_model_is_that_of_all_rows(classes, form):
    X, y, weight = rows(n=400, classes=classes)
    options, rng = options_of(BudgetSVC(**PLAN, fit_intercept=True), X, weight, classes), np.random.default_rng(1)
    labels, outputs = y.astype(np.int32), 1 if classes == 2 else classes
    models = [(rng.normal(size=(outputs, 6)), rng.normal(size=outputs)) for _ in range(3)]
    there = PartitionedObjective(partitions(form(X), CUTS), labels, weight, options, 1)(X[:6], models)
    local = Objective(form(X), np.arange(400), labels, weight, options, 1)(X[:6], models)
    np.testing.assert_allclose(there, local, rtol=1e-9)
    coef, intercept = (np.concatenate([m[k] for m in models]) for k in range(2))
    long = form(np.tile(X, (42, 1)))  # more rows than are looked at together
    losses = block_losses(long, X[:6], coef, intercept, options, 3, np.tile(labels, 42), np.tile(weight, 42))
    values = decision_values(X, np.arange(400), X[:6], coef, intercept, 0.5, 1)
    for k in range(3):
        total = 0.0
        for c in range(outputs):
            sign = np.where(labels == (1 if outputs == 1 else c), 1.0, -1.0)
            total += weight @ np.maximum(0, 1 - sign * values[:, outputs * k + c])
        assert losses[k] == pytest.approx(42 * total, rel=1e-9)


def test_rows_that_count_decide_whether_a_model_needs_more_precision():
    X, _, weight = rows()
    big = 1e5 * X
    assert needs_double(big, 0.5, 1e9, weight[weight > 0]) and not needs_double(X, 0.5, 1.0, weight[weight > 0])
    assert block_double(big, 0.5, 1e9, weight) is True and block_double(X, 0.5, 1.0, weight) is False
    assert block_double(big, 0.5, 1e9, 0 * weight) is False
    assert block_double(big[:0], 0.5, 1e9, weight[:0]) is False


def tours(model, groups):
    model.epochs = 3
    parts, weights = [f"labels {i}" for i in range(6)], [f"weights {i}" for i in range(6)]
    return list(model._tour(groups, parts, weights, np.random.default_rng(0)))


@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_visits_each_partition_once_and_every_model_in_each_round_while_it_has_some(shuffle):
    orders = set()
    for groups in ([[0, 2, 3, 5]], [[0, 2, 3], [5]], [[1], [0, 4], [2, 3, 5]]):
        found, seeds = tours(BudgetSVC(**PLAN, shuffle=shuffle), groups), []
        assert len(found) == 3
        for rounds in found:
            assert len(rounds) == max(map(len, groups))
            for k, some in enumerate(groups):
                mine = [visits[k] for visits in rounds if k in visits]
                assert [k in visits for visits in rounds] == [j < len(some) for j in range(len(rounds))]
                numbers = [visit.number for visit in mine]
                assert numbers == some if not shuffle else sorted(numbers) == some
                orders.add(tuple(numbers))
                for visit in mine:
                    assert (visit.labels, visit.weights) == (f"labels {visit.number}", f"weights {visit.number}")
                    assert (visit.seed is None) != shuffle
                    seeds.append(visit.seed)
        assert not shuffle or (len(set(seeds)) == len(seeds) and all(0 <= seed < 2**31 for seed in seeds))
    assert (len(orders) > 6) == shuffle


def test_partitions_of_a_worker_belong_to_its_model():
    made = partitions(rows()[0], CUTS)
    made.homes = lambda: ["b", "a", "b", "", "a"]
    for per_worker, expected in ((False, [[0, 2, 3, 4]]), (True, [[3], [4], [0, 2]])):
        assert BudgetSVC(client=CLIENT, per_worker=per_worker)._groups(made, [0, 2, 3, 4]) == expected


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("gamma", [0.5, "auto", "scale"])
def test_partitions_in_order_are_a_stream_of_chunks(classes, gamma, here):
    X, y, weight = rows(classes=classes)
    plan = {**PLAN, "shuffle": False, "class_weight": "balanced" if gamma == "auto" else None}
    there = BudgetSVC(client=CLIENT, **plan | {"gamma": gamma}).fit(X, y, weight)
    expected = {"auto": 1 / 3, "scale": 1 / (3 * np.repeat(X, weight.astype(int), axis=0).var()), 0.5: 0.5}[gamma]
    assert there.gamma_ == pytest.approx(expected, rel=1e-9)
    kept = [slice(0, 70), slice(70, 200), slice(330, 400)]
    if gamma == 0.5:
        local = maxmargin.BudgetSVC(**plan).fit_stream([(X[p], y[p], weight[p]) for p in kept], range(classes))
        np.testing.assert_array_equal(there.support_vectors_, local.support_vectors_)
        np.testing.assert_array_equal(there.dual_coef_, local.dual_coef_)
    visited = [args for function, args in here[0].carrier.calls if function is block_visit]
    assert len(visited) == 2 * len(kept) and there.status_ == "completed" and there.n_iter_ == 2
    assert [len(args[0]) for args in visited] == [70, 130, 70] * 2
    total = np.count_nonzero(weight)
    assert visited[0][1].visits == total
    assert there.trace_["objective"][-1] == there.objective_


def test_shuffled_fits_depend_on_the_seed_alone(here):
    X, y, weight = rows()
    one, two, three = (
        BudgetSVC(client=CLIENT, **PLAN | {"random_state": seed}, shuffle=True).fit(X, y, weight) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    assert not np.array_equal(one.support_vectors_, three.support_vectors_)
    orders = [[len(args[0]) for function, args in made.carrier.calls if function is block_visit] for made in here]
    assert orders[0] == orders[1] and all(sorted(order) == [70, 70, 70, 70, 130, 130] for order in orders)


def test_models_of_several_workers_are_merged_after_every_epoch_and_go_on_as_they_were(here, monkeypatch):
    X, y, weight = rows()
    given = machines.Partitions

    def spread(*asked):
        out = given(*asked)
        out.homes = lambda: ["a", "b", "a", "b", "b"]
        return out

    monkeypatch.setattr(machines, "Partitions", spread)
    solvers, make = [], TravellingSolver.__init__

    def seen(self, *args, **options):
        make(self, *args, **options)
        solvers.append(self)

    monkeypatch.setattr(TravellingSolver, "__init__", seen)
    counts = []
    plan = {**PLAN, "shuffle": False, "per_worker": True, "client": CLIENT}
    model = BudgetSVC(**plan, callback=lambda row: counts.append(row["n_support"])).fit(X, y, weight)
    (solver,) = solvers
    assert len(model.support_vectors_) == 30 and counts == [30, 30] and model.status_ == "completed"
    visits = [args for function, args in here[0].carrier.calls if function is block_visit]
    assert [len(args[0]) for args in visits] == [70, 70, 130] * 2  # a round of both workers, and one of the first
    states = [args[-1] for args in visits]
    assert states[0] is None and states[1] is None
    first, second, last = (np.count_nonzero(weight[part]) for part in (slice(0, 70), slice(70, 200), slice(330, 400)))
    learnt = [0 if state is None else int(state["clock"][0]) for state in states]
    assert learnt == [0, 0, first, first + second, last, 2 * first + second]  # each goes on from its own
    assert solver._run["steps"] == 2 * (first + second + last)
    assert np.mean(model.predict(X) == y) > 0.75
    stopped = BudgetSVC(**plan, callback=lambda row: True).fit(X, y, weight)
    assert stopped.status_ == "callback" and stopped.n_iter_ == 1 and len(stopped.support_vectors_) == 30


def test_a_run_that_is_stopped_within_an_epoch_has_what_was_learnt_until_then():
    X, y, weight = rows()
    options, labels = options_of(BudgetSVC(**PLAN), X, weight), y.astype(np.int32)
    made = partitions(X, CUTS)
    parts, weights = made.parts(labels), made.parts(weight)
    visit = {i: budgeted.Visit(i, parts[i], weights[i], None) for i in range(5)}
    for models, rounds in ((1, [{0: visit[0]}, {0: visit[2]}]), (2, [{0: visit[0], 1: visit[2]}, {0: visit[4]}])):
        solver = TravellingSolver(options, [rounds], made, Deadline(), models)
        turns = solver.turns()
        while not solver._behind:
            assert next(turns) is None
        result = solver.result(Status.CALLBACK)
        counted = sum(np.count_nonzero(v.weights) for v in rounds[0].values())
        assert result.steps == counted and 0 < len(result.centres) <= 30 and not solver._behind
        values = decision_values(X, np.arange(400), result.centres, result.coef, result.intercept, 0.5, 1)
        assert np.mean((values[:, 0] > 0) == (y == 1)) > 0.7
        whole = run(TravellingSolver(options, [rounds], made, Deadline(), models), Control())
        assert whole.status is Status.COMPLETED and whole.steps > counted


# ---- divide and conquer


@pytest.mark.parametrize(("kind", "form"), [("classes", np.asarray), ("regression", sp.csr_matrix), ("linear", np.asarray)])
def test_the_whole_problem_in_partitions_is_the_exact_machine(two_workers, form, kind, monkeypatch):
    """Certified by code of its own; rows again in another partition, rows of weight 0, three classes."""
    monkeypatch.undo()
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    X[280:] = X[:20]
    weight = rng.integers(0, 3, 300).astype(float)
    weight[280:], weight[:20] = 1.0, 1.0
    y = np.digitize(X[:, 0] + 0.3 * np.sin(3 * X[:, 1]), [-0.5, 0.5]) if kind == "classes" else np.sin(X[:, 0]) + X[:, 1] / 3
    y = (y > 0.2).astype(int) if kind == "linear" else y
    plan = {"C": 5.0, "k": 2, "levels": 1, "sample_size": 60, "random_state": 0, "tol": 1e-3}
    plan |= {"kernel": "linear"} if kind == "linear" else {"gamma": "scale"}
    collection = da.from_array(X, chunks=(110, 2))
    collection = collection.map_blocks(sp.csr_matrix) if form is sp.csr_matrix else collection
    there = (DCSVR if kind == "regression" else DCSVC)(**plan, client=two_workers).fit(collection, y, weight)
    local = (maxmargin.DCSVR if kind == "regression" else maxmargin.DCSVC)(**plan).fit(form(X), y, weight)
    assert there.status_ == local.status_ == "converged"
    known = maxmargin.certify_fit(there.to_local(), form(X), y, weight)
    assert known.violation <= 1e-3 * (1 + 1e-6) and known.primal == pytest.approx(there.objective_, rel=1e-6)
    assert there.objective_ - there.dual_gap_ <= local.objective_ and local.objective_ - local.dual_gap_ <= there.objective_
    np.testing.assert_allclose(there.predict(form(X)), local.predict(form(X)), atol=0.05 if kind == "regression" else 0)
