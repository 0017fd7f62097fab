"""From decisions between pairs of classes to one score per class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def pair_votes(pair: FloatArray, n_classes: int, *, zero_is_first: bool = False) -> FloatArray:
    """Votes per class; pair (i, j) votes for i when its decision is positive.

    A decision of exactly 0 is for j when LIBSVM predicts, and for i in scikit-learn's scores per class: so it is here. Not
    so in divide and conquer, where it is no accident (a cluster without samples of i and j) and scores agree with predict.
    """
    first = pair >= 0 if zero_is_first else pair > 0
    return _by_class(first.astype(np.float64), (~first).astype(np.float64), n_classes)


def ovr_decision(pair: FloatArray, n_classes: int, *, zero_is_first: bool = True) -> FloatArray:
    """Votes, with the summed decisions squeezed into (−1/3, 1/3) to order classes of equal votes."""
    confidence = _by_class(pair, -pair, n_classes)
    return np.asarray(pair_votes(pair, n_classes, zero_is_first=zero_is_first) + confidence / (3 * (np.abs(confidence) + 1)))


def _by_class(to_first: FloatArray, to_second: FloatArray, n_classes: int) -> FloatArray:
    """Sums over the pairs of each class: what they give to their first class, and to their second.

    Pairs (i, i + s) at once for each s, so that the order of a sum does not depend on the number of rows.
    """
    out = np.zeros((n_classes, len(to_first)))
    place = np.zeros((n_classes, n_classes), np.int64)
    place[np.triu_indices(n_classes, 1)] = np.arange(to_first.shape[1])
    for s in range(1, n_classes):
        pairs = place.diagonal(s)
        out[:-s] += to_first.T[pairs]
        out[s:] += to_second.T[pairs]
    return np.ascontiguousarray(out.T)
