"""The turns of the 1-norm solver: its bound, when epochs end, what a model is asked, how far a step goes, when it rests."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from generators import paused

from maxmargin import _core
from maxmargin.linear import LinearProblem, one_norm, quadratic_model
from maxmargin.linear.one_norm import OneNorm
from maxmargin.linear.quadratic_model import QuadraticModel, violations
from maxmargin.runtime import Status


def made(seed=0, n=40, d=6, C=0.5, form=np.asarray, bias=1.0, penalised=False, tol=1e-6, **options):
    """A solver, and its samples with the constant feature."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 3)
    sign = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    weight = rng.uniform(0.2, 2, n) * (rng.random(n) < 0.9)
    weight[:2] = 1.0
    problem = LinearProblem(form(X), sign, weight, C, loss="squared_hinge", bias=bias, penalised=penalised)
    return OneNorm(problem, tol, **options), np.column_stack([X, np.full(n, bias)])[:, : problem.size]


def at(solver, w):
    solver.w = w.copy()
    paused(solver._fresh_margins())


def some_points(problem, seed, count):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, problem.size)) * 10.0 ** rng.uniform(-3, 0.5, (count, 1))


# ---- the bound


def best_multiple(problem, x, alpha, astray=0.0):
    """The best C(θ Σ alpha − θ² Σ alpha²/(4 weight)) that feasible sums allow; each sample may have to lend its share."""
    some = problem.weight > 0
    classes = [problem.weight[problem.sign == label].sum() for label in (1.0, -1.0)]
    lent = alpha + problem.weight * astray / min(classes)
    bend = (lent[some] ** 2 / problem.weight[some]).sum() / 4
    reach = np.abs((alpha * problem.sign) @ x) + astray * np.abs(x).max(axis=0)
    top = problem.C * reach[: problem.d if problem.free_intercept else None].max()
    theta = min(1 / top, alpha.sum() / (2 * bend))
    return problem.C * (theta * alpha.sum() - theta**2 * bend), 1 / top < alpha.sum() / (2 * bend)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(("bias", "penalised"), [(0.0, False), (2.0, True), (2.0, False)])
def test_the_bound_of_a_point_is_the_best_of_its_balanced_duals(form, bias, penalised):
    """Free intercepts: the duals of the class with more of them are lessened by one factor. None may be left at all."""
    held = []
    for C in (1e-3, 0.1, 10.0):
        solver, x = made(C=C, form=form, bias=bias, penalised=penalised)
        problem = solver.problem
        for w in some_points(problem, 1, 12):
            at(solver, w)
            solver.lower = 0.0
            solver._bound()
            alpha = 2 * problem.weight * np.maximum(0, 1 - problem.sign * (x @ w))
            if problem.free_intercept:
                up, down = alpha[problem.sign > 0].sum(), alpha[problem.sign < 0].sum()
                alpha = alpha * np.where(problem.sign > 0, min(1, down / up), min(1, up / down))
            value, by_features = best_multiple(problem, x, alpha)
            assert solver.lower == pytest.approx(value, rel=1e-9)
            assert solver.lower <= value
            held.append(by_features)
        if problem.free_intercept:
            for far in (-1e3, 1e3):  # a class, or both, without a loss: no balance but 0
                at(solver, np.append(np.zeros(problem.d), far))
                solver.lower = 0.0
                np.testing.assert_allclose(
                    solver._bound(), -2 * C * (problem.weight * np.maximum(solver.u, 0) * problem.sign) @ x, rtol=1e-9
                )
                assert solver.lower == 0.0
            solver.u = np.full(problem.n, -1.0)
            assert not solver._bound().any() and solver.lower == 0.0
    assert any(held) and not all(held)


@pytest.mark.parametrize("penalised", [True, False])
def test_what_is_astray_is_lent_by_every_sample_and_reaches_every_feature(penalised):
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        solver, x = made(seed, C=10.0 ** rng.uniform(-4, 1), bias=2.0, penalised=penalised)
        alpha = solver.problem.weight * rng.uniform(0, 4, solver.problem.n)
        for astray in (1e-3, 0.1, 3.0):
            value, by_features = best_multiple(solver.problem, x, alpha, astray)
            found = solver._lower(alpha, solver._sums(alpha), astray)
            assert found == pytest.approx(max(0.0, value), rel=1e-9) and found <= max(0.0, value)
            held.append(by_features)
    assert any(held) and not all(held)


def test_gaps_are_relative_and_count_what_rounding_may_hide():
    solver, _ = made(tol=0.1)
    solver.objective, solver.lower, solver.doubt = 10.0, 9.5, 0.5
    assert solver.relative_gap == pytest.approx(0.1)
    solver.objective = 0.0
    assert solver.relative_gap == 0.0


# ---- epochs


class Epochs:
    """In the place of the core's: moves nothing, says what it is told, takes note of what it is asked."""

    linear_outputs, linear_sum_rows = _core.linear_outputs, _core.linear_sum_rows

    def __init__(self, *said):
        self.said, self.asked = list(said), []

    def one_norm_epoch(self, matrix, features, count, fresh, curve, penalty, most, w, u, seed):
        self.asked.append((count, fresh, seed))
        return self.said[min(len(self.asked), len(self.said)) - 1]


def beginning(monkeypatch, *said, **options):
    """A solver at a point of which a model could be made, its derivatives, and the largest violation of a weight."""
    solver, _ = made(bias=0.0, penalised=True, seed=3, **options)
    at(solver, np.linspace(-0.2, 0.3, solver.problem.size))
    grad = solver._bound()
    epochs = Epochs(*said)
    monkeypatch.setattr(one_norm, "_core", epochs)
    return solver, epochs, grad, float(violations(solver.w, grad, solver._penalty).max())


@pytest.mark.parametrize("seen", [0.999, 1.001])
def test_epochs_end_where_a_part_of_the_violation_is_left(seen, monkeypatch):
    calm = one_norm.CALM * beginning(monkeypatch)[3]
    said = (6, 2 * calm, 0), (5, 2 * calm, 0), (4, seen * calm, 0), (3, 0.0, 0)
    solver, epochs, grad, largest = beginning(monkeypatch, *said)
    assert calm < largest
    follow, pauses = paused(solver._descend(grad))
    assert follow is False and len(epochs.asked) == pauses == solver._epochs == (3 if seen < 1 else 4)


@pytest.mark.parametrize("began", [0, 7])
def test_epochs_go_on_with_what_the_last_left_in_an_order_of_their_own(began, monkeypatch):
    solver, epochs, grad, _ = beginning(monkeypatch, (5, 9e9, 1.0), (4, 9e9, 2.0), (4, 9e9, 4.0))
    solver._epochs, solver._seed, solver._spent = began, 100, 0.5
    assert paused(solver._descend(grad))[0] is False
    count = len(epochs.asked)
    assert count == one_norm.EPOCHS and solver._epochs == began + count
    assert [asked[0] for asked in epochs.asked] == [6, 5, *[4] * (count - 2)]
    assert [asked[1] for asked in epochs.asked] == [True] + [False] * (count - 1)
    assert [asked[2] for asked in epochs.asked] == [100 + began + k for k in range(count)]
    assert solver._spent == 0.5 + 1.0 + 2.0 + 4.0 * (count - 2)


def test_no_epoch_follows_one_that_leaves_no_feature(monkeypatch):
    solver, epochs, grad, _ = beginning(monkeypatch, (6, 9e9, 0), (0, 9e9, 0))
    assert paused(solver._descend(grad))[0] is False and len(epochs.asked) == 2


@pytest.mark.parametrize("patience", [1.0, 2.0])
@pytest.mark.parametrize(("spent", "reads"), [(0.0, 0.15), (0.4, 0.15), (3.0, 0.15), (0.0, 5.0), (0.0, 0.0)])
def test_a_model_follows_once_epochs_have_cost_its_price(patience, spent, reads, monkeypatch):
    """Not before LEAST of them, and the price is that at the point they have reached."""
    price = beginning(monkeypatch)[0]._price()
    assert np.isfinite(price)
    solver, epochs, grad, _ = beginning(monkeypatch, (6, 9e9, reads * price))
    solver._patience, solver._spent = patience, spent * price
    follow, _ = paused(solver._descend(grad))
    paid = [k for k in range(1, one_norm.EPOCHS + 1) if spent + k * reads >= patience]
    expected = max(one_norm.LEAST, paid[0]) if paid else one_norm.EPOCHS
    assert len(epochs.asked) == expected and follow is bool(paid)


@pytest.mark.parametrize("penalised", [True, False])
def test_features_that_violate_less_join_too_where_they_have_few_entries(penalised, monkeypatch):
    monkeypatch.setattr(one_norm, "FEWEST", 4)
    joined = []
    for seed in range(60):
        solver, _ = made(seed, n=30, d=40, penalised=penalised)
        rng = np.random.default_rng(seed)
        solver._stored = rng.integers(1, 30, 41) ** 2
        solver.w = rng.normal(size=41) * (rng.random(41) < (0.0, 0.1, 0.3)[seed % 3])
        grad = rng.normal(size=41) * rng.uniform(0.2, 2)
        features, largest = solver._working_set(grad)
        assert largest == violations(solver.w, grad, solver._penalty).max()
        held = (solver.w != 0) | (solver._penalty == 0)
        violation = np.where(held, 0.0, np.maximum(np.abs(grad) - 1, 0))
        order = np.argsort(-violation)
        violating = order[: np.count_nonzero(violation)]
        first = violating[: max(4, one_norm.SPREAD * held.sum())]
        others = np.setdiff1d(violating, first)
        entries = solver._stored[held].sum() + solver._stored[first].sum()
        cheap = solver._stored[others].sum() <= one_norm.CHEAP * entries
        expected = np.concatenate([np.flatnonzero(held), violating if cheap else first])
        np.testing.assert_array_equal(np.sort(features), np.sort(expected))
        assert features.dtype == np.int64
        joined.append((len(others) > 0, bool(cheap)))
    assert {(True, True), (True, False), (False, True)} <= set(joined)
    solver.w[:] = 0.0
    for size in (0.0, 1e-3, 0.5):  # of the free intercept, or of what exceeds the penalty
        grad = np.zeros(41)
        grad[-1] = size + penalised
        assert solver._working_set(grad)[1] == pytest.approx(size, abs=1e-15)


def test_the_entries_of_each_feature_are_known():
    for form in (np.asarray, sp.csr_matrix):
        solver, _ = made(form=lambda X, form=form: form(np.where(np.arange(40)[:, None] % (1 + np.arange(6)), 0.0, X)))
        expected = np.count_nonzero(solver.problem.X.toarray(), axis=0) if form is sp.csr_matrix else np.full(6, 40)
        np.testing.assert_array_equal(solver._stored, np.append(expected, 40))


# ---- the model


class Model:
    """In the place of the quadratic model: says a step, takes note of what it is asked."""

    def __init__(self, x, sign, move, features=None):
        self.x, self.sign, self.move, self.features, self.asked = x, sign, move, features, None

    def covers(self, needed):
        self.needed = needed
        return self.features is not None

    def choose(self, chosen):
        self.chosen, self.features = chosen, np.flatnonzero(chosen)

    def minimum(self, *asked):
        self.asked = asked
        return asked[1] + self.move[self.features]

    def outputs(self, step):
        return self.sign * (self.x[:, self.features] @ step)


def objective(solver, x, w):
    problem = solver.problem
    short = np.maximum(0, 1 - problem.sign * (x @ w))
    return solver._penalty @ np.abs(w) + problem.C * problem.weight @ short**2


@pytest.mark.parametrize("penalised", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_a_model_is_asked_at_the_present_point_and_a_step_goes_to_its_best_point(kept, penalised):
    """All of the way where it falls to the end; else the last of its 64 parts up to which it falls; none where it rises."""
    parts = []
    for seed in range(40):
        solver, x = made(seed, penalised=penalised, C=10.0 ** np.random.default_rng(seed).uniform(-2, 1))
        problem, rng = solver.problem, np.random.default_rng(seed)
        at(solver, rng.normal(size=7) * (rng.random(7) < 0.6) * 0.3)
        solver._keep(solver.w, solver.u)
        grad = solver._bound()
        move = -grad * rng.uniform(0.001, 1) if seed % 4 else grad * 0.01
        solver._model = model = Model(x, problem.sign, move, np.arange(7) if kept else None)
        solver._rounds, solver._patience, solver._spent = 1 + seed % 3, float(1 + seed % 2), 5.0
        rounds, patience, old, u = solver._rounds, solver._patience, solver.w.copy(), solver.u.copy()
        said = solver._model_step(grad)
        needed = (old != 0) | (np.abs(grad) > solver._penalty) | (solver._penalty == 0)
        np.testing.assert_array_equal(model.needed, needed)
        if not kept:
            np.testing.assert_array_equal(model.chosen, needed | (np.abs(grad) > one_norm.SOON * solver._penalty))
        there = model.features
        near, w, derivative, cost, damping, asked = model.asked
        np.testing.assert_array_equal(near, u > 0)
        np.testing.assert_array_equal(w, old[there])
        np.testing.assert_array_equal(derivative, grad[there])
        np.testing.assert_array_equal(cost, solver._penalty[there])
        assert damping == min(1.0, solver.relative_gap) and asked == rounds
        step = np.zeros(7)
        step[there] = move[there]
        start, count = objective(solver, x, old), 2**one_norm.HALVINGS

        def slope(part, solver=solver, old=old, step=step, x=x):
            return objective(solver, x, old + (part + 1e-6) * step) - objective(solver, x, old + (part - 1e-6) * step)

        falls = [slope(k / count) < 0 for k in range(count)]
        part = falls.index(False) - 1 if not all(falls) else count
        part = max(part, 0) / count
        if objective(solver, x, old + part * step) >= start:
            part = 0.0
        np.testing.assert_allclose(solver.w, old + part * step, atol=1e-12)
        np.testing.assert_allclose(solver.u, 1 - problem.sign * (x @ solver.w), atol=1e-9)
        assert bool(said) == (part == 1.0) and solver._spent == 0.0
        assert solver._rounds == (min(2 * rounds, one_norm.ROUNDS) if part == 1 else 1)
        assert solver._patience == (1.0 if part >= one_norm.FAIR else min(2 * patience, one_norm.PATIENCE))
        parts.append(part)
    assert 0.0 in parts and 1.0 in parts and any(0 < part < one_norm.FAIR for part in parts)
    assert any(one_norm.FAIR <= part < 1 for part in parts)


def test_a_model_has_what_is_needed_and_what_soon_will_be_where_there_is_room(monkeypatch):
    solver, x = made(penalised=True)
    at(solver, np.array([0.1, 0, 0, 0, 0, 0, 0]))
    grad = np.array([0.0, 1.0, -1.1, 0.95, -0.95, 0.9, 1.2])
    needed, soon = [0, 2, 6], [0, 1, 2, 3, 4, 6]
    for room, expected in ((7, soon), (6, soon), (5, needed), (3, needed), (2, None)):
        monkeypatch.setattr(one_norm, "DENSE", room)
        solver._model = model = Model(x, solver.problem.sign, np.zeros(7))
        before = solver._rounds, solver._patience, solver._spent
        said = solver._model_step(grad)
        if expected is None:
            assert said is False and model.features is None and before == (solver._rounds, solver._patience, solver._spent)
        else:
            np.testing.assert_array_equal(np.flatnonzero(model.chosen), expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_the_matrix_of_a_model_is_that_of_its_samples_however_they_change(form, bias):
    """Few that come, few that leave, both, all others, none; of features that are chosen anew, more and fewer of them."""
    solver, x = made(n=60, d=12, form=form, bias=bias, penalised=True)
    curve = solver._curve
    model, rng = QuadraticModel(solver.problem, solver._matrix, curve), np.random.default_rng(2)
    size = solver.problem.size
    for count in (3, 5, size, 2):
        chosen = np.zeros(size, bool)
        chosen[rng.choice(size, count, replace=False)] = True
        chosen[-1] = True
        model.choose(chosen)
        some = x[:, model.features]
        near = rng.random(60) < 0.5
        for change in (0.0, 0.05, 0.05, 0.1, 0.9, 0.05, 1.0):
            near = near ^ (rng.random(60) < change)
            only = near | (rng.random(60) < 0.05), near & (rng.random(60) < 0.95), np.zeros(60, bool)
            for samples in (near, *only, near):
                model._move(samples)
                np.testing.assert_allclose(model._H, (some[samples].T * curve[samples]) @ some[samples], atol=1e-10)
        assert model.covers(chosen)


def test_more_than_half_of_the_features_are_all_of_them():
    solver, _ = made(d=9, bias=1.0)
    model = QuadraticModel(solver.problem, solver._matrix, solver._curve)
    for count, expected in ((1, 1), (4, 4), (5, 10), (10, 10)):
        chosen = np.arange(10) < count
        model.choose(chosen)
        np.testing.assert_array_equal(model.features, np.arange(expected))
        assert model.covers(chosen) and model.covers(np.arange(10) < expected)
        assert expected == 10 or not model.covers(np.arange(10) <= expected)
        assert model._H.shape == (expected, expected)


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize(("calm_after", "steps_until"), [(1, 9), (2, 9), (9, 9), (9, 1), (9, 0)])
def test_work_on_a_model_is_sweeps_with_newton_steps_between_them(rounds, calm_after, steps_until, monkeypatch):
    """So many rounds at most, fewer when it is solved or no step can be made; what it is given stays as it was."""
    solver, _ = made(penalised=True)
    model = QuadraticModel(solver.problem, solver._matrix, solver._curve)
    model.choose(np.ones(7, bool))
    w, grad, penalty = np.linspace(-1, 1, 7), np.linspace(3, -2, 7), np.ones(7)
    given, largest = (w.copy(), grad.copy()), violations(w, grad, penalty).max()
    done = []

    def sweeps(H, cost, at, derivative, calm, most):
        done.append("sweeps")
        assert calm == pytest.approx(quadratic_model.CALM * largest, rel=1e-12) and most == quadratic_model.SWEEPS
        at += 1.0
        return most, calm if done.count("sweeps") == calm_after else 1.001 * calm

    def newton(H, at, derivative, cost, damping):
        done.append("newton")
        assert damping == 0.3
        at += 10.0
        return done.count("newton") <= steps_until

    core = {"linear_gram": _core.linear_gram, "linear_mirror": _core.linear_mirror, "one_norm_sweeps": sweeps}
    monkeypatch.setattr(quadratic_model, "_core", SimpleNamespace(**core))
    monkeypatch.setattr(quadratic_model, "_newton_step", newton)
    out = model.minimum(np.ones(40, bool), w, grad, penalty, 0.3, rounds)
    count = min(rounds, calm_after, steps_until + 1)
    assert done.count("sweeps") == count
    expected = ["sweeps", "newton"] * count
    assert done == (expected if count == steps_until + 1 and count < min(rounds, calm_after) else expected[:-1])
    np.testing.assert_allclose(out, given[0] + done.count("sweeps") + 10 * done.count("newton"))
    np.testing.assert_array_equal(w, given[0])
    np.testing.assert_array_equal(grad, given[1])


# ---- turns


class Scripted(OneNorm):
    """Steps that say what they are told; bounds and objectives that move when they are told to."""

    def script(self, models=(), descents=(), bounds=None, values=None):
        self.models, self.descents, self.done = iter(models), iter(descents), []
        self.bounds, self.values = bounds or {}, values or {}
        return self

    def _bound(self):
        turn = self.done.count("bound")
        self.done.append("bound")
        self.lower += self.bounds.get(turn, 0.0)
        self.objective -= self.values.get(turn, 0.0)
        return np.zeros(self.problem.size)

    def _keep(self, w, u):
        if not hasattr(self, "done"):
            super()._keep(w, u)

    def _model_step(self, grad):
        self.done.append("model")
        return next(self.models)

    def _descend(self, grad):
        self.done.append("descent")
        yield
        return next(self.descents)

    def _fresh_margins(self):
        self.done.append("margins")
        yield


def scripted(**script):
    return Scripted(made()[0].problem, 0.0).script(**script)


def turns_of(solver):
    count, turns = 0, solver.turns()
    while True:
        try:
            count += next(turns) is not None
        except StopIteration as end:
            return count, end.value


def test_models_follow_descent_that_says_so_and_descent_follows_a_model_that_was_not_good():
    solver = scripted(models=[True, True, False, False], descents=[False, True, True, *[False] * 40])
    turns_of(solver)
    steps = " ".join(step for step in solver.done if step not in ("bound", "margins")).split()
    assert steps[:9] == ["descent", "descent", "model", "model", "model", "descent", "model", "descent", "descent"]
    assert set(steps[9:]) == {"descent"}


@pytest.mark.parametrize("last", [None, 3, 8])
@pytest.mark.parametrize("kind", ["bounds", "values"])
def test_it_rests_after_so_many_turns_without_progress_and_looks_at_the_margins_before(kind, last):
    """A higher bound or a lower objective is progress, and begins the count anew."""
    many = one_norm.AT_REST
    script = {} if last is None else {kind: {last: 1e-3}}
    solver = scripted(descents=[False] * 99, **script)
    count, status = turns_of(solver)
    first = 0 if last is None else last
    assert status is Status.STALLED and count == first + many + 1
    looked = [k for k, step in enumerate(solver.done) if step == "margins"]
    bounds = [solver.done[:k].count("bound") for k in looked]
    before = [many // 2 + 1] if last is not None and last > many // 2 else []
    assert bounds == [*before, first + many // 2 + 1]


def test_every_turn_says_what_is_known_and_the_last_what_is_proven():
    for penalised in (True, False):
        solver, _ = made(penalised=penalised, C=2.0)
        problem, seen = solver.problem, []
        for turn in solver.turns():
            if turn is None:
                continue
            assert (turn.objective, turn.dual, turn.violation) == (solver.objective, solver.lower, solver.relative_gap)
            assert turn.extra == {"nonzero": np.count_nonzero(solver.best), "epochs": solver._epochs}
            near = (1 - solver.u <= 1 + solver.tol) & (problem.weight > 0)
            assert turn.n_support == np.count_nonzero(near)
            seen.append(turn)
        assert len(seen) >= 3 and seen[0].extra["epochs"] == 0 < seen[-1].extra["epochs"]
        assert all(turn.violation > solver.tol for turn in seen[:-1]) and seen[-1].violation <= solver.tol
        result = solver.result(Status.CONVERGED)
        assert result.status is Status.CONVERGED and result.violation == solver.relative_gap
        np.testing.assert_array_equal(solver.snapshot().w, result.w)
        assert (result.objective, result.lower) == (seen[-1].objective, seen[-1].dual)
