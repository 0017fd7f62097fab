"""SMO on a working set (native/decomposition/inner_smo.hpp), one step at a time next to NumPy, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from maxmargin import _core

SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 65]
TAU = 1e-12  # of the diagonal: the smallest curvature


@dataclass
class Plain:
    """A problem and where it stands; numbers of few digits, which are the same in either precision."""

    K: Any
    lo: Any
    hi: Any
    beta: Any
    score: Any
    group: Any
    groups: int

    @classmethod
    def drawn(cls, rng: np.random.Generator, q: int, groups: int, few_scores: bool = False) -> Plain:
        root = rng.integers(-4, 5, (q, 5)) / 4
        K = root @ root.T + np.diag(rng.integers(1, 9, q) / 8)
        score = rng.integers(-64, 65, q) / 32
        if few_scores:
            K, score = np.where(np.eye(q, dtype=bool), 2.0, rng.integers(-1, 2) * 0.5), rng.integers(-1, 2, q).astype(float)
        lo = -rng.integers(0, 9, q) / 8
        hi = lo + rng.integers(0, 17, q) / 8
        beta = lo + (hi - lo) * rng.choice([0.0, 0.25, 0.5, 1.0], q)
        return cls((K + K.T) / 2, lo, hi, beta, score, rng.integers(0, max(groups, 1), q).astype(np.int8), groups)

    def run(self, dtype: Any, tol: float, most: int) -> tuple[Any, Any, int, float]:
        """What lies in the tile past the variables is of no meaning."""
        q, width = len(self.beta), -(-len(self.beta) // 16) * 16
        tile = np.full((q, width), 1e6, dtype)
        tile[:, :q] = self.K
        beta, score = self.beta.copy(), self.score.copy()
        found = _core.inner_smo(tile, beta, self.lo, self.hi, score, self.group, self.groups, tol, most)
        return (beta, score, *found)

    def violation(self, beta: Any, score: Any) -> float:
        up, low = beta < self.hi, beta > self.lo
        if self.groups == 0:
            return max(score[up].max(initial=0.0), -score[low].min(initial=0.0))
        worst = [score[up & mine].max(initial=-np.inf) - score[low & mine].min(initial=np.inf)
                 for mine in (self.group == g for g in range(self.groups))]  # fmt: skip
        return max(*worst, 0.0)

    def step(self) -> Any:
        """β after one step."""
        return self.pair() if self.groups else self.free()

    def pair(self) -> Any:
        beta, score, floor = self.beta.copy(), self.score, TAU * np.diag(self.K)
        up, low = beta < self.hi, beta > self.lo
        worst, best = 0.0, -1
        for g in range(self.groups):
            rises, falls = np.flatnonzero(up & (self.group == g)), np.flatnonzero(low & (self.group == g))
            if len(rises) and len(falls) and score[rises].max() - score[falls].min() > worst:
                worst, best = score[rises].max() - score[falls].min(), g
        if best < 0:
            return beta
        i = np.argmax(np.where(up & (self.group == best), score, -np.inf))
        bend = np.maximum(self.K[i, i] + np.diag(self.K) - 2 * self.K[i], (floor + floor[i]) / 2)
        difference = score[i] - score
        j = np.argmax(np.where(low & (self.group == best) & (difference > 0), difference**2 / bend, -np.inf))
        t = min(difference[j] / bend[j], self.hi[i] - beta[i], beta[j] - self.lo[j])
        beta[i], beta[j] = min(beta[i] + t, self.hi[i]), max(beta[j] - t, self.lo[j])
        return beta

    def free(self) -> Any:
        beta, least, most, diagonal = self.beta.copy(), self.lo - self.beta, self.hi - self.beta, np.diag(self.K)

        def able(score: Any) -> Any:
            return np.where(score > 0, most > 0, least < 0) * score

        gain = able(self.score) ** 2 / diagonal
        if not gain.any():
            return beta
        i = np.argmax(gain)
        alone = np.clip(self.score[i] / diagonal[i], least[i], most[i])
        inside = least[i] < alone < most[i]
        bend = diagonal - self.K[i] ** 2 / diagonal[i] * inside
        gain = able(self.score - alone * self.K[i]) ** 2 / np.where(np.arange(len(beta)) == i, 1.0, bend)
        gain[i] = 0.0
        if not gain.any():
            beta[i] += alone
            return beta
        two = [i, np.argmax(gain)]
        beta[two] += best_of_two(self.K[np.ix_(two, two)], self.score[two], least[two], most[two])
        return beta


def best_of_two(K: Any, s: Any, least: Any, most: Any) -> Any:
    """The minimum of ½ tᵀKt − sᵀt in a rectangle: inside of it, or on one of its sides."""
    tries = [np.linalg.solve(K, s)]
    for v in (0, 1):
        for bound in (least[v], most[v]):
            t = np.full(2, bound)
            t[1 - v] = np.clip((s[1 - v] - K[0, 1] * bound) / K[1 - v, 1 - v], least[1 - v], most[1 - v])
            tries.append(t)
    return min((t for t in tries if ((least <= t) & (t <= most)).all()), key=lambda t: t @ K @ t / 2 - s @ t)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("few_scores", [False, True])
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("q", SIZES)
def test_a_step_is_that_of_the_formulas(q: int, groups: int, few_scores: bool, dtype: Any) -> None:
    """Who moves (of several the first), how far, to a bound exactly; scores and violation follow."""
    rng = np.random.default_rng(q)
    close = 1e-5 if dtype == np.float32 else 1e-12
    for _ in range(20):
        plain = Plain.drawn(rng, q, groups, few_scores)
        before = plain.violation(plain.beta, plain.score)
        beta, score, steps, violation = plain.run(dtype, 1e-9, 0)
        np.testing.assert_array_equal(beta, plain.beta)
        np.testing.assert_array_equal(score, plain.score)
        assert steps == 0 and violation == before
        after = plain.step()
        beta, score, steps, violation = plain.run(dtype, 1e-9, 1)
        np.testing.assert_allclose(beta, after, rtol=0, atol=close)
        for bound in (plain.lo, plain.hi):
            np.testing.assert_array_equal(beta == bound, np.abs(after - bound) < 1e-12)
        np.testing.assert_allclose(score, plain.score - plain.K @ (beta - plain.beta), rtol=0, atol=10 * close)
        assert steps == (before > 0)
        assert violation == pytest.approx(plain.violation(beta, score), abs=10 * close)


@pytest.mark.parametrize("slope", [-0.95, -0.5, 0.5, 0.95])
def test_two_variables_alone_are_done_in_one_step(slope: float) -> None:
    """Without an equality the pair that moves goes to its best place within its bounds, whichever of them are in the way."""
    rng = np.random.default_rng(int(100 + 100 * slope))
    ends = set()
    for _ in range(600):
        a, c = rng.uniform(0.2, 5, 2)
        K = np.array([[a, slope * np.sqrt(a * c)], [slope * np.sqrt(a * c), c]])
        lo, hi = -rng.uniform(0.02, 1, 2), rng.uniform(0.02, 1, 2)
        plain = Plain(K, lo, hi, np.zeros(2), 2 * rng.normal(size=2), np.zeros(2, np.int8), 0)
        beta, _, steps, violation = plain.run(np.float64, 1e-9, 1)
        np.testing.assert_allclose(beta, best_of_two(K, plain.score, lo, hi), rtol=0, atol=1e-12)
        assert steps == 1 and violation <= 1e-9
        ends.add(tuple(np.sign(np.where(beta == lo, -1, beta == hi))))
    assert len(ends) == 9  # inside, on every side, in every corner


@pytest.mark.parametrize("groups", [0, 1])
def test_a_bound_is_reached_exactly(groups: int) -> None:
    """Also where the way to it, added to where one stood, is not the bound to the last digit."""
    rng = np.random.default_rng(groups)
    reached = 0
    for _ in range(600):
        lo, hi = -rng.uniform(0.1, 1, 2), rng.uniform(0.1, 1, 2)
        beta = rng.uniform(lo, hi)
        plain = Plain(np.array([[1.3, 0.4], [0.4, 0.9]]), lo, hi, beta, 3 * rng.normal(size=2), np.zeros(2, np.int8), groups)
        after = plain.run(np.float64, 1e-9, 1)[0]
        np.testing.assert_allclose(after, plain.step(), rtol=0, atol=1e-12)
        for bound in (lo, hi):
            near = np.abs(plain.step() - bound) < 1e-13
            np.testing.assert_array_equal(after == bound, near)
            reached += near.sum()
    assert reached > 300


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("q", SIZES)
def test_steps_end_at_the_optimum(q: int, groups: int, dtype: Any) -> None:
    """Within the bounds, each group's sum as it was, and no pair violates more than is told and allowed."""
    rng = np.random.default_rng(100 + q)
    tol = 1e-3 if dtype == np.float32 else 1e-9
    for _ in range(5):
        plain = Plain.drawn(rng, q, groups)
        beta, score, steps, violation = plain.run(dtype, tol, 10_000)
        assert steps < 10_000 and violation <= tol
        assert (beta >= plain.lo).all() and (beta <= plain.hi).all()
        exact = plain.score - plain.K @ (beta - plain.beta)
        np.testing.assert_allclose(score, exact, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12)
        assert plain.violation(beta, exact) <= 1.5 * tol
        for g in range(groups):
            assert beta[plain.group == g].sum() == pytest.approx(plain.beta[plain.group == g].sum(), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("q", [2, 17, 40])
def test_a_kernel_of_zeros_sends_everyone_to_bounds(q: int, groups: int, dtype: Any) -> None:
    """It is a linear program: of each group only one variable may end between its bounds."""
    rng = np.random.default_rng(q)
    plain = Plain.drawn(rng, q, groups)
    plain.K[:] = 0
    plain.score = rng.permutation(q) / 8 - q / 16
    beta, score, steps, violation = plain.run(dtype, 1e-9, 1000)
    assert violation == 0 == plain.violation(beta, plain.score) and steps <= 2 * q
    np.testing.assert_array_equal(score, plain.score)
    for g in range(groups):
        mine = plain.group == g
        assert np.count_nonzero(mine & (beta != plain.lo) & (beta != plain.hi)) <= 1
        assert beta[mine].sum() == pytest.approx(plain.beta[mine].sum(), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_take_a_long_step(dtype: Any) -> None:
    """Two equal rows have no curvature: a small part of the diagonal stands in for it."""
    plain = Plain(np.full((2, 2), 4.0), np.full(2, -1e20), np.full(2, 1e20), np.zeros(2), np.array([1.0, -2.0]),
                  np.zeros(2, np.int8), 1)  # fmt: skip
    beta, *_ = plain.run(dtype, 1e-9, 1)
    np.testing.assert_allclose(beta, 3 / (4 * TAU) * np.array([1.0, -1.0]), rtol=1e-6)


def test_a_step_that_moves_nobody_is_the_last() -> None:
    """Where rounding swallows it for both; where one of the two moves it goes on."""
    K, far = np.eye(2), 2.0**70
    for start, moves in ([far, far], False), ([far, 0.0], True), ([0.0, -far], True):
        plain = Plain(K, np.full(2, -2 * far), np.full(2, 2 * far), np.array(start), np.array([1.0, -1.0]),
                      np.zeros(2, np.int8), 1)  # fmt: skip
        beta, _, steps, violation = plain.run(np.float64, 1e-9, 1)
        assert steps == moves and (beta != start).any() == moves and (violation == 2.0) == (not moves)
    for start, moves in (far, False), (0.0, True):  # without an equality
        state = np.full(1, -2 * far), np.full(1, 2 * far), np.full(1, start)
        alone = Plain(np.eye(1), *state, np.ones(1), np.zeros(1, np.int8), 0)
        assert alone.run(np.float64, 1e-9, 5)[2] == moves
