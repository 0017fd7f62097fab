"""Rows that live on a cluster's workers, a partition at a time, seen from the client.

The client knows of every row its label, its weight and where it is, and asks for rows by their numbers: for a few at a
time (a sample, support vectors). Whatever needs all of them is a function that is called where they are.

A partition is a task of the user's graph, checked: a worker that dies with it is made up for, as Dask computes it again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from maxmargin.carriers import ATTEMPTS, LOOK, LostError
from maxmargin.carriers.on_dask import DaskCarrier
from maxmargin.data.rows import stacked

IntArray = NDArray[np.int64]
SMALL = 1 << 16  # bytes of an argument that may go by way of the scheduler with a task


class Partitions:
    """X by its partitions: `blocks` are futures, `start[i]` is the number of partition i's first row."""

    def __init__(self, client: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self.client, self.carrier = client, DaskCarrier(client)
        kind = _dtype(X)
        rows = _delayed("X", X)
        check_memory(client, X.nbytes if hasattr(X, "chunks") else np.nan)
        labels, weights = _beside("y", y, X, len(rows)), _beside("sample_weight", sample_weight, X, len(rows))
        from dask import delayed

        count = len(rows)
        blocks = [delayed(checked, pure=False)(x, i, count, kind) for i, x in enumerate(rows)]
        self.blocks = client.compute(blocks)
        about = [
            delayed(described, pure=False)(block, i, *(None if c is None else c[i] for c in (labels, weights)))
            for i, block in enumerate(blocks)
        ]
        self.facts = [self._fact(future) for future in client.compute(about)]
        sizes = np.array([fact["rows"] for fact in self.facts])
        self.start = np.r_[0, np.cumsum(sizes)]
        self._judge_shapes()
        self.shape = int(self.start[-1]), int(self.facts[0]["features"])
        self.dtype, self.sparse = np.dtype(kind), any(fact["sparse"] for fact in self.facts)
        self.nbytes = sum(fact["bytes"] for fact in self.facts)
        check_memory(client, self.nbytes)
        self.y = _whole("y", y, [fact["y"] for fact in self.facts], self.shape[0])
        self.weight = _whole("sample_weight", sample_weight, [fact["weight"] for fact in self.facts], self.shape[0])
        self.names = list(X.columns) if hasattr(X, "columns") else None

    def _fact(self, future: Any) -> dict[str, Any]:
        try:
            return dict(self.carrier.get(future))
        except LostError as lost:
            raise RuntimeError(
                f"partitions of the data were lost with the worker that had them ({lost}): what was scattered, Dask cannot "
                "compute again; scatter it anew, or give a collection that is computed from files"
            ) from lost

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def _judge_shapes(self) -> None:
        if not self.start[-1]:
            raise ValueError(f"X has no rows: all of its {len(self.blocks)} partitions are empty")
        wide = {fact["features"] for fact in self.facts}
        if len(wide) > 1:
            raise ValueError(f"the partitions of X differ in their number of features: {sorted(wide)}")
        if len({fact["sparse"] for fact in self.facts}) > 1:
            raise ValueError("some partitions of X are sparse and some are dense: convert them to one kind")

    def __getitem__(self, rows: IntArray) -> Any:
        """These rows, here."""
        rows = np.asarray(rows, np.int64)
        at = np.searchsorted(self.start, rows, side="right") - 1
        asked = np.unique(at).tolist()
        wanted = [np.flatnonzero(at == b) for b in asked]
        got = self.each(picked_rows, [(rows[some] - self.start[b],) for b, some in zip(asked, wanted)], asked)
        if not got:
            return self._none()
        order = np.argsort(np.concatenate(wanted), kind="stable")
        return stacked(got)[order]

    def _none(self) -> Any:
        shape = (0, self.shape[1])
        return sp.csr_matrix(shape, dtype=self.dtype) if self.sparse else np.empty(shape, self.dtype)

    def parts(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """An array with one entry per row, partition by partition."""
        return [values[a:b] for a, b in zip(self.start, self.start[1:])]

    def homes(self) -> list[str]:
        """The worker of each partition; one of them where there are several, none ("") where it is on its way."""
        where = self.client.who_has(self.blocks)
        return [min(where.get(block.key) or [""]) for block in self.blocks]

    def each(
        self, function: Callable[..., Any], own: Sequence[tuple[Any, ...]] | None = None,
        which: Sequence[int] | None = None, common: tuple[Any, ...] = (),
    ) -> list[Any]:  # fmt: skip
        """function(block, *common, *own) of each partition (or of `which`), when nobody waits in between."""
        steps = self.steps(function, own, which, common)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return list(end.value)

    def steps(
        self, function: Callable[..., Any], own: Sequence[tuple[Any, ...]] | None = None,
        which: Sequence[int] | None = None, common: tuple[Any, ...] = (),
    ) -> Generator[None, None, list[Any]]:  # fmt: skip
        """The same with safe points while the workers are at it. What a dead worker took along is asked for again."""
        which = range(len(self.blocks)) if which is None else which
        own = [()] * len(which) if own is None else own
        values: list[Any] = [None] * len(which)
        missing, shared = list(range(len(which))), self._sent(common)
        for _ in range(ATTEMPTS):
            futures = {
                self.carrier.call(function, self.blocks[which[i]], *shared, *self._sent(own[i])): i for i in missing
            }
            missing = []
            try:
                while futures:
                    done = self.carrier.wait(list(futures), LOOK, every=True)
                    for future, value in zip(done, self.carrier.values(done)):
                        i = futures.pop(future)
                        values[i] = value
                        if isinstance(value, LostError):
                            missing.append(i)
                    yield None
            finally:
                self.carrier.drop(list(futures))
            if not missing:
                return values
            shared = self._sent(common)
        raise RuntimeError(
            f"{ATTEMPTS} workers died over partition {which[missing[0]]} of X ({values[missing[0]]}): give workers more "
            "memory (dask worker --memory-limit), or make smaller partitions"
        )

    def _sent(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments, large ones as references to what went straight to a worker."""
        return tuple(self.carrier.put(arg) if _bytes(arg) > SMALL else arg for arg in args)


def _bytes(x: Any) -> int:
    """Of an array, a CSR matrix or a dict of arrays; 0 of what is none of these."""
    if isinstance(x, dict):
        return sum(map(_bytes, x.values()))
    if sp.issparse(x):
        return int(x.data.nbytes + x.indices.nbytes + x.indptr.nbytes)
    return x.nbytes if isinstance(x, np.ndarray) else 0


def check_memory(client: Any, nbytes: float, copies: float = 1.0) -> None:
    """An error if the workers together have too little memory for so many copies of the data."""
    limits = [worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]
    if limits and all(limits) and nbytes * copies > sum(limits):
        raise MemoryError(
            f"X takes {nbytes / 1e9:.3g} GB and {copies:g} times that is needed, but the {len(limits)} workers of this "
            f"cluster have {sum(limits) / 1e9:.3g} GB together: add workers, or memory (dask worker --memory-limit), or "
            "give X as float32"
        )


def checked(x: Any, number: int, count: int, dtype: Any) -> Any:
    """On a worker: a partition as rows that the core takes; an error says which partition it is."""
    x = x.to_numpy() if hasattr(x, "to_numpy") else x
    try:
        x = check_array(
            x, accept_sparse="csr", dtype=dtype, order="C", ensure_min_samples=0, accept_large_sparse=True, input_name="X"
        )
    except ValueError as error:
        raise ValueError(f"partition {number} (of 0 … {count - 1}): {error}") from None
    if sp.issparse(x):
        x = sp.csr_matrix(x)
        x.sum_duplicates()
    return x


def described(x: Any, number: int, y: Any, weight: Any) -> dict[str, Any]:
    """On a worker: what the client must know of a partition."""
    labels = {"y": None if y is None else np.asarray(y), "weight": None if weight is None else np.asarray(weight)}
    for name, values in labels.items():
        if values is not None and len(values) != x.shape[0]:
            raise ValueError(
                f"partition {number} has {x.shape[0]} rows of X and {len(values)} of "
                f"{'y' if name == 'y' else 'sample_weight'}: divide them alike (repartition, or rechunk)"
            )
    return {"rows": x.shape[0], "features": x.shape[1], "sparse": sp.issparse(x), "bytes": _bytes(x), **labels}


def picked_rows(block: Any, places: IntArray) -> Any:
    """On a worker: some rows of a partition."""
    return block[places]


def _dtype(X: Any) -> Any:
    """float32 if X is, else float64: for all partitions alike."""
    kinds = {np.dtype(kind) for kind in X.dtypes} if hasattr(X, "columns") else {getattr(X, "dtype", np.float64)}
    return np.float32 if kinds == {np.dtype(np.float32)} else np.float64


def _delayed(name: str, X: Any) -> list[Any]:
    """The partitions of a dask array of rows, or of a dask frame."""
    if not is_collection(X):
        raise TypeError(
            f"{name} is a {type(X).__name__}: give a dask array or frame, or use the machine of `maxmargin` itself"
        )
    if not hasattr(X, "chunks"):
        return list(X.to_delayed())
    if X.ndim != (2 if name == "X" else 1):
        raise ValueError(f"{name} has {X.ndim} dimensions: {'rows of features' if name == 'X' else 'one'} wanted")
    if name == "X" and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if any(np.isnan(size) for size in X.chunks[0]) and name == "X":
        warnings.warn(
            "X has chunks of unknown sizes: their rows are counted when they are computed", UserWarning, stacklevel=6
        )
    return list(X.to_delayed().ravel())


def is_collection(X: Any) -> bool:
    """Whether X is a dask array or frame."""
    return hasattr(X, "dask") and hasattr(X, "to_delayed")


def _beside(name: str, values: Any, X: Any, count: int) -> list[Any] | None:
    """The partitions of what goes with the rows of X, in as many parts; None if it is not on the workers."""
    if not is_collection(values):
        return None
    known = hasattr(values, "chunks") and hasattr(X, "chunks") and not np.isnan([*values.chunks[0], *X.chunks[0]]).any()
    if known:
        if values.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and {name} has {values.shape[0]}: one per row is wanted")
        values = values.rechunk((X.chunks[0],)) if values.ndim == 1 else values
    if values.ndim != 1:
        raise ValueError(f"{name} has {values.ndim} dimensions: give one column")
    parts = _delayed(name, values)
    if len(parts) != count:
        raise ValueError(
            f"X has {count} partitions and {name} has {len(parts)}: divide them alike (repartition, or rechunk)"
        )
    return parts


def _whole(name: str, given: Any, parts: list[Any], n: int) -> Any:
    """All of y, or of the weights, here."""
    if given is None:
        return None
    if not is_collection(given):
        values = np.asarray(given)
        if name == "y" and values.shape[:1] != (n,):
            raise ValueError(f"X has {n} rows and y has {len(values)}: one label per row is wanted")
        return values
    return np.concatenate(parts)


