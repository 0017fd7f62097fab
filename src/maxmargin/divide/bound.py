"""Theorem 1 of divide and conquer (DC-SVM paper): how far the clusters' solution can be from the optimum.

    0 ≤ f(level) − f(optimum) ≤ ½ Σ u_i u_j |K_ij|  over pairs in different clusters        u = upper, C in the paper

It compares with alpha that are feasible for the clusters' problems. Without an intercept that is all of them; with one,
those that meet the equality of every cluster, so that the optimum itself may be farther away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maxmargin.divide.clustering import Elsewhere, Partition, gram_matrix
from maxmargin.divide.model import Problem
from maxmargin.kernel_values import Values

IntArray = NDArray[np.int64]


def theorem_1(
    source: Values | Elsewhere, division: Partition, problems: Sequence[Problem], place: IntArray, population: IntArray
) -> float:
    """The bound, estimated on the sampled points and scaled up to the population that they came from.

    That is everything (Theorem 1), or the support vectors (Theorem 3). Coefficients of both signs (regression) double
    it. `place[p]` are the samples' places in problem p, −1 for those not in it.
    """
    sample, total = division.sample, 0.0
    gram = np.abs(gram_matrix(source, sample))
    label = division.label[sample]
    gram[label[:, None] == label[None, :]] = 0.0
    for where, problem in zip(place, problems):
        at = where[sample]
        mine = at >= 0
        if not mine.any():
            continue
        upper = problem.qp.upper[at[mine]]
        scale = np.count_nonzero(where[population] >= 0) / np.count_nonzero(mine)
        halves = problem.qp.n_variables // problem.qp.n
        total += 0.5 * halves * scale**2 * float(upper @ gram[np.ix_(mine, mine)] @ upper)
    return float(total)
