"""Exchanges between ranks: what NumPy says about the same arrays, and an end for every mistake."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.runtime import Comm, Mpi, RankError, RankSums, Serial, Threads, agree, as_comm
from maxmargin.runtime import comm as module

HERE = Path(__file__).parent
SIZES = st.integers(1, 4)
DTYPES = st.sampled_from(["f4", "f8", "i8", "u1"])


def arrays(seed: int, shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(seed).integers(0, 50, shape).astype(dtype)


@settings(max_examples=60, deadline=None)
@given(SIZES, DTYPES, st.sampled_from([(), (0,), (1,), (7,), (3, 2)]), st.sampled_from(["sum", "max", "min"]))
def test_threads_reduce_as_numpy_does(size: int, dtype: str, shape: tuple[int, ...], op: str) -> None:
    parts = [arrays(rank, shape, dtype) for rank in range(size)]
    want = getattr(np.stack(parts), op)(axis=0)
    for got in Threads.run(size, lambda comm: comm.allreduce(parts[comm.rank], op)):
        np.testing.assert_array_equal(got, want)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), DTYPES, st.sampled_from([(), (3,)]))
def test_threads_gather_what_each_has(lengths: list[int], dtype: str, row: tuple[int, ...]) -> None:
    parts = [arrays(rank, (n, *row), dtype) for rank, n in enumerate(lengths)]
    for got in Threads.run(len(lengths), lambda comm: comm.allgather(parts[comm.rank])):
        assert [part.dtype for part in got] == [np.dtype(dtype)] * len(parts)
        for a, b in zip(got, parts, strict=True):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), DTYPES)
def test_lengths_that_all_know_and_what_only_the_first_rank_hears(lengths: list[int], dtype: str) -> None:
    parts = [arrays(rank, (n, 2), dtype) for rank, n in enumerate(lengths)]

    def work(comm: Comm) -> Any:
        told = comm.bcast(np.arange(3.0) if comm.rank == len(lengths) - 1 else None, len(lengths) - 1, doubles=3)
        return comm.allgather(parts[comm.rank], lengths), comm.gather(parts[comm.rank], lengths), told

    for rank, (every, first, told) in enumerate(Threads.run(len(lengths), work)):
        for a, b in zip(every, parts, strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(first, [] if rank else parts, strict=True):
            np.testing.assert_array_equal(a, b)
        assert told.tolist() == [0.0, 1.0, 2.0]


@settings(max_examples=60, deadline=None)
@given(SIZES.flatmap(lambda p: st.lists(st.lists(st.integers(0, 4), min_size=p, max_size=p), min_size=p, max_size=p)))
def test_threads_send_each_its_own(lengths: list[list[int]]) -> None:
    parts = [[arrays(10 * r + to, (n, 2), "f8") for to, n in enumerate(row)] for r, row in enumerate(lengths)]
    for rank, got in enumerate(Threads.run(len(lengths), lambda comm: comm.alltoall(parts[comm.rank]))):
        for r, part in enumerate(got):
            np.testing.assert_array_equal(part, parts[r][rank])


def test_sums_of_reals_have_the_same_bits_everywhere() -> None:
    parts = [np.random.default_rng(rank).normal(size=1000) for rank in range(4)]
    got = Threads.run(4, lambda comm: comm.allreduce(parts[comm.rank]).tobytes())
    assert len(set(got)) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_exact_sums_keep_what_a_double_loses(size: int) -> None:
    """Each rank's sum is near its neighbour's but for the sign: what is left of them is in the last bits."""
    parts = [(-1) ** rank * np.array([1.0 + rank // 2, 2.0**-60 * (rank + 1)]) for rank in range(size)]
    want = sum(np.sum(part, dtype=np.longdouble) for part in parts)
    got = Threads.run(size, lambda comm: RankSums(comm).exact(parts[comm.rank]))
    assert all(abs(one - want) <= 4 * size * np.finfo(np.longdouble).eps for one in got) and len(set(got)) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_ranks_agree_on_the_largest_code_or_on_what_is_wrong(size: int) -> None:
    for who in range(size):
        codes = Threads.run(size, lambda comm, who=who: agree(comm, 3 if comm.rank == who else 1, b"the same"))
        assert codes == [3] * size

        def failing(comm: Comm, who: int = who) -> str:
            with pytest.raises(ZeroDivisionError if comm.rank == who else RankError, match="of one") as caught:
                agree(comm, 1, b"the same", ZeroDivisionError("of one") if comm.rank == who else None)
            return str(caught.value)

        def apart(comm: Comm, who: int = who) -> None:
            with pytest.raises(RankError, match="out of step"):
                agree(comm, 1, b"other" if comm.rank == who else b"the same")

        if size > 1:
            where = f"ZeroDivisionError: of one (on rank {who} of {size})"
            assert Threads.run(size, failing) == ["of one" if rank == who else where for rank in range(size)]
            Threads.run(size, apart)


def test_objects_travel_and_are_ones_own() -> None:
    def work(comm: Comm) -> Any:
        mine = comm.bcast({"list": [comm.rank]}, root=1)
        mine["list"].append(comm.rank)
        array = np.zeros(2)
        shared = comm.allgather(array)
        array += 5  # after the exchange: nobody else may see it
        shared[0] += comm.rank
        return mine, comm.share(comm.rank), shared[0].tolist()

    assert Threads.run(3, work) == [({"list": [1, r]}, [0, 1, 2], [float(r)] * 2) for r in range(3)]


def test_an_error_on_one_rank_ends_all() -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 1:
            raise ZeroDivisionError("of rank 1")
        while True:
            comm.allreduce(np.zeros(3))

    with pytest.raises(ZeroDivisionError, match="of rank 1"):
        Threads.run(3, work)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("rank ")]


@pytest.mark.parametrize("how", ["raises", "fails"])
def test_a_rank_that_comes_after_an_error_hears_of_that_error(how: str) -> None:
    """Not that somebody has returned: its own message would hide what went wrong."""
    heard: list[BaseException] = []

    def work(comm: Comm) -> None:
        if comm.rank == 1:
            error = ZeroDivisionError("of rank 1")
            if how == "raises":
                raise error
            comm.fail(error)
            return
        while comm.room.error is None:  # type: ignore[attr-defined]
            time.sleep(1e-3)
        try:
            comm.allreduce(np.zeros(3))
        except RuntimeError as error:
            heard.append(error)
            raise

    with pytest.raises(ZeroDivisionError, match="of rank 1"):
        Threads.run(2, work)
    assert isinstance(heard[0], RankError) and str(heard[0]) == "ZeroDivisionError: of rank 1"


@pytest.mark.parametrize("moment", ["start", "join"])
def test_ctrl_c_ends_the_ranks_too(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """It comes to the thread that waits for them, or is still starting them."""
    over, heard = threading.Event(), []

    def work(comm: Comm) -> None:
        try:
            while not over.is_set():
                comm.allreduce(np.zeros(3))
        except RankError as error:
            heard.append(str(error).split(":")[0])

    untouched = getattr(threading.Thread, moment)

    def pressed(thread: threading.Thread) -> None:
        if moment == "start":
            untouched(thread)
            if thread.name != "rank 1":
                return
        raise KeyboardInterrupt

    try:
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(threading.Thread, moment, pressed)
            Threads.run(2, work)
        for thread in [thread for thread in threading.enumerate() if thread.name.startswith("rank ")]:
            thread.join(10)
    finally:
        over.set()
    assert heard == ["KeyboardInterrupt"] * 2


@pytest.mark.parametrize("mistake", [
    lambda comm: comm.allreduce(np.zeros(3)) if comm.rank else comm.allgather(np.zeros(3)),
    lambda comm: comm.allreduce(np.zeros(3 + comm.rank)),
    lambda comm: comm.allreduce(np.zeros(3), "max" if comm.rank else "sum"),
    lambda comm: comm.allgather(np.zeros((2, 3 + comm.rank))),
    lambda comm: comm.allgather(np.zeros(2, "f4" if comm.rank else "f8")),
    lambda comm: comm.bcast(0, root=comm.rank),
    lambda comm: comm.bcast(np.zeros(2), doubles=2 + comm.rank),
    lambda comm: comm.allgather(np.zeros(2), [2, 2] if comm.rank else [2, 3]),
    lambda comm: comm.gather(np.zeros(2), [2, 2] if comm.rank else [2, 3]),
])  # fmt: skip
def test_ranks_out_of_step_are_told(mistake: Any) -> None:
    with pytest.raises(RuntimeError, match="out of step"):
        Threads.run(2, mistake)


def test_a_rank_that_has_other_than_all_expect_is_told() -> None:
    with pytest.raises(RuntimeError, match="rank 1 has 3 rows where all ranks expect 2"):
        Threads.run(2, lambda comm: comm.allgather(np.zeros(2 + comm.rank), [2, 2]))


@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_that_returns_early_is_noticed(who: int) -> None:
    with pytest.raises(RuntimeError, match="returned"):
        Threads.run(2, lambda comm: None if comm.rank == who else comm.allreduce(np.zeros(1)))


def test_a_deadlock_ends() -> None:
    never = threading.Event()

    def work(comm: Comm) -> None:
        if comm.rank:
            never.wait(2.0)
        comm.allreduce(np.zeros(1))

    with pytest.raises(TimeoutError, match="deadlock"):
        Threads.run(2, work, timeout=0.1)


def test_a_rank_may_end_all() -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 0:
            comm.fail(KeyError("lost"))
        comm.allreduce(np.zeros(1))

    with pytest.raises(KeyError, match="lost"):
        Threads.run(2, work)


def test_traffic_is_counted() -> None:
    def work(comm: Comm) -> Any:
        comm.allreduce(np.zeros(10))
        comm.alltoall([np.zeros(to) for to in range(3)])
        comm.allgather(np.zeros(comm.rank))
        return comm.traffic

    for rank, traffic in enumerate(Threads.run(3, work)):
        assert traffic.messages == 3
        assert traffic.sent == {"allreduce": 80, "alltoall": 8 * (3 - rank), "allgather": 8 * rank}
        assert traffic.bytes == sum(traffic.sent.values())


@pytest.mark.parametrize("make", [Serial, Mpi])
def test_one_process_hears_itself(make: Any) -> None:
    comm = make()
    assert (comm.rank, comm.size) == (0, 1)
    x = np.arange(6.0).reshape(3, 2)
    for got in (comm.allreduce(x, "max"), comm.allgather(x)[0], comm.alltoall([x])[0], comm.bcast(x), comm.share(x)[0]):
        np.testing.assert_array_equal(got, x)
    assert comm.traffic.messages == 0
    comm.fail(ValueError("nobody waits"))
    with pytest.raises(ValueError, match="op='product'"):
        comm.allreduce(x, "product")
    with pytest.raises(ValueError, match="one array for each"):
        comm.alltoall([x, x])


def test_what_a_user_may_give() -> None:
    from mpi4py import MPI

    serial = Serial()
    assert as_comm(serial) is serial
    assert isinstance(as_comm(None), Mpi) and isinstance(as_comm(MPI.COMM_SELF), Mpi)
    with pytest.raises(TypeError, match="COMM_WORLD"):
        as_comm("world")


def test_without_mpi4py_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r"pip install 'maxmargin\[mpi\]'"):
        Mpi()


@pytest.mark.parametrize("launcher", module.LAUNCHED)
def test_one_of_many_that_mpi_does_not_know_of_is_told_so(launcher: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """srun without --mpi, or the mpiexec of another MPI: each process would fit a machine of its own and say nothing."""
    from mpi4py import MPI

    for name in module.LAUNCHED:
        monkeypatch.delenv(name, raising=False)
    for said in ("1", "", "many"):
        monkeypatch.setenv(launcher, said)
        assert Mpi().size == 1
    monkeypatch.setenv(launcher, "4")
    with pytest.raises(RuntimeError, match=rf"{launcher}=4.*srun --mpi=pmi2.*COMM_SELF"):
        as_comm(None)
    assert as_comm(MPI.COMM_SELF).size == 1


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_real_processes_agree_with_numpy(mpiexec: Any, ranks: int) -> None:
    done = mpiexec(ranks, str(HERE / "exchanges.py"))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == [f"rank {r} of {ranks} agrees" for r in range(ranks)]


def test_a_failing_rank_ends_the_others_with_its_message(mpiexec: Any) -> None:
    code = (
        "import numpy as np; from maxmargin.runtime import Mpi; comm = Mpi()\n"
        "if comm.rank == 1: comm.fail(MemoryError('no room for 12 TB'))\n"
        "comm.allreduce(np.zeros(3))"
    )
    done = mpiexec(2, "-c", code)
    assert done.returncode != 0
    assert "rank 1 of 2 cannot go on" in done.stderr and "no room for 12 TB" in done.stderr


def test_messages_of_many_rows_are_counted_in_rows() -> None:
    """31 bits of counts are rows, not bytes."""
    comm = Mpi()
    assert comm._row_type(np.zeros((2, 54))).Get_size() == 8 * 54
    assert module.SMALL < 2**20
