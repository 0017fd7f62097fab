"""How a fold is judged: any scorer of scikit-learn's or callable(machine, X, y), the machine's own score by default.

Sample weights count in a score as in a fit, wherever the metric takes them.

Decision values of the rows that were left out are known before any machine is put together (selection/kernel.py). A scorer
wants a machine: it gets one that hands out these values for the rows it is judged by, and is put together only if somebody
asks it for anything else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring

FloatArray = NDArray[np.float64]

# Metrics of scikit-learn's whose largest value is 1. Losses, which are turned into scores by a minus, have 0.
_UP_TO_ONE = {
    "accuracy_score", "balanced_accuracy_score", "f1_score", "precision_score", "recall_score", "jaccard_score",
    "roc_auc_score", "average_precision_score", "matthews_corrcoef", "r2_score", "explained_variance_score",
    "top_k_accuracy_score", "d2_absolute_error_score", "d2_pinball_score", "d2_tweedie_score", "cohen_kappa_score",
    "fbeta_score",
}  # fmt: skip
_LOSSES = {
    "mean_squared_error", "mean_absolute_error", "root_mean_squared_error", "median_absolute_error", "max_error", "log_loss",
    "mean_squared_log_error", "root_mean_squared_log_error", "mean_absolute_percentage_error", "brier_score_loss",
    "hinge_loss", "zero_one_loss", "hamming_loss", "mean_pinball_loss",
}  # fmt: skip


def _accuracy(predicted: NDArray[Any], y: NDArray[Any], weight: FloatArray | None) -> float:
    return float(np.average(predicted == y, weights=weight))


def _r2(predicted: FloatArray, y: FloatArray, weight: FloatArray | None) -> float:
    """1 where nothing varies and nothing is missed, 0 where something is; NaN of fewer than two rows."""
    if len(y) < 2:
        return float("nan")
    w = np.ones(len(y)) if weight is None else weight
    missed = float(w @ np.square(y - predicted))
    spread = float(w @ np.square(y - np.average(y, weights=w)))
    if spread == 0:
        return 1.0 if missed == 0 else 0.0
    return 1 - missed / spread


# What machines score themselves by, without scikit-learn's look at the labels: it takes longer than many a fold.
_PLAIN: dict[Any, Callable[..., float]] = {ClassifierMixin.score: _accuracy, RegressorMixin.score: _r2}


class Scoring:
    """A scorer, whether it takes weights, and the best score that it can give (None: not known)."""

    def __init__(self, machine: Any, scoring: Any) -> None:
        if isinstance(scoring, (list, tuple, set, dict)):
            raise ValueError(f"scoring={scoring!r} must be one scorer: the name of one, or a callable(machine, X, y)")
        self.own = scoring is None
        if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
            raise ValueError(f"scoring={scoring!r} must be the name of a scorer, a callable(machine, X, y), or None")
        self.scorer: Callable[..., Any] = check_scoring(machine, scoring=scoring)
        metric = getattr(self.scorer, "_score_func", None)
        self.weighs = self.own or (metric is not None and "sample_weight" in inspect.signature(metric).parameters)
        name, sign = getattr(metric, "__name__", ""), getattr(self.scorer, "_sign", 1)
        self.ceiling: float | None = None
        if self.own or (name in _UP_TO_ONE and sign > 0):
            self.ceiling = 1.0
        elif name in _LOSSES and sign < 0:
            self.ceiling = 0.0

    def __call__(self, machine: Any, X: Any, y: Any, weight: FloatArray | None) -> float:
        """The score of a fitted machine; `weight` is None where no weights were given."""
        if self.own and (plain := _PLAIN.get(getattr(type(machine), "score", None))) is not None:
            return plain(np.asarray(machine.predict(X)), y, weight)
        if weight is None or not self.weighs:
            value = self.scorer(machine, X, y)
        else:
            value = self.scorer(machine, X, y, sample_weight=weight)
        if not isinstance(value, (int, float, np.number)):
            raise ValueError(f"scoring must return a number, got {value!r} ({type(value).__name__})")
        return float(value)


class Known:
    """In front of a machine's class: decision values of some rows are known, the rest is made when it is wanted."""

    def _decision_values(self, X: Any, intercept: Any, of: Callable[[FloatArray], FloatArray] | None = None) -> FloatArray:
        if X is not self._known_rows:
            return np.asarray(self._complete()._decision_values(X, self.intercept_, of))
        values: FloatArray = self._known_values
        return values if of is None else of(values)

    def _complete(self) -> Any:
        """The machine itself: its attributes become this one's. Threads that ask at once may each make it, and the same."""
        make = vars(self).get("_known_machine")
        if make is not None:
            self.__dict__.update(vars(make()))
            self.__dict__.pop("_known_machine", None)  # last: nobody may take it for complete before
        return super()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._complete()
        return object.__getattribute__(self, name)  # not this method again, also when another thread has completed it


@cache
def _known_class(machine: type) -> type:
    own: dict[str, Any] = {"__init__": machine.__dict__["__init__"], "__module__": machine.__module__}
    return type(machine.__name__, (Known, machine), own)


def known(machine: Any, X: Any, values: FloatArray, make: Callable[[], Any], **attributes: Any) -> Any:
    """A machine with the parameters of `machine`, which is not fitted; its decision values for X (this very object) are
    `values`.

    `make()` returns the fitted machine, and is called if more of it is wanted; `attributes` are fitted ones (classes_).
    """
    kind: Any = type(machine)
    out: Any = object.__new__(_known_class(kind))
    out.__dict__.update(
        {**vars(machine), "status_": "converged", "intercept_": np.empty(0), **attributes},
        n_features_in_=X.shape[1], _known_rows=X, _known_values=values, _known_machine=make,
    )  # fmt: skip
    return out
