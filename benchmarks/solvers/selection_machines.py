"""maxmargin's machines with a search inside, as solvers of a whole selection; `Problem.options`: Cs, gammas, cv."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np

from benchmarks.base import Model, Predictions, Problem
from benchmarks.solvers._kernel import KernelMachine
from benchmarks.solvers.linear_maxmargin import Linear


class DCSelection(KernelMachine):
    """DCSVCCV: clusters, grid, folds, and the early model of the best setting."""

    name = "maxmargin-dc-cv"
    package = "maxmargin"
    ours = True
    tasks = ("svc",)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        make = importlib.import_module("maxmargin").DCSVCCV
        own = {name: value for name, value in self.parameters(problem, threads).items() if name in make._get_param_names()}
        same = {"n_jobs": threads, "random_state": 0, "fit_intercept": problem.fit_intercept}
        self.X, self.y = X, y
        self.estimator = make(**(own | same | problem.options))

    def model(self, X_test: Any) -> Model:
        return Predictions(self.predict(X_test))

    def extra(self) -> dict[str, float]:
        status = self.estimator.cv_results_["status"]
        return {
            "C": float(self.estimator.C_), "gamma": float(self.estimator.gamma_), "cv_score": self.estimator.best_score_,
            "clusters": float(self.estimator.n_clusters_), "settings": float(len(status)),
            "certified": float((status == "certified").sum()), "halved": float((status == "halved").sum()),
            "time_refit": float(self.estimator.timings_["total"]),
        }  # fmt: skip


class LinearSelection(Linear):
    """LinearSVCCV over options["Cs"], chosen by the area under the ROC curve on the last third of the training rows."""

    name = "linear-cv"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        make = importlib.import_module("maxmargin").LinearSVCCV
        super().prepare(dataclasses.replace(problem, options={}), X, y, threads)
        first = 2 * X.shape[0] // 3
        split = [(np.arange(first), np.arange(first, X.shape[0]))]
        params = {k: v for k, v in self.estimator.get_params().items() if k in make._get_param_names()}
        self.estimator = make(**params, Cs=problem.options["Cs"], cv=split, scoring="roc_auc")

    def extra(self) -> dict[str, float]:
        table = self.estimator.cv_results_
        return super().extra() | {
            "C": float(self.estimator.C_), "cv_score": self.estimator.best_score_,
            "certified": float((table["status"] == "certified").sum()), "settings": float(len(table["status"])),
        }  # fmt: skip
