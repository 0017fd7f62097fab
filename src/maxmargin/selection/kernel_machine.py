"""What SVCCV, NuSVCCV and SVRCV share: which engine, which grid, and that they are what they chose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxmargin.selection.calibration import Maps, in_favour, unseen_values
from maxmargin.selection.fits import fitted_from
from maxmargin.selection.grid import Grid
from maxmargin.selection.kernel import KernelFolds, can_share
from maxmargin.selection.machine import Selecting
from maxmargin.selection.scoring import Scoring
from maxmargin.selection.search import Engine, Search, Task

FloatArray = NDArray[np.float64]


class SelectingKernel(Selecting):
    """Along the first axis (C or ν) solutions follow one another."""

    kernel: Any

    def _engine(self, task: Task, scoring: Scoring) -> Engine:
        path = next(iter(self._axes))
        if can_share(self._single({}), task):
            return KernelFolds(task, self._single, scoring, path)
        return super()._engine(task, scoring)

    def _fitted(self, machine: Any, X: Any, y: Any, sample_weight: Any, search: Search) -> Any:
        if not getattr(self, "probabilities", False):
            return super()._fitted(machine, X, y, sample_weight, search)
        found = unseen_values(machine, search.task)
        machine = fitted_from(machine, found.seed, X, y, sample_weight)
        machine._maps = Maps("sigmoid", found.values, search.task.data)
        return machine

    def _offers(self) -> bool:
        if not getattr(self, "probabilities", False):
            raise AttributeError("predict_proba is not available when probabilities=False")
        return True

    @available_if(_offers)
    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class, in the order of classes_; the predicted class has the largest."""
        check_is_fitted(self)
        if not hasattr(self, "_maps"):
            raise NotFittedError("predict_proba is not available when fitted with probabilities=False: fit it again")
        winner = np.searchsorted(self.classes_, self.predict(X))
        return in_favour(self._maps(self._pair_decisions(X)), winner)

    @available_if(_offers)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of `predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    @property
    def probability(self) -> Any:
        """SVC's parameter of old, in whose place there is `probabilities`."""
        return "deprecated"

    def _grid(self, data: Any) -> Grid:
        grid = super()._grid(data)
        without = self.kernel in ("linear", "precomputed") or callable(self.kernel)
        if without and isinstance(self.gammas, int):
            grid.axes["gamma"] = [1.0]  # which these kernels do not have
        return grid

    def __getattr__(self, name: str) -> Any:
        """C, gamma, … are what was chosen: C_, gamma_, …"""
        if name in type(self)._axes and f"{name}_" in vars(self):
            return vars(self)[f"{name}_"]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


