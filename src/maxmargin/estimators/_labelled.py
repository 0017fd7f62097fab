"""What every fit begins with: samples, what they are labelled with, how much each counts. One rule for all machines.

    rows of weight ≤ 0      do not count: the fit is that of the other rows. (X keeps them, so that support_ names the
                            user's rows, and nothing is copied.) If none is left, an error.
    classes                 are those of the rows that count, sorted; a class whose rows all have weight ≤ 0 is absent
                            from classes_. Fewer than two: an error.
    class_weight            factors per class. "balanced" counts rows by their weights. A dict may leave classes out, which
                            have 1, or name classes that are absent, but not both: that is a misspelt name.
    targets of regression   finite numbers in one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin
from sklearn.utils.multiclass import check_classification_targets

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
        if isinstance(machine, OutlierMixin):
            X = machine._check_X(X)
            weight = row_weights(X.shape[0], sample_weight)
            return cls(X, np.zeros(X.shape[0]), weight, np.empty(0), np.empty(0))
        required(machine, y)
        if not isinstance(machine, ClassifierMixin):
            X, y = machine._check_X(X, y, y_numeric=True)
            weight = row_weights(X.shape[0], sample_weight)
            return cls(X, np.ascontiguousarray(y, np.float64), weight, np.empty(0), np.empty(0))
        X, y = machine._check_X(X, y)
        weight = row_weights(X.shape[0], sample_weight)
        classes, code = encoded_classes(np.asarray(y), weight)
        factors = class_weights(machine.class_weight, classes, code, weight) if balanced else np.ones(len(classes))
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


def row_weights(n: int, sample_weight: ArrayLike | None) -> FloatArray:
    """One float64 weight per row, 0 for those that do not count; ones when none are given."""
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
    if not (weight > 0).any():
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. Such rows do not count: weigh one positively "
            "(of no rows any nu is infeasible)"
        )
    return np.maximum(weight, 0.0)


def encoded_classes(y: NDArray[Any], weight: FloatArray) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes of the rows that count, sorted, and the number of each row's (−1 where it is absent)."""
    whole = y.ndim == 1 and y.dtype.kind in "biu"  # always classes: scikit-learn's look at them takes a small fit's time
    if not whole:
        check_classification_targets(y)
    classes, code = np.unique(y, return_inverse=True)
    code = code.ravel()
    if whole and 2 * len(classes) > len(y):
        check_classification_targets(y)  # warns that these may be numbers
    if len(classes) < 2:
        raise ValueError(
            f"The number of classes has to be greater than one; got {len(classes)} class: y is {classes.tolist()} throughout"
        )
    present = np.bincount(code, weights=weight > 0) > 0
    if present.sum() < 2:
        raise ValueError(
            f"Invalid input - all samples with positive weights belong to the same class, {classes[present].tolist()}: "
            "weigh one of another class positively (for NuSVC any specified nu is infeasible with one class)"
        )
    if not present.all():
        code = np.where(present, np.cumsum(present) - 1, -1)[code]
    return classes[present], code


def class_weights(
    class_weight: Any, classes: NDArray[Any], code: NDArray[np.intp], weight: FloatArray
) -> FloatArray:
    """One factor per class: 1, the user's dict, or 'balanced' by the weighted class frequencies."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight={class_weight!r} is unknown: give 'balanced', a dict or None")
        counts = weight > 0
        mass = np.bincount(code[counts], weights=weight[counts], minlength=len(classes))
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
