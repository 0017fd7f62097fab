"""The evaluator's kernel sums: float64, in tiles of a few MB per thread; nothing of size n × |SV| is stored."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from benchmarks.base import Problem

TILE_ROWS, TILE_COLUMNS = 256, 512  # a tile of 1 MB of float64 per thread stays near the L2 cache
DENSE_WIDTH = 2000  # sparse rows up to this many features are unpacked per tile, so that the product is a GEMM


def expansion(problem: Problem, X: Any, vectors: Any, coef: Any, threads: int = 2) -> np.ndarray:
    """K(X, vectors) @ coef for one or several columns of coef (an array or CSR), in tiles.

    A linear kernel goes through w = vectorsᵀ·coef, which costs less than the tiles by a factor of |vectors|.
    """
    columns = coef if sp.issparse(coef) else np.asarray(coef, dtype=np.float64)
    columns = columns[:, None] if columns.ndim == 1 else columns
    n = X.shape[0]
    out = np.zeros((n, columns.shape[1]))
    if n == 0 or columns.shape[0] == 0:
        return out
    if problem.kernel == "linear":
        w = vectors.astype(np.float64).T @ columns
        return times(X, w.toarray() if sp.issparse(w) else w)
    starts = range(0, vectors.shape[0], TILE_COLUMNS)
    blocks = [(j, _embedded(problem, vectors[j : j + TILE_COLUMNS], left=False)) for j in starts]

    def rows(i: int) -> None:
        tile = _embedded(problem, X[i : i + TILE_ROWS], left=True)
        for j, block in blocks:
            out[i : i + TILE_ROWS] += _kernel(problem, tile, block) @ columns[j : j + TILE_COLUMNS]

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:  # our threads, not also those of the BLAS
        list(pool.map(rows, range(0, n, TILE_ROWS)))
    return out


def _embedded(problem: Problem, X: Any, left: bool) -> Any:
    """Rows in float64. For rbf with two more columns, so that one product gives the exponent −γ‖a − b‖²:

    (2γa, −γ‖a‖², 1)·(b, 1, −γ‖b‖²)
    """
    X = X.astype(np.float64)
    sparse = sp.issparse(X) and X.shape[1] > DENSE_WIDTH and problem.kernel != "laplacian"
    if sp.issparse(X) and not sparse:
        X = X.toarray()
    if problem.kernel != "rbf":
        return X
    squares = X.multiply(X).sum(axis=1) if sparse else np.einsum("ij,ij->i", X, X)
    norm = -problem.gamma * np.asarray(squares).reshape(-1, 1)
    one = np.ones_like(norm)
    columns = [2.0 * problem.gamma * X, norm, one] if left else [X, one, norm]
    return sp.hstack(columns, format="csr") if sparse else np.hstack(columns)


def _kernel(problem: Problem, A: Any, B: Any) -> np.ndarray:
    if problem.kernel == "laplacian":
        return np.exp(-problem.gamma * cdist(A, B, "cityblock"))
    product = A @ B.T
    K = product.toarray() if sp.issparse(product) else product
    if problem.kernel == "rbf":
        return np.exp(np.minimum(K, 0.0, out=K), out=K)
    if problem.kernel == "linear":
        return K
    K = problem.gamma * K + problem.coef0
    if problem.kernel == "poly":
        return K**problem.degree
    if problem.kernel == "sigmoid":
        return np.tanh(K)
    raise ValueError(f"kernel={problem.kernel!r} is unknown to the evaluator: add it to kernels._kernel")


def times(X: Any, w: np.ndarray) -> np.ndarray:
    """X·w (one or several w) with float64 products, a block of rows at a time (float32 X is not copied as a whole)."""
    return np.concatenate([_product(X[i : i + 65536], w) for i in range(0, X.shape[0], 65536)])


def _product(block: Any, w: np.ndarray) -> np.ndarray:
    return np.asarray((block.astype(np.float64) if block.dtype != np.float64 else block) @ w)
