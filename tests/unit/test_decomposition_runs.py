"""Runs of the decomposition method turn by turn: what is chosen, asked, moved, counted, left out, reported and sent."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise, product
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
from formulated import formulated

from maxmargin import SVC, SVR
from maxmargin.decomposition import apart, many, sent, solver, together, verified
from maxmargin.decomposition.costs import Costs
from maxmargin.decomposition.ending import Progress
from maxmargin.decomposition.many import Many, Problem
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.solver import Decomposition, solve
from maxmargin.decomposition.state import Overflow
from maxmargin.decomposition.together import Together
from maxmargin.decomposition.working_set import MB, Violators, _pairs, row_bytes
from maxmargin.kernel_values import GivenValues, KernelData
from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify
from maxmargin.problem.kernels import Kernel, TooLargeError
from maxmargin.runtime import Control, Deadline, Status, drained

NAMES = ("c_svc", "no_intercept", "nu_svc", "epsilon_svr", "svr_no_intercept", "nu_svr", "one_class")


def built(name, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, t, weight = rng.normal(size=(n, 3)), rng.normal(size=n), rng.uniform(0.5, 2, n)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    qp = formulated(name, y, t, weight)
    data = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(n), np.float64, 1)
    return qp, data, data.kernel(X, X)


def other(data, dtype=np.float64, threads=1):
    """The same samples, of which values have another precision."""
    return KernelData(data.X, data.kernel, data.rows, dtype, threads)


def several(sizes=(8, 12, 10), **options):
    rng = np.random.default_rng(6)
    ends = np.cumsum([0, *sizes])
    X = rng.normal(size=(ends[-1], 3))
    blocks = [np.arange(a, b) for a, b in pairwise(ends)]
    problems = []
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            y = np.repeat([1.0, -1.0], [sizes[i], sizes[j]])
            problems.append(Problem(formulations.c_svc(y, np.ones(len(y))), np.concatenate([blocks[i], blocks[j]]), (i, j)))
    data = KernelData(X, Kernel("rbf", gamma=0.5), np.arange(len(X)), np.float64, 1)
    return problems, data, blocks, Options(**options)


# ---- what is asked for


def test_options_begin_as_those_of_the_machines():
    plain, machine = Options(), SVC()
    for name in ("tol", "cache_size", "shrinking", "working_set_size", "inner_solver"):
        assert getattr(plain, name) == getattr(machine, name)
    assert (plain.threads, plain.beside, plain.processes) == (1, 1, 1)


def test_what_is_kept_of_a_result_has_both_stages_where_there_are_two():
    one, two = np.ones(3), np.zeros(4)
    result = DualResult(status=Status.CONVERGED, alpha=one)
    assert list(result.snapshot()) == ["alpha"] and result.snapshot()["alpha"] is one
    kept = replace(result, first=two).snapshot()
    assert kept["alpha"] is two and kept["second"] is one


@pytest.mark.parametrize("pressed", [False, True])
@pytest.mark.parametrize("said", [False, True])
def test_a_run_elsewhere_stops_by_ctrl_c_or_by_its_carrier(pressed, said, monkeypatch):
    flag, count = Event(), []

    def run(stopped):
        for k in range(5):
            if stopped():
                return k
            yield None
            if k == 2 and pressed:
                flag.set()
        return 5

    @contextmanager
    def held():
        yield flag

    def stopped():
        count.append(1)
        return said and len(count) > 1

    monkeypatch.setattr(sent, "deferred_interrupt", held)
    assert sent.to_its_end(run, stopped) == (1 if said else 3 if pressed else 5)


def test_costs_begin_at_nothing_and_add_up():
    costs = Costs()
    assert set(costs.seconds.values()) == {0.0} and set(costs.counts.values()) == {0}
    costs.updated(5, 2, 10)
    costs.updated(1, 0, 10)
    assert costs.counts["rows"] == 6 and costs.counts["cache_hits"] == 2
    costs.seconds["update"] = 1.0
    assert costs.expected(44.0) == pytest.approx(1.0)  # 60 values less 0.8 of 20
    first = Costs()
    first.seconds["start"] = 3.0
    first.summed(2.0), first.summed(4.0)
    assert first.expected(12.0) == pytest.approx(6.0)
    assert Costs().expected(5.0) == 0.0
    with pytest.raises(RuntimeError), costs.clock("tile"):
        raise RuntimeError
    assert 0 < costs.seconds["tile"] < 60 and costs.seconds["inner"] == 0.0


# ---- a turn


@pytest.mark.parametrize("size", [4, 20, 64])
@pytest.mark.parametrize("name", NAMES)
def test_a_turn_solves_the_worst_violators_to_a_tenth_of_what_there_is(name, size, monkeypatch):
    """Members, their accuracy and their limit on steps; where values lie; what moved is counted, and the way it came."""
    qp, data, K = built(name)
    source = data.source()
    run = Decomposition(qp, source, Options(working_set_size=size, tol=1e-4, shrinking=False))
    state, n, asked = run.state, qp.n, []
    whole = solver.solve_tile

    def seen(inner, tile, beta, low, high, score, group, groups, tol, most, all_free):
        asked.append((tol, most, len(beta), state.violation, all_free))
        return whole(inner, tile, beta, low, high, score, group, groups, tol, most, all_free)

    monkeypatch.setattr(solver, "solve_tile", seen)
    turns, m = run.turns(), np.ones(n)
    before, last = None, (0, 0.0, 0)
    for count, turn in enumerate(turns):
        if turn is None:
            before = state.beta.copy()
            state.look()
            score, up, low = said(qp, state)
            last = (state.support, state.path, run.costs.counts["rows"])
            continue
        tol, most, q, violation, _ = asked[-1]
        members, beta = run.working_set.members, state.beta
        everyone = qp.n_variables <= size
        assert q == (qp.n_variables if everyone else len(members)) and most == 200 * q
        assert tol == pytest.approx(0.5e-4 if everyone else max(0.5e-4, 0.1 * violation))
        moved = np.flatnonzero((beta != before).any(axis=0)) if before is not None else np.arange(0)
        if before is not None and not everyone:
            assert set(moved.tolist()) <= set((members % n).tolist())
            for g in range(max(1, len(qp.targets))):  # the worst of each side that there is of a group that violates
                if len(qp.targets) and violation > 1e-9:
                    top = np.flatnonzero(up & (qp.group == g))
                    bottom = np.flatnonzero(low & (qp.group == g))
                    if len(top) and len(bottom) and score[top].max() - score[bottom].min() >= violation * (1 - 1e-9):
                        assert score[members][np.isin(members, top)].max() == score[top].max() or size == 4
            place = run.working_set.place
            alpha = qp.sign * beta.ravel()
            for v, where in zip(members, place):
                assert where == (1.0 if alpha[v] == 0 else 2.0 if alpha[v] == qp.upper[v] else 0.0)
        if before is not None:
            change = (beta - before).sum(axis=0)
            assert state.path == pytest.approx(last[1] + np.abs(change) @ m, abs=1e-12)
            assert run.costs.counts["rows"] - last[2] == np.count_nonzero(change)
        assert state.support == np.count_nonzero(state.coef) == turn.n_support
        assert turn.extra == {"active": float(n)} and np.isnan(turn.objective)
        assert (
            turn.violation
            == state.violation
            == pytest.approx(certify(qp, K, qp.sign * beta.ravel()).violation, rel=1e-6, abs=1e-9)
        )
        before, last = beta.copy(), (state.support, state.path, run.costs.counts["rows"])
        score, up, low = said(qp, state)
        if count > 60:
            break
    assert len({id(step) for *_, step in asked}) == 1


def said(qp, state):
    """Scores of the variables, and which can grow and shrink."""
    beta, bound = state.beta.ravel(), qp.sign * qp.upper
    score = qp.center - np.tile(state.f, qp.n_variables // qp.n)
    return score, beta < np.maximum(bound, 0), beta > np.minimum(bound, 0)


def test_halves_of_a_sample_do_not_enter_together_where_the_set_is_large_and_the_sum_one(monkeypatch):
    select = solver.WorkingSet.select
    for name, size, alone in (
        ("epsilon_svr", 64, True), ("epsilon_svr", 62, False), ("nu_svr", 64, False), ("c_svc", 64, False)
    ):  # fmt: skip
        qp, data, _ = built(name, n=200)
        run = Decomposition(qp, data.source(), Options(working_set_size=size))
        asked = []
        with monkeypatch.context() as patch:
            patch.setattr(
                solver.WorkingSet, "select",
                lambda self, groups, n=None, asked=asked: asked.append((n, len(groups))) or select(self, groups, n),
            )  # fmt: skip
            for count, _ in enumerate(run.turns()):
                if count > 5:
                    break
        assert set(asked) == {(200 if alone else None, max(1, len(qp.targets)))}
        assert run.working_set.size == size and run.state.size == size


def test_samples_that_cannot_move_are_looked_for_every_ten_turns_and_left_out_where_a_fifth_is(monkeypatch):
    qp, data, _ = built("c_svc", n=300, seed=3)
    shrink = solver.State.shrink
    for shrinking in (True, False):
        run = Decomposition(qp, data.source(), Options(working_set_size=4, tol=1e-6, shrinking=shrinking))
        state, looked, turn = run.state, [], [0]

        def seen(self, extremes, looked=looked, turn=turn):
            active = self.active
            keep = len(self.part.movable(*extremes))
            did = shrink(self, extremes)
            looked.append(turn[0])
            assert did == (2 <= keep < 0.8 * active) and self.active == (keep if did else active)
            assert (len(self.left) > 0) >= did
            return did

        with monkeypatch.context() as patch:
            patch.setattr(solver.State, "shrink", seen)
            for each in run.turns():
                turn[0] += each is not None
                if run.state.left:
                    break
        if shrinking:
            assert run.state.left and looked == [10 * k for k in range(1, len(looked) + 1)]
            assert (run.working_set.members % 300 == np.sort(run.working_set.members) % 300).all()
            assert state.are_active(run.working_set.members).all()
        else:
            assert looked == []


def test_two_samples_stay_however_few_can_move():
    qp, data, _ = built("c_svc", n=40)
    state = Decomposition(qp, data.source(), Options()).state
    drained(state.sum_up())
    part = state.part
    for kept, of, done in ((0, 40, False), (1, 40, False), (2, 40, True), (31, 40, True), (32, 40, False), (40, 40, False)):
        left = []
        state.part = SimpleNamespace(
            movable=lambda *e, kept=kept: np.arange(kept), active=np.arange(40), beta=part.beta, restrict=left.append
        )
        state.active, state.left = of, []
        assert state.shrink(np.zeros(4)) == done
        assert len(left) == len(state.left) == done and state.active == (kept if done else of)
        if done:
            np.testing.assert_array_equal(state.left[0][0], np.arange(kept, 40))


def test_a_number_of_steps_is_too_many_beyond_ten_million_and_a_thousand_for_each_sample():
    qp, data, _ = built("epsilon_svr")
    run = Decomposition(qp, data.source(), Options())
    for more, out in ((-1, False), (0, False), (1, True)):
        run.costs.counts["inner_steps"] = 10**7 + 1000 * 60 + more
        assert run._out_of_steps() == out


def test_three_turns_that_gain_nothing_are_a_stall():
    for gains in product([0.0, 1e-3, -1e-3], repeat=6):
        progress, dual = Progress(1.0), 1.0
        for turn, gain in enumerate(gains, 1):
            dual += gain
            nothing = turn >= 3 and max(gains[turn - 3 : turn]) <= 0
            assert progress.stalled(gain, dual) == nothing and progress.turns == turn
            if nothing:
                break


@pytest.mark.parametrize("start", [1.0, -4.0])
@pytest.mark.parametrize(("part", "stalls"), [(0.99, True), (1.01, False)])
def test_a_hundred_turns_that_hardly_gain_are_a_stall(start, part, stalls):
    """Of every hundred what it gained itself counts, against the value at its end."""
    progress, dual = Progress(start), start
    for turn in range(1, 301):
        gain = 1e-3 if turn <= 200 else part * 1e-13 * abs(start + 0.2)
        dual += gain
        assert progress.stalled(gain, dual) == (turn == 300 and stalls)


# ---- the end of a run


def test_a_solution_that_is_known_takes_no_turn_and_an_f_that_is_known_no_sum(monkeypatch):
    qp, data, _ = built("c_svc")
    first = solve(qp, data.source(), Options(tol=1e-6))
    assert first.status is Status.CONVERGED and first.n_iter > 0
    assert first.timings["unshrinks"] >= 0 and first.dtype == np.float64
    again = solve(qp, data.source(), Options(tol=2e-6), alpha=first.alpha, f=first.f)
    assert again.n_iter == 0 and again.status is Status.CONVERGED
    np.testing.assert_array_equal(again.alpha, first.alpha)
    np.testing.assert_array_equal(again.f, first.f)
    limited = solve(qp, data.source(), Options(tol=1e-6, working_set_size=4), Control(max_iter=3))
    assert limited.n_iter == 3 and limited.status is Status.MAX_ITER
    summed = []
    monkeypatch.setattr(solver.State, "sum_up", lambda self: summed.append(len(self.pending)) or iter(()))
    for given, pending in ((first.f, 0), (None, 1)):
        run = Decomposition(qp, data.source(), Options(), alpha=first.alpha, f=given)
        assert len(run.state.pending) == pending
    cold = Decomposition(qp, data.source(), Options())
    assert cold.state.pending == [] and cold.state.support == 0 and cold.state.violation == np.inf
    assert cold.state.path == 0.0 and cold.state.error == 0.0 and cold.state.exact is None


def test_time_that_is_up_ends_a_run_after_the_turn_and_so_does_a_pass_that_would_end_too_late(monkeypatch):
    qp, data, _ = built("c_svc")
    asked = []

    class Late(Deadline):
        def passed_for_all(self, comm, margin=0.0):
            asked.append(margin)
            return len(asked) == 3

    run = Decomposition(qp, data.source(), Options(working_set_size=4, tol=1e-9), deadline=Late())
    monkeypatch.setattr(solver.State, "unshrink_seconds", lambda self: 7.5)
    made, turns = 0, run.turns()
    while True:
        try:
            made += next(turns) is not None
        except StopIteration as end:
            assert end.value is Status.MAX_TIME
            break
    assert made == 3 and asked == [7.5] * 3


def test_of_a_run_that_is_stopped_while_f_is_summed_up_is_known_what_was_summed(monkeypatch):
    qp, data, _ = built("epsilon_svr")
    alpha = qp.repaired(np.full(qp.n_variables, 0.3) * (np.arange(qp.n_variables) % 7 > 2))
    source, asked = data.source(), []
    monkeypatch.setattr(type(source), "pieces", lambda self, n, support: [slice(0, 20), slice(20, 45), slice(45, 60)])
    monkeypatch.setattr(Costs, "expected", lambda self, values: asked.append(values) or 5.0)
    for made in range(4):
        run = Decomposition(qp, source, Options(), alpha=alpha)
        ups = run.state.sum_up()
        for _ in range(made):
            next(ups)
        for status in (Status.INTERRUPTED, Status.MAX_TIME):
            asked.clear()
            known = run._completed(status)
            end = [0, 20, 45, 60][made]
            assert known.tolist() == [k < end for k in range(60)]
            assert asked == ([float((60 - end) * run.state.support)] if made < 3 else [])
    run = Decomposition(qp, source, Options(), alpha=alpha)
    assert run._completed(Status.MAX_ITER).all() and run.state.pending == []  # nobody is in a hurry


def test_how_long_a_pass_over_those_left_out_takes_goes_by_them_and_the_support():
    qp, data, _ = built("c_svc")
    state = Decomposition(qp, data.source(), Options()).state
    state.left, state.support = [(np.arange(5), state.coef), (np.arange(7), state.coef)], 11
    state.costs.seconds["start"] = 2.0
    state.costs.summed(66.0)
    assert state.unshrink_seconds() == pytest.approx(2.0 * 12 * 11 / 66)


def test_numbers_beyond_the_precision_are_computed_in_the_wider_one_from_where_the_run_began(monkeypatch):
    qp, data, _ = built("c_svc", n=80)
    start = qp.repaired(np.full(80, 0.3))
    for stage in ("overflow", "stalled"):
        run = Decomposition(qp, other(data, np.float32).source(), Options(), alpha=start)
        begun, converge = [], type(run)._converge

        def ends(stage=stage, run=run, begun=begun, converge=converge):
            begun.append((run.kernel.dtype, run.state.beta.copy()))
            if run.kernel.dtype == np.float64:
                return (yield from converge(run))
            run.state.stand_at(0.5 * run.state.beta)
            if stage == "overflow":
                raise Overflow
            yield None
            return Status.STALLED

        run._converge = ends
        assert drained(run.turns()) is None
        assert [dtype for dtype, _ in begun] == [np.float32, np.float64]
        np.testing.assert_array_equal(begun[1][1], begun[0][1] * (1.0 if stage == "overflow" else 0.5))
        found = run.result(Status.CONVERGED)
        assert found.status is Status.CONVERGED and found.dtype == np.float64
    wide = Decomposition(qp, data.source(), Options())
    wide._converge = lambda: (_ for _ in ()).throw(Overflow)
    with pytest.raises(TooLargeError, match="features up to"):
        drained(wide.turns())
    full = Decomposition(qp, data.source(), Options())
    full._converge = stalled
    assert drained(full.turns()) is Status.STALLED  # nothing wider


def stalled():
    yield None
    return Status.STALLED


def test_a_row_of_the_wider_values_must_fit_the_cache():
    qp, data, _ = built("c_svc", n=1000)
    narrow = other(data, np.float32)
    room = row_bytes(1000, 8) / MB
    for cache, fits in ((room, True), (0.999 * room, False)):
        run = Decomposition(qp, narrow.source(), Options(cache_size=cache, working_set_size=2))
        assert run.state.widen(run.state.beta) == fits
        assert run.kernel.dtype == (np.float64 if fits else np.float32)
    wide = Decomposition(qp, data.source(), Options())
    assert not wide.state.widen(wide.state.beta)
    large = Decomposition(qp, narrow.source(), Options(cache_size=1.0))
    assert large.state.size == 512 and large.state.widen(large.state.beta) and large.state.size == 362


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_run_that_reports_no_number_is_an_error(number, monkeypatch):
    for where in ("known_violation", "dual"):
        qp, data, _ = built("c_svc")
        run = Decomposition(qp, data.source(), Options())
        drained(run.turns())
        with monkeypatch.context() as patch:
            if where == "dual":
                patch.setattr(solver.State, "dual", lambda self: number)
                with pytest.raises(Overflow):
                    run.state.dual_at_start()
            else:
                patch.setattr(solver, "known_violation", lambda state, point: number)
            with pytest.raises(TooLargeError):
                run.result(Status.CONVERGED)


def test_extremes_that_are_no_numbers_are_an_overflow_and_without_a_sum_zero_is_the_other_side():
    for name, one in (("c_svc", None), ("no_intercept", 0.0)):
        qp, data, _ = built(name)
        state = Decomposition(qp, data.source(), Options()).state
        e = np.array([-2.0, 1.0, 3.0, -1.0])
        np.testing.assert_array_equal(state._reduced(e), e if one is None else [0.0, 1.0, 0.0, -1.0])
        np.testing.assert_array_equal(state._reduced(-e)[[0, 2]], [2.0, -3.0])
        with pytest.raises(Overflow):
            state._reduced(np.array([0.0, np.nan, 0.0, 0.0]))


# ---- whether f is what it seems


@pytest.mark.parametrize("n", [10, 31, 32, 400, 4096, 5000])
def test_a_sixteenth_of_the_samples_is_looked_at_and_256_at_most_from_the_first_to_the_last(n):
    looked = []

    def sums(some, *others):
        looked.append(some)
        return np.zeros(len(some))

    error = np.zeros(n)
    error[-1] = 3.0
    state = SimpleNamespace(
        kernel=SimpleNamespace(wider=lambda: SimpleNamespace(sum=sums), magnitude=np.full(n, 2.0)), f=error,
        coef=np.zeros(n), gathered=lambda values: (np.arange(0), np.zeros(0)), qp=SimpleNamespace(n=n),
        over=SimpleNamespace(most=float), error=0.25,
    )  # fmt: skip
    assert verified._audited(state, np.arange(n)) == state.error == (1.5 if n >= 32 else 0.25)
    assert len(looked[0]) == max(1, min(256, n // 16))
    assert looked[0][0] == 0 and (len(looked[0]) == 1 or looked[0][-1] == n - 1)
    assert (np.diff(looked[0]) >= 16).all()
    state.error = 9.0
    assert verified._audited(state, np.arange(n)[:0]) == 9.0  # the largest ever found; of no samples none
    state.kernel.magnitude, state.error, state.f = np.zeros(n), 0.0, np.full(n, 5.0)
    assert verified._audited(state, np.arange(n)) == 5.0  # of a sample without size the error itself


# ---- many small problems


class Said:
    """In the place of the core's: solutions that are said to be such."""

    def __init__(self, *given):
        self.beta = given[6] * given[9]
        self.f, self.finished = np.arange(len(given[6]), dtype=float), []

    def finish(self, steps):
        self.finished.append(steps)

    def judged(self, targets, magnitude):
        self.magnitude = magnitude
        return np.array(self.rows).ravel()


HOW = {"converged": 2, "stalled": 3, "rounds": 4, "steps": 5}


@pytest.mark.parametrize("status", [Status.CONVERGED, Status.MAX_TIME, Status.INTERRUPTED, Status.CALLBACK])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("violation", [0.5e-3, 1e-3, 2e-3, np.nan])
@pytest.mark.parametrize("sure", [True, False])
def test_a_small_problem_is_solved_if_it_is_sure_and_goes_on_if_it_could(status, how, violation, sure, monkeypatch):
    """What the user stopped stays so; what was cut by a limit says by which; what is not sure is not called solved."""
    monkeypatch.setattr(many, "_core", SimpleNamespace(Many32=Said, Many64=Said))
    problems, data, _, options = several(sizes=(4, 5))
    run = Many(problems, data.source(), np.array([0, 4, 9]), options)
    monkeypatch.setattr(run, "_told", lambda row: sure)
    run._core.rows = [[HOW[how], 3, 40, 17, -2.0, 0.5, violation, 6, 1.0, 1.0, 1.0, 0.25, 0.0, 0.0]]
    (part,), (unsure,) = run.results(status)
    known = sure and np.isfinite(violation)
    small = violation <= 1e-3
    if how == "converged" and known and small:
        wanted = Status.CONVERGED
    else:
        own = {"converged": Status.CONVERGED, "stalled": Status.STALLED, "rounds": Status.MAX_ITER, "steps": Status.STALLED}
        ended = status if how in ("stalled", "steps") and status is not Status.CONVERGED else own[how]
        if not ended.by_user:
            ended = Status.CONVERGED if small else Status.STALLED if ended is Status.CONVERGED else ended
        if ended is Status.CONVERGED and not known:
            ended = Status.STALLED if status is Status.CONVERGED else status
        wanted = ended
    assert part.status is wanted
    assert unsure == (how == "stalled" or (how == "converged" and not known))
    assert (part.n_iter, part.objective, part.gap, part.n_support) == (3, -1.5, 0.5, 6)
    assert part.timings == {"inner_steps": 40, "rows": 17} and part.multipliers.tolist() == [0.25]
    assert part.violation == violation or np.isnan(violation)
    assert part.f.tolist() == list(range(9)) and part.dtype == np.float64 and run._core.finished == [many.LAST_STEPS]
    np.testing.assert_array_equal(run._core.magnitude, np.ones(9))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_small_problem_is_told_where_values_are_fine_enough_and_sums_are_met(dtype):
    problems, data, _, options = several(sizes=(4, 5))
    source = other(data, dtype).source()
    run = Many(problems, source, np.array([0, 4, 9]), options)
    noise, eps = source.noise, 4 * np.finfo(float).eps
    largest = 2.0
    edge = 1e-3 / (2 * noise * largest) if dtype == np.float64 else (0.25e-3 / (4 * noise * largest)) ** 2

    def told(part, off=0.0, mass=1.0):
        amount = part * edge
        both = (amount, 0.0) if dtype == np.float64 else (0.0, amount)
        return run._told([2, 0, 0, 0, 0, 0, 0, 0, largest, *both, 0.0, off, mass])

    assert told(0.99) and not told(1.01)
    assert told(0.5, 3.9 * eps) and not told(0.5, 4.1 * eps) and told(0.5, 7.9 * eps, 2.0)
    assert told(0.5, 0.0, 0.0)


@pytest.mark.parametrize("halves", [1, 2])
def test_numbers_of_several_problems_are_each_its_own(halves, monkeypatch):
    monkeypatch.setattr(many, "_core", SimpleNamespace(Many32=Said, Many64=Said))
    qps = [built("epsilon_svr" if halves == 2 else "c_svc", n=n)[0] for n in (5, 7)]
    data = KernelData(np.random.default_rng(0).normal(size=(12, 3)), Kernel("rbf", gamma=0.5), np.arange(12), np.float64, 1)
    alphas = [qp.repaired(np.full(qp.n_variables, 0.2)) for qp in qps]
    problems = [Problem(qp, np.arange(qp.n), (0, -1), alpha) for qp, alpha in zip(qps, alphas)]
    run = Many(problems, data.source(), np.array([0, 12]), Options())
    run._core.rows = [[2, k, 0, 0, 1.0, 0.5, 0.0, 0, 0.0, 0.0, 0.0, 10.0 + k, 0.0, 1.0] for k in (1, 2)]
    parts, _ = run.results(Status.CONVERGED)
    begin = 0
    for k, (part, qp, alpha) in enumerate(zip(parts, qps, alphas)):
        np.testing.assert_allclose(part.alpha, alpha)
        assert part.f.tolist() == list(range(begin, begin + qp.n)) and part.n_iter == k + 1
        assert part.multipliers.tolist() == [11.0 + k]
        begin += qp.n_variables
    assert run.done == 0 and run.halves == halves


@pytest.mark.parametrize("limit", [-1, 0, 5])
def test_steps_and_turns_of_small_problems_have_their_limits(limit, monkeypatch):
    """Ten million steps and a thousand for each variable of the largest, and the turns asked for, or as many as steps."""
    made = []
    monkeypatch.setattr(many, "_core", SimpleNamespace(Many32=None, Many64=lambda *given: made.append(given)))
    problems, data, blocks, options = several()
    Many(problems, data.source(), np.cumsum([0, *map(len, blocks)]), options, limit)
    assert made[0][14] == 10**7 + 1000 * 22 and made[0][13] == (limit if limit >= 0 else made[0][14])


def test_pairs_that_enter_are_of_the_worst_few_though_a_variable_is_on_both_sides():
    """Half as many pairs as variables, and one for each group, are looked at."""
    up = np.array([1, 2, 3, 4, 5, 6, 7])
    low = np.array([2, 1, 4, 3, 6, 5, 8])
    down = np.arange(7, 0, -1.0)
    group = Violators(up, down, low, -down)
    for count, last in ((2, 2), (4, 4), (6, 4), (8, 6)):
        assert _pairs([group], count).tolist() == list(range(1, last + 1))
    other = Violators(up + 10, down - 0.5, low + 10, 0.5 - down)
    assert _pairs([group, other], 2).tolist() == [1, 2]
    assert _pairs([group, other], 4).tolist() == [1, 2, 11, 12]
    assert _pairs([group, other], 6).tolist() == [1, 2, 11, 12, 3, 4]
    assert _pairs([group, other], 8).tolist() == [1, 2, 11, 12, 3, 4, 13, 14]


# ---- together


def test_small_ones_in_doubt_go_on_unless_the_run_was_stopped():
    """Those that have no numbers do in any case, from where they began."""
    for status, doubt, good in product((Status.CONVERGED, Status.MAX_TIME), (False, True), (False, True)):
        problems, data, blocks, options = several()
        run = Together(problems, data.source, blocks, options, Control())
        start = run._begin[1]
        number = 1.0 if good else np.nan
        part = [
            DualResult(status=Status.STALLED, objective=o, violation=v, alpha=np.full(18, 0.5))
            for o, v in ((0.0, 0.0), (number, 0.0), (0.0, number))
        ]
        run._many = SimpleNamespace(results=lambda status, part=part, doubt=doubt: (part, [False, doubt, doubt]))
        run._take(status)
        kept = not doubt or (good and status is not Status.CONVERGED)
        assert (1 in run._parts) == (2 in run._parts) == kept and 0 in run._parts
        assert sorted(run._before) == ([] if kept else [1, 2])
        if not kept:
            assert run._begin[1] is (part[1].alpha if good else start)
        assert (run._many is None) == (status is Status.CONVERGED)


def test_what_a_problem_took_before_is_in_its_timings():
    problems, data, blocks, options = several()
    run = Together(problems, data.source, blocks, options, Control())
    run._before[1] = DualResult(status=Status.STALLED, timings={"rows": 5.0, "inner_steps": 7.0}, n_iter=3)
    part = DualResult(status=Status.CONVERGED, timings={"rows": 2.0, "tile": 1.0})
    assert run._whole(1, part).timings == {"rows": 7.0, "inner_steps": 7.0, "tile": 1.0}
    assert run._whole(0, part).timings == part.timings
    run._parts = {0: part, 2: part}
    assert run._others()._before == [3] and run._which == [1]


@pytest.mark.parametrize("kind", ["rbf", "precomputed"])
def test_problems_beside_one_another_share_threads_and_cache(kind, monkeypatch):
    problems, data, blocks, _ = several(sizes=(8, 12, 10, 30))
    if kind == "precomputed":
        data = KernelData(data.kernel(data.X, data.X), Kernel("precomputed"), data.rows, np.float64, 1)
    made = []
    monkeypatch.setattr(
        together, "Decomposition",
        lambda qp, source, options, **more: made.append((qp, source, options)) or SimpleNamespace(
            state=SimpleNamespace(came=lambda path: None)
        ),
    )  # fmt: skip
    for threads, each, workers in ((1, 1, 1), (2, 1, 2), (3, 1, 2), (5, 2, 2)):
        options = Options(beside=2, threads=threads, cache_size=8.0, working_set_size=6)
        run = Together(problems, lambda rows, t=threads: other(data, threads=t).source(rows), blocks, options, Control())
        several_of = run._others()
        which, alone = run._in_order(list(range(6)))
        assert run._which == which
        made.clear()
        for k in range(6):
            several_of._make(k, Deadline())
        native = kind == "rbf"
        assert several_of._workers == (workers if native else 1) and several_of._alone == alone == (0 if native else 6)
        for k, (qp, source, mine) in enumerate(made):
            assert qp is problems[which[k]].qp
            assert mine.cache_size == 4.0 and mine.threads == (each if native else threads)
            if native:
                assert source.samples.threads == each
        assert list(several_of._numbers) == which and several_of._at_least == 1
    giant, data, blocks, _ = several(sizes=(4, 4, 40))
    run = Together(giant, data.source, blocks, Options(beside=2, threads=4, working_set_size=6), Control(max_iter=9))
    rest = run._others()
    assert rest._max_turns == 9 and rest._alone in (1, 3)
    for some, done, numbers in ((giant[:1], [], None), (giant[:2], [], [0, 1]), (giant[:2], [0], [1]), (giant, [0, 1], [2])):
        few = Together(some, data.source, blocks, Options(working_set_size=6), Control())
        few._parts = dict.fromkeys(done)
        assert few._others()._numbers == numbers  # of one problem alone nobody need say which


def test_a_giant_is_solved_alone_before_the_others():
    problems, data, blocks, _ = several(sizes=(4, 5, 6, 7, 60))
    run = Together(problems, data.source, blocks, Options(beside=2, working_set_size=6), Control())
    work = np.array([float(problem.qp.n_variables) ** 2 for problem in problems])
    giants = [p for p in range(10) if work[p] > work.sum() / 2]
    assert giants == []  # four pairs have the large class
    few = [0, 1, 4, 6]
    order, alone = run._in_order([*few, 9])
    assert order[0] == 9 and alone == 1 and [work[p] for p in order[1:]] == sorted(work[few], reverse=True)
    order, alone = run._in_order([0, 1, 4, 9])
    assert order[0] == 9 and alone == 2  # nobody is left without one beside it
    order, alone = run._in_order([0, 0])
    assert alone in (0, 2)


def test_of_all_small_problems_a_turn_says_that_it_is_of_all_and_of_one_says_nothing():
    problems, data, blocks, options = several()
    for some in (problems, problems[:1]):
        run = Together(some, data.source, blocks, options, Control())
        for turn in run.turns():
            if turn is not None:
                assert turn.extra.get("problem") == (-1.0 if len(some) > 1 else None)
        assert run._made > 0
    alone = Together(problems[:1], data.source, blocks, options, Control())
    assert alone.progress().total is None and alone.progress().done == 0
    drained(alone.turns())
    assert alone.progress().done == alone._made
    none = Together(problems[:1], data.source, blocks, options, Control(max_iter=0))
    assert none.progress().total == 0
    counted = Together(problems, data.source, blocks, options, Control())
    counted._many = SimpleNamespace(done=2)
    assert counted.progress().done == 2
    counted._rest, counted._parts = SimpleNamespace(progress=lambda: SimpleNamespace(done=1)), {0: None}
    assert counted.progress().done == 2 and counted.progress().total == 3


# ---- in other processes


def test_several_problems_go_elsewhere_where_calls_share_no_memory_and_nobody_has_sent_this_fit(monkeypatch):
    for problems, shared, level in product((1, 2), (False, True), (None, 0, 1)):
        backend = SimpleNamespace(nesting_level=level)
        monkeypatch.setattr(apart, "workers", lambda threads, shared=shared: (threads, shared))
        monkeypatch.setattr(apart.joblib.parallel, "get_active_backend", lambda prefer, backend=backend: (backend, 1))
        assert apart.elsewhere(problems) == (problems == 2 and not shared and not level)


@pytest.mark.parametrize("carried", [False, True])
def test_a_turn_is_said_when_more_problems_are_done(carried, monkeypatch):
    problems, data, blocks, options = several(sizes=(5, 9, 14, 20), threads=2)
    run = apart.Apart(problems, data.source, blocks, options, Control(), data)
    went = []

    def going(jobs):
        went.append(jobs)
        for done in (0, 1, 1, 4, 6):
            run._parts = dict.fromkeys(range(done))
            yield None

    @contextmanager
    def carrier():
        yield "carrier" if carried else None

    monkeypatch.setattr(apart, "active_carrier", carrier)
    monkeypatch.setattr(apart, "workers", lambda threads: (threads + 3, False))
    monkeypatch.setattr(apart.joblib, "effective_n_jobs", lambda jobs: {-1: 7}[jobs])
    run._by_joblib, run._on = going, lambda carrier, jobs: going(jobs)
    turns = list(run.turns())
    assert went == [7 if carried else 5]
    assert [turn and turn.extra for turn in turns] == [
        None, {"done": 1.0, "problem": -1.0}, None, {"done": 4.0, "problem": -1.0}, {"done": 6.0, "problem": -1.0},
    ]  # fmt: skip
    for turn in turns:
        assert turn is None or (np.isnan([turn.objective, turn.gap, turn.violation]).all() and turn.n_support == -1)


def test_what_joblib_brings_is_put_where_it_belongs(monkeypatch):
    problems, data, blocks, options = several(sizes=(5, 9, 14, 20))
    here = Together(problems, data.source, blocks, options, Control())
    drained(here.turns())
    expected = here.result(Status.CONVERGED).parts
    run = apart.Apart(problems, data.source, blocks, options, Control(max_iter=50), data)
    steps = []

    def backwards(calls, jobs, found):
        assert jobs == 2
        for k, (function, given, _) in enumerate(reversed(calls)):
            assert given[1].options.processes == 2 and given[1].max_iter == 50
            found.append(function(*given))
            if k % 2:
                steps.append(len(run._parts))
                yield None
        yield None

    monkeypatch.setattr(apart, "by_joblib", backwards)
    drained(run._by_joblib(2))
    assert sorted(run._parts) == list(range(6)) and steps[0] == 0
    for part, other in zip(run.result(Status.CONVERGED).parts, expected):
        np.testing.assert_allclose(part.alpha, other.alpha, atol=1e-2)
    assert run.progress().done == run.progress().total == 6 and run.progress().unit == "problem"


def test_bundles_are_for_four_times_the_workers_or_one_for_each_where_time_is_limited():
    problems, data, blocks, options = several(sizes=(6,) * 8)
    for deadline, count in ((Deadline(), 8), (Deadline.after(5000.0), 2)):
        run = apart.Apart(problems, data.source, blocks, options, Control(deadline=deadline), data)
        assert len(run._bundles(2)) == count
        bundle, _ = run._bundle([0], 1)
        left = bundle.deadline.left()
        assert left is None if deadline.end is None else 4000.0 < left <= 4500.0
        assert bundle.max_iter == -1 and bundle.dtype == np.float64 and bundle.kernel is data.kernel


def test_a_limit_on_turns_is_one_for_each_problem_of_a_bundle():
    problems, data, blocks, options = several(sizes=(20, 24, 30), working_set_size=4, tol=1e-8)
    run = apart.Apart(problems, data.source, blocks, options, Control(max_iter=3), data)
    bundle, which = run._bundle([0, 1, 2], 1)
    for part in apart.solve_bundle(bundle, *run._rows(which), lambda: False):
        assert part.n_iter == 3 and part.status is Status.MAX_ITER


def test_regression_is_solved_as_one_small_problem_with_both_halves():
    qp, data, K = built("epsilon_svr")
    for blocks in ((0, 0), (0, -1)):
        if blocks == (0, 0):
            run = Together([Problem(qp, np.arange(60), blocks)], data.source, [np.arange(60)], Options(), Control())
            assert run._ids == [0]
            drained(run.turns())
            part = run.result(Status.CONVERGED).parts[0]
            assert certify(qp, K, part.alpha).violation <= 1e-3
            np.testing.assert_allclose(part.f, K @ formulations.coefficients(qp, part.alpha), atol=1e-9)
    X, y = data.X, np.sin(data.X[:, 0])
    model = SVR(tol=1e-6).fit(X, y)
    assert model.status_ == "converged"


def test_given_values_are_no_small_problems():
    problems, data, blocks, options = several()
    gram = data.kernel(data.X, data.X)
    source = KernelData(gram, Kernel("precomputed"), data.rows, np.float64, 1)
    run = Together(problems, source.source, blocks, options, Control())
    assert run._many is None and run._ids == [] and isinstance(source.source(), GivenValues)
    drained(run.turns())
    for part, problem in zip(run.result(Status.CONVERGED).parts, problems):
        K = gram[np.ix_(problem.chosen, problem.chosen)]
        assert part.status is Status.CONVERGED and certify(problem.qp, K, part.alpha).violation <= 1e-3 * 1.001
