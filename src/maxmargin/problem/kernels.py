"""Kernel functions: their names and parameters, gamma rules, and plain NumPy values for certificates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

NATIVE = ("linear", "poly", "rbf", "sigmoid", "laplacian")
NAMES = (*NATIVE, "precomputed")


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters.

    linear <x,z>; poly (γ<x,z> + coef0)^degree; rbf exp(−γ‖x−z‖²); sigmoid tanh(γ<x,z> + coef0);
    laplacian exp(−γ‖x−z‖₁); precomputed: the samples are the Gram matrix; or `function(A, B) -> len(A) × len(B)`.
    """

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3
    function: Callable[[Any, Any], Any] | None = None

    @property
    def native(self) -> bool:
        """Whether the core evaluates it from samples; otherwise its rows are handed in."""
        return self.name in NATIVE

    def __call__(self, a: Any, b: Any) -> FloatArray:
        """Values in float64 NumPy, slow and obvious; the reference for certificates and tests."""
        if self.name == "precomputed":
            raise ValueError("a precomputed kernel has no formula: index the Gram matrix instead")
        if self.function is not None:
            return checked_block(self.function(a, b), (a.shape[0], b.shape[0]))
        if self.name == "laplacian":
            a, b = dense64(a), dense64(b)
            return np.exp(-self.gamma * np.array([np.abs(b - row).sum(axis=1) for row in a]).reshape(len(a), len(b)))
        if self.name == "rbf" and not sp.issparse(a):
            # differences, not ‖a‖² + ‖b‖² − 2ab: no cancellation
            a, b = dense64(a), dense64(b)
            return np.exp(-self.gamma * np.array([((b - row) ** 2).sum(axis=1) for row in a]).reshape(len(a), len(b)))
        a, b = a.astype(np.float64), b.astype(np.float64)
        product = a @ b.T
        dot = np.asarray(product.todense() if sp.issparse(product) else product, dtype=np.float64)
        if self.name == "linear":
            return np.asarray(dot, dtype=np.float64)
        if self.name == "poly":
            return np.asarray((self.gamma * dot + self.coef0) ** self.degree, dtype=np.float64)
        if self.name == "sigmoid":
            return np.tanh(self.gamma * dot + self.coef0)
        norms = [np.asarray(m.multiply(m).sum(axis=1)).ravel() for m in (a, b)]
        squared = np.maximum(norms[0][:, None] + norms[1][None, :] - 2 * dot, 0)
        return np.asarray(np.exp(-self.gamma * squared), dtype=np.float64)


def checked_block(block: Any, shape: tuple[int, int]) -> FloatArray:
    """A user's kernel block as float64; a wrong shape or a non-finite entry is named."""
    values = np.asarray(block.todense() if sp.issparse(block) else block, dtype=np.float64)
    if values.shape != shape:
        raise ValueError(
            f"the kernel callable returned shape {values.shape}, expected {shape}: "
            "it must return one row per row of its first argument and one column per row of its second"
        )
    if not np.isfinite(values).all():
        raise ValueError("the kernel callable returned NaN or infinity")
    return values


def weighted_sums(block: NDArray[Any], coef: FloatArray) -> FloatArray:
    """Σ_i coef[c, i] block[j, i] as (rows, outputs); each row's value has the same bits whatever the other rows are.

    A matrix product has not: BLAS adds in another order for one row than for many.
    """
    out = np.empty((len(block), len(coef)))
    step = max(1, 2**20 // max(1, block.shape[1]))  # 8 MB of products at a time
    for i in range(0, len(block), step):
        for c, weight in enumerate(coef):
            out[i : i + step, c] = np.multiply(block[i : i + step], weight, dtype=np.float64, order="C").sum(axis=1)
    return out


def resolve_gamma(gamma: Any, X: Any, rows: NDArray[np.int64], weight: FloatArray) -> float:
    """γ as a number: 'auto' is 1 / d, 'scale' is 1 / (d · Var) over the entries of X[rows], each row `weight` times."""
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / float(X.shape[1])
    if not isinstance(gamma, str):
        return float(gamma)
    variance = _weighted_variance(X, rows, weight)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _weighted_variance(X: Any, rows: NDArray[np.int64], weight: FloatArray, block: int = 16384) -> float:
    """Two passes over blocks of rows, so that X is not copied, in the order given, so that it alone decides the bits."""
    total = float(weight.sum() * X.shape[1])
    if sp.issparse(X):
        first = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()[rows]
        second = np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()[rows]
        mean = float(weight @ first) / total
        return max(0.0, float(weight @ second) / total - mean * mean)
    blocks = [slice(i, i + block) for i in range(0, len(rows), block)]
    mean = float(sum(weight[s] @ X[rows[s]].sum(axis=1, dtype=np.float64) for s in blocks)) / total
    spread = sum(weight[s] @ np.square(X[rows[s]] - mean, dtype=np.float64).sum(axis=1) for s in blocks)
    return float(spread) / total


def dense64(a: Any) -> FloatArray:
    return np.asarray(a.todense() if sp.issparse(a) else a, dtype=np.float64)
