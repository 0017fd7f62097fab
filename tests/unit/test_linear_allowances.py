"""What linear machines allow for rounding, number by number as the head of `rounding` and the methods say it.

Other tests hold that the allowances are enough. An allowance that is larger than it need be proves less than could be known.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data.matrix import as_matrix
from maxmargin.linear import LinearProblem
from maxmargin.linear.bundle import Bundle
from maxmargin.linear.joint_problem import JointProblem
from maxmargin.linear.one_norm import OneNorm
from maxmargin.linear.problem import Extent, Sum
from maxmargin.linear.rounding import SLOP, UNIT, Bounds, Cut, dot, gamma
from maxmargin.runtime import drained

KINDS = list(itertools.product(("hinge", "squared_hinge"), (0.0, 2.0), (False, True)))  # loss, bias, regression


def made(loss="hinge", bias=1.0, regression=False, seed=0, n=30, d=4, C=0.7, form=np.asarray, **options):
    rng = np.random.default_rng(seed)
    X, weight, target = form(rng.normal(size=(n, d))), rng.uniform(0.2, 2, n), 2 * rng.normal(size=n)
    if not regression:
        return LinearProblem(X, np.where(np.arange(n) % 3, 1.0, -1.0), weight, C, loss, bias=bias, **options)
    shift = np.concatenate([1.1 - target, 1.1 + target])
    return LinearProblem(X, np.repeat([1.0, -1.0], n), np.tile(weight, 2), C, loss, bias=bias, shift=shift, **options)


def test_gamma_is_that_of_the_book_and_a_hundredth_more():
    for k in (0, 1, 7, 1000, 1e9):
        assert gamma(k) == pytest.approx(1.01 * k * 2.0**-53 / (1 - k * 2.0**-53), rel=1e-12, abs=0)
    assert gamma(1000) == SLOP and UNIT == 2.0**-53


# ---- bounds


@pytest.mark.parametrize("intercepts", [0, 1, 3])
@pytest.mark.parametrize("long", [False, True])
def test_a_bound_is_the_best_multiple_of_the_worst_cut_within_the_drift(intercepts, long):
    """Over all shares s that leave room for what is astray; nothing below 0."""
    kinds = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        block = 4 if intercepts else 3
        size = block * max(1, intercepts)
        largest = np.tile([0.5, 2.0, 1.0, 0.0][:block], max(1, intercepts))
        free = slice(3, None, 4) if intercepts else slice(0, 0)
        length, C = (9.0 if long else 0.7), 10.0 ** rng.uniform(-2, 1)
        bias, lightest, depth = rng.uniform(0.5, 2), rng.uniform(1, 5), rng.choice([0.0, 0.4])
        extra = (free, intercepts, bias, lightest, depth) if intercepts else ()
        bounds = Bounds(C, largest, length, *extra)
        a, drift = rng.normal(size=size), rng.choice([0.0, 1e-3, 0.1])
        a[free] *= rng.choice([0.0, 1e-2])
        b = rng.uniform(-0.5, 6)
        seen = a.copy()
        seen[free] = 0.0
        astray = intercepts * (np.abs(a[free]).sum() / bias + intercepts * drift) if intercepts else 0.0
        most = 1 / (1 + astray / lightest)
        error, offset = drift + astray, b - astray * depth
        across = min(np.abs(seen) @ largest, np.linalg.norm(seen) * length)
        square = seen @ seen + 2 * error * across + error**2 * min(largest @ largest, length**2)
        best = offset / (C * square)
        share = min(most, max(0.0, best))
        expected = max(0.0, share * C * offset - 0.5 * (share * C) ** 2 * square)
        found = bounds.lower(a, b, drift)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-300) and found <= expected
        kinds.add((share == most, share == 0.0))
        assert bounds.across(seen) == pytest.approx(across, rel=1e-12)
        cut = Cut(a, b, 1.0, drift)
        assert bounds.allowance(cut) == pytest.approx(C**2 * drift * (1 + intercepts**2) * across, rel=1e-12, abs=1e-300)
    assert len(kinds) == 3
    nothing = Bounds(2.0, np.ones(2), 1.0)
    assert nothing.lower(np.zeros(2), 3.0, 0.0) == pytest.approx(6.0, rel=1e-12)  # no bend: all of it
    assert nothing.lower(np.zeros(2), -3.0, 0.0) == 0.0


def test_the_offset_of_a_cut_is_less_what_a_sum_of_its_terms_may_be_off():
    for terms, size in ((10, 3.0), (10**6, 1e5)):
        cut = Cut.of(np.ones(2), 0.0, 1.5, 1e-9, terms, size)
        assert -cut.b == pytest.approx(gamma(terms + 8) * size, rel=1e-12, abs=0) and (cut.mass, cut.drift) == (1.5, 1e-9)
        assert Cut.of(np.ones(2), 2.0, 1.5, 1e-9, terms, size).b == pytest.approx(2.0 - gamma(terms + 8) * size, rel=1e-15)


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_a_mixture_drifts_as_its_cuts_and_by_what_its_intercept_leaves(bias):
    problem = made(bias=bias)
    rng, bundle, cuts = np.random.default_rng(1), Bundle(problem), []
    for k in range(12):
        a = rng.normal(size=problem.size)
        cuts.append(Cut(a, rng.normal(), rng.uniform(1, 2), 10.0 ** -(k % 4)))
        bundle.add(cuts[-1])
    beta = rng.uniform(0, 0.1, 12)
    mixed = bundle._mixture(beta)
    a = beta @ np.array([bundle._balanced(cut).a for cut in cuts])
    astray = abs(a[-1]) / bias if bias else 0.0
    drifts = np.array([bundle._balanced(cut).drift for cut in cuts])
    assert mixed.drift == pytest.approx(beta @ drifts + astray, rel=1e-9, abs=0)
    assert mixed.mass == pytest.approx(sum(b * cut.mass for b, cut in zip(beta, cuts)), rel=1e-12)
    sums = [float(beta @ np.array(values)) for values in ([c.b for c in cuts], [abs(c.b) for c in cuts])]
    assert mixed.b == pytest.approx(sums[0], rel=1e-12) and mixed.b < sums[0]
    a[problem.free] = 0.0
    np.testing.assert_allclose(mixed.a, a, atol=1e-12)
    alone, own = bundle._mixture(np.eye(12)[3]), bundle._balanced(cuts[3])
    left = abs(own.a[-1]) / bias if bias else 0.0
    assert alone.drift == pytest.approx(own.drift + gamma(14) * own.mass + left, rel=1e-12, abs=0)


# ---- sums and margins


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_a_sum_drifts_by_every_move_and_is_worn_when_a_new_one_would_be_much_nearer(bias):
    problem, rng = made(bias=bias), np.random.default_rng(2)
    total, rows = Sum(problem), np.arange(30)
    drift = fresh = 0.0
    for _ in range(6):
        delta, mass = rng.normal(size=30), rng.uniform(1, 9)
        (depth, moved) = drained(problem.add(np.zeros(problem.size), rows, delta))
        assert moved == pytest.approx(np.abs(delta).sum())
        drained(total.move(rows, delta, mass))
        drift += gamma(depth + 4) * moved + 2 * UNIT * mass
        fresh = fresh or gamma(depth + 6)
        assert total.drift == pytest.approx(drift, rel=1e-12, abs=0)
        for part in (0.99, 1.01):
            assert total.worn(drift / (4 * fresh) * part) == (part < 1)
        cut = total.cut(0.0, mass, 5.0)
        assert cut.a is total.a and (cut.mass, cut.drift) == (mass, total.drift)
        assert -cut.b == pytest.approx(gamma(problem.terms + 8) * 5.0, rel=1e-12, abs=0)
    alpha = rng.uniform(0, 1, 30)
    drained(total.renew(alpha))
    other = Sum(problem)
    drained(other.move(rows, problem.sign * alpha, float(alpha.sum())))
    assert total.drift == pytest.approx(other.drift, rel=1e-12, abs=0) and not total.worn(float(alpha.sum()))


@pytest.mark.parametrize("count", [1, 127, 128, 1000])
def test_additions_of_an_intercept_are_counted(count):
    """Up to 127 terms NumPy adds one by one; more of them in pairs of blocks."""
    problem, a = made(n=1000, bias=2.0), np.zeros(5)
    assert problem.add_bias(a, np.ones(count)) == (count if count < 128 else 24 + count.bit_length())
    assert a.tolist() == [0.0] * 4 + [-2.0 * count]
    none = np.zeros(4)
    assert made(n=1000, bias=0.0).add_bias(none, np.ones(count)) == 0 and not none.any()


@pytest.mark.parametrize("penalised", [True, False])
@pytest.mark.parametrize(("loss", "bias", "regression"), KINDS)
def test_how_far_margins_and_objectives_may_be_off(loss, bias, regression, penalised):
    problem, rng = made(loss, bias, regression, penalised=penalised), np.random.default_rng(3)
    columns, norm = np.abs(problem.X).max(axis=0), np.sqrt((problem.X**2).sum(axis=1).max())
    farthest = 0.0 if problem.shift is None else np.abs(problem.shift).max()
    inside = bias != 0 and penalised
    largest, length = (np.append(columns, bias), np.hypot(norm, bias)) if inside else (columns, norm)
    for scale in (1e-2, 1.0, 1e3):
        w = scale * rng.normal(size=problem.size)
        seen = w if inside or not bias else w[:-1]
        reach = min(np.abs(seen) @ largest, np.linalg.norm(seen) * length)
        free = abs(w[-1]) * bias if problem.free_intercept else 0.0
        off = gamma(problem.d + 8) * (1 + reach + free + 2 * farthest)
        assert problem.off(w) == pytest.approx(off, rel=1e-9, abs=0)
        m = np.empty(problem.hinges)
        drained(problem.outputs(w, m))
        risk, short = problem.risk(m), np.maximum(1 - m, 0)
        near = 1 - m > -off
        risks = off * problem.weight[near] @ (np.ones(near.sum()) if loss == "hinge" else 2 * short[near] + off)
        expected = problem.C * (risks + gamma(problem.terms + 8) * risk) + gamma(problem.size + 8) * (seen @ seen)
        assert problem.doubt(w, m, risk) == pytest.approx(expected, rel=1e-6, abs=0)
    bounds = problem.bounds
    assert bounds.length == pytest.approx(length, rel=1e-12)
    np.testing.assert_array_equal(bounds.largest, np.append(columns, bias if penalised else 0.0)[: problem.size])


def test_the_doubt_of_joint_problems_is_of_both_classes():
    one = made()
    problem = JointProblem.of(one, np.arange(30) % 3, 3)
    scores = np.random.default_rng(4).normal(size=(30, 3))
    losses = problem._losses(scores)
    for off in (1e-3, 0.3):
        expected = 2 * off * problem.weight[losses > -2 * off].sum()
        assert problem._risk_doubt(scores, off) == pytest.approx(expected, rel=1e-12, abs=0)
    bounds, single = problem.bounds, one.bounds
    np.testing.assert_array_equal(bounds.largest, np.tile(single.largest, 3))
    assert bounds.length == pytest.approx(np.sqrt(2) * single.length, rel=1e-12) and bounds.intercepts == 3


@pytest.mark.parametrize("penalised", [True, False])
def test_the_doubt_of_a_one_norm_point(penalised):
    problem = made("squared_hinge", 2.0, penalised=penalised)
    solver = OneNorm(problem, 1e-6)
    solver.w = np.random.default_rng(5).normal(size=5)
    solver.best = solver.w.copy()
    drained(solver._settle())
    m = np.empty(30)
    drained(problem.outputs(solver.best, m))
    off, risk = problem.off(solver.best), problem.risk(m)
    norm = np.abs(solver.best if penalised else solver.best[:-1]).sum()
    expected = problem.C * (problem._risk_doubt(m, off) + gamma(38) * risk) + gamma(13) * norm
    assert solver.doubt == pytest.approx(expected, rel=1e-9, abs=0)
    assert solver.objective == pytest.approx(norm + problem.C * risk, rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_extent_of_samples_is_rounded_up(form):
    X = np.random.default_rng(6).normal(size=(50, 7))
    extent = Extent.of(as_matrix(form(X)), 7, 1)
    true = float(np.sqrt((X.astype(np.longdouble) ** 2).sum(axis=1).max()))
    assert true <= extent.norm <= true * (1 + 3 * gamma(9)) and dot(extent.columns, np.ones(7)) > 0
