"""Under mpiexec: every exchange of runtime.comm.Mpi, against what NumPy says. Prints one line per rank."""

from __future__ import annotations

import sys

import numpy as np

from maxmargin.runtime import Mpi, or_all_fail
from maxmargin.runtime.comm import Traffic


def main(comm: Mpi) -> None:
    rank, size = comm.rank, comm.size
    for n in (1, 7, 100_000):  # small ones are gathered, large ones reduced in parts
        parts = [np.random.default_rng(r).normal(size=(n, 2)) for r in range(size)]
        for op, ufunc in (("sum", np.add), ("max", np.maximum), ("min", np.minimum)):
            got = comm.allreduce(parts[rank], op)
            np.testing.assert_allclose(got, ufunc.reduce(parts), rtol=1e-12, atol=1e-12)
            assert all(bits == got.tobytes() for bits in comm.share(got.tobytes()))
    assert comm.allreduce(np.array(rank)).item() == sum(range(size))
    for dtype in ("f4", "i8", "u1", "bool"):
        gathered = comm.allgather(np.full((rank, 3), rank, dtype))  # rank 0 has none
        assert [part.shape for part in gathered] == [(r, 3) for r in range(size)]
        assert all((part == np.full((r, 3), r, dtype)).all() and part.dtype == dtype for r, part in enumerate(gathered))
        known = comm.allgather(np.full((rank, 3), rank, dtype), list(range(size)))
        assert all((a == b).all() and a.shape == b.shape for a, b in zip(known, gathered, strict=True))
        first = comm.gather(np.full((rank, 3), rank, dtype), list(range(size)))
        assert all((a == b).all() and a.shape == b.shape for a, b in zip(first, [] if rank else gathered, strict=True))
    told = comm.bcast(np.arange(4.0) if rank == size - 1 else None, size - 1, doubles=4)
    assert told.tolist() == [0.0, 1.0, 2.0, 3.0]
    sent = comm.alltoall([np.full(rank + to, 10 * rank + to) for to in range(size)])
    assert [part.tolist() for part in sent] == [[10 * r + rank] * (r + rank) for r in range(size)]
    assert comm.bcast({"of": rank}, size - 1) == {"of": size - 1}
    assert (comm.bcast(np.arange(5) + rank) == np.arange(5)).all()
    assert comm.bcast(np.empty((0, 3)), size - 1).shape == (0, 3)
    assert comm.share("x" * rank) == ["x" * r for r in range(size)]
    if size > 1:
        assert comm.traffic.calls["alltoall"] == 1 and comm.traffic.bytes > 100_000 * 16 and comm.traffic.messages > 9
        try:
            comm.allgather(np.zeros(3, "f4" if rank else "f8"))
        except RuntimeError as error:
            assert "out of step" in str(error)
        else:
            raise AssertionError("different rows were gathered")
        counted(comm)
    sys.stdout.write(f"rank {rank} of {size} agrees\n")  # at once: lines of several ranks may meet


def counted(comm: Mpi) -> None:
    """Each exchange is counted once, with the bytes that this rank sends to others; and the counts of rows where asked."""
    rank, size, last = comm.rank, comm.size, comm.size - 1
    rows, every = np.zeros((rank + 1, 3)), list(range(1, size + 1))
    for exchange, sent in (
        (lambda: comm.allreduce(rows[0]), {"allreduce": 24}),
        (lambda: comm.allgather(rows), {"allgather": rows.nbytes, "counts": 16}),
        (lambda: comm.allgather(rows, every), {"allgather": rows.nbytes}),
        (lambda: comm.gather(rows, every), {"gather": rows.nbytes if rank else 0}),
        (lambda: comm.alltoall([np.zeros(to) for to in every]), {
            "alltoall": 8 * (sum(every) - every[rank]), "counts": 8 + 8 * size}),
        (lambda: comm.bcast(np.zeros(4), last, doubles=4), {"bcast": 32 if rank == last else 0}),
        (lambda: comm.bcast(np.zeros(5), last), {"bcast": 40 if rank == last else 0}),
    ):  # fmt: skip
        comm.traffic = Traffic()
        exchange()
        assert comm.traffic.sent == sent and comm.traffic.calls == dict.fromkeys(sent, 1), (comm.traffic, sent)


if __name__ == "__main__":
    with or_all_fail(Mpi()) as ranks:  # a rank that is wrong must not leave the others waiting
        main(ranks)
