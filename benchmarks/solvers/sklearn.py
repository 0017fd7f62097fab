"""scikit-learn's SVMs (LIBSVM inside, one thread, float64). It gets float64 rows, so no conversion is timed."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.solvers._kernel import KernelMachine


class ScikitLearn(KernelMachine):
    name = "scikit-learn"
    requires = ("sklearn",)
    package = "scikit-learn"

    def module(self) -> Any:
        return importlib.import_module("sklearn.svm")

    def form(self, X: Any) -> Any:
        return X.astype(np.float64)
