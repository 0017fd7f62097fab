"""Whether a model must be kept in float64, and what a model in float32 cannot take.

float32 is enough unless one of these would spoil it:

- distances. gamma·|x-z|² is blurred by about 1e-4 where gamma·|x|² is 1e6: for dense rows, whose differences are squared,
  and at 1e3 for sparse ones, which go through |x|² + |z|² - 2·x·z. A square or gamma itself may leave float32's range.
- coefficients. They are up to C·c·N, and f is a sum of them with both signs: at C·c = 1e4 it is blurred by about 1e-3.

In float64 the same limits lie beyond what a kernel value can show; where even squares overflow, the kernel is 0 unless
gamma is so small that nothing can be said, which is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.budget.model import FloatArray

BLURRED_DENSE, BLURRED_SPARSE = 1e6, 1e3  # gamma·|x|²
SMALL, LARGE = 1e-25, 1e25  # gamma, weights: their products with each other and with squares stay in float32's range
LARGEST_SQUARE = 1e30
LARGEST_COST = 1e4  # C·c
LARGEST_LATER = 1e10  # gamma·|x|² of rows that come later: kernel values are then blurred by a hundredth


def needs_double(x: Any, gamma: float, C: float, weight: FloatArray) -> bool:
    """Whether a model of these rows with these weights (of those that count) must be kept in float64."""
    square, heaviest = longest_square(x), float(weight.max())
    return not (
        gamma * square <= (BLURRED_SPARSE if sp.issparse(x) else BLURRED_DENSE)
        and square <= LARGEST_SQUARE
        and SMALL <= gamma <= LARGE
        and SMALL <= heaviest <= LARGE
        and C * heaviest <= LARGEST_COST
    )


def check_gamma(x: Any, gamma: float, given: Any) -> None:
    """Raise unless distances times gamma can be computed in float64."""
    if not (0 < gamma < np.inf) or (not np.isfinite(4 * longest_square(x)) and gamma < 1e-300):
        raise ValueError(
            f"gamma={given!r} is {gamma:g} for values of X as large as these, whose squares overflow: scale the features"
        )


def check_later(x: Any, gamma: float, weight: FloatArray) -> None:
    """Raise unless a model in float32 can take rows that were not looked at when it was made."""
    square = longest_square(x)
    if not (square <= LARGEST_SQUARE and gamma * square <= LARGEST_LATER):
        raise ValueError(
            f"X has values beyond the range of float32 (gamma·|x|² is {gamma * square:.3g}), which this model is kept in "
            "since its first chunk: scale the features"
        )
    if not weight.max() <= LARGE:
        raise ValueError(
            f"sample_weight is up to {weight.max():g}, beyond the range of float32, which this model is kept in since its "
            "first chunk: scale the weights"
        )


def longest_square(x: Any) -> float:
    """An upper bound on the largest |row|², without a copy of x."""
    if sp.issparse(x):
        largest, entries = (max(float(x.data.max()), -float(x.data.min())) if x.nnz else 0.0), np.diff(x.indptr).max()
    else:
        largest, entries = max(float(x.max()), -float(x.min())), x.shape[1]
    with np.errstate(over="ignore"):
        return float(entries * np.float64(largest) ** 2)
