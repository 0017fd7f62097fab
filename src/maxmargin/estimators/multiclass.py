"""From decisions between pairs of classes to one score per class."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def pair_votes(pair: FloatArray, n_classes: int, *, zero_is_first: bool = False) -> FloatArray:
    """Votes per class; pair (i, j) votes for i when its decision is positive.

    A decision of exactly 0 is for j when LIBSVM predicts, and for i in scikit-learn's scores per class: so it is here. Not
    so in divide and conquer, where it is no accident (a cluster without samples of i and j) and scores agree with predict.
    """
    votes = np.zeros((len(pair), n_classes))
    first = pair >= 0 if zero_is_first else pair > 0
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        votes[:, i] += first[:, k]
        votes[:, j] += ~first[:, k]
    return votes


def ovr_decision(pair: FloatArray, n_classes: int, *, zero_is_first: bool = True) -> FloatArray:
    """Votes, with the summed decisions squeezed into (−1/3, 1/3) to order classes of equal votes."""
    confidence = np.zeros((len(pair), n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        confidence[:, i] += pair[:, k]
        confidence[:, j] -= pair[:, k]
    return np.asarray(pair_votes(pair, n_classes, zero_is_first=zero_is_first) + confidence / (3 * (np.abs(confidence) + 1)))
