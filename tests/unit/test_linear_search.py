"""The exact line search against a brute-force minimum over all hinges, ties and flat rows included."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from maxmargin import _core
from maxmargin.linear import LinearProblem, line_search
from maxmargin.linear.over_ranks import RankedProblem
from maxmargin.linear.problem import Extent
from maxmargin.runtime import Threads


def value(k, m, q, c, quad, lin):
    return 0.5 * quad * k * k + lin * k + c @ np.maximum(0, 1 - m - k * q)


def brute_force(m, q, c, quad, lin):
    """Minimum over k ≥ 0: a convex function of one variable, smooth between hinges."""
    with np.errstate(divide="ignore", invalid="ignore"):
        k = (1 - m) / q
    hinges = np.unique(np.concatenate([[0.0], k[np.isfinite(k) & (k > 0)]]))
    best = min(value(t, m, q, c, quad, lin) for t in hinges)
    edges = np.append(hinges, hinges[-1] + 1e3)
    for left, right in itertools.pairwise(edges):
        mid = 0.5 * (left + right)
        slope = lin - c @ np.where(1 - m - mid * q > 0, q, 0.0)
        best = min(best, value(np.clip(-slope / quad, left, right), m, q, c, quad, lin))
    return best


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("threads", [1, 2])
def test_hinge_search_is_exact(seed, threads):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    m, q = rng.normal(size=n), rng.normal(size=n)
    if seed % 3 == 0:  # many ties, rows on the hinge, rows that do not move
        m, q = np.round(2 * m) / 2, np.round(q)
    if seed % 5 == 0:
        m[: n // 2] = 1.0
    c = rng.uniform(0, 2, n)
    quad, lin = float(rng.uniform(1e-3, 3)), float(rng.normal() * 3)
    k = _core.hinge_search(m, q, c, quad, lin, threads)
    assert k >= 0
    assert value(k, m, q, c, quad, lin) <= brute_force(m, q, c, quad, lin) + 1e-9


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_hinges_spread_over_ranks_are_searched_as_exactly(seed, ranks):
    """Flat and steep lines, ties, a minimum between two hinges, at one or beyond the last."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(ranks, 40))
    m, q, c = rng.normal(size=n), rng.normal(size=n), rng.uniform(0, 2, n)
    if seed % 3 == 0:
        m, q = np.round(2 * m) / 2, np.round(q)
    owner = np.arange(n) % ranks
    for quad in (1e-3, 0.1, 1.0, 30.0):
        for lin in (-3.0, -0.1, 0.5):

            def search(comm, quad=quad, lin=lin):
                mine = owner == comm.rank
                size = int(mine.sum())
                extent = Extent(np.ones(1), 1.0)
                problem = RankedProblem(np.ones((size, 1)), np.ones(size), c[mine], 1.0, extent=extent, comm=comm)
                return problem.crossing(m[mine], q[mine], quad, lin)

            found = Threads.run(ranks, search)
            assert len(set(found)) == 1 and found[0] >= 0
            assert found[0] == pytest.approx(_core.hinge_search(m, q, c, quad, lin, 1), rel=1e-9, abs=1e-12)
            assert value(found[0], m, q, c, quad, lin) <= brute_force(m, q, c, quad, lin) + 1e-9


def test_hinge_search_goes_past_the_last_hinge_and_past_one():
    m, q, c = np.array([0.5, 0.0]), np.array([1.0, 1.0]), np.ones(2)
    k = _core.hinge_search(m, q, c, 0.01, -1.0, 1)
    assert k == pytest.approx(100.0)


def test_hinge_search_many_rows_matches_scipy():
    rng = np.random.default_rng(0)
    m, q, c = rng.normal(size=100_000), rng.normal(size=100_000) * 0.1 + 0.05, rng.uniform(0.5, 1.5, 100_000)
    k = _core.hinge_search(m, q, c, 5e3, -10.0, 2)
    best = minimize_scalar(value, bounds=(0, 50), args=(m, q, c, 5e3, -10.0), method="bounded",
                           options={"xatol": 1e-10})
    assert value(k, m, q, c, 5e3, -10.0) <= best.fun * (1 + 1e-12)


def test_rising_line_stays_at_zero():
    assert _core.hinge_search(np.array([2.0]), np.array([1.0]), np.ones(1), 1.0, 0.5, 1) == 0.0


@pytest.mark.parametrize("h, loss", [(0.1, "hinge"), (0.0, "squared_hinge")])
def test_smooth_search_finds_the_zero_of_the_slope(h, loss):
    rng = np.random.default_rng(3)
    problem = LinearProblem(rng.normal(size=(50, 2)), np.ones(50), rng.uniform(0.5, 2, 50), 0.7, loss=loss)
    m, q = rng.normal(size=50), rng.normal(size=50)
    k = line_search.smooth(problem, m, q, 0.3, -30.0, h, accuracy=1e-12)
    first, _ = _core.linear_slope(loss, h, m, q, problem.weight, k, 1)
    assert k > 0 and abs(0.3 * k - 30.0 + 0.7 * first) < 1e-8


def test_slope_is_the_derivative_of_the_rounded_risk():
    rng = np.random.default_rng(4)
    m, q, c, h = rng.normal(size=30), rng.normal(size=30), rng.uniform(0.5, 2, 30), 0.05

    def risk(k):
        u = 1 - m - k * q
        return c @ (u + np.sqrt(u * u + 4 * h * h)) / 2

    first, second = _core.linear_slope("hinge", h, m, q, c, 0.4, 1)
    assert first == pytest.approx((risk(0.4 + 1e-5) - risk(0.4 - 1e-5)) / 2e-5, rel=1e-5)
    assert second == pytest.approx((risk(0.4 + 1e-4) - 2 * risk(0.4) + risk(0.4 - 1e-4)) / 1e-8, rel=1e-3)
