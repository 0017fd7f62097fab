"""The inner solvers step by step: what a step, a start, a projection and a limit are, each by its equations."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from formulated import formulated

from maxmargin.decomposition import inner, inner_gpm, inner_ipm, inner_smo, qp, solve_qp
from maxmargin.decomposition.inner import InnerResult, SubQP, inner_solver, kkt_violation, reduce, solve_tile
from maxmargin.problem.certificates import certify
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Status

NAMES = ("c_svc", "no_intercept", "nu_svc", "epsilon_svr", "nu_svr", "one_class")


def built(name, n=12, seed=0):
    rng = np.random.default_rng(seed)
    X, t, weight = rng.normal(size=(n, 3)), rng.normal(size=n), rng.uniform(0.5, 2, n)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    made = formulated(name, y, t, weight)
    K = Kernel("rbf", gamma=0.5)(X, X)
    sample = np.arange(made.n_variables) % n
    return made, np.outer(made.sign, made.sign) * K[np.ix_(sample, sample)]


def sub_problem(name, seed=0):
    """Somewhere inside of the feasible set, or at its start."""
    made, Q = built(name, seed=seed)
    rng = np.random.default_rng(seed)
    alpha = made.repaired(made.upper * rng.choice([0.0, 0.3, 1.0], made.n_variables)) if seed else made.start()
    return reduce(Q, Q @ alpha + made.linear, alpha, made.upper, made.sign, made.group, len(made.targets))


# ---- interior point


def newton_step(problem, point, mu, second):
    """One Newton step on all equations at once: products g∘z and t∘s are to be mu less what `second` says."""
    n, m = len(problem), len(problem.b)
    one, none, flat, tall = np.eye(n), np.zeros((n, n)), np.zeros((m, n)), np.zeros((n, m))
    G, Z, T, S = (np.diag(v) for v in (point.g, point.z, point.t, point.s))
    #                   a          y           g     t     z     s
    rows = [
        [problem.A, np.zeros((m, m)), flat, flat, flat, flat],
        [one, tall, -one, none, none, none],
        [one, tall, none, one, none, none],
        [problem.Q, -problem.A.T, none, none, -one, one],
        [none, tall, Z, none, G, none],
        [none, tall, none, S, none, T],
    ]
    gradient = problem.grad + problem.Q @ (point.a - problem.start)
    right = [
        problem.b - problem.A @ point.a, point.g - point.a, problem.upper - point.a - point.t,
        -(gradient - problem.A.T @ point.y - point.z + point.s),
        mu - point.g * point.z - second[0], mu - point.t * point.s - second[1],
    ]  # fmt: skip
    found = np.linalg.solve(np.block(rows), np.concatenate(right))
    return inner_ipm.Point(*np.split(found, np.cumsum([n, m, n, n, n])))


def longest(point, step):
    """How often a step fits before a distance or a multiplier is zero."""
    pairs = [(getattr(point, part), getattr(step, part)) for part in "gtzs"]
    return min((float(v / -d) for vs, ds in pairs for v, d in zip(vs, ds) if d < 0), default=np.inf)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_an_iteration_is_a_predictor_and_a_corrector(name, seed):
    """Both solve Newton's equations; the second aims at products that the first tells, and stops before the boundary."""
    problem = sub_problem(name, seed)
    system = inner_ipm.ReducedSystem(problem)
    point = inner_ipm._start(problem, system)
    for _ in range(4):
        far = newton_step(problem, point, 0.0, (0.0, 0.0))
        part = min(1.0, longest(point, far))
        average = (point.g @ point.z + point.t @ point.s) / (2 * len(problem))
        mu = average * max(((1 - part) / (10 + part)) ** 2, (1 - part) ** 3)
        step = newton_step(problem, point, mu, (far.g * far.z, far.t * far.s))
        part = min(1.0, 0.995 * longest(point, step))
        after = inner_ipm._newton(problem, system, point)
        for name_of in ("a", "y", "g", "t", "z", "s"):
            then, change, now = (getattr(p, name_of) for p in (point, step, after))
            np.testing.assert_allclose(now, then + part * change, rtol=1e-5, atol=1e-7)
        point = after


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_the_interior_point_begins_at_a_tenth_of_the_bounds_and_of_the_gradient_at_least(name, seed):
    problem = sub_problem(name, seed)
    n, m, scale = len(problem), len(problem.b), np.diag(problem.Q).mean()
    p = problem.grad - problem.Q @ problem.start
    whole = np.block([[-(problem.Q + scale * np.eye(n)), problem.A.T], [problem.A, np.eye(m) / scale]])
    a, y = np.split(np.linalg.solve(whole, np.concatenate([p, problem.b])), [n])
    a = np.clip(a, 0.1 * problem.upper, 0.9 * problem.upper)
    residual = problem.Q @ a + p - y @ problem.A
    least = 0.1 * np.abs(residual).max()
    point = inner_ipm._start(problem, inner_ipm.ReducedSystem(problem))
    np.testing.assert_allclose(point.a, a, rtol=1e-9)
    np.testing.assert_allclose(point.y, y, rtol=1e-9)
    np.testing.assert_allclose(point.g, a, rtol=1e-9)
    np.testing.assert_allclose(point.t, problem.upper - a, rtol=1e-9)
    np.testing.assert_allclose(point.z, np.maximum(residual, 0) + least, rtol=1e-7)
    np.testing.assert_allclose(point.s, np.maximum(-residual, 0) + least, rtol=1e-7)


def test_the_unit_of_a_matrix_is_its_diagonal_or_else_gradients_by_bounds():
    def unit(Q, grad, upper):
        given = SimpleNamespace(Q=np.array(Q), grad=np.array(grad), upper=np.array(upper), A=np.zeros((0, 2)))
        return inner_ipm.ReducedSystem(given).scale

    assert unit([[2.0, 0.0], [0.0, 6.0]], [9.0, 9.0], [1.0, 1.0]) == 4.0
    assert unit([[-2.0, 0.0], [0.0, -6.0]], [9.0, 9.0], [1.0, 1.0]) == 4.0
    assert unit(np.zeros((2, 2)), [1.0, -8.0], [1.0, 3.0]) == 4.0
    assert unit(np.zeros((2, 2)), [0.0, 0.0], [1.0, 3.0]) == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_what_is_judged_is_on_its_bound_where_the_multiplier_dominates(name):
    problem, rng = sub_problem(name, 1), np.random.default_rng(0)
    clipped = []

    def feasible(a):
        clipped.append(a.copy())
        return problem.feasible(a)

    some = SimpleNamespace(Q=problem.Q, upper=problem.upper, feasible=feasible)
    for _ in range(20):
        n = len(problem)
        a, g, t = (problem.upper * rng.uniform(-0.2, 1.2, n) for _ in range(3))
        z, s = (10.0 ** rng.uniform(-3, 3, n) for _ in range(2))
        g, t = np.abs(g) * 10.0 ** rng.uniform(-3, 0, n), np.abs(t) * 10.0 ** rng.uniform(-3, 0, n)
        out = inner_ipm._on_bounds(some, inner_ipm.Point(a, np.zeros(0), g, t, z, s))
        for v in range(n):
            per = max(np.diag(problem.Q).max(), max(z.max(), s.max()) / problem.upper[v])
            wanted = min(max(a[v], 0.0), problem.upper[v])
            wanted = 0.0 if per * g[v] < 0.01 * z[v] else wanted
            wanted = problem.upper[v] if per * t[v] < 0.01 * s[v] else wanted
            assert clipped[-1][v] == wanted
        np.testing.assert_array_equal(out, problem.feasible(clipped[-1]))


@pytest.mark.parametrize("helps", ["nothing", "violation", "products"])
def test_an_interior_point_that_gains_nothing_gives_up_after_ten_iterations(helps, monkeypatch):
    """It goes on as long as the violation falls, or the products do by a tenth."""
    made, Q = built("c_svc")
    alpha = made.start()
    arguments = Q, Q @ alpha + made.linear, alpha, made.upper, made.sign, made.group, 1, 1e-9
    made_points, begin = [], inner_ipm._start

    def step(problem, system, point):
        made_points.append(point)
        factor = 0.85 if helps == "products" and len(made_points) <= 15 else 0.95 if helps == "nothing" else 1.0
        return inner_ipm.Point(point.a, point.y, point.g, point.t, factor * point.z, factor * point.s)

    violations = iter([100.0 - k for k in range(1, 16)] + [200.0] * 200)
    judged = SubQP.violation

    def violation(self, a, grad):
        return next(violations) if helps == "violation" and made_points else judged(self, a, grad)

    monkeypatch.setattr(inner_ipm, "_newton", step)
    monkeypatch.setattr(inner_ipm, "_start", begin)
    monkeypatch.setattr(inner_ipm, "_on_bounds", lambda problem, point: problem.start)
    monkeypatch.setattr(SubQP, "violation", violation)
    found = inner_ipm.solve_inner(*arguments)
    if helps == "nothing":  # of two steps of 0.95 each second makes a tenth: the products go on falling
        assert found.iterations == 100 and found.limited and found.note == "out of iterations"
    else:
        assert found.iterations == 25 and not found.limited and found.note == "no further progress"


def test_the_best_point_is_handed_out_and_limits_and_failures_are_told(monkeypatch):
    made, Q = built("c_svc")
    alpha = made.start()
    arguments = Q, Q @ alpha + made.linear, alpha, made.upper, made.sign, made.group, 1
    for limit in (1, 2, 3):
        found = inner_ipm.solve_inner(*arguments, 1e-12, max_iter=limit)
        assert found.iterations == limit and found.limited and not found.ok
    done = inner_ipm.solve_inner(*arguments, 1e-7)
    assert done.ok and 3 < done.iterations <= 30 and done.note == "" and not done.limited
    again = inner_ipm.solve_inner(Q, Q @ done.alpha + made.linear, done.alpha, *arguments[3:], 1e-6)
    assert again.iterations == 0 and again.ok
    whole, count = inner_ipm._newton, []

    def fails_late(problem, system, point):
        count.append(1)
        if len(count) == 4:
            nan = np.full(len(problem), np.nan)
            return inner_ipm.Point(nan, point.y, point.g, point.t, point.z, point.s)
        return whole(problem, system, point)

    monkeypatch.setattr(inner_ipm, "_newton", fails_late)
    failed = inner_ipm.solve_inner(*arguments, 1e-12)
    assert failed.iterations == 4 and not failed.ok and not failed.limited and "no longer finite" in failed.note
    value = [0.5 * a @ Q @ a + made.linear @ a for a in (failed.alpha, alpha)]
    assert value[0] < value[1]


def test_more_on_the_diagonal_is_told_in_the_note_beside_what_failed():
    made, Q = built("c_svc")
    alpha, bent = made.start(), Q - 1.5 * np.eye(len(Q))
    found = inner_ipm.solve_inner(bent, bent @ alpha + made.linear, alpha, made.upper, made.sign, made.group, 1, 1e-9)
    assert "Cholesky failed" in found.note and "added to the diagonal" in found.note


# ---- gradient projection


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_step_lengths_alternate_between_the_two_of_barzilai_and_borwein(name, seed):
    """The second is that of the face moved in, of the last three the least; which one, an adaptive ratio of both says."""
    problem, rng = sub_problem(name, seed), np.random.default_rng(seed)
    steps, ratio, recent = inner_gpm._StepSize(problem), 0.5, []
    for k in range(40):
        d = rng.normal(size=len(problem)) * (rng.random(len(problem)) < rng.choice([0.15, 0.5, 1.0]))
        if k % 7 == 0:
            d = np.where(np.arange(len(problem)) == k % len(problem), 1.0, 0.0)
        Qd, bend = problem.Q @ d, float(d @ problem.Q @ d)
        if bend <= 0:
            continue
        moved = d != 0
        normals = problem.A[:, moved].T
        w = Qd[moved] - normals @ np.linalg.lstsq(normals, Qd[moved], rcond=None)[0] if len(problem.b) else Qd[moved]
        long, square = d @ d / bend, w @ w
        steps.note(d, Qd, bend)
        short = bend / square if square > 1e-20 else long
        recent = [*recent, short][-3:]
        theta, ratio = (min(recent), 0.9 * ratio) if short < ratio * long else (long, 1.1 * ratio)
        assert steps._ratio == pytest.approx(ratio)
        assert steps._theta == pytest.approx(theta, rel=1e-9)


def test_a_step_length_is_what_it_can_be_where_there_is_no_curvature():
    problem = sub_problem("c_svc", 1)
    n = len(problem)
    assert np.abs(problem.grad).max() > 2  # so that a product is no quotient
    flat = replace(problem, Q=np.zeros((n, n)))
    reach = problem.upper.max() / np.abs(problem.grad).max()
    assert inner_gpm._StepSize(flat)._theta == pytest.approx(reach)
    d = inner_gpm.project(problem, problem.start - reach * problem.grad)[0] - problem.start
    steps = inner_gpm._StepSize(problem)
    assert steps._theta == pytest.approx(d @ d / (d @ problem.Q @ d))
    for bend in (0.0, -1.0):
        steps.note(d, problem.Q @ d, bend)
        assert steps._theta == np.inf and steps._recent == []
    steps.note(problem.sign, problem.sign, 8.0)  # along the normal, where no face has curvature: the first formula
    assert steps._theta == pytest.approx(n / 8.0) and steps._recent == [n / 8.0]
    steps._ratio = 0.5
    steps.note(d, problem.Q @ d, 1e-300)
    assert steps._theta == pytest.approx(1e-10 / np.trace(problem.Q))
    steps._theta = np.inf
    assert steps.take(np.array([0.5, -4.0])) == pytest.approx(1e6 * problem.upper.max() / 4)


class Last:
    """A reference value that is the last one: no objective may rise."""

    value = 0.0

    def note(self, value):
        self.value = value


@pytest.mark.parametrize("reference_of", [Last, inner_gpm._Reference])
@pytest.mark.parametrize("name", NAMES)
def test_a_move_goes_all_the_way_below_the_reference_value_and_else_to_the_least(name, reference_of, monkeypatch):
    moves, references, places = [], [], []
    note, judge = inner_gpm._StepSize.note, SubQP.violation

    class Seen(reference_of):
        def note(self, value):
            references.append(self.value)
            super().note(value)

    monkeypatch.setattr(inner_gpm, "_Reference", Seen)
    monkeypatch.setattr(inner_gpm._StepSize, "note", lambda self, d, *more: moves.append(d.copy()) or note(self, d, *more))
    monkeypatch.setattr(SubQP, "violation", lambda self, a, grad: places.append(a.copy()) or judge(self, a, grad))
    shorter = 0
    for seed in range(6):
        problem = sub_problem(name, seed)
        moves.clear(), references.clear(), places.clear()
        inner_gpm._iterate(problem, 0.0, 40)

        def value(a, problem=problem):
            return float((a - problem.start) @ (problem.grad + 0.5 * problem.Q @ (a - problem.start)))

        for a, after, d, reference in zip(places, places[1:], moves, references):
            if np.abs(d).max() < 1e-6:
                break
            part = float((after - a) @ d / (d @ d))
            np.testing.assert_allclose(after, a + part * d, atol=1e-12)
            slope, bend = float((problem.grad + problem.Q @ (a - problem.start)) @ d), float(d @ problem.Q @ d)
            if value(a + d) < reference - 1e-9:
                assert part == pytest.approx(1.0)
            elif value(a + d) > reference + 1e-9:
                shorter += 1
                assert part == pytest.approx(min(1.0, -slope / bend), rel=1e-5)
    assert shorter > 0 or reference_of is not Last


def test_gradients_are_computed_anew_every_fifty_iterations(monkeypatch):
    """The running sums drift."""
    problem, made = sub_problem("c_svc", 2), []
    gradient = SubQP.gradient
    monkeypatch.setattr(SubQP, "gradient", lambda self, a: made.append(1) or gradient(self, a))
    monkeypatch.setattr(SubQP, "violation", lambda self, a, grad: 1.0)
    monkeypatch.setattr(inner_gpm._StepSize, "take", lambda self, reduced: 1e-4)  # many short steps
    for limit, times in ((49, 0), (50, 1), (99, 1), (100, 2), (151, 3)):
        made.clear()
        assert inner_gpm._iterate(problem, 0.5, limit)[1] == limit and len(made) == times


def test_what_seems_solved_is_judged_by_a_fresh_gradient(monkeypatch):
    problem = sub_problem("c_svc", 2)
    said, judge = [], SubQP.violation

    def violation(self, a, grad):
        said.append(np.abs(grad - problem.gradient(a)).max())
        return judge(self, a, grad)

    monkeypatch.setattr(SubQP, "violation", violation)
    a, count = inner_gpm._iterate(problem, 1e-6, 2000)
    assert count < 2000 and said[-1] == 0.0 and judge(problem, a, problem.gradient(a)) <= 1e-6
    assert len(said) == count + 2


@pytest.mark.parametrize("seed", range(30))
def test_a_bracket_is_sought_by_steps_that_grow_until_the_sign_turns(seed):
    """The next step is longer by what a straight line through the last two values says, elevenfold at most."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    begin, length = rng.normal(size=n), 10.0 ** rng.uniform(-3, 1, n)
    target = rng.uniform(0.01, 0.99) * length.sum()
    asked = []

    def residual(at):
        asked.append((at, float(np.clip(at - begin, 0, length).sum()) - target))
        return asked[-1][1]

    lowest, highest = begin.min(), (begin + length).max()
    at = rng.uniform(lowest, highest)
    residual(at)
    inner_gpm._bracket(residual, at, asked[0][1], lowest, highest)
    way = 1.0 if asked[0][1] < 0 else -1.0
    step = 1e-3 * (highest - lowest)
    for k in range(1, len(asked)):
        (before, r_before), (now, r) = asked[k - 1], asked[k]
        wanted = min(before + step, highest) if way > 0 else max(before - step, lowest)
        assert now == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        assert (r * way >= 0 or now in (lowest, highest)) == (k == len(asked) - 1)
        if k < len(asked) - 1:
            step *= 1 + 1 / max(r_before / r - 1, 0.1)


def test_roots_take_few_evaluations():
    """Of straight pieces of very different lengths: Dai and Fletcher's way closes in from both ends."""
    count = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 60))
        begin, length = rng.normal(size=n), 10.0 ** rng.uniform(-4, 1, n)
        target = rng.uniform(0.001, 0.999) * length.sum()
        asked = []

        def residual(at, begin=begin, length=length, target=target, asked=asked):
            asked.append(at)
            return float(np.clip(at - begin, 0, length).sum()) - target

        lowest, highest = begin.min(), (begin + length).max()
        at = rng.uniform(lowest, highest)
        inner_gpm._root(residual, at, lowest, highest, 1e-12 * length.sum())
        assert len(set(asked)) >= len(asked) - 1
        count.append(len(asked))
    assert np.mean(count) <= 8.4 and max(count) <= 16, (np.mean(count), max(count))


def test_gradient_projection_takes_few_iterations():
    every = []
    for name in NAMES:
        for seed in range(5):
            made, Q = built(name, n=40, seed=seed)
            alpha = made.start()
            found = inner_solver("gpm")(
                Q, Q @ alpha + made.linear, alpha, made.upper, made.sign, made.group, len(made.targets), 1e-6
            )
            assert found.ok
            every.append(found.iterations)
    assert sum(every) <= 2900


# ---- SMO, and the shape of the outer loop


class Asked:
    """In the place of the core: what its SMO was asked, and the answers that it shall give."""

    def __init__(self, steps, change=None):
        self.steps, self.change, self.given = list(steps), change, []

    def inner_smo(self, tile, beta, low, high, score, group, n_groups, tol, most, *rest):
        self.given.append((tile.copy(), beta.copy(), low, high, score.copy(), n_groups, tol, most, rest))
        if self.change is not None:
            self.change(beta, score)
        return self.steps.pop(0), 0.0


@pytest.mark.parametrize("name", NAMES)
def test_the_core_is_asked_for_beta_within_its_bounds_on_whole_vectors(name, monkeypatch):
    made, Q = built(name)
    alpha = made.repaired(np.full(made.n_variables, 0.3))
    grad, q = Q @ alpha + made.linear, made.n_variables
    core = Asked([7])
    monkeypatch.setattr(inner_smo, "_core", core)
    found = inner_smo.solve_inner(Q, grad, alpha, made.upper, made.sign, made.group, len(made.targets), 1e9)
    tile, beta, low, high, score, groups, tol, most, _ = core.given[0]
    assert tile.shape == (-(-q // 16) * 16,) * 2 and len(core.given) == 1
    np.testing.assert_array_equal(tile[:q, :q], made.sign[:, None] * Q * made.sign)
    assert not tile[q:].any() and not tile[:, q:].any()
    np.testing.assert_array_equal(beta, made.sign * alpha)
    np.testing.assert_array_equal(low, np.where(made.sign > 0, 0.0, -made.upper))
    np.testing.assert_array_equal(high, np.where(made.sign > 0, made.upper, 0.0))
    np.testing.assert_array_equal(score, -made.sign * grad)
    assert groups == len(made.targets) and tol == pytest.approx(0.9e9) and most == 1_000_000
    assert found.ok and found.iterations == 7 and found.note == "" and not found.limited
    np.testing.assert_allclose(found.alpha, alpha)


def test_smo_begins_again_from_fresh_scores_while_that_helps_and_steps_are_left(monkeypatch):
    made, Q = built("c_svc")
    alpha = made.start()
    grad = Q @ alpha + made.linear
    arguments = Q, grad, alpha, made.upper, made.sign, made.group, 1, 1e-3

    def run(steps, violations, **limit):
        core, said = Asked(steps), iter(violations)
        monkeypatch.setattr(inner_smo, "_core", core)
        monkeypatch.setattr(inner_smo, "kkt_violation", lambda *given: next(said))
        found = inner_smo.solve_inner(*arguments, **limit)
        return [given[7] for given in core.given], found

    asked, found = run([10, 5], [0.5, 1e-3])
    assert asked == [1_000_000, 999_990] and found.iterations == 15 and found.ok and not found.limited
    asked, found = run([10, 5, 5], [0.5, 0.4, 0.4])
    assert len(asked) == 3 and found.note == "no further progress" and not found.ok and not found.limited
    asked, found = run([10] * 9, [0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.01])
    assert len(asked) == 5 and found.violation == 0.1
    asked, found = run([10, 20], [0.5, 0.4], max_iter=30)
    assert asked == [30, 20] and found.limited and not found.ok and found.note == "out of steps" and found.iterations == 30
    asked, found = run([30], [1e-3], max_iter=30)
    assert found.ok and not found.limited and found.note == ""
    large = np.zeros((1100, 1100))
    core = Asked([1])
    monkeypatch.setattr(inner_smo, "_core", core)
    monkeypatch.setattr(inner_smo, "kkt_violation", lambda *given: 0.0)
    none, one = np.zeros(1100), np.ones(1100)
    inner_smo.solve_inner(large, none, none, one, one, none.astype(np.int8), 0, 1e-3)
    assert core.given[0][7] == 1_100_000


@pytest.mark.parametrize("solver", ["smo", "ipm", "gpm"])
@pytest.mark.parametrize("name", NAMES)
def test_a_tile_of_the_outer_loop_is_solved_in_place(name, solver):
    """β and scores are those of the solution; the padding of the tile does not matter."""
    made, Q = built(name, seed=3)
    alpha = made.repaired(np.full(made.n_variables, 0.2))
    q, K = made.n_variables, made.sign[:, None] * Q * made.sign
    tile = np.full((-(-q // 16) * 16,) * 2, 7.0)
    tile[:q, :q] = K
    beta, score = made.sign * alpha, -made.sign * (Q @ alpha + made.linear)
    low, high = np.minimum(made.sign * made.upper, 0.0), np.maximum(made.sign * made.upper, 0.0)
    begun = score + K @ beta
    steps, fell_back = solve_tile(solver, tile, beta, low, high, score, made.group, len(made.targets), 1e-6, 100_000)
    assert steps > 0 and not fell_back
    assert (beta >= low).all() and (beta <= high).all()
    np.testing.assert_allclose(score, begun - K @ beta, atol=1e-9)
    grad = -made.sign * score
    assert kkt_violation(grad, made.sign * beta, made.upper, made.sign, made.group, len(made.targets)) <= 1.1e-6
    done = beta.copy()
    assert solve_tile(solver, tile, beta, low, high, score, made.group, len(made.targets), 1e-5, 100_000) == (0, False)
    np.testing.assert_allclose(beta, done, atol=1e-12)


@pytest.mark.parametrize("solver", ["ipm", "gpm"])
def test_smo_goes_on_where_the_other_stopped(solver, monkeypatch):
    made, Q = built("c_svc", seed=3)
    alpha, part = made.start(), made.repaired(np.full(made.n_variables, 0.4))
    q, K = made.n_variables, made.sign[:, None] * Q * made.sign
    tile = np.zeros((16, 16))
    tile[:q, :q] = K
    low, high = np.minimum(made.sign * made.upper, 0.0), np.maximum(made.sign * made.upper, 0.0)
    for ok in (False, True):
        core = Asked([9])
        monkeypatch.setattr(inner, "_core", core)
        monkeypatch.setattr(inner, "inner_solver", lambda name, ok=ok: lambda *given: InnerResult(part, 0.5, 4, ok))
        beta, score = made.sign * alpha, -made.sign * (Q @ alpha + made.linear)
        begun = score + K @ beta
        got = solve_tile(solver, tile, beta, low, high, score, made.group, 1, 1e-6, 77)
        np.testing.assert_array_equal(beta, made.sign * part)
        np.testing.assert_allclose(score, begun - K @ beta, atol=1e-12)
        assert got == ((4, False) if ok else (13, True)) and len(core.given) == (not ok)
        if not ok:
            assert core.given[0][6:8] == (1e-6, 77)


# ---- QPs of their own


@pytest.mark.parametrize("max_iter", [-1, 5])
@pytest.mark.parametrize("solver", ["smo", "ipm", "gpm"])
@pytest.mark.parametrize(("ok", "limited"), [(True, False), (False, True), (False, False)])
def test_smo_finishes_unless_a_limit_was_asked_for(solver, ok, limited, max_iter, monkeypatch):
    made, Q = built("c_svc")
    alpha, asked = made.start(), []

    def solve(name):
        def run(Q, grad, alpha, *rest, **limit):
            asked.append((name, limit, rest[-1]))
            if len(asked) > 1:
                return InnerResult(alpha, 0.0, 6, True, "second")
            return InnerResult(alpha, 0.25, 5, ok, "" if ok else "first", limited)

        return run

    monkeypatch.setattr(qp, "inner_solver", solve)
    found = solve_qp(
        Q, made.linear, made.upper, made.sign, made.group, made.targets, inner_solver=solver, max_iter=max_iter, tol=1e-4
    )
    again = not ok and solver != "smo" and not (limited and max_iter != -1)
    limit = {} if max_iter == -1 else {"max_iter": max_iter}
    assert asked == [(solver, limit, 1e-4), ("smo", {}, 1e-4)][: 1 + again]
    assert found.timings["fallbacks"] == float(again) and found.n_iter == 5 + 6 * again
    assert found.note == (f"{solver}: first, finished by smo; second" if again else "" if ok else "first")
    assert found.violation == (0.0 if again else 0.25)
    assert found.status is (Status.CONVERGED if ok or again else Status.MAX_ITER if limited else Status.STALLED)
    np.testing.assert_array_equal(found.alpha, alpha)
    answer = certify(made, made.sign[:, None] * Q * made.sign, alpha)
    assert found.objective == pytest.approx(0.5 * alpha @ Q @ alpha + made.linear @ alpha) and found.gap == answer.gap
    assert 0 <= found.timings["total"] < 3600


def test_matrices_are_symmetric_but_for_rounding_and_bounds_may_be_one_number():
    skew = np.array([[2.0, 1.0], [1.0, 100.0]])
    for off, fine in ((0.9e-6, True), (1.1e-6, False)):
        Q = skew.copy()
        Q[0, 1] += off
        if fine:
            assert solve_qp(Q, [1.0, -1.0], 5.0).alpha == pytest.approx([0.0, 0.01])
        else:
            with pytest.raises(ValueError, match="not symmetric"):
                solve_qp(Q, [1.0, -1.0], 5.0)
    some = {"sign": [1, -1], "group": [0, 1], "targets": [0.25, -0.5]}
    assert solve_qp(np.eye(2), [0.0, 0.0], 1.0, **some).alpha == pytest.approx([0.25, 0.5])
    assert solve_qp([[1.0]], [0.0], [0.0]).alpha.tolist() == [0.0]
    with pytest.raises(ValueError, match="expected a square matrix"):
        solve_qp([1.0, 2.0], [0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match="targets contains NaN"):
        solve_qp(np.eye(2), [0.0, 0.0], 1.0, targets=[np.nan])
    with pytest.raises(ValueError, match="group must count from 0 to 1"):
        solve_qp(np.eye(2), [0.0, 0.0], 1.0, group=[0, 2], targets=[0.0, 0.0])
    with pytest.raises(ValueError, match=r"sign must hold \+1 and -1"):
        solve_qp(np.eye(2), [0.0, 0.0], 1.0, sign=[1.0, 2.0])
    with pytest.raises(ValueError, match="max_iter=-2"):
        solve_qp(np.eye(2), [0.0, 0.0], 1.0, max_iter=-2)
    assert solve_qp(np.eye(2), [-1.0, 0.0], 1.0, max_iter=1).status is Status.CONVERGED
