"""The parts of the decomposition method, each by its definition: violations, sub-QPs, Newton steps, roots, sizes, states."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from formulated import formulated

from maxmargin.carriers import ATTEMPTS, LostError
from maxmargin.decomposition import apart, inner_gpm, inner_ipm, many, solve_qp, together, verified
from maxmargin.decomposition.ending import Point, violations
from maxmargin.decomposition.inner import SubQP, can_move, finish, inner_solver, kkt_violation, reduce
from maxmargin.decomposition.many import Many, Problem
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.solver import Decomposition
from maxmargin.decomposition.state import Overflow
from maxmargin.decomposition.together import Together
from maxmargin.decomposition.working_set import (
    MB,
    Violators,
    WorkingSet,
    largest_tile,
    merge,
    packed,
    row_bytes,
    unpacked,
    working_set_size,
)
from maxmargin.kernel_values import GivenValues, KernelData
from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Control, Deadline, Status, drained

NAMES = ("c_svc", "no_intercept", "nu_svc", "epsilon_svr", "svr_no_intercept", "nu_svr", "one_class")


def built(name, n=14, seed=0):
    """A QP with samples of no weight among them, and the kernel matrix of its samples."""
    rng = np.random.default_rng(seed)
    X, y, t, weight = (
        rng.normal(size=(n, 3)),
        np.where(np.arange(n) % 2, 1.0, -1.0),
        rng.normal(size=n),
        rng.uniform(0.5, 2, n),
    )
    weight[[2, 5]] = 0.0
    qp = formulated(name, y, t, weight)
    return qp, X, Kernel("rbf", gamma=0.5)(X, X)


def feasible(qp, rng):
    return qp.repaired(qp.upper * rng.choice([0.0, 0.3, 1.0], qp.n_variables))


def hessian(qp, K):
    sample = np.arange(qp.n_variables) % qp.n
    return np.outer(qp.sign, qp.sign) * K[np.ix_(sample, sample)]


# ---- what all inner solvers share


@pytest.mark.parametrize("name", NAMES)
def test_the_violation_is_the_steepest_feasible_exchange(name):
    """Of two variables of a group, or of one alone where there is none: by trying all of them."""
    for seed in range(10):
        qp, _, K = built(name, seed=seed)
        alpha = feasible(qp, np.random.default_rng(seed))
        grad = hessian(qp, K) @ alpha + qp.linear
        up, low = can_move(alpha, qp.upper, qp.sign)
        worst = 0.0
        for v in range(qp.n_variables):
            rises = alpha[v] < qp.upper[v] if qp.sign[v] > 0 else alpha[v] > 0
            falls = alpha[v] > 0 if qp.sign[v] > 0 else alpha[v] < qp.upper[v]
            assert (up[v], low[v]) == (rises, falls)
            gain = -qp.sign[v] * grad[v]
            if not len(qp.targets):
                worst = max(worst, gain if rises else 0.0, -gain if falls else 0.0)
                continue
            for u in np.flatnonzero(low & (qp.group == qp.group[v])) if rises else ():
                worst = max(worst, gain + qp.sign[u] * grad[u])
        said = kkt_violation(grad, alpha, qp.upper, qp.sign, qp.group, len(qp.targets))
        assert said == pytest.approx(worst, rel=1e-12)
        point = Point.of(qp, (qp.sign * alpha).reshape(-1, qp.n), K @ formulations.coefficients(qp, alpha))
        assert violations(len(qp.targets), point.extremes())[0] == pytest.approx(worst, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_move_is_left_out_and_the_rest_is_the_same_problem(name):
    for seed in range(10):
        qp, _, K = built(name, seed=seed)
        rng, Q = np.random.default_rng(seed), hessian(qp, K)
        alpha = qp.start() if seed % 2 else feasible(qp, rng)
        grad = Q @ alpha + qp.linear
        part = reduce(Q, grad, alpha, qp.upper, qp.sign, qp.group, len(qp.targets))
        assert (qp.upper[part.kept] > 0).all()
        np.testing.assert_array_equal(part.Q, Q[np.ix_(part.kept, part.kept)])
        for mine, whole in ((part.grad, grad), (part.start, alpha), (part.upper, qp.upper), (part.sign, qp.sign)):
            np.testing.assert_array_equal(mine, whole[part.kept])
        for row, target in zip(part.A, part.b):
            assert row @ part.start == pytest.approx(target, abs=1e-12)
        assert len(part.b) == 0 or (part.A[part.group, np.arange(len(part))] == part.sign).all()
        assert len(part) and part.violation(part.start, part.grad) == pytest.approx(
            kkt_violation(grad, alpha, qp.upper, qp.sign, qp.group, len(qp.targets))
        )
        other = part.feasible(part.start + 0.3 * rng.normal(size=len(part)))
        assert (other >= 0).all() and (other <= part.upper).all()
        np.testing.assert_allclose(part.A @ other, part.b, atol=1e-12)
        whole = alpha.copy()
        whole[part.kept] = other
        np.testing.assert_allclose(part.gradient(other), (Q @ whole + qp.linear)[part.kept], atol=1e-12)

        def value(a, Q=Q, qp=qp):
            return 0.5 * a @ Q @ a + qp.linear @ a

        assert part.change(other, part.gradient(other)) == pytest.approx(value(whole) - value(alpha), abs=1e-12)
        ended = finish(part, alpha, other, 7, 1e-9, 7)
        taken = whole if value(whole) <= value(alpha) else alpha  # nothing worse than the start is handed out
        np.testing.assert_allclose(ended.alpha, taken, atol=1e-12)
        assert not ended.ok and ended.limited and ended.iterations == 7 and ended.note == "out of iterations"
        assert finish(part, alpha, other, 6, 1e-9, 7).note == "no further progress"
        fine = finish(part, alpha, other, 7, 1e9, 7, "so")
        assert fine.ok and not fine.limited and fine.note == "so"
        np.testing.assert_allclose(fine.alpha, whole, atol=1e-12)


def test_groups_without_two_variables_that_can_move_are_left_out():
    ones, Q = np.ones(4), np.eye(4)
    group = np.array([0, 0, 1, 1], np.int8)
    for alpha, kept in (
        ([0.5, 0.5, 0.5, 0.5], [0, 1, 2, 3]), ([1.0, 1.0, 0.5, 0.5], [2, 3]), ([0.5, 0.5, 0.0, 0.0], [0, 1]),
        ([1.0, 1.0, 0.0, 0.0], []), ([1.0, 0.0, 0.0, 1.0], [0, 1, 2, 3]),
    ):  # fmt: skip
        part = reduce(Q, ones, np.array(alpha), ones, ones, group, 2)
        assert part.kept.tolist() == kept and len(part.b) == len(kept) // 2
        assert part.group.tolist() == ([0, 0, 1, 1] if len(kept) == 4 else [0] * len(kept))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [1, 2, 5, 50])
def test_smo_stops_at_its_limit_or_is_done(name, limit):
    qp, _, K = built(name)
    Q, alpha = hessian(qp, K), qp.start()
    arguments = Q @ alpha + qp.linear, alpha, qp.upper, qp.sign, qp.group, len(qp.targets), 1e-9
    found = inner_solver("smo")(Q, *arguments, max_iter=limit)
    grad = Q @ found.alpha + qp.linear
    assert found.violation == pytest.approx(kkt_violation(grad, found.alpha, *arguments[2:6]), rel=1e-6, abs=1e-12)
    assert found.iterations <= limit and found.ok == (found.violation <= 1e-9)
    assert found.limited == (not found.ok and found.iterations == limit)
    assert found.note == ("" if found.ok else "out of steps" if found.limited else "no further progress")


# ---- interior point


def inner_problem(name, seed=0):
    qp, _, K = built(name, seed=seed)
    Q, alpha = hessian(qp, K), feasible(qp, np.random.default_rng(seed))
    return reduce(Q, Q @ alpha + qp.linear, alpha, qp.upper, qp.sign, qp.group, len(qp.targets))


@pytest.mark.parametrize("name", NAMES)
def test_the_reduced_system_is_solved(name):
    problem, rng = inner_problem(name), np.random.default_rng(1)
    system = inner_ipm.ReducedSystem(problem)
    for Q2 in (0.0, 0.7):
        diagonal = rng.uniform(0.1, 5, len(problem))
        system.factorise(diagonal, Q2)
        c1, c2 = rng.normal(size=len(problem)), rng.normal(size=len(problem.b))
        a, y = system.solve(c1, c2)
        np.testing.assert_allclose(-(problem.Q + np.diag(diagonal)) @ a + problem.A.T @ y, c1, atol=1e-9)
        np.testing.assert_allclose(problem.A @ a + Q2 * y, c2, atol=1e-9)
    assert system.ridge == 0.0 and system.scale == pytest.approx(np.diag(problem.Q).mean())


@pytest.mark.parametrize("name", NAMES)
def test_a_newton_step_takes_the_same_part_of_every_linear_residual(name):
    """Inside the bounds all the way; what is left of each equation is one minus the step of what there was."""
    for seed in range(4):
        problem = inner_problem(name, seed)
        system = inner_ipm.ReducedSystem(problem)
        point = inner_ipm._start(problem, system)

        def residuals(p, problem=problem):
            return [
                problem.b - problem.A @ p.a, p.g - p.a, problem.upper - p.a - p.t,
                problem.gradient(p.a) - p.y @ problem.A + p.s - p.z,
            ]  # fmt: skip

        products = point.products()
        assert products == pytest.approx(point.g @ point.z + point.t @ point.s)
        for _ in range(12):
            before = residuals(point)
            positive = np.concatenate([point.g, point.t, point.z, point.s])
            assert (positive > 0).all()
            size = max(np.abs(part).max(initial=0.0) for part in before)
            point = inner_ipm._newton(problem, system, point)
            after = residuals(point)
            if size > 1e-6:
                left = [
                    np.abs(now).max() / np.abs(then).max()
                    for now, then in zip(after, before)
                    if np.abs(then).max(initial=0.0) > 1e-3 * size
                ]
                assert max(left) <= 1 + 1e-6 and max(left) - min(left) <= 1e-5
            candidate = inner_ipm._on_bounds(problem, point)
            assert (candidate >= 0).all() and (candidate <= problem.upper).all()
            np.testing.assert_allclose(problem.A @ candidate, problem.b, atol=1e-12)
            if point.products() < 1e-8 * products:  # as good as solved: what follows is the rounding of a singular system
                break
        assert point.products() < 1e-6 * products


def test_the_way_to_the_boundary_is_how_often_a_step_fits():
    rng = np.random.default_rng(2)
    for _ in range(30):
        at = inner_ipm.Point(*rng.uniform(0.1, 1, (6, 5)))
        d = inner_ipm.Point(*rng.normal(size=(6, 5)))
        times = inner_ipm._to_boundary(at, d)
        ends = [
            np.concatenate([v + t * c for v, c in zip((at.g, at.t, at.z, at.s), (d.g, d.t, d.z, d.s))])
            for t in (times * (1 - 1e-9), times * (1 + 1e-9))
        ]
        assert (ends[0] > 0).all() and not (ends[1] > 0).all()
    rising = inner_ipm.Point(*np.ones((6, 5)))
    assert inner_ipm._to_boundary(at, rising) == np.inf


def test_a_matrix_that_cannot_be_factored_gets_more_on_its_diagonal_or_is_given_up():
    problem = inner_problem("c_svc")
    bent = SimpleNamespace(**{**vars(problem), "Q": problem.Q - 3 * np.eye(len(problem))})
    system = inner_ipm.ReducedSystem(bent)
    system.factorise(0.0)
    least = -np.linalg.eigvalsh(bent.Q).min()
    assert least <= system.ridge <= 10 * least
    before = system.ridge
    system.factorise(10.0)
    assert system.ridge == before  # the largest that there was
    system.scale = 1e-7  # in units of which no multiple would do
    with pytest.raises(inner_ipm.FactorisationError):
        system.factorise(0.0)


# ---- gradient projection


@pytest.mark.parametrize("seed", range(60))
def test_the_root_of_an_increasing_function_of_straight_pieces(seed):
    """From wherever it is sought, with ramps of very different lengths, to the accuracy asked for."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    begin = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
    length = 10.0 ** rng.uniform(-6, 2, n)
    target = rng.uniform(0.001, 0.999) * length.sum()
    asked = []

    def residual(at):
        asked.append(at)
        return float(np.clip(at - begin, 0, length).sum()) - target

    lowest, highest = begin.min(), (begin + length).max()
    enough = 1e-12 * length.sum()
    for at in (lowest, highest, *rng.uniform(lowest, highest, 4)):
        asked.clear()
        root = inner_gpm._root(residual, at, lowest, highest, enough)
        assert abs(residual(root)) <= enough + 1e-15 * n * max(abs(lowest), abs(highest))
        assert lowest <= min(asked) and max(asked) <= highest and len(asked) <= 120
    for at in (lowest, highest):
        low, high, below, above = inner_gpm._bracket(residual, at, residual(at), lowest, highest)
        assert lowest <= low <= high <= highest and below <= 0 <= above
        assert below == residual(low) and above == residual(high)


def test_the_reference_value_is_the_worst_of_those_since_the_best():
    reference = inner_gpm._Reference()
    for value in (-1.0, -2.0, -1.5, -1.2, -1.9, -1.8):
        reference.note(value)
        assert reference.value == np.inf
    reference.note(-1.7)  # five without a new best
    assert reference.value == -1.2
    for value in (-1.9, -1.9, -1.6, -1.9):
        reference.note(value)
    assert reference.value == -1.2
    reference.note(-1.9)
    assert reference.value == -1.6
    for value in (-1.9, -1.9, -1.9, -3.0, -2.5, -2.5, -2.4, -2.6):
        reference.note(value)
    assert reference.value == -1.6  # the new best began the count again
    reference.note(-2.6)
    assert reference.value == -2.4


@pytest.mark.parametrize("name", NAMES)
def test_step_lengths_are_inverse_curvatures_of_the_matrix(name):
    problem, rng = inner_problem(name), np.random.default_rng(3)
    steps = inner_gpm._StepSize(problem)
    most = np.linalg.eigvalsh(problem.Q).max()
    values = np.linalg.eigvalsh(problem.Q)
    assert steps._theta >= (1 - 1e-9) / most
    for _ in range(20):
        d = inner_gpm.project(problem, problem.start + rng.normal(size=len(problem)))[0] - problem.start
        Qd = problem.Q @ d
        steps.note(d, Qd, float(d @ Qd))
        assert (1 - 1e-9) / values.max() <= steps._theta <= (1 + 1e-9) * (d @ d) / (d @ Qd)
    steps.note(d, Qd, 0.0)
    assert steps._theta == np.inf
    gradient = np.full(len(problem), 2.0)
    assert steps.take(gradient) == pytest.approx(inner_gpm.LONGEST * problem.upper.max() / 2)
    steps._theta = 0.25
    assert steps.take(gradient) == 0.25


@pytest.mark.parametrize("name", NAMES)
def test_gradient_projection_knows_where_it_stands(name, monkeypatch):
    """At every iteration: inside the bounds, with the sums of the start, its gradient and its objective as they are."""
    places, values = [], []
    judge, note = SubQP.violation, inner_gpm._Reference.note

    def seen(self, a, grad):
        places.append((a.copy(), grad.copy()))
        return judge(self, a, grad)

    monkeypatch.setattr(SubQP, "violation", seen)
    monkeypatch.setattr(inner_gpm._Reference, "note", lambda self, value: values.append(value) or note(self, value))
    for seed in range(6):
        problem = inner_problem(name, seed)
        for known in (np.inf, 0.0):  # the second: steps are shortened where a whole one would raise the objective
            monkeypatch.setattr(inner_gpm, "REFERENCE_AGE", 5 if known else 1)
            places.clear(), values.clear()
            best, count = inner_gpm._iterate(problem, 0.0, 60)
            for (a, grad), value in zip(places[1:], values):
                assert (a >= 0).all() and (a <= problem.upper * (1 + 1e-12)).all()
                np.testing.assert_allclose(problem.A @ a, problem.b, atol=1e-9)
                np.testing.assert_allclose(grad, problem.gradient(a), atol=1e-9)
                assert value == pytest.approx(problem.change(a, problem.gradient(a)), abs=1e-9)
            assert count <= 60 and values
            assert problem.change(best, problem.gradient(best)) <= min(0.0, *values) + 1e-9


@pytest.mark.parametrize("solver", ["smo", "gpm"])
@pytest.mark.parametrize("name", NAMES)
def test_more_iterations_do_not_end_with_a_worse_point(name, solver):
    qp, _, K = built(name, seed=2)
    Q, alpha = hessian(qp, K) + np.diag(np.linspace(0, 3, qp.n_variables)), qp.start()
    last = np.inf
    for limit in (*range(1, 30), 100):
        found = inner_solver(solver)(
            Q, Q @ alpha + qp.linear, alpha, qp.upper, qp.sign, qp.group, len(qp.targets), 1e-12, max_iter=limit
        )
        value = 0.5 * found.alpha @ Q @ found.alpha + qp.linear @ found.alpha
        assert value <= last + 1e-12
        last = value


# ---- points


@pytest.mark.parametrize("name", NAMES)
def test_what_a_point_says_is_what_the_judge_finds(name):
    """One QP, or several of a kind one after the other."""
    points, answers = [], []
    for seed in range(5):
        qp, _, K = built(name, seed=seed)
        alpha = feasible(qp, np.random.default_rng(seed))
        f = K @ formulations.coefficients(qp, alpha)
        point = Point.of(qp, (qp.sign * alpha).reshape(-1, qp.n), f)
        np.testing.assert_allclose(point.alpha, alpha)
        multipliers = point.multipliers()
        answer = certify(qp, K, alpha, multipliers[0])
        assert point.dual()[0] == pytest.approx(answer.dual, rel=1e-9)
        assert point.gap(multipliers)[0] == pytest.approx(answer.gap, rel=1e-9)
        assert violations(len(qp.targets), point.extremes())[0] == pytest.approx(answer.violation, rel=1e-9)
        assert not point.missed().any()
        score = qp.center - np.tile(f, qp.n_variables // qp.n)
        up, low = point.movable
        for g, b in enumerate(multipliers[0]):
            free = up & low & (qp.group == g)
            if free.any():
                assert b == pytest.approx(score[free].mean(), rel=1e-9, abs=1e-12)
        e, rounded = point.extremes()[0], point.extremes(np.full(qp.n_variables, 0.25))[0]
        for g in range(max(1, len(qp.targets))):
            mine = qp.group == g
            assert e[g] == score[up & mine].max(initial=-np.inf) and e[2 + g] == score[low & mine].min(initial=np.inf)
        some = np.isfinite(e)
        np.testing.assert_allclose(rounded[some] - e[some], np.array([0.25, 0.25, -0.25, -0.25])[some])
        half = np.arange(qp.n) % 2 == 0
        known = Point.of(qp, (qp.sign * alpha).reshape(-1, qp.n), f, half)
        assert not known.movable[0][~np.tile(half, qp.n_variables // qp.n)].any()
        points.append(point), answers.append((point, multipliers, point.dual(), point.gap(multipliers)))
    both = Point(
        *(np.concatenate([getattr(p, part) for p in points]) for part in ("sign", "center", "upper", "group", "targets")),
        np.arange(5) * qp.n_variables,
        *(np.concatenate([getattr(p, part) for p in points]) for part in ("beta", "f", "known")),
    )  # fmt: skip
    np.testing.assert_allclose(both.multipliers(), np.concatenate([m for _, m, _, _ in answers]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(both.dual(), np.concatenate([d for _, _, d, _ in answers]), rtol=1e-9)
    np.testing.assert_allclose(both.gap(both.multipliers()), np.concatenate([g for *_, g in answers]), rtol=1e-9)
    np.testing.assert_array_equal(both.extremes(), np.concatenate([p.extremes() for p in points]))


def test_a_group_that_cannot_move_violates_nothing_and_a_number_that_is_none_is_not_hidden():
    inf = np.inf
    e = np.array([[1.0, -inf, 3.0, inf], [2.0, -inf, -1.0, inf], [2.0, 5.0, -1.0, -2.0], [np.nan, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(violations(2, e), [0.0, 3.0, 7.0, np.nan])
    np.testing.assert_array_equal(violations(1, e[:3]), [0.0, 3.0, 3.0])
    np.testing.assert_array_equal(violations(0, e[:3]), [1.0, 2.0, 2.0])
    assert violations(0, np.array([[-1.0, 0.0, 2.0, 0.0]]))[0] == 0.0


# ---- working sets


def test_sizes_of_working_sets_fit_the_cache():
    for itemsize in (4, 8):
        for cache in (0.01, 0.5, 1.0, 200.0):
            most = largest_tile(cache, itemsize)
            assert most % 2 == 0 and most >= 2
            assert most == 2 or most**2 * itemsize <= cache * MB < (most + 2) ** 2 * itemsize
            for n, halves in ((30, 1), (31, 2), (900, 1), (5000, 2)):
                if cache * MB < row_bytes(n, itemsize):
                    with pytest.raises(ValueError, match="does not hold one kernel row"):
                        working_set_size(None, cache, n, halves * n, itemsize, halves)
                    continue
                size = working_set_size(None, cache, n, halves * n, itemsize, halves)
                assert size == min(halves * n, most) or size == (1536 if halves == 1 else 1024)
                for wanted in (2, 3, 64, 65, 10_000):
                    taken = min(wanted, halves * n)
                    if taken**2 * itemsize > int(cache * MB):
                        with pytest.raises(ValueError, match=f"too small for working_set_size={wanted}"):
                            working_set_size(wanted, cache, n, halves * n, itemsize, halves)
                    else:
                        got = working_set_size(wanted, cache, n, halves * n, itemsize, halves)
                        assert got in (taken, taken - taken % 2) and (got % 2 == 0 or got == halves * n)
    assert [row_bytes(n, 4) for n in (1, 32, 33)] == [128, 128, 256]


@pytest.mark.parametrize("seed", range(10))
def test_candidates_of_several_ranks_are_the_worst_of_all(seed):
    rng = np.random.default_rng(seed)
    parts = []
    for rank in range(3):
        up, low = np.sort(rng.permutation(50)[:6]) + 100 * rank, np.sort(rng.permutation(50)[:5]) + 100 * rank
        parts.append(Violators(up, -np.sort(-rng.normal(size=6)), low, np.sort(rng.normal(size=5))))
    for k in (1, 4, 40):
        worst = merge(parts, k)
        rising = sorted(((-s, v) for p in parts for v, s in zip(p.up, p.up_score)))[:k]
        falling = sorted(((s, v) for p in parts for v, s in zip(p.low, p.low_score)))[:k]
        assert worst.up.tolist() == [v for _, v in rising] and worst.low.tolist() == [v for _, v in falling]
        assert worst.up_score.tolist() == [-s for s, _ in rising] and worst.low_score.tolist() == [s for s, _ in falling]
    assert merge(parts[:1], 2) is parts[0]
    for sent, back in zip(parts, unpacked(packed(parts), 3)):
        for one, other in zip(sent, back):
            np.testing.assert_array_equal(one, other)


def test_free_members_stay_before_those_at_bounds_however_long_they_have_been_in():
    for long in (8190, 8191, 8192, 10**6):
        for size, stay in ((3, [3]), (4, [1, 3])):  # the free one, then who came last to a lower bound
            chosen = WorkingSet(size, 2)
            chosen.members, chosen._turns = np.array([1, 2, 3, 4]), np.array([0, 0, long, long])
            chosen.place = np.array([1.0, 2.0, 0.0, 1.0])
            newcomers = [Violators(np.array([10]), np.ones(1), np.array([11]), -np.ones(1))]
            assert chosen.select(newcomers).tolist() == [*stay, 10, 11]
        assert chosen._turns.tolist() == [1, long + 1, 0, 0]


def test_fewer_are_new_as_fewer_enter_but_never_fewer_than_ten_or_a_tenth():
    def pairs(ids):
        up, low = ids[0::2], ids[1::2]
        return [Violators(up, np.arange(len(up), 0, -1.0), low, -np.arange(len(low), 0, -1.0))]

    for size, least in ((40, 10), (200, 20), (216, 20)):
        chosen = WorkingSet(size, size // 2)
        assert chosen.n_new == size // 2
        chosen.select(pairs(np.arange(size // 2)))
        assert chosen.n_new == size // 2 & ~1
        chosen.place = np.zeros(len(chosen.members))
        chosen.select(pairs(np.append(np.arange(1000, 1003), 0)))  # three enter, one was there
        assert chosen.n_new == least
    assert WorkingSet(9, 1).n_new == 2 and WorkingSet(9, 5).n_new == 4
    regression = WorkingSet(8, 8)
    members = regression.select(pairs(np.array([3, 13, 4, 5, 16, 6])), n=10)  # 3 and 13, 16 and 6 are one sample each
    assert len(set((members % 10).tolist())) == len(members) == 4 and (np.diff(members) > 0).all()


# ---- states


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("native", [True, False])
def test_f_is_that_of_beta_through_shrinking_and_back(name, native):
    """With a working set of four, left out and brought back by hand: f, dual and violation are those of all samples."""
    qp, X, K = built(name, n=60)
    data = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(60), np.float64, 1)
    source = data.source() if native else GivenValues(K, Kernel("precomputed"), np.arange(60), np.float64, 1)
    solver = Decomposition(qp, source, Options(working_set_size=4, tol=1e-6, shrinking=False))
    state, turns = solver.state, solver.turns()
    shrunk = 0
    for count, turn in enumerate(turns):
        if turn is None or count % 7:
            continue
        answer = certify(qp, K, solver.snapshot()["alpha"])
        assert solver.dual == pytest.approx(answer.dual, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(state.f, K @ state.coef, atol=1e-9)
        assert state.violation == pytest.approx(answer.violation, rel=1e-6, abs=1e-9)
        assert state.support == np.count_nonzero(state.coef)
        if state.shrink(state.look()):
            shrunk += 1
            active = state.are_active(np.arange(60))
            assert active.sum() == state.active < 60
            out = np.concatenate([samples for samples, _ in state.left])
            np.testing.assert_array_equal(np.sort(out), np.flatnonzero(~active))
            drained(state.unshrink())
            np.testing.assert_allclose(state.f, K @ state.coef, atol=1e-9)
            state.part.take_back(np.inf, np.inf, -np.inf, -np.inf)
            state.left, state.active = [], 60
            state.stand_at(state.beta, state.f)
            state.look()
    assert solver.result(Status.CONVERGED).violation <= 1e-6
    assert solver.costs.counts["unshrinks"] == shrunk


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cache", [0.05, 0.2, 1.0, 10.0])
def test_rows_have_what_the_tile_leaves_of_the_cache_and_half_of_it_at_least(cache, dtype):
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.where(np.arange(400) % 2, 1.0, -1.0)
    qp = formulations.c_svc(y, np.ones(400))
    source = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(400), dtype, 1).source()
    for size in (2, 32, 64, 100, 200):
        itemsize = np.dtype(dtype).itemsize
        if size**2 * itemsize > cache * MB:
            continue
        state = Decomposition(qp, source, Options(working_set_size=size, cache_size=cache)).state
        room, tile = state._bytes_for_rows(), size**2 * itemsize
        assert room >= cache * MB / 2 and room >= row_bytes(400, itemsize)
        assert room + tile <= cache * MB or room == cache * MB / 2
        assert room >= cache * MB - 1.25 * tile


def test_after_a_change_of_precision_trials_begin_anew():
    solver, _ = stood_at()
    seen = []

    def converge():
        seen.append((solver.trials, solver.kernel.dtype))
        solver.trials = 3
        yield None
        return Status.STALLED

    solver._converge = converge
    assert drained(solver.turns()) is Status.STALLED  # in float64 too
    assert seen == [(0, np.float32), (0, np.float64)]


def test_both_halves_of_a_sample_are_not_positive_at_once():
    qp, X, _ = built("epsilon_svr")
    solver = Decomposition(qp, KernelData(X, Kernel("rbf", gamma=0.5), np.arange(14), np.float64, 1).source(), Options())
    rng = np.random.default_rng(4)
    beta = np.stack([rng.uniform(0, 2, 14), -rng.uniform(0, 2, 14)]) * (rng.random((2, 14)) < 0.7)
    center = qp.center.reshape(2, 14)
    total, gained = beta.sum(axis=0), (center * beta).sum()
    gain = solver._one_half_each(beta, center)
    assert gain == pytest.approx((center * beta).sum() - gained)
    np.testing.assert_allclose(beta.sum(axis=0), total, atol=1e-15)
    assert (beta[0] >= 0).all() and (beta[1] <= 0).all() and (np.minimum(beta[0], -beta[1]) == 0).all()
    assert solver._one_half_each(beta, center) == 0.0


def test_a_tile_by_variable_has_a_row_for_each_half():
    rng = np.random.default_rng(5)
    for column in (np.array([0, 1, 2]), np.array([0, 1, 1, 2, 0]), np.array([2, 2])):
        n = len(np.unique(column))
        K = rng.normal(size=(n, n))
        place = rng.permutation(n)  # where each sample stands in the tile
        tile = np.zeros((16, 16))
        tile[:n, :n][np.ix_(place, place)] = K + K.T
        column = np.unique(column, return_inverse=True)[1]
        out, at = Decomposition._by_variable(tile, place, column)
        assert len(set(at.tolist())) == len(column) and len(out) % 16 == 0
        np.testing.assert_array_equal(out[np.ix_(at, at)], (K + K.T)[np.ix_(column, column)])


# ---- several problems


def several(sizes=(8, 12, 10), n_classes=3, **options):
    """Pairs of classes of given sizes: problems, data, blocks."""
    rng = np.random.default_rng(6)
    ends = np.cumsum([0, *sizes])
    X = rng.normal(size=(ends[-1], 3))
    blocks = [np.arange(a, b) for a, b in pairwise(ends)]
    problems = []
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            y = np.repeat([1.0, -1.0], [sizes[i], sizes[j]])
            problems.append(Problem(formulations.c_svc(y, np.ones(len(y))), np.concatenate([blocks[i], blocks[j]]), (i, j)))
    data = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(len(X)), np.float64, 1)
    return problems, data, blocks, Options(**options)


@pytest.mark.parametrize("working_set", [None, 6])
def test_a_run_that_never_began_has_a_result_and_the_same_one_again(working_set):
    problems, data, blocks, options = several(working_set_size=working_set)
    run = Together(problems, data.source, blocks, options, Control())
    assert run.progress().done == 0 and (working_set is None or run.snapshot() == [None] * 3)
    first, second = run.result(Status.MAX_TIME), run.result(Status.MAX_TIME)
    assert len(first.parts) == 3 and first.objective == second.objective
    for part, problem in zip(first.parts, problems):
        K = data.kernel(data.X, data.X)[np.ix_(problem.chosen, problem.chosen)]
        answer = certify(problem.qp, K, part.alpha, part.multipliers)
        assert part.objective == pytest.approx(answer.primal, rel=1e-9)


@pytest.mark.parametrize("working_set", [None, 6])
def test_all_problems_are_solved_and_counted(working_set):
    problems, data, blocks, options = several(working_set_size=working_set)
    run = Together(problems, data.source, blocks, options, Control())
    turns = [turn for turn in run.turns() if turn is not None]
    assert run.progress().done == run.progress().total == 3 and turns
    whole = run.result(Status.CONVERGED)
    for part, kept, problem in zip(whole.parts, run.snapshot(), problems):
        K = data.kernel(data.X, data.X)[np.ix_(problem.chosen, problem.chosen)]
        assert certify(problem.qp, K, part.alpha).violation <= 1e-3 * 1.001
        np.testing.assert_array_equal(kept["alpha"], part.alpha)
    alone = Together(problems[:1], data.source, blocks, options, Control(max_iter=9))
    drained(alone.turns())
    assert alone.progress().unit == "it" and alone.progress().total == 9


def test_problems_are_small_if_they_and_their_rows_are(monkeypatch):
    problems, data, blocks, _ = several()

    def small(**options):
        return Together(problems, data.source, blocks, Options(**options), Control())._ids

    assert small() == [0, 1, 2] and small(inner_solver="ipm") == small(working_set_size=8) == []
    monkeypatch.setattr(together, "SMALL_ALONE", 20)
    monkeypatch.setattr(together, "SMALL", 18)
    assert small() == [0, 1] and small(beside=2) == [1]  # of 20, 18 and 22 variables
    room = 2 * 8 * (18 + 32) ** 2 / MB
    assert small(cache_size=1.001 * room) == [1] and small(cache_size=0.95 * room) == []


def test_large_problems_are_solved_beside_one_another_the_largest_first():
    problems, data, blocks, _ = several(sizes=(8, 12, 10, 30), n_classes=4)

    def order(**options):
        run = Together(problems, data.source, blocks, Options(**{"beside": 2, "threads": 2, **options}), Control())
        return run._in_order(list(range(6)))

    size = [problem.qp.n_variables for problem in problems]
    which, alone = order()
    assert alone == 0 and [size[p] for p in which] == sorted(size, reverse=True)
    assert order(beside=1) == (list(range(6)), 6) == order(inner_solver="gpm")
    assert order(cache_size=1e-4)[1] == 6  # none can do with half of it
    run = Together(problems, data.source, blocks, Options(beside=2, cache_size=8.0), Control())
    assert run._room(0) == 4.0
    assert Together(problems, data.source, blocks, Options(beside=2, cache_size=1e-4), Control())._room(0) == 1e-4
    three = run._in_order([0, 1, 3])
    assert three[1] == 1 and three[0][0] == max([0, 1, 3], key=lambda p: size[p])  # an odd one is alone


class Told:
    """In the place of the core's: what it was made with and asked for."""

    made = asked = ()

    def __init__(self, *arguments):
        Told.made, Told.asked, self.left = arguments, [], 3

    def run(self, seconds, left):
        Told.asked.append((seconds, left))
        self.left -= 1
        return 3 - self.left


def test_the_core_is_asked_for_short_slices_and_no_more_workers_than_have_room(monkeypatch):
    problems, data, blocks, _ = several()
    monkeypatch.setattr(many, "_core", SimpleNamespace(Many32=Told, Many64=Told))
    ends = np.cumsum([0, *map(len, blocks)])
    most = max(problem.qp.n_variables for problem in problems)
    for threads in (1, 2, 8):
        kernel = KernelData(data.X, data.kernel, data.rows, np.float64, threads).source()
        for fit in (0.5, 1.5, 2.5, 100.0):  # how many have room in half of the cache
            solver = Many(problems, kernel, ends, Options(cache_size=2 * fit * 8 * most**2 / MB), 7)
            *_, turns, steps, shrinking, room, whole, workers = Told.made
            assert workers == max(1, min(threads, 3, int(fit)))
            assert room == pytest.approx(fit * 8 * most**2, abs=1) and turns == 7 and steps > 1000 * most
            assert shrinking and whole
    Many(problems, kernel, ends, Options(cache_size=8.0, processes=4, shrinking=False))
    assert Told.made[-3] == MB and not Told.made[-4] and Told.made[-6] == Told.made[-5]
    solver = Many(problems, kernel, ends, Options())
    assert [turn.extra["done"] for turn in solver.turns()] == [1.0, 2.0, 3.0]
    assert Told.asked == [(many.SLICE, np.inf)] * 3
    for seconds in (1e-9, 1000.0):
        drained(Many(problems, kernel, ends, Options(), deadline=Deadline.after(seconds)).turns())
        assert all(0 <= slice_ <= min(many.SLICE, seconds) and left <= seconds for slice_, left in Told.asked)


def test_kernel_values_are_computed_beforehand_where_problems_are_small(monkeypatch):
    problems, data, blocks, options = several()
    ends = np.cumsum([0, *map(len, blocks)])
    n = np.array([problem.qp.n_variables for problem in problems])
    mean = float((n**2).sum() / n.sum())
    for most, wanted in ((mean * 1.001, True), (mean * 0.999, False)):
        monkeypatch.setattr(many, "WHOLE", most)
        assert Many(problems, data.source(), ends, options)._mostly_wanted() == wanted


# ---- in other processes


def test_bundles_have_every_problem_once_in_order_and_about_as_much_work():
    problems, data, blocks, options = several(sizes=(5, 9, 14, 20, 8, 11), n_classes=6)
    work = np.array([problem.qp.n_variables**2.0 for problem in problems])
    for jobs in (1, 2, 3):
        for control, count in ((Control(), 4 * jobs), (Control(deadline=Deadline.after(100.0)), jobs)):
            bundles = apart.Apart(problems, data.source, blocks, options, control, data)._bundles(jobs)
            assert sorted(p for some in bundles for p in some) == list(range(15)) and len(bundles) <= count
            assert all((np.diff(some) == 1).all() for some in bundles)
            heavy = [work[some].sum() for some in bundles]
            assert heavy == sorted(heavy, reverse=True) and heavy[0] <= work.sum() / count + work.max()


@pytest.mark.parametrize("kind", ["rbf", "precomputed"])
def test_a_bundle_is_solved_from_what_is_sent_alone(kind):
    problems, data, blocks, options = several(sizes=(5, 9, 14, 20), n_classes=4, threads=3)
    if kind == "precomputed":
        data = KernelData(data.kernel(data.X, data.X), Kernel("precomputed"), data.rows, np.float64, 1)
    whole = apart.Apart(problems, data.source, blocks, options, Control(deadline=Deadline.after(100.0)), data)
    assert whole.progress().done == 0 and whole.snapshot() == [None] * 6
    here = Together(problems, data.source, blocks, replace(options, threads=1), Control())
    drained(here.turns())
    expected = here.result(Status.CONVERGED).parts
    for some in ([0], [1, 2], [3, 5], [4]):
        bundle, which = whole._bundle(some, 2)
        assert which == sorted({b for p in some for b in problems[p].blocks})
        assert bundle.sizes == [len(blocks[b]) for b in which]
        assert (bundle.options.threads, bundle.options.processes) == (1, 2)
        assert 0 < bundle.deadline.left() <= apart.IN_TIME * 100.0
        number, parts = apart.numbered(7, bundle, *whole._rows(which))
        assert number == 7
        for p, part in zip(some, parts):
            assert part.objective == pytest.approx(expected[p].objective, rel=1e-3)
            np.testing.assert_allclose(part.alpha, expected[p].alpha, atol=1e-2)
    whole._parts[1] = DualResult(status=Status.CONVERGED, objective=5.0, gap=0.0, violation=0.0, alpha=np.ones(3))
    assert whole.progress().done == 1
    np.testing.assert_array_equal(whole.snapshot()[1]["alpha"], np.ones(3))
    found = whole.result(Status.MAX_TIME).parts
    assert found[1].objective == 5.0 and len(found) == 6
    assert all(np.isfinite(part.objective) for part in found)


@pytest.mark.parametrize("working_set", [None, 6])
def test_what_problems_begin_with_is_what_there_is_of_them(working_set):
    problems, data, blocks, options = several(working_set_size=working_set)
    alpha = problems[1].qp.repaired(np.full(problems[1].qp.n_variables, 0.25))
    problems[1] = replace(problems[1], alpha=alpha)
    problems[2] = replace(problems[2], kept={"alpha": np.ones(3), "second": np.ones(4)}, solver=lambda *given: None)
    for run in (
        Together(problems, data.source, blocks, options, Control()),
        apart.Apart(problems, data.source, blocks, options, Control(), data),
    ):
        first, second, third = run.snapshot()
        assert first is None or not first["alpha"].any()
        np.testing.assert_array_equal(second["alpha"], alpha)
        assert third is problems[2].kept


def test_an_f_that_is_known_is_that_of_where_a_problem_begins(monkeypatch):
    problems, data, blocks, options = several(working_set_size=6)
    alpha = problems[1].qp.repaired(np.full(problems[1].qp.n_variables, 0.25))
    f = np.arange(problems[1].qp.n, dtype=float)
    problems[1] = replace(problems[1], alpha=alpha, known=(f, 2.5))
    made = []

    class Seen(Decomposition):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            made.append((options["f"], options["alpha"], self))

    monkeypatch.setattr(together, "Decomposition", Seen)
    for begin, wanted in ((alpha, f), (alpha.copy(), None)):
        run = Together(problems, data.source, blocks, options, Control())
        run._begin[1] = begin
        rest = run._others()
        made.clear()
        for k in range(3):
            rest._make(k, Deadline())
        (given, where, solver) = made[run._which.index(1)]
        assert given is wanted and where is begin and solver.state.path == (2.5 if wanted is not None else 0.0)
        assert sum(g is None for g, *_ in made) == 3 - (wanted is not None)


# ---- whether f is what it seems


def stood_at(scale=1.0, n=400, dtype=np.float32, C=2.0, seed=7):
    """A run that stands at some β far from the optimum, its f summed up; the kernel matrix in float64."""
    rng = np.random.default_rng(seed)
    X = (scale * rng.normal(size=(n, 6))).astype(np.float32)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    qp = formulations.c_svc(y, np.full(n, C))
    alpha = qp.repaired(C * rng.choice([0.0, 0.3, 1.0], n))
    source = KernelData(X, Kernel("linear"), np.arange(n), dtype, 1).source()
    solver = Decomposition(qp, source, Options(tol=1e-3, working_set_size=8), alpha=alpha)
    drained(solver.state.sum_up())
    solver.state.look()
    return solver, X.astype(np.float64) @ X.T.astype(np.float64)


@pytest.mark.parametrize("seed", range(6))
def test_float32_values_tell_violations_apart_that_are_well_above_the_error_of_f(seed):
    solver, K = stood_at(seed=seed)
    state, every = solver.state, np.arange(400)
    m = np.sqrt(np.diag(K))
    error = np.abs(K @ state.coef - state.f) / m
    spread = np.sqrt((state.coef * m) ** 2 @ np.ones(400))
    chance = 16 * state.kernel.noise * m.max() * spread  # above which nobody looks
    assert verified.told_apart(state, 1.01 * chance, every) and state.error == 0.0
    assert not verified.told_apart(state, 1e-12, every) and 0 < state.error <= error.max() * (1 + 1e-6)
    found = state.error
    for violation in np.geomspace(1e-9, 0.99 * chance, 40):
        assert verified.told_apart(state, violation, every) == (4 * m.max() * found <= violation)
    state.options = replace(state.options, tol=1.99 * m.max() * found)
    assert verified.too_coarse(state)
    state.options = replace(state.options, tol=2.01 * m.max() * found)
    assert not verified.too_coarse(state)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_violation_that_is_known_counts_what_float64_cannot_tell(scale):
    solver, K = stood_at(scale, dtype=np.float64)
    state = solver.state
    plain = certify(state.qp, K, solver.snapshot()["alpha"]).violation
    said = verified.known_violation(state, state.point())
    m = np.sqrt(np.diag(K))
    each = state.kernel.noise * m * (np.abs(state.coef) @ m)
    if 2 * each.max() <= state.options.tol:
        assert said == pytest.approx(plain, rel=1e-9)
    else:
        assert plain * (1 - 1e-9) < said <= plain * (1 + 1e-9) + 2 * each.max()
    assert verified.sure(state) == (said <= state.options.tol)
    state.options = replace(state.options, tol=1.01 * max(said, plain + 2 * each.max()))
    assert verified.sure(state)


def test_sums_that_miss_and_an_f_that_has_drifted_are_begun_anew():
    solver, K = stood_at(dtype=np.float64)
    state = solver.state
    assert not verified.renewed(state)
    size = np.abs(state.coef) @ np.sqrt(np.diag(K))
    state.came(7.9 * size)
    assert not verified.renewed(state)  # a fresh sum would have as much
    state.options = replace(state.options, tol=1e-9)
    state.came(0.2 * size)
    beta = state.beta.copy()
    assert verified.renewed(state) and state.path == 0.0 and state.pending
    np.testing.assert_array_equal(state.beta, beta)
    off = beta.copy()
    off[0, np.flatnonzero((beta[0] > 0) & (beta[0] < 2.0))[0]] += 1e-6
    state.stand_at(off)
    assert verified.renewed(state)
    assert abs(state.beta.sum()) <= 1e-12 and np.abs(state.beta - off).max() <= 1.1e-6


def test_values_whose_squares_overflow_are_told():
    solver, _ = stood_at(1e3)
    verified.require_finite(solver.state)
    huge, _ = stood_at(1e3, n=40)
    huge.state.kernel.magnitude = 1e20
    with pytest.raises(Overflow):
        verified.require_finite(huge.state)


@pytest.mark.parametrize("name", NAMES)
def test_whose_exact_f_does_not_matter_changes_nothing_by_it(name):
    """Any f within the error, of those samples: violation and gap stay the same."""
    for seed in range(6):
        qp, X, _ = built(name, n=40, seed=seed)
        rng = np.random.default_rng(seed)
        alpha = qp.repaired(qp.upper * rng.choice([0.0, 0.0, 0.3, 1.0], qp.n_variables))
        source = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(40), np.float64, 1).source()
        state = Decomposition(qp, source, Options(), alpha=alpha).state
        drained(state.sum_up())
        for error in (1e-3, 0.1, 0.5):
            matters = verified._matters(state, np.full(40, error))
            point = state.point()
            beta = state.beta
            assert matters[(beta != 0).any(axis=0)].all()
            b = point.multipliers()
            for _ in range(5):
                f = np.where(matters, state.f, state.f + rng.uniform(-error, error, 40))
                other = Point.of(qp, beta, f)
                assert violations(len(qp.targets), other.extremes())[0] == pytest.approx(
                    violations(len(qp.targets), point.extremes())[0], rel=1e-12
                )
                if len(b[0]) < 2:
                    assert other.gap(b)[0] == pytest.approx(point.gap(b)[0], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_f_is_exact_where_it_matters_after_a_second_look(scale):
    solver, K = stood_at(scale)
    state = solver.state
    drained(verified.refine(state))
    m = np.sqrt(np.diag(K))
    assert state.error > 0  # some were looked at
    exact, coef = state.exact
    assert not verified._matters(state, verified.BEYOND * state.error * m)[np.isnan(exact)].any()
    np.testing.assert_array_equal(coef, state.coef)
    known = ~np.isnan(exact)
    true = K @ state.coef
    assert known[state.coef != 0].all()
    np.testing.assert_allclose(state.f[known], true[known], rtol=1e-9, atol=1e-9 * scale**2)
    point = Point.of(state.qp, state.beta, true)
    assert violations(1, state.point().extremes())[0] == pytest.approx(violations(1, point.extremes())[0], rel=1e-6)
    assert state.point().gap(state.point().multipliers())[0] == pytest.approx(point.gap(point.multipliers())[0], rel=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_has_no_zeros_below_zero(name):
    """A β of −0 is an alpha of 0, whoever is asked."""
    qp, X, _ = built(name)
    source = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(14), np.float64, 1).source()
    solver = Decomposition(qp, source, Options(working_set_size=4))
    drained(solver.turns())
    for alpha in (solver.snapshot()["alpha"], solver.result(Status.CONVERGED).alpha, solver.state.point().alpha):
        assert (alpha == 0).any() and not np.signbit(alpha).any()
    halves = (0, 0) if qp.n_variables > qp.n else (0, -1)
    small = Many([Problem(qp, np.arange(14), halves)], source, np.array([0, 14]), Options())
    assert not np.signbit(small.snapshot()[0]["alpha"]).any()
    drained(small.turns())
    for alpha in (small.snapshot()[0]["alpha"], small.results(Status.CONVERGED)[0][0].alpha):
        assert (alpha == 0).any() and not np.signbit(alpha).any()


def test_what_the_first_rank_has_found_is_sent_as_so_many_numbers_as_all_expect():
    qp, X, _ = built("epsilon_svr")
    solver = Decomposition(qp, KernelData(X, Kernel("rbf", gamma=0.5), np.arange(14), np.float64, 1).source(), Options())
    seats = solver.state.seats(np.array([1, 4, 9]))
    beta, sent = np.arange(6.0).reshape(2, 3), []
    for rank in (0, 1):

        def bcast(value, doubles, rank=rank):
            sent.append(np.array(value) if rank == 0 else sent[0])
            assert len(sent[-1]) == doubles
            return sent[-1]

        solver.team = SimpleNamespace(size=2, rank=rank, bcast=bcast)
        before = dict(solver.costs.counts)
        found, gain = solver._told(seats, *((beta, 2.5, 7, True) if rank == 0 else ()))
        np.testing.assert_array_equal(found, beta)
        after = solver.costs.counts
        assert gain == 2.5 and after["inner_steps"] - before["inner_steps"] == 7
        assert after["inner_fallbacks"] - before["inner_fallbacks"] == 1


def test_a_run_that_stalls_looks_at_the_samples_left_out_once_and_ends(monkeypatch):
    qp, X, _ = built("c_svc", n=200, seed=3)
    source = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(200), np.float64, 1).source()
    solver = Decomposition(qp, source, Options(working_set_size=4, tol=1e-9))
    turns = solver.turns()
    for _ in turns:
        if solver.state.left:
            break
    assert solver.state.left
    monkeypatch.setattr("maxmargin.decomposition.ending.Progress.stalled", lambda self, gain, dual: True)
    before, count = solver.costs.counts["unshrinks"], 0
    while True:
        try:
            count += next(turns) is not None
        except StopIteration as end:
            assert end.value is Status.STALLED
            break
        assert count <= 20
    assert solver.costs.counts["unshrinks"] <= before + 1


# ---- small QPs of their own


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("solver", ["smo", "ipm", "gpm"])
def test_targets_at_the_ends_of_what_bounds_allow_are_met_there(sign, solver):
    upper = np.array([0.1, 0.2, 0.7])  # whose sum is not the sum of their floats
    for part, alpha in ((1.0, upper), (0.0, 0 * upper)):
        target = sign * part * float(upper.sum())
        found = solve_qp(np.eye(3), [-1.0, 0.5, 0.2], upper, sign * np.ones(3), targets=[target], inner_solver=solver)
        np.testing.assert_allclose(found.alpha, alpha, atol=1e-12)
        for beyond in (1e-13, 1e-9):
            far = target + sign * (beyond if part else -beyond)
            if beyond < 1e-12:
                solve_qp(np.eye(3), [-1.0, 0.5, 0.2], upper, sign * np.ones(3), targets=[far], inner_solver=solver)
            else:
                with pytest.raises(formulations.InfeasibleError, match="the bounds allow sums from"):
                    solve_qp(np.eye(3), [-1.0, 0.5, 0.2], upper, sign * np.ones(3), targets=[far], inner_solver=solver)


class Workers:
    """A carrier whose workers are here; of each call the first `deaths` are lost."""

    def __init__(self, deaths=0):
        self.deaths, self.put_away, self.calls, self.dropped = deaths, [], {}, []

    def put(self, value):
        return value

    def put_all(self, values):
        self.put_away += [len(value) for value in values]
        return list(values)

    def solve(self, function, *given):
        self.calls[len(self.calls)] = function, given
        return len(self.calls) - 1

    def wait(self, refs, seconds):
        return refs[-1:]  # in any order

    def get(self, ref):
        function, given = self.calls[ref]
        if self.deaths > 0:
            self.deaths -= 1
            raise LostError("worker gone")
        return function(*given, lambda: False)

    def drop(self, refs):
        self.dropped += refs


@pytest.mark.parametrize("deaths", [0, 3, 4])
@pytest.mark.parametrize("kind", ["rbf", "precomputed"])
def test_bundles_on_workers_have_their_rows_once_and_four_attempts(kind, deaths):
    problems, data, blocks, options = several(sizes=(5, 9, 14, 20), n_classes=4)
    if kind == "precomputed":
        data = KernelData(data.kernel(data.X, data.X), Kernel("precomputed"), data.rows, np.float64, 1)
    here = Together(problems, data.source, blocks, options, Control())
    drained(here.turns())
    workers, whole = Workers(deaths), apart.Apart(problems, data.source, blocks, options, Control(), data)
    if deaths >= ATTEMPTS:
        with pytest.raises(RuntimeError, match=r"4 workers died.*worker gone"):
            drained(whole._on(workers, 2))
        assert workers.dropped
        return
    drained(whole._on(workers, 2))
    assert workers.dropped == [] and whole.progress().done == 6
    if kind == "rbf" and not deaths:
        assert sorted(workers.put_away) == [5, 9, 14, 20]
    for one, other in zip(whole.result(Status.CONVERGED).parts, here.result(Status.CONVERGED).parts):
        assert one.objective == pytest.approx(other.objective, rel=1e-3)
    stopped = apart.Apart(problems, data.source, blocks, options, Control(), data)
    going = stopped._on(workers, 2)
    next(going)
    going.close()
    assert len(workers.dropped) == 1


@pytest.mark.parametrize("status", [Status.INTERRUPTED, Status.MAX_TIME, Status.MAX_ITER, Status.CALLBACK])
@pytest.mark.parametrize("patience", [-1.0, np.inf])
def test_who_presses_ctrl_c_does_not_wait_for_a_pass_that_takes_long(monkeypatch, status, patience):
    """Samples left out are brought up to date for the report, unless that takes too long; what is said is then not known."""
    monkeypatch.setattr("maxmargin.decomposition.solver.PATIENCE", patience)
    qp, X, K = built("c_svc", n=200, seed=3)
    source = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(200), np.float64, 1).source()
    solver = Decomposition(qp, source, Options(working_set_size=4, tol=1e-9))
    for _ in solver.turns():
        if solver.state.left:
            break
    found = solver.result(status)
    answer = certify(qp, K, found.alpha, found.multipliers)
    if status is Status.INTERRUPTED and patience < 0:
        assert np.isnan([found.violation, found.gap, found.objective]).all()
    else:
        assert found.violation == pytest.approx(answer.violation, rel=1e-6)
        assert found.objective == pytest.approx(answer.primal, rel=1e-9) and found.gap == pytest.approx(answer.gap, rel=1e-6)
    assert found.status is status and found.n_support == np.count_nonzero(found.alpha)


@pytest.mark.parametrize("status", [Status.INTERRUPTED, Status.MAX_TIME, Status.MAX_ITER])
@pytest.mark.parametrize("patience", [-1.0, np.inf])
def test_an_f_that_nobody_waits_for_is_not_known(monkeypatch, status, patience):
    monkeypatch.setattr("maxmargin.decomposition.solver.PATIENCE", patience)
    solver, K = stood_at(dtype=np.float64)
    state = solver.state
    state.stand_at(state.beta)  # all of it to be summed up
    found = solver.result(status)
    if status is not Status.MAX_ITER and patience < 0:
        assert np.isnan([found.violation, found.gap, found.objective]).all()
    else:
        answer = certify(state.qp, K, found.alpha, found.multipliers)
        assert found.objective == pytest.approx(answer.primal, rel=1e-9)
        np.testing.assert_allclose(found.f, K @ state.coef, rtol=1e-9, atol=1e-9)
    assert found.status is status


def test_float32_values_that_lead_astray_are_left(monkeypatch):
    """Those that go on and on from an exact f; those whose f is off by much of what it says, looked at ever more rarely."""
    solver, _ = stood_at(scale=30.0)
    state = solver.state
    solver.farthest = solver.least = np.inf
    assert not solver._misled(1)
    assert solver.least == state.violation
    looked = []
    monkeypatch.setattr(
        "maxmargin.decomposition.solver.told_apart", lambda *given: looked.append(given[1]) or len(looked) < 3
    )
    state.violation, least = 2 * state.violation, state.violation
    misled = [turn for turn in range(1, 70) if solver._misled(turn)]
    assert misled == [64] and looked == [least] * 3  # at 16, 32 and 64, by the least that there was
    solver.farthest = state.path + 1.0
    assert not solver._misled(3)
    state.came(1.5)
    assert solver._misled(3)
    wide, _ = stood_at(dtype=np.float64)
    wide.farthest = wide.least = -1.0
    assert not wide._misled(16)
    assert [wide._may_try_again() for _ in range(5)] == [True, True, True, False, False]
