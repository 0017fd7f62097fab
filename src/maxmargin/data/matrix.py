"""The user's samples as the core sees them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _core


def as_matrix(x: Any) -> _core.Matrix:
    """A `_core.Matrix` on the memory of `x` (validated: float32 or float64, dense C-ordered rows or CSR). No copy."""
    if sp.issparse(x):
        indices, indptr = x.indices, x.indptr
        if indices.dtype != indptr.dtype:  # SciPy may mix them; the wider one serves both
            wide = np.promote_types(indices.dtype, indptr.dtype)
            indices, indptr = indices.astype(wide, copy=False), indptr.astype(wide, copy=False)
        return _core.Matrix.csr(x.data, indices, indptr, x.shape[1])
    return _core.Matrix.dense(x)
