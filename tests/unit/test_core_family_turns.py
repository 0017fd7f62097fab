"""What one turn of a family's problem does (native/decomposition/family.hpp): whom it chooses, and that it solves these.

Who is in a working set is written down here once more (set_choice.hpp), and every turn is run by itself: a limit on steps
ends a problem after the turn that reaches it.
"""

from __future__ import annotations

import numpy as np
import pytest
from families import CONVERGED, STEPS, Floats, Ints, One, Solved, extremes, gram_of, scores, solved, violation

from maxmargin import _core

TOL = 1e-5


def chosen(one: One, beta: Floats, f: Floats, last: Ints) -> tuple[Ints, bool]:
    """Half of the set: of those that want to rise and to fall, of each group, as many of the worst; then the free ones of
    the last set, other free ones, those of the last set, others. All variables where 2560 of them are free."""
    groups, score = len(one.target), scores(one, f)
    group = one.of.astype(int) if groups > 1 else np.zeros(len(score), int)
    top, bottom = extremes(one, beta, f)
    with np.errstate(invalid="ignore"):
        ends = np.where(np.isfinite(top) & np.isfinite(bottom), 0.5 * (top + bottom), np.nan)
    middle = np.zeros(len(score)) if groups == 0 else np.where(np.isnan(ends[group]), score, ends[group])
    rise = np.where(beta < one.hi, score - middle, -np.inf)
    fall = np.where(beta > one.lo, middle - score, -np.inf)
    want, free, kind = np.maximum(rise, fall), np.minimum(rise, fall) > -np.inf, 2 * group + (rise < fall)
    who = np.flatnonzero((one.lo < one.hi) & ((want > 0) | free))
    freed = int(free[who].sum())
    if freed > 2560:
        return np.arange(len(score)), True
    most = min(freed + freed // 4 + 256, 1536)
    if len(who) <= most:
        return who, False
    rank = who[np.lexsort((who, -want[who]))]
    kinds = [rank[kind[rank] == k] for k in range(4) if (kind[who] == k).any()]
    worst = np.concatenate([mine[: most // 2 // len(kinds)] for mine in kinds])
    rest = np.setdiff1d(who, worst)
    keep = np.choose(2 * ~free[rest] + ~np.isin(rest, last), [0, 1, 2, 3])
    return np.sort(np.r_[worst, rest[np.lexsort((rest, -want[rest], keep))][: most - len(worst)]]), False


def followed(gram: _core.Gram, K: Floats, one: One, halves: int, most: int, tol: float = TOL) -> list[int]:
    """Turn by turn: nobody moves who is not in the set, and it is solved to a tenth. The sizes of the sets."""
    at = solved(gram, [one], halves=halves, tol=tol, max_steps=0)
    own, last, sizes = K[np.ix_(one.samples, one.samples)], np.empty(0, np.int64), []
    while len(sizes) < most and at.stage == [STEPS]:
        after = solved(gram, [one], halves=halves, tol=tol, max_steps=at.steps[0] + 1)
        assert after.turns == [len(sizes) + 1]
        before, now, f = at.beta[0], after.beta[0], at.f[0]
        last, whole = chosen(one, before, f, last)
        sizes.append(len(last))
        one_each = halves == 2 and len(one.target) < 2
        changed = np.flatnonzero(before != now)
        if one_each:  # those whose other half was in the set
            changed = changed[~np.isin((changed + len(one.samples)) % len(before), last)]
            both = last % len(one.samples)
            assert not ((now[both] > 0) & (now[both + len(one.samples)] < 0)).any()
        assert np.isin(changed, last).all()
        np.testing.assert_allclose(after.f[0], own @ now.reshape(halves, -1).sum(0), rtol=1e-12, atol=1e-9)
        some = [getattr(one, name)[last] for name in ("center", "lo", "hi")]
        part = One(one.ranges, *some, one.target, None, one.of[last])
        left = violation_of(part, now[last], np.tile(after.f[0], halves)[last])
        asked = 0.5 * tol if whole else max(0.5 * tol, 0.1 * violation(one, before, f))
        assert left <= 1.1 * asked, (len(sizes), left, asked)
        moved = np.count_nonzero((now - before).reshape(halves, -1).sum(0))
        assert abs(after.moved[0] - at.moved[0] - moved) <= (len(before) if one_each else 0)
        at = after
    return sizes


def violation_of(part: One, beta: Floats, f: Floats) -> float:
    """Of some variables, f one for each."""
    flat = One(part.ranges, part.center - f, part.lo, part.hi, part.target, None, part.group)
    return violation(flat, beta, np.zeros(len(beta)))


def a_problem(n: int, groups: int, halves: int, C: float, ranges: tuple[int, int, int, int]) -> tuple[Floats, One]:
    rng = np.random.default_rng(n + 10 * groups + halves)
    X = rng.normal(size=(n, 5))
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(-1))
    m = ranges[1] - ranges[0] + ranges[3] - ranges[2]
    some = np.r_[ranges[0] : ranges[1], ranges[2] : ranges[3]]
    if halves == 2:
        y = np.sin(3 * X[some]).sum(1)
        center, lo, hi = np.r_[y - 0.1, y + 0.1], np.repeat([0.0, -C], m), np.repeat([C, 0.0], m)
        group = np.repeat([0, 1], m).astype(np.int8)
    else:
        y = np.where(X[some, 0] + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
        center, lo, hi = y.copy(), np.minimum(0, C * y), np.maximum(0, C * y)
        group = (np.arange(m) % 2).astype(np.int8)
    hi[::7] = lo[::7] = 0.0  # left out by a fold
    return K, One(ranges, center, lo, hi, [0.0] * groups, None, group if groups == 2 else np.zeros(m * halves, np.int8))


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("C", [0.5, 30.0])
@pytest.mark.parametrize("ranges", [(0, 640, 640, 640), (3, 260, 270, 640)])
def test_turns_of_a_problem_that_is_larger_than_its_sets(groups: int, C: float, ranges: tuple[int, int, int, int]) -> None:
    K, one = a_problem(640, groups, 1, C, ranges)
    gram, values = gram_of(K)
    sizes = followed(gram, values, one, 1, 6)
    assert len(set(sizes)) > 1  # sets of several sizes, in the same places


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("C", [0.05, 0.3])
def test_who_was_in_the_last_set_comes_before_who_was_not(groups: int, C: float) -> None:
    """Of so many samples that more than one set of them has to go to its bound, and some of those back."""
    K, one = a_problem(900, groups, 1, C, (0, 900, 900, 900))
    gram, values = gram_of(K)
    assert min(followed(gram, values, one, 1, 3)[:2]) >= 256


@pytest.mark.parametrize("groups", [0, 1, 2])
@pytest.mark.parametrize("ranges", [(0, 330, 330, 330), (3, 160, 170, 333)])
def test_turns_of_a_regression(groups: int, ranges: tuple[int, int, int, int]) -> None:
    """Both variables of a sample may be in a set, and where nothing holds them apart only one of them stays positive."""
    K, one = a_problem(333, groups, 2, 3.0, ranges)
    gram, values = gram_of(K)
    followed(gram, values, one, 2, 6)


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 49, 63, 65, 97, 255, 257])
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_a_set_of_everybody_is_solved_to_a_tenth_in_each_turn(n: int, groups: int) -> None:
    """Every entry of its tile counts, whatever its size."""
    K, one = a_problem(n, groups, 1, 3.0, (0, n, n, n))
    gram, values = gram_of(K)
    sizes = followed(gram, values, one, 1, 12)
    assert len(sizes) <= 9


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("free", [0, 100, 900])
@pytest.mark.parametrize("n", [257, 520, 1600, 1793])
def test_on_a_matrix_of_ones_and_zeros_the_set_is_who_moves(n: int, free: int, tied: bool) -> None:
    """Without sums to keep, all of them take one step: to the bound, or to the middle."""
    rng = np.random.default_rng(n + free)
    gram, _ = gram_of(np.eye(n))
    center = (rng.integers(1, 4, n) if tied else rng.uniform(1, 9, n)) * rng.choice([-1.0, 1.0], n)
    start = np.where(np.arange(n) < free, 0.25, 0.0) * np.sign(center)
    some = rng.permutation(n)
    center, start = center[some], start[some]
    one = One((0, n, n, n), center, np.minimum(0, 2 * center), np.maximum(0, 2 * center), [], start)
    set_, whole = chosen(one, start, start, np.empty(0, np.int64))
    found = solved(gram, [one], tol=1e-6, max_steps=1)
    assert not whole and found.turns == [1]
    asked = 0.1 * np.abs(center - start).max()
    moves = set_[np.abs(center - start)[set_] > asked]
    assert np.isin(moves, np.flatnonzero(found.beta[0] != start)).all()
    assert np.isin(np.flatnonzero(found.beta[0] != start), set_).all()
    np.testing.assert_allclose(found.beta[0][moves], center[moves], rtol=1e-6)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_who_is_content_is_of_those_that_want_to_rise(sign: float) -> None:
    """So that where all others want to rise they have half of the set, and where all want to fall a quarter."""
    n, free = 1800, 1300
    gram, _ = gram_of(np.eye(n))
    away = np.random.default_rng(0).permutation(np.linspace(0.5, 2.0, n))
    start = np.where(np.arange(n) < free, 3.0, 0.0)
    center = start + sign * np.where(np.arange(n) < free, 0.4 * away, away)
    center[7] = start[7]
    lo, hi = np.where((start == 0) & (sign > 0), 0.0, -9.0), np.where((start == 0) & (sign < 0), 0.0, 9.0)
    one = One((0, n, n, n), center, lo, hi, [], start)
    set_, _ = chosen(one, start, start, np.empty(0, np.int64))
    found = solved(gram, [one], tol=1e-6, max_steps=1)
    asked = 0.1 * np.abs(center - start).max()
    changed = np.flatnonzero(found.beta[0] != start)
    assert np.isin(changed, set_).all()
    assert np.isin(set_[np.abs(center - start)[set_] > asked], changed).all()
    assert len(set_) == 1536 and ((set_ >= free).sum() <= 384) == (sign < 0)


def wide(n: int) -> Floats:
    """A matrix of n samples that is quick to make, and whose problems take few steps."""
    a, b = np.sin(np.arange(n)), np.cos(np.arange(n))
    return np.asarray(np.diag(np.full(n, 2.0)) + (np.outer(a, a) + np.outer(b, b)) / n)


@pytest.mark.parametrize("groups", [0, 1])
def test_more_free_variables_than_a_set_may_have(groups: int) -> None:
    """The worst of them, those of the last set, others."""
    n = 1793
    gram, values = gram_of(wide(n))
    center, start = np.random.default_rng(groups).uniform(-9, 9, n), np.where(np.arange(n) < 1700, 0.0, 5.0)
    one = One((0, n, n, n), center, np.full(n, -5.0), np.full(n, 5.0), [float(start.sum())] * groups, start)
    assert followed(gram, values, one, 1, 3)[0] == 1536


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
@pytest.mark.parametrize("halves", [1, 2])
def test_where_very_many_are_free_a_turn_is_of_all_of_them(halves: int, tol: float) -> None:
    """It takes whole rows of the matrix, of one range of samples or two, and one turn."""
    n = 2640 // halves
    K = wide(n)
    gram, values = gram_of(K)
    for ranges in ((0, n, n, n), (3, 700, 705, n)) if halves == 2 else ((3, 1300, 1305, n),):
        m = ranges[1] - ranges[0] + ranges[3] - ranges[2]
        some = np.r_[ranges[0] : ranges[1], ranges[2] : ranges[3]]
        y = np.sin(some * some)
        for groups in (0, 1):
            if halves == 2:
                center, lo, hi = np.r_[y - 0.01, y + 0.01], np.repeat([0.0, -8.0], m), np.repeat([8.0, 0.0], m)
                start = np.repeat([0.5, -0.5], m)
            else:
                center, lo, hi, start = y, np.full(m, -8.0), np.full(m, 8.0), np.zeros(m)
            one = One(ranges, center, lo, hi, [0.0] * groups, start)
            assert chosen(one, start, values[np.ix_(some, some)] @ start.reshape(halves, -1).sum(0), some)[1]
            found = solved(gram, [one], halves=halves, tol=tol)
            assert found.stage == [CONVERGED] and found.turns == [1]
            assert violation(one, found.beta[0], found.f[0]) <= tol
            np.testing.assert_allclose(found.f[0], values[np.ix_(some, some)] @ found.beta[0].reshape(halves, -1).sum(0),
                                       rtol=1e-11, atol=1e-11)  # fmt: skip


def test_as_many_turns_as_it_takes_are_the_same_for_any_number_of_threads() -> None:
    """Sets, tiles and steps of a problem are its own, whoever had the thread before."""
    made = [a_problem(640, 1, 1, C, (0, 640, 640, 640)) for C in (0.5, 2.0, 8.0)]
    gram, _ = gram_of(made[0][0])
    problems = [one for _, one in made] * 2
    runs: list[Solved] = [solved(gram, problems, threads=threads) for threads in (1, 2, 3)]
    alone = [solved(gram, [one]) for one in problems]
    for run in runs:
        assert run.same_bits(runs[0])
        for p, own in enumerate(alone):
            assert run.beta[p].tobytes() == own.beta[0].tobytes() and run.turns[p] == own.turns[0]
