"""The user's samples as the core sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.runtime.comm import ALONE, Comm

# Kernel values from stored entries take as long as from dense rows at a share of nonzeros of about a half, and half as
# long at 0.3, for 64 to 784 features alike. A look at some hundred rows tells the share well enough.
_FEW = 0.35
_FEATURES = 64
_LOOKED_AT = 256
_LARGE = 1 << 22  # values of X from which on a pass takes longer than a moment
_SMALLER = 0.7    # part of the memory of X that a copy by its entries may take
_FAR = 10.0       # distance of the mean from 0, in units of the spread, that Newton's method begins to feel,
_FAR_IF_WIDE = 2.0  # and coordinate descent, for rows fewer than features. Raw images have about 1


def as_matrix(x: Any) -> _core.Matrix:
    """A `_core.Matrix` on the memory of `x` (validated: float32 or float64, dense C-ordered rows or CSR). No copy."""
    if sp.issparse(x):
        indices, indptr = x.indices, x.indptr
        if indices.dtype != indptr.dtype:  # SciPy may mix them; the wider one serves both
            wide = np.promote_types(indices.dtype, indptr.dtype)
            indices, indptr = indices.astype(wide, copy=False), indptr.astype(wide, copy=False)
        return _core.Matrix.csr(x.data, indices, indptr, x.shape[1])
    if not x.shape[0]:  # NumPy gives an array without values any strides
        return as_matrix(sp.csr_matrix(x))
    return _core.Matrix.dense(x)


def mostly_zero(x: Any, rows: NDArray[np.int64], threads: int) -> bool:
    """Whether kernels of these rows of x are computed faster from stored entries than from dense rows.

    By a look at some rows, spread over the list: it alone decides, not the other rows of x or their order.
    """
    if sp.issparse(x) or x.shape[1] < _FEATURES or len(rows) < _LOOKED_AT:
        return False
    some = np.ascontiguousarray(rows[:: len(rows) // _LOOKED_AT])
    return bool(_core.nonzeros(as_matrix(x), some, threads).mean() <= _FEW * x.shape[1])


def entries(x: Any, rows: NDArray[np.int64], most_bytes: float, threads: int) -> sp.csr_matrix | None:
    """The nonzero entries of these rows of a dense x, rows numbered as in x and the others empty.

    None if they would take more than `most_bytes`.
    """
    matrix = as_matrix(x)
    count = np.zeros(x.shape[0] + 1, np.int64)
    count[rows + 1] = _core.nonzeros(matrix, rows, threads)
    total = int(count.sum())
    indptr: NDArray[Any] = np.cumsum(count, dtype=np.int32 if total < 2**31 else np.int64)
    if indptr.nbytes + total * (indptr.itemsize + x.itemsize) > most_bytes:
        return None
    indices: NDArray[Any] = np.empty(total, indptr.dtype)
    data: NDArray[Any] = np.empty(total, x.dtype)
    _core.entries(matrix, rows, indptr, indices, data, threads)
    return sp.csr_matrix((data, indices, indptr), shape=x.shape, copy=False)


def compacted(x: Any, threads: int) -> Any:
    """`x` itself, or the same values in CSR where a pass over them then reads well under the memory of x.

    For methods that read x many times. A memory map stays what it is.
    """
    rows = np.arange(x.shape[0])
    if sp.issparse(x) or x.size < _LARGE or _mapped(x) or not mostly_zero(x, rows, threads):
        return x
    held = entries(x, rows, _SMALLER * x.nbytes, threads)
    return x if held is None else held


def far_centre(x: Any, comm: Comm = ALONE) -> NDArray[np.floating] | None:
    """The mean of dense samples that are far from 0 compared with their spread, else None. By a look at some rows.

    In the type of x, and 0 for columns that are not far themselves: x − centre is then exact wherever the two are within
    a factor of 2, and else rounded as x itself is. A memory map stays what it is. Of the samples of all ranks.
    """
    if sp.issparse(x):
        return None
    rows, mapped = comm.allreduce(np.array([len(x), _mapped(x)])).tolist()
    if mapped:
        return None
    some = x[:: max(1, rows // _LOOKED_AT)].astype(np.float64)
    if comm.size > 1:
        found: NDArray[np.floating] | None = comm.bcast(_centre(np.concatenate(comm.allgather(some)), rows, x.dtype))
        return found
    return _centre(some, rows, x.dtype)


def _centre(some: NDArray[np.float64], rows: int, dtype: Any) -> NDArray[np.floating] | None:
    """From `some` of so many rows."""
    far = _FAR if rows >= some.shape[1] else _FAR_IF_WIDE
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = some.mean(axis=0), some.std(axis=0)
        if not 0 < far * np.linalg.norm(spread) < np.linalg.norm(mean):
            return None
    centre: NDArray[np.floating] = np.where(np.abs(mean) > far * spread, mean, 0.0).astype(dtype)
    return centre


def _mapped(x: Any) -> bool:
    """Whether x is a view of a file."""
    while x is not None:
        if isinstance(x, np.memmap):
            return True
        x = getattr(x, "base", None)
    return False
