"""Many small QPs at once (native/decomposition/many.hpp, pair_rows.hpp): each on two blocks of samples, against NumPy.

Blocks of all sizes around whole vectors and panels; rows of one problem, shared by problems, or all computed beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from families import ANY, Floats, Ints, One, extremes, judged, violation

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

WAITING, CONVERGED, STALLED, ROUNDS, STEPS = 0, 2, 3, 4, 5
SIZES = [1, 15, 16, 17, 2, 31, 33, 65]
KERNELS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "rbf": lambda a, b: np.exp(-0.3 * ((a[:, None] - b[None]) ** 2).sum(-1)),
    "laplacian": lambda a, b: np.exp(-0.3 * np.abs(a[:, None] - b[None]).sum(-1)),
    "linear": lambda a, b: a @ b.T,
    "poly": lambda a, b: (0.3 * a @ b.T + 1.5) ** 2,
    "sigmoid": lambda a, b: np.tanh(0.3 * a @ b.T + 1.5),
}
EPS = {np.float32: 1.2e-7, np.float64: 2.3e-16}
FORMS = pytest.mark.parametrize("form", ["dense", "csr"])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
GROUPS = pytest.mark.parametrize("groups", [0, 1, 2])


@dataclass
class Blocks:
    """Samples of a matrix, in any order and some of them twice, in blocks; problems on pairs of these."""

    X: Floats
    row: Ints
    end: Ints
    pairs: list[tuple[int, int]]

    def samples(self, p: int) -> Ints:
        return np.concatenate([np.arange(self.end[b], self.end[b + 1]) for b in self.pairs[p] if b >= 0])

    def K(self, p: int, kernel: str) -> Floats:
        x = self.X[self.row[self.samples(p)]]
        return KERNELS[kernel](x, x)

    @property
    def offset(self) -> Ints:
        return np.cumsum([0, *(len(self.samples(p)) for p in range(len(self.pairs)))])


def blocks_of(sizes: list[int], seed: int = 0, features: int = 5, pairs: list[tuple[int, int]] | None = None) -> Blocks:
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = np.round(rng.normal(size=(n + 9, features)), 2) * (rng.random((n + 9, features)) < 0.8)
    row = rng.permutation(n + 9)[:n]
    row[n // 2] = row[0]
    one = [(b, -1) for b in range(len(sizes))]
    every = [*combinations(range(len(sizes)), 2), *one[::3], (len(sizes) - 1, 0), (1, 1)] if len(sizes) > 1 else one
    return Blocks(X, row, np.cumsum([0, *sizes]), every if pairs is None else pairs)


@dataclass
class Given:
    """The variables of all problems, one after the other."""

    sign: Floats
    center: Floats
    upper: Floats
    alpha: Floats
    group: np.ndarray
    targets: Floats

    def one(self, at: slice, p: int) -> One:
        signed = (self.sign * self.upper)[at]
        lo, hi = np.minimum(0, signed), np.maximum(0, signed)
        return One((0, len(signed), 0, 0), self.center[at], lo, hi, list(self.targets[p]), None, self.group[at])


def given(blocks: Blocks, groups: int, seed: int = 0, C: float = 2.0) -> Given:
    """Targets are the sums of the starts, whatever those are."""
    rng, n = np.random.default_rng(seed), int(blocks.offset[-1])
    sign, upper = rng.choice([-1.0, 1.0], n), C * rng.uniform(0.5, 1.5, n)
    alpha = upper * np.choose(rng.integers(0, 4, n), [0.0, 0.0, 1.0, rng.random(n)])
    group = rng.integers(0, groups, n).astype(np.int8) if groups == 2 else np.zeros(n, np.int8)
    center = sign + 0.3 * rng.normal(size=n)
    beta, ends = sign * alpha, blocks.offset
    targets = [[beta[a:b][group[a:b] == g].sum() for g in range(groups)] for a, b in pairwise(ends)]
    return Given(sign, center, upper, alpha, group, np.array(targets).reshape(len(ends) - 1, groups))


def core(
    blocks: Blocks, g: Given, kernel: str = "rbf", form: str = "dense", dtype: type = np.float64, *, tol: float = 1e-6,
    max_rounds: int = 10**6, max_steps: int = 10**6, shrinking: bool = True, cache: int = 1 << 22, whole: bool = False,
    threads: int = 1,
) -> Any:  # fmt: skip
    X = blocks.X.astype(dtype)
    made = as_matrix(sp.csr_matrix(X) if form == "csr" else X)
    points: Any = (_core.Points32 if dtype == np.float32 else _core.Points64)(made, kernel, 0.3, 1.5, 2, blocks.row, 1)
    first, second = np.array(blocks.pairs, np.int64).reshape(-1, 2).T
    return (_core.Many32 if dtype == np.float32 else _core.Many64)(
        points, blocks.row, blocks.end, first.copy(), second.copy(), blocks.offset, g.sign, g.center, g.upper, g.alpha,
        g.group, g.targets.shape[1], tol, max_rounds, max_steps, shrinking, cache, whole, threads,
    )  # fmt: skip


def told(run: Any, g: Given, magnitude: Floats) -> Floats:
    return np.asarray(run.judged(g.targets, magnitude)).reshape(len(g.targets), -1)


def bits(run: Any, g: Given, magnitude: Floats) -> bytes:
    """All that does not depend on where rows come from."""
    return bytes(run.beta.tobytes() + run.f.tobytes() + np.delete(told(run, g, magnitude), 3, axis=1).tobytes())


@pytest.mark.parametrize("kernel", KERNELS)
@FORMS
@DTYPES
def test_where_a_problem_begins(kernel: str, form: str, dtype: type) -> None:
    """f = Kβ of a given β, by the rows of what is not 0 or by all of them; nothing moves."""
    blocks = blocks_of(SIZES)
    g = given(blocks, 1)
    ends = blocks.offset
    for whole in (False, True):
        run = core(blocks, g, kernel, form, dtype, tol=ANY, whole=whole)
        assert run.run(1e9, np.inf) == len(blocks.pairs) and run.whole == whole
        beta = g.sign * g.alpha
        np.testing.assert_array_equal(run.beta, beta)
        found = told(run, g, np.ones(len(blocks.row)))
        np.testing.assert_array_equal(found[:, :3], np.tile([CONVERGED, 0.0, 0.0], (len(found), 1)))
        for p, (a, b) in enumerate(pairwise(ends)):
            K = blocks.K(p, kernel)
            slack = 100 * EPS[dtype] * np.abs(K).max() * np.abs(beta[a:b]).sum()
            np.testing.assert_allclose(run.f[a:b], K @ beta[a:b], rtol=0, atol=max(slack, 1e-13))
            assert found[p, 3] == (b - a if whole else np.count_nonzero(beta[a:b]))


@FORMS
@DTYPES
@GROUPS
def test_every_problem_ends_at_its_solution(groups: int, form: str, dtype: type) -> None:
    """Within bounds, sums as they were, f = Kβ, no violation above tol; the same bits from rows of any source."""
    blocks = blocks_of(SIZES)
    g = given(blocks, groups)
    m = np.random.default_rng(3).uniform(0.5, 2, len(blocks.row))
    tol, ends = 1e-3 if dtype == np.float32 else 1e-8, blocks.offset
    answers = []
    room = 1 << 22
    for whole, cache, threads in ((False, room, 1), (False, 0, 0), (False, 20_000, 2), (False, room, 3), (True, room, 2)):
        run = core(blocks, g, "rbf", form, dtype, tol=tol, cache=cache, whole=whole, threads=threads)
        assert run.run(1e9, np.inf) == len(blocks.pairs)
        answers.append(bits(run, g, m))
        assert answers[-1] == answers[0]
    beta, f, found = run.beta, run.f, told(run, g, m)
    for p, (a, b) in enumerate(pairwise(ends)):
        one, own = g.one(slice(a, b), p), m[blocks.samples(p)]
        assert (beta[a:b] >= one.lo).all() and (beta[a:b] <= one.hi).all()
        for k in range(groups):
            mine = (beta[a:b])[one.of == k]
            assert abs(mine.sum() - one.target[k]) <= 1e-13 * max(1.0, np.abs(mine).sum())
        slack = max(1e-12, 200 * EPS[dtype] * (b - a))
        np.testing.assert_allclose(f[a:b], blocks.K(p, "rbf") @ beta[a:b], rtol=0, atol=slack)
        assert violation(one, beta[a:b], f[a:b]) <= tol
        assert found[p, 0] == CONVERGED and found[p, 3] == b - a
        agrees(found[p], one, beta[a:b], f[a:b], own)


def agrees(found: Floats, one: One, beta: Floats, f: Floats, m: Floats) -> None:
    """What is said of a problem, and what NumPy says."""
    expected = judged(one, beta, f)
    support = [np.count_nonzero(beta), m.max(initial=0), (np.abs(beta) * m).sum(), ((beta * m) ** 2).sum()]
    np.testing.assert_allclose(found[4:], [*expected[:3], *support, *expected[5:]], rtol=1e-12, atol=1e-13)


@GROUPS
@pytest.mark.parametrize("seed", range(6))
def test_any_point_is_judged_as_numpy_judges_it(groups: int, seed: int) -> None:
    """With a magnitude of each sample, whichever two blocks a problem has."""
    rng = np.random.default_rng(seed)
    blocks = blocks_of(rng.integers(1, 9, 5).tolist(), seed)
    g = given(blocks, groups, seed)
    if seed % 2:
        g.alpha = g.upper * (g.alpha > 0)  # nobody is free
    if seed == 5:
        g.alpha = np.where(g.sign > 0, g.upper, 0.0)  # and everybody can only fall
    m, ends = rng.uniform(0, 3, len(blocks.row)), blocks.offset
    run = core(blocks, g, tol=ANY, threads=1 + seed % 3)
    run.run(1e9, np.inf)
    for p, found in enumerate(told(run, g, m)):
        at = slice(ends[p], ends[p + 1])
        agrees(found, g.one(at, p), run.beta[at], run.f[at], m[blocks.samples(p)])


@pytest.mark.parametrize("kernel", KERNELS)
@FORMS
@DTYPES
def test_two_samples_take_one_step_and_one_alone_too(kernel: str, form: str, dtype: type) -> None:
    """K(i, i) is the same number wherever it is used: a step of another length would need a second one."""
    X = np.array([[1.5, -0.5, 2.0], [0.0, 1.0, 0.25], [-1.0, 0.5, 0.75], [2.0, 2.0, -1.0]])
    blocks = Blocks(X, np.array([2, 0, 3]), np.array([0, 1, 2, 3]), [(0, 1), (1, 2), (0, 2)])
    sign, C = np.tile([1.0, -1.0], 3), np.full(6, 1e9)
    g = Given(sign, sign.copy(), C, np.zeros(6), np.zeros(6, np.int8), np.zeros((3, 1)))
    run = core(blocks, g, kernel, form, dtype, tol=1e-4)
    run.run(1e9, np.inf)
    for p in range(3):
        K = blocks.K(p, kernel)
        assert run.beta[2 * p] == -run.beta[2 * p + 1] == pytest.approx(2 / (K[0, 0] + K[1, 1] - 2 * K[0, 1]), rel=1e-4)
    np.testing.assert_array_equal(told(run, g, np.ones(3))[:, [0, 2]], np.tile([CONVERGED, 1.0], (3, 1)))
    blocks.pairs = [(0, -1), (1, -1), (2, -1)]
    g = Given(sign[:3], sign[:3] / 3, C[:3], np.zeros(3), np.zeros(3, np.int8), np.zeros((3, 0)))
    run = core(blocks, g, kernel, form, dtype, tol=1e-4)
    run.run(1e9, np.inf)
    np.testing.assert_allclose(run.beta, [sign[p] / 3 / blocks.K(p, kernel)[0, 0] for p in range(3)], rtol=1e-4)
    np.testing.assert_array_equal(told(run, g, np.ones(3))[:, [0, 2]], np.tile([CONVERGED, 1.0], (3, 1)))


def hard(size: int = 150, count: int = 3, C: float = 100.0) -> tuple[Blocks, Given]:
    """Classes that lie in one another, from 0: some hundred steps for each problem."""
    blocks = blocks_of([size] * count, 1, 4, list(combinations(range(count), 2)))
    n = int(blocks.offset[-1])
    sign = np.concatenate([np.repeat([1.0, -1.0], size) for _ in blocks.pairs])
    zeros = np.zeros(n), np.zeros(n, np.int8), np.zeros((len(blocks.pairs), 1))
    return blocks, Given(sign, sign.copy(), np.full(n, C), *zeros)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("limit", [0, 1, 63, 64, 65, 200])
def test_a_limit_on_steps_is_kept_to_the_step(limit: int, threads: int) -> None:
    blocks, g = hard()
    run = core(blocks, g, max_steps=limit, threads=threads)
    assert run.run(1e9, np.inf) == 3
    found = told(run, g, np.ones(len(blocks.row)))
    np.testing.assert_array_equal(found[:, [0, 2]], np.tile([STEPS, limit], (3, 1)))
    assert (found[:, 6] > 1e-6).all()
    for p in range(3):
        at = slice(*blocks.offset[p : p + 2])
        agrees(found[p], g.one(at, p), run.beta[at], run.f[at], np.ones(300))
        np.testing.assert_allclose(run.f[at], blocks.K(p, "rbf") @ run.beta[at], rtol=0, atol=1e-10)


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_limit_on_rounds_is_kept_to(limit: int) -> None:
    """The first of them takes all steps that scores in float32 ask for."""
    blocks, g = hard(60)
    run = core(blocks, g, dtype=np.float32, tol=1e-12, max_rounds=limit)
    assert run.run(1e9, np.inf) == 3
    found = told(run, g, np.ones(len(blocks.row)))
    np.testing.assert_array_equal(found[:, :2], np.tile([ROUNDS, limit], (3, 1)))
    assert (found[:, 2] > 0).all() == bool(limit)
    free = core(blocks, g, dtype=np.float32, tol=1e-12)
    free.run(1e9, np.inf)
    found = told(free, g, np.ones(len(blocks.row)))
    assert set(found[:, 0]) <= {STALLED, CONVERGED} and (found[:, 1] >= 3).all()


@pytest.mark.parametrize("size", [8, 15, 20])
@pytest.mark.parametrize("shrinking", [False, True])
def test_a_round_has_two_hundred_steps_of_each_variable_at_the_most(size: int, shrinking: bool) -> None:
    """And what it takes to the next look, after 64; then f is made anew."""
    blocks, g = hard(size, 2, 1e6)
    for rounds in (1, 2):
        run = core(blocks, g, "linear", tol=1e-9, max_rounds=rounds, shrinking=shrinking)
        run.run(1e9, np.inf)
        found = told(run, g, np.ones(2 * size))[0]
        assert found[:3].tolist() == [ROUNDS, rounds, rounds * -(-200 * 2 * size // 64) * 64]


@GROUPS
def test_what_is_not_a_number_is_a_stall(groups: int) -> None:
    """After three rounds, in none of which anything moves; other problems are solved."""
    blocks = blocks_of([5, 17, 9], 0, 3, [(0, 1), (0, 2), (1, 2), (2, -1)])
    g = given(blocks, groups)
    at = blocks.offset
    g.center[at[1] + 2] = np.nan
    g.center[at[3] + 1] = np.inf
    run = core(blocks, g)
    assert run.run(1e9, np.inf) == 4
    found = told(run, g, np.ones(31))
    assert found[:, 0].tolist() == [CONVERGED, STALLED, CONVERGED, STALLED]
    assert found[1, 1] == found[3, 1] == 3
    for p in range(4):
        assert np.isnan(found[p, 4:7]).all() if p % 2 else np.isfinite(found[p]).all()


@FORMS
@DTYPES
@GROUPS
def test_who_is_left_out_for_a_while_is_in_the_solution(groups: int, form: str, dtype: type) -> None:
    """Variables held at a bound stand aside, which changes nothing of where a problem ends."""
    blocks, g = hard(140)
    if groups == 2:
        g.group[:] = np.arange(len(g.group)) % 2
    g.targets = np.zeros((3, groups))
    tol, ends = 1e-3 if dtype == np.float32 else 1e-7, blocks.offset
    duals = []
    for shrinking in (True, False):
        run = core(blocks, g, "rbf", form, dtype, tol=tol, shrinking=shrinking)
        run.run(1e9, np.inf)
        found = told(run, g, np.ones(len(blocks.row)))
        assert (found[:, 0] == CONVERGED).all() and (found[:, 2] > 64).all()
        assert found[:, 1].max() <= 4  # rounds: scores of who is left out are made anew once or twice
        duals.append(found[:, 4])
        for p, (a, b) in enumerate(pairwise(ends)):
            one = g.one(slice(a, b), p)
            assert violation(one, run.beta[a:b], run.f[a:b]) <= tol
            assert (run.beta[a:b] >= one.lo).all() and (run.beta[a:b] <= one.hi).all()
            for k in range(groups):
                assert abs(run.beta[a:b][one.of == k].sum()) <= 1e-13 * np.abs(run.beta[a:b]).sum()
    np.testing.assert_allclose(duals[0], duals[1], rtol=1e-4)


@FORMS
@DTYPES
@pytest.mark.parametrize("groups, C, apart", [(0, 10.0, 1.5), (1, 10.0, 1.5), (2, 1.0, 2.0)])
def test_leaving_out_who_never_comes_back_changes_no_bit(groups: int, C: float, apart: float, form: str, dtype) -> None:
    """Classes that touch: who is far from the other one is held, and the steps are those on all variables."""
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(180, 2)) * [1, 4] + np.repeat([[-apart, 0], [apart, 0]], 90, axis=0)
        blocks = Blocks(X, np.arange(180), np.array([0, 90, 180]), [(0, 1)])
        sign, group = np.repeat([1.0, -1.0], 90), (np.arange(180) % max(1, groups)).astype(np.int8)
        g = Given(sign, sign.copy(), np.full(180, C), np.zeros(180), group, np.zeros((1, groups)))
        found = []
        for shrinking in (True, False):
            run = core(blocks, g, "rbf", form, dtype, tol=0.01, shrinking=shrinking)
            run.run(1e9, np.inf)
            found.append((told(run, g, np.ones(180))[0, :3].tolist(), run.beta.tobytes()))
        assert found[0] == found[1] and found[0][0][2] > 64


def test_where_time_is_short_problems_take_turns() -> None:
    """Each a slice, then the next one; who comes again keeps what it had, and begins another round."""
    blocks, g = hard()
    free = core(blocks, g)
    free.run(1e9, np.inf)
    steps = told(free, g, np.ones(450))[:, 2]
    run = core(blocks, g, max_rounds=1)
    assert run.run(1e9, 0.0) == 3
    found = told(run, g, np.ones(450))
    assert found[:, 0].tolist() == [ROUNDS, ROUNDS, ROUNDS] and found[:, 1].tolist() == [1, 1, 1]
    assert found[:2, 2].tolist() == [64, 64] and (steps > 1000).all()
    again = core(blocks, g)
    assert again.run(1e9, 0.0) == 3
    for p in range(3):
        at = slice(*blocks.offset[p : p + 2])
        for each in (run, again):
            np.testing.assert_allclose(each.f[at], blocks.K(p, "rbf") @ each.beta[at], rtol=0, atol=1e-10)
            assert abs(each.beta[at].sum()) <= 1e-12 * np.abs(each.beta[at]).sum()
        assert violation(g.one(at, p), again.beta[at], again.f[at]) <= 1e-6
    found = told(again, g, np.ones(450))
    assert (found[:, 0] == CONVERGED).all() and (found[:2, 1] > 2).all()
    assert (found[:, 3] > told(free, g, np.ones(450))[:, 3]).all()  # rows are computed again


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_run_of_no_time_is_gone_on_with_by_the_next(whole: bool, threads: int) -> None:
    """Or ended with a few steps each, none where nothing is left."""
    blocks, g = hard()
    whole_run = core(blocks, g, threads=threads, whole=whole)
    whole_run.run(1e9, np.inf)
    run = core(blocks, g, threads=threads, whole=whole)
    assert run.run(0.0, 0.0) == 0
    assert not run.beta.any()
    assert run.run(1e9, np.inf) == 3
    assert bits(run, g, np.ones(450)) == bits(whole_run, g, np.ones(450))
    before = bits(run, g, np.ones(450))
    run.finish(7)
    assert bits(run, g, np.ones(450)) == before
    cut = core(blocks, g, threads=threads, whole=whole)
    cut.run(0.0, np.inf)
    cut.finish(77)
    found = told(cut, g, np.ones(450))
    np.testing.assert_array_equal(found[:, [0, 2]], np.tile([STEPS, 77.0], (3, 1)))
    assert not cut.whole  # not all values were there, and those of a few steps are fewer
    few = core(blocks, g, threads=threads, max_steps=77)
    few.run(1e9, np.inf)
    assert bits(few, g, np.ones(450)) == bits(cut, g, np.ones(450))


def test_all_values_beforehand_where_there_is_room_for_them() -> None:
    """Half of the square, a little more; else rows on demand."""
    blocks, g = hard(100)
    n = len(blocks.row)
    for cache, whole in ((8 * n * n // 2, False), (8 * n * n, True), (0, False)):
        run = core(blocks, g, whole=True, cache=cache)
        assert run.whole == whole
        run.run(1e9, np.inf)
        assert run.whole == whole
        assert not core(blocks, g, whole=False, cache=cache).whole


def test_the_largest_problem_is_first() -> None:
    """Of equal ones the first; who is last is not waited for by others."""
    blocks = blocks_of([40, 60, 90, 60], 0, 4, [(0, -1), (1, -1), (2, -1), (3, -1)])
    n = int(blocks.offset[-1])
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    g = Given(sign, sign.copy(), np.full(n, 1e3), np.zeros(n), np.zeros(n, np.int8), np.zeros((4, 1)))
    run = core(blocks, g, max_steps=10**6)
    assert run.run(0.0, np.inf) == 0
    assert told(run, g, np.ones(250))[:, 0].tolist() == [WAITING, WAITING, 1, WAITING]


def test_no_problems_and_problems_of_nobody() -> None:
    blocks = blocks_of([3, 2], 0, 2, [])
    g = Given(*(np.empty(0) for _ in range(4)), np.empty(0, np.int8), np.empty((0, 1)))
    run = core(blocks, g)
    assert run.run(1e9, np.inf) == 0 and len(run.beta) == len(run.f) == 0


def test_what_does_not_fit_together_is_refused() -> None:
    """Blocks that are not there, offsets of other sizes, a variable too few or too many."""
    blocks = blocks_of([3, 4, 5], 0, 2, [(0, 1), (2, -1)])
    g = given(blocks, 1)
    core(blocks, g)
    for pairs in ([(0, 1), (3, -1)], [(0, 3), (2, -1)], [(-1, 1), (2, -1)], [(0, 2), (2, -1)], [(0, 1), (1, -1)]):
        wrong = Blocks(blocks.X, blocks.row, blocks.end, blocks.pairs)
        sized = core_with(wrong, g, pairs, wrong.offset)
        with pytest.raises(ValueError, match="do not fit together"):
            sized()
    for offset in ([0, 7], [0, 7, 12, 12], [0, 6, 12], [0, 7, 11], [1, 8, 13]):
        with pytest.raises(ValueError, match="do not fit together"):
            core_with(blocks, g, blocks.pairs, np.array(offset))()
    for name in ("sign", "center", "upper", "alpha", "group"):
        for many in (11, 13):
            other = Given(**{**g.__dict__, name: np.resize(getattr(g, name), many)})
            with pytest.raises(ValueError, match=r"do not fit together|one sign, bound, alpha each"):
                core(blocks, other)
    run = core(blocks, g)
    for shape, magnitude in (((1, 1), 12), ((2, 2), 12), ((2, 0), 12), ((2, 1), 11)):
        with pytest.raises(ValueError, match="do not fit the problems"):
            run.judged(np.zeros(shape), np.ones(magnitude))


def core_with(blocks: Blocks, g: Given, pairs: list[tuple[int, int]], offset: Ints) -> Callable[[], Any]:
    """Made with these pairs and offsets, whatever the variables are."""
    points = _core.Points64(as_matrix(blocks.X), "rbf", 0.3, 1.5, 2, blocks.row, 1)
    first, second = np.array(pairs, np.int64).T
    return lambda: _core.Many64(
        points, blocks.row, blocks.end, first.copy(), second.copy(), offset, g.sign, g.center, g.upper, g.alpha, g.group, 1,
        1e-3, 10, 10, True, 1000, False, 1,
    )  # fmt: skip


def test_extremes_are_those_of_who_can_move() -> None:
    """Of the oracle itself: bounds hold back who is at them."""
    one = One((0, 3, 0, 0), np.array([1.0, 2.0, 3.0]), np.zeros(3), np.ones(3), [0.0])
    top, bottom = extremes(one, np.array([0.0, 0.5, 1.0]), np.zeros(3))
    assert top.tolist() == [2.0] and bottom.tolist() == [2.0]
