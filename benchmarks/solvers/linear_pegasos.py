"""Pegasos (Shalev-Shwartz, Singer & Srebro 2007) with mini-batches, in NumPy: the paper's other approximate method.

lambda = 1/(n·C); 100/tol steps of one batch, as the paper runs it with one row per step (100/lambda there).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.base import Data, LinearModel, Problem, Solver

BATCH = 256


class Pegasos(Solver):
    name = "linear-pegasos"
    tasks = ("linear",)
    stores_kernel = False

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        if reason is None and (problem.fit_intercept or problem.loss != "hinge"):
            return "solves the hinge loss without intercept"
        if reason is None and len(np.unique(data.y_train)) > 2:
            return "the evaluator judges linear models of two classes"
        return reason

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.X, self.y, self.C = X, np.asarray(y, dtype=np.float64), problem.C
        self.steps = int(10 / problem.tol)

    def fit(self) -> None:
        rng = np.random.default_rng(0)
        n, d = self.X.shape
        strength = 1.0 / (n * self.C)
        w = np.zeros(d)
        for t in range(1, self.steps + 1):
            rows = rng.integers(n, size=min(BATCH, n))
            X, y = self.X[rows], self.y[rows]
            wrong = np.where(y * (X @ w) < 1, y, 0.0)
            w *= 1 - 1 / t
            w += (X.T @ wrong) / (strength * t * len(rows))
            w *= min(1.0, 1 / np.sqrt(strength) / max(float(np.linalg.norm(w)), 1e-300))
        self.w = w

    def predict(self, X: Any) -> np.ndarray:
        return np.where(X @ self.w > 0, 1, -1)

    def model(self, X_test: Any) -> LinearModel:
        return LinearModel(self.w)

    def extra(self) -> dict[str, float]:
        return {"iterations": float(self.steps)}
