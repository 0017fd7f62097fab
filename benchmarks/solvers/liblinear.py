"""LIBLINEAR itself, through its own Python package: -s 3 (dual, hinge), -s 1 (dual) and -s 2 (primal) squared hinge, -s 5
(1-norm, squared hinge), -s 13 (dual, regression), -s 12 (dual) and -s 11 (primal) regression with squared errors.

Its intercept, where there is one, is a penalised constant feature (-B 1). tol is its -e, which is not a duality gap:
compare objectives, not tolerances. Building its list of nodes is not timed. It visits coordinates in an order drawn from C's
rand(): every fit begins with the numbers of a fresh process, so that fits of one process are the same and the best time is
that of the model that is judged.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, LinearModel, Problem, Solver


class _Liblinear(Solver):
    requires = ("liblinear",)
    package = "liblinear-official"
    tasks = ("linear",)
    stores_kernel = False
    solver_type = 3
    loss = "hinge"

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        if reason is None and problem.loss != self.loss:
            return f"solves the {self.loss} loss"
        if reason is None and problem.task != "linear_svr" and len(np.unique(data.y_train)) > 2:
            return "the evaluator judges linear models of two classes"
        return reason

    def form(self, X: Any) -> Any:
        return sp.csr_matrix(X, dtype=np.float64)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.linear = importlib.import_module("liblinear.liblinearutil")
        self.intercept = problem.fit_intercept
        bias = 1 if problem.fit_intercept else -1
        self.options = self.linear.parameter(
            f"-q -s {self.solver_type} -c {problem.C!r} -e {problem.tol!r} -p {problem.epsilon!r} -B {bias}"
        )
        self.problem = self.linear.problem(np.asarray(y, dtype=np.float64), X, bias)
        self.w = np.zeros(X.shape[1])

    def fit(self) -> None:
        ctypes.CDLL(None).srand(1)
        self.fitted = self.linear.train(self.problem, self.options)

    def predict(self, X: Any) -> np.ndarray:
        model = self.model(X)
        values = X @ model.w + model.intercept
        return values if self.tasks == ("linear_svr",) else np.where(values > 0, 1, -1)

    def model(self, X_test: Any) -> LinearModel:
        labels = self.fitted.get_labels()  # none for regression
        sign = -1.0 if labels and labels[0] < 0 else 1.0
        width = self.fitted.get_nr_feature()
        w = np.ctypeslib.as_array(self.fitted.w, (width + int(self.intercept),)) * sign
        return LinearModel(w[:width], float(w[width]) if self.intercept else 0.0, penalised=self.intercept)


class DualHinge(_Liblinear):
    name = "liblinear-s3"


class DualSquaredHinge(_Liblinear):
    name = "liblinear-s1"
    solver_type = 1
    loss = "squared_hinge"


class PrimalSquaredHinge(_Liblinear):
    name = "liblinear-s2"
    solver_type = 2
    loss = "squared_hinge"


class OneNorm(PrimalSquaredHinge):
    name = "liblinear-s5"
    tasks = ("linear_l1",)
    solver_type = 5


class _Regression(_Liblinear):
    tasks = ("linear_svr",)
    loss = "squared_epsilon_insensitive"


class DualRegression(_Regression):
    name = "liblinear-s13"
    solver_type = 13
    loss = "epsilon_insensitive"


class DualSquaredRegression(_Regression):
    name = "liblinear-s12"
    solver_type = 12


class PrimalSquaredRegression(_Regression):
    name = "liblinear-s11"
    solver_type = 11
