"""`probability=True` of SVC and NuSVC: class probabilities from cross-validated decision values, as LIBSVM makes them.

Five more fits give every row a decision value from a machine that has not seen it. For each pair of classes (i, j)

    P(i | i or j, x) = 1 / (1 + exp(A f(x) + B))

is fitted to them by maximum likelihood with Platt's targets (Lin, Lin and Weng, A note on Platt's probabilistic outputs for
support vector machines, 2007, Algorithm 1: Newton's method with backtracking). Of several classes the probabilities p solve

    minimise  Σ_{i ≠ j} (r_ji p_i − r_ij p_j)²   s.t.  Σ p_i = 1,      r_ij = P(i | i or j, x)

(Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling, 2004, eq. 20): one linear
system per row. The most probable class need not be the predicted one: CalibratedClassifierCV(SVC(), ensemble=False) is what
scikit-learn advises instead, and why it deprecates the parameter.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.estimators._labelled import Labelled
from maxmargin.runtime import Control, Result

FloatArray = NDArray[np.float64]

FOLDS = 5  # LIBSVM's
SURE = 1e-7  # LIBSVM's: probabilities of pairs stay this far from 0 and 1, or the coupling is singular
ROWS = 4096  # whose systems are solved at once: 24 MB for 26 classes


class Probabilities:
    """The parameter and its methods, in front of a one-vs-one classifier."""

    probability: Any
    random_state: Any
    classes_: NDArray[Any]
    kernel: Any
    _probA: FloatArray
    _probB: FloatArray

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        if isinstance(self.probability, str) and self.probability == "deprecated":
            return
        if not isinstance(self.probability, (bool, np.bool_)):
            raise ValueError(f"probability={self.probability!r} must be True or False, or be left out")
        warnings.warn(
            "The `probability` parameter is deprecated here as in scikit-learn 1.9: leave it out, and use "
            "CalibratedClassifierCV(SVC(), ensemble=False) for probabilities",
            FutureWarning,
            stacklevel=5,
        )

    def _offers(self) -> bool:
        if self.probability is not True:
            raise AttributeError(f"predict_proba is not available when probability={self.probability!r}")
        return True

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        result, attributes = super()._solved(data, control)  # type: ignore[misc]
        if self.probability is True:
            values = _unseen_decisions(self, data, control)
            attributes["_probA"], attributes["_probB"] = sigmoids(values, data)
        return result, attributes

    @available_if(_offers)
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of classes_: (n_samples, n_classes)."""
        check_is_fitted(self)
        if not hasattr(self, "_probA"):
            raise NotFittedError("predict_proba is not available when fitted with probability=False: fit it again")
        decisions: FloatArray = self._pair_decisions(X)  # type: ignore[attr-defined]
        pair = np.clip(expit(-(decisions * self._probA + self._probB)), SURE, 1 - SURE)
        if len(self.classes_) == 2:
            return np.column_stack([1 - pair[:, 0], pair[:, 0]])
        pieces = [coupled(pair[i : i + ROWS], len(self.classes_)) for i in range(0, len(pair), ROWS)]
        return np.concatenate([*pieces, np.empty((0, len(self.classes_)))])

    @available_if(_offers)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    def _deprecated(self, name: str) -> FloatArray:
        warnings.warn(f"Attribute `{name}_` was deprecated in scikit-learn 1.9", FutureWarning, stacklevel=3)
        return np.asarray(getattr(self, f"_{name}", np.empty(0)))

    @property
    def probA_(self) -> FloatArray:
        """A of each pair of classes; empty without probability=True."""
        return self._deprecated("probA")

    @property
    def probB_(self) -> FloatArray:
        """B of each pair of classes; empty without probability=True."""
        return self._deprecated("probB")


def _unseen_decisions(machine: Any, data: Labelled, control: Control) -> FloatArray:
    """Decision value of each pair of classes (columns) for each row by a machine fitted without it; NaN: none."""
    code, n_classes = data.code, len(data.classes)
    values = np.full((len(code), n_classes * (n_classes - 1) // 2), np.nan)
    fold = _folds(machine, data)
    given = machine.kernel == "precomputed" or machine._objects is not None
    without = clone(machine).set_params(
        probability="deprecated", decision_function_shape="ovo", break_ties=False, warm_start=False, verbose=False,
        callback=None, checkpoint=None, **({"kernel": "precomputed"} if given else {}),
    )  # fmt: skip
    without._warns = False  # one for all below; catch_warnings would silence other threads too
    unfinished = []
    for f in range(FOLDS):
        seen, unseen = np.flatnonzero((fold >= 0) & (fold != f)), np.flatnonzero(fold == f)
        if not len(unseen):
            continue
        present = np.unique(code[seen])
        if len(present) > 1:
            without.set_params(max_time=control.deadline.share(FOLDS - f).limit())
            some = data.X[np.ix_(seen, seen)] if given else data.X[seen]
            without.fit(some, data.classes[code[seen]], sample_weight=data.weight[seen])
            if without.status_ != "converged":
                unfinished.append(without.status_)
            other = data.X[np.ix_(unseen, seen)] if given else data.X[unseen]
            values[unseen] = by_pair(without._pair_decisions(other), present, n_classes)
        for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
            missing = [c not in present for c in (i, j)]
            if any(missing) and not all(missing):  # LIBSVM's rule: the machine of one class is sure of it
                values[unseen, k] = (1.0 if missing[1] else -1.0) * (-1 if n_classes == 2 else 1)
    if unfinished:
        warnings.warn(
            f"probabilities rest on {FOLDS} fits on parts of the data, of which {len(unfinished)} stopped before tol was "
            f"reached ({', '.join(sorted(set(unfinished)))}): raise max_time or max_iter",
            ConvergenceWarning,
            stacklevel=5,
        )
    return values


def by_pair(values: FloatArray, present: NDArray[np.intp], n_classes: int) -> FloatArray:
    """Decision values of a machine that knows only the classes `present`, in the columns of one that knows all."""
    out = np.full((len(values), n_classes * (n_classes - 1) // 2), np.nan)
    column = {pair: k for k, pair in enumerate(combinations(range(n_classes), 2))}
    sign = -1.0 if len(present) == 2 < n_classes else 1.0  # two classes: the second is positive, else the first of a pair
    for k, pair in enumerate(combinations(present.tolist(), 2)):
        out[:, column[pair]] = sign * values[:, k]
    return out


def _folds(machine: Any, data: Labelled) -> NDArray[np.intp]:
    """The fold of each row, −1 if it does not count: each class spread over all folds, in an order drawn by random_state."""
    rng = check_random_state(0 if machine.random_state is None else machine.random_state)
    fold = np.full(len(data.weight), -1, np.intp)
    for c in range(len(data.classes)):
        mine = rng.permutation(np.flatnonzero((data.code == c) & (data.weight > 0)))
        fold[mine] = (np.arange(len(mine)) + c) % FOLDS
    return fold


def sigmoids(values: FloatArray, data: Labelled) -> tuple[FloatArray, FloatArray]:
    """A and B of each pair of classes."""
    code, n_classes = data.code, len(data.classes)
    maps = []
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        rows = np.flatnonzero(((code == i) | (code == j)) & (data.weight > 0) & np.isfinite(values[:, k]))
        positive = code[rows] == (j if n_classes == 2 else i)
        maps.append(sigmoid(values[rows, k], positive, data.weight[rows]))
    a, b = np.array(maps).T
    return a, b


def sigmoid(f: FloatArray, positive: NDArray[np.bool_], weight: FloatArray) -> tuple[float, float]:
    """A, B that minimise −Σ weight (t log P + (1 − t) log(1 − P)), P = 1 / (1 + exp(A f + B)), t Platt's targets."""
    pros, cons = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (pros + 1) / (pros + 2), 1 / (cons + 2))
    scale = max(float(np.abs(f).max(initial=0.0)), np.finfo(float).tiny)  # so that both variables are of the same size
    x = np.column_stack([f / scale, np.ones(len(f))])
    point = np.array([0.0, np.log((cons + 1) / (pros + 1))])

    def loss(at: FloatArray) -> float:
        z = x @ at
        return float(weight @ (np.logaddexp(0, -z) + target * z))

    value = loss(point)
    for _ in range(100):
        p = expit(-(x @ point))
        gradient = x.T @ (weight * (target - p))
        if np.abs(gradient).max() < 1e-10 * max(float(weight.sum()), np.finfo(float).tiny):
            break
        hessian = (x * (weight * p * (1 - p))[:, None]).T @ x + 1e-12 * np.eye(2)
        step, length = -np.linalg.solve(hessian, gradient), 1.0
        slope = float(gradient @ step)
        while loss(point + length * step) > value + 1e-4 * length * slope and length > 1e-10:
            length /= 2
        if length <= 1e-10:
            break
        point = point + length * step
        value = loss(point)
    return float(point[0] / scale), float(point[1])


def coupled(pair: FloatArray, n_classes: int) -> FloatArray:
    """Probabilities of the classes from those of the pairs."""
    n = len(pair)
    r = np.zeros((n, n_classes, n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        r[:, i, j], r[:, j, i] = pair[:, k], 1 - pair[:, k]
    system = np.zeros((n, n_classes + 1, n_classes + 1))
    system[:, :n_classes, :n_classes] = -r * np.swapaxes(r, 1, 2)
    every = np.arange(n_classes)
    system[:, every, every] = np.square(r).sum(axis=1)  # Σ_s r_si²
    system[:, n_classes, :n_classes] = system[:, :n_classes, n_classes] = 1.0
    right = np.zeros((n, n_classes + 1, 1))
    right[:, n_classes] = 1.0
    p = np.clip(np.linalg.solve(system, right)[:, :n_classes, 0], 0.0, None)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
