"""From decisions between pairs of classes to one score per class."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def pair_votes(pair: FloatArray, n_classes: int) -> FloatArray:
    """Votes per class; pair (i, j) votes for i when its decision is positive."""
    votes = np.zeros((len(pair), n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        votes[:, i] += pair[:, k] > 0
        votes[:, j] += pair[:, k] <= 0
    return votes


def ovr_decision(pair: FloatArray, n_classes: int) -> FloatArray:
    """Votes, with the summed decisions squeezed into (−1/3, 1/3) to order classes of equal votes."""
    confidence = np.zeros((len(pair), n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        confidence[:, i] += pair[:, k]
        confidence[:, j] -= pair[:, k]
    return np.asarray(pair_votes(pair, n_classes) + confidence / (3 * (np.abs(confidence) + 1)))
