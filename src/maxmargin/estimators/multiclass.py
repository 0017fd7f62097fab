"""From decisions between pairs of classes to one score per class."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
FEW_CLASSES = 32  # whose votes are counted by one product with a matrix of pairs × classes: 127 kB


def pair_votes(pair: FloatArray, n_classes: int, *, zero_is_first: bool = False) -> FloatArray:
    """Votes per class; pair (i, j) votes for i when its decision is positive.

    A decision of exactly 0 is for j when LIBSVM predicts, and for i in scikit-learn's scores per class: so it is here. Not
    so in divide and conquer, where it is no accident (a cluster without samples of i and j) and scores agree with predict.
    """
    first = pair >= 0 if zero_is_first else pair > 0
    if n_classes <= FEW_CLASSES:  # whole numbers: the same in any order
        change, none_first = _vote_matrix(n_classes)
        return np.asarray(first.astype(np.float64) @ change + none_first)
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
    for s, pairs in enumerate(_diagonals(n_classes), 1):
        out[:-s] += to_first.T[pairs]
        out[s:] += to_second.T[pairs]
    return np.ascontiguousarray(out.T)


@lru_cache(maxsize=8)
def pairs_of_classes(n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the second class of every pair, in the order of decisions."""
    i, j = np.triu_indices(n_classes, 1)
    i.flags.writeable = j.flags.writeable = False  # one copy for all
    return i, j


@lru_cache(maxsize=8)
def _diagonals(n_classes: int) -> list[NDArray[np.int64]]:
    """The numbers of the pairs (i, i + s), for each s from 1 on."""
    place = np.zeros((n_classes, n_classes), np.int64)
    place[pairs_of_classes(n_classes)] = np.arange(n_classes * (n_classes - 1) // 2)
    return [np.ascontiguousarray(place.diagonal(s)) for s in range(1, n_classes)]


@lru_cache(maxsize=8)
def _vote_matrix(n_classes: int) -> tuple[FloatArray, FloatArray]:
    """(what a pair's vote for its first class changes, pairs × classes; votes if all pairs vote for their second)."""
    i, j = pairs_of_classes(n_classes)
    every = np.eye(n_classes)
    return every[i] - every[j], every[j].sum(axis=0)
