"""Where problems of a family end (native/decomposition/family.hpp, judged.hpp): at solutions, judged as by NumPy."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from families import (
    ANY,
    CONVERGED,
    DROPPED,
    STALLED,
    STEPS,
    Floats,
    One,
    coefficients,
    gram_of,
    judged,
    solved,
    state_of,
    violation,
)

from maxmargin import _core

TOL = 1e-7


def a_family(n: int, groups: int, halves: int, seed: int = 0) -> tuple[Floats, list[One]]:
    """All rows at C, at three times C, and a fold of each, of two ranges of the matrix; any extra samples."""
    rng = np.random.default_rng(seed + n)
    X = rng.normal(size=(n + 6, 3))
    K = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    a = n // 3
    ranges = (1, 1 + a, 4 + a, 4 + n)
    some = np.r_[ranges[0] : ranges[1], ranges[2] : ranges[3]]
    weight = rng.uniform(0.5, 1.5, n)
    if halves == 2:
        y = np.sin(2 * X[some, 0])
        center, lo, hi = np.r_[y - 0.05, y + 0.05], np.r_[0 * y, -weight], np.r_[weight, 0 * y]
        group = np.repeat([0, 1], n).astype(np.int8)
    else:
        y = np.where(X[some, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
        center, lo, hi = y.copy(), np.minimum(0, weight * y), np.maximum(0, weight * y)
        group = (y > 0).astype(np.int8)
    of = group if groups == 2 else np.zeros(len(group), np.int8)

    def one(C: float, out: slice, **links: float) -> One:
        keep = np.ones(n)
        keep[out] = 0
        keep = C * np.tile(keep, halves)
        sums = [0.0] * groups
        if groups == 2:  # ν: each group has so much to give
            sums = [float(0.3 * np.where(np.abs(lo) > hi, keep * lo, keep * hi)[of == g].sum()) for g in (0, 1)]
        extra = np.sort(rng.choice(n + 6, int(rng.integers(0, n + 7)), replace=False))
        return One(ranges, center, keep * lo, keep * hi, sums, None, of, extra=extra, **links)  # type: ignore[arg-type]

    fold, nobody = slice(0, n, 4), slice(0, 0)
    family = [
        one(2.0, nobody), one(6.0, nobody, parent=0, ratio=3.0), one(2.0, fold, parent=0),
        one(6.0, fold, parent=1, like=2, unlike=0),
    ]  # fmt: skip
    if groups == 2 and halves == 1:
        for problem in family:
            problem.center = np.zeros(n)
    return K, family


@pytest.mark.parametrize("n", [3, 15, 16, 17, 31, 33, 64, 65])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_every_problem_ends_at_its_solution(n: int, groups: int, halves: int) -> None:
    """Within bounds, sums at their targets, f = Kβ of all samples and of the extra ones, no violation above tol."""
    K, family = a_family(n, groups, halves)
    gram, K = gram_of(K)
    found = solved(gram, family, halves=halves, tol=TOL)
    assert found.stage == [CONVERGED] * 4
    for p, one in enumerate(family):
        beta, f = found.beta[p], found.f[p]
        coef = coefficients(beta, halves)
        assert (beta >= one.lo).all() and (beta <= one.hi).all()
        for g in range(groups):
            mine = beta[one.of == g] if groups > 1 else beta
            assert abs(mine.sum() - one.target[g]) <= 1e-12 * max(1.0, np.abs(mine).sum())
        np.testing.assert_allclose(f, K[np.ix_(one.samples, one.samples)] @ coef, rtol=0, atol=1e-11)
        np.testing.assert_allclose(found.extra[p], K[np.ix_(one.extra, one.samples)] @ coef, rtol=0, atol=1e-11)
        assert violation(one, beta, f) <= TOL
        said = found.judged[p]
        np.testing.assert_allclose(said, judged(one, beta, f), rtol=1e-12, atol=1e-13)
        assert 0 <= said[1] <= TOL * (one.hi - one.lo).sum()


@pytest.mark.parametrize("halves, groups", [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)])
def test_the_order_and_the_threads_change_nothing(halves: int, groups: int) -> None:
    """Not a bit, nor who began from whom."""
    K, family = a_family(49, groups, halves)
    gram, _ = gram_of(K)
    first = solved(gram, family, halves=halves, tol=TOL)
    for order in ([3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]):
        for threads in (0, 1, 2, 3):  # 0 is 1
            assert solved(gram, family, halves=halves, tol=TOL, threads=threads, order=np.array(order)).same_bits(first)


def test_begun_from_a_solution_a_problem_is_solved_in_no_turn() -> None:
    K, family = a_family(65, 0, 1)
    gram, _ = gram_of(K)
    again = [family[0], replace(family[0], parent=0, ratio=1.0), replace(family[0], parent=1)]
    found = solved(gram, again, tol=TOL)
    assert found.turns[0] > 0 and found.turns[1:] == [0, 0] and found.steps[1:] == [0, 0] and found.begun_moved[1:] == [0, 0]
    for p in (1, 2):
        np.testing.assert_array_equal(found.beta[p], found.beta[0])
        np.testing.assert_array_equal(found.f[p], found.f[0])


def test_few_extra_samples_or_many() -> None:
    """By their own rows or by those of all coefficients, whatever the sizes of both ranges."""
    for n in (17, 33, 70):
        K, family = a_family(n, 1, 1)
        gram, K = gram_of(K)
        for count in (0, 1, 2, n // 2, n + 5, n + 6, 3 * n):
            extra = np.random.default_rng(count).integers(0, n + 6, count)
            for ranges in ((0, n, n, n), (3, 3, 5, 5 + n), (1, 2, 3, 2 + n), (0, n - 1, n + 2, n + 3)):
                one = replace(family[0], ranges=ranges, extra=extra)
                found = solved(gram, [one], tol=1e-3)
                np.testing.assert_allclose(found.extra[0], K[np.ix_(extra, one.samples)] @ found.beta[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_any_point_is_judged_as_numpy_judges_it(groups: int, seed: int) -> None:
    """With free variables and without, groups that can only rise or only fall, or nobody's."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    X = rng.normal(size=(n, 2))
    gram, _ = gram_of(X @ X.T)
    lo, hi = -rng.integers(0, 3, n) / 2, rng.integers(0, 3, n) / 2
    where = rng.integers(0, 3, n) if seed % 3 else rng.integers(0, 2, n)
    beta = np.choose(where if seed % 4 else 0 * where, [lo, hi, 0.5 * (lo + hi)])
    group = rng.integers(0, groups, n).astype(np.int8) if groups == 2 else np.zeros(n, np.int8)
    one = One((0, n, n, n), rng.normal(size=n), lo, hi, [float(beta[group == g].sum()) for g in range(groups)], beta, group)
    found = solved(gram, [one], tol=ANY)
    np.testing.assert_array_equal(found.beta[0], beta)
    np.testing.assert_allclose(found.judged[0], judged(one, beta, found.f[0]), rtol=1e-12, atol=1e-13)


def test_sums_in_which_nearly_everything_cancels() -> None:
    """What a group's sum misses its target by, and the dual, to their own rounding in any order of the terms."""
    large, n = 2.0**55, 5
    gram, _ = gram_of(np.zeros((n, n)), 1.0)
    for order in permutations(range(n)):
        some = list(order)
        beta = np.array([large, 1.0, 3.0, -large, 0.5])[some]
        center = np.array([1.0, 2.0, 1.0, 1.0, 8.0])[some]
        one = One((0, n, n, n), center, beta - 1.0, beta.copy(), [4.5], beta)
        found = solved(gram, [one], tol=ANY)
        np.testing.assert_array_equal(found.beta[0], beta)
        assert found.judged[0][0] == math.fsum(center * beta) == 9.0
        assert found.judged[0][6] == 0.0


def test_a_problem_in_which_nothing_can_move_stalls_after_three_turns() -> None:
    """Each one has three of its own: its scores are 1 for ever, as a step of 1 is less than the rounding of β."""
    gram, _ = gram_of(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    large = np.full(2, 2.0**60)
    stuck = One((0, 2, 2, 2), np.ones(2), 0 * large, 2 * large, [], large)
    found = solved(gram, [stuck] * 3, tol=0.5)
    assert found.stage == [STALLED] * 3 and found.turns == [3] * 3
    assert found.steps == found.moved == [0] * 3


def test_asked_for_what_rounding_does_not_allow_a_problem_stalls() -> None:
    """After three turns that gain nothing; at the latest when the violation has not become smaller for a hundred."""
    turns = []
    for n in (9, 17, 33):
        for groups in (0, 1, 2):
            K, family = a_family(n, groups, 1)
            gram, _ = gram_of(K)
            found = solved(gram, family, tol=0.0)
            assert set(found.stage) <= {CONVERGED, STALLED} and found.judged[:, 2].max() <= 1e-13
            turns += [t for t, stage in zip(found.turns, found.stage, strict=True) if stage == STALLED]
    assert max(turns) < 1000 and sorted(turns)[len(turns) // 8] < 60


def test_a_limit_on_steps_ends_after_the_turn_that_reaches_it() -> None:
    K, family = a_family(300, 1, 1)
    gram, _ = gram_of(K)
    whole = solved(gram, family[:1], tol=TOL)
    before = -1
    for turns in range(whole.turns[0] + 1):
        found = solved(gram, family[:1], tol=TOL, max_steps=before + 1)
        assert found.turns == [turns] and found.steps[0] > before
        assert found.stage == [CONVERGED if turns == whole.turns[0] else STEPS]
        assert solved(gram, family[:1], tol=TOL, max_steps=found.steps[0]).turns == [turns]
        before = found.steps[0]
    assert found.same_bits(whole)


@pytest.mark.parametrize("groups", [0, 1, 2])
def test_what_is_not_a_number_is_a_stall(groups: int) -> None:
    """At once, and so are problems that begin from it; those that do not are solved."""
    K, family = a_family(33, groups, 1)
    gram, _ = gram_of(K)
    for wrong in (np.nan, np.inf, -np.inf):
        center = family[0].center.copy()
        center[5] = wrong
        first = replace(family[0], center=center)
        found = solved(gram, [first, replace(first, parent=0), family[0]], tol=TOL)
        assert found.stage == [STALLED, STALLED, CONVERGED] and found.turns[:2] == [0, 0]
        assert np.isnan(found.judged[:2, :3]).all() and np.isfinite(found.judged[2]).all()
        outside = replace(family[0], center=center, lo=family[0].lo.copy(), hi=family[0].hi.copy())
        outside.lo[5] = outside.hi[5] = 0.0  # whose score does not count
        assert solved(gram, [outside], tol=TOL).stage == [CONVERGED]


def test_an_indefinite_matrix_ends_somewhere_within_bounds() -> None:
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 40))
    gram, K = gram_of(K + K.T)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    for groups in (0, 1):
        one = One((0, 40, 40, 40), y, np.minimum(0, 5 * y), np.maximum(0, 5 * y), [0.0] * groups)
        found = solved(gram, [one], tol=TOL, max_steps=50_000)
        assert found.stage[0] in (CONVERGED, STALLED, STEPS)
        assert (found.beta[0] >= one.lo).all() and (found.beta[0] <= one.hi).all()
        np.testing.assert_allclose(found.f[0], K @ found.beta[0], rtol=0, atol=1e-9)


def test_a_run_of_no_time_does_nothing_and_the_next_one_the_rest() -> None:
    K, family = a_family(33, 1, 1)
    gram, _ = gram_of(K)
    run = _core.Family(gram, state_of(family), np.arange(4), tol=TOL, max_steps=10**6, threads=2)
    assert run.run(0.0) == 0 and run.stage.tolist() == [0] * 4 and not run.steps.any()
    run.drop(3)
    run.drop(3)
    assert run.run(1e9) == 4 and run.stage.tolist() == [CONVERGED] * 3 + [DROPPED]
    run.drop(0)
    assert run.run(1e9) == 4 and run.stage.tolist() == [CONVERGED] * 3 + [DROPPED]
    assert (run.seconds[:3] > 0).all() and run.seconds[3] == 0
    beta, f, extra = run.solutions(0, 4)
    at, extra_at = np.arange(5) * 33, np.cumsum([0, *(len(p.extra) for p in family)])
    for first in range(5):
        for last in range(first, 5):
            b, g, e = run.solutions(first, last)
            np.testing.assert_array_equal(b, beta[at[first] : at[last]])
            np.testing.assert_array_equal(g, f[at[first] : at[last]])
            np.testing.assert_array_equal(e, extra[extra_at[first] : extra_at[last]])
    for first, last in ((-1, 2), (2, 1), (0, 5)):
        with pytest.raises(ValueError, match="no such problems"):
            run.solutions(first, last)


def test_no_problems_and_problems_of_nobody() -> None:
    gram, _ = gram_of(np.eye(3))
    empty = One((1, 1, 2, 2), np.empty(0), np.empty(0), np.empty(0), [0.0])
    found = solved(gram, [empty, replace(empty, parent=0, extra=np.arange(3))], tol=TOL)
    assert found.stage == [CONVERGED] * 2 and not found.judged.any() and not found.extra[1].any()


def test_what_does_not_fit_together_is_refused() -> None:
    """Ranges, links to later problems or to those of other ranges, extra samples, orders that are none."""
    gram, _ = gram_of(np.eye(6))
    good = [One((0, 2, 3, 6), np.ones(5), np.zeros(5), np.ones(5), [1.0]) for _ in range(3)]

    def refused(change: dict[str, object], order: tuple[int, ...] = (0, 1, 2)) -> None:
        problems = [good[0], good[1], replace(good[2], **change)]  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="do not fit together"):
            _core.Family(gram, state_of(problems), np.array(order), tol=TOL, max_steps=1, threads=1)

    assert solved(gram, good, tol=TOL).stage == [CONVERGED] * 3
    for link in ("parent", "like", "unlike"):
        refused({link: 2})
        refused({link: 3})
    for ranges in ((0, 1, 3, 6), (0, 2, 4, 7), (-1, 1, 3, 6), (2, 0, 3, 10), (0, 8, 6, 3)):
        refused({"ranges": ranges})
    refused({"ranges": (0, 3, 3, 5), "parent": 0})
    for extra in (-1, 6):
        refused({"extra": np.array([extra])})
    for order in ((0, 1), (0, 1, 1), (0, 1, 3), (-1, 0, 1), (0, 1, 2, 2)):
        refused({}, order)
    state = {name: getattr(good[0], name) for name in ("center", "lo", "hi")}
    for name, values in state.items():
        with pytest.raises(ValueError, match="do not fit together"):
            solved(gram, [replace(good[0], **{name: values[:4]})])
