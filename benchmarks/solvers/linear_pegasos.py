"""Pegasos (Shalev-Shwartz, Singer & Srebro 2007) in NumPy: lambda = 1/(n·C), as many row visits as the paper has steps,
100/lambda.

Rows come in mini-batches of 256, in a new random order for every pass: single rows would be the interpreter's time and
nothing else. So there are fewer steps over the same rows. It says nothing of the original's time, and something of its
objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.base import Data, LinearModel, Problem, Solver

BATCH = 256
VISITS = 100  # times 1/lambda


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
        self.X, self.y, self.C = X, np.asarray(y, dtype=X.dtype), problem.C
        self.visits = max(BATCH, int(VISITS * problem.C * X.shape[0]))

    def fit(self) -> None:
        rng = np.random.default_rng(0)
        n, d = self.X.shape
        strength, w, t, left = 1.0 / (n * self.C), np.zeros(d), 0, self.visits
        while left > 0:
            order = rng.permutation(n)[:left]
            left -= len(order)
            for start in range(0, len(order), 64 * BATCH):  # some megabytes of rows at a time, in their random order
                some = order[start : start + 64 * BATCH]
                X, y = self.X[some], self.y[some]
                for i in range(0, len(some), BATCH):
                    t += 1
                    w = _step(w, X[i : i + BATCH], y[i : i + BATCH], strength, t)
        self.w, self.steps = w, t

    def predict(self, X: Any) -> np.ndarray:
        return np.where(X @ self.w > 0, 1, -1)

    def model(self, X_test: Any) -> LinearModel:
        return LinearModel(self.w)

    def extra(self) -> dict[str, float]:
        return {"iterations": float(self.steps), "visits": float(self.visits)}


def _step(w: np.ndarray, X: Any, y: np.ndarray, strength: float, t: int) -> np.ndarray:
    """A step of length 1/(lambda·t) against the sub-gradient, then back into the ball that holds the optimum."""
    wrong = np.where(y * (X @ w) < 1, y, 0)
    w = (1 - 1 / t) * w + (X.T @ wrong) / (strength * t * len(y))
    return np.asarray(w * min(1.0, 1 / np.sqrt(strength) / max(float(np.linalg.norm(w)), 1e-300)))
