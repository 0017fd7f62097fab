"""LIBSVM itself, through its own Python package, which computes kernel rows with OpenMP: as many threads as the cell has.

Building its list of nodes is not timed.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import KERNEL_TASKS, Data, KernelModel, Model, PairsModel, Problem, Solver

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
        if reason is None and problem.task == "nu_svc" and len(np.unique(data.y_train)) > 2:
            # svm_predict of libsvm-official 3.37 has room for one decision value there: the process crashes
            return "its Python package cannot predict with nu_svc of several classes"
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
        support = np.array(self.fitted.get_sv_indices(), dtype=np.int64) - 1
        coef = np.array(self.fitted.get_sv_coef(), dtype=np.float64).T
        if self.task in ("svc", "nu_svc"):
            labels = np.array(self.fitted.get_labels())  # its first class is the first row's
            k = len(labels)
            counts = np.array(self.fitted.nSV[:k], dtype=np.int64)
            rho = np.array(self.fitted.rho[: k * (k - 1) // 2])
            if k > 2:
                return in_sorted_order(PairsModel(coef, -rho, support, counts), labels)
        sign = -1.0 if self.task in ("svc", "nu_svc") and labels[0] < 0 else 1.0
        return KernelModel(sign * coef[0], -sign * float(self.fitted.rho[0]), support)


def in_sorted_order(model: PairsModel, labels: np.ndarray) -> PairsModel:
    """A machine whose classes stand in the order `labels`, with its classes in the order of sorted labels."""
    k, order = len(labels), np.argsort(labels)
    ends = np.cumsum(model.n_support)
    pair = {ab: index for index, ab in enumerate((a, b) for a in range(k) for b in range(a + 1, k))}
    coef, intercept = [], []
    for i, a in enumerate(order):
        mine = model.coef[:, ends[a] - model.n_support[a] : ends[a]]
        # of the pairs (i, 0), (i, 1), …: the row in the old order, turned round where the old order was the other one
        others = [(j, b) for j, b in enumerate(order) if j != i]
        coef.append([mine[b - 1 if a < b else b] * (1 if (a < b) == (i < j) else -1) for j, b in others])
        intercept += [model.intercept[pair[min(a, b), max(a, b)]] * (1 if a < b else -1) for j, b in others if i < j]
    support = np.concatenate([model.support[ends[a] - model.n_support[a] : ends[a]] for a in order])
    return PairsModel(np.hstack([np.array(block) for block in coef]), np.array(intercept), support, model.n_support[order])
