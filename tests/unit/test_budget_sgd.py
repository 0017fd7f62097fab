"""The core's steps against a plain NumPy implementation of the same algorithm, and its invariants."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH
from maxmargin.budget.merging import merge_table
from maxmargin.budget.model import Options, averaged_state, decision_values, model_coefficients, refitted_state
from maxmargin.budget.sgd import Batch, BudgetSolver
from maxmargin.runtime import Control, Status, run


def blobs(n=300, d=4, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n).astype(np.int32)
    centres = rng.normal(size=(classes, d)) * 1.2
    return rng.normal(size=(n, d)) + centres[labels], labels


def train(x, labels, *, budget, passes=1, weights=None, outputs=1, gamma=0.5, C=10.0, chunk=None, **options):
    opts = Options(budget, x.shape[1], outputs, gamma, C, x.shape[0], **{"double": True, "averaging": False} | options)
    weights = np.ones(x.shape[0]) if weights is None else weights
    order = np.arange(x.shape[0])
    parts = np.array_split(order, len(order) // chunk) if chunk else [order]
    epochs = [[Batch(x, part, labels, weights) for part in parts]] * passes
    return run(BudgetSolver(opts, epochs), Control()), opts


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("double", [True, False])
def test_large_budget_is_plain_pegasos(form, double):
    x, labels = blobs()
    x = x.astype(np.float64 if double else np.float32)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(labels))
    result, options = train(form(x), labels, budget=1000, weights=weights, double=double)
    points, beta, t = [], [], 0
    for z, label, weight in zip(x.astype(np.float64), labels, weights):
        y = 2.0 * label - 1
        f = sum(b * np.exp(-options.gamma * np.sum((s - z) ** 2)) for s, b in zip(points, beta))
        if t == 0 or y * f / (options.lam * t) < 1:
            points.append(z)
            beta.append(y * weight)
        t += 1
    np.testing.assert_array_equal(result.centres, np.array(points, dtype=x.dtype))
    np.testing.assert_allclose(result.coef[0], np.array(beta) / (options.lam * t), rtol=1e-12)
    assert result.counters["merges"] == 0 and result.status is Status.COMPLETED


@pytest.mark.parametrize("maintenance", MAINTENANCE)
@pytest.mark.parametrize("budget", [1, 2, 7, 33])
def test_budget_is_never_exceeded(maintenance, budget):
    x, labels = blobs(200)
    opts = Options(budget, x.shape[1], 1, 0.5, 10.0, 200, maintenance=maintenance)
    batches = [Batch(x, np.array([i]), labels, np.ones(200)) for i in range(200)]
    solver = BudgetSolver(opts, [batches])
    sizes = [solver._core.count for turn in solver.turns()]
    assert max(sizes) == budget
    assert np.isfinite(solver.result(Status.COMPLETED).coef).all()


@pytest.mark.parametrize("search", MERGE_SEARCH)
@pytest.mark.parametrize("outputs", [1, 3])
def test_search_methods_decide_alike(search, outputs):
    """Golden section to 0.01 may choose another partner; the others decide as the precise search does."""
    x, labels = blobs(400, classes=max(outputs, 2))
    precise, _ = train(x, labels, budget=25, outputs=outputs, merge_search="gss-precise")
    other, _ = train(x, labels, budget=25, outputs=outputs, merge_search=search)
    if search == "lookup-wd" and outputs == 1:
        np.testing.assert_allclose(other.centres, precise.centres, atol=2e-3)
    factor = other.counters["degradation"] / precise.counters["degradation"]
    assert 0.8 < factor < 1.25


@pytest.mark.parametrize("outputs", [1, 3])
def test_degradation_of_one_merge_by_brute_force(outputs):
    x, labels = blobs(40, seed=3, classes=max(outputs, 2))
    checked = 0
    for n in range(8, 40):
        full, options = train(x[:n], labels[:n], budget=100, outputs=outputs)
        small, _ = train(x[:n], labels[:n], budget=len(full.centres) - 1, grid_size=2000, outputs=outputs)
        if small.counters["merges"] != 1:
            continue
        points = np.vstack([full.centres, small.centres])
        beta = np.hstack([full.state["beta"], -small.state["beta"]])
        gram = np.exp(-options.gamma * ((points[:, None] - points[None]) ** 2).sum(-1))
        if small.state["clock"][0] == n and full.state["born"][-1] == n:  # the merge was the last thing that happened
            assert small.counters["degradation"] == pytest.approx(np.sum((beta @ gram) * beta), rel=1e-3)
            checked += 1
    assert checked > 5


def test_duplicates_are_added():
    x = np.repeat([[0.0, 0.0], [3.0, 0.0]], 5, axis=0)
    labels = np.repeat([0, 1], 5).astype(np.int32)
    result, _ = train(x, labels, budget=2, C=1e6)
    assert result.counters["duplicates"] == result.counters["violations"] - 2
    assert result.counters["merges"] == 0
    np.testing.assert_array_equal(np.sort(result.centres[:, 0]), [0, 3])


@pytest.mark.parametrize("double", [True, False])
def test_duplicates_are_recognised_in_sparse_rows(double):
    """|x|² + |s|² - 2·x·s of equal rows is exactly 0: the norms must be rounded as the products are."""
    x, labels = blobs(200, d=37)
    x = np.repeat(np.where(np.abs(x) > 0.3, x, 0), 2, axis=0).astype(np.float64 if double else np.float32)
    result, _ = train(sp.csr_matrix(x), np.repeat(labels, 2), budget=1000, double=double, C=1e-4)
    assert len(result.centres) == result.counters["duplicates"] == 200


def test_new_label_enters_a_full_model():
    """With every slot taken by one class, the first samples of the other make room for themselves."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)) + np.repeat([[0.0], [5.0]], 30, axis=0)
    labels = np.repeat([0, 1], 30).astype(np.int32)
    result, _ = train(x, labels, budget=4)
    assert set(result.state["label"]) == {0, 1}


def test_far_newcomers_are_removals():
    """Where every kernel value underflows no partner is of use: nothing moves."""
    x = np.arange(40.0)[:, None] * 100
    labels = (np.arange(40) % 2).astype(np.int32)
    result, _ = train(x, labels, budget=10)
    np.testing.assert_array_equal(np.sort(result.centres[:, 0]), x[:10, 0])
    assert result.counters["removals"] == 30


@pytest.mark.parametrize("maintenance", MAINTENANCE)
@pytest.mark.parametrize("outputs", [1, 3])
def test_chunks_and_restarts_change_nothing(maintenance, outputs):
    x, labels = blobs(500, d=5, classes=max(outputs, 2))
    options = {"budget": 15, "outputs": outputs, "maintenance": maintenance, "averaging": True, "intercept": True}
    whole, opts = train(x, labels, **options)
    chunked, _ = train(x, labels, chunk=7, **options)
    state = None
    for part in np.array_split(np.arange(500), 11):
        solver = BudgetSolver(opts, [[Batch(x[part], np.arange(len(part)), labels[part], np.ones(len(part)))]], state)
        state = run(solver, Control()).state
    for other in (chunked.state, state):
        for name, value in whole.state.items():
            np.testing.assert_array_equal(other[name], value, err_msg=name)


def test_average_is_the_weighted_mean_of_recent_iterates():
    """A budget that is never reached keeps every iterate representable: the lazy sums must equal the plain mean."""
    x, labels = blobs(150)
    opts = Options(1000, x.shape[1], 1, 0.5, 10.0, 150, double=True, intercept=True)
    solver = BudgetSolver(opts, [[Batch(x, np.array([i]), labels, np.ones(150)) for i in range(150)]])
    iterates = []
    for _ in solver.turns():  # a safe point after every row but the last, then the turn
        coef, intercept = model_coefficients(solver._core.state(), opts.lam, averaging=False)
        iterates.append(np.append(np.pad(coef[0], (0, 1000 - coef.shape[1])), intercept))
    state = solver.result(Status.COMPLETED).state
    start = int(state["clock"][1])
    assert 0 < start < 150
    weights = np.arange(start + 1, 151)
    mean = np.average(iterates[start:], axis=0, weights=weights)
    coef, intercept = model_coefficients(state, opts.lam, averaging=True)
    np.testing.assert_allclose(coef[0], mean[: coef.shape[1]], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(intercept, mean[-1:], rtol=1e-9)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_accuracy_of_a_pass_is_that_of_the_models_before_each_row(outputs):
    """By weight; the first row, of which nothing is known, is taken for class 0. And a pass tells of itself alone."""
    x, labels = blobs(120, classes=max(outputs, 2))
    weights = np.random.default_rng(2).uniform(0.1, 5, 120)
    opts = Options(20, x.shape[1], outputs, 0.5, 10.0, 120, double=True)
    solver = BudgetSolver(opts, [[Batch(x, np.array([i]), labels, weights) for i in range(120)]] * 2)
    right, events, i, before = 0.0, 0.0, 0, np.zeros(outputs)
    for turn in solver.turns():
        right += weights[i] * (labels[i] == (before[0] > 0 if outputs == 1 else np.argmax(before)))
        i = (i + 1) % 120
        if turn is not None:
            assert i == 0 and turn.extra["accuracy"] == pytest.approx(right / weights.sum())
            now = solver.result(Status.COMPLETED).counters
            count = now["merges"] + now["removals"] + now["projections"]
            assert turn.extra["merging_frequency"] == (count - events) / 120
            right, events = 0.0, count
        state = solver._core.state()
        before = decision_values(x, np.array([i]), state["centres"], *model_coefficients(state, opts.lam, False), 0.5, 1)[0]
    assert events > 0


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("averaging", [True, False])
def test_a_refitted_state_is_the_refitted_model(outputs, averaging):
    """Its last iterate and both averages are the model's, and in a model of one output labels are signs."""
    x, labels = blobs(200, classes=max(outputs, 2))
    result, opts = train(x, labels, budget=20, outputs=outputs, averaging=averaging, intercept=True)
    rng = np.random.default_rng(0)
    coef, intercept = rng.normal(size=result.coef.shape), rng.normal(size=outputs)
    coef[:, 3] = 0  # nothing to merge
    state = refitted_state(result.state, coef, intercept, opts.lam)
    newer = {**state, "windows": state["windows"][outputs:], "clock": state["clock"][[0, 2]]}
    for held, average in ((state, True), (state, False), (newer, True)):
        for found, wanted in zip(model_coefficients(held, opts.lam, average), (coef, intercept)):
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
    if outputs == 1:
        np.testing.assert_array_equal(state["label"], coef[0] > 0)
    after = run(BudgetSolver(opts, [[Batch(x, np.arange(200), labels, np.ones(200))]], state), Control())
    assert np.isfinite(after.coef).all() and np.isfinite(after.counters["degradation"])


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("averaging", [True, False])
def test_the_average_of_states_is_the_mean_of_their_functions_by_steps(outputs, averaging):
    """Of their last iterates, or of their averages; all iterates of what comes out are that function, and it goes on."""
    x, labels = blobs(180, classes=max(outputs, 2))
    opts = Options(15, x.shape[1], outputs, 0.5, 10.0, 180, double=True, intercept=True, averaging=averaging)
    parts, states, wanted = (np.arange(30), np.arange(30, 90), np.arange(90, 180)), [], 0.0
    values = lambda s, average: decision_values(  # noqa: E731
        x, np.arange(180), s["centres"], *model_coefficients(s, opts.lam, average), opts.gamma, 1
    )
    for part in parts:
        states.append(run(BudgetSolver(opts, [[Batch(x, part, labels, np.ones(180))]]), Control()).state)
        wanted = wanted + len(part) / 180 * values(states[-1], averaging)
    mean = averaged_state(states, opts.lam, averaging)
    assert mean["clock"][0] == 180 and len(mean["centres"]) == sum(len(state["centres"]) for state in states)
    for average in (True, False):
        np.testing.assert_allclose(values(mean, average), wanted, rtol=1e-9, atol=1e-9)
    larger = replace(opts, budget=1000)
    after = run(BudgetSolver(larger, [[Batch(x, np.arange(9), labels, np.ones(180))]], mean), Control())
    assert after.state["clock"][0] == 189 and np.isfinite(after.coef).all()


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ({}, True),
        ({"merge_search": "gss"}, False),
        ({"merge_search": "gss", "audit": True}, True),
        ({"maintenance": "remove"}, False),
        ({"maintenance": "project"}, False),
        ({"outputs": 3}, False),
        ({"outputs": 3, "merge_search": "lookup-h"}, True),
    ],
)
def test_tables_are_built_only_where_they_are_read(monkeypatch, options, read):
    built = []
    monkeypatch.setattr("maxmargin.budget.sgd.merge_table", lambda *key: built.append(key) or merge_table(*key))
    x, labels = blobs(100, classes=options.get("outputs", 2))
    train(x, labels, budget=5, **options)
    assert bool(built) == read


def test_a_limit_at_the_very_end_cuts_nothing():
    x, labels = blobs(100)
    opts = Options(20, x.shape[1], 1, 0.5, 10.0, 100)
    batch = Batch(x, np.arange(100), labels, np.ones(100))
    for passes, status in ((1, Status.COMPLETED), (2, Status.MAX_TIME)):
        result = run(BudgetSolver(opts, [[batch]] * passes), Control(max_time=1e-9))
        assert result.status is status and result.n_iter == 1 and result.steps == 100


def test_projection_degrades_less_than_removal():
    x, labels = blobs(200, d=2)
    lost = {}
    for maintenance in ("remove", "project"):
        result, _ = train(x, labels, budget=10, maintenance=maintenance)
        events = result.counters["removals"] + result.counters["projections"]
        lost[maintenance] = result.counters["degradation"] / events
    assert lost["project"] < 0.5 * lost["remove"]


@pytest.mark.parametrize("double", [True, False])
def test_decision_values(double):
    x, labels = blobs(203, classes=3)
    result, opts = train(x, labels, budget=40, outputs=3, double=double)
    gram = np.exp(-opts.gamma * ((x[:, None] - result.centres[None].astype(float)) ** 2).sum(-1))
    for form in (x, x.astype(np.float32), sp.csr_matrix(x), sp.csr_array(x)):
        values = decision_values(form, np.arange(203), result.centres, result.coef, result.intercept, opts.gamma, 2)
        scale = np.abs(result.coef).sum()
        np.testing.assert_allclose(values, gram @ result.coef.T, atol=scale * (1e-12 if double and form is x else 2e-6))
        alone = decision_values(form, np.array([5]), result.centres, result.coef, result.intercept, opts.gamma, 1)
        np.testing.assert_array_equal(alone[0], values[5])
