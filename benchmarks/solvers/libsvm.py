"""LIBSVM itself, through its own Python package. Building its list of nodes is not timed."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import KERNEL_TASKS, Data, KernelModel, Model, Predictions, Problem, Solver

SVM_TYPE = {"svc": 0, "nu_svc": 1, "one_class": 2, "svr": 3, "nu_svr": 4}
KERNEL_TYPE = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3}


class Libsvm(Solver):
    name = "libsvm"
    requires = ("libsvm",)
    package = "libsvm-official"
    tasks = KERNEL_TASKS

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        if reason is None and not problem.fit_intercept:
            return "always fits an intercept"
        if reason is None and problem.kernel not in KERNEL_TYPE:
            return f"has no {problem.kernel} kernel"
        return reason

    def form(self, X: Any) -> Any:
        return sp.csr_matrix(X, dtype=np.float64)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.svm = importlib.import_module("libsvm.svmutil")
        self.task = problem.task
        self.options = self.svm.svm_parameter(
            f"-q -s {SVM_TYPE[problem.task]} -t {KERNEL_TYPE[problem.kernel]} -c {problem.C!r} -g {problem.gamma!r} "
            f"-n {problem.nu!r} -p {problem.epsilon!r} -d {problem.degree} -r {problem.coef0!r} -e {problem.tol!r} "
            f"-m {problem.cache_size!r}"
        )
        self.problem = self.svm.svm_problem(np.asarray(y, dtype=np.float64), X)

    def fit(self) -> None:
        self.fitted = self.svm.svm_train(self.problem, self.options)

    def predict(self, X: Any) -> np.ndarray:
        with contextlib.redirect_stdout(None):
            labels, _, _ = self.svm.svm_predict([], X, self.fitted, "-q")
        return np.asarray(labels)

    def model(self, X_test: Any) -> Model:
        if self.task in ("svc", "nu_svc") and self.fitted.get_nr_class() > 2:
            return Predictions(self.predict(X_test))
        coef = np.array([row[0] for row in self.fitted.get_sv_coef()])
        intercept = -float(self.fitted.rho[0])
        if self.task in ("svc", "nu_svc") and self.fitted.get_labels()[0] < 0:  # its first class is the first row's
            coef, intercept = -coef, -intercept
        return KernelModel(coef, intercept, np.array(self.fitted.get_sv_indices(), dtype=np.int64) - 1)
