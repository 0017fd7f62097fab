"""Searches over C and γ with five folds, and probabilities: ours, and scikit-learn's tools over its SVC and over ours.

All searches have the same grid, that of `SVCCV(Cs=10, gammas=10)` on the training rows, and the same folds. Of probabilities
the last fifth of the training rows is kept for the log loss.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

import maxmargin
from benchmarks import base
from maxmargin.estimators._labelled import Labelled
from maxmargin.selection import EdgeWarning, calibrated
from maxmargin.selection.grid import Facts, axis


class _Search(base.Solver):
    tasks = ("svc",)

    def prepare(self, problem: base.Problem, X: Any, y: np.ndarray, threads: int) -> None:
        facts = Facts(Labelled.of(maxmargin.SVC(), X, y, None))
        number = problem.options.get("values", 10)
        self.grid = {name: axis(name, number, facts) for name in ("C", "gamma")}
        self.rows = X, y
        self.search = self.built(problem, threads)

    def built(self, problem: base.Problem, threads: int) -> Any:
        raise NotImplementedError

    def fit(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdgeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.search.fit(*self.rows)

    def model(self, X_test: Any) -> base.Model:
        return base.Predictions(self.search.predict(X_test))

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.search.predict(X))

    def extra(self) -> dict[str, float]:
        table, best = self.search.cv_results_, self.search.best_index_
        folds = [table[f"split{k}_test_score"][best] for k in range(5)]
        return {
            "score": float(self.search.best_score_), "standard_error": float(np.std(folds, ddof=1) / np.sqrt(5)),
            "C": float(self.search.best_params_["C"]), "gamma": float(self.search.best_params_["gamma"]),
            **self.counts(),
        }  # fmt: skip

    def counts(self) -> dict[str, float]:
        return {}


class Ours(_Search):
    name = "selection-maxmargin"
    ours = True

    def built(self, problem: base.Problem, threads: int) -> Any:
        return maxmargin.SVCCV(
            Cs=self.grid["C"], gammas=self.grid["gamma"], tol=problem.tol, cache_size=problem.cache_size, n_jobs=threads
        )

    def counts(self) -> dict[str, float]:
        status = self.search.cv_results_["status"]
        return {word.replace(" ", "_"): float((status == word).sum()) for word in ("certified", "dropped", "not tried")}


class Halving(Ours):
    name = "selection-halving"

    def built(self, problem: base.Problem, threads: int) -> Any:
        return super().built(problem, threads).set_params(search="halving", random_state=0)


class Clusters(Ours):
    name = "selection-clusters"

    def built(self, problem: base.Problem, threads: int) -> Any:
        return maxmargin.DCSVCCV(
            Cs=self.grid["C"], gammas=self.grid["gamma"], tol=problem.tol, cache_size=problem.cache_size, n_jobs=threads,
            fit_intercept=True, random_state=0,
        )  # fmt: skip


class GridOurs(_Search):
    name = "grid-maxmargin"
    ours = True

    def built(self, problem: base.Problem, threads: int) -> Any:
        machine = maxmargin.SVC(tol=problem.tol, cache_size=problem.cache_size, n_jobs=threads)
        return GridSearchCV(machine, self.grid, cv=5)


class GridSklearn(_Search):
    name = "grid-sklearn"
    package = "scikit-learn"

    def built(self, problem: base.Problem, threads: int) -> Any:
        return GridSearchCV(svm.SVC(tol=problem.tol, cache_size=problem.cache_size), self.grid, cv=5, n_jobs=threads)


class _Probabilities(base.Solver):
    tasks = ("svc",)

    def prepare(self, problem: base.Problem, X: Any, y: np.ndarray, threads: int) -> None:
        cut = 4 * X.shape[0] // 5
        self.rows, self.kept = (X[:cut], y[:cut]), (X[cut:], y[cut:])
        self.machine = maxmargin.SVC(C=problem.C, gamma=problem.gamma, tol=problem.tol, n_jobs=threads)

    def model(self, X_test: Any) -> base.Model:
        return base.Predictions(self.predict(X_test))

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.fitted.predict(X))

    def extra(self) -> dict[str, float]:
        X, y = self.kept
        return {"log_loss": float(log_loss(y, self.fitted.predict_proba(X), labels=self.fitted.classes_))}

    fitted: Any


class Calibrated(_Probabilities):
    name = "calibrated-maxmargin"
    ours = True

    def fit(self) -> None:
        self.fitted = calibrated(self.machine, *self.rows)


class CalibratedSklearn(_Probabilities):
    name = "calibrated-sklearn"
    package = "scikit-learn"

    def fit(self) -> None:
        self.fitted = CalibratedClassifierCV(self.machine, ensemble=False).fit(*self.rows)


class Plain(_Probabilities):
    name = "plain-maxmargin"
    ours = True

    def fit(self) -> None:
        self.fitted = self.machine.fit(*self.rows)

    def extra(self) -> dict[str, float]:
        return {}
