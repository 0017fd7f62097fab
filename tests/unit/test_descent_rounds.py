"""Rounds of coordinate descent: what each epoch is asked, which rows come next, when it ends, by their definitions."""

import itertools

import numpy as np
import pytest
from generators import listened

from maxmargin import _core
from maxmargin.linear import LinearProblem, descent
from maxmargin.linear.descent import Coordinates, Descent
from maxmargin.linear.problem import Sum
from maxmargin.linear.rounding import UNIT, gamma
from maxmargin.runtime import Status

LOSSES = ["hinge", "squared_hinge"]


def made(seed=0, n=40, d=4, C=0.8, loss="hinge", bias=1.0, regression=False, scale=1.0, **options):
    rng = np.random.default_rng(seed)
    X, weight = scale * rng.normal(size=(n, d)), rng.uniform(0.2, 2, n)
    target = X[:, 0] / scale + rng.normal(size=n)
    weight[5] = 0.0
    if not regression:
        sign = np.where(target > 0, 1.0, -1.0)
        sign[:2] = 1.0, -1.0
        return LinearProblem(X, sign, weight, C, loss, bias=bias, **options)
    shift = np.concatenate([1.1 - target, 1.1 + target])
    return LinearProblem(X, np.repeat([1.0, -1.0], n), np.tile(weight, 2), C, loss, bias=bias, shift=shift, **options)


KINDS = [(loss, bias, regression) for loss in LOSSES for bias in (0.0, 2.0) for regression in (False, True)]


def margins(problem, w):
    out = np.empty(problem.hinges)
    listened(problem.outputs(w, out))
    return out


@pytest.mark.parametrize(("loss", "bias", "regression"), KINDS)
def test_the_dual_problem_of_the_coordinates(loss, bias, regression):
    """Bounds C·weight and no bend, or none and a bend of 1/(2C·weight); rows without weight stay at 0."""
    problem = made(loss=loss, bias=bias, regression=regression)
    dual, some = Coordinates(problem, 3), problem.weight > 0
    if loss == "hinge":
        np.testing.assert_array_equal(dual.upper, 0.8 * problem.weight)
        assert not dual.diag.any()
    else:
        np.testing.assert_array_equal(dual.upper, np.where(some, np.inf, 0.0))
        np.testing.assert_allclose(dual.diag[some], 1 / (1.6 * problem.weight[some]), rtol=1e-12)
        assert np.isfinite(dual.diag).all()
    np.testing.assert_allclose(dual.norms, (problem.X**2).sum(axis=1), rtol=1e-12)
    shift = np.zeros(problem.hinges) if problem.shift is None else problem.shift
    np.testing.assert_array_equal(dual.target if len(dual.target) else np.ones(problem.hinges), 1 - shift)
    assert (dual.centre, dual.drift, dual.epochs) == (0.0, 0.0, 0) and not dual.alpha.any() and not dual.v.any()
    assert dual.v.shape == (problem.size,) and dual.alpha.shape == (problem.hinges,)


def test_the_feature_of_an_intercept_is_as_large_as_the_samples_or_lets_a_round_move_it_by_one():
    for scale in (1e-3, 1.0, 1e3):
        for C in (1e-4, 1.0, 1e4):
            problem = made(C=C, scale=scale, bias=2.0)
            dual = Coordinates(problem, 0)
            mean, reach = (problem.X**2).sum(axis=1).mean(), C * problem.weight.sum()
            assert dual.feature == pytest.approx(np.sqrt(max(mean, 1 / reach)), rel=1e-12)
            assert Coordinates(made(C=C, scale=scale, bias=2.0, penalised=True), 0).feature == 2.0
            assert Coordinates(made(C=C, scale=scale, bias=0.0), 0).feature == 0.0


@pytest.mark.parametrize(("loss", "bias", "regression"), KINDS)
def test_coordinates_begin_where_they_are_placed(loss, bias, regression):
    """Their sum is that of the rows, in the units of the feature that stands for the intercept; so is their rounding."""
    for penalised in (True, False):
        problem = made(loss=loss, bias=bias, regression=regression, penalised=penalised)
        alpha = problem.feasible(np.random.default_rng(1).uniform(0, 2, problem.hinges))
        dual, total = Coordinates(problem, 0), Sum(problem)
        listened(total.renew(alpha))
        dual.place(alpha, total, 0.7)
        x = np.tile(np.column_stack([problem.X, np.full(problem.n, dual.feature)])[:, : problem.size], (1 + regression, 1))
        expected = (0.8 * alpha * problem.sign) @ x
        np.testing.assert_allclose(dual.alpha, 0.8 * alpha, rtol=1e-12)
        np.testing.assert_allclose(dual.v, expected, rtol=1e-9, atol=1e-12)
        mass = 0.8 * alpha.sum()
        assert dual.drift == pytest.approx(0.8 * total.drift + 4 * UNIT * mass, rel=1e-9, abs=0)
        assert dual.centre == (0.7 * bias if problem.free_intercept else 0.0)
        dual.v[:], dual.drift = 0.0, 1.0
        listened(dual.renew())
        np.testing.assert_allclose(dual.v, expected, rtol=1e-9, atol=1e-12)
        fresh = Sum(problem)
        listened(fresh.renew(dual.alpha))
        assert dual.drift == pytest.approx(fresh.drift + 4 * UNIT * mass, rel=1e-9, abs=0)


# ---- epochs


class Epochs:
    """In the place of the core's: moves nothing, says what it is told, takes note of what it is asked."""

    linear_norms = _core.linear_norms

    def __init__(self, *said):
        self.said, self.asked = list(said), []

    def descent_epoch(self, matrix, active, count, sign, target, upper, diag, norms, feature, centre, above, below, alpha, v,
                      seed):  # fmt: skip
        self.asked.append((count, above, below, seed, feature, centre))
        return self.said[min(len(self.asked), len(self.said)) - 1]


def told(monkeypatch, *said):
    epochs = Epochs(*said)
    monkeypatch.setattr(descent, "_core", epochs)
    return Coordinates(made(), 100), epochs


def test_an_epoch_goes_on_from_the_last_and_sets_aside_by_its_violations(monkeypatch):
    """Limits are those of the epoch before, where it met violations on that side; none otherwise."""
    said = [(9, 3.0, -2.0, 0.5, 7), (8, -1.0, -2.0, 0.25, 6), (7, 3.0, 1.0, 0, 5), (6, 0.0, 0.0, 0, 4), (6, 1.0, -1.0, 0, 1)]
    dual, epochs = told(monkeypatch, *said)
    dual.epochs, dual.centre, dual.alpha[:] = 4, 0.3, 0.125
    spread, pauses = listened(dual.descend(np.arange(10), 1e9, -1.0))
    count = descent.EPOCHS
    assert spread == 2.0 and len(epochs.asked) == count and dual.epochs == 4 + count
    assert [asked[0] for asked in epochs.asked] == [10, 9, 8, 7, *[6] * (count - 4)]
    above = [np.inf, 3.0, np.inf, 3.0, np.inf, *[1.0] * (count - 5)]
    below = [-np.inf, -2.0, -2.0, -np.inf, -np.inf, *[-1.0] * (count - 5)]
    assert [asked[1] for asked in epochs.asked] == above and [asked[2] for asked in epochs.asked] == below
    assert [asked[3] for asked in epochs.asked] == [104 + k for k in range(count)]
    assert {asked[4:] for asked in epochs.asked} == {(dual.feature, 0.3)}
    assert len(pauses) == count // 4
    drift, mass = 0.0, 0.125 * 40
    for _, _, _, moved, steps in (*said, *[said[-1]] * (count - 5)):
        drift += gamma(steps + 1) * (mass + moved) + 4 * UNIT * moved
    assert dual.drift == pytest.approx(drift, rel=1e-12, abs=0)


@pytest.mark.parametrize(("largest", "smallest", "spread"), [(3.0, -2.0, 5.0), (3.0, 1.0, 3.0), (-1, -2, 2), (0, 0, 0)])
def test_the_range_of_violations_ends_epochs_that_reach_it(largest, smallest, spread, monkeypatch):
    for goal in (spread - 0.01, spread, spread + 0.01):
        dual, epochs = told(monkeypatch, (9, 9.0, -9.0, 0, 1), (9, largest, smallest, 0, 1))
        assert listened(dual.descend(np.arange(10), 1e9, goal))[0] == spread
        assert len(epochs.asked) == (2 if goal >= spread else descent.EPOCHS)


def test_epochs_end_when_so_many_rows_are_read_or_none_is_left(monkeypatch):
    for reads, expected in ((1, 1), (10, 1), (11, 2), (16, 2), (16.5, 3), (19, 3), (20, 4), (22, 4), (23, 5)):
        dual, epochs = told(monkeypatch, (6, 9.0, 0, 0, 1), (3, 8.0, 0, 0, 1))
        assert listened(dual.descend(np.arange(10), reads, 0.0))[0] == (9.0 if expected == 1 else 8.0)
        assert len(epochs.asked) == expected
    dual, epochs = told(monkeypatch, (6, 9.0, 0, 0, 1), (0, 8.0, 0, 0, 1))
    assert listened(dual.descend(np.arange(10), 1e9, 0.0))[0] == 8.0 and len(epochs.asked) == 2
    dual, epochs = told(monkeypatch, (6, 9.0, 0, 0, 1))
    assert listened(dual.descend(np.arange(0), 1e9, 0.0))[0] == 0.0 and not epochs.asked


# ---- rounds


@pytest.mark.parametrize("penalised", [True, False])
@pytest.mark.parametrize(("loss", "bias", "regression"), KINDS)
def test_rounds_go_on_with_the_rows_that_may_move(loss, bias, regression, penalised, monkeypatch):
    """All but those at a bound that hold it by more than the range of violations; around the intercept of the last point."""
    problem = made(loss=loss, bias=bias, regression=regression, penalised=penalised)
    solver, asked, descend = Descent(problem, 1e-7), [], Coordinates.descend

    def seen(self, active, reads, goal):
        asked.append((active.copy(), reads, goal, self.centre))
        spread = yield from descend(self, active, reads, goal)
        asked[-1] += (spread, self.alpha.copy(), margins(problem, self.point()), self.point())
        return spread

    monkeypatch.setattr(Coordinates, "descend", seen)
    end, said = listened(solver.turns())
    turns = [turn for turn in said if turn is not None]
    assert end is None and len(turns) == len(asked) >= 3 and turns[-1].violation <= 1e-7
    np.testing.assert_array_equal(asked[0][0], np.flatnonzero(problem.weight[: problem.n]))
    assert asked[0][2:4] == (0.1, 0.0)
    upper, left_out = solver._dual.upper, False
    for (_, _, goal, _, spread, alpha, m, w), (active, reads, next_goal, centre, *_) in itertools.pairwise(asked):
        u = 1 - m
        may = (upper > 0) & ~((alpha <= 0) & (u < -spread)) & ~((alpha >= upper) & (u > spread))
        np.testing.assert_array_equal(active, np.flatnonzero(may.reshape(-1, problem.n).any(axis=0)))
        left_out |= len(active) < problem.n - 1
        assert reads == descent.READS * problem.n and next_goal == max(min(goal, 0.2 * spread), 1e-13)
        assert centre == (w[-1] * bias if problem.free_intercept else 0.0)
    assert left_out
    for one, two in itertools.pairwise(turns):
        assert two.objective <= one.objective * (1 + 1e-12) and two.dual >= one.dual
    assert [turn.extra["epochs"] for turn in turns][-1] == solver._dual.epochs
    np.testing.assert_allclose(solver.duals(), solver._dual.alpha / problem.C)


@pytest.mark.parametrize(("loss", "bias", "regression"), KINDS)
def test_duals_and_points_of_an_earlier_fit_are_where_rounds_begin(loss, bias, regression):
    problem = made(loss=loss, bias=bias, regression=regression)
    first = Descent(problem, 1e-8)
    listened(first.turns())
    assert Descent(problem, 1e-3).duals() is None
    again = Descent(problem, 1e-7, start=first.best.w, duals=first.duals())
    turns = [turn for turn in listened(again.turns())[1] if turn is not None]
    assert len(turns) <= 3 and turns[0].objective <= first.objective * (1 + 1e-12)
    if bias:
        steps = Descent(problem, 1e-300, start=first.best.w, duals=first.duals()).turns()
        assert next(turn for turn in steps if turn is not None).violation <= 1e-3
    proven = Descent(problem, 1e-6, start=first.best.w, known=first.result(Status.CONVERGED).cuts[0])
    (turn,) = (turn for turn in listened(proven.turns())[1] if turn is not None)
    assert turn.extra["step"] == 0.0


def test_the_objective_follows_a_bound_that_leaves_it_behind(monkeypatch):
    """Where the bound has risen by less than a part of the gap, the point is stretched; where by more, it is not."""
    rises, stretch, improve = [], Descent.stretch, Descent.improve

    def seen(self, w, m):
        rises[-1][-1] = True
        stretch(self, w, m)

    def improved(self, w, m):
        lower = self.bundle.lower
        step = improve(self, w, m)
        rises.append([lower, self.gap, False])
        return step

    monkeypatch.setattr(Descent, "stretch", seen)
    monkeypatch.setattr(Descent, "improve", improved)
    kinds = []
    for n, C in ((400, 0.01), (400, 1.0), (40, 100.0)):
        listened(Descent(made(n=n, C=C, bias=0.0), 1e-5).turns())
        before = 0.0
        for lower, gap, stretched in rises:
            assert stretched == (lower - before < descent.LAGS * gap)
            before = lower
            kinds.append(stretched)
        del rises[:]
    assert any(kinds) and not all(kinds)


@pytest.mark.parametrize("patience", [1, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_cutting_planes_take_over_when_patience_ends(patience, loss):
    solver = Descent(made(loss=loss, n=200, C=50.0), 1e-9, patience=patience)
    end, said = listened(solver.turns())
    turns = [turn for turn in said if turn is not None]
    assert end is None and turns[-1].violation <= 1e-9
    assert ["epochs" in turn.extra for turn in turns] == [True] * patience + [False] * (len(turns) - patience)


class Resting(Coordinates):
    """Duals whose value is told, and a range of violations."""

    values, spread = iter(()), 0.0

    def descend(self, active, reads, goal):
        return self.spread
        yield

    def value(self):
        return next(self.values)


@pytest.mark.parametrize("spread", [0.0, 1e-10, 2e-10])
def test_rounds_end_after_five_that_raise_nothing_where_nothing_violates(spread):
    problem = made()
    for patience, kind in ((np.inf, Status.STALLED), (1e9, None)):
        for values, expected in (([1.0] * 99, 6), ([1.0, 1.0, 1.0, 2.0, *[2.0] * 99], 9), ([9.0 - k for k in range(99)], 6)):
            solver, dual = Descent(problem, 1e-6, patience=patience), Resting(problem, 0)
            dual.values, dual.spread = iter(values), spread
            solver.seed_cuts()
            turns, kept = solver.rounds(dual, problem.weighty()), []
            try:
                while True:
                    turn = next(turns)
                    if turn is not None:
                        kept.append(turn)
            except StopIteration as end:
                rounds = sum("epochs" in turn.extra for turn in kept)
                assert spread <= 1e-10 and rounds == expected and end.value is kind
                assert kind is not None or ("epochs" not in kept[-1].extra and kept[-1].violation <= 1e-6)
            except RuntimeError:  # no more values: it would have gone on
                assert spread > 1e-10
