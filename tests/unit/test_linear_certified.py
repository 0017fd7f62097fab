"""What linear solvers share: cuts, the best point, its certificate, and how one solver follows another."""

from dataclasses import replace

import numpy as np
import pytest

from maxmargin.linear import CrammerSinger, Known, LinearProblem, Scaled, certified, joint_descent, line_search, make
from maxmargin.linear.bundle import Bundle
from maxmargin.linear.certified import Best, Certified, LinearResult, relayed
from maxmargin.linear.descent import Coordinates
from maxmargin.linear.joint_descent import JointDescent
from maxmargin.linear.joint_problem import JointProblem
from maxmargin.linear.problem import Sum
from maxmargin.linear.rounding import Bounds, Cut, dot, gamma, without
from maxmargin.runtime import Status, Turn, drained

LOSSES = ["hinge", "squared_hinge"]


def made(seed=0, n=30, d=4, C=0.8, bias=1.0, regression=False, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    weight = rng.uniform(0.2, 2, n)
    if not regression:
        sign = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
        sign[:2] = 1.0, -1.0
        return LinearProblem(X, sign, weight, C, bias=bias, **options)
    y = X[:, 0] + rng.normal(size=n)
    shift = np.concatenate([1.1 - y, 1.1 + y])
    return LinearProblem(X, np.repeat([1.0, -1.0], n), np.tile(weight, 2), C, bias=bias, shift=shift, **options)


def margins(problem, w):
    out = np.empty(problem.hinges)
    drained(problem.outputs(w, out))
    return out


def losses(problem, w):
    short = np.maximum(0, 1 - margins(problem, w))
    return problem.weight * (short if problem.loss == "hinge" else short**2)


def value(problem, w):
    return 0.5 * problem.inner(w, w) + problem.C * losses(problem, w).sum()


def cuts_of(bundle):
    kept = bundle.kept()
    return kept.a, kept.numbers[0]


# ---- the bundle


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_the_reduced_problem_is_solved_by_the_point_returned(bias):
    """½‖w‖² + C·max(0, cuts) at w is the bound, cut after cut, also after old ones went; the bound never falls."""
    problem, rng = made(bias=bias), np.random.default_rng(1)
    bundle, alpha, total = Bundle(problem), np.zeros(problem.n), Sum(problem)
    solver = Certified(problem, 1e-3)
    solver.bundle = bundle
    solver.seed_cuts()
    last, w = 0.0, np.zeros(problem.size)
    for _ in range(60):
        found = problem.duals(alpha, margins(problem, w))
        drained(total.renew(alpha))
        bundle.add(total.cut(found.offset, found.mass, found.size))
        w = bundle.solve()
        if not rng.integers(4):
            bundle.value = 0.0  # a guess alone
        a, b = cuts_of(bundle)
        model = 0.5 * problem.inner(w, w) + problem.C * max(0.0, (a @ w + b).max())
        assert model == pytest.approx(bundle.lower, rel=1e-7) and bundle.lower >= last
        assert bundle.lower <= value(problem, w) * (1 + 1e-12)
        gram = np.array([[problem.inner(u, v) for u in a] for v in a])
        np.testing.assert_allclose(bundle.kept().gram, gram, rtol=1e-12, atol=1e-12)
        last = bundle.lower
    assert bundle.count < 60


def test_a_cut_goes_after_as_many_solves_in_a_row_as_it_may_be_idle(monkeypatch):
    """The second cut promises less everywhere, so that it never has a share; the first has it all."""
    monkeypatch.setattr("maxmargin.linear.bundle.IDLE", 3)
    bundle = Bundle(made(bias=0.0))
    bundle.add(Cut(np.full(4, 0.1), 5.0, 5.0, 0.0))
    bundle.add(Cut(np.full(4, 0.1), 1.0, 1.0, 0.0))
    values = []
    for turn in range(1, 5):
        bundle.solve()
        values.append(bundle.value)
        offsets = bundle.kept().numbers[0]
        assert 5.0 in offsets and (1.0 in offsets) == (turn < 3)
        if turn < 3:
            assert bundle.kept().idle.tolist() == [0, turn]
    assert bundle.count == 2 and values[3] == pytest.approx(values[0], rel=1e-9)  # the first, and the mixture of both


def test_a_copy_of_the_cuts_has_one_more_where_it_is_asked_for():
    problem = made(bias=0.0)
    bundle = Bundle(problem)
    for k in range(8):
        bundle.add(Cut(np.full(4, 1.0 + k), 2.0 + k, 3.0 + k, 1e-9 * k))
    more = Cut(np.arange(4.0), 9.0, 8.0, 1e-9)
    for _ in range(2):  # and it is not there afterwards
        kept, with_more = bundle.kept(), bundle.kept(more)
        assert bundle.count == len(kept.a) == 8 and len(with_more.a) == len(with_more.idle) == 9
        np.testing.assert_array_equal(with_more.a[:8], kept.a)
        np.testing.assert_array_equal(with_more.a[8], more.a)
        np.testing.assert_array_equal(with_more.numbers[:, 8], [9.0, 8.0, 1e-9])
        np.testing.assert_allclose(with_more.gram, with_more.a @ with_more.a.T)
    kept.a[:] = 0.0
    assert bundle.kept().a.all()  # a copy
    again = Bundle(problem, with_more)
    assert again.count == 9
    np.testing.assert_array_equal(again.kept().a, with_more.a)
    np.testing.assert_array_equal(again.kept().numbers, with_more.numbers)


def test_a_cut_that_cancels_but_for_its_drift_is_taken_as_one_that_does():
    problem = made(bias=2.0)
    bundle = Bundle(problem)
    a = np.array([1.0, 2.0, 3.0, 4.0, 2e-9])  # 1e-9 in units of dual
    for drift, there in ((2e-9, 0.0), (1e-9, 0.0), (0.5e-9, 2e-9)):
        cut = bundle._balanced(Cut(a, 5.0, 6.0, drift))
        np.testing.assert_array_equal(cut.a[:4], a[:4])
        assert cut.a[4] == there and (cut.b, cut.mass) == (5.0, 6.0)
        assert cut.drift == pytest.approx(drift + (0.0 if there else 1e-9), rel=1e-12)
    clean = Cut(np.append(a[:4], 0.0), 5.0, 6.0, 1e-9)
    assert bundle._balanced(clean) is clean


@pytest.mark.parametrize("intercepts", [1, 3])
def test_bounds_pay_for_drift_intercepts_and_depth(intercepts):
    """More drift, a component astray, a lighter class or a deeper offset: never a higher bound; 0 at least."""
    free = slice(3, None, 4) if intercepts > 1 else slice(3, None)
    a = np.tile([0.3, -0.2, 0.1, 0.0], intercepts)
    plain = Bounds(2.0, np.tile([1.0, 1.0, 1.0, 0.0], intercepts), 1.5, free, intercepts, 0.5, 3.0, 0.0)
    best = plain.lower(a, 1.0, 0.0)
    square = float(a @ a)
    assert best == pytest.approx(2.0 - 2.0 * square if 2 * square < 1 else 0.5 / square, rel=1e-9)
    assert plain.lower(a, -1.0, 0.0) == 0.0 and plain.lower(a, np.nan, 0.0) == 0.0
    astray = a.copy()
    astray[free] = 1e-3
    for bounds, where, drift in (
        (plain, a, 1e-4), (plain, astray, 0.0), (replace(plain, depth=2.0), astray, 0.0),
        (replace(plain, lightest=1e-3), astray, 0.0), (replace(plain, bias=0.1), astray, 0.0),
    ):  # fmt: skip
        assert 0 <= bounds.lower(where, 1.0, drift) < best
    assert replace(plain, depth=2.0).lower(astray, 1.0, 0.0) < plain.lower(astray, 1.0, 0.0)
    assert replace(plain, lightest=0.1).lower(astray, 1.0, 0.0) < plain.lower(astray, 1.0, 0.0)
    cut = Cut(astray, 1.0, 1.0, 1e-5)
    lost = plain.lower(without(astray, free), 1.0, 0.0) - plain.lower(without(astray, free), 1.0, 1e-5)
    assert 0 < lost <= plain.allowance(cut) * (1 + 1e-6) + 1e-3 * best
    assert plain.allowance(replace(cut, drift=2e-5)) == pytest.approx(2 * plain.allowance(cut))


def test_small_things_of_rounding():
    u = np.arange(5.0)
    assert without(u, slice(0, 0)) is u and u[4] == 4.0
    np.testing.assert_array_equal(without(u, slice(1, None, 2)), [0, 0, 2, 0, 4])
    np.testing.assert_array_equal(u, np.arange(5.0))
    assert dot(u, u) == 30.0 and gamma(1) > 2.0**-53 and gamma(200) == pytest.approx(200 * gamma(1), rel=1e-12)
    cut = Cut.of(u, 3.0, 2.0, 0.1, 100, 7.0)
    assert cut.a is u and (cut.mass, cut.drift) == (2.0, 0.1)
    assert 3.0 - 7.0 * gamma(200) < cut.b <= 3.0 - 7.0 * gamma(100)


# ---- the best point and its certificate


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_cut_of_a_class_touches_its_risk(loss, regression):
    """Everywhere below the risk of the class, and equal to it where all its hinges are short by 1 (squared: by half)."""
    problem = made(loss=loss, regression=regression, bias=2.0)
    rng = np.random.default_rng(2)
    solver = Certified(problem, 1e-3)
    solver.seed_cuts()
    assert solver.bundle.count == 2
    a, b = cuts_of(solver.bundle)
    for label, slope, offset in zip((1.0, -1.0), a, b):
        mine = problem.sign == label
        for w in rng.normal(size=(30, problem.size)) * 10.0 ** rng.uniform(-1, 2, (30, 1)):
            risk = losses(problem, w)[mine].sum()
            assert slope @ w + offset <= risk * (1 + 1e-12) + 1e-12
        far = np.zeros(problem.size)
        far[-1] = -label * 100  # so that all of them have a loss
        if loss == "hinge":
            assert slope @ far + offset == pytest.approx(losses(problem, far)[mine].sum(), rel=1e-12)
        elif not regression:
            far[-1] = label * 0.25  # a margin of 1/2
            assert slope @ far + offset == pytest.approx(losses(problem, far)[mine].sum(), rel=1e-9)
    solver.seed_cuts()
    assert solver.bundle.count == 2  # once
    other = Certified(made(bias=0.0), 1e-3)
    other.seed_cuts()
    assert other.bundle.count == 0


@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_duals_given_make_the_bound_that_they_had(loss, bias):
    problem = made(loss=loss, bias=bias)
    first = make(problem, 1e-6, "descent")
    drained(first.turns())
    duals = first.duals()
    solver = Certified(problem, 1e-3, duals=duals)
    solver.seed_cuts()
    alpha, total = drained(solver.seed_duals())
    np.testing.assert_allclose(alpha, duals, rtol=1e-12)
    fresh = Sum(problem)
    drained(fresh.renew(alpha))
    np.testing.assert_array_equal(total.a, fresh.a)
    assert solver.bundle.lower == pytest.approx(first.objective, rel=1e-3)
    assert solver.bundle.lower <= first.objective
    none, zero = drained(Certified(problem, 1e-3).seed_duals())
    assert none.shape == (problem.hinges,) and not none.any() and not zero.a.any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e6])
def test_searches_end_at_the_best_point_of_the_line(loss, C):
    """From the best point through another, and along a ray: as good as any point of a fine grid, never worse than before."""
    for seed in range(6):
        problem, rng = made(seed, C=C, loss=loss), np.random.default_rng(seed)
        solver = Certified(problem, 1e-3)
        assert solver.objective == pytest.approx(value(problem, np.zeros(5)), rel=1e-12)
        for stretch in (False, True, False):
            w = rng.normal(size=5) * rng.uniform(0.1, 2)
            before, begin = solver.objective, np.zeros(5) if stretch else solver.best.w
            k = 0.0
            if stretch:
                solver.stretch(w, margins(problem, w))
            else:
                k = solver.improve(w, margins(problem, w))
            step = w if stretch else w - begin
            grid = min(value(problem, begin + t * step) for t in np.append(k, np.linspace(0, 3, 301)))
            assert solver.objective <= min(before, grid * (1 + 1e-9))
            assert solver.objective == pytest.approx(value(problem, solver.best.w), rel=1e-7)
            np.testing.assert_allclose(solver.best.m, margins(problem, solver.best.w), atol=1e-8)
            assert solver.objective == before or not solver.best.settled


def test_a_point_is_kept_if_it_is_better_and_copied():
    problem = made()
    solver = Certified(problem, 1e-3)
    w, m, now = np.ones(5), np.zeros(30), solver.objective
    solver.keep(w, m, now)
    assert not solver.best.w.any()
    solver.keep(w, m, 0.5 * now)
    w[:], m[:] = 7.0, 7.0
    assert solver.objective == 0.5 * now and (solver.best.w == 1).all() and not solver.best.m.any()
    assert not solver.best.settled


def test_gaps_are_relative_and_count_what_rounding_may_hide():
    solver = Certified(made(), 0.1)
    solver.best, solver.bundle.lower = Best(np.zeros(5), np.zeros(30), 10.0, True, 0.5), 9.5
    assert solver.gap == 0.5 and solver.relative_gap == pytest.approx(0.1) and solver.certified
    solver.best.doubt = 0.51
    assert not solver.certified
    solver.best.objective = 0.0
    assert solver.relative_gap == 0.0
    assert solver._noticed(certified.NOTICED * 0.1 * 1e-9) and not Certified(made(), 0.1)._noticed(0.0)


@pytest.mark.parametrize("good", [True, False])
def test_a_start_is_judged_and_no_worse_point_is_taken(good):
    problem = made()
    first = make(problem, 1e-6, "ocas")
    drained(first.turns())
    start = first.best.w if good else np.full(5, 50.0)
    solver = Certified(problem, 1e-3, start=start, duals=first.duals())
    known = solver.snapshot()
    assert known.w is start
    np.testing.assert_array_equal(known.duals, problem.feasible(first.duals()))
    assert not drained(solver.judge_start())  # no cuts yet
    if good:
        assert solver.objective == pytest.approx(first.objective, rel=1e-12) and solver.best.settled
    else:
        assert not solver.best.w.any() and solver.objective == pytest.approx(value(problem, np.zeros(5)))
    np.testing.assert_array_equal(solver.snapshot().w, solver.best.w)
    again = Certified(problem, 1e-3, known=first.bundle.kept(), start=first.best.w)
    assert drained(again.judge_start())
    assert not drained(Certified(problem, 1e-3).judge_start())


def test_a_result_says_what_was_reached():
    problem = made(bias=0.0)
    solver = make(problem, 1e-4, "descent")
    drained(solver.turns())
    result = solver.result(Status.CONVERGED)
    assert result.objective == pytest.approx(value(problem, result.w), rel=1e-12)
    assert result.gap == result.objective - result.lower and result.gap <= 1e-4 * result.objective
    assert result.violation == solver.relative_gap
    assert result.n_support == np.count_nonzero(margins(problem, result.w) <= 1 + 1e-4)
    again = Bundle(problem, result.cuts[0])
    assert again.lower == pytest.approx(result.lower, rel=1e-9)  # the cut that gave the bound is among them
    known = result.snapshot()
    assert known.cuts is result.cuts[0] and known.duals is result.duals[0]
    np.testing.assert_array_equal(known.w, result.w)
    joint = LinearResult(status=Status.CONVERGED, w=np.ones((3, 2)), duals=[np.ones(3)])
    assert joint.snapshot().duals is None and joint.snapshot().cuts is None and joint.snapshot().w.shape == (6,)


def test_another_solver_goes_on_where_one_stopped():
    problem = made(bias=0.0)
    first = make(problem, 1e-9, "descent", seed=1)
    turns = first.turns()
    for _ in range(2):
        last = next(turn for turn in turns if turn is not None)
    objective, lower = first.objective, first.bundle.lower
    other = make(problem, 1e-6, "ocas")
    seen = [turn for turn in first.hand_over(other) if turn is not None]
    assert seen[0].objective <= objective and seen[0].dual >= lower
    assert first.best is other.best and first.objective == seen[-1].objective <= last.objective
    assert first.bundle is other.bundle and first.clock is other.clock and seen[-1].violation <= 1e-6


def test_turns_that_are_relayed_keep_their_end():
    def turns():
        yield None
        yield Turn(4.0, 2.0, 0.5, 3, {})
        return Status.STALLED

    seen, out = [], []
    steps = relayed(turns(), lambda turn: seen.append(turn) or turn)
    while True:
        try:
            out.append(next(steps))
        except StopIteration as end:
            assert end.value is Status.STALLED
            break
    assert out == seen and len(out) == 2


class Told:
    def turns(self):
        yield None
        yield Turn(4.0, 2.0, 0.5, 3, {})

    def snapshot(self):
        return Known(np.ones(2))

    def result(self, status):
        return LinearResult(status=status, objective=4.0, gap=2.0, lower=2.0, violation=0.5, n_support=3, w=np.ones(2))


def test_other_units_change_values_and_weights_and_nothing_else():
    solver = Scaled(Told(), 0.25, 8.0)
    none, turn = solver.turns()
    assert none is None and (turn.objective, turn.dual, turn.violation, turn.n_support) == (1.0, 0.5, 0.5, 3)
    result = solver.result(Status.MAX_ITER)
    assert (result.objective, result.gap, result.lower, result.violation) == (1.0, 0.5, 0.5, 0.5)
    np.testing.assert_array_equal(result.w, [8.0, 8.0])
    np.testing.assert_array_equal(solver.snapshot().w, [8.0, 8.0])
    np.testing.assert_array_equal(Scaled(Told(), 0.25).result(Status.MAX_ITER).w, [1.0, 1.0])


@pytest.mark.parametrize("accuracy", [1e-1, 1e-6, 1e-12])
@pytest.mark.parametrize(("loss", "h"), [("hinge", 0.3), ("hinge", 1e-3), ("squared_hinge", 0.0)])
def test_a_smooth_search_ends_where_the_slope_is_as_small_as_asked_for(loss, h, accuracy):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = made(seed, loss=loss)
        m, q = rng.normal(size=30), rng.normal(size=30) * 10.0 ** rng.uniform(-3, 3)
        quad, lin = 10.0 ** rng.uniform(-3, 2), rng.normal() * 30

        def slope(k, problem=problem, m=m, q=q, quad=quad, lin=lin):
            return quad * k + lin + problem.C * problem.slope(h, m, q, k)[0]

        k = line_search.smooth(problem, m, q, quad, lin, h, accuracy)
        if slope(0.0) >= 0:
            assert k == 0.0
        else:
            assert k > 0 and abs(slope(k)) <= max(accuracy, 1e-9) * abs(slope(0.0))
        if loss == "squared_hinge":
            assert line_search.exact(problem, m, q, quad, lin) == pytest.approx(
                line_search.smooth(problem, m, q, quad, lin, 0.0, 1e-12)
            )


# ---- coordinates


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_coordinates_keep_their_sum_their_value_and_their_cut(loss, bias, regression):
    problem = made(loss=loss, bias=bias, regression=regression)
    dual, values = Coordinates(problem, 0), []
    x = np.column_stack([problem.X, np.full(problem.n, dual.feature)])[:, : problem.size]
    x = np.tile(x, (problem.hinges // problem.n, 1)) * problem.sign[:, None]
    shift = np.zeros(problem.hinges) if problem.shift is None else problem.shift
    dual.centre = 0.3 if bias else 0.0
    for _ in range(6):
        drift = dual.drift
        drained(dual.descend(np.arange(problem.n), problem.n, 0.0))
        assert dual.drift > drift
        np.testing.assert_allclose(dual.v, dual.alpha @ x, rtol=1e-9, atol=1e-9)
        assert (dual.alpha >= 0).all() and (dual.alpha <= dual.upper).all()
        curve = problem.C * problem.curve(dual.alpha / problem.C)
        linear = dual.alpha @ (1 - shift - (dual.centre * problem.sign if bias else 0.0))
        assert dual.value() == pytest.approx(linear - curve - 0.5 * dual.v @ dual.v, rel=1e-9)
        values.append(dual.value())
        cut, alpha, total = dual.cut(), dual.alpha / problem.C, Sum(problem)
        drained(total.renew(alpha))
        np.testing.assert_allclose(cut.a, total.a, rtol=1e-9, atol=1e-9)
        offset, _ = problem.offset(alpha, float(alpha.sum()), problem.curve(alpha))
        assert cut.b == pytest.approx(offset, rel=1e-9, abs=1e-9) and cut.mass == pytest.approx(alpha.sum(), rel=1e-12)
        w = dual.point()
        np.testing.assert_allclose(w[: problem.d], dual.v[: problem.d])
        if bias:
            assert bias * w[-1] == pytest.approx(dual.centre + dual.feature * dual.v[-1], rel=1e-12)
    assert (np.diff(values) >= -1e-12).all() and dual.epochs == 6
    other = Coordinates(problem, 0)
    other.place(alpha, total, 0.7)
    np.testing.assert_allclose(other.alpha, dual.alpha, rtol=1e-12)
    np.testing.assert_allclose(other.v, dual.v, rtol=1e-9, atol=1e-9)
    assert other.centre == (0.7 * bias if problem.free_intercept else 0.0)
    worn = dual.drift
    drained(dual.renew())
    np.testing.assert_allclose(dual.v, other.v, rtol=1e-9, atol=1e-9)
    assert 0 < dual.drift < worn


# ---- classes jointly


def joint(seed=0, n=24, d=3, classes=4, bias=2.0, penalised=False):
    rng = np.random.default_rng(seed)
    one = LinearProblem(rng.normal(size=(n, d)), np.ones(n), rng.uniform(0.2, 2, n), 0.6, bias=bias, penalised=penalised)
    return one, JointProblem.of(one, np.arange(n) % classes, classes)


def joint_risk(problem, w):
    W = w.reshape(problem.classes, -1)
    s = problem.X @ W[:, : problem.d].T + (problem.bias * W[:, -1] if problem.bias else 0.0)
    rows = np.arange(problem.n)
    s = s - s[rows, problem.labels][:, None] + 1
    s[rows, problem.labels] = 0.0
    return float(problem.weight @ s.max(axis=1))


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_joint_passes_match_numpy(bias, monkeypatch):
    problem = joint(bias=bias)[1]
    rng, rows = np.random.default_rng(3), np.arange(problem.n)
    x = np.column_stack([problem.X, np.full(problem.n, bias)])[:, : problem.d + (bias != 0)]
    assert problem.size == 4 * x.shape[1]
    monkeypatch.setattr("maxmargin.linear.problem.BLOCK", 5 * problem.d + 1)  # five rows at a time
    for _ in range(5):
        w, v = rng.normal(size=(2, problem.size))
        s, t = problem.zeros(), problem.zeros()
        drained(problem.outputs(w, s)), drained(problem.outputs(v, t))
        np.testing.assert_allclose(s, x @ w.reshape(4, -1).T, atol=1e-12)
        assert problem.risk(s) == pytest.approx(joint_risk(problem, w), rel=1e-12)
        mixed = 0.7 * s + 0.3 * t + (np.arange(4) != problem.labels[:, None])
        np.testing.assert_array_equal(problem.worst(s, t, 0.3), mixed.argmax(axis=1))
        assert problem.advance(s.copy(), t, 0.4) == pytest.approx(joint_risk(problem, w + 0.4 * v), rel=1e-12)
        taken, before = rng.integers(0, 4, problem.n), rng.integers(0, 4, problem.n)
        move = np.eye(4)[taken] - np.eye(4)[before]
        a = np.ones(problem.size)
        drained(problem.move(a, rows, before, taken))
        np.testing.assert_allclose(a, 1 + ((move * problem.weight[:, None]).T @ x).ravel(), atol=1e-12)
    weights, sums = problem.totals()
    own = np.eye(4)[problem.labels] * problem.weight[:, None]
    np.testing.assert_allclose(weights, own.sum(axis=0))
    np.testing.assert_allclose(sums, own.T @ x, atol=1e-12)
    assert problem.bounds.lightest == (pytest.approx(weights.min()) if bias else np.inf)
    if bias:
        assert problem.bounds.intercepts == 4 and (np.arange(16)[problem.free] == [3, 7, 11, 15]).all()
    off = 0.1
    for e in rng.uniform(-off, off, (30, *s.shape)):
        assert abs(problem.risk(s + e) - problem.risk(s)) <= problem._risk_doubt(s, off) * (1 + 1e-12)
    far = np.where(np.arange(4) == problem.labels[:, None], 1.0 + 2 * off, 0.0)
    assert problem._risk_doubt(far, 0.99 * off) == 0.0 < problem._risk_doubt(far, 1.01 * off)


@pytest.mark.parametrize(("bias", "penalised"), [(0.0, False), (2.0, True), (2.0, False)])
def test_cuts_of_joint_descent_lie_below_the_risk_and_its_points_near_the_optimum(bias, penalised):
    one, problem = joint(bias=bias, penalised=penalised)
    best = CrammerSinger(one, problem.labels, 4, 1e-7)
    drained(best.turns())
    rng, descent = np.random.default_rng(4), JointDescent(problem, 0)
    for _ in range(12):
        drift = descent._drift
        drained(descent.descend())
        assert descent._drift > drift  # rounding gathers
        cut, w = descent.cut(), descent.point()
        assert cut.b <= cut.mass * (1 + 1e-12)
        if problem.free_intercept:
            assert not cut.a[problem.free].any()
        lower = problem.bounds.lower(cut.a, cut.b, cut.drift)
        assert lower <= best.objective * (1 + 1e-12)
        for v in (w, best.best.w, *rng.normal(size=(20, problem.size)) * 3):
            assert cut.a @ v + cut.b <= joint_risk(problem, v) * (1 + 1e-9) + 1e-9
        scores = problem.zeros()
        drained(problem.outputs(w, scores))
        descent.choose(scores)
        own = descent._beta[np.arange(problem.n), problem.labels]
        needed = (own > 0) | (problem.worst(scores, scores, 0.0) != problem.labels)
        np.testing.assert_array_equal(descent._active, np.flatnonzero(needed))
        assert (own >= 0).all() and (own <= problem.C * problem.weight * (1 + 1e-12)).all()
        assert descent._beta.sum(axis=1) == pytest.approx(0, abs=1e-9)
    assert lower >= 0.98 * best.objective
    assert 0.5 * problem.inner(w, w) + problem.C * joint_risk(problem, w) <= 1.02 * best.objective


def test_every_step_of_an_epoch_may_round_the_whole_sum(monkeypatch):
    """At 0 all samples violate: as many steps at least, each of which adds to sums of up to what is there in the end."""
    monkeypatch.setattr(joint_descent, "EPOCHS", 1)
    for bias in (0.0, 2.0):
        problem = joint(bias=bias, penalised=True)[1]
        descent = JointDescent(problem, 0)
        drained(descent.descend())
        assert descent._mass() > 0 and descent._drift >= gamma(problem.n) * descent._mass()


def test_seeds_of_joint_cuts_balance_every_intercept():
    one, problem = joint()
    solver, rng = CrammerSinger(one, problem.labels, 4, 1e-3), np.random.default_rng(5)
    solver.seed_cuts()
    a, b = cuts_of(solver.bundle)
    assert len(a) == 4
    np.testing.assert_allclose((a / b[:, None])[:, problem.free].sum(axis=0), 0.0, atol=1e-9)
    for w in (np.zeros(problem.size), *rng.normal(size=(40, problem.size)) * 3):
        for slope, offset in zip(a, b):
            assert slope @ w + offset <= joint_risk(problem, w) * (1 + 1e-12) + 1e-12
    assert b.sum() == pytest.approx(joint_risk(problem, np.zeros(problem.size)), rel=1e-9)
    solver.seed_cuts()
    assert solver.bundle.count == 4
