"""scikit-learn-intelex (oneDAL's thunder method), imported directly, in float32 and float64, and float32 with sparse
rows unpacked. Its max_iter=-1 means 10,000 outer iterations; reaching them is reported, not hidden.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, Problem
from benchmarks.solvers._kernel import KernelMachine

ITERATION_CAP = 10_000


class _Intelex(KernelMachine):
    requires = ("sklearnex", "daal4py")
    package = "scikit-learn-intelex"
    tasks = ("svc", "nu_svc", "svr", "nu_svr")
    dtype: Any = np.float32

    def module(self) -> Any:
        return importlib.import_module("sklearnex.svm")

    def form(self, X: Any) -> Any:
        return X.astype(self.dtype)

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        importlib.import_module("daal4py").daalinit(threads)
        super().prepare(problem, X, y, threads)

    def fit(self) -> None:
        super().fit()
        if not hasattr(self.estimator, "_onedal_estimator"):
            raise RuntimeError("scikit-learn-intelex fell back to scikit-learn")

    def extra(self) -> dict[str, float]:
        numbers = super().extra()
        return numbers | {"hit_iteration_cap": float(numbers.get("iterations", 0) >= ITERATION_CAP)}


class Float32(_Intelex):
    name = "sklearnex-float32"


class Float64(_Intelex):
    name = "sklearnex-float64"
    dtype = np.float64


class Float32Dense(_Intelex):
    name = "sklearnex-float32-dense"

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        return reason or (None if data.sparse else "the rows are dense anyway (see sklearnex-float32)")

    def form(self, X: Any) -> Any:
        return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)
