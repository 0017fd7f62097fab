"""A linear problem over ranks, each method against the problem of one process that has all the rows."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from generators import paused

from maxmargin.linear import LinearProblem
from maxmargin.linear import problem as module
from maxmargin.linear.over_ranks import RankedProblem, _crossing, extent_of_all
from maxmargin.linear.problem import Extent, Sum
from maxmargin.runtime import Threads

CUTS = (0, 1, 18, 18, 40)  # of four ranks, one has a single row and one has none
KINDS = list(itertools.product((0.0, 2.0), (False, True), (np.asarray, sp.csr_matrix)))  # bias, regression, form


def made(bias=1.0, regression=False, form=np.asarray, seed=0, n=40, d=3, loss="hinge"):
    rng = np.random.default_rng(seed)
    X = form(np.round(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8), 3))
    weight, target = rng.uniform(0.2, 2, n), rng.normal(size=n) * 2
    if not regression:
        return LinearProblem(X, np.where(target > 0, 1.0, -1.0), weight, 0.7, loss, bias=bias)
    shift = np.concatenate([1.1 - target, 1.1 + target])
    return LinearProblem(X, np.repeat([1.0, -1.0], n), np.tile(weight, 2), 0.7, loss, bias=bias, shift=shift)


def hinges_of(whole, comm):
    rows = np.arange(CUTS[comm.rank], CUTS[comm.rank + 1])
    return np.concatenate([rows + k * whole.n for k in range(whole.hinges // whole.n)])


def part_of(whole, comm):
    some, rows = hinges_of(whole, comm), slice(CUTS[comm.rank], CUTS[comm.rank + 1])
    shift = None if whole.shift is None else whole.shift[some]
    return RankedProblem(
        whole.X[rows], whole.sign[some], whole.weight[some], whole.C, whole.loss, bias=whole.bias, shift=shift,
        extent=whole.extent, comm=comm,
    )  # fmt: skip


def over_ranks(whole, work):
    """What each of the ranks says, given its problem, its hinges and itself."""
    return Threads.run(4, lambda comm: work(part_of(whole, comm), hinges_of(whole, comm), comm), timeout=30)


@pytest.mark.parametrize(("bias", "regression", "form"), KINDS)
def test_numbers_of_all_ranks_together(bias, regression, form):
    whole = made(bias, regression, form)

    def work(part, hinges, comm):
        assert not part.alone and part.n == CUTS[comm.rank + 1] - CUTS[comm.rank]
        near = whole.zeros()[hinges]
        first = part.first(np.full(2, comm.rank)).tolist()
        given = part.highest(comm.rank, -comm.rank, -1.0), part.total(1.0, comm.rank), first
        numbers = part.count, part.terms, part.entries, part.mass, part.heaviest, part.off(np.ones(part.size))
        bounds, summed = part.bounds, part.sum_of(np.array([1, comm.rank])).tolist()
        return *numbers, bounds.depth, bounds.lightest, part.support(near, 0.5), *given, summed, part.risk(near)

    one, *others = over_ranks(whole, work)
    assert all(other == one for other in others)
    count, terms, entries, mass, heaviest, off, depth, lightest, support, *_, risk = one
    assert (count, terms, heaviest) == (40, whole.hinges + 4, whole.heaviest) and entries == whole.stored / 40
    assert mass == pytest.approx(whole.mass, rel=1e-12) and off == pytest.approx(whole.off(np.ones(whole.size)), rel=1e-12)
    assert depth == whole.bounds.depth and lightest == pytest.approx(whole.bounds.lightest, rel=1e-12)
    assert support == whole.support(whole.zeros(), 0.5) and risk == pytest.approx(whole.risk(whole.zeros()), rel=1e-12)
    assert one[9:13] == ((3.0, 0.0, -1.0), (4.0, 6.0), [0, 0], [4, 6])


@pytest.mark.parametrize(("bias", "regression", "form"), KINDS)
@pytest.mark.parametrize("rows", [4, 11, 50])
def test_passes_pause_equally_often_on_every_rank_and_read_every_row(bias, regression, form, rows, monkeypatch):
    whole, rng = made(bias, regression, form), np.random.default_rng(1)
    w = rng.normal(size=whole.size)
    margins, change = np.empty(whole.hinges), np.empty(whole.hinges)
    paused(whole.outputs(w, margins)), paused(whole.outputs(w, change, shifted=False))
    alpha = whole.feasible(rng.uniform(0, 1, whole.hinges))
    total = Sum(whole)
    paused(total.renew(alpha))
    monkeypatch.setattr(module, "BLOCK", rows * 3 + 2)

    def work(part, hinges, comm):
        out, filled, fill = np.empty(len(hinges)), [], part.fill

        def seen(w, begin, end, out, shifted=True):
            filled.append((begin, end))
            fill(w, begin, end, out, shifted)

        part.fill = seen
        _, pauses = paused(part.outputs(w, out))
        np.testing.assert_allclose(out, margins[hinges], rtol=1e-12, atol=1e-12)
        assert part.passes == 1.0 and part.pass_seconds >= 0
        assert [begin for begin, _ in filled] == sorted(begin for begin, _ in filled)
        assert all(0 < end - begin <= part.rows_per_call() for begin, end in filled)
        paused(part.outputs(w, out, shifted=False))
        np.testing.assert_allclose(out, change[hinges], rtol=1e-12, atol=1e-12)
        assert part.passes == 2.0
        some = Sum(part)
        _, added = paused(some.renew(alpha[hinges]))
        np.testing.assert_allclose(some.a, total.a, rtol=1e-9, atol=1e-12)
        assert added == 0
        found = part.duals(np.zeros(len(hinges)), out)
        return pauses, some.a.tobytes(), some.drift, (found.offset, found.risk, found.mass, found.size)

    one, *others = over_ranks(whole, work)
    assert all(other == one for other in others)
    calls = max(-(-(CUTS[k + 1] - CUTS[k]) // part_rows(whole, k)) for k in range(4) if CUTS[k + 1] > CUTS[k])
    assert one[0] == calls - 1
    found = whole.duals(np.zeros(whole.hinges), change)
    np.testing.assert_allclose(one[3], (found.offset, found.risk, found.mass, found.size), rtol=1e-12)
    assert one[2] >= total.drift * 0.2


def part_rows(whole, rank):
    X = whole.X[CUTS[rank] : CUTS[rank + 1]]
    stored = X.nnz if sp.issparse(X) else X.size
    return max(1, module.BLOCK * X.shape[0] // max(stored, 1))


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_additions_that_a_term_goes_through_are_those_of_the_deepest_rank_and_one_per_rank(bias, monkeypatch):
    """Whatever the ranks add: rows of all, of one, of none. What moves is the sum of the sizes."""
    whole, rng = made(bias), np.random.default_rng(2)
    for of in ((0, 1, 2, 3), (3,), (1,), ()):
        delta = rng.normal(size=40)

        def work(part, hinges, comm, of=of, delta=delta):
            rows = np.arange(part.n) if comm.rank in of else np.arange(0)
            a = np.ones(part.size)
            (depth, moved), pauses = paused(part.add(a, rows, delta[hinges][rows]))
            alone = LinearProblem(part.X, part.sign, part.weight, 0.7, bias=bias, extent=part.extent)
            (mine, _), _ = paused(alone.add(np.zeros(part.size), rows, delta[hinges][rows]))
            assert pauses == 0
            return a.tobytes(), depth, moved, mine

        found = over_ranks(whole, work)
        assert len({one[:3] for one in found}) == 1
        taken = np.concatenate([np.arange(CUTS[k], CUTS[k + 1]) for k in range(4) if k in of] or [np.arange(0)]).astype(int)
        x = np.column_stack([whole.X, np.full(40, bias)])[taken, : whole.size]
        np.testing.assert_allclose(np.frombuffer(found[0][0]), 1 - delta[taken] @ x, atol=1e-12)
        assert found[0][2] == pytest.approx(np.abs(delta[taken]).sum(), rel=1e-12)
        assert found[0][1] == max(one[3] for one in found) + 4


def best_of(at, jump, quad, before, low, right):
    """Where the slope quad·k + before + Σ(jump_i of at_i < k) first is 0 or more, by looking at every piece."""
    order = np.argsort(at, kind="stable")
    at, jump = at[order], jump[order]
    ends, value = np.concatenate([[low], at, [right]]), before
    for k, (left, end) in enumerate(itertools.pairwise(ends)):
        if k:
            value += jump[k - 1]
        if quad * left + value >= 0:
            return left
        if quad * end + value >= 0:
            return -value / quad
    return right


def test_a_slope_changes_its_sign_at_a_hinge_or_between_two():
    kinds = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        low, right, count = rng.uniform(0, 1), rng.uniform(1, 3), int(rng.integers(0, 5))
        at = np.sort(rng.uniform(low, right, count)) if seed % 3 else np.round(rng.uniform(low, right, count), 1)
        jump, quad = rng.uniform(0, 2, count), rng.choice([0.0, 0.5, 2.0])
        before = -quad * low - rng.uniform(0, 3)
        if quad * right + before + jump.sum() < 0:
            continue
        order = rng.permutation(count)
        k = _crossing(at[order], jump[order], quad, before, low, right)
        assert k == pytest.approx(best_of(at, jump, quad, before, low, right), rel=1e-12)
        kinds.add((k in at, quad > 0))
    assert len(kinds) == 3
    none = np.empty(0)
    assert _crossing(none, none, 0.0, -1.0, 0.5, 2.0) == 2.0  # of hinges that rounding keeps from crossing: to the end
    assert _crossing(none, none, 2.0, -3.0, 0.5, 2.0) == 1.5
    assert _crossing(none, none, 2.0, 3.0, 0.5, 2.0) == 0.5


def test_extents_of_ranks_are_the_largest_of_each():
    def work(comm):
        return extent_of_all(Extent(np.array([1.0 + comm.rank, 9.0 - comm.rank, 2.0]), 4.0 + comm.rank % 2), comm)

    for count in (1, 3):
        for found in Threads.run(count, work):
            np.testing.assert_array_equal(found.columns, [count, 9.0, 2.0])
            assert found.norm == (4.0 if count == 1 else 5.0)
