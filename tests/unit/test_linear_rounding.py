"""Allowances for rounding: never less than what rounding did, by exact rational arithmetic; and what a bound may rest on."""

from fractions import Fraction

import numpy as np
import pytest
from hinge import hinge_svc

from maxmargin.linear import LinearProblem, bundle, certified, make
from maxmargin.linear.bundle import Bundle
from maxmargin.linear.joint_descent import JointDescent
from maxmargin.linear.joint_problem import JointProblem
from maxmargin.linear.problem import Sum, exact_dot, intercept_of
from maxmargin.linear.rounding import Bounds, Cut, gamma
from maxmargin.problem.certificates import CertificateError
from maxmargin.runtime import drained


def exactly(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def wild(seed, n=30, d=3, bias=0.0, **options):
    """Samples, weights and signs over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-5, 5, (n, d))
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    return LinearProblem(X, sign, 10.0 ** rng.uniform(-6, 6, n), 3.0, bias=bias, **options), rng


def true_sum(problem, alpha):
    """−Σ alpha_i sign_i x̃_i as fractions, one per coordinate."""
    rows = np.hstack([problem.X, np.full((problem.n, 1), problem.bias)]) if problem.bias else problem.X
    weight = exactly(problem.sign * alpha)
    return [-sum((w * x for w, x in zip(weight, exactly(column))), Fraction(0)) for column in rows.T]


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_a_sum_is_within_its_drift_however_often_it_moved(seed, bias):
    problem, rng = wild(seed, bias=bias)
    total, alpha, largest = Sum(problem), np.zeros(problem.n), np.append(problem.extent.columns, bias)
    for _ in range(25):
        rows = np.flatnonzero(rng.random(problem.n) < 0.6)
        now = problem.weight[rows] * rng.random(len(rows))
        drained(total.move(rows, problem.sign[rows] * (now - alpha[rows]), float(alpha.sum())))
        alpha[rows] = now
        for a, true, most in zip(total.a, true_sum(problem, alpha), largest):
            assert abs(Fraction(float(a)) - true) <= Fraction(float(total.drift)) * Fraction(float(most))
    worn = total.drift
    assert total.worn(float(alpha.sum()))
    drained(total.renew(alpha))
    assert total.drift < worn / 4 and not total.worn(float(alpha.sum()))
    for a, true, most in zip(total.a, true_sum(problem, alpha), largest):  # summed anew, not on top of the old sum
        assert abs(Fraction(float(a)) - true) <= Fraction(float(total.drift)) * Fraction(float(most))


@pytest.mark.parametrize(("bias", "penalised"), [(0.0, False), (1e7, True), (1e7, False)])
def test_a_unit_of_dual_moves_no_penalised_coordinate_further_than_bounds_say(bias, penalised):
    problem, _ = wild(0, bias=bias, penalised=penalised)
    rows = np.hstack([problem.X, np.full((problem.n, 1), bias)])[:, : problem.size]
    if bias and not penalised:
        rows[:, -1] = 0.0  # free: what a bound pays for it is another matter
    bounds = problem.bounds
    assert (np.abs(rows) <= bounds.largest).all() and (np.abs(rows).max(axis=0) == bounds.largest).all()
    assert np.linalg.norm(rows, axis=1).max() <= bounds.length * (1 + 1e-12)


@pytest.mark.parametrize("solver", ["newton", "descent", "ocas", "cpa"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_solvers_that_sum_up_anew_at_every_turn_prove_the_same(solver, loss, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    usual = hinge_svc(solver=solver, loss=loss, fit_intercept=False, tol=1e-5).fit(X, y)
    monkeypatch.setattr(certified, "NOTICED", 0.0)
    monkeypatch.setattr(Sum, "worn", lambda self, mass: True)
    anew = hinge_svc(solver=solver, loss=loss, fit_intercept=False, tol=1e-5).fit(X, y)
    assert anew.status_ == "converged"
    assert anew.lower_bound_ <= usual.objective_ and usual.lower_bound_ <= anew.objective_


def minimum(bounds, a, b):
    """min over w of ½‖w‖² + C·max(0, ⟨a, w⟩ + b): the true value of a cut mixed with R ≥ 0, no intercept."""
    square = sum(x * x for x in exactly(a))
    C, b = Fraction(bounds.C), Fraction(b)
    share = min(Fraction(1), max(Fraction(0), b / (C * square))) if square else Fraction(1)
    return share * C * b - share * share * C * C * square / 2


@pytest.mark.parametrize("seed", range(40))
def test_no_true_cut_within_the_drift_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    largest = 10.0 ** rng.uniform(-8, 8, d)
    bounds = Bounds(float(10.0 ** rng.uniform(-8, 8)), largest, float(np.linalg.norm(largest)) * (1 + 1e-12))
    a = rng.normal(size=d) * largest
    b, drift = float(rng.normal() + 0.5), float(10.0 ** rng.uniform(-12, 0))
    lower = Fraction(bounds.lower(a, b, drift))
    assert lower >= 0
    for _ in range(30):
        true = a + drift * largest * rng.choice([-1.0, 0.0, 1.0], d) * (1 - 1e-12)
        assert lower <= max(Fraction(0), minimum(bounds, true, b))
    assert lower <= max(Fraction(0), minimum(bounds, a + drift * largest * np.where(a < 0, -1, 1) * (1 - 1e-12), b))
    if drift < 1e-9:
        exact = float(minimum(bounds, a, b))
        allowance = bounds.C**2 * drift * bounds.across(a)
        assert float(lower) >= exact - 2 * allowance - 1e-12 * abs(bounds.C * b) - drift * abs(exact)


def test_a_bound_of_a_free_intercept_pays_for_what_does_not_cancel():
    """One cut per class, mixed a little off balance: the true optimum lies above what is said, and close."""
    X = np.array([[1.0], [-1.0]])
    problem = LinearProblem(X, np.array([1.0, -1.0]), np.array([1.0, 1e-3]), 10.0, bias=1.0)
    for off in (0.0, 1e-9, 1e-6, -1e-6, 1e-3, 0.5):
        alpha = np.array([1e-3 + off, 1e-3]) if off >= 0 else np.array([1e-3, 1e-3 + off])
        a = np.append(-(problem.sign * alpha) @ X, -(problem.sign @ alpha))
        lower = problem.bounds.lower(a, float(alpha.sum()), 0.0)
        best = make_best(problem)
        assert lower <= best * (1 + 1e-12)
        if abs(off) <= 1e-6:
            balanced = 10.0 * 2e-3 - 0.5 * (10.0 * 2e-3) ** 2
            assert lower >= balanced * (1 - 4e3 * abs(off) - 1e-9)


def make_best(problem):
    solver = make(problem, 1e-10, "ocas")
    for _ in solver.turns():
        pass
    return solver.objective


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_joint_intercepts_pay_for_what_does_not_cancel(classes):
    rng = np.random.default_rng(classes)
    n, d = 12 * classes, 3
    X, labels = rng.normal(size=(n, d)), np.arange(n) % classes
    one = LinearProblem(X, np.ones(n), rng.uniform(0.5, 2, n), 0.3, bias=1.0)
    problem = JointProblem.of(one, labels, classes)
    best = solve_joint(one, labels, classes)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        taken = np.where(rng.random(n) < 0.5, rng.integers(0, classes, n), labels)
        a = np.zeros((classes, d + 1))
        rows = np.hstack([X, np.ones((n, 1))]) * (one.weight * (taken != labels))[:, None]
        np.add.at(a, taken, rows)
        np.add.at(a, labels, -rows)
        mass = float(one.weight[taken != labels].sum())
        assert problem.bounds.lower(a.ravel(), mass, 0.0) <= best


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize(("n", "classes"), [(1, 300), (2, 100), (5, 3), (30, 4)])
def test_a_cut_of_joint_duals_is_within_its_drift(n, classes, bias):
    """Also of few samples and many classes, whose duals the own class balances."""
    one, rng = wild(n, n=n, bias=bias, penalised=bool(bias))
    labels = rng.integers(0, classes, n)
    descent = JointDescent(JointProblem.of(one, labels, classes), 0)
    rows = np.column_stack([one.X, np.full(n, bias)]) if bias else one.X
    for _ in range(3):
        drained(descent.descend())
        cut = descent.cut()
        duals = [exactly(row) for row in descent._beta]
        for own, beta in zip(labels, duals):
            beta[own] -= sum(beta)
        for c, a in enumerate(cut.a.reshape(classes, -1)):
            for at, column in zip(a, rows.T):
                true = -sum((beta[c] * x for beta, x in zip(duals, exactly(column))), Fraction(0)) / Fraction(one.C)
                most = Fraction(float(np.abs(column).max()))
                assert abs(Fraction(float(at)) - true) <= Fraction(float(cut.drift)) * most


def solve_joint(one, labels, classes):
    from maxmargin.linear import CrammerSinger

    solver = CrammerSinger(one, labels, classes, 1e-7)
    for _ in solver.turns():
        pass
    return solver.objective


# ---- the bundle


def random_cuts(problem, rng, count):
    for _ in range(count):
        alpha = problem.weight * (rng.random(problem.n) < rng.uniform(0.1, 0.9))
        total, mass = Sum(problem), float(alpha.sum())
        drained(total.renew(alpha))
        yield total.cut(mass, mass, mass)


def filled(problem, rng, count=60):
    bundle = Bundle(problem)
    for cut in random_cuts(problem, rng, count):
        bundle.add(cut)
    bundle.solve()
    return bundle


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_bound_survives_dropped_cuts(bias, monkeypatch):
    """All cuts but the aggregate gone at once: the reduced problem still has the value it had."""
    problem, rng = wild(5, bias=bias)
    bundle_of_many = filled(problem, rng)
    value = bundle_of_many.value
    assert value > 0 and bundle_of_many.count == 60
    monkeypatch.setattr(bundle, "IDLE", 1)
    bundle_of_many._idle[:] = 0
    bundle_of_many._idle[:60] = 1  # every one of them
    bundle_of_many._drop(bundle_of_many._mixture(bundle_of_many._beta))
    assert bundle_of_many.count == 1
    bundle_of_many.solve()
    assert bundle_of_many.value >= value * (1 - 1e-9)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_what_is_left_of_cuts_starts_where_all_of_them_ended(bias):
    """Whichever go, the next reduced problem starts at the mixture itself: feasible, and of the value that there was."""
    problem, rng = wild(7, bias=bias)
    for count in (1, 30, 59):
        gathered = filled(problem, rng)
        mixed = gathered._mixture(gathered._beta)
        gathered._idle[:60] = 0
        gathered._idle[rng.choice(60, count, replace=False)] = bundle.IDLE
        gathered._drop(mixed)
        assert gathered.count == len(gathered._beta) == 61 - count
        assert (gathered._beta >= 0).all() and gathered._beta.sum() <= 1
        start = gathered._mixture(gathered._beta)
        np.testing.assert_array_equal(start.a, mixed.a)
        assert start.b == pytest.approx(mixed.b, rel=1e-12) and start.mass == mixed.mass


def test_idle_cuts_go_and_those_in_use_stay():
    problem, rng = wild(6)
    gathered = filled(problem, rng, 30)
    values, counts = [gathered.value], [gathered.count]
    for cut in random_cuts(problem, rng, 50):
        gathered.add(cut)
        gathered.solve()
        values.append(gathered.value)
        counts.append(gathered.count)
    assert min(np.diff(counts)) < 0 and max(counts) < 80
    assert (np.diff(values) >= -1e-9 * np.array(values[1:])).all()


def test_a_mixture_is_within_its_drift():
    problem, rng = wild(7, bias=1.0)
    gathered = filled(problem, rng, 20)
    mixed = gathered._mixture(gathered._beta)
    beta = exactly(gathered._beta)
    for j, most in enumerate([*problem.extent.columns, 1.0]):
        computed = sum(b * Fraction(float(v)) for b, v in zip(beta, gathered._cuts[:20, j]))
        spread = sum(b * Fraction(float(v)) for b, v in zip(beta, gathered._numbers[2, :20])) * Fraction(float(most))
        assert abs(computed - Fraction(float(mixed.a[j]))) + spread <= Fraction(float(mixed.drift)) * Fraction(float(most))
    assert Fraction(mixed.b) <= sum(b * Fraction(float(v)) for b, v in zip(beta, gathered._numbers[0, :20]))


def test_cuts_that_were_kept_bound_the_risk_under_any_C():
    problem, rng = wild(8)
    kept = filled(problem, rng).kept()
    for C in (1e-6, 0.5, 40.0, 1e6):
        other = LinearProblem(problem.X, problem.sign, problem.weight, C)
        fresh = Bundle(other)
        for a, (b, mass, drift) in zip(kept.a, kept.numbers.T):
            fresh.add(Cut(a, b, mass, drift))
        fresh.solve()
        again = Bundle(other, kept)
        assert again.lower == pytest.approx(fresh.lower, rel=1e-9) and again.lower <= C * problem.weight.sum()


# ---- the model as it is published


def test_a_bound_above_the_objective_raises():
    problem, _ = wild(9)
    solver = make(problem, 1e-3, "ocas")
    solver.bundle.lower = 1.001 * solver.objective
    with pytest.raises(CertificateError, match="bug in maxmargin"):
        for _ in solver.turns():
            pass
    for stop in ("settle", "result"):
        solver = make(problem, 1e-3, "ocas")
        solver.bundle.lower = 1.001 * solver.objective
        with pytest.raises(CertificateError):
            drained(solver.settle()) if stop == "settle" else solver.result(certified.Status.MAX_ITER)


def test_a_bound_and_an_objective_that_meet_leave_no_negative_gap():
    problem, _ = wild(9)
    solver = make(problem, 1e-3, "ocas")
    solver.bundle.lower = solver.objective * (1 + 1e-16) + 0.5 * solver.best.doubt
    drained(solver.settle())
    assert solver.gap == 0.0


def test_margins_that_were_carried_along_are_computed_anew_before_they_are_believed():
    """A point whose margins say it is perfect is found out, and the run goes on to the end."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    sign = np.where(X[:, 0] + rng.normal(size=60) > 0, 1.0, -1.0)
    for name in ("ocas", "newton", "descent"):
        solver = make(LinearProblem(X, sign, np.ones(60), 1.0), 1e-4, name)
        turns = solver.turns()
        for _ in range(2):
            next(turn for turn in turns if turn is not None)
        solver.keep(solver.best.w, np.full(60, 5.0), 1e-9)
        for _ in turns:
            pass
        result = solver.result(certified.Status.CONVERGED)
        slack = np.maximum(0, 1 - sign * (X @ result.w))
        assert result.objective == pytest.approx(0.5 * result.w @ result.w + slack.sum(), rel=1e-12)
        assert result.status is certified.Status.CONVERGED and result.gap <= 1e-4 * result.objective


@pytest.mark.parametrize("seed", range(5))
def test_exact_dot_rounds_once(seed):
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=40) * 10.0 ** rng.uniform(-8, 8, 40), rng.normal(size=40)
    plus = -float(u @ v)  # all that is left is what ordinary sums lose
    true = sum((a * b for a, b in zip(exactly(u), exactly(v))), Fraction(plus))
    assert exact_dot(u, v, plus) == float(true)
    w, centre = np.append(v, 0.3), u
    assert intercept_of(w, centre, 2.0) == float(Fraction(0.6) - sum(a * b for a, b in zip(exactly(u), exactly(v))))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_samples_far_from_zero_are_judged_as_they_are(kind):
    """Around a mean of 3000 with rows near 0 among them: float32 differences would be other samples."""
    rng = np.random.default_rng(2)
    X = (rng.normal(size=(300, 3)) + 3000).astype(kind)
    X[:3] = rng.normal(size=(3, 3)).astype(kind) * 1e-3
    y = (X[:, 0] - X[:, 1] + rng.normal(size=300) > 0).astype(int)
    model = hinge_svc(1.0, tol=1e-6, max_iter=400).fit(X, y)
    margins = np.where(y, 1, -1) * (X.astype(np.longdouble) @ model.coef_[0].astype(np.longdouble) + model.intercept_[0])
    value = (model.coef_.astype(np.longdouble) ** 2).sum() / 2 + np.maximum(0, 1 - margins).sum()
    assert model.objective_ == pytest.approx(float(value), rel=1e-11)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("size", [1e160, 1e300])
def test_products_that_overflow_are_refused_with_the_remedy(size, loss):
    X = np.array([[1.0], [-1.0], [2.0]]) * size
    model = hinge_svc(loss=loss)
    with pytest.raises(ValueError, match=r"X has values up to 2e\+[0-9]+ .* Scale the features"):
        model.fit(X, [0, 1, 0])
    assert not hasattr(model, "coef_")


def test_gamma_bounds_real_sums():
    rng = np.random.default_rng(0)
    for n in (10, 1000, 30000):
        x = rng.normal(size=n) * 10.0 ** rng.uniform(-6, 6, n)
        off = abs(Fraction(float(np.cumsum(x)[-1])) - sum(exactly(x)))
        assert off <= Fraction(gamma(n)) * sum(map(abs, exactly(x)))
