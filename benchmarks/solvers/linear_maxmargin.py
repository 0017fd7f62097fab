"""maxmargin's LinearSVC and LinearSVR, one solver of the harness per method. tol is the relative duality gap."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np

from benchmarks.base import LinearModel, Problem, Solver


class Linear(Solver):
    name = "linear-maxmargin"
    package = "maxmargin"
    tasks = ("linear",)
    stores_kernel = False
    ours = True
    method = "auto"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        make = importlib.import_module("maxmargin").LinearSVC
        self.X, self.y = X, y
        self.estimator = make(
            C=problem.C, loss=problem.loss, tol=problem.tol, fit_intercept=problem.fit_intercept, solver=self.method,
            n_jobs=threads, **{"intercept_scaling": None, "max_iter": -1, **problem.options},
        )  # fmt: skip

    def fit(self) -> None:
        self.estimator.fit(self.X, self.y)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.estimator.predict(X))

    def model(self, X_test: Any) -> LinearModel:
        intercept = np.ravel(self.estimator.intercept_)
        penalised = self.estimator.fit_intercept and self.estimator.intercept_scaling is not None
        if len(self.estimator.classes_) > 2:
            return LinearModel(self.estimator.coef_, intercept, penalised)
        return LinearModel(self.estimator.coef_.ravel(), float(intercept[0]), penalised)

    def extra(self) -> dict[str, float]:
        phases = dict(self.estimator.timings_)
        own = {name: float(phases.pop(name)) for name in ("passes", "pass_seconds")}
        own["iterations"] = float(np.max(self.estimator.n_iter_))
        return own | {f"time_{name}": float(value) for name, value in phases.items()}

    def curves(self) -> dict[str, list[float]]:
        trace = self.estimator.trace_
        columns = {"time": "time", "objective": "objective", "lower": "dual"}
        return {name: [float(f"{value:.7g}") for value in trace[column]] for name, column in columns.items()}


class Ocas(Linear):
    """Algorithm 1 of the paper on the same passes: the stand-in for the authors' program."""

    name = "linear-ocas"
    method = "ocas"


class Cpa(Linear):
    """The standard cutting plane algorithm, the paper's ablation (SVMperf, BMRM)."""

    name = "linear-cpa"
    method = "cpa"


class Path(Linear):
    """`LinearSVC.path` over options["Cs"], each C from the one before; the model judged is that of the problem's C."""

    name = "linear-path"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        strengths = problem.options["Cs"]
        super().prepare(dataclasses.replace(problem, options={}), X, y, threads)
        self.first, self.Cs, self.own = self.estimator, strengths, strengths.index(problem.C)

    def fit(self) -> None:
        self.models = self.first.path(self.X, self.y, self.Cs)
        self.estimator = self.models[self.own]


class NewtonSteps(Linear):
    name = "linear-newton"
    method = "newton"


class DualDescent(Linear):
    name = "linear-descent"
    method = "descent"


class OneNorm(Linear):
    """penalty="l1"."""

    name = "linear-maxmargin-l1"
    tasks = ("linear_l1",)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        options = {"penalty": "l1", "intercept_scaling": 1.0, **problem.options}
        super().prepare(dataclasses.replace(problem, options=options), X, y, threads)


class Regression(Linear):
    """LinearSVR, its intercept penalised as LIBLINEAR's."""

    name = "linear-maxmargin-svr"
    tasks = ("linear_svr",)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        make = importlib.import_module("maxmargin").LinearSVR
        self.X, self.y = X, y
        self.estimator = make(
            C=problem.C, epsilon=problem.epsilon, loss=problem.loss, tol=problem.tol, fit_intercept=problem.fit_intercept,
            n_jobs=threads, **{"intercept_scaling": 1.0, "max_iter": -1, **problem.options},
        )  # fmt: skip

    def model(self, X_test: Any) -> LinearModel:
        penalised = self.estimator.fit_intercept and self.estimator.intercept_scaling is not None
        return LinearModel(self.estimator.coef_.ravel(), float(np.ravel(self.estimator.intercept_)[0]), penalised)
