"""What every fit begins with: samples, what they are labelled with, how much each counts. One rule for all machines.

    rows of weight ≤ 0      do not count: the fit is that of the other rows. (X keeps them, so that support_ names the
                            user's rows, and nothing is copied.) If none is left, an error.
    classes                 are those of the rows that count, sorted; a class whose rows all have weight ≤ 0 is absent
                            from classes_. Fewer than two: an error.
    class_weight            factors per class. "balanced" counts rows by their weights. A dict may leave classes out, which
                            have 1, or name classes that are absent, but not both: that is a misspelt name.
    targets of regression   finite numbers in one column.

Where several ranks share a fit, each has some of the rows; all of this is then said of the rows of all ranks together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin
from sklearn.utils.multiclass import check_classification_targets

from maxmargin.runtime import Comm, together
from maxmargin.runtime.comm import ALONE
from maxmargin.runtime.together import known_to_all

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Labelled:
    """Samples of one fit. For outlier detection `target` is 0, for classification the number of the class.

    `target` is −1 for a row whose class is absent, which has weight 0.
    """

    X: Any
    target: FloatArray
    weight: FloatArray  # ≥ 0, one per row
    classes: NDArray[Any]  # empty unless a classifier's
    factors: FloatArray  # one per class

    @classmethod
    def of(cls, machine: Any, X: Any, y: Any, sample_weight: ArrayLike | None, *, balanced: bool = True) -> Labelled:
        """Validated by the machine (which learns its n_features_in_), and judged by the rules above.

        With balanced=False the machine applies `class_weight` itself.
        """
        comm: Comm = machine._comm
        if isinstance(machine, OutlierMixin):
            X = machine._check_X(X)
            weight = row_weights(X.shape[0], sample_weight, comm)
            return cls(X, np.zeros(X.shape[0]), weight, np.empty(0), np.empty(0))
        with together(comm):
            required(machine, y)
        if not isinstance(machine, ClassifierMixin):
            X, y = machine._check_X(X, y, y_numeric=True)
            weight = row_weights(X.shape[0], sample_weight, comm)
            return cls(X, np.ascontiguousarray(y, np.float64), weight, np.empty(0), np.empty(0))
        X, y = machine._check_X(X, y)
        weight = row_weights(X.shape[0], sample_weight, comm)
        classes, code = encoded_classes(np.asarray(y), weight, comm)
        factors = np.ones(len(classes))
        if balanced:
            factors = class_weights(machine.class_weight, classes, code, weight, comm)
        return cls(X, code.astype(np.float64), weight, classes, factors)

    @property
    def code(self) -> NDArray[np.intp]:
        """The number of each row's class."""
        return self.target.astype(np.intp)

    @property
    def effective(self) -> FloatArray:
        """Weights times the factors of the classes."""
        return np.asarray(self.weight * self.factors[self.code]) if len(self.classes) else self.weight


def required(machine: BaseEstimator, y: Any) -> None:
    """An error in scikit-learn's words unless there are labels."""
    if y is None:
        raise ValueError(f"{type(machine).__name__} requires y to be passed, but the target y is None")


def row_weights(n: int, sample_weight: ArrayLike | None, comm: Comm = ALONE) -> FloatArray:
    """One float64 weight per row, 0 for those that do not count; ones when none are given."""
    if sample_weight is None and n and comm.size == 1:
        return np.ones(n)
    with together(comm):
        weight = _given_weights(n, sample_weight)
    if not comm.allreduce(np.array((weight > 0).any(), np.int64), "max"):
        raise known_to_all(ValueError(
            "Invalid input - all samples have zero or negative weights. Such rows do not count: weigh one positively "
            "(of no rows any nu is infeasible)"
        ))
    return np.maximum(weight, 0.0)


def _given_weights(n: int, sample_weight: ArrayLike | None) -> FloatArray:
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight and X have incompatible shapes: sample_weight.shape == {weight.shape}, expected ({n},): "
            "one weight per row of X"
        )
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity: give finite weights, or drop those rows")
    return weight


def whole_numbers(y: NDArray[Any]) -> bool:
    return y.dtype.kind in "biu" or (y.dtype.kind == "f" and bool((np.isfinite(y) & (np.floor(y) == y)).all()))


def encoded_classes(y: NDArray[Any], weight: FloatArray, comm: Comm = ALONE) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes of the rows that count, sorted, and the number of each row's (−1 where it is absent)."""
    whole = y.ndim == 1 and whole_numbers(y)  # always classes: scikit-learn's look at them takes a small fit's time
    with together(comm):
        if not whole and len(y):
            check_classification_targets(y)
        classes, code = _numbered(y, whole)
        if whole and 2 * len(classes) > len(y) and comm.size == 1:
            check_classification_targets(y)  # warns that these may be numbers
    if comm.size > 1:
        classes, code = _of_all_ranks(classes, code, comm)
    if len(classes) < 2:
        raise known_to_all(ValueError(
            f"The number of classes has to be greater than one; got {len(classes)} class: y is {classes.tolist()} throughout"
        ))
    present = comm.allreduce(np.bincount(code[weight > 0], minlength=len(classes))) > 0
    count = np.count_nonzero(present)
    if count < 2:
        raise known_to_all(ValueError(
            f"Invalid input - all samples with positive weights belong to the same class, {classes[present].tolist()}: "
            "weigh one of another class positively (for NuSVC any specified nu is infeasible with one class)"
        ))
    if count < len(present):
        code = np.where(present, np.cumsum(present) - 1, -1)[code]
    return classes[present], code


def _numbered(y: NDArray[Any], whole: bool) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The labels there are, sorted, and the number of each row's; two whole numbers without sorting all rows."""
    if whole and len(y):
        low, high = y.min(), y.max()
        second = y == high
        if low != high and (second | (y == low)).all():
            return np.array([low, high], y.dtype), second.astype(np.intp)
    classes, code = np.unique(y, return_inverse=True)
    return classes, code.ravel()


def _of_all_ranks(classes: NDArray[Any], code: NDArray[np.intp], comm: Comm) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes of all ranks, and this rank's rows by their numbers."""
    each = [one for one in comm.share(classes) if len(one)]
    kinds = {"a number" if one.dtype.kind in "biuf" else "no number" for one in each}
    if len(kinds) > 1:
        raise known_to_all(ValueError(
            "y has labels that are numbers on some ranks and others on other ranks: give all ranks labels of one kind"
        ))
    union = np.unique(np.concatenate(each)) if each else classes
    return union, np.searchsorted(union, classes)[code] if len(code) else code


def class_weights(
    class_weight: Any, classes: NDArray[Any], code: NDArray[np.intp], weight: FloatArray, comm: Comm = ALONE
) -> FloatArray:
    """One factor per class: 1, the user's dict, or 'balanced' by the weighted class frequencies."""
    mass = np.empty(0)
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = weight > 0
        mine = np.bincount(code[counts], weights=weight[counts], minlength=len(classes))
        mass = comm.allreduce(mine.astype(np.float64))
    with together(comm):
        return _factors(class_weight, classes, mass)


def _factors(class_weight: Any, classes: NDArray[Any], mass: FloatArray) -> FloatArray:
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight={class_weight!r} is unknown: give 'balanced', a dict or None")
        present = mass > 0  # not all are in one chunk of a stream
        return np.where(present, mass.sum() / (present.sum() * np.where(present, mass, 1.0)), 1.0)
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight={class_weight!r} must be a dict {{class: weight}}, 'balanced' or None")
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in set(known)]
    without = [label for label in known if label not in class_weight]
    if unknown and without:
        raise ValueError(
            f"The classes, {without}, are not in class_weight, which names classes that are not in y: {unknown}; "
            f"y has {known}"
        )
    factors = np.array([float(class_weight.get(label, 1.0)) for label in known])
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError(f"class_weight={class_weight!r}: every weight must be a positive number")
    return factors
