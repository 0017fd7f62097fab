"""Which variables enter a turn, and the inner steps of problems without an equality constraint."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from maxmargin import _core
from maxmargin.decomposition.working_set import Violators, WorkingSet, _pairs, without_partner


def test_without_equality_the_worst_violators_enter_whatever_their_side() -> None:
    found = Violators(np.array([0, 1, 2]), np.array([3.0, 2.0, 1.0]), np.array([7, 8]), np.array([-2.5, -0.5]))
    assert _pairs([without_partner(found)], 4).tolist() == [0, 7, 1, 2]
    assert _pairs([without_partner(found)], 6).tolist() == [0, 7, 1, 2, 8]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [2, 4, 10])
def test_only_pairs_that_violate_enter_the_worst_first(seed: int, count: int) -> None:
    """Scores of few values: many gaps are equal, and many are zero."""
    rng = np.random.default_rng(seed)
    groups, pairs = [], []
    for g in range(1 + seed % 2):
        up, low = rng.permutation(100)[:8] + 200 * g, rng.permutation(100)[: rng.integers(1, 8)] + 200 * g + 100
        rising, falling = -np.sort(-rng.integers(-3, 4, len(up))), np.sort(rng.integers(-3, 4, len(low)))
        groups.append(Violators(up, rising.astype(float), low, falling.astype(float)))
        pairs += [(b - a, u, v) for u, a, v, b in zip(up, rising, low, falling) if a > b][:count]
    worst = [v for _, *pair in sorted(pairs, key=lambda pair: pair[0]) for v in pair]
    assert _pairs(groups, count).tolist() == worst[:count]


def test_newcomers_then_those_who_came_last_free_ones_first() -> None:
    def pairs(*ids: int) -> Violators:
        up, low = np.array(ids[0::2]), np.array(ids[1::2])
        return Violators(up, np.arange(len(up), 0, -1.0), low, -np.arange(len(low), 0, -1.0))

    chosen = WorkingSet(6, 4)
    assert chosen.select([pairs(10, 3, 5, 8)]).tolist() == [3, 5, 8, 10]
    # two enter; of the old ones 5 and 8 are free, 3 at its lower bound, 10 at its upper
    chosen.place = np.array([1.0, 0.0, 0.0, 2.0])
    assert chosen.select([pairs(1, 2)]).tolist() == [1, 2, 3, 5, 8, 10]
    chosen.place = np.array([2.0, 0, 0, 0, 0, 2.0])
    assert chosen.select([pairs(20, 21)]).tolist() == [2, 3, 5, 8, 20, 21]
    # one enters; 3 and 20 are at their lower bounds, and 20 came later
    chosen.place = np.array([0, 1.0, 0, 0, 1.0, 0.0])
    assert chosen.select([pairs(30, 2)]).tolist() == [2, 5, 8, 20, 21, 30]
    chosen.place = np.zeros(6)
    chosen.forget(chosen.members != 5)
    assert chosen.members.tolist() == [2, 8, 20, 21, 30]


def box_problem(seed: int, q: int) -> tuple[np.ndarray, ...]:
    """A badly conditioned K: every other row is nearly a multiple of the one before."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(q, q // 3))
    root[1::2] = rng.choice([-1, 0.5, 3], size=(q // 2, 1)) * root[0::2] + 1e-2 * rng.normal(size=(q // 2, q // 3))
    side = rng.choice([-1.0, 1.0], size=q)
    bound = side * rng.uniform(0.5, 2, q)
    return root @ root.T, side, np.minimum(bound, 0.0), np.maximum(bound, 0.0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_variables_at_a_time_reach_the_optimum(seed: int, dtype: type) -> None:
    q = 36
    K, center, lo, hi = box_problem(seed, q)
    tile = np.zeros((48, 48), dtype)
    tile[:q, :q] = K
    exact = tile[:q, :q].astype(np.float64)
    beta, score = np.zeros(q), center.copy()
    tol = 1e-3 if dtype == np.float32 else 1e-9
    steps, violation = _core.inner_smo(tile, beta, lo, hi, score, np.zeros(q, np.int8), 0, tol, 100_000)
    assert steps < 100_000
    assert violation <= tol
    assert (beta >= lo).all() and (beta <= hi).all()
    np.testing.assert_allclose(score, center - exact @ beta, atol=30 * tol)
    best = scipy.optimize.minimize(
        lambda b: (0.5 * b @ exact @ b - center @ b, exact @ b - center), np.zeros(q), jac=True, method="L-BFGS-B",
        bounds=list(zip(lo, hi)), options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    assert 0.5 * beta @ exact @ beta - center @ beta <= best.fun + (2e-2 if dtype == np.float32 else 1e-7)


def test_one_variable_moves_alone_where_nobody_else_gains() -> None:
    tile = np.zeros((16, 16))
    tile[0, 0] = 2.0
    beta, score = np.zeros(1), np.array([1.0])
    assert _core.inner_smo(tile, beta, np.zeros(1), np.ones(1), score, np.zeros(1, np.int8), 0, 1e-12, 10)[0] == 1
    assert beta[0] == 0.5
