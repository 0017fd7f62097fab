"""Rows as a weighted set: zero-weight rows dropped, equal (row, label) pairs one variable, in an order of their own.

A repeated row and a row of weight 2 are then the same problem, to the last bit; so are two orders of the same rows.
The order is that of a hash of the values, which also mixes the rows well for the solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class DistinctRows:
    """`index[i]` is a row of X that stands for sample i, `weight[i]` the sum over its copies.

    `member` lists the rows of X that count, copies side by side; `owner[m]` is the sample of member m.
    Worked example: rows a b a c with weights 1 2 3 0 → samples (a, 4), (b, 2); member 0 2 1, owner 0 0 1.
    """

    index: IntArray
    weight: FloatArray
    member: IntArray
    owner: IntArray
    member_weight: FloatArray

    def reordered(self, order: IntArray) -> DistinctRows:
        """The same samples with sample order[i] at place i."""
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        owner = rank[self.owner]
        by_owner = np.argsort(owner, kind="stable")
        return DistinctRows(
            self.index[order], self.weight[order], self.member[by_owner], owner[by_owner], self.member_weight[by_owner]
        )

    def spread(self, alpha: FloatArray, n_rows: int, unit: FloatArray) -> FloatArray:
        """Each sample's alpha over its copies: the first copies up to their bound unit·weight, so that few are used.

        `alpha` and `unit` have one entry per sample, or some rows of them; the result one per row of X. A sample at its
        bound has all its copies at theirs, also where the weight of one is lost in the sum of all.
        """
        out = np.zeros((*alpha.shape[:-1], n_rows))
        alphas, units, shares = (np.atleast_2d(np.ascontiguousarray(a)) for a in (alpha, unit, out))
        _core.spread(alphas, units, shares, self.weight, self.member, self.owner, self.member_weight)
        return out


def row_hashes(X: Any, label: FloatArray, threads: int) -> Hashes:
    """Of (row, label) pairs: equal ones, all dense or all sparse, have equal hashes."""
    return np.asarray(_core.row_hashes(as_matrix(X), np.ascontiguousarray(label, np.float64), threads))


def distinct_rows(
    X: Any, label: FloatArray, weight: FloatArray, *, merge: bool, threads: int, hashes: Hashes | None = None
) -> DistinctRows:
    """The weighted set of (row, label) pairs; with merge=False every row of positive weight stands for itself.

    `hashes`: theirs, where they are known already.
    """
    if not merge:
        member = np.flatnonzero(weight > 0)
        return DistinctRows(member, weight[member], member, np.arange(len(member)), weight[member])
    matrix = as_matrix(X)
    hashes = row_hashes(X, label, threads) if hashes is None else hashes
    return grouped_rows(hashes, weight, lambda a, b: _core.rows_equal(matrix, a, b) & (label[a] == label[b]))


def grouped_rows(
    hashes: NDArray[Any], weight: FloatArray, same: Callable[[IntArray, IntArray], NDArray[np.bool_]]
) -> DistinctRows:
    """The weighted set of rows by their hashes; `same` tells of pairs of rows with equal hashes whether they are equal."""
    member = np.argsort(hashes, kind="stable")
    member = member[weight[member] > 0]
    same_hash = hashes[member[1:]] == hashes[member[:-1]]
    new = np.ones(len(member), bool)
    at = np.flatnonzero(same_hash)
    if len(at):
        a, b = member[at], member[at + 1]
        new[at + 1] = ~same(a, b)
    owner = np.cumsum(new) - 1
    member_weight = weight[member]
    total: FloatArray = np.bincount(owner, weights=member_weight).astype(np.float64) if len(at) else member_weight
    return DistinctRows(member[new], total, member, owner, member_weight)


def stacked(parts: Sequence[Any]) -> Any:
    """Rows below rows, dense or CSR."""
    if len(parts) == 1:
        return parts[0]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
