"""Talk between the processes that share one fit: a few collective exchanges, which all ranks make in the same order.

    Serial()              one process
    Threads.run(P, f)     P ranks as threads of one process: for tests, where a mistake must end in an error, not a hang
    Mpi(communicator)     mpi4py's

Sums have the same bits on every rank (what ranks decide from them must not differ): they are added up once, in one order,
wherever they are added up. A result is the caller's own, but for `Serial`, which hands back what it was given.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
import time
import traceback
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
Counts = Sequence[int] | NDArray[np.int64] | None

REDUCE: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum}
SMALL = 1 << 16  # bytes of all ranks together that are gathered and added up by each: one message instead of two
# How many processes a launcher says that it started: srun, then the mpiexec of MPICH and Intel, then that of Open MPI.
LAUNCHED = ("SLURM_STEP_NUM_TASKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
HEARD = 0.3  # seconds in which the launcher passes on what a rank has printed: an Abort may overtake it


@dataclass
class Traffic:
    """Exchanges that a rank took part in, and the bytes that it had to send to others, by kind of exchange."""

    calls: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)

    def count(self, kind: str, sent: int) -> None:
        self.calls[kind] = self.calls.get(kind, 0) + 1
        self.sent[kind] = self.sent.get(kind, 0) + sent

    @property
    def messages(self) -> int:
        return sum(self.calls.values())

    @property
    def bytes(self) -> int:
        return sum(self.sent.values())


class Comm(Protocol):
    """What a solver may ask of its fellow processes."""

    rank: int
    size: int
    neighbours: int  # processes of these on the same machine, this one included
    traffic: Traffic

    def allreduce(self, array: AnyArray, op: str = "sum") -> AnyArray:
        """Elementwise sum, max or min over the ranks, the same bits on every rank."""
        ...

    def allgather(self, array: AnyArray, counts: Counts = None) -> list[AnyArray]:
        """The arrays of all ranks in rank order. Lengths may differ; dtype and shape of a row must not.

        `counts` are the lengths where all ranks know them: they are not sent then.
        """
        ...

    def gather(self, array: AnyArray, counts: Counts) -> list[AnyArray]:
        """The arrays of all ranks, of lengths that all know, on the first one; nothing on the others."""
        ...

    def alltoall(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        """arrays[r] goes to rank r; returns what the ranks sent here, in their order. Lengths may differ, rows must not."""
        ...

    def bcast(self, value: Any, root: int = 0, doubles: int | None = None) -> Any:
        """`value` as it is on `root`: an array, or anything small that pickle takes.

        `doubles`: it is so many float64 in one dimension, which all know: they need not be told.
        """
        ...

    def share(self, value: Any) -> list[Any]:
        """The values of all ranks: anything small that pickle takes."""
        ...

    def fail(self, error: BaseException) -> None:
        """This rank cannot go on and the others do not know: end all of them, with this error's message."""
        ...


class RankError(RuntimeError):
    """An error of another rank."""


class Serial:
    """A single process: every exchange is the identity."""

    rank = 0
    size = 1
    neighbours = 1

    def __init__(self) -> None:
        self.traffic = Traffic()

    def allreduce(self, array: AnyArray, op: str = "sum") -> AnyArray:
        known_op(op)
        return np.asarray(array)

    def allgather(self, array: AnyArray, counts: Counts = None) -> list[AnyArray]:
        return [np.asarray(array)]

    def gather(self, array: AnyArray, counts: Counts) -> list[AnyArray]:
        return [np.asarray(array)]

    def alltoall(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        return list(one_per_rank(arrays, 1))

    def bcast(self, value: Any, root: int = 0, doubles: int | None = None) -> Any:
        return value

    def share(self, value: Any) -> list[Any]:
        return [value]

    def fail(self, error: BaseException) -> None:
        """Nobody waits: the error itself ends the only process."""


ALONE = Serial()


class Mpi:
    """mpi4py's communicator (None: COMM_WORLD). Its ranks may run on machines of different instruction sets."""

    _rows: ClassVar[dict[int, Any]] = {}  # MPI types of rows by their bytes: it is counts of rows that must fit in 31 bits

    def __init__(self, communicator: Any = None) -> None:
        self._mpi = _mpi4py()
        self._comm = self._mpi.COMM_WORLD if communicator is None else communicator
        self.rank, self.size = int(self._comm.Get_rank()), int(self._comm.Get_size())
        if communicator is None and self.size == 1:
            not_one_of_many()
        self.neighbours = 1 if self.size == 1 else self._comm.allgather(platform.node()).count(platform.node())
        self.traffic = Traffic()

    def allreduce(self, array: AnyArray, op: str = "sum") -> AnyArray:
        mine: AnyArray = np.asarray(array, order="C")
        known_op(op)
        if self.size == 1:
            return np.array(mine)
        self.traffic.count("allreduce", mine.nbytes)
        if mine.nbytes * self.size <= SMALL:
            parts = np.empty((self.size, *mine.shape), mine.dtype)
            self._comm.Allgather(self._bytes(mine), self._bytes(parts))
            return np.asarray(REDUCE[op].reduce(parts, axis=0))
        # MPI's own Allreduce may leave other bits on other ranks: each part is added up on one, and then handed out.
        whole: AnyArray = np.empty(mine.shape, mine.dtype)
        counts = np.diff(np.arange(self.size + 1) * mine.size // self.size)
        part = np.empty(counts[self.rank], mine.dtype)
        by = {"sum": self._mpi.SUM, "max": self._mpi.MAX, "min": self._mpi.MIN}[op]
        self._comm.Reduce_scatter(mine.reshape(-1), part, counts.tolist(), by)
        self._comm.Allgatherv(part, [whole.reshape(-1), counts.tolist()])
        return whole

    def allgather(self, array: AnyArray, counts: Counts = None) -> list[AnyArray]:
        mine = np.atleast_1d(np.asarray(array, order="C"))
        if self.size == 1:
            return [mine.copy()]
        known_counts(counts, self.rank, mine)
        lengths = self._counts("allgather", [len(mine)], row_kind(mine))[:, 0] if counts is None else np.asarray(counts)
        self.traffic.count("allgather", mine.nbytes)
        whole = np.empty((lengths.sum(), *mine.shape[1:]), mine.dtype)
        kind = self._row_type(mine)
        self._comm.Allgatherv([mine, len(mine), kind], [whole, lengths.tolist(), None, kind])
        return cut(whole, lengths)

    def gather(self, array: AnyArray, counts: Counts) -> list[AnyArray]:
        mine = np.atleast_1d(np.asarray(array, order="C"))
        if self.size == 1:
            return [mine.copy()]
        known_counts(counts, self.rank, mine)
        lengths, kind = np.asarray(counts), self._row_type(mine)
        self.traffic.count("gather", mine.nbytes if self.rank else 0)
        whole = np.empty((lengths.sum() if self.rank == 0 else 0, *mine.shape[1:]), mine.dtype)
        self._comm.Gatherv([mine, len(mine), kind], [whole, lengths.tolist(), None, kind])
        return [] if self.rank else cut(whole, lengths)

    def alltoall(self, arrays: Sequence[AnyArray]) -> list[AnyArray]:
        parts = [np.asarray(array, order="C") for array in one_per_rank(arrays, self.size)]
        if self.size == 1:
            return [parts[0].copy()]
        counts = self._counts("alltoall", [len(part) for part in parts], row_kind(*parts))
        sends, takes = counts[self.rank].tolist(), counts[:, self.rank].tolist()
        self.traffic.count("alltoall", sum(part.nbytes for part in parts) - parts[self.rank].nbytes)
        whole = np.empty((sum(takes), *parts[0].shape[1:]), parts[0].dtype)
        kind = self._row_type(whole)
        self._comm.Alltoallv([np.concatenate(parts), sends, None, kind], [whole, takes, None, kind])
        return cut(whole, takes)

    def bcast(self, value: Any, root: int = 0, doubles: int | None = None) -> Any:
        if self.size == 1:
            return value
        if doubles is not None:
            told = np.array(value, np.float64) if self.rank == root else np.empty(doubles)
            self.traffic.count("bcast", told.nbytes if self.rank == root else 0)
            self._comm.Bcast([told, doubles, self._type(8)], root)
            return told
        plain = self.rank == root and isinstance(value, np.ndarray) and not value.dtype.hasobject
        shape, dtype, small = self._comm.bcast((value.shape, value.dtype, None) if plain else (None, None, value), root)
        self.traffic.count("bcast", value.nbytes if plain else 0)
        if shape is None:
            return small
        whole = np.array(value, order="C") if plain else np.empty(shape, dtype)
        self._comm.Bcast([whole, whole.size, self._type(whole.itemsize)], root)
        return whole

    def share(self, value: Any) -> list[Any]:
        mine = np.frombuffer(pickle.dumps(value), np.uint8)
        return [pickle.loads(part.tobytes()) for part in self.allgather(mine)]

    def fail(self, error: BaseException) -> None:
        """The message on stderr, and MPI's Abort: there is no other way to end ranks that wait in an exchange."""
        if self.size == 1:
            return
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        print(f"rank {self.rank} of {self.size} cannot go on:\n{text}", file=sys.stderr, flush=True)
        time.sleep(HEARD)
        self._comm.Abort(1)

    def _counts(self, kind: str, mine: list[int], row: str) -> NDArray[np.int64]:
        """The counts of all ranks, after a look whether they talk about the same."""
        whole = np.empty((self.size, len(mine) + 1), np.int64)
        self._comm.Allgather(np.array([zlib.crc32(f"{kind} {row}".encode()), *mine], np.int64), whole)
        self.traffic.count("counts", 8 * len(mine) + 8)
        if (whole[:, 0] != whole[0, 0]).any():
            raise RuntimeError(f"the ranks are out of step: this one, {self.rank}, has {kind} of {row}, others do not")
        return whole[:, 1:]

    def _type(self, size: int) -> Any:
        """MPI's type for so many bytes."""
        if size not in self._rows:
            self._rows[size] = self._mpi.BYTE.Create_contiguous(size).Commit()
        return self._rows[size]

    def _row_type(self, array: AnyArray) -> Any:
        return self._type(array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64)))

    def _bytes(self, array: AnyArray) -> Any:
        return [array, self._mpi.BYTE]


def as_comm(comm: Any) -> Comm:
    """What a user may give as `comm`: None (all of MPI's processes), a communicator of mpi4py, or one of the above."""
    if comm is None or hasattr(comm, "Allgatherv"):
        return Mpi(comm)
    if not all(hasattr(comm, name) for name in ("rank", "size", "allreduce", "alltoall", "share", "fail")):
        raise TypeError(f"comm={comm!r} must be a communicator of mpi4py, or None for MPI.COMM_WORLD")
    known: Comm = comm
    return known


def _mpi4py() -> Any:
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # the latter: mpi4py is there, but finds no MPI
        raise ImportError(
            "this needs mpi4py, and an MPI that it finds: pip install 'maxmargin[mpi]' (and pip install mpich, where the "
            f"system has no MPI). Python says: {error}"
        ) from error
    return MPI


def not_one_of_many() -> None:
    """An error if a launcher started several processes, of which MPI knows this one alone: each would fit all by itself."""
    for name in LAUNCHED:
        said = os.environ.get(name, "")
        if said.isdecimal() and int(said) > 1:
            raise RuntimeError(
                f"{said} processes were started ({name}={said}), but MPI's world here has this one alone: its launcher and "
                "mpi4py's MPI do not know each other. Start the job by the mpiexec of that MPI, or by srun --mpi=pmi2 (pmix "
                "for Open MPI; srun --mpi=list says which there are); for a fit of this process alone: comm=MPI.COMM_SELF"
            )


def known_op(op: str) -> str:
    if op not in REDUCE:
        raise ValueError(f"op={op!r} is unknown: choose one of {', '.join(map(repr, REDUCE))}")
    return op


def one_per_rank(arrays: Sequence[AnyArray], size: int) -> Sequence[AnyArray]:
    if len(arrays) != size:
        raise ValueError(f"alltoall of {len(arrays)} arrays, but there are {size} ranks: give one array for each")
    return arrays


def known_counts(counts: Counts, rank: int, mine: AnyArray) -> str:
    """What Threads compare; an error if this rank's own is not so long."""
    if counts is None:
        return ""
    if int(counts[rank]) != len(mine):
        raise RuntimeError(f"rank {rank} has {len(mine)} rows where all ranks expect {int(counts[rank])}")
    return f" of {np.asarray(counts).tolist()}"


def cut(whole: AnyArray, counts: Counts) -> list[AnyArray]:
    ends = np.cumsum([0, *np.asarray(counts).tolist()]).tolist()
    return [whole[begin:end] for begin, end in pairwise(ends)]


def row_kind(*arrays: AnyArray) -> str:
    """What all ranks must agree about."""
    kinds = {f"{array.dtype} {array.shape[1:]}" for array in arrays}
    if len(kinds) > 1:
        raise ValueError(f"arrays of different rows, {sorted(kinds)}: dtype and shape of a row must be the same")
    return kinds.pop()
