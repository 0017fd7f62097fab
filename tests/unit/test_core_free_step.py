"""One step on all free variables (native/decomposition/free_step.hpp), next to an active set method in plain NumPy.

Such a step is due once steps of pairs have cost as much, so another problem is worked on first, up to the step before.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from maxmargin import _core

SIZES = [16, 17, 19, 31, 32, 33, 35, 36, 63, 64, 65, 66, 97, 129]


def tile_of(K: Any, dtype: Any) -> Any:
    tile = np.full((len(K), -(-len(K) // 16) * 16), 7.0, dtype)
    tile[:, : len(K)] = K
    return tile


def other(q: int, dtype: Any) -> tuple[Any, ...]:
    """A problem that pairs are slow on; all of its variables stay free."""
    rng = np.random.default_rng(q)
    basis = np.linalg.qr(rng.normal(size=(q, q)))[0]
    K = (basis * np.geomspace(1, 1e-4, q)) @ basis.T
    far = np.full(q, 1e6)
    return tile_of(K, dtype), np.zeros(q), -far, far, rng.normal(size=q), np.zeros(q, np.int8), 1, 0.0


@cache
def pairs_before(q: int, dtype: Any) -> int:
    """How many steps of pairs come before the first one that moves more than two variables."""
    arguments, spent = other(q, dtype), _core.FreeStep()
    beta = arguments[1]
    for steps in range(100_000):
        before = beta.copy()
        _core.inner_smo(*arguments, 1, spent)
        if np.count_nonzero(beta != before) > 2:
            return steps
    raise AssertionError("no step on all free variables")


def stepped(K: Any, beta: Any, lo: Any, hi: Any, score: Any, group: Any, groups: int, dtype: Any) -> tuple[Any, Any]:
    """β and scores after one step that is due."""
    spent = _core.FreeStep()
    _core.inner_smo(*other(len(K), dtype), pairs_before(len(K), dtype), spent)
    beta, score = beta.copy(), score.copy()
    steps, _ = _core.inner_smo(tile_of(K, dtype), beta, lo, hi, score, group, groups, 0.0, 1, spent)
    assert steps == 1
    return beta, score


def problem(rng: np.random.Generator, q: int, free: int, groups: int, room: float) -> tuple[Any, ...]:
    """(K, β, lo, hi, scores, groups) with so many free variables in any places, the others at a bound or the other."""
    root = rng.normal(size=(q, 2 * q)) / np.sqrt(q)
    beta = rng.normal(size=q)
    lo, hi = beta - room * rng.uniform(0.1, 1, q), beta + room * rng.uniform(0.1, 1, q)
    at = rng.permutation(q)[free:]
    beta[at] = np.where(rng.random(q - free) < 0.5, lo[at], hi[at])
    return root @ root.T, beta, lo, hi, rng.normal(size=q), rng.integers(0, max(groups, 1), q).astype(np.int8)


def walked(K: Any, s: Any, group: Any, groups: int, down: Any, up: Any) -> tuple[Any, Any]:
    """To the minimum under what is fixed, or to a bound that is nearer, and on with one more fixed: d, and who was fixed."""
    d, fixed = np.zeros(len(s)), np.zeros(len(s), bool)
    while not fixed.all():
        f = np.flatnonzero(~fixed)
        sums = np.array([group[f] == g for g in range(groups) if (group[f] == g).any()], float).reshape(-1, len(f))
        whole = np.block([[K[np.ix_(f, f)], sums.T], [sums, np.zeros((len(sums), len(sums)))]])
        p = np.linalg.solve(whole, np.concatenate([s[f] - K[f] @ d, np.zeros(len(sums))]))[: len(f)]
        p[np.abs(p) < 1e-13] = 0  # alone in its group
        rooms = np.where(p > 0, up[f] - d[f], np.where(p < 0, d[f] - down[f], np.inf)) / np.maximum(np.abs(p), 1e-300)
        nearest = np.argmin(rooms)
        d[f] += min(1.0, rooms[nearest]) * p
        if rooms[nearest] >= 1:
            break
        fixed[f[nearest]] = True
    return d, fixed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("free", SIZES)
def test_to_the_minimum_past_no_bound(free: int, groups: int, dtype: Any) -> None:
    """All free variables at once; who stands at a bound stays there, sums of groups are kept and scores follow."""
    rng = np.random.default_rng(free)
    for room, behind, scale in ((100.0, 0, 1.0), (100.0, 3, 1.0), (3.0, 3, 1e-11), (1.0, 5, 1.0)):
        K, beta, lo, hi, s, group = problem(rng, free + behind, free, groups, room)
        K, s = scale * K, scale * s
        at = np.flatnonzero((lo < beta) & (beta < hi))
        exact = K.astype(dtype).astype(float)
        d, fixed = walked(exact[np.ix_(at, at)], s[at], group[at], groups, (lo - beta)[at], (hi - beta)[at])
        assert room > 1 or fixed.any()
        expected = beta.copy()
        expected[at] += d
        close = 2e-4 if dtype == np.float32 else 1e-9
        after, score = stepped(K, beta, lo, hi, s, group, groups, dtype)
        np.testing.assert_allclose(after, expected, rtol=0, atol=close)
        still = np.setdiff1d(np.arange(len(K)), at)
        np.testing.assert_array_equal(after[still], beta[still])
        np.testing.assert_allclose(score, s - exact @ (after - beta), rtol=0, atol=scale * close)
        if fixed.any():
            np.testing.assert_array_equal((after == lo)[at] | (after == hi)[at], fixed)
        for g in range(groups):
            assert after[group == g].sum() == pytest.approx(beta[group == g].sum(), abs=1e-11)


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("free", [17, 64])
def test_scores_next_to_nothing(free: int, groups: int) -> None:
    """A step of no length to speak of is a step."""
    K, beta, lo, hi, s, group = problem(np.random.default_rng(free), free, free, groups, 100.0)
    d, _ = walked(K, s, group, groups, lo - beta, hi - beta)
    after, _ = stepped(K, beta, lo, hi, 1e-3 * s, group, groups, np.float64)
    np.testing.assert_allclose(after, beta + 1e-3 * d, rtol=0, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("free", [17, 64])
def test_sums_are_kept_where_scores_are_far_from_zero(free: int, groups: int) -> None:
    """What all scores of a group have in common moves nobody, and what rounding has left of it is taken away."""
    rng = np.random.default_rng(free)
    K, beta, lo, hi, s, group = problem(rng, free, free, groups, 100.0)
    d, _ = walked(K, s, group, groups, lo - beta, hi - beta)
    after, _ = stepped(K, beta, lo, hi, s + 1e9, group, groups, np.float64)
    np.testing.assert_allclose(after, beta + d, rtol=0, atol=1e-4)
    for g in range(groups):
        assert (after - beta)[group == g].sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("alone", [0, 1])
@pytest.mark.parametrize("free", [16, 33])
def test_a_group_of_one_free_variable_or_none(free: int, alone: int) -> None:
    """It stays as it is; the other group moves by itself."""
    rng = np.random.default_rng(free)
    K, beta, lo, hi, s, group = problem(rng, free, free, 1, 100.0)
    group[:alone] = 1
    d, _ = walked(K, s, group, 2, lo - beta, hi - beta)
    after, _ = stepped(K, beta, lo, hi, s, group, 2, np.float64)
    np.testing.assert_allclose(after, beta + d, rtol=0, atol=1e-9)


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("free", [40, 150, 300])
def test_more_bounds_than_a_step_may_run_into(free: int, groups: int) -> None:
    """However far it comes: downhill, within the bounds, and the sums are kept."""
    rng = np.random.default_rng(free)
    K, beta, lo, hi, s, group = problem(rng, free, free, groups, 1e-3)
    after, score = stepped(K, beta, lo, hi, s, group, groups, np.float64)
    d = after - beta
    assert (after >= lo).all() and (after <= hi).all() and d @ K @ d / 2 - s @ d < 0
    assert np.count_nonzero((after == lo) | (after == hi)) > 10
    np.testing.assert_allclose(score, s - K @ d, rtol=0, atol=1e-12)
    for g in range(groups):
        assert d[group == g].sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("free", [16, 33, 66])
def test_its_length_is_judged_by_the_rows_as_they_are(free: int, groups: int) -> None:
    """Where rounding has made rows other than the columns: the best part of the way."""
    rng = np.random.default_rng(free)
    for room in (100.0, 0.5):
        K, beta, lo, hi, s, group = problem(rng, free, free, groups, room)
        d, _ = walked(K, s, group, groups, lo - beta, hi - beta)
        rows = K + 3 * np.triu(np.abs(np.outer(d, d)) / (d @ d) * np.sign(np.outer(d, d)), 1) * np.trace(K) / free
        slope, bend = s @ d, d @ rows @ d
        assert slope < bend or room < 1
        after, score = stepped(rows, beta, lo, hi, s, group, groups, np.float64)
        np.testing.assert_allclose(after, beta + min(1.0, slope / bend) * d, rtol=0, atol=1e-9)
        np.testing.assert_allclose(score, s - (after - beta) @ rows, rtol=0, atol=1e-9)


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("free", [16, 31, 32, 33, 66])
def test_a_matrix_without_a_factor_leaves_it_to_pairs(free: int, groups: int) -> None:
    """Wherever a pivot is none."""
    rng = np.random.default_rng(free)
    for at in (0, 1, free // 2, free - 1):
        K, beta, lo, hi, s, group = problem(rng, free, free, groups, 100.0)
        K[at, at] -= 1.01 / np.linalg.inv(K)[at, at]
        after, _ = stepped(K, beta, lo, hi, s, group, groups, np.float64)
        assert 1 <= np.count_nonzero(after != beta) <= 2


@pytest.mark.parametrize("groups", [0, 1])
@pytest.mark.parametrize("free", [16, 33, 60])
def test_bounds_that_are_reached_all_at_once(free: int, groups: int) -> None:
    """Some variables are as near to theirs as others; those that are free beside them go on."""
    s = np.where(np.arange(free) % 2, 1.0, -1.0) * (1 + np.arange(free) // 2 % 3)
    s -= s.mean() * groups
    bound, group = np.full(free, 2.0), np.zeros(free, np.int8)
    d, fixed = walked(np.eye(free), s, group, groups, -bound, bound)
    assert fixed.sum() >= free // 4
    after, score = stepped(np.eye(free), np.zeros(free), -bound, bound, s, group, groups, np.float64)
    np.testing.assert_allclose(after, d, rtol=0, atol=1e-9)
    np.testing.assert_allclose(score, s - after, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", [3682, 4158])
def test_what_bounds_take_from_a_step_is_given_back(seed: int) -> None:
    """Whatever rounding a singular matrix makes of a step: Σβ stays, and scores are those of β."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(40, 117)), int(rng.integers(2, 8))
    X = rng.integers(-3, 4, (n, d)).astype(float)
    copies = int(rng.integers(1, n // 2))
    X[-copies:] = X[rng.integers(0, n - copies, copies)]
    K = X @ X.T if rng.random() < 0.5 else (X @ X.T + 1) ** 2
    C, y = 10 ** rng.uniform(1, 4), np.sign(rng.normal(size=n))
    beta, score = np.zeros(n), y.copy()
    bounds = np.minimum(0, y * C), np.maximum(0, y * C)
    tile = tile_of(K, np.float64)
    _core.inner_smo(tile, beta, *bounds, score, np.zeros(n, np.int8), 1, 1e-4, 200_000, _core.FreeStep())
    assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
    np.testing.assert_allclose(score, y - K @ beta, rtol=0, atol=1e-12 * (np.abs(K) @ np.abs(beta)).max())
