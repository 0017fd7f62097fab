"""Rows of samples that travel between ranks: to all of them, or each to the one where its hash belongs.

A rank gets the samples of a range of hashes, so that equal rows meet on one rank and become one sample there, all ranks have
about as many, and the order of all samples, by rank and then by hash, does not depend on how many ranks there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.rows import Hashes
from maxmargin.runtime import Comm

IntArray = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def home_rank(hashes: Hashes, ranks: int) -> IntArray:
    """Where each row belongs, by the upper half of its hash: 0 … ranks − 1."""
    return np.asarray((hashes >> np.uint64(32)) * np.uint64(ranks) >> np.uint64(32)).astype(np.int64)


def rows_to_all(mine: Any, counts: IntArray, comm: Comm) -> Any:
    """The rows of all ranks below one another; `counts` says how many each has."""
    if not sp.issparse(mine):
        return np.concatenate(comm.allgather(mine, counts))
    return _from_bytes(comm.allgather(_as_bytes(mine)), counts, mine.shape[1], mine.dtype)


def rows_to_homes(X: Any, home: list[IntArray], counts: IntArray, comm: Comm) -> Any:
    """Rows home[r] of X go to rank r; what has come here, counts[r] rows of rank r, in the order of the ranks."""
    if not sp.issparse(X):
        return np.concatenate(comm.alltoall([X[rows] for rows in home]))
    return _from_bytes(comm.alltoall([_as_bytes(X[rows]) for rows in home]), counts, X.shape[1], X.dtype)


def _index_type(features: int) -> Any:
    """Of column numbers that are sent: the same on all ranks, whatever SciPy chose for the rows of one."""
    return np.int32 if features < 2**31 else np.int64


def _as_bytes(rows: Any) -> Bytes:
    """A CSR matrix as one array."""
    count = np.diff(rows.indptr).astype(np.int64)
    indices = np.ascontiguousarray(rows.indices, _index_type(rows.shape[1]))
    return np.concatenate([part.view(np.uint8) for part in (count, indices, np.ascontiguousarray(rows.data))])


def _from_bytes(sent: list[Bytes], rows: IntArray, features: int, dtype: Any) -> sp.csr_matrix:
    """CSR matrices below one another, of so many rows each."""
    index, value = np.dtype(_index_type(features)), np.dtype(dtype)
    counts, indices, data = [], [], []
    for part, number in zip(sent, rows.tolist()):
        counts.append(np.frombuffer(part[: 8 * number].tobytes(), np.int64))
        end = 8 * number + index.itemsize * int(counts[-1].sum())
        indices.append(np.frombuffer(part[8 * number : end].tobytes(), index))
        data.append(np.frombuffer(part[end:].tobytes(), value))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return sp.csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=(len(indptr) - 1, features))
