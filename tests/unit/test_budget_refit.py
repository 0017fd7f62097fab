"""The refit: the minimum on its centres, within its memory, and blocks where memory is short."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from maxmargin import BudgetSVC
from maxmargin.budget.model import Options
from maxmargin.budget.newton import MOST_STEPS, Problem, _newton, minimise
from maxmargin.budget.refit import ROWS_PER_COEFFICIENT, Refit, bytes_needed, plan


def problem(n, budget, outputs=1, intercept=False, double=True, d=3, seed=0, C=2.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    labels = rng.integers(0, max(outputs, 2), n).astype(np.int32)
    options = Options(budget, d, outputs, 0.5, C, n, intercept=intercept, double=double)
    centres = rng.normal(size=(budget, d)).astype(np.float64 if double else np.float32)
    return x, labels, options, centres, rng


def value(x, labels, weight, options, centres, coef, intercept):
    """F of all outputs in plain NumPy."""
    kernel = lambda a, b: np.exp(-options.gamma * ((a[:, None] - b[None]) ** 2).sum(-1))  # noqa: E731
    centres = centres.astype(float)
    f = kernel(x, centres) @ coef.T + intercept
    sign = np.where(labels[:, None] == (1 if options.outputs == 1 else np.arange(options.outputs)), 1, -1)
    norm = np.sum((coef @ kernel(centres, centres)) * coef) + np.sum(intercept**2)
    return norm / 2 + options.C * float(weight @ np.maximum(0, 1 - sign * f).sum(axis=1))


def refit(x, labels, weight, options, centres, megabytes, rng, start=None, form=np.asarray):
    coef = np.zeros((options.outputs, len(centres))) if start is None else start.copy()
    intercept = np.zeros(options.outputs)
    made = Refit(form(x), np.arange(len(x)), labels, weight, megabytes, rng, 1, options)
    trail = [value(x, labels, weight, options, centres, coef, intercept)]
    for _ in made.turns(centres, coef, intercept):
        now = value(x, labels, weight, options, centres, coef, intercept)
        if now != trail[-1]:
            trail.append(now)
    trail.append(value(x, labels, weight, options, centres, coef, intercept))
    return made, trail, coef, intercept


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("double", [True, False])
def test_it_reaches_the_minimum_on_its_centres(outputs, intercept, form, double):
    x, labels, options, centres, rng = problem(150, 12, outputs, intercept, double)
    weight = rng.uniform(0.2, 3, 150)
    made, trail, *_ = refit(x, labels, weight, options, centres, 256, rng, form=form)
    assert made.plan.rows == 150 and made.plan.block == 12
    # The same problem as a linear machine: with K = LLᵀ the features are R·L⁻ᵀ, and an intercept is one more of value 1.
    kernel = lambda a, b: np.exp(-options.gamma * ((a[:, None] - b[None]) ** 2).sum(-1))  # noqa: E731
    points = centres.astype(float)
    features = np.linalg.solve(np.linalg.cholesky(kernel(points, points)), kernel(points, x)).T
    if intercept:
        features = np.column_stack([features, np.ones(150)])
    best = 0.0
    for c in range(outputs):
        own = labels == (1 if outputs == 1 else c)
        peer = LinearSVC(C=options.C, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0)
        w = peer.fit(features, own, sample_weight=weight).coef_[0]
        best += w @ w / 2 + options.C * weight @ np.maximum(0, 1 - np.where(own, 1, -1) * (features @ w))
    assert best <= trail[-1] * (1 + 1e-6) and trail[-1] <= 1.02 * best
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(trail))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("double", [True, False])
def test_blocks_lower_the_objective_one_after_the_other(outputs, intercept, double):
    """On all rows: every block's problem holds the others as they are, so that F of the whole falls with each."""
    x, labels, options, centres, rng = problem(300, 160, outputs, intercept, double)
    weight = rng.uniform(0.2, 3, 300)
    start = 0.1 * rng.normal(size=(outputs, 160))
    room = bytes_needed(300, 55, options) / 1e6
    made, trail, *_ = refit(x, labels, weight, options, centres, room, np.random.default_rng(1), start)
    assert made.plan.rows == 300 and made.plan.block == 55
    assert len(trail) >= 3 * outputs and all(b <= a * (1 + 1e-6) for a, b in pairwise(trail))
    _, whole, *_ = refit(x, labels, weight, options, centres, 256, np.random.default_rng(1), start)
    assert whole[-1] <= trail[-1] < whole[-1] + 0.3 * (trail[0] - whole[-1])  # most of what there is to gain
    assert made.done == made.stages == 4 * outputs * 3


@pytest.mark.parametrize(
    ("n", "budget", "megabytes", "options"),
    [
        (300, 20, 1.0, {}),
        (3000, 300, 100, {}),
        (3000, 300, 100, {"double": True, "intercept": True}),
        (20_000, 300, 8, {}),
        (20_000, 300, 30, {"intercept": True}),
        (20_000, 300, 30, {"double": True}),
        (9_000, 100, 8, {"outputs": 10}),
        (10_000, 2_500, 20, {}),
        (10_000, 10_000, 40, {"intercept": True}),
        (5_000, 5_000, 40, {"double": True, "intercept": True}),
    ],
)
def test_memory_stays_below_refit_memory(n, budget, megabytes, options, monkeypatch):
    """What is allocated at its peak, copies of the support vectors apart, whatever the budget."""
    monkeypatch.setattr("maxmargin.budget.newton.MOST_STEPS", 1)  # a second step allocates what the first did
    x, labels, opts, centres, rng = problem(n, budget, d=2, **{"double": False, **options})
    coef, intercept = np.zeros((opts.outputs, budget)), np.zeros(opts.outputs)
    made = Refit(x, np.arange(n), labels, np.ones(n), megabytes, rng, 1, opts)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in made.turns(centres, coef, intercept):
            pass
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak <= megabytes * 1e6
    assert peak >= 0.5 * min(megabytes * 1e6, bytes_needed(n, budget, opts) - 2**19)  # and it is made use of


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("outputs", [1, 5])
@pytest.mark.parametrize("megabytes", [0.6, 1, 3, 10, 256, 4000])
def test_plans(double, outputs, megabytes):
    """Within the limit, at least 30 rows per coefficient, and all rows and coefficients where they fit in."""
    for n in (10, 1000, 100_000, 10_000_000):
        for budget in (1, 49, 60, 500, 3000, 10_000):
            opts = Options(min(budget, n), 5, outputs, 1.0, 1.0, n, double=double, intercept=True)
            least = min(n, ROWS_PER_COEFFICIENT * opts.budget)
            try:
                made = plan(n, opts.budget, megabytes, opts)
            except ValueError as error:
                assert bytes_needed(least, min(50, opts.budget), opts) > megabytes * 1e6
                enough = float(str(error).split("give ")[1].split()[0])
                assert plan(n, opts.budget, enough, opts).block >= min(50, opts.budget)
                continue
            assert bytes_needed(made.rows, made.block, opts) <= megabytes * 1e6
            assert made.rows >= least and 1 <= made.block <= opts.budget
            if bytes_needed(n, opts.budget, opts) <= megabytes * 1e6:
                assert (made.rows, made.block) == (n, opts.budget)
            elif made.block == opts.budget:
                assert bytes_needed(made.rows + 1, made.block, opts) > megabytes * 1e6
            else:
                assert made.rows == least and bytes_needed(least, made.block + 1, opts) > megabytes * 1e6


def test_too_little_memory_is_refused_before_training():
    x, labels, *_ = problem(2000, 1)
    seen = []
    model = BudgetSVC(budget=1000, refit_memory=0.1, callback=seen.append)
    with pytest.raises(ValueError, match=r"refit_memory=0.1 \(megabytes\) is too small.*give .* or more, or refit=False"):
        model.fit(x, labels)
    assert not seen and not hasattr(model, "status_")
    assert model.set_params(refit=False, callback=None).fit(x, labels).refit_ == {}


def test_the_rows_drawn_stand_for_all():
    """One out of each of equal parts, each row at most once, and weights that add up to the whole."""
    _, _, options, _, rng = problem(1000, 5)
    weight = rng.uniform(0.5, 2, 1000)
    rows = rng.permutation(5000)[:1000]
    made = Refit(np.zeros((5000, 3)), rows, np.zeros(5000, np.int32), weight, 256, rng, 1, options)
    for count in (1, 7, 500, 999, 1000):
        drawn, share = made._sample(count)
        assert len(drawn) == len(set(drawn)) == count and set(drawn) <= set(rows)
        assert share.sum() == pytest.approx(weight.sum())
        place = np.flatnonzero(np.isin(rows, drawn))
        begins = np.arange(count) * 1000 // count
        np.testing.assert_array_equal(np.searchsorted(begins, place, "right"), np.arange(1, count + 1))
        assert count < 500 or (np.diff(drawn) < 0).any()  # in random order
    assert not np.array_equal(made._sample(7)[0], made._sample(7)[0])


def test_the_derivatives_are_those_of_the_smoothed_objective():
    rng = np.random.default_rng(0)
    design, sign, cost = rng.normal(size=(40, 5)), rng.choice([-1.0, 1.0], 40), rng.uniform(1, 3, 40)
    root = rng.normal(size=(5, 5))
    p = Problem(design, root @ root.T, sign, cost)
    p.offset, p.pull = rng.normal(size=40), rng.normal(size=5)
    f = lambda a: p.regulariser(a) + p.loss(p.values(a), 0.7)  # noqa: E731
    a, e = rng.normal(size=5), 1e-6 * np.eye(5)
    gradient = p.gradient(a, p.values(a), 0.7)
    np.testing.assert_allclose(gradient, [(f(a + h) - f(a - h)) / 2e-6 for h in e], rtol=1e-5, atol=1e-5)
    slopes = [(p.gradient(a + h, p.values(a + h), 0.7) - p.gradient(a - h, p.values(a - h), 0.7)) / 2e-6 for h in e]
    np.testing.assert_allclose(p.hessian(p.values(a), 0.7), slopes, rtol=1e-4, atol=1e-4)
    hinge = p.cost @ np.maximum(0, 1 - sign * (p.offset + design @ a))
    assert p.loss(p.values(a), 0) == pytest.approx(hinge)
    assert hinge <= p.loss(p.values(a), 0.7) <= hinge + cost.sum() * 0.7 / 8


class Watched(Problem):
    """Notes the points at which a minimisation asks for the gradient: where it begins, and where each step ends."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.points = []

    def gradient(self, a, values, delta):
        np.testing.assert_allclose(values, self.values(a), rtol=1e-9, atol=1e-9)  # kept up from step to step
        self.points.append(a.copy())
        return super().gradient(a, values, delta)


@pytest.mark.parametrize("delta", [1.0, 0.3, 0.1])
@pytest.mark.parametrize("seed", range(12))
def test_a_step_is_newtons_halved_until_it_lowers_the_smoothed_objective(seed, delta):
    """Lowers it by a part of what its slope promises (Armijo)."""
    rng = np.random.default_rng(seed)
    n, k = 60, 4
    design, root = rng.normal(size=(n, k)), rng.normal(size=(k, k))
    p = Watched(design, 10.0 ** (seed % 4 - 2) * root @ root.T, rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 2, n))
    p.offset, p.pull = rng.normal(size=n), 3 * rng.normal(size=k)
    f = lambda a: p.regulariser(a) + p.loss(p.values(a), delta)  # noqa: E731
    steps, end = _newton(p, 5 * rng.normal(size=k), delta), None
    while end is None:
        try:
            next(steps)
        except StopIteration as stop:
            end = stop.value
    halved = 0
    for k_th, (old, new) in enumerate(pairwise([*p.points, end]), 1):
        slope, before = Problem.gradient(p, old, p.values(old), delta), f(old)
        hessian = p.hessian(p.values(old), delta)
        newton = np.linalg.solve(hessian + 1e-8 * np.trace(hessian) / k * np.eye(k), -slope)
        rounding = 1e-9 * (1 + abs(before))
        short = [f(old + newton / 2**h) - before - 1e-4 * (slope @ newton) / 2**h for h in range(14)]  # length > 1e-4
        if np.array_equal(new, old):
            assert k_th == len(p.points) and min(short) >= -rounding  # it gives up where no length will do
            break
        halves = round(np.log2(np.linalg.norm(newton) / np.linalg.norm(new - old)))
        np.testing.assert_allclose(new - old, newton / 2**halves, rtol=1e-5, atol=1e-7)
        assert short[halves] <= rounding and min(short[:halves], default=0.0) >= -rounding
        small = -slope @ newton < 1e-3 * (max(p.regulariser(old), 0.0) + p.loss(p.values(old), delta))
        if k_th < MOST_STEPS:  # it ends with the first step that promised little
            assert small == (k_th == len(p.points))
        halved += halves
    assert halved or seed


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_numbers_that_overflow_end_a_minimisation(bad):
    """No endless search for a ridge: what cannot be solved leaves the coefficients as they are."""
    design, gram = np.full((20, 3), bad), np.eye(3)
    a = np.ones(3)
    with np.errstate(all="ignore"):
        steps = minimise(Problem(design, gram, np.ones(20), np.ones(20)), a)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                np.testing.assert_array_equal(end.value, a)
                break
