"""The parts of the runtime by themselves: exchanges over MPI without MPI, clocks that stand still, tables, limits."""

from __future__ import annotations

import math
import pickle
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from maxmargin.problem.sums import HERE
from maxmargin.runtime import (
    ALONE,
    NEVER,
    Checkpoints,
    Control,
    Deadline,
    Mpi,
    Progress,
    RankError,
    RankSums,
    Result,
    Serial,
    Several,
    Status,
    Threads,
    Turn,
    agree,
    as_comm,
    blas,
    checkpoints,
    deadline,
    or_all_fail,
    progress,
    raised_by_all,
    steps,
    threads,
    together,
    total,
)
from maxmargin.runtime import comm as module
from maxmargin.runtime.trace import Log, table

runs: Any = import_module("maxmargin.runtime.run")  # whose name is that of a function too


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes when it is told to."""
    at = SimpleNamespace(now=100.0)
    still = SimpleNamespace(perf_counter=lambda: at.now)
    for place in (deadline, checkpoints, progress, runs):
        monkeypatch.setattr(place, "time", still)
    return at


# ---- MPI


class Communicator:
    """What Mpi asks of mpi4py's, by ranks that are threads; buffers are (array, counts, …)."""

    def __init__(self, comm: Threads) -> None:
        self.comm, self.ended = comm, []

    def Get_rank(self) -> int:
        return self.comm.rank

    def Get_size(self) -> int:
        return self.comm.size

    def allgather(self, value: Any) -> list[Any]:
        return self.comm.share(value)

    def bcast(self, value: Any, root: int) -> Any:
        return self.comm.bcast(value, root)

    def Bcast(self, buffer: Any, root: int) -> None:
        array, count, kind = buffer
        assert count * kind.Get_size() == array.nbytes
        array[...] = self.comm.bcast(array, root)

    def Allgather(self, mine: Any, every: Any) -> None:
        (mine, every) = (b[0] if isinstance(b, list) else b for b in (mine, every))
        np.copyto(
            every.reshape(self.comm.size, -1), np.stack(self.comm.allgather(mine.reshape(-1))).reshape(self.comm.size, -1)
        )

    def Allgatherv(self, mine: Any, every: Any) -> None:
        if not isinstance(mine, list):  # of a sum in parts
            every[0][...] = np.concatenate(self.comm.allgather(mine, every[1]))
            return
        self._fits(mine, every[1][self.comm.rank])
        every[0][...] = np.concatenate(self.comm.allgather(mine[0], every[1]))

    def Gatherv(self, mine: Any, every: Any) -> None:
        self._fits(mine, every[1][self.comm.rank])
        parts = self.comm.gather(mine[0], every[1])
        if self.comm.rank == 0:
            every[0][...] = np.concatenate(parts)

    def Alltoallv(self, mine: Any, every: Any) -> None:
        ends = np.cumsum([0, *mine[1]])
        assert mine[3].Get_size() * sum(mine[1]) == mine[0].nbytes
        parts = self.comm.alltoall([mine[0][a:b] for a, b in pairwise(ends)])
        assert [len(part) for part in parts] == every[1]
        every[0][...] = np.concatenate(parts)

    def Reduce_scatter(self, mine: Any, part: Any, counts: list[int], op: Any) -> None:
        from mpi4py import MPI

        how = next(name for name in ("sum", "max", "min") if op == getattr(MPI, name.upper()))
        ends = np.cumsum([0, *counts])
        part[...] = self.comm.allreduce(mine, how)[ends[self.comm.rank] : ends[self.comm.rank + 1]]

    def Abort(self, code: int) -> None:
        self.ended.append(code)

    @staticmethod
    def _fits(buffer: Any, count: int) -> None:
        array, mine, kind = buffer
        assert mine == count == len(array) and kind.Get_size() * mine == array.nbytes


def over_mpi(size: int, work: Any) -> list[Any]:
    return Threads.run(size, lambda comm: work(Mpi(Communicator(comm))), timeout=20)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("small", [0, module.SMALL])
def test_mpi_reduces_as_numpy_does_however_large(monkeypatch, size, small) -> None:
    monkeypatch.setattr(module, "SMALL", small)
    for shape in ((), (1,), (7,), (5, 3)):
        for dtype in ("f8", "i8"):
            parts = np.random.default_rng(size).integers(-50, 50, (size, *shape)).astype(dtype)
            for op in ("sum", "max", "min"):
                want = getattr(parts, op)(axis=0)
                for got, traffic in over_mpi(
                    size, lambda c, op=op, parts=parts: (c.allreduce(parts[c.rank], op), c.traffic)
                ):
                    np.testing.assert_array_equal(got, want)
                    assert got.dtype == dtype and got.shape == shape
                    assert traffic.sent == ({"allreduce": want.nbytes} if size > 1 else {})
    with pytest.raises(ValueError, match="op='product'"):
        over_mpi(size, lambda c: c.allreduce(np.zeros(2), "product"))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_mpi_gathers_and_sends_what_each_has(size) -> None:
    lengths = np.array([3, 0, 2, 5][:size])
    parts = [np.arange(8.0 * n).reshape(n, 8)[:, ::2] + 100 * k for k, n in enumerate(lengths)]  # not one after the other

    def work(c: Mpi) -> Any:
        mine = parts[c.rank]
        plain, told, first = c.allgather(mine), c.allgather(mine, lengths), c.gather(mine, lengths)
        sent = c.alltoall([parts[to] + 1000 * c.rank for to in range(size)])
        return plain, told, first, sent, c.traffic, c.neighbours

    for rank, (plain, told, first, sent, traffic, neighbours) in enumerate(over_mpi(size, work)):
        for got in (plain, told, *([first] if rank == 0 else [])):
            for a, b in zip(got, parts, strict=True):
                np.testing.assert_array_equal(a, b)
        assert rank == 0 or first == []
        for who, got in enumerate(sent):
            np.testing.assert_array_equal(got, parts[rank] + 1000 * who)
        assert neighbours == size
        bytes_ = [part.nbytes for part in parts]
        counts = 2 * 8 + 8 * (size + 1)  # lengths, and what they are lengths of
        expected = {"allgather": 2 * bytes_[rank], "gather": bytes_[rank] if rank else 0, "counts": counts,
                    "alltoall": sum(bytes_) - bytes_[rank]}  # fmt: skip
        assert traffic.sent == (expected if size > 1 else {})


@pytest.mark.parametrize("size", [1, 2, 3])
def test_mpi_tells_what_one_rank_has(size) -> None:
    whole = np.arange(24.0).reshape(4, 6)[:, ::2]

    def work(c: Mpi) -> Any:
        root = size - 1
        here = c.rank == root
        found = [c.bcast(v if here else None, root) for v in (whole, {"a": 1}, np.array([None, "x"]), np.float64(2.5))]
        found.append(c.bcast([1.0, 2.0, 3.0] if here else None, root, doubles=3))
        return found, c.share((c.rank, "x")), c.traffic.sent.get("bcast", 0)

    for rank, (found, shared, sent) in enumerate(over_mpi(size, work)):
        np.testing.assert_array_equal(found[0], whole)
        assert found[1] == {"a": 1} and found[2].tolist() == [None, "x"] and found[3] == 2.5
        assert list(found[4]) == [1.0, 2.0, 3.0]
        assert shared == [(r, "x") for r in range(size)]
        assert sent == (whole.nbytes + 24 if size > 1 and rank == size - 1 else 0)


def test_mpi_ranks_out_of_step_are_told() -> None:
    with pytest.raises(RuntimeError, match="out of step"):
        over_mpi(2, lambda c: c.allgather(np.zeros(2, np.float32 if c.rank else np.float64)))
    for exchange in ("allgather", "gather"):
        with pytest.raises(RuntimeError, match="has 2 rows where all ranks expect 3"):
            over_mpi(2, lambda c, exchange=exchange: getattr(c, exchange)(np.zeros(2), [3, 3]))


def test_a_rank_that_fails_says_why_and_ends_the_job(monkeypatch, capsys) -> None:
    monkeypatch.setattr(module, "HEARD", 0.0)
    for size in (1, 2):

        def work(c: Mpi) -> Any:
            c.fail(MemoryError("no room"))
            return c._comm.ended

        assert over_mpi(size, work) == ([[1], [1]] if size > 1 else [[]])
        assert ("cannot go on" in capsys.readouterr().err) == (size > 1)


def test_what_is_no_communicator_is_refused() -> None:
    given = SimpleNamespace(rank=0, size=1, allreduce=0, alltoall=0, share=0, fail=0)
    assert as_comm(given) is given and as_comm(ALONE) is ALONE
    for name in vars(given):
        with pytest.raises(TypeError, match="communicator of mpi4py"):
            as_comm(SimpleNamespace(**{k: v for k, v in vars(given).items() if k != name}))


def test_what_threads_send_is_counted_where_it_is_sent() -> None:
    def work(c: Threads) -> Any:
        c.gather(np.zeros((2, 3)), [2, 2, 2]), c.bcast("x" * 100 if c.rank == 1 else None, 1), c.share("y" * 50)
        c.allgather(np.zeros(4), [4, 4, 4]), c.alltoall([np.zeros(c.rank)] * 3), c.allreduce(np.zeros(5))
        return c.traffic

    for rank, traffic in enumerate(Threads.run(3, work)):
        assert traffic.calls == dict.fromkeys(("gather", "bcast", "share", "allgather", "alltoall", "allreduce"), 1)
        assert traffic.sent["gather"] == (48 if rank else 0) and (traffic.sent["bcast"] > 100) == (rank == 1)
        assert 50 < traffic.sent["share"] < 100 and traffic.sent["allgather"] == 32 and traffic.sent["allreduce"] == 40
        assert traffic.sent["alltoall"] == 2 * 8 * rank and (rank == 1 or traffic.sent["bcast"] == 0)
        assert traffic.messages == 6 and traffic.bytes == sum(traffic.sent.values())


# ---- ranks in step


@pytest.mark.parametrize("size", [1, 2, 3])
def test_sums_over_ranks_are_those_of_all_samples(size) -> None:
    rng = np.random.default_rng(size)
    parts = [rng.normal(size=4) * 10.0 ** rng.uniform(-3, 3) for _ in range(size)]

    def work(c: Threads) -> Any:
        sums, mine = RankSums(c), parts[c.rank]
        return (sums.of(mine), float(sums.exact(mine)), sums.before(mine), sums.most(mine), sums.any(c.rank == size - 1),
                sums.all(c.rank == 0), sums.any(False), sums.all(True))  # fmt: skip

    for rank, found in enumerate(Threads.run(size, work)):
        assert found[0] == pytest.approx(np.sum(parts), rel=1e-12) and found[1] == pytest.approx(math.fsum(np.ravel(parts)))
        assert found[2] == pytest.approx(np.sum(parts[:rank]) if rank else 0.0)
        np.testing.assert_array_equal(found[3], np.max(parts, axis=0))
        assert found[4:] == (True, size == 1, False, True)
    assert HERE.before(parts[0]) == 0.0 and HERE.of(parts[0]) == pytest.approx(parts[0].sum())


class Strange(Exception):
    pass


@pytest.mark.parametrize("error", [ValueError("bad"), FileNotFoundError("gone"), Strange("odd"), KeyError("k")])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_fails_on_one_rank_fails_on_all_with_its_message(size, error) -> None:
    def work(c: Threads, exchange: bool) -> Any:
        mine = type(error)(*error.args) if c.rank == size - 1 else None
        try:
            if exchange:
                return agree(c, 3, b"", mine)
            with together(c):
                if mine is not None:
                    raise mine
        except Exception as caught:
            return caught, mine

    for exchange in (False, True) if size > 1 else (False,):
        for rank, (caught, mine) in enumerate(Threads.run(size, lambda c, exchange=exchange: work(c, exchange))):
            if mine is not None:
                assert caught is mine
            else:
                usual = isinstance(error, (ValueError, OSError))
                assert type(caught) is (type(error) if usual else RankError)
                assert str(error) in str(caught) and f"on rank {size - 1} of {size}" in str(caught)
            assert size == 1 or caught.known_to_all_ranks, rank


def test_ranks_that_see_the_same_agree_on_the_largest_code() -> None:
    assert Threads.run(3, lambda c: agree(c, c.rank, b"same")) == [2, 2, 2]
    assert agree(Serial(), 7, b"anything") == 7
    with pytest.raises(RankError, match="out of step"):
        Threads.run(2, lambda c: agree(c, 0, b"one" if c.rank else b"other"))


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("known", [True, False])
def test_an_error_that_the_others_do_not_know_ends_them(size, known) -> None:
    heard: list[Any] = []
    fake: Any = SimpleNamespace(size=size, rank=0, fail=heard.append)
    error = ValueError("within a step")
    if known:
        error.known_to_all_ranks = True  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="within"), or_all_fail(fake) as same:
        assert same is fake
        raise error
    assert heard == ([error] if size > 1 and not known else [])
    with or_all_fail(fake):
        pass
    with pytest.raises(ValueError, match="known") as caught, raised_by_all():
        raise ValueError("known")
    assert caught.value.known_to_all_ranks  # type: ignore[attr-defined]


# ---- time


def test_a_deadline_is_a_moment(clock) -> None:
    end = Deadline.after(10.0)
    assert end.left() == 10.0 and end.limit() == 10.0 and not end.passed() and end.passed(10.0) and not end.passed(9.9)
    clock.now += 4.0
    assert end.left() == 6.0 and end.share(3).left() == 2.0 and end.share(1).left() == 6.0
    clock.now += 6.0
    assert end.passed() and end.left() == 0.0 and end.limit() == deadline.LEAST_SECONDS
    clock.now += 5.0
    assert end.left() == 0.0 and end.passed()
    assert NEVER.left() is NEVER.limit() is Deadline.after(None).end is None
    assert not NEVER.passed() and not NEVER.passed(1e9) and NEVER.share(4) is NEVER


def test_a_deadline_travels_as_what_is_left(clock) -> None:
    sent = pickle.dumps(Deadline.after(8.0))
    clock.now += 1000.0
    assert pickle.loads(sent).left() == 8.0
    assert pickle.loads(pickle.dumps(NEVER)).end is None


def test_a_moment_has_come_for_all_ranks_when_it_has_for_one(clock) -> None:
    def work(c: Threads) -> Any:
        one = Deadline(90.0 if c.rank == 1 else 200.0)
        return (one.passed_for_all(c), Deadline(200.0).passed_for_all(c), Deadline(200.0).passed_for_all(c, 100.0 * c.rank),
                NEVER.passed_for_all(c), c.traffic.messages)  # fmt: skip

    assert Threads.run(2, work) == [(True, False, True, False, 3)] * 2
    assert Deadline(90.0).passed_for_all(ALONE) and not Deadline(110.0).passed_for_all(ALONE)


def test_why_a_run_stops(clock) -> None:
    row, asked = {"iteration": 1.0}, []
    control = Control(max_time=10.0, max_iter=3, callback=lambda row: asked.append(row) or len(asked) == 2)
    assert control.verdict(row, 1) is None and control.verdict(row, 3) is Status.CALLBACK
    assert control.verdict(row, 3) is Status.MAX_ITER and control.verdict(row, 2) is None
    assert control.verdict(None, 9) is None and len(asked) == 4  # inside a turn nobody is told
    clock.now += 10.0
    assert control.verdict(None, 0) is Status.MAX_TIME and control.verdict(row, 3) is Status.MAX_ITER
    assert Control().verdict(row, 10**9) is None and Control(max_iter=0).verdict(row, 0) is Status.MAX_ITER
    assert Control(max_time=12.0).part(4).deadline.left() == 3.0
    assert control.agreed(row, 1, lambda: True) is Status.INTERRUPTED


def test_ranks_stop_for_the_weightiest_reason_of_any(clock) -> None:
    def work(c: Threads, reasons: Any) -> Any:
        row = dict.fromkeys(runs.SEEN, 1.0)
        control = Control(comm=c, max_iter=5, callback=lambda row: reasons[c.rank] == "callback",
                          deadline=Deadline(90.0) if reasons[c.rank] == "time" else NEVER)  # fmt: skip
        return control.agreed(row, 5 if reasons[c.rank] == "turns" else 1, lambda: reasons[c.rank] == "ctrl-c")

    order = {"": None, "time": Status.MAX_TIME, "turns": Status.MAX_ITER, "callback": Status.CALLBACK,
             "ctrl-c": Status.INTERRUPTED}  # fmt: skip
    for i, one in enumerate(order):
        for k, other in enumerate(order):
            want = list(order.values())[max(i, k)]
            assert Threads.run(2, lambda c, pair=(one, other): work(c, pair)) == [want, want]


@pytest.mark.parametrize("cores", [1, 6])
def test_threads_for_negative_numbers_are_those_that_are_left(monkeypatch, cores) -> None:
    for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_available", lambda: cores)
    assert [threads.thread_count(-k) for k in range(1, 9)] == [max(1, cores + 1 - k) for k in range(1, 9)]
    assert threads.thread_count() == cores and threads.thread_count(12) == 12
    monkeypatch.setenv("OMP_NUM_THREADS", " 2 , 4")
    assert threads.thread_count() == min(2, cores) and threads.thread_count(-2) == 1
    for none in (0, True, 1.5, "2"):
        with pytest.raises(ValueError, match="has no meaning"):
            threads.thread_count(none)  # type: ignore[arg-type]


# ---- what is seen and kept of a run


def test_rows_and_the_last_one(clock) -> None:
    log = Log(clock.now)
    first = log.add(Turn(5.0, 2.0, 0.3, 4, {"cuts": 7.0}))
    assert first["iteration"] == 1 and first["gap"] == 3.0 and first["cuts"] == 7.0 and first["n_support"] == 4
    log.add(Turn(4.0, 3.0, 0.1, 5, {"step": 0.5}))
    result = Result(objective=4.0, gap=0.5, violation=0.2, n_support=9, extra={"more": 1.0})
    out = log.close(result)
    assert out["iteration"].tolist() == [1, 2] and out["objective"].tolist() == [5.0, 4.0]
    assert out["dual"].tolist() == [2.0, 3.5] and out["gap"].tolist() == [3.0, 0.5] and out["n_support"].tolist() == [4, 9]
    assert np.isnan(out["cuts"][1]) and np.isnan(out["step"][0]) and out["more"][1] == 1.0 and out["violation"][1] == 0.2
    several = Log(clock.now)
    several.add(Turn(5.0, 2.0, 0.3, 4, {"problem": 0}))
    out = several.close(Result(objective=4.0, problems=2))
    assert out["problem"].tolist() == [0, -1] and out["iteration"].tolist() == [1, 1]
    assert Log(clock.now).close(result)["iteration"].tolist() == [0]
    kinds = table([{"iteration": 3, "n_support": 1, "own": 1.5}]).dtype
    assert kinds["iteration"] == kinds["n_support"] == np.int64 and kinds["own"] == kinds["time"] == np.float64


@pytest.mark.parametrize("most", [-1, 0, 1, 7])
def test_a_bar_counts_turns_up_to_the_limit_or_what_the_solver_says(monkeypatch, most) -> None:
    seen: list[Any] = []

    class Bar:
        def __init__(self, *given: Any) -> None:
            self.given, self.n, self.total, self.unit, self.shown, self.title = given, 0, given[2], given[1], {}, given[0]
            seen.append(self)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def set_postfix(self, values: Any, refresh: bool = True) -> None:
            self.shown = values

        def set_description_str(self, text: str, refresh: bool = True) -> None:
            self.title = text

        def update(self, done: float) -> None:
            self.n += done

    monkeypatch.setattr(progress, "bar", Bar)
    control = Control(verbose=True, max_iter=most, title="a fit")
    row = {
        "iteration": 1,
        "time": 2.0,
        "done": 3.0,
        "objective": 4.0,
        "dual": np.nan,
        "n_support": -1,
        "problem": 0,
        "x": -1.0,
    }
    with runs._progress(control, None) as show:
        show(row), show(None), show(row)
    assert seen[0].n == 2 and seen[0].total == (most if most >= 0 else None) and seen[0].given[3] == control.begun
    assert seen[0].shown == {"objective": "4", "problem": "0", "x": "-1"}
    done = iter([1, 2, 5])
    with runs._progress(control, lambda: Progress(next(done), 9, "problem", "level 2")) as show:
        show(row), show(None)
        assert seen[1].n == 2
    assert (seen[1].n, seen[1].total, seen[1].unit, seen[1].title) == (5, 9, "problem", "a fit, level 2")
    with runs._progress(Control(), None) as show:
        show(row)
    assert len(seen) == 2


def test_checkpoints_are_put_away_every_so_often_and_a_full_disk_is_told(clock) -> None:
    kept: list[Any] = []
    solver = SimpleNamespace(snapshot=lambda: clock.now)

    def write(snapshot: Any, done: bool) -> None:
        clock.now += 2.0  # that it takes
        kept.append((snapshot, done))

    some = Checkpoints(write, 10.0)
    for step in (0.0, 9.5, 0.5, 9.5, 0.5, 30.0):
        clock.now += step
        some.look(solver)
    assert [at for at, _ in kept] == [110.0, 122.0, 154.0] and not any(done for _, done in kept)
    some.put(solver, True)
    assert kept[-1] == (156.0, True) and some.seconds == 8.0

    def full(snapshot: Any, done: bool) -> None:
        raise OSError("disk full")

    with pytest.warns(RuntimeWarning, match="disk full"):
        Checkpoints(full, 0.0).look(solver)

    def work(c: Threads) -> int:
        mine: list[Any] = []
        ranked = Checkpoints(lambda snapshot, done: mine.append(done), 10.0, c)
        ranked._next = 0.0 if c.rank == 1 else 1e9  # only the first one's clock counts
        ranked.look(solver)
        return len(mine)

    assert Threads.run(2, work) == [0, 0]


class Counting:
    def __init__(self, length: int, ended: Status | None = None) -> None:
        self.length, self.made, self.ended = length, 0, ended

    def turns(self) -> Any:
        for _ in range(self.length):
            self.made += 1
            yield Turn(float(self.made), 0.0, 1.0, 1)
        return self.ended

    def snapshot(self) -> int:
        return self.made

    def result(self, status: Status) -> Any:
        part = Result(status=status, objective=float(self.made), gap=0.0, violation=0.0, n_support=1)
        part.snapshot = lambda: -self.made  # type: ignore[attr-defined]
        return part


@pytest.mark.parametrize("options", [{}, {"take_turns": True}, {"workers": 2}, {"workers": 2, "take_turns": True}])
def test_each_problem_has_its_part_of_the_time(clock, options) -> None:
    """All of it where they take turns; else an equal part of what is left, of which workers use several at once."""
    given: dict[int, float | None] = {}

    def make(k: int, until: Deadline) -> Any:
        given[k] = until.left()
        return Counting(1)

    runs.drained(steps(Several(make, 4, deadline=Deadline.after(12.0), **options), Control()))
    parts = {(): [3.0, 4.0, 6.0, 12.0], ("workers",): [6.0, 6.0, 12.0, 12.0]}
    assert [given[k] for k in range(4)] == parts.get(tuple(options), [12.0] * 4)


def test_snapshots_of_problems_done_begun_and_not(clock) -> None:
    several = Several(lambda k, until: Counting(2), 3)
    turns = several.turns()
    assert several.snapshot() == [None] * 3
    next(turns), next(turns), next(turns), next(turns)
    assert several.snapshot() == [-2, 1, None] and several.progress() == Progress(1, 3, "problem")
    several.result(Status.MAX_TIME)
    assert several.snapshot() == [-2, -1, 0]


def test_one_report_of_several() -> None:
    def part(status: Status, violation: float = 1.0, **extra: float) -> Result:
        return Result(status=status, objective=2.0, gap=0.5, violation=violation, n_support=3, timings={"a": 1.0, **extra})

    whole = total([part(Status.CONVERGED), part(Status.STALLED, 4.0, b=2.0), part(Status.MAX_ITER, 3.0)])
    assert (whole.status, whole.objective, whole.gap, whole.violation, whole.n_support, whole.problems) == (
        Status.STALLED, 6.0, 1.5, 4.0, 9, 3)  # fmt: skip
    assert whole.timings == {"a": 3.0, "b": 2.0} and whole.extra == {}
    for user in (Status.INTERRUPTED, Status.CALLBACK):
        assert total([part(Status.STALLED), part(user)]).status is user
    assert total([part(Status.CONVERGED)] * 2).status is Status.CONVERGED
    assert math.isnan(total([part(Status.CONVERGED), part(Status.CONVERGED, np.nan)]).violation)
    one = part(Status.CONVERGED)
    one.extra = {"x": 1.0}
    assert total([one]).extra == {"x": 1.0}
    assert [s for s in Status if s.done] == [Status.CONVERGED, Status.COMPLETED, Status.EARLY]
    assert [s for s in Status if s.by_user] == [Status.INTERRUPTED, Status.CALLBACK]


# ---- linear algebra on one thread


class Library:
    def __init__(self, count: int | None) -> None:
        self.num_threads, self.orders = count, []

    def set_num_threads(self, count: int) -> None:
        self.num_threads = count
        self.orders.append(count)


def test_libraries_have_one_thread_while_anybody_wants_that(monkeypatch) -> None:
    for mine in (0, 1):  # theirs is the calling thread's, or the process's
        four, one, none = Library(4), Library(1), Library(None)
        found = ([four, one, none], []) if mine else ([], [four, one, none])
        monkeypatch.setattr(blas, "_libraries", lambda found=found: found)
        with blas.one_blas_thread():
            assert four.num_threads == 1
            with blas.one_blas_thread():
                pass
            assert four.num_threads == 1
        assert four.num_threads == 4 and one.orders == none.orders == [] and four.orders == [1, 4]
        with blas.one_blas_thread():
            four.num_threads = 3  # somebody else's wish
        assert four.num_threads == 3
        with pytest.raises(KeyError), blas.one_blas_thread():
            raise KeyError
        assert four.num_threads == 3
