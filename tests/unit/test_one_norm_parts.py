"""The parts of the 1-norm solver: sums, bound, working set, steps and extrapolation, each by its definition."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import LinearSVC
from maxmargin.linear import LinearProblem, one_norm
from maxmargin.linear.one_norm import WINDOW, Extrapolation, OneNorm, _by_feature
from maxmargin.linear.quadratic_model import QuadraticModel, _newton_step, violations
from maxmargin.problem.certificates import CertificateError
from maxmargin.runtime import Status, drained


def made(seed=0, n=40, d=6, C=0.5, form=np.asarray, bias=1.0, penalised=False, **options):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 3)
    sign = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    weight = rng.uniform(0.2, 2, n) * (rng.random(n) < 0.9)
    weight[:2] = 1.0
    problem = LinearProblem(form(X), sign, weight, C, loss="squared_hinge", bias=bias, penalised=penalised)
    return OneNorm(problem, 1e-6, **options), np.column_stack([X, np.full(n, bias)])[:, : problem.size]


def at(solver, w):
    solver.w = w.copy()
    drained(solver._fresh_margins())


def objective(solver, x, w):
    problem = solver.problem
    short = np.maximum(0, 1 - problem.sign * (x @ w))
    counted = np.abs(w[: problem.d]).sum() if problem.free_intercept else np.abs(w).sum()
    return counted + problem.C * problem.weight @ short**2


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("penalised", [True, False])
def test_the_objective_of_a_point_and_the_best_of_all(bias, penalised):
    solver, x = made(bias=bias, penalised=penalised)
    problem, rng = solver.problem, np.random.default_rng(1)
    assert solver.objective == pytest.approx(objective(solver, x, 0 * x[0]), rel=1e-12)
    best = solver.objective
    for w in rng.normal(size=(30, problem.size)) * rng.uniform(0, 0.5, (30, 1)):
        at(solver, w)
        assert solver.value(solver.w, solver.u) == pytest.approx(objective(solver, x, w), rel=1e-12)
        solver._keep(solver.w, solver.u)
        best = min(best, objective(solver, x, w))
        assert solver.objective == pytest.approx(best, rel=1e-12)
        assert objective(solver, x, solver.best) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_sums_over_few_and_many_samples(form, bias):
    solver, x = made(form=form, bias=bias)
    rng = np.random.default_rng(2)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        alpha = rng.uniform(0, 3, solver.problem.n) * (rng.random(solver.problem.n) < share)
        np.testing.assert_allclose(solver._sums(alpha), (alpha * solver.problem.sign) @ x, atol=1e-12)


@pytest.mark.parametrize("bias", [0.0, 2.0, 0.1, 0.7])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_dense_copy_by_features(bias, kind):
    solver, x = made(bias=bias, form=lambda X: np.asarray(X, kind))
    curve = np.linspace(0, 1, solver.problem.n)
    out, squares = _by_feature(solver.problem, curve)
    x[:, : solver.problem.d] = solver.problem.X
    assert out.dtype == (kind if bias in (0.0, 2.0) else np.float64)
    np.testing.assert_array_equal(out, (x * solver.problem.sign[:, None]).T)
    np.testing.assert_allclose(squares, curve @ np.square(x), rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("bias", [0.1, 0.7, 1.3])
def test_a_constant_that_float32_does_not_hold(form, bias):
    """Rounded up or down in one of two copies of the rows, it would part the bound from the objective."""
    rng = np.random.default_rng(0)
    X, y = (rng.normal(size=(60, 2)) * 1e-3).astype(np.float32), rng.random(60) < 0.8
    narrow, wide = (
        LinearSVC(penalty="l1", intercept_scaling=bias, tol=1e-11).fit(form(X.astype(kind)), y)
        for kind in (np.float32, np.float64)
    )
    assert narrow.status_ == wide.status_ == "converged" and narrow.dual_gap_ >= 0
    assert narrow.objective_ == pytest.approx(wide.objective_, rel=1e-9)


@pytest.mark.parametrize("penalised", [True, False])
@pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
def test_derivatives_and_a_bound_that_no_point_is_below(C, penalised):
    solver, x = made(C=C, penalised=penalised)
    problem, rng = solver.problem, np.random.default_rng(3)
    for _ in solver.turns():
        pass
    best, lower = solver.objective, solver.lower
    assert lower <= best <= lower * (1 + 2e-6)
    for w in rng.normal(size=(40, problem.size)) * 10.0 ** rng.uniform(-3, 1, (40, 1)):
        solver.lower = 0.0
        at(solver, w)
        grad = solver._bound()
        short = np.maximum(0, 1 - problem.sign * (x @ w))
        np.testing.assert_allclose(grad, -2 * C * (problem.weight * short * problem.sign) @ x, rtol=1e-9, atol=1e-12)
        assert 0 <= solver.lower <= best
        solver.lower = 2 * best  # never lowered
        solver._bound()
        assert solver.lower == 2 * best


@pytest.mark.parametrize("C", [1e-5, 1e-2, 3.0])
def test_the_bound_is_the_best_of_all_multiples_of_the_duals(C):
    """Without an intercept: the largest C(θ Σ alpha − θ² Σ alpha²/(4 weight)) where no feature's sum exceeds 1/C."""
    solver, x = made(C=C, bias=0.0)
    problem, rng = solver.problem, np.random.default_rng(4)
    for _ in range(20):
        alpha = rng.uniform(0, 4, problem.n) * (problem.weight > 0)
        sums = (alpha * problem.sign) @ x
        some = problem.weight > 0
        bend = (alpha[some] ** 2 / problem.weight[some]).sum() / 4
        theta = np.linspace(0, 1, 10_001) / (C * np.abs(sums).max())
        values = C * (theta * alpha.sum() - theta**2 * bend)
        found = solver._lower(alpha, sums, 0.0)
        assert values.max() * (1 - 1e-7) <= found * (1 + 1e-9) and found <= max(
            values.max(), C * alpha.sum() ** 2 / (4 * bend) * (alpha.sum() / (2 * bend) <= theta[-1])
        ) * (1 + 1e-12)
    assert solver._lower(np.zeros(problem.n), np.zeros(problem.size), 0.0) == 0.0


def test_a_bound_pays_for_the_duals_that_make_up_for_what_is_astray():
    """It is below that of the duals to which either class has lent its share, for any share; and falls with it."""
    for seed in range(30):
        solver, x = made(seed=seed, C=10.0 ** np.random.default_rng(seed).uniform(-4, 0))
        problem, rng = solver.problem, np.random.default_rng(seed)
        some = problem.weight > 0
        alpha = problem.weight * np.where(problem.sign > 0, *rng.uniform(0, 6, 2)) * rng.uniform(0.5, 1, problem.n)
        sums, last = solver._sums(alpha), np.inf
        for astray in (0.0, 1e-6, 0.01, 0.3):
            found = solver._lower(alpha, sums, astray)
            assert found <= last
            last = found
            for label in (1.0, -1.0):
                mine = problem.sign == label
                lent = alpha + np.where(mine, problem.weight * astray / problem.weight[mine].sum(), 0.0)
                bend = (lent[some] ** 2 / problem.weight[some]).sum() / 4
                most = 1 / (problem.C * np.abs((lent * problem.sign) @ x)[: problem.d].max())
                theta = min(most, lent.sum() / (2 * bend))
                assert found <= problem.C * (theta * lent.sum() - theta**2 * bend) * (1 + 1e-9)


def test_what_is_published_was_judged_anew():
    """Margins that had been carried along and are wrong: the result says the objective of its weights."""
    for penalised in (True, False):
        solver, x = made(penalised=penalised)
        solver.w = np.full(solver.problem.size, 0.1)
        solver._keep(solver.w, np.zeros(solver.problem.n))  # as if no sample had a loss
        result = solver.result(Status.MAX_ITER)
        assert result.objective == pytest.approx(objective(solver, x, result.w), rel=1e-12)
        m = solver.problem.sign * (x @ result.w)
        assert result.n_support == np.count_nonzero((m <= 1 + solver.tol) & (solver.problem.weight > 0))
        assert result.gap == result.objective - result.lower and result.status is Status.MAX_ITER


def test_a_bound_above_the_objective_raises_and_one_that_meets_it_leaves_no_gap():
    solver, _ = made()
    solver.lower = 1.001 * solver.objective
    with pytest.raises(CertificateError):
        drained(solver._settle())
    solver, _ = made()
    drained(solver._settle())
    assert 0 < solver.doubt <= 1e-12 * solver.objective
    solver.lower = solver.objective + 0.5 * solver.doubt
    drained(solver._settle())
    assert solver.lower == solver.objective and 0 <= solver.relative_gap <= 1e-12


def test_a_start_is_taken_over_and_left_as_it_was():
    plain, x = made()
    for _ in plain.turns():
        pass
    known = plain.snapshot().w
    kept = known.copy()
    again, _ = made(start=known)
    turns = [turn for turn in again.turns() if turn is not None]
    assert turns[0].objective == pytest.approx(objective(again, x, kept), rel=1e-12) and len(turns) <= 3
    np.testing.assert_array_equal(known, kept)


@pytest.mark.parametrize("penalised", [True, False])
def test_the_working_set_has_all_weights_and_those_that_violate_most(penalised, monkeypatch):
    monkeypatch.setattr(one_norm, "FEWEST", 4)
    for seed in range(20):
        solver, _ = made(seed, n=30, d=40, penalised=penalised)
        rng = np.random.default_rng(seed)
        solver.w = rng.normal(size=41) * (rng.random(41) < (0.0, 0.1, 0.5)[seed % 3])
        grad = rng.normal(size=41) * 2
        features, largest = solver._working_set(grad)
        violation = violations(solver.w, grad, solver._penalty)
        assert largest == violation.max()
        assert len(set(features.tolist())) == len(features)
        held = solver.w != 0
        held[solver.problem.free] = True
        assert held[features].sum() == held.sum()
        joined = np.setdiff1d(features, np.flatnonzero(held))
        left = np.setdiff1d(np.flatnonzero((violation > 0) & ~held), joined)
        assert (violation[joined] > 0).all()
        if len(left):
            assert violation[left].max() <= violation[joined].min() and len(joined) == max(4, 2 * held.sum())
            assert len(left) > 0.5 * (len(joined) + held.sum())
    grad = np.zeros(41)
    assert solver._working_set(grad)[1] == violations(solver.w, grad, solver._penalty).max()


def test_no_model_without_weights_or_with_too_many(monkeypatch):
    solver, _ = made(bias=0.0)
    solver.w[:] = 0.0
    assert solver._price() == np.inf
    solver.w[:] = 1.0
    assert np.isfinite(solver._price()) and solver._price() > 0
    monkeypatch.setattr(one_norm, "DENSE", 5)
    assert solver._price() == np.inf
    grad = np.full(6, 9.0)
    kept = solver.w.copy()
    assert not solver._model_step(grad)
    np.testing.assert_array_equal(solver.w, kept)
    monkeypatch.setattr(one_norm, "DENSE", 6)
    assert np.isfinite(solver._price())


@pytest.mark.parametrize("penalised", [True, False])
@pytest.mark.parametrize("d", [6, 40])
def test_steps_lower_the_objective_and_keep_the_margins_of_the_point(penalised, d):
    """Of the model and of descent, with what both say: how much of the way was good, and what comes next."""
    taken = []
    for seed in range(25):
        solver, x = made(seed, d=d, C=10.0 ** np.random.default_rng(seed).uniform(-1.5, 1), penalised=penalised)
        rng = np.random.default_rng(seed)
        at(solver, rng.normal(size=d + 1) * (rng.random(d + 1) < 0.5) * 0.3)
        solver._keep(solver.w, solver.u)
        for step in (solver._model_step, lambda grad, solver=solver: drained(solver._descend(grad))) * 3:
            grad, before, patience = solver._bound(), objective(solver, x, solver.w), solver._patience
            rounds, old, epochs = solver._rounds, solver.w.copy(), solver._epochs
            said = step(grad)
            after = objective(solver, x, solver.w)
            np.testing.assert_allclose(solver.u, 1 - solver.problem.sign * (x @ solver.w), atol=1e-9)
            assert after <= before * (1 + 1e-12)
            if solver._epochs == epochs:
                assert solver._spent == 0 or np.array_equal(old, solver.w)
                assert solver._rounds == (min(2 * rounds, one_norm.ROUNDS) if said else 1)
                assert solver._patience in (1.0, min(2 * patience, one_norm.PATIENCE))
                assert not said or solver._patience == 1.0
                taken.append(bool(said))
            else:
                assert solver._epochs <= epochs + one_norm.EPOCHS and (after < before or solver.relative_gap < 1e-3)
            solver._keep(solver.w, solver.u)
    assert any(taken)


# ---- extrapolation


def test_shares_add_up_to_one_and_make_the_steps_cancel():
    rng = np.random.default_rng(5)
    differences = 0.8 ** np.arange(WINDOW)[:, None] * rng.normal(size=3) + 1e-3 * rng.normal(size=(WINDOW, 3))
    share = Extrapolation._shares(differences)
    assert share.sum() == pytest.approx(1.0)
    most = np.linalg.norm(share @ differences)
    for other in rng.normal(size=(200, WINDOW)):
        moved = share + 0.1 * (other - other.mean())
        cost = 1e-8 * np.trace(differences @ differences.T)
        assert most**2 + cost * share @ share <= np.linalg.norm(moved @ differences) ** 2 + cost * moved @ moved + 1e-12
    assert Extrapolation._shares(np.zeros((WINDOW, 3))) is None
    assert Extrapolation._shares(np.full((WINDOW, 3), np.nan)) is None


@pytest.mark.parametrize("worse", [False, True])
def test_an_extrapolation_is_taken_where_it_is_better_and_nowhere_else(worse):
    """Points on their way to the minimum by a fixed part each: the way leads there; margins go with the weights."""
    solver, x = made(penalised=True)
    for _ in solver.turns():
        pass
    best, problem = solver.best, solver.problem
    goal = best if not worse else best + 50.0
    begin = goal + 0.5 if not worse else best - (goal - best)
    features = np.arange(problem.size)
    at(solver, begin)
    points = Extrapolation(solver, features)
    for k in range(1, WINDOW + 1):
        at(solver, goal + (begin - goal) * 0.9**k)
        before = objective(solver, x, solver.w)
        points.add()
        assert len(points._points) == (1 if k == WINDOW else k + 1)
        np.testing.assert_allclose(solver.u, 1 - problem.sign * (x @ solver.w), atol=1e-6)
        if k < WINDOW:
            np.testing.assert_array_equal(solver.w, goal + (begin - goal) * 0.9**k)
    after = objective(solver, x, solver.w)
    assert after <= before
    if not worse:
        assert after - solver.objective < 0.1 * (before - solver.objective)
    np.testing.assert_array_equal(points._points[0][0], solver.w)


# ---- the model


def test_violations_are_distances_from_the_subgradients():
    rng = np.random.default_rng(6)
    w, grad, penalty = np.repeat([-1.0, 0.0, 2.0], 20), 2 * rng.normal(size=60), rng.choice([0.0, 1.0], 60)
    sub = np.linspace(-1, 1, 2001)
    for k, found in enumerate(violations(w, grad, penalty)):
        signs = sub if w[k] == 0 else np.sign(w[k])
        assert found == pytest.approx(np.abs(grad[k] + penalty[k] * signs).min(), abs=1e-3 * penalty[k] + 1e-12)


def test_a_newton_step_ends_at_the_minimum_or_where_the_first_weight_is_zero():
    ends = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(12, 5))
        H, w = A.T @ A, rng.normal(size=5) * (rng.random(5) < 0.8)
        penalty = np.where(rng.random(5) < 0.8, 0.5, 0.0)
        grad = rng.normal(size=5) * 4
        support = (w != 0) | (penalty == 0)
        old, first = w.copy(), grad.copy()
        moved = _newton_step(H, w, grad, penalty, 0.0)
        assert moved == support.any()
        if not moved:
            continue
        np.testing.assert_array_equal(w[~support], old[~support])
        np.testing.assert_allclose(grad, first + H @ (w - old), atol=1e-9)
        pull = (penalty * np.sign(old))[support]
        whole = -np.linalg.solve(H[np.ix_(support, support)], first[support] + pull)
        goal = old[support] + whole
        crossed = (pull != 0) & (old[support] * goal < 0)
        part = min([1.0, *(-old[support] / whole)[crossed]])
        np.testing.assert_allclose(w[support], old[support] + part * whole, atol=1e-9)
        assert not crossed.any() or (w[support][crossed] == 0).any()  # exactly
        ends.append(bool(crossed.any()))
    assert any(ends) and not all(ends)


def test_a_damped_step_is_shorter_and_features_that_are_the_same_go_nowhere():
    H, w, grad = np.ones((2, 2)), np.array([1.0, 2.0]), np.array([-3.0, -3.0])
    lengths = []
    for damping in (0.01, 0.1, 1.0):
        at_end, left = w.copy(), grad.copy()
        assert _newton_step(H, at_end, left, np.full(2, 0.5), damping)
        assert np.isfinite(at_end).all()
        lengths.append(np.abs(at_end - w).sum())
    assert lengths[0] > lengths[1] > lengths[2] > 0
    bad = np.array([[1.0, np.nan], [np.nan, 1.0]])
    assert not _newton_step(bad, w.copy(), grad.copy(), np.full(2, 0.5), 0.1)


def test_features_of_a_model_are_those_asked_for_or_all():
    solver, _ = made(d=9, bias=0.0)
    model = QuadraticModel(solver.problem, solver._matrix, solver._curve)
    some = np.zeros(9, bool)
    assert not model.covers(some)
    some[[2, 5]] = True
    model.choose(some)
    np.testing.assert_array_equal(model.features, [2, 5])
    other = some.copy()
    assert model.covers(some) and model.covers(np.zeros(9, bool))
    other[7] = True
    assert not model.covers(other)
    other[[1, 0, 3]] = True  # more than half: all of them
    model.choose(other)
    np.testing.assert_array_equal(model.features, np.arange(9))
    assert model.covers(np.ones(9, bool))
