"""CascadeSVM (Graf et al. 2005), on our own exact machine: random parts, whose support vectors meet two by two.

One round, as DC-SVM's Table 2 has it: no support vectors go back to the first layer. `options`: parts (a power of two,
16 unless said) and merges (how often parts are joined; all the way unless said). No intercept, or each machine's own.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, KernelModel, Model, Problem, Solver

PARTS = 16


class Cascade(Solver):
    name = "cascade"
    tasks = ("svc",)

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        return reason or (None if not problem.fit_intercept else "is without intercept, as in the paper")

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.make = importlib.import_module("maxmargin").SVC
        names = ("C", "kernel", "gamma", "degree", "coef0", "tol", "cache_size")
        self.settings = {name: getattr(problem, name) for name in names} | {"fit_intercept": False, "n_jobs": threads}
        self.X, self.y, self.problem = X, np.asarray(y), problem

    def fit(self) -> None:
        order = np.random.default_rng(0).permutation(len(self.y))
        parts = np.array_split(order, min(int(self.problem.options.get("parts", PARTS)), max(1, len(order) // 2)))
        merges = int(self.problem.options.get("merges", len(parts)))
        found = [self._solve(np.sort(part)) for part in parts]
        while len(found) > 1 and merges > 0:
            pairs = [[rows for rows, _ in found[i : i + 2]] for i in range(0, len(found), 2)]
            found = [self._solve(np.sort(np.concatenate(pair))) for pair in pairs]
            merges -= 1
        self.support, self.coef = (np.concatenate([part[i] for part in found]) for i in (0, 1))

    def _solve(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Support vectors of these rows, and their coefficients; rows of one class alone are all kept, at the bound."""
        y = self.y[rows]
        if len(rows) == 0 or (y == y[0]).all():
            return rows, self.problem.C * y.astype(np.float64)
        machine = self.make(**self.settings).fit(self.X[rows], y)
        coef = machine.dual_coef_
        return rows[machine.support_], np.ravel(coef.toarray() if sp.issparse(coef) else coef)

    def predict(self, X: Any) -> np.ndarray:
        from benchmarks.solvers import _blocks

        return np.where(_blocks.times(self.problem, X, self.X[self.support], self.coef) > 0, 1, -1)

    def model(self, X_test: Any) -> Model:
        return KernelModel(self.coef, 0.0, self.support)


class CascadeIdentified(Cascade):
    """The same, with precision and recall of its support vectors against those of the optimum."""

    name = "cascade-identified"

    def extra(self) -> dict[str, float]:
        from benchmarks.solvers.dc_machines import identified

        return identified(self.make, self.settings, self.X, self.y, self.support)
