"""Decision values of rows by machines that have not seen them, each fold begun from the solution on all rows.

The building block of probabilities (calibration.py). Folds of a kernel machine begin from one another (chain.py), and no
prediction is needed: f = Kβ is kept for the rows that a fold leaves out. Other machines are fitted fold by fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from maxmargin.estimators._base import Machine
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._probability import by_pair
from maxmargin.estimators._setup import Begin
from maxmargin.estimators.multiclass import ovr_decision
from maxmargin.problem.kernels import resolve_gamma
from maxmargin.runtime import NEVER
from maxmargin.selection.board import Board
from maxmargin.selection.fits import Fits
from maxmargin.selection.folds import folds_of
from maxmargin.selection.grid import Params
from maxmargin.selection.kernel import KernelFolds, can_share
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Task

FloatArray = NDArray[np.float64]


@dataclass
class Unseen:
    """Values by pair of classes (one column for two classes and regression), NaN: no fold leaves the row out.

    `seed` is the solution on all rows, if there is one; `statuses` are those of the folds.
    """

    values: FloatArray
    seed: dict[tuple[int, int], Begin] | None
    statuses: list[str]


def cross_val_decisions(
    estimator: Any, X: Any, y: Any, cv: Any = 5, *, groups: Any = None, sample_weight: ArrayLike | None = None
) -> FloatArray:
    """Decision values of each row by a machine fitted without it.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR or another machine of maxmargin's, not fitted
    X, y, sample_weight : as in its fit
        gamma="scale" is that of all rows.
    cv : int, splitter or list of splits, default=5
        Every row must be left out by one fold at most; rows that none leaves out have NaN.
    groups : array-like of shape (n_samples,), optional
        For splitters that keep groups together.

    Returns
    -------
    array of shape (n_samples,) or (n_samples, n_outputs)
        What `decision_function` (of a regressor `predict`) of the fold's machine says of the row.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import SVC
    >>> from maxmargin.selection import cross_val_decisions
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> values = cross_val_decisions(SVC(C=10), X, y)
    >>> bool(((values > 0) == (y == 1)).mean() > 0.9)
    True
    """
    machine = clone(estimator)
    if not isinstance(machine, Machine):
        raise TypeError(f"cross_val_decisions needs a machine of maxmargin's, got {type(estimator).__name__}")
    machine._check_parameters()
    data = Labelled.of(machine, X, y, sample_weight)
    task = Task(data, np.asarray(y).ravel(), folds_of(cv, data, np.asarray(y), groups), sample_weight is not None)
    _check_disjoint(task)
    if not can_share(machine, task):
        return _fitted_values(machine, task)
    found = unseen(machine, task)
    shape = getattr(machine, "decision_function_shape", "ovo")
    if len(data.classes) > 2 and shape == "ovr":
        known = np.isfinite(found.values).all(axis=1)
        out = np.full((len(found.values), len(data.classes)), np.nan)
        out[known] = ovr_decision(found.values[known], len(data.classes))
        return out
    return found.values[:, 0] if found.values.shape[1] == 1 else found.values


def unseen(machine: Any, task: Task, loose: float = 0.0) -> Unseen:
    """Values by pair of classes of a kernel machine whose folds `can_share`; `loose`: see KernelFolds."""
    board = Board(len(task.folds))
    board.add([{}])
    rows = np.flatnonzero(task.data.weight > 0)
    gamma = resolve_gamma(machine.gamma, task.data.X, rows, task.data.weight[rows])

    def single(params: Params) -> Any:
        return clone(machine).set_params(**params, gamma=gamma, verbose=False, callback=None)

    engine = KernelFolds(task, single, Scoring(machine, _nothing), path="")
    # One setting of two classes wants the rows of its support vectors, and seldom all others.
    engine.matrices.fits &= len(task.data.classes) > 2
    engine.decisions, engine.loose = {}, loose
    for _ in engine.solve(board, [0], NEVER):
        pass
    n_classes = len(task.data.classes)
    values = np.full((task.data.X.shape[0], max(1, n_classes * (n_classes - 1) // 2)), np.nan)
    for fold, some in engine.decisions.items():
        values[task.folds[fold].test] = by_pair(some, engine.sides[fold].present, n_classes) if n_classes > 2 else some
    return Unseen(values, engine.seeds.get(0), [o.status for o in board.outcomes(0).values()])


def _nothing(machine: Any, X: Any, y: Any) -> float:
    return 0.0


def _fitted_values(machine: Any, task: Task) -> FloatArray:
    """Fold by fold, from nothing."""
    fits, out = Fits(task, lambda params: clone(machine), Scoring(machine, _nothing)), None
    for fold, rows in enumerate(task.folds):
        fitted, part = fits.fitted({}, fold, NEVER)
        values = np.asarray(getattr(fitted, "decision_function", fitted.predict)(part))
        if out is None:
            out = np.full((task.data.X.shape[0], *values.shape[1:]), np.nan)
        out[rows.test] = values
    assert out is not None
    return out


def _check_disjoint(task: Task) -> None:
    count = np.bincount(np.concatenate([fold.test for fold in task.folds]), minlength=task.data.X.shape[0])
    if (count > 1).any():
        raise ValueError(
            f"cv leaves row {int(count.argmax())} out {int(count.max())} times: each row must be left out once at most"
        )


def unseen_by_fits(machine: Any, task: Task) -> Unseen:
    """Values by pair of classes of a kernel classifier, fold by fold from nothing."""
    fits, n_classes = Fits(task, lambda params: clone(machine), Scoring(machine, _nothing)), len(task.data.classes)
    values, statuses = np.full((task.data.X.shape[0], n_classes * (n_classes - 1) // 2), np.nan), []
    for fold, rows in enumerate(task.folds):
        fitted, part = fits.fitted({}, fold, NEVER)
        present = np.searchsorted(task.data.classes, fitted.classes_)
        some = fitted._pair_decisions(part)
        values[rows.test] = by_pair(some, present, n_classes) if n_classes > 2 else some
        statuses.append(fitted.status_)
    return Unseen(values, None, statuses)
