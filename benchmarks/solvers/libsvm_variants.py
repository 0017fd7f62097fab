"""LIBSVM as the papers used it: on a random fifth of the rows, and without intercept.

LIBSVM always fits an intercept. A machine without one is the same as one on every row and its mirror image (−φ(x), −y),
whose intercept is 0: Σ y·alpha = 0 holds by symmetry. Mirror images exist as rows where the kernel is odd (linear,
polynomials of odd degree without a constant); for others the mirrored Gram matrix is given. Either way twice the rows
are solved: **its objective and accuracy are LIBSVM's without intercept, its time is not.**
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, KernelModel, Model, Problem, Solver
from benchmarks.solvers import _blocks
from benchmarks.solvers.libsvm import Libsvm

MIRRORED_ROWS = 5000  # a Gram matrix of 10,000 × 10,000: 0.8 GB


class Fifth(Libsvm):
    name = "libsvm-fifth"

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.chosen = np.sort(np.random.default_rng(0).permutation(X.shape[0])[: max(2, X.shape[0] // 5)])
        super().prepare(problem, X[self.chosen], np.asarray(y)[self.chosen], threads)

    def model(self, X_test: Any) -> Model:
        fitted = super().model(X_test)
        assert isinstance(fitted, KernelModel) and fitted.support is not None
        return KernelModel(fitted.coef, fitted.intercept, self.chosen[fitted.support])


class NoIntercept(Solver):
    name = "libsvm-no-intercept"
    requires = ("sklearn",)
    package = "scikit-learn"
    tasks = ("svc",)

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        if reason is None and problem.fit_intercept:
            return "fits no intercept"
        if reason is None and not _odd(problem) and data.X_train.shape[0] > MIRRORED_ROWS:
            return f"its mirrored Gram matrix would have {2 * data.X_train.shape[0]:,} rows"
        return reason

    def form(self, X: Any) -> Any:
        return X.astype(np.float64)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        from sklearn.svm import SVC

        self.X, self.problem, self.n = X, problem, X.shape[0]
        self.y = np.concatenate([y, -np.asarray(y)])
        names = ("C", "kernel", "gamma", "degree", "coef0", "tol", "cache_size")
        settings = {name: getattr(problem, name) for name in names} | {"C": problem.C / 2}  # both images: C together
        self.estimator = SVC(**(settings if _odd(problem) else settings | {"kernel": "precomputed"}))

    def fit(self) -> None:
        if _odd(self.problem):
            rows = sp.vstack([self.X, -self.X]).tocsr() if sp.issparse(self.X) else np.concatenate([self.X, -self.X])
        else:
            K = _blocks.block(self.problem, self.X, self.X)
            rows = np.block([[K, -K], [-K, K]])
        self.estimator.fit(rows, self.y)

    def model(self, X_test: Any) -> Model:
        """A row's coefficient is that of both its images: a mirrored one counts with the other sign."""
        support, coef = self.estimator.support_, self.estimator.dual_coef_
        coef = np.ravel(coef.toarray() if sp.issparse(coef) else coef)
        total = np.zeros(self.n)
        np.add.at(total, support % self.n, np.where(support < self.n, coef, -coef))
        kept = np.flatnonzero(total)
        return KernelModel(total[kept], 0.0, kept)

    def predict(self, X: Any) -> np.ndarray:
        fitted = self.model(X)
        assert isinstance(fitted, KernelModel)
        return np.where(_blocks.times(self.problem, X, self.X[fitted.support], fitted.coef) > 0, 1, -1)


def _odd(problem: Problem) -> bool:
    """φ(−x) = −φ(x)"""
    return problem.kernel == "linear" or (problem.kernel == "poly" and problem.degree % 2 == 1 and problem.coef0 == 0)
