"""Predictions of one row at a time: what is timed as a fit is CALLS of them, by each of several callers.

`prepare` trains on 1,000 rows of 20 features with labels drawn at random and a narrow kernel, so that all of them, but
for one or two by chance, are support vectors. Each caller is a thread of its own, as in a server; the machine itself has
one thread.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

from benchmarks.base import Data, Predictions, Problem, Solver

ROWS, FEATURES, CALLS = 1000, 20, 200


class _Latency(Solver):
    tasks = ("latency",)
    stores_kernel = False
    module = ""
    options: dict[str, Any] = {}

    def skip(self, problem: Problem, data: Data) -> str | None:
        few = data.X_train.shape[0] < ROWS or data.X_train.shape[1] < FEATURES
        return super().skip(problem, data) or (f"fewer than {ROWS:,} rows × {FEATURES}" if few else None)

    def form(self, X: Any) -> Any:
        return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        rng = np.random.default_rng(0)
        self.callers = int(problem.options["callers"])
        some = X[:ROWS, :FEATURES] + 0.1 * rng.normal(size=X[:ROWS, :FEATURES].shape)  # no two rows are near each other
        labels = rng.permutation(np.resize([-1, 1], len(some)))
        make = importlib.import_module(self.module).SVC
        self.estimator = make(gamma=10.0, C=10.0, **self.options).fit(some, labels)
        if len(self.estimator.support_) < 0.99 * len(some):
            raise RuntimeError(f"of {len(some)} rows only {len(self.estimator.support_)} are support vectors")
        self.rows = [some[i : i + 1] for i in range(min(CALLS, len(some)))]

    def fit(self) -> None:
        def call() -> None:
            for row in self.rows:
                self.estimator.predict(row)

        others = [threading.Thread(target=call) for _ in range(self.callers - 1)]
        for thread in others:
            thread.start()
        call()
        for thread in others:
            thread.join()

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros(X.shape[0])

    def model(self, X_test: Any) -> Predictions:
        return Predictions(np.zeros(X_test.shape[0]))

    def extra(self) -> dict[str, float]:
        return {"support_vectors": float(len(self.estimator.support_)), "calls": float(len(self.rows))}


class Ours(_Latency):
    """maxmargin.SVC, one row at a time"""

    name = "maxmargin-latency"
    package = "maxmargin"
    module = "maxmargin"
    options = {"n_jobs": 1}
    ours = True


class ScikitLearn(_Latency):
    """sklearn.svm.SVC, one row at a time"""

    name = "scikit-learn-latency"
    requires = ("sklearn",)
    package = "scikit-learn"
    module = "sklearn.svm"
