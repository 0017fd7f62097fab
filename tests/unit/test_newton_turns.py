"""The turns of Newton's method on linear machines: when h falls, what is polished, sampled and cut, by its definition."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from generators import listened

from maxmargin.linear import LinearProblem, line_search, newton
from maxmargin.linear.bundle import Bundle
from maxmargin.linear.certified import Best
from maxmargin.linear.descent import Coordinates
from maxmargin.linear.direction import NARROW, Directions
from maxmargin.linear.newton import Newton
from maxmargin.linear.problem import Sum
from maxmargin.runtime import Status

LOSSES = ["hinge", "squared_hinge"]


def made(seed=0, n=60, d=4, C=0.8, loss="hinge", bias=1.0, regression=False, **options):
    rng = np.random.default_rng(seed)
    X, weight = rng.normal(size=(n, d)), rng.uniform(0.2, 2, n)
    target = X[:, 0] + rng.normal(size=n)
    if not regression:
        sign = np.where(target > 0, 1.0, -1.0)
        sign[:2] = 1.0, -1.0
        return LinearProblem(X, sign, weight, C, loss, bias=bias, **options)
    shift = np.concatenate([1.1 - target, 1.1 + target])
    return LinearProblem(X, np.repeat([1.0, -1.0], n), np.tile(weight, 2), C, loss, bias=bias, shift=shift, **options)


def at_objective(solver, objective, lower=0.0):
    """As if the best point had that objective."""
    solver.best = Best(solver.best.w, solver.best.m, objective, True, 0.0)
    solver.bundle.lower = lower
    return solver


def margins(problem, w):
    out = np.empty(problem.hinges)
    listened(problem.outputs(w, out))
    return out


# ---- rules


def test_the_rounding_to_begin_with():
    for given, expected in ((None, newton.START), (0.01, 0.01), (9.0, newton.START)):
        assert Newton(made(), 1e-3, rounding=given).h == expected
        assert Newton(made(loss="squared_hinge"), 1e-3, rounding=given).h == 0.0
    assert Newton(made(), 1e-3, rounding=0.01).snapshot().rounding == 0.01


def test_a_free_intercept_has_no_penalty():
    for bias, penalised, expected in ((0.0, False, [1.0]), (2.0, True, [1.0, 1.0]), (2.0, False, [1.0, 0.0])):
        solver = Newton(made(d=1, bias=bias, penalised=penalised), 1e-3)
        np.testing.assert_array_equal(solver._penalty, expected)
        np.testing.assert_array_equal(solver._directions.penalty, expected)
    for d in (NARROW, NARROW + 1):
        for rough in (False, True):
            assert Newton(made(d=d, bias=0.0), 1e-3, rough=rough)._wide == (d > NARROW and not rough)


def test_the_rounding_falls_after_long_steps_that_gain_little_and_never_below_what_is_asked_for():
    target = 0.4 * 1e-3 * 10.0
    for loss in LOSSES:
        for step in (0.49, 0.5, 1.0):
            for rounding in (0.5 * target, target, 1.0001 * target, 2 * target, 9 * target, 100 * target):
                for part in (0.49, 0.5, 2.0):
                    solver = at_objective(Newton(made(loss=loss), 1e-3), 10.0)
                    solver.h = 0.2
                    solver._tighten(step, part * rounding, rounding)
                    falls = loss == "hinge" and step >= 0.5 and part < 0.5 and rounding > target
                    factor = max(newton.FALL, 0.9 * np.sqrt(target / rounding)) if falls else 1.0
                    assert solver.h == pytest.approx(0.2 * factor, rel=1e-12)


def test_duals_are_polished_near_the_end_of_a_hinge_machine():
    for tol, most in ((1e-3, 1e-2), (1e-2, 0.1), (1e-5, 1e-2)):
        for loss in LOSSES:
            for rough in (False, True):
                for step in (0.0999, 0.1, 1.0):
                    for rounding, lower in ((0.999, 0.0), (1.0, 0.0), (0.999, 10.0)):
                        solver = at_objective(Newton(made(loss=loss), tol, rough=rough), 10.0, lower)
                        expected = loss == "hinge" and not rough and step >= 0.1 and rounding < 1 and lower == 0
                        assert solver._near(rounding * most * 10.0, step) is expected
    solver = at_objective(Newton(made(), 1e-3), 10.0)
    solver.problem.alone = False
    assert not solver._near(0.0, 1.0)


def test_all_of_the_band_is_looked_at_where_a_sample_would_show():
    def of(loss="hinge", tol=1e-3, short=0, rough=False, lower=0.0, wide=False):
        solver = at_objective(Newton(made(loss=loss), tol, rough=rough), 10.0, lower)
        solver._short, solver._wide = short, wide
        return solver

    for loss in LOSSES:
        for short in (2, 3, 4):
            assert of(loss, short=short)._exact(1.0) is (short >= 3)
            assert of(loss, short=short, rough=True)._exact(1.0) is False
        assert of(loss, tol=0.99e-5)._exact(1.0) and not of(loss, tol=1e-5)._exact(1.0)
    assert of("squared_hinge", lower=9.501)._exact(1.0) and not of("squared_hinge", lower=9.5)._exact(1.0)
    assert not of(lower=9.9)._exact(1.0)
    for wide in (True, False):
        for rounding in (2.99e-2, 3e-2):
            assert of(wide=wide)._exact(rounding) is (wide and rounding < 3e-2)
            assert of("squared_hinge", wide=wide)._exact(rounding) is False


# ---- samples to begin with


class First:
    """In the place of Newton's method on the sample."""

    def __init__(self, part, tol, **options):
        First.asked = part, tol, options
        self.h, self.best = 0.07, SimpleNamespace(w=np.full(part.size, 0.5))
        self.clock = SimpleNamespace(seconds={"a": 1.0, "b": 2.0})

    def turns(self):
        yield from (None, None, None)


@pytest.mark.parametrize(("n", "d", "rows"), [(4000, 1, 250), (1040, 1, 65), (1039, 1, 64), (600, 1, 64), (600, 3, 128),
                                              (256, 1, 64), (255, 1, None), (511, 3, None)])  # fmt: skip
@pytest.mark.parametrize("regression", [False, True])
def test_a_sixteenth_of_the_rows_finds_a_start_where_it_is_much_cheaper(n, d, rows, regression, monkeypatch):
    """At least SAMPLED per feature, the constant one among them; at most a quarter. Distinct rows, with a weight."""
    assert newton.SAMPLED == 32
    problem = made(n=n, d=d, regression=regression)
    problem.weight[: n // 3] = 0.0
    if regression:
        problem.weight[n : n + n // 3] = 0.0
    solver = Newton(problem, 1e-3, seed=5)
    monkeypatch.setattr(newton, "Newton", First)
    First.asked = None
    _, said = listened(solver._sample())
    if rows is None:
        assert First.asked is None and solver.start is None and solver.h == newton.START
        return
    part, tol, options = First.asked
    assert (tol, options) == (1e-2, {"rough": True, "seed": 5}) and len(said) == 3
    assert part.n == rows and part.hinges == rows * (1 + regression)
    place = {tuple(row): k for k, row in enumerate(problem.X)}
    taken = [place[tuple(row)] for row in part.X]
    assert taken == sorted(set(taken)) and min(taken) >= n // 3
    assert solver.h == 0.07 and (solver.start == 0.5).all() and solver.clock.seconds["sample"] == 3.0


def test_no_sample_is_larger_than_the_rows_that_count_and_none_has_one_class_alone(monkeypatch):
    monkeypatch.setattr(newton, "Newton", First)
    problem = made(n=4000, d=1)
    problem.weight[100:] = 0.0
    solver = Newton(problem, 1e-3)
    listened(solver._sample())
    assert First.asked[0].n == 100
    for label in (1.0, -1.0):
        First.asked = None
        problem.sign[:100] = label
        solver = Newton(problem, 1e-3)
        listened(solver._sample())
        assert First.asked is None and solver.start is None


# ---- cuts and polish


@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("lazy", [0.0, 0.2])
def test_promised_duals_bound_as_the_cut_that_they_are(bias, regression, lazy):
    """Turn after turn; those that move by no more than a part of their weight stay where they were."""
    problem = made(bias=bias, regression=regression)
    rng, promised = np.random.default_rng(1), np.zeros(problem.hinges)
    solver, levels = Newton(problem, 1e-3), []
    first = Newton(problem, 1e-8)
    listened(first.turns())
    near = problem.feasible(first.duals())
    for spread in (0.2, 0.05, 0.05, 0.3):
        path = np.clip(near + spread * problem.weight * rng.normal(size=problem.hinges), 0.0, problem.weight)
        promised = np.where(np.abs(path - promised) > lazy * problem.weight, path, promised)
        solver.bundle = Bundle(problem)
        solver.seed_cuts()
        listened(solver._path_cut(path, lazy))
        np.testing.assert_array_equal(solver._promised, promised)
        other = Newton(problem, 1e-3)
        other.seed_cuts()
        total = Sum(problem)
        listened(total.renew(promised))
        mass = float(promised.sum())
        offset, size = problem.offset(promised, mass, 0.0)
        other.bound(total.cut(offset, mass, size))
        assert solver.bundle.lower == pytest.approx(other.bundle.lower, rel=1e-9)
        levels.append(solver.bundle.lower)
        assert solver.bundle.lower <= first.objective
    assert max(levels) > 0


@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("regression", [False, True])
def test_a_polish_moves_the_duals_near_the_margin_and_raises_the_bound(bias, regression, monkeypatch):
    problem = made(bias=bias, regression=regression)
    problem.weight[3] = 0.0
    solver, rng = Newton(problem, 1e-3), np.random.default_rng(2)
    solver.h = 0.1
    solver.seed_cuts()
    w = rng.normal(size=problem.size) * 0.3
    alpha, total = np.zeros(problem.hinges), Sum(problem)
    found = problem.duals(alpha, margins(problem, w), h=solver.h)
    listened(total.move(found.rows, found.delta, found.mass))
    asked, descend = [], Coordinates.descend

    def seen(self, rows, reads, goal):
        asked.append((rows.copy(), reads, goal, self.alpha.copy(), self.centre))
        return descend(self, rows, reads, goal)

    monkeypatch.setattr(Coordinates, "descend", seen)
    before = solver.bundle.lower
    spread, _ = listened(solver._polish(alpha, total, found, w))
    (rows, reads, goal, begun, centre), dual = asked[0], solver._dual
    assert (reads, goal) == (0.25 * problem.n, 1e-3) and spread >= 0
    np.testing.assert_allclose(begun, problem.C * alpha, rtol=1e-12)
    assert centre == (w[-1] * bias if bias else 0.0)
    slope = np.zeros(problem.hinges)
    slope[found.band] = found.slope
    near = (4 * solver.h * slope >= newton.NEAR * problem.weight) & (problem.weight > 0)
    expected = near.reshape(-1, problem.n).any(axis=0)
    assert 0 < expected.sum() < problem.n
    np.testing.assert_array_equal(np.sort(rows), np.flatnonzero(expected))
    moved = dual.alpha != begun
    assert not moved[~np.tile(expected, problem.hinges // problem.n)].any() and moved.any()
    other = Newton(problem, 1e-3)
    other.seed_cuts()
    other.bound(dual.cut())
    assert solver.bundle.lower == pytest.approx(max(before, other.bundle.lower), rel=1e-9) and other.bundle.lower > before
    np.testing.assert_allclose(solver.duals(), dual.alpha / problem.C)


# ---- whole runs


KINDS = [
    (loss, bias, regression, shape)
    for loss in LOSSES for bias in (0.0, 1.0) for regression in (False, True) for shape in ((400, 5), (5000, 4), (700, 300))
]  # fmt: skip


@pytest.mark.parametrize(("loss", "bias", "regression", "shape"), KINDS, ids=str)
def test_turns_are_few_and_each_is_proven(loss, bias, regression, shape, monkeypatch):
    """Bounds rise, objectives and h fall, steps are exact, and a gap of 1e-4 takes no more turns than ever (half more)."""
    n, d = shape
    problem = made(n=n, d=d, C=0.05 if d > 50 else 1.0, loss=loss, bias=bias, regression=regression)
    x = np.tile(np.column_stack([problem.X, np.full(n, bias)])[:, : problem.size], (problem.hinges // n, 1))
    x *= problem.sign[:, None]
    inverse = np.linalg.pinv(x)
    solver, steps, smooth, direction = Newton(problem, 1e-4), [], line_search.smooth, Directions.direction

    def toward(self, grad, found, h, goal, exact):
        if self.problem is problem:
            assert goal == 0.1 * 1e-4 * solver.objective and h == solver.h
        return direction(self, grad, found, h, goal, exact)

    def seen(of, m, q, quad, lin, h, accuracy):
        step = smooth(of, m, q, quad, lin, h, accuracy)
        assert accuracy == 0.05 and (h == 0.0 if loss == "squared_hinge" else 0 < h <= newton.START)
        if of is problem:
            steps.append((m.copy(), q.copy(), quad, lin, h, step))
        return step

    monkeypatch.setattr(line_search, "smooth", seen)
    monkeypatch.setattr(Directions, "direction", toward)
    end, said = listened(solver.turns())
    turns = [turn for turn in said if turn is not None]
    assert end is None and turns[-1].violation <= 1e-4
    assert len(turns) <= {("hinge", 5): 11, ("hinge", 4): 8, ("hinge", 300): 23}.get((loss, d), 11 if d == 300 else 6)
    for one, two in itertools.pairwise(turns):
        assert two.objective <= one.objective and two.dual >= one.dual and one.dual <= one.objective
        assert two.extra.get("rounding", 0.0) <= one.extra.get("rounding", newton.START)
    for m, q, quad, lin, h, step in steps:  # of the point and the direction whose margins these are
        w, p = inverse @ (m - problem.zeros()), inverse @ q
        np.testing.assert_allclose(x @ w + problem.zeros(), m, atol=1e-7)
        assert quad == pytest.approx(problem.inner(p, p), rel=1e-6) and lin == pytest.approx(problem.inner(w, p), rel=1e-6)
        slopes = [quad * k + lin + problem.C * problem.slope(h, m, q, k)[0] for k in (0.0, step)]
        assert slopes[0] < 0 and abs(slopes[1]) <= 0.05 * abs(slopes[0])
    told = [turn.extra["step"] for turn in turns if "rounding" in turn.extra][1:]
    assert told == [step for *_, step in steps][: len(told)]
    result = solver.result(Status.CONVERGED)
    assert result.status is Status.CONVERGED and 0 <= result.gap <= 1e-4 * result.objective


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_more_than_float64_has_is_not_waited_for(loss, regression, bias):
    """Asked for no gap at all, it ends by itself where nothing moves any more: at the optimum."""
    for seed in range(3):
        solver = Newton(made(seed, n=40, d=3, loss=loss, bias=bias, regression=regression), 1e-300)
        end, said = listened(solver.turns())
        assert end is Status.STALLED and len(said) < 400
        assert solver.result(end).violation <= 1e-9


@pytest.mark.parametrize("loss", LOSSES)
def test_cutting_planes_take_over_when_patience_ends(loss):
    for patience in (1, 4):
        solver = Newton(made(n=400, loss=loss), 1e-9, patience=patience)
        end, said = listened(solver.turns())
        turns = [turn for turn in said if turn is not None]
        assert end is None and turns[-1].violation <= 1e-9
        assert ["rounding" in turn.extra for turn in turns] == [True] * patience + [False] * (len(turns) - patience)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n", [60, 5000])
def test_a_good_start_is_gone_on_from_with_little_rounding_and_a_bad_one_is_not(loss, n):
    problem = made(n=n, loss=loss)
    first = Newton(problem, 1e-4)
    listened(first.turns())
    plain = next(turn for turn in listened(Newton(problem, 1e-4).turns())[1] if turn is not None)
    for given, expected in ((None, newton.WARM), (1e-3, 1e-3), (0.4, newton.WARM)):
        again = Newton(problem, 1e-4, start=first.best.w, rounding=given)
        turns = [turn for turn in listened(again.turns())[1] if turn is not None]
        assert turns[0].extra["rounding"] == (expected if loss == "hinge" else 0.0) and len(turns) <= 4
        assert turns[0].objective <= first.objective * (1 + 1e-12) and "sample" not in again.clock.seconds
    bad = Newton(problem, 1e-4, start=np.full(problem.size, 50.0))
    turn = next(turn for turn in listened(bad.turns())[1] if turn is not None)
    assert (turn.objective, turn.extra) == (plain.objective, plain.extra)
    proven = Newton(problem, 1e-3, start=first.best.w, known=first.result(Status.CONVERGED).cuts[0])
    (turn,) = (turn for turn in listened(proven.turns())[1] if turn is not None)
    assert turn.extra["step"] == 0.0 and turn.extra["rounding"] == proven.h and turn.violation <= 1e-3


def test_a_rough_solution_is_near_enough_to_begin_with():
    """It ends without a certificate, once h has fallen to ROUGH and the step was long."""
    for bias in (0.0, 1.0):
        problem = made(n=400, bias=bias)
        solver = Newton(problem, 1e-9, rough=True)
        end, said = listened(solver.turns())
        turns = [turn for turn in said if turn is not None]
        assert end is None and turns[-1].violation > 1e-9
        for turn in turns[:-1]:
            assert turn.extra["rounding"] > newton.ROUGH or turn.extra["step"] < 0.5
        assert turns[-1].extra["rounding"] <= newton.ROUGH and turns[-1].extra["step"] >= 0.5
        assert turns[-1].objective <= 1.05 * turns[-1].dual or turns[-1].violation < 0.2
