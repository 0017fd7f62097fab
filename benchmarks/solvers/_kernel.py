"""What the solvers with scikit-learn's interface share: parameters in, coefficients out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import KERNEL_TASKS, Data, KernelModel, Model, PairsModel, Problem, Solver

CLASS_NAMES = {"svc": "SVC", "nu_svc": "NuSVC", "svr": "SVR", "nu_svr": "NuSVR", "one_class": "OneClassSVM"}
PARAMETERS = {
    "svc": ("C",),
    "nu_svc": ("nu",),
    "svr": ("C", "epsilon"),
    "nu_svr": ("C", "nu"),
    "one_class": ("nu",),
}


class KernelMachine(Solver):
    """A solver whose module has SVC, NuSVC, SVR, NuSVR and OneClassSVM."""

    tasks = KERNEL_TASKS

    def module(self) -> Any:
        raise NotImplementedError

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        if reason is None and not self.ours and not problem.fit_intercept:
            return "always fits an intercept"
        return reason

    def parameters(self, problem: Problem, threads: int) -> dict[str, Any]:
        names = (*PARAMETERS[problem.task], "kernel", "gamma", "degree", "coef0", "tol", "cache_size")
        return {name: getattr(problem, name) for name in names}

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        make = getattr(self.module(), CLASS_NAMES[problem.task])
        self.X, self.y = X, y
        self.estimator = make(**self.parameters(problem, threads))

    def fit(self) -> None:
        self.estimator.fit(self.X, self.y)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.estimator.predict(X))

    def model(self, X_test: Any) -> Model:
        coef, intercept = self.estimator.dual_coef_, np.ravel(self.estimator.intercept_)
        coef = np.asarray(coef.todense() if sp.issparse(coef) else coef, dtype=np.float64)
        support = np.asarray(self.estimator.support_, dtype=np.int64)
        if len(getattr(self.estimator, "classes_", ())) > 2:
            return PairsModel(coef, intercept, support, np.asarray(self.estimator.n_support_))
        return KernelModel(coef.ravel(), float(intercept[0]), support)

    def extra(self) -> dict[str, float]:
        iterations = getattr(self.estimator, "n_iter_", None)
        return {} if iterations is None else {"iterations": float(np.sum(iterations))}
