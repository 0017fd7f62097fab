"""The state of a part (native/decomposition/part_state.hpp) next to NumPy: who violates most, can move, is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from maxmargin import _core

SIZES = [1, 2, 15, 16, 17, 31, 33, 100]
FIRST, BEHIND = 7, 13  # ids of other parts before and behind this one's


@dataclass
class Plain:
    """The same state by sample, and the samples that are active in their order."""

    center: Any
    lo: Any
    hi: Any
    beta: Any
    group: Any
    f: Any
    active: list[int] = field(default_factory=list)

    @classmethod
    def drawn(cls, rng: np.random.Generator, n: int, halves: int, few_scores: bool = False) -> Plain:
        shape = (halves, n)
        lo = rng.integers(-3, 1, shape).astype(float)
        hi = lo + rng.integers(0, 4, shape)  # some cannot move at all
        beta = np.where(rng.random(shape) < 0.5, rng.choice([0.0, 0.5, 1.0], shape), rng.random(shape)) * (hi - lo) + lo
        beta[0, rng.random(n) < 0.3] = 0.0
        lo, hi = np.minimum(lo, beta), np.maximum(hi, beta)
        center, f = rng.normal(size=shape), rng.normal(size=n)
        if few_scores:
            center, f = rng.integers(-2, 3, shape).astype(float), rng.integers(-1, 2, n).astype(float)
        return cls(center, lo, hi, beta, rng.integers(0, 2, shape).astype(np.int8), f, list(range(n)))

    def part(self, threads: int = 1) -> Any:
        n = len(self.f)
        state = (self.center, self.lo, self.hi, self.beta, self.group, self.f)
        return _core.Part64(None, np.arange(n), *state, 0, threads, FIRST, FIRST + n + BEHIND)

    @property
    def score(self) -> Any:
        return self.center - self.f

    def extremes(self, everyone: bool = False) -> tuple[float, ...]:
        of = np.arange(len(self.f)) if everyone else np.array(self.active, np.int64)
        score, group = self.score[:, of], self.group[:, of]
        up, low = (self.beta < self.hi)[:, of], (self.beta > self.lo)[:, of]
        tops = [score[up & (group == g)].max(initial=-np.inf) for g in (0, 1)]
        return (*tops, *[score[low & (group == g)].min(initial=np.inf) for g in (0, 1)])

    def candidates(self, group: int, k: int, above: float, below: float) -> tuple[Any, ...]:
        n, out = len(self.f), []
        number = np.arange(len(self.beta))[:, None] * (FIRST + n + BEHIND) + FIRST + np.arange(n)
        asked = (self.group == group) & np.isin(np.arange(n), self.active)
        rises, falls = (self.beta < self.hi) & (self.score > above), (self.beta > self.lo) & (self.score < below)
        for sign, able in ((-1.0, rises), (1.0, falls)):
            found = asked & able
            worst = np.lexsort((number[found], sign * self.score[found]))[:k]
            out += [number[found][worst], self.score[found][worst]]
        return tuple(out)

    def can_move(self, e: tuple[float, ...]) -> Any:
        top, bottom = np.array(e[:2])[self.group], np.array(e[2:])[self.group]
        rises, falls = self.beta < self.hi, self.beta > self.lo
        return ((rises & (self.score >= bottom)) | (falls & (self.score <= top))).any(axis=0)

    def like(self, part: Any, rng: np.random.Generator) -> None:
        n, halves = len(self.f), len(self.beta)
        assert part.size == len(self.active)
        np.testing.assert_array_equal(part.active, FIRST + np.array(self.active, np.int64))
        np.testing.assert_array_equal(part.f, self.f)
        np.testing.assert_array_equal(part.beta, self.beta.ravel())
        assert part.support == np.count_nonzero(self.beta.sum(axis=0))
        some = rng.permutation(n)[: rng.integers(0, n + 1)]
        *state, f = part.read(FIRST + some)
        for got, kept in zip(state, (self.beta, self.lo, self.hi, self.center, self.group)):
            np.testing.assert_array_equal(got.reshape(halves, -1), kept[:, some])
        np.testing.assert_array_equal(f, self.f[some])
        np.testing.assert_array_equal(part.are_active(FIRST + some), np.isin(some, self.active))
        assert part.extremes() == self.extremes() and part.extremes(True) == self.extremes(everyone=True)
        e = tuple(rng.normal(size=4))
        np.testing.assert_array_equal(part.movable(*e), np.flatnonzero(self.can_move(e)[self.active]))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("n", [*SIZES, 70_001])
def test_extremes_are_those_of_the_scores(n: int, halves: int, threads: int) -> None:
    """The extreme sample stands anywhere: at the ends, and in any slice."""
    rng = np.random.default_rng(n)
    plain = Plain.drawn(rng, n, halves)
    assert plain.part(threads).extremes() == plain.extremes()
    for at in {0, n - 1, *rng.integers(0, n, 6).tolist()}:
        for f in (-50.0, 50.0):
            kept, plain.f[at] = plain.f[at], f
            assert plain.part(threads).extremes() == plain.extremes()
            plain.f[at] = kept


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [1, 17, 70_001])
def test_a_score_that_is_no_number_is_told(n: int, wrong: float, threads: int) -> None:
    """Whether or not it could be an extreme; of one that is left out only where everyone is asked."""
    rng = np.random.default_rng(n)
    for at in {0, n - 1, n // 2}:
        plain = Plain.drawn(rng, n, 2)
        plain.center[1, at] = wrong
        plain.lo[1, at] = plain.hi[1, at] = plain.beta[1, at]
        part = plain.part(threads)
        assert np.isnan(part.extremes()).all() and np.isnan(part.extremes(True)).all()
        plain.active = [j for j in range(n) if j != at]
        part.restrict(np.array(plain.active, np.int64))
        assert part.extremes() == plain.extremes() and np.isnan(part.extremes(True)).all()


@pytest.mark.parametrize("few_scores", [False, True])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("n", [*SIZES, 1023, 1025, 3000])
def test_candidates_are_the_worst(n: int, halves: int, few_scores: bool) -> None:
    """Equal scores by the number of the variable; no more than are asked for, and none within the limits."""
    rng = np.random.default_rng(n + halves)
    plain = Plain.drawn(rng, n, halves, few_scores)
    part = plain.part()
    for keep in (n, n - n // 3):
        plain.active = sorted(rng.choice(plain.active, keep, replace=False).tolist())
        part.restrict(np.array(plain.active, np.int64))
        for k, above, below in ((0, -9, 9), (1, -9, 9), (5, 0, 0), (40, -0.5, 1), (n // 2, -9, 9), (2 * n + 1, 1, -1)):
            for group in (0, 1):
                for got, worst in zip(part.candidates(group, k, above, below), plain.candidates(group, k, above, below)):
                    np.testing.assert_array_equal(got, worst)


@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("step", [2, 3, 5, 7])
def test_a_look_at_some_may_mislead(step: int, side: float) -> None:
    """The worst of one side stand just where it looks, which promises more of them than there are."""
    rng = np.random.default_rng(step)
    plain = Plain.drawn(rng, 512 * step + 1, 1)
    plain.f[::step] -= side * 50
    part = plain.part()
    for k in (1, 10, 100, 300, 700):
        for got, worst in zip(part.candidates(0, k, -99.0, 99.0), plain.candidates(0, k, -99.0, 99.0)):
            np.testing.assert_array_equal(got, worst)


@pytest.mark.parametrize("few_scores", [False, True])
@pytest.mark.parametrize("n", [16_385, 60_000])
def test_candidates_are_the_worst_of_all_slices(n: int, few_scores: bool) -> None:
    """For any number of threads, also where all of the worst are in one slice, or where a look at some misses them."""
    rng = np.random.default_rng(n)
    for where in ("anywhere", "first", "last", "seldom"):
        plain = Plain.drawn(rng, n, 1, few_scores)
        spots = {"first": np.arange(300), "last": np.arange(n - 300, n), "seldom": np.arange(1, n, 1001)}
        spot = spots.get(where, np.arange(0))
        plain.f[spot] += 5 * rng.choice([-1.0, 1.0], len(spot))
        for k in (1, 30, 500):
            worst = plain.candidates(1, k, -9.0, 9.0)
            for threads in (1, 2, 3):
                for got, expected in zip(plain.part(threads).candidates(1, k, -9.0, 9.0), worst):
                    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("few_scores", [False, True])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_state_stays_with_its_samples(n: int, halves: int, few_scores: bool) -> None:
    """Whatever is written, added, left out and taken back, in any order."""
    rng = np.random.default_rng(10 * n + halves)
    plain = Plain.drawn(rng, n, halves, few_scores)
    part = plain.part()
    plain.like(part, rng)
    for turn in range(40):
        some = rng.permutation(n)[: rng.integers(0, n + 1)]
        if turn % 5 == 0:
            others = np.array([FIRST - 1, FIRST + n, FIRST + n + BEHIND - 1])
            ids = rng.permutation(np.concatenate([FIRST + some, others]))
            ours = (ids >= FIRST) & (ids < FIRST + n)
            beta = np.where(rng.random((halves, len(ids))) < 0.4, 0.0, rng.normal(size=(halves, len(ids))))
            beta[-1, rng.random(len(ids)) < 0.3] = 0.0 if halves == 1 else -beta[0, 0]
            plain.beta[:, ids[ours] - FIRST] = beta[:, ours]
            part.write(ids, beta)
        elif turn % 5 == 1:
            values = rng.integers(-2, 3, len(some)).astype(float)
            plain.f[some] += values
            part.add(FIRST + some, values)
        elif turn % 5 == 2:
            values = rng.integers(-2, 3, len(plain.active)).astype(float)
            plain.f[np.array(plain.active, np.int64)] += values
            part.add_active(values)
        elif turn % 5 == 3:
            keep = np.flatnonzero(rng.random(len(plain.active)) < rng.choice([0.0, 0.6, 0.9, 1.0]))
            plain.active = [plain.active[j] for j in keep]
            part.restrict(keep)
        else:
            e = tuple(rng.integers(-3, 4, 4).astype(float))
            left = sorted(set(range(n)) - set(plain.active))
            plain.active += [j for j in left if plain.can_move(e)[j]]
            part.take_back(*e)
        plain.like(part, rng)


@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_another_problem_of_the_same_samples(n: int, halves: int) -> None:
    """It stands as one that was made for it; not while samples are left out."""
    rng = np.random.default_rng(n)
    part, plain = Plain.drawn(rng, n, halves).part(), Plain.drawn(rng, n, halves)
    state = (plain.center, plain.lo, plain.hi, plain.beta, plain.group, plain.f)
    part.restart(*state)
    plain.like(part, rng)
    part.restrict(np.arange(n - 1))
    with pytest.raises(ValueError, match="left out"):
        part.restart(*state)


@pytest.mark.parametrize("threads", [1, 2])
def test_nobody(threads: int) -> None:
    """A part without samples, and one of which all are left out: nothing is found, nothing moves."""
    rng = np.random.default_rng(0)
    empty, left = Plain.drawn(rng, 0, 2).part(threads), Plain.drawn(rng, 20, 2).part(threads)
    left.restrict(np.empty(0, np.int64))
    for part in (empty, left):
        assert part.size == 0 and part.extremes() == (-np.inf, -np.inf, np.inf, np.inf)
        assert [len(a) for a in part.candidates(0, 5, -9.0, 9.0)] == [0, 0, 0, 0]
        assert len(part.active) == 0 and len(part.movable(9.0, 9.0, -9.0, -9.0)) == 0
        assert part.update(np.empty(0, np.int64), np.empty(0), None, np.empty(0, np.int64)) == 0
        part.add_active(np.empty(0))
