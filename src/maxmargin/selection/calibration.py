"""Probabilities of the classes, from decision values of rows that the machine has not seen.

For each pair of classes a map from decision values to P(i | i or j): Platt's sigmoid (maximum likelihood with his targets)
or an isotonic one; of several classes the probabilities that fit the pairs' best (estimators/_probability.py). The folds
begin from the solution on all rows, and the machine on all rows from the same (decisions.py).

The class that is predicted is always the most probable one:

    calibrated(...)              predicts the most probable class
    SVCCV(probabilities=True)    predicts as an SVC does; where the most probable class is another one, the probabilities are
                                 moved to the nearest ones (in squared distance) for which it is not: `in_favour`
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators._base import check_choice, check_number
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._probability import ROWS, SURE, coupled, sigmoid
from maxmargin.estimators.svc import SVC, NuSVC
from maxmargin.selection.decisions import Unseen, unseen, unseen_by_fits
from maxmargin.selection.fits import fitted_from
from maxmargin.selection.folds import folds_of
from maxmargin.selection.kernel import can_share
from maxmargin.selection.search import Task

FloatArray = NDArray[np.float64]
METHODS = ("sigmoid", "isotonic")
# Chosen by log losses on sets of some thousand rows: with 0.1, one of nine was worse than with folds solved to tol.
FOLD_TOL = 0.03


class Maps:
    """From decision values of pairs to probabilities of classes."""

    def __init__(self, method: str, values: FloatArray, data: Labelled) -> None:
        code, n_classes = data.code, len(data.classes)
        self.n_classes = n_classes
        self.maps: list[Any] = []
        for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
            rows = np.flatnonzero(((code == i) | (code == j)) & (data.weight > 0) & np.isfinite(values[:, k]))
            positive, weight = code[rows] == (j if n_classes == 2 else i), data.weight[rows]
            if method == "sigmoid":
                self.maps.append(sigmoid(values[rows, k], positive, weight))
            else:
                from sklearn.isotonic import IsotonicRegression  # with scipy.stats, which takes a second

                map_ = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
                self.maps.append(map_.fit(values[rows, k], positive.astype(np.float64), sample_weight=weight))

    def __call__(self, decisions: FloatArray) -> FloatArray:
        columns = [
            expit(-(value * map_[0] + map_[1])) if isinstance(map_, tuple) else map_.predict(value)
            for value, map_ in zip(decisions.T, self.maps)
        ]
        pair = np.clip(np.column_stack(columns), SURE, 1 - SURE)
        if self.n_classes == 2:
            return np.column_stack([1 - pair[:, 0], pair[:, 0]])
        pieces = [coupled(pair[i : i + ROWS], self.n_classes) for i in range(0, len(pair), ROWS)]
        return np.concatenate([*pieces, np.empty((0, self.n_classes))])


def in_favour(p: FloatArray, winner: NDArray[Any]) -> FloatArray:
    """The nearest probabilities of which none is larger than the winner's; the winner's is larger by a rounding.

    The winner and those above it share what they have together: the classes above the common level, the largest first.
    """
    out, every = p.copy(), np.arange(len(p))
    wrong = np.flatnonzero(np.argmax(p, axis=1) != winner)
    for row in wrong:  # few: where a sigmoid's middle is not at a decision value of 0
        own, order = winner[row], np.argsort(-p[row], kind="stable")
        pool = [own]
        for c in order:
            if c == own or p[row, c] <= p[row, pool].mean():
                continue
            pool.append(int(c))
        out[row, pool] = p[row, pool].mean()
    while True:
        best = np.max(np.where(np.eye(p.shape[1], dtype=bool)[winner], -np.inf, out), axis=1)
        behind = out[every, winner] <= best
        if not behind.any():
            return np.asarray(out)
        out[every[behind], winner[behind]] = np.nextafter(best[behind], 2.0)


def unseen_values(machine: Any, task: Task, loose: float = FOLD_TOL) -> Unseen:
    """By pair of classes, from the solution on all rows where that can be (folds to `loose`), else fold by fold to tol."""
    return unseen(machine, task, loose) if can_share(machine, task) else unseen_by_fits(machine, task)


class Calibrated(ClassifierMixin, BaseEstimator):
    """A kernel classifier with probabilities; see `calibrated`.

    Parameters
    ----------
    estimator : SVC or NuSVC
    method : {"sigmoid", "isotonic"}, default="sigmoid"
    cv : int, splitter or list of splits, default=5
    fold_tol : float, default=0.03
        To which violation of the optimality conditions the machines of the folds are solved, in units of the spread
        (standard deviation, at most 1) of the decision values; 0: to the estimator's tol, which is the least. `machine_` is
        always solved to its tol: the folds alone, of which nothing but decision values is kept, are not.

    Attributes
    ----------
    machine_ : the classifier, fitted to all rows
    classes_ : array of labels

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.selection import Calibrated
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = Calibrated(SVC(C=10)).fit(X, y)
    >>> bool((model.predict(X) == model.classes_[model.predict_proba(X).argmax(axis=1)]).all())
    True
    """

    def __init__(
        self, estimator: Any = None, *, method: str = "sigmoid", cv: Any = 5, fold_tol: float = FOLD_TOL
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.fold_tol = fold_tol

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: Any = None) -> Any:
        """Fit the machine to all rows and the probabilities to decision values of rows that folds leave out."""
        check_choice("method", self.method, METHODS)
        check_number("fold_tol", self.fold_tol, low=0, closed="left", remedy="0 solves folds to the estimator's tol")
        machine = SVC() if self.estimator is None else clone(self.estimator)
        if not isinstance(machine, (SVC, NuSVC)):
            raise TypeError(
                f"estimator={self.estimator!r} must be an SVC or a NuSVC of maxmargin's: for others use scikit-learn's "
                "CalibratedClassifierCV(estimator, ensemble=False)"
            )
        machine._check_parameters()
        data = Labelled.of(machine, X, y, sample_weight)
        labels = np.asarray(y)
        task = Task(data, labels.ravel(), folds_of(self.cv, data, labels, groups), sample_weight is not None)
        found = unseen_values(machine, task, self.fold_tol)
        machine = fitted_from(machine, found.seed, X, y, sample_weight)
        self._maps = Maps(self.method, found.values, data)
        self.machine_, self.classes_ = machine, machine.classes_
        self.n_features_in_ = machine.n_features_in_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of classes_: (n_samples, n_classes)."""
        check_is_fitted(self)
        return self._maps(self.machine_._pair_decisions(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each sample."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> FloatArray:
        """Of the machine."""
        check_is_fitted(self)
        return np.asarray(self.machine_.decision_function(X))


def calibrated(
    estimator: Any, X: Any, y: Any, *, method: str = "sigmoid", cv: Any = 5, fold_tol: float = FOLD_TOL,
    groups: Any = None, sample_weight: ArrayLike | None = None,
) -> Calibrated:  # fmt: skip
    """A classifier with probabilities, fitted: the machine on all rows, its probabilities on rows it has not seen.

    Parameters
    ----------
    estimator : SVC or NuSVC, not fitted
    X, y, sample_weight : as in its fit
    method : {"sigmoid", "isotonic"}, default="sigmoid"
    cv : int, splitter or list of splits, default=5
    fold_tol : float, default=0.03
        How far the folds' machines are solved; see `Calibrated`.
    groups : array-like of shape (n_samples,), optional

    Returns
    -------
    Calibrated
        With predict_proba; it predicts the most probable class.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.selection import calibrated
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> calibrated(SVC(C=10), X, y).predict_proba(X[:1]).shape
    (1, 2)
    """
    model: Calibrated = Calibrated(estimator, method=method, cv=cv, fold_tol=fold_tol).fit(X, y, sample_weight, groups)
    return model
