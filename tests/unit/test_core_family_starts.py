"""Where a problem of a family begins (native/decomposition/family.hpp, restored.hpp): β, f = Kβ, and the rows that f takes.

With a tolerance that every point keeps to, a problem ends where it begins. Rules in plain NumPy, one line each.
"""

from __future__ import annotations

import numpy as np
import pytest
from families import ANY, CONVERGED, DROPPED, Floats, One, coefficients, gram_of, judged, solved
from numpy.typing import NDArray

SEEDS = pytest.mark.parametrize("seed", range(24))
Bools = NDArray[np.bool_]


def restored(b: Floats, lo: Floats, hi: Floats, mine: Bools, target: float) -> Floats:
    """In proportion to the distance from the nearer bound, else to the room; then those at a bound, one after the other."""
    excess, free = b[mine].sum() - target, mine & (b > lo) & (b < hi)
    if abs(excess) <= 4 * np.finfo(float).eps * np.abs(b[mine]).sum():
        return b
    sign, left, room = -np.sign(excess), abs(excess), np.where(excess > 0, b - lo, hi - b)
    near = np.where(free, np.minimum(b - lo, hi - b), 0.0)
    inside = np.where(free, room, 0.0)
    for share in (near, inside):
        if share.sum() >= left:
            return np.clip(b + sign * share * left / share.sum(), lo, hi)
    rest = np.where(mine & ~free, room, 0.0)
    return np.clip(b + sign * (inside + np.clip(left - inside.sum() - (np.cumsum(rest) - rest), 0.0, rest)), lo, hi)


def mended(b: Floats, lo: Floats, hi: Floats, mine: Bools, target: float) -> Floats:
    """By those farthest from their bounds, none nearer to one than half way, if they can."""
    near, excess = np.where(mine, np.minimum(b - lo, hi - b), 0.0), b[mine].sum() - target
    order = np.argsort(-near, kind="stable")
    if 0.5 * near.sum() < abs(excess) or excess == 0:
        return b
    some = order[: 1 + int(np.argmax(0.5 * np.cumsum(near[order]) >= abs(excess)))]
    out = b.copy()
    out[some] = np.clip(b[some] - near[some] * excess / near[some].sum(), lo[some], hi[some])
    return out


def inherited(one: One, parent: One, b: Floats, more: Floats | float = 0.0) -> Floats:
    """What is at a bound goes to the new one, the rest stays."""
    bound = np.select([b == 0, b >= parent.hi, b <= parent.lo], [0.0, one.hi, one.lo], b)
    return np.clip(bound + more, one.lo, one.hi)


def started(one: One, beta: Floats, known: bool) -> Floats:
    """With every group's sum at its target."""
    for g, target in enumerate(one.target):
        mine = one.of == g
        if known:
            beta = mended(beta, one.lo, one.hi, mine, target)
        beta = restored(beta, one.lo, one.hi, mine, target)
    return beta


def rows_taken(now: Floats, before: Floats, ratio: float, more: Floats | float = 0.0) -> int:
    """The fewest rows by which f follows from f at `before`, as it is or times the ratio, or from nothing."""
    ways = [(int((now != 0).sum()), int((now != 0).sum()))]
    for scale in (1.0, ratio):
        ways.append((int((now != scale * before).sum()), int((now - scale * before - more != 0).sum())))
    return min(ways, key=lambda way: way[0])[1]


def a_matrix(n: int, seed: int) -> Floats:
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return np.asarray(np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(-1)))


def drawn(seed: int, groups: int, halves: int, C: float = 4.0) -> tuple[One, Floats]:
    """A problem on two ranges of a matrix, and β in 1024ths of C: at either bound, 0, inside."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0, 1, 3, 7, 8, 15, 16, 17, 31, 33], 2)
    sizes[0] += sizes.sum() == 0
    gaps = rng.integers(0, 4, 2)
    a = int(gaps[0])
    b = a + int(sizes[0])
    c = b + int(gaps[1])
    d = c + int(sizes[1])
    m = int(sizes.sum())
    if halves == 2:
        lo, hi = np.repeat([0.0, -C], m), np.repeat([C, 0.0], m)
    else:
        kind = rng.integers(0, 3, m)
        lo, hi = np.choose(kind, [0.0, -C, -C / 2]), np.choose(kind, [C, 0.0, C])
    size = m * halves
    wide = np.tile(1 + rng.integers(0, 16, m) / 16, halves)  # weights of samples
    lo, hi = wide * lo, wide * hi
    where = rng.integers(0, 5, size)
    beta = np.choose(where, [0.0, lo, hi, lo + (hi - lo) * rng.integers(1, 64, size) / 64, np.clip(1.0, lo, hi)])
    group = rng.integers(0, groups, size).astype(np.int8) if groups == 2 else np.zeros(size, np.int8)
    sums = [float(beta[group == g].sum()) for g in range(groups)]
    return One((a, b, c, d), rng.normal(size=size), lo, hi, sums, beta, group, extra=np.arange(d + 2)), beta


def at(C: float, one: One, out: Bools | None = None, **links: float) -> One:
    """The same problem with bounds C times as wide, some samples left out, from others."""
    halves = len(one.center) // len(one.samples)
    keep = np.ones(len(one.center)) if out is None else np.tile(~out, halves).astype(float)
    return One(one.ranges, one.center, C * keep * one.lo, C * keep * one.hi, one.target, None, one.group, **links)  # type: ignore[arg-type]


def agrees(K: Floats, one: One, found: Floats, f: Floats, expected: Floats, halves: int) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    assert (found >= one.lo).all() and (found <= one.hi).all()
    value = K[np.ix_(one.samples, one.samples)] @ coefficients(found, halves)
    np.testing.assert_allclose(f, value, rtol=1e-12, atol=1e-11)


@SEEDS
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_sums_are_moved_to_their_targets(seed: int, groups: int, halves: int) -> None:
    """A little, far, to the end of what bounds allow, beyond; nothing moves where they are there already."""
    one, beta = drawn(seed, groups, halves)
    gram, K = gram_of(a_matrix(one.ranges[3] + 2, seed))
    most = [[bound[one.of == g].sum() for g in range(groups)] for bound in (one.lo, one.hi)]
    sums = one.target
    for part in (0.0, 0.02, 0.3, 0.7, 0.97, 1.0, 1.2) if groups else (0.0,):
        for end in most:
            one.target = [s + part * (e - s) for s, e in zip(sums, end, strict=True)]
            expected = started(one, beta, False)
            found = solved(gram, [one], halves=halves, tol=ANY)
            agrees(K, one, found.beta[0], found.f[0], expected, halves)
            assert found.stage == [CONVERGED] and found.steps == found.turns == found.moved == [0]
            moved = coefficients(found.beta[0], halves)
            assert found.begun_moved == [np.count_nonzero(moved)]
            np.testing.assert_allclose(found.extra[0], K[one.extra][:, one.samples] @ moved, rtol=1e-12, atol=1e-11)
            if part == 0:
                np.testing.assert_array_equal(found.beta[0], beta)
            elif part <= 1:
                assert (judged(one, found.beta[0], found.f[0])[5 + groups : 5 + 2 * groups] <= 1e-13 * len(beta)).all()


@SEEDS
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_a_problem_begins_where_its_parent_ended(seed: int, groups: int, halves: int) -> None:
    """On all rows at C, at twice C; a fold at C, and at twice C with what it did at C added; a fold from another one."""
    one, beta = drawn(seed, groups, halves)
    gram, K = gram_of(a_matrix(one.ranges[3] + 2, seed))
    rng = np.random.default_rng(seed)
    first, second = (rng.random(len(one.samples)) < 0.3 for _ in range(2))
    problems = [
        one, at(2, one, parent=0, ratio=2.0), at(1, one, first, parent=0), at(2, one, first, parent=1, like=2, unlike=0),
        at(1, one, second, parent=2, ratio=1.0), at(4, one, parent=3, ratio=2.0),
    ]  # fmt: skip
    found = solved(gram, problems, halves=halves, tol=ANY)
    b = found.beta
    np.testing.assert_array_equal(b[0], beta)
    for p, child in enumerate(problems[1:], 1):
        more = b[2] - b[0] if p == 3 else 0.0
        expected = started(child, inherited(child, problems[child.parent], b[child.parent], more), True)
        agrees(K, child, b[p], found.f[p], expected, halves)
        if groups == 0:  # whole 1024ths, without rounding
            now, then = coefficients(b[p], halves), coefficients(b[child.parent], halves)
            also = coefficients(more, halves) if p == 3 else 0.0
            assert found.begun_moved[p] == rows_taken(now, then, child.ratio, also)
    for threads in (2, 3):
        assert solved(gram, problems, halves=halves, tol=ANY, threads=threads).same_bits(found)


def test_f_follows_by_the_ratio_only_where_that_takes_fewer_rows() -> None:
    """All at a bound: no row at twice C; nothing at a bound: none as it is; most gone: those that are left."""
    n = 33
    gram, K = gram_of(a_matrix(n, 0))
    lo, hi, center = np.zeros(n), np.full(n, 4.0), np.ones(n)
    few = np.arange(n) < 30
    both = np.where(np.arange(n) < 20, 1.0, 4.0), np.where(np.arange(n) < 5, 1.0, 4.0)
    cases = (hi, None, 0), (np.full(n, 1.5), None, 0), (hi, few, 3), (both[0], None, 13), (both[1], None, 5)
    for start, out, rows in cases:
        one = One((0, n, n, n), center, lo, hi, [], start)
        found = solved(gram, [one, at(2, one, out, parent=0, ratio=2.0)], tol=ANY)
        assert found.begun_moved == [n, rows]
        np.testing.assert_allclose(found.f[1], K @ found.beta[1], rtol=1e-13)


@pytest.mark.parametrize("groups", [0, 1])
def test_who_was_dropped_is_nobodys_parent(groups: int) -> None:
    """A problem whose parent, or one of the two whose difference would be added, was dropped begins without."""
    one, beta = drawn(5, groups, 1)
    gram, K = gram_of(a_matrix(one.ranges[3] + 2, 5))
    own = at(2, one, parent=0, ratio=2.0)
    own.start = np.clip(np.full(len(beta), 0.25), own.lo, own.hi)
    own.target = [float(own.start.sum())] * groups
    found = solved(gram, [one, own], tol=ANY, drop=(0,))
    assert found.stage == [DROPPED, CONVERGED]
    agrees(K, own, found.beta[1], found.f[1], own.start, 1)
    out = np.arange(len(one.samples)) % 3 == 0
    problems = [one, at(2, one, parent=0, ratio=2.0), at(1, one, out, parent=0), at(2, one, out, parent=1, like=2, unlike=0)]
    found = solved(gram, problems, tol=ANY, drop=(2,))
    expected = started(problems[3], inherited(problems[3], problems[1], found.beta[1]), True)
    assert found.stage == [CONVERGED, CONVERGED, DROPPED, CONVERGED]
    agrees(K, problems[3], found.beta[3], found.f[3], expected, 1)
