"""maxmargin's budgeted machine, as the lookup-merging paper trains it and as it is by default.

`paper-<search>` is the paper's algorithm: its uniform table, every support vector that is one too many merged, the last
iterate, no refit. `budget-lookup-wd` has our table and our drop rule, `budget-averaged` returns the average of recent
iterates on top, and `budget`, our default, also refits the coefficients. Budget, epochs and seed travel in Problem.options.
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
        """Epochs, seconds per phase, and the merging statistics; `training` is the passes alone."""
        timings = self.estimator.timings_
        out = {key: float(value) for key, value in self.estimator.merging_.items()}
        out |= {"epochs": float(self.estimator.n_iter_), "time_refit": float(timings.get("refit", 0.0))}
        out["time_objective"] = float(timings["objective"])
        out["time_training"] = float(timings["total"]) - out["time_refit"] - out["time_objective"]
        return out


PAPER_RULES = {"averaging": False, "refit": False, "merge_table": "uniform", "drop_useless": False}


class PaperLookupWd(Budget):
    name = "paper-lookup-wd"
    variant = {**PAPER_RULES, "merge_search": "lookup-wd"}


class PaperLookupH(Budget):
    name = "paper-lookup-h"
    variant = {**PAPER_RULES, "merge_search": "lookup-h"}


class PaperGss(Budget):
    name = "paper-gss"
    variant = {**PAPER_RULES, "merge_search": "gss"}


class PaperGssPrecise(Budget):
    name = "paper-gss-precise"
    variant = {**PAPER_RULES, "merge_search": "gss-precise"}


class LookupWd(Budget):
    name = "budget-lookup-wd"
    variant = {"averaging": False, "refit": False}


class Averaged(Budget):
    name = "budget-averaged"
    variant = {"refit": False}
