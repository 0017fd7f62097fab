"""Dense samples that are mostly zeros, kept as CSR for the time of a linear fit: a pass then reads a fraction of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix, mostly_zero

LARGE = 1 << 22  # values of X from which on a pass takes longer than a moment
SMALLER = 0.7    # part of the memory of X that the copy may take


def compacted(x: Any, threads: int) -> Any:
    """`x` itself, or the same values in CSR where that takes well under its memory. A memory map stays what it is."""
    if sp.issparse(x) or x.size < LARGE or _mapped(x):
        return x
    rows = np.arange(x.shape[0])
    if not mostly_zero(x, rows, threads):
        return x
    matrix = as_matrix(x)
    count = _core.nonzeros(matrix, rows, threads)
    total = int(count.sum())
    if total * (x.itemsize + 4) > SMALLER * x.size * x.itemsize or total >= 1 << 31:
        return x
    indptr = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(count, out=indptr[1:])
    indices, data = np.empty(total, np.int32), np.empty(total, x.dtype)
    _core.entries(matrix, rows, indptr, indices, data, threads)
    return sp.csr_matrix((data, indices, indptr), shape=x.shape, copy=False)


def _mapped(x: Any) -> bool:
    """Whether x is a view of a file."""
    while x is not None:
        if isinstance(x, np.memmap):
            return True
        x = getattr(x, "base", None)
    return False
