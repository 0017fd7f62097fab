"""maxmargin's exact kernel machines, on the rows as they are (float32 or float64, dense or CSR)."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.base import Data, Problem
from benchmarks.solvers._kernel import CLASS_NAMES, KernelMachine


class Exact(KernelMachine):
    name = "maxmargin"
    package = "maxmargin"
    ours = True

    def module(self) -> Any:
        return importlib.import_module("maxmargin")

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        if reason is None and not hasattr(self.module(), CLASS_NAMES[problem.task]):
            return f"this maxmargin has no {CLASS_NAMES[problem.task]}"
        return reason

    def parameters(self, problem: Problem, threads: int) -> dict[str, Any]:
        intercept = {} if problem.fit_intercept else {"fit_intercept": False}
        return super().parameters(problem, threads) | {"n_jobs": threads} | intercept | problem.options

    def extra(self) -> dict[str, float]:
        phases = {f"time_{key}": float(value) for key, value in getattr(self.estimator, "timings_", {}).items()}
        ended = {"converged": float(getattr(self.estimator, "status_", "converged") == "converged")}
        return super().extra() | ended | {key: value for key, value in phases.items() if np.isfinite(value)}
