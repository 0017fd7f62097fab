"""The linear problem by its definitions: margins, risk, cuts, allowances of one or two hinges per sample, against NumPy."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from generators import paused

from maxmargin.linear import Extent, LinearProblem, choose, make
from maxmargin.linear import problem as module
from maxmargin.linear.descent import Descent
from maxmargin.linear.newton import Newton
from maxmargin.linear.ocas import Ocas
from maxmargin.linear.problem import Sum, exact_dot, intercept_of
from maxmargin.linear.solver import WIDE

LOSSES = ["hinge", "squared_hinge"]


def classified(seed=0, n=23, d=4, form=np.asarray, **options):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.1, 2, n) * (rng.random(n) < 0.8)
    weight[:2] = 1.0
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    return LinearProblem(form(rng.normal(size=(n, d))), sign, weight, 0.7, **options)


def regressed(seed=0, n=23, d=4, epsilon=0.3, **options):
    """max(0, |y − f| − ε) as two hinges."""
    rng = np.random.default_rng(seed)
    y, weight = 3 * rng.normal(size=n), rng.uniform(0.1, 2, n) * (rng.random(n) < 0.8)
    weight[:2] = 1.0
    shift = np.concatenate([1 + epsilon - y, 1 + epsilon + y])
    sign = np.repeat([1.0, -1.0], n)
    return LinearProblem(rng.normal(size=(n, d)), sign, np.tile(weight, 2), 0.7, shift=shift, **options), y


def margins(problem, w):
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    f = X @ w[: problem.d] + (problem.bias * w[-1] if problem.bias else 0.0)
    f = np.tile(f, problem.hinges // problem.n)
    return problem.sign * f + (0.0 if problem.shift is None else problem.shift)


def risk(problem, w, some=slice(None)):
    short = np.maximum(0.0, 1 - margins(problem, w))
    return float((problem.weight * (short if problem.loss == "hinge" else short**2))[some].sum())


def kinds(**options):
    yield classified(**options)
    yield regressed(**options)[0]


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_margins_risk_and_objective_are_those_of_the_definition(loss, bias):
    rng = np.random.default_rng(1)
    for penalised in (False, True):
        for problem in kinds(loss=loss, bias=bias, penalised=penalised):
            w, out = rng.normal(size=problem.size), np.empty(problem.hinges)
            paused(problem.outputs(w, out))
            np.testing.assert_allclose(out, margins(problem, w), rtol=1e-12, atol=1e-12)
            assert problem.risk(out) == pytest.approx(risk(problem, w), rel=1e-12)
            free = bias and not penalised
            length = w[:-1] @ w[:-1] if free else w @ w
            assert problem.value(w, 3.0) == pytest.approx(0.5 * length + 0.7 * 3.0, rel=1e-12)
            paused(problem.outputs(w, out, shifted=False))
            np.testing.assert_allclose(out, margins(problem, w) - margins(problem, 0 * w), atol=1e-12)
            np.testing.assert_allclose(problem.zeros(), margins(problem, 0 * w))
            at, k = problem.zeros(), 0.3
            assert problem.advance(at, out, k) == pytest.approx(risk(problem, k * w), rel=1e-12)
            np.testing.assert_allclose(at, margins(problem, k * w), atol=1e-12)


def test_regression_is_the_loss_beyond_epsilon():
    problem, y = regressed(bias=1.0)
    squared, _ = regressed(bias=1.0, loss="squared_hinge")
    w = np.random.default_rng(2).normal(size=problem.size)
    beyond = np.maximum(0, np.abs(y - problem.X @ w[:-1] - w[-1]) - 0.3)
    assert risk(problem, w) == pytest.approx(problem.weight[: problem.n] @ beyond, rel=1e-12)
    assert risk(squared, w) == pytest.approx(problem.weight[: problem.n] @ beyond**2, rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("rows", [1, 7, 22, 23, 24])
def test_long_passes_pause_between_blocks_and_nowhere_else(monkeypatch, form, rows):
    """As many pauses as there are ends of blocks inside, and every row is read once."""
    problem = classified(form=form, bias=1.0)
    monkeypatch.setattr(module, "BLOCK", rows * problem.stored // problem.n + 1)
    assert problem.rows_per_call() == rows
    blocks, w, out = -(-problem.n // rows), np.arange(5.0), np.empty(problem.n)
    assert paused(problem.outputs(w, out))[1] == blocks - 1
    np.testing.assert_allclose(out, margins(problem, w), atol=1e-12)
    assert problem.passes == pytest.approx(1.0) and problem.pass_seconds > 0
    paused(problem.outputs(w, out))
    assert problem.passes == pytest.approx(2.0)
    some, a = np.arange(1, problem.n), np.ones(problem.size)
    delta = np.linspace(-1, 2, len(some))
    (depth, moved), pauses = paused(problem.add(a, some, delta))
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    np.testing.assert_allclose(a, 1 - np.append(delta @ X[some], delta.sum()), atol=1e-12)
    assert moved == pytest.approx(np.abs(delta).sum()) and pauses == -(-len(some) // rows) - 1
    assert depth >= 22


def test_a_call_takes_a_row_even_of_more_values_than_a_block(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 1)
    assert classified().rows_per_call() == 1
    assert LinearProblem(sp.csr_matrix((3, 2)), np.ones(3), np.ones(3), 1.0).rows_per_call() == 3


def test_numbers_of_a_problem():
    problem, (two, _) = classified(bias=1.0), regressed()
    assert (problem.n, problem.d, problem.size, problem.hinges, problem.count, problem.terms) == (23, 4, 5, 23, 23, 23)
    assert (two.n, two.d, two.size, two.hinges, two.count, two.terms) == (23, 4, 4, 46, 23, 46)
    assert problem.stored == 92 and problem.entries == 4
    sparse = LinearProblem(sp.csr_matrix(np.eye(6)[:, :2]), np.ones(6), np.ones(6), 1.0)
    assert sparse.stored == 2 and sparse.entries == 1 / 3
    assert problem.free_intercept and not two.free_intercept and not classified(bias=1.0, penalised=True).free_intercept
    assert problem.mass == pytest.approx(problem.weight.sum()) and problem.heaviest == problem.weight.max()
    np.testing.assert_array_equal(problem.weighty(), np.flatnonzero(problem.weight > 0))
    np.testing.assert_array_equal(two.weighty(), np.flatnonzero(two.weight[:23] > 0))


@pytest.mark.parametrize("loss", LOSSES)
def test_some_samples_stand_for_all(loss):
    """Their hinges, all of them, and C so that the whole weight counts as before."""
    for problem in kinds(loss=loss, bias=1.0):
        rows = np.array([0, 1, 5, 22])
        part = problem.subset(rows)
        hinges = np.concatenate([rows + k * problem.n for k in range(problem.hinges // problem.n)])
        np.testing.assert_array_equal(part.X, problem.X[rows])
        np.testing.assert_array_equal(part.sign, problem.sign[hinges])
        np.testing.assert_array_equal(part.weight, problem.weight[hinges])
        if problem.shift is not None:
            np.testing.assert_array_equal(part.shift, problem.shift[hinges])
        assert part.C * part.weight.sum() == pytest.approx(problem.C * problem.weight.sum(), rel=1e-12)
        assert (part.loss, part.bias) == (loss, 1.0)


def test_hinges_belong_to_samples():
    one, (two, _) = classified(), regressed()
    hinges = np.array([0, 3, 22])
    np.testing.assert_array_equal(one.samples(hinges), hinges)
    assert one.per_sample(hinges, np.arange(3.0))[0] is hinges
    both = np.array([0, 3, 22, 23, 24, 45])
    np.testing.assert_array_equal(two.samples(both), [0, 3, 22, 0, 1, 22])
    rows, total = two.per_sample(both, np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]))
    np.testing.assert_array_equal(rows, [0, 1, 3, 22])
    np.testing.assert_array_equal(total, [9.0, 16.0, 2.0, 36.0])


def test_a_sample_of_regression_is_counted_once():
    problem, _ = regressed()
    m = np.full(problem.hinges, 9.0)
    m[[0, 23, 1, 24 + 21]] = 1.0  # both hinges of the first sample, the first of the second, the second of the last
    expected = np.zeros(23, bool)
    expected[[0, 1, 22]] = True
    assert problem.support(m, 0.1) == int((expected & (problem.weight[:23] > 0)).sum())


# ---- cuts


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_duals_of_margins_are_a_cut_that_touches_there(loss, bias):
    """R ≥ ⟨a, w⟩ + b everywhere, with equality at the point whose margins they are of."""
    rng = np.random.default_rng(3)
    for problem in kinds(loss=loss, bias=bias):
        w, alpha = rng.normal(size=problem.size), np.zeros(problem.hinges)
        found = problem.duals(alpha, margins(problem, w))
        assert problem.feasible(alpha) == pytest.approx(alpha) and (alpha >= 0).all()
        assert found.risk == pytest.approx(risk(problem, w), rel=1e-12)
        assert found.mass == pytest.approx(alpha.sum(), rel=1e-12)
        offset, size = problem.offset(alpha, float(alpha.sum()), problem.curve(alpha))
        assert found.offset == pytest.approx(offset, rel=1e-9) and size >= abs(offset)
        assert found.size == pytest.approx(size, rel=1e-9)
        total = Sum(problem)
        paused(total.renew(alpha))
        cut = total.cut(offset, found.mass, size)
        assert cut.b <= offset and cut.b == pytest.approx(offset, rel=1e-9, abs=1e-9)
        assert cut.a @ w + cut.b == pytest.approx(risk(problem, w), rel=1e-9)
        for other in rng.normal(size=(50, problem.size)) * 10.0 ** rng.uniform(-2, 2, (50, 1)):
            assert cut.a @ other + cut.b <= risk(problem, other) * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_mixture_of_margins_has_their_duals(loss):
    rng = np.random.default_rng(4)
    for problem in kinds(loss=loss):
        m, other = rng.normal(size=problem.hinges), rng.normal(size=problem.hinges)
        mixed, alone = np.zeros(problem.hinges), np.zeros(problem.hinges)
        problem.duals(mixed, m, other, 0.3)
        problem.duals(alone, 0.7 * m + 0.3 * other)
        np.testing.assert_allclose(mixed, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_size_of_an_offset_is_that_of_what_is_added_up(loss):
    """Shifts are sums themselves: each counts with all that may have been rounded in it."""
    rng = np.random.default_rng(5)
    for problem in kinds(loss=loss):
        alpha = problem.feasible(rng.uniform(0, 3, problem.hinges))
        curve = problem.curve(alpha)
        some = problem.weight > 0
        bent = (alpha[some] ** 2 / problem.weight[some]).sum() / 4 if loss == "squared_hinge" else 0.0
        assert curve == pytest.approx(bent, rel=1e-12)
        shift = np.zeros(problem.hinges) if problem.shift is None else problem.shift
        offset, size = problem.offset(alpha, float(alpha.sum()), curve)
        assert offset == pytest.approx(alpha @ (1 - shift) - curve, rel=1e-12)
        assert alpha @ (1 + np.abs(shift)) + curve <= size * (1 + 1e-12)
        assert size <= alpha @ (4 + 2 * np.abs(shift)) + curve + 1e-12


def test_duals_of_other_weights_are_cut_to_what_is_allowed():
    duals = np.linspace(-1, 5, 23)
    problem, squared = classified(), classified(loss="squared_hinge")
    allowed = problem.feasible(duals)
    np.testing.assert_array_equal(allowed, np.minimum(np.maximum(duals, 0), problem.weight))
    np.testing.assert_array_equal(squared.feasible(duals), np.where(squared.weight > 0, np.maximum(duals, 0), 0.0))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("target", [-6.0, -0.5, 0.0, 2.0])
def test_the_offset_of_all_hinges_of_one_sign_is_no_deeper_than_said(loss, target):
    """Equal targets: of one sign it is exactly as deep, of the other less, and 0 where none lies below 0."""
    n, epsilon = 5, 0.25
    shift = np.repeat([1 + epsilon - target, 1 + epsilon + target], n)
    sign = np.repeat([1.0, -1.0], n)
    problem = LinearProblem(np.ones((n, 1)), sign, np.ones(2 * n), 1.0, loss, bias=1.0, shift=shift)
    depths = []
    for label in (1.0, -1.0):
        alpha = np.where(sign == label, problem.weight, 0.0)
        offset, _ = problem.offset(alpha, float(alpha.sum()), problem.curve(alpha))
        depths.append(-offset / alpha.sum())
    assert problem.bounds.depth == pytest.approx(max(0.0, *depths), abs=1e-12)
    assert classified(bias=1.0).bounds.depth == 0.0


def test_the_lightest_class_and_the_reach_of_bounds():
    problem = classified(bias=3.0)
    classes = [problem.weight[problem.sign == label].sum() for label in (1.0, -1.0)]
    bounds = problem.bounds
    assert bounds.lightest == pytest.approx(min(classes)) and (bounds.intercepts, bounds.bias) == (1, 3.0)
    assert bounds.C == problem.C and classified(bias=3.0, penalised=True).bounds.intercepts == 0
    w = np.arange(5.0)
    assert (w[bounds.free] == [4.0]).all() and not len(w[classified(bias=3.0, penalised=True).bounds.free])


# ---- rounding


def exactly(values):
    return [Fraction(float(v)) for v in values]


@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("penalised", [True, False])
def test_no_margin_is_further_off_than_said(bias, penalised):
    """By rational arithmetic; and what is said stays within a few times the usual bound of a sum of products."""
    rng = np.random.default_rng(6)
    for seed in range(4):
        for problem in kinds(seed=seed, bias=bias, penalised=penalised):
            problem.X *= 10.0 ** rng.uniform(-6, 6, problem.d)
            problem = LinearProblem(
                problem.X, problem.sign, problem.weight, 1.0, bias=bias, penalised=penalised, shift=problem.shift
            )
            w, out = rng.normal(size=problem.size) * 10.0 ** rng.uniform(-6, 6, problem.size), np.empty(problem.hinges)
            paused(problem.outputs(w, out))
            off, most, usual = problem.off(w), Fraction(0), 0.0
            shift = np.zeros(problem.hinges) if problem.shift is None else problem.shift
            for k in range(problem.hinges):
                row = np.append(problem.X[k % problem.n], bias)[: problem.size]
                products = [x * v for x, v in zip(exactly(row), exactly(w))]
                true = Fraction(problem.sign[k]) * sum(products) + Fraction(shift[k])
                most = max(most, abs(true - Fraction(out[k])))
                usual = max(usual, float(sum(map(abs, products)) + abs(Fraction(shift[k]))))
            assert most <= Fraction(off)
            assert off <= 8 * (problem.d + 8) * 2.0**-53 * (1 + usual) * problem.size
            assert problem.off(2 * w) >= off


@pytest.mark.parametrize("loss", LOSSES)
def test_the_risk_is_no_further_off_than_said_when_margins_are(loss):
    rng = np.random.default_rng(7)
    for problem in kinds(loss=loss):
        m, off = rng.uniform(0, 2, problem.hinges), 0.25
        m[:6] = [0.0, 0.5, 1.0, 1.1, 1.25, 1.3]
        said = problem._risk_doubt(m, off)

        def at(moved, problem=problem):
            short = np.maximum(0.0, 1 - moved)
            return float(problem.weight @ (short if problem.loss == "hinge" else short**2))

        for e in (off, -off, *rng.uniform(-off, off, (40, problem.hinges))):
            assert abs(at(m + e) - at(m)) <= said * (1 + 1e-12)
        lossy = np.minimum(m, 1.0)  # where all have a loss the worst is attained
        assert problem._risk_doubt(lossy, off) == pytest.approx(at(lossy - off) - at(lossy), rel=1e-12)
        assert problem._risk_doubt(np.full(problem.hinges, 1 + off), off) == 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_is_no_further_off_than_its_doubt(loss):
    rng = np.random.default_rng(8)
    for problem in kinds(loss=loss, bias=1.0):
        w, m = 30 * rng.normal(size=problem.size), np.empty(problem.hinges)
        paused(problem.outputs(w, m))
        value, doubt = problem.value(w, problem.risk(m)), problem.doubt(w, m, problem.risk(m))
        X, true = np.column_stack([problem.X, np.ones(problem.n)]), Fraction(0)
        shift = np.zeros(problem.hinges) if problem.shift is None else problem.shift
        for k in range(problem.hinges):
            f = sum(x * v for x, v in zip(exactly(X[k % problem.n]), exactly(w)))
            short = max(Fraction(0), 1 - Fraction(problem.sign[k]) * f - Fraction(shift[k]))
            true += Fraction(problem.weight[k]) * (short if loss == "hinge" else short**2)
        true = Fraction(problem.C) * true + sum(v * v for v in exactly(w[:-1])) / 2
        assert abs(true - Fraction(value)) <= Fraction(doubt)
        assert 0 < doubt <= 1e-12 * value


@pytest.mark.parametrize("level", [0.0, 5e7])
@pytest.mark.parametrize("centre", [None, np.array([3e9, -1e5, 0.1])])
def test_what_is_published_is_the_point_with_the_intercept_that_float64_has(centre, level):
    """Its weights are the same; its intercept, for the samples as the user has them, is a float64 and rounded once."""
    rng = np.random.default_rng(9)
    X, w, bias = rng.normal(size=(4, 3)), rng.normal(size=4), 2.0
    problem = LinearProblem(X, np.ones(4), np.ones(4), 1.0, bias=bias, centre=centre, level=level)
    given = w.copy()
    out = problem.published(w)
    np.testing.assert_array_equal(w, given)
    np.testing.assert_array_equal(out[:-1], w[:-1])
    across = Fraction(0) if centre is None else sum(a * b for a, b in zip(exactly(w), exactly(centre)))
    user = float(Fraction(bias * w[-1]) - across + Fraction(level))
    assert intercept_of(w, centre, bias, level) == user
    assert out[-1] == (float(Fraction(user) + across - Fraction(level)) / bias if centre is not None or level else w[-1])
    assert exact_dot(w, None, 1e16, 1.0, -1e16) == 1.0


def test_what_overflows_is_refused_and_what_does_not_is_finite():
    """Just inside, every number that a solver makes first is finite."""
    for loss in LOSSES:
        for power in range(20, 320, 20):
            X = np.array([[1.0], [-2.0], [1.5]]) * 10.0**power
            try:
                problem = LinearProblem(X, np.array([1.0, -1.0, 1.0]), np.ones(3), 1.0, loss, bias=1.0)
            except ValueError:
                break
            alpha, total = np.ones(3), Sum(problem)
            paused(total.renew(alpha))
            assert np.isfinite(problem.inner(total.a, total.a))
        assert 60 <= power < 320
    with pytest.raises(ValueError, match="Scale the features"):
        LinearProblem(np.ones((3, 1)), np.ones(3), np.ones(3), 1e200)
    for C, weight in ((1e60, 1e100), (1e-100, 1e-80), (1e160, 1e-60), (1e-60, 1e160)):  # it is their product that counts
        if C * weight > 1e150:
            with pytest.raises(ValueError, match="lower C"):
                LinearProblem(np.ones((3, 1)), np.ones(3), np.full(3, weight), C)
        else:
            LinearProblem(np.ones((3, 1)), np.ones(3), np.full(3, weight), C)


# ---- which solver


def test_which_solver_for_which_shape():
    def of(n, d, form=np.zeros):
        return choose(LinearProblem(form((n, d)), np.ones(n), np.ones(n), 1.0, extent=Extent(np.ones(d), 1.0)))

    assert of(20, 20) == "newton" and of(20, 21) == "descent"  # as many rows as features, or fewer
    assert of(200, 127) == "newton" and of(128, 128) == "newton"
    assert of(1000, 128, sp.csr_matrix) == "descent" and of(1000, 127, sp.csr_matrix) == "newton"  # a matrix that costs more
    assert of(WIDE, WIDE) == "newton" and of(WIDE + 1, WIDE + 1) == "descent"

    class Elsewhere(LinearProblem):
        at_hand = False

    one = classified()
    far = Elsewhere(one.X, one.sign, one.weight, 1.0, extent=one.extent)
    assert choose(far) == "ocas"


def test_solvers_are_made_by_their_names():
    problem = classified()
    made = {name: make(problem, 1e-3, name) for name in ("ocas", "cpa", "newton", "descent", "auto")}
    assert [type(made[name]) for name in made] == [Ocas, Ocas, Newton, Descent, Newton]
    assert made["ocas"].optimised and not made["cpa"].optimised
    assert made["newton"].patience == made["descent"].patience == np.inf > made["auto"].patience
    start, duals = np.ones(4), np.ones(23)
    for name in made:
        solver = make(problem, 1e-3, name, start=start, duals=duals, rounding=0.1)
        assert solver.start is start and solver.tol == 1e-3
        if isinstance(solver, Newton):
            assert solver.h == 0.1
        else:
            np.testing.assert_array_equal(solver.given, problem.weight.clip(0, 1))
