"""SpSVM (Keerthi, Chapelle & DeCoste 2006): a few kernel centres, chosen one by one to lower the primal objective.

    minimise over β   ½ βᵀ K_JJ β + ½ C Σ max(0, 1 − y_i o_i)²        o = K_·J β

Each new centre is the best of 59 random rows (the paper's number) by what its own coefficient can gain; all
coefficients are solved for by Newton steps whenever their number has grown by half, and at the end. `options["basis"]`
centres, 200 unless said.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from benchmarks.base import KernelModel, Model, Problem, Solver
from benchmarks.solvers import _blocks

BASIS, CANDIDATES = 200, 59
GROWTH = 1.5
NEWTON_STEPS = 20


class SpSvm(Solver):
    name = "spsvm"
    tasks = ("svc",)
    stores_kernel = False

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.X, self.y, self.problem = X, np.asarray(y, np.float64), problem
        self.basis = min(int(problem.options.get("basis", BASIS)), X.shape[0])

    def fit(self) -> None:
        rng, n = np.random.default_rng(0), len(self.y)
        self.rows: list[int] = []
        self.columns = np.empty((n, self.basis), np.float32)
        self.beta, self.outputs = np.zeros(0), np.zeros(n)
        solved = 0
        while len(self.rows) < self.basis:
            self._take(rng.choice(n, min(CANDIDATES, n), replace=False))
            if len(self.rows) >= GROWTH * solved or len(self.rows) == self.basis:
                self._newton()
                solved = len(self.rows)

    def _take(self, candidates: np.ndarray) -> None:
        """Add the candidate whose coefficient alone lowers the objective most, with that coefficient."""
        candidates = np.sort(candidates[~np.isin(candidates, self.rows)])
        block = np.empty((len(self.y), len(candidates)), np.float32)
        _blocks.mapped(self.problem, self.X, self.X[candidates], block)
        wrong = self._slack()
        active = wrong > 0
        gradient = -self.problem.C * (block.T @ (self.y * wrong))
        gradient += block[self.rows].T @ self.beta if self.rows else 0.0
        curvature = block[candidates, np.arange(len(candidates))] + self.problem.C * (block[active] ** 2).sum(axis=0)
        best = int((gradient**2 / np.maximum(curvature, 1e-12)).argmax())
        step = -gradient[best] / max(curvature[best], 1e-12)
        self.columns[:, len(self.rows)] = block[:, best]
        self.rows.append(int(candidates[best]))
        self.beta = np.append(self.beta, step)
        self.outputs = self.outputs + step * block[:, best]

    def _slack(self) -> np.ndarray:
        return np.maximum(0.0, 1.0 - self.y * self.outputs)

    def _newton(self) -> None:
        """Full Newton steps with halving; the objective is piecewise quadratic, so they end at its minimum."""
        columns = self.columns[:, : len(self.rows)]
        gram = columns[self.rows].astype(np.float64)
        value = self._value(gram, self.beta, self.outputs)
        for _ in range(NEWTON_STEPS):
            active = self._slack() > 0
            part = columns[active].astype(np.float64)
            matrix = gram + self.problem.C * (part.T @ part)
            matrix[np.diag_indices_from(matrix)] += 1e-8 * np.trace(matrix) / len(matrix)
            target = scipy.linalg.solve(matrix, self.problem.C * (part.T @ self.y[active]), assume_a="pos")
            step, move = 1.0, target - self.beta
            change = columns @ move
            while step > 1e-4:
                outputs = self.outputs + step * change
                new = self._value(gram, self.beta + step * move, outputs)
                if new < value:
                    break
                step /= 2
            else:
                return
            self.beta, self.outputs, gain, value = self.beta + step * move, outputs, value - new, new
            if gain < 1e-6 * value:
                return

    def _value(self, gram: np.ndarray, beta: np.ndarray, outputs: np.ndarray) -> float:
        slack = np.maximum(0.0, 1.0 - self.y * outputs)
        return float(0.5 * beta @ gram @ beta + 0.5 * self.problem.C * (slack @ slack))

    def model(self, X_test: Any) -> Model:
        return KernelModel(self.beta, 0.0, vectors=self.X[np.array(self.rows)])

    def predict(self, X: Any) -> np.ndarray:
        return np.where(_blocks.times(self.problem, X, self.X[np.array(self.rows)], self.beta) > 0, 1, -1)
