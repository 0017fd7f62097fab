"""Kernel functions: their names and parameters, gamma rules, and plain NumPy values for certificates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.problem.sums import HERE, Sums

FloatArray = NDArray[np.float64]

NATIVE = ("linear", "poly", "rbf", "sigmoid", "laplacian")
NAMES = (*NATIVE, "precomputed")


class TooLargeError(ValueError):
    """Numbers of a fit that float64 does not hold."""

    def __init__(self, kernel: str, bound: float) -> None:
        super().__init__(
            f"the numbers of this fit are too large for float64, with {kernel} and bounds C × weight up to {bound:.3g}. "
            "The dual coefficients or intercepts are not finite: "
            "scale the features (StandardScaler), or lower degree, gamma, C or the weights"
        )


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

    def __str__(self) -> str:
        used = {"poly": ("gamma", "coef0", "degree"), "sigmoid": ("gamma", "coef0"), "linear": (), "precomputed": ()}
        names = used.get(self.name, ()) if self.function else used.get(self.name, ("gamma",))
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"kernel={self.name!r}" + (f" ({values})" if values else "")

    def magnitude(self, X: Any, rows: NDArray[np.int64]) -> FloatArray | float:
        """m with |K(i, j)| ≤ m_i m_j for X[rows], by Cauchy and Schwarz: of each row, or one number for all."""
        if self.name in ("rbf", "laplacian", "sigmoid"):
            return 1.0
        with np.errstate(over="ignore"):
            norm = np.sqrt(_squared_norms(X, rows))
            if self.name == "linear":
                return norm
            return np.asarray((self.gamma * norm**2 + abs(self.coef0)) ** (0.5 * self.degree))

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


def resolve_gamma(
    gamma: Any, X: Any, rows: NDArray[np.int64], weight: FloatArray, over: Sums = HERE
) -> float:
    """γ as a number: 'auto' is 1 / d, 'scale' is 1 / (d · Var) over the entries of X[rows], each row `weight` times."""
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / float(X.shape[1])
    if not isinstance(gamma, str):
        return float(gamma)
    with np.errstate(over="ignore", invalid="ignore"):
        variance = _weighted_variance(X, rows, weight, over)
    return scale_of_variance(variance, X.shape[1], lambda: float(over.most(largest_value(X, rows))))


def scale_of_variance(variance: float, features: int, largest: Callable[[], float]) -> float:
    """gamma='scale' of entries with this variance; `largest` is asked for the largest |x| if it is no number."""
    if variance == 0:
        return 1.0
    value = 1.0 / (features * variance) if variance > 0 else np.nan
    if not np.finfo(np.float64).tiny <= value < np.inf:
        raise ValueError(
            f"gamma='scale' is no number for features up to {largest():.3g}, whose variance is "
            f"{variance:.3g}. The dual coefficients or intercepts are not finite: "
            "scale the features (StandardScaler), or give gamma as a number"
        )
    return value


def largest_value(X: Any, rows: NDArray[np.int64]) -> float:
    """The largest |x| in X[rows]."""
    pieces = (X[rows[i : i + 16384]] for i in range(0, len(rows), 16384))
    return max((float(np.abs(p.data if sp.issparse(p) else p).max(initial=0.0)) for p in pieces), default=0.0)


def _squared_norms(X: Any, rows: NDArray[np.int64], block: int = 16384) -> FloatArray:
    out = np.empty(len(rows))
    for i in range(0, len(rows), block):
        some = X[rows[i : i + block]].astype(np.float64)
        square = np.asarray(some.multiply(some).sum(axis=1)).ravel() if sp.issparse(some) else np.square(some).sum(axis=1)
        out[i : i + block] = square
    return out


def _weighted_variance(
    X: Any, rows: NDArray[np.int64], weight: FloatArray, over: Sums, block: int = 16384
) -> float:
    """Two passes over blocks of rows, so that X is not copied, in the order given, so that it alone decides the bits.

    Of differences from one entry, so that features that are all the same have the variance 0 wherever they are.
    """
    part = weight / (over.of(weight) * X.shape[1])  # first: sums of large weights and features may overflow
    blocks = [(part[i : i + block], rows[i : i + block]) for i in range(0, len(rows), block)]
    origin = float(over.most(X[rows[0], 0] if X.shape[1] and len(rows) else -np.inf))
    origin = origin if np.isfinite(origin) else 0.0

    def sums(power: int, shift: float) -> float:
        """Σ part (x − shift)^power over all entries."""
        return over.of(sum(power_sum(X[some], share, power, shift) for share, some in blocks))

    return sums(2, origin + sums(1, origin))


def power_sum(x: Any, share: FloatArray, power: int, shift: float) -> float:
    """Σ share_i (x_ij − shift)^power over all entries of a block of rows."""
    x = x.astype(np.float64)
    zeros: Any = 0.0
    if sp.issparse(x):
        zeros = (x.shape[1] - np.diff(x.indptr)) * np.float64(-shift) ** power  # as NumPy: Python's own raises OverflowError
        x.data = (x.data - shift) ** power
    else:
        x = (x - shift) ** power
    return float(np.sum(share * (np.asarray(x.sum(axis=1)).ravel() + zeros)))


def dense64(a: Any) -> FloatArray:
    return np.asarray(a.todense() if sp.issparse(a) else a, dtype=np.float64)
