"""maxmargin's LinearSVC and LinearSVR, one solver of the harness per method. tol is the relative duality gap."""

from __future__ import annotations

import dataclasses
import functools
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


class _PapersRule(Linear):
    """Stops where the paper does: (F − F_t)/(C·m) ≤ options["stop"], C the factor of the sum."""

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        options = dict(problem.options)
        allowed = options.pop("stop") * problem.C * X.shape[0]
        options["callback"] = lambda row: row["objective"] - row["dual"] <= allowed
        super().prepare(dataclasses.replace(problem, tol=1e-9, options=options), X, y, threads)


class OcasPapersRule(_PapersRule):
    name = "ocas-rule"
    method = "ocas"


class CpaPapersRule(_PapersRule):
    """CPA by the same rule: SVMperf's and BMRM's algorithm, on our own passes."""

    name = "cpa-rule"
    method = "cpa"


class OcasMix(Ocas):
    """Algorithm 1 with another λ (`options["mix"]`; 0.1 in the paper). Each fit has a process of its own."""

    name = "linear-ocas-mix"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        options = dict(problem.options)
        module, plain = importlib.import_module("maxmargin.linear.solver"), importlib.import_module("maxmargin.linear.ocas")
        module.Ocas = functools.partial(plain.Ocas, mix=options.pop("mix"))  # type: ignore[attr-defined]
        super().prepare(dataclasses.replace(problem, options=options), X, y, threads)


class SvmLightStandIn(Solver):
    """A decomposition with a linear kernel, our own SVC: a stand-in for SVMlight, whose time it does not tell."""

    name = "svmlight-standin"
    package = "maxmargin"
    tasks = ("linear",)
    ours = True

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        make = importlib.import_module("maxmargin").SVC
        self.X, self.y = X, y
        same = {"C": problem.C, "tol": problem.tol, "fit_intercept": problem.fit_intercept, "n_jobs": threads}
        self.estimator = make(kernel="linear", **same)

    def fit(self) -> None:
        self.estimator.fit(self.X, self.y)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.estimator.predict(X))

    def model(self, X_test: Any) -> LinearModel:
        w = self.estimator.coef_
        return LinearModel(np.ravel(w.toarray() if hasattr(w, "toarray") else w), float(self.estimator.intercept_[0]))

    def extra(self) -> dict[str, float]:
        return {"iterations": float(np.sum(self.estimator.n_iter_))}


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
