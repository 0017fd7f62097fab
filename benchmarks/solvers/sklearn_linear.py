"""scikit-learn's LinearSVC (LIBLINEAR inside) and SGDClassifier (plain stochastic gradient descent on the same sum)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.base import LinearModel, Problem, Solver


class _Linear(Solver):
    requires = ("sklearn",)
    package = "scikit-learn"
    tasks = ("linear",)
    stores_kernel = False
    penalised = False
    estimator: Any

    def form(self, X: Any) -> Any:
        return X.astype(np.float64)

    def fit(self) -> None:
        self.estimator.fit(self.X, self.y)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.estimator.predict(X))

    def model(self, X_test: Any) -> LinearModel:
        coef, penalised = self.estimator.coef_, self.intercept and self.penalised
        intercept = np.broadcast_to(self.estimator.intercept_ if self.intercept else 0.0, len(coef))
        if len(coef) > 1:
            return LinearModel(coef, intercept, penalised)
        return LinearModel(coef.ravel(), float(intercept[0]), penalised)

    def extra(self) -> dict[str, float]:
        return {"iterations": float(np.max(self.estimator.n_iter_))}


class LinearSVC(_Linear):
    name = "sklearn-linearsvc"
    penalised = True

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        from sklearn import svm

        self.X, self.y, self.intercept = X, y, problem.fit_intercept
        dual = problem.loss == "hinge" or X.shape[0] < X.shape[1]
        self.estimator = svm.LinearSVC(
            C=problem.C, loss=problem.loss, tol=problem.tol, fit_intercept=problem.fit_intercept, dual=dual,
            random_state=0,
        )  # fmt: skip


class OneNorm(LinearSVC):
    """penalty="l1", with scikit-learn's own limit on iterations."""

    name = "sklearn-linearsvc-l1"
    tasks = ("linear_l1",)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        super().prepare(problem, X, y, threads)
        self.estimator.set_params(penalty="l1", dual=False)


class SGD(_Linear):
    """½‖w‖² + C·Σ loss is n·C times SGDClassifier's objective with alpha = 1/(n·C)."""

    name = "sklearn-sgd"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        from sklearn.linear_model import SGDClassifier

        self.X, self.y, self.intercept = X, y, problem.fit_intercept
        self.estimator = SGDClassifier(
            loss=problem.loss, alpha=1.0 / (X.shape[0] * problem.C), tol=problem.tol, random_state=0,
            fit_intercept=problem.fit_intercept, max_iter=1000, n_jobs=threads,
        )  # fmt: skip


class SGDEpochs(SGD):
    """`options["epochs"]` passes, whatever the objective does: 10 in the OCAS paper."""

    name = "sklearn-sgd-epochs"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        super().prepare(problem, X, y, threads)
        self.estimator.set_params(max_iter=int(problem.options["epochs"]), tol=None)
