"""maxmargin's budgeted machine, as the lookup-merging paper trains it and as it is by default.

`budget-<search>` is the paper's: the last iterate, no refit. `budget-averaged` and `budget` (our defaults) add the
average of recent iterates and the refit of the coefficients. Budget, epochs and seed travel in Problem.options.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.base import Data, KernelModel, Model, Predictions, Problem, Solver


class Budget(Solver):
    name = "budget"
    package = "maxmargin"
    tasks = ("svc",)
    stores_kernel = False
    ours = True
    variant: dict[str, Any] = {}

    def skip(self, problem: Problem, data: Data) -> str | None:
        if problem.kernel != "rbf":
            return "has the Gaussian kernel only"
        return super().skip(problem, data)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        from maxmargin import BudgetSVC

        settings = {"C": problem.C, "gamma": problem.gamma, "n_jobs": threads, **self.variant, **problem.options}
        self.X, self.y = X, y
        self.estimator = BudgetSVC(fit_intercept=problem.fit_intercept, **settings)

    def fit(self) -> None:
        self.estimator.fit(self.X, self.y)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.estimator.predict(X))

    def model(self, X_test: Any) -> Model:
        if len(self.estimator.classes_) > 2:
            return Predictions(self.predict(X_test))
        vectors = self.estimator.support_vectors_.astype(np.float64)
        return KernelModel(self.estimator.dual_coef_[0], float(self.estimator.intercept_[0]), vectors=vectors)

    def extra(self) -> dict[str, float]:
        """Epochs, seconds per phase, and the merging statistics; `training` is the passes without set-up or refit."""
        timings = self.estimator.timings_
        out = {key: float(value) for key, value in self.estimator.merging_.items()}
        out |= {"epochs": float(self.estimator.n_iter_), "time_refit": float(timings.get("refit", 0.0))}
        out["time_training"] = float(timings["total"]) - out["time_refit"] - float(timings["objective"])
        return out


class _Paper(Budget):
    name = "_paper"


class LookupWd(_Paper):
    name = "budget-lookup-wd"
    variant = {"averaging": False, "refit": False}


class LookupH(_Paper):
    name = "budget-lookup-h"
    variant = {"averaging": False, "refit": False, "merge_search": "lookup-h"}


class Gss(_Paper):
    name = "budget-gss"
    variant = {"averaging": False, "refit": False, "merge_search": "gss"}


class GssPrecise(_Paper):
    name = "budget-gss-precise"
    variant = {"averaging": False, "refit": False, "merge_search": "gss-precise"}


class Averaged(Budget):
    name = "budget-averaged"
    variant = {"refit": False}
