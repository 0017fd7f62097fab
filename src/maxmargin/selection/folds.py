"""Training and test rows of each fold: any splitter of scikit-learn's, its default for a number, or a list of splits.

Rows of weight 0 do not count: a splitter never sees them, and of splits that are listed they are left out.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from maxmargin.estimators._labelled import Labelled

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Fold:
    """Rows of X that a machine is fitted to, and those that it is judged by."""

    train: IntArray
    test: IntArray


def folds_of(cv: Any, data: Labelled, y: Any, groups: Any = None) -> list[Fold]:
    """The folds of `cv` for these samples; y are the labels as they came."""
    n = data.X.shape[0]
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape[:1] != (n,):
            raise ValueError(f"groups has {len(np.atleast_1d(groups))} entries for {n} rows of X: give one per row")
    counts = data.weight > 0
    try:
        splitter = check_cv(cv, y, classifier=len(data.classes) > 0)
    except ValueError as error:
        raise ValueError(f"cv={cv!r}: {error}") from None
    if hasattr(cv, "split") or not hasattr(cv, "__iter__"):
        rows = np.flatnonzero(counts)
        y = np.asarray(y)
        some, labels, among = (data.X, y, groups) if len(rows) == n else (
            data.X[rows], y[rows], None if groups is None else groups[rows]
        )  # fmt: skip
        if groups is None and _wants_groups(splitter):
            raise ValueError(f"cv={cv!r} splits by groups: give fit(..., groups=...), one entry per row")
        splits = [(rows[train], rows[test]) for train, test in splitter.split(*indexable(some, labels, among))]
    else:
        splits = [(_rows(train, n), _rows(test, n)) for train, test in splitter.split()]
        splits = [(train[counts[train]], test[counts[test]]) for train, test in splits]
    if not splits:
        raise ValueError(f"cv={cv!r} makes no fold: give a number of folds from 2 on, a splitter, or a list of splits")
    for k, (train, test) in enumerate(splits):
        if not len(train) or not len(test):
            raise ValueError(f"cv={cv!r}: fold {k} has {len(train)} rows to fit and {len(test)} to judge by")
    return [Fold(np.asarray(train, np.int64), np.asarray(test, np.int64)) for train, test in splits]


def _rows(given: Any, n: int) -> IntArray:
    """Numbers of rows from numbers or a mask."""
    rows = np.asarray(given)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows
    if rows.ndim != 1 or (len(rows) and (rows.min() < 0 or rows.max() >= n)):
        raise ValueError(f"cv names rows that X, with {n}, does not have")
    return rows.astype(np.int64)


def _wants_groups(splitter: Any) -> bool:
    """Whether a splitter cannot do without groups (its split has them as an argument that it uses)."""
    if "Group" not in type(splitter).__name__:
        return False
    return "groups" in inspect.signature(splitter.split).parameters
