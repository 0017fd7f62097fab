"""LaSVM (Bordes, Ertekin, Weston & Bottou 2005): an online SVM, one pass over the rows, then a finish to tol.

Signed coefficients a_i between 0 and y_i·C with Σ a = 0, g_i = y_i − Σ_j a_j K_ij kept for the rows in the expansion.
PROCESS takes a new row in by a step with its best partner, REPROCESS takes the most violating pair and drops rows that
are clearly no support vectors. Kernel values between the rows of the expansion are kept, as its program does with its
cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, KernelModel, Model, Problem, Solver
from benchmarks.solvers import _blocks

MOST = 20_000  # rows of an expansion whose kernel values are kept: 1.6 GB of float32
SEEDS = 5  # rows of each class to begin with


class LaSvm(Solver):
    name = "lasvm"
    tasks = ("svc",)

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        return reason or (None if len(np.unique(data.y_train)) == 2 else "is written for two classes here")

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        self.X, self.y, self.problem, self.C, self.tol = X, np.asarray(y, np.float64), problem, problem.C, problem.tol

    def fit(self) -> None:
        self._empty(64)
        rng = np.random.default_rng(0)
        for sign in (1.0, -1.0):
            for row in rng.permutation(np.flatnonzero(self.y == sign))[:SEEDS]:
                self._enter(int(row))
        seen = set(self.rows[: self.count].tolist())
        for row in rng.permutation(len(self.y)):
            if int(row) not in seen and self._process(int(row)):
                self._reprocess()
        for _ in range(1000 * self.count + 1000):  # finishing; first-order pairs need many steps where C is large
            if not self._reprocess():
                break

    def _empty(self, room: int) -> None:
        self.count = 0
        self.rows, self.sign, self.a, self.g = np.zeros(room, np.int64), np.zeros(room), np.zeros(room), np.zeros(room)
        self.K = np.zeros((room, room), np.float32)
        self.dense = not sp.issparse(self.X) and self.problem.kernel == "rbf"
        if self.dense:  # the rows of the expansion side by side, so that a row of K is one product
            self.norms = np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64)
            self.V = np.zeros((room, self.X.shape[1]), self.X.dtype)

    def _values(self, row: int, n: int) -> np.ndarray:
        """K between the row and the first n of the expansion."""
        if not self.dense:
            return _blocks.block(self.problem, self.X[row : row + 1], self.X[self.rows[:n]])[0]
        distance = self.norms[row] + self.norms[self.rows[:n]] - 2.0 * (self.V[:n] @ self.X[row])
        return np.asarray(np.exp(-self.problem.gamma * np.maximum(distance, 0.0)))

    def _enter(self, row: int) -> int:
        """The row becomes the last of the expansion, with coefficient 0."""
        n = self.count
        if n == len(self.rows):
            self._grow()
        self.rows[n], self.sign[n], self.a[n] = row, self.y[row], 0.0
        if self.dense:
            self.V[n] = self.X[row]
        values = self._values(row, n + 1)
        self.K[n, : n + 1] = self.K[: n + 1, n] = values
        self.g[n] = self.y[row] - float(values[:n] @ self.a[:n])
        self.count = n + 1
        return n

    def _grow(self) -> None:
        n, room = self.count, 2 * self.count
        if room > 2 * MOST:
            raise MemoryError(f"an expansion of more than {n:,} rows")
        for name in ("rows", "sign", "a", "g", *(("V",) if self.dense else ())):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        K = np.zeros((room, room), np.float32)
        K[:n, :n] = self.K
        self.K = K

    def _extremes(self) -> tuple[int, int]:
        """The largest g that may still rise, the smallest that may still fall."""
        n, edge = self.count, 1e-12 * self.C
        a, sign, g = self.a[:n], self.sign[:n], self.g[:n]
        up = a < np.where(sign > 0, self.C, 0.0) - edge
        down = a > np.where(sign > 0, 0.0, -self.C) + edge
        return int(np.where(up, g, -np.inf).argmax()), int(np.where(down, g, np.inf).argmin())

    def _step(self, i: int, j: int) -> bool:
        """a_i up, a_j down, as far as it pays; False if they do not violate by tol."""
        rise = (self.C if self.sign[i] > 0 else 0.0) - self.a[i]
        fall = self.a[j] - (0.0 if self.sign[j] > 0 else -self.C)
        if self.g[i] - self.g[j] <= self.tol or rise <= 0 or fall <= 0:
            return False
        curvature = max(float(self.K[i, i] + self.K[j, j] - 2 * self.K[i, j]), 1e-12)
        step = min((self.g[i] - self.g[j]) / curvature, rise, fall)
        self.a[i] += step
        self.a[j] -= step
        n = self.count
        self.g[:n] -= step * (self.K[i, :n] - self.K[j, :n])
        return True

    def _process(self, row: int) -> bool:
        """False where the row does not violate: it does not stay."""
        k = self._enter(row)
        up, down = self._extremes()
        if self._step(k, down) if self.sign[k] > 0 else self._step(up, k):
            return True
        self.count -= 1
        return False

    def _reprocess(self) -> bool:
        i, j = self._extremes()
        if not self._step(i, j):
            return False
        i, j = self._extremes()
        n = self.count
        a, sign, g = self.a[:n], self.sign[:n], self.g[:n]
        useless = (a == 0) & np.where(sign < 0, g >= self.g[i], g <= self.g[j])
        useless[[i, j]] = False
        if useless.any():
            self._drop(useless)
        return True

    def _drop(self, useless: np.ndarray) -> None:
        """Rows from the end take the places of those that go."""
        for place in np.flatnonzero(useless)[::-1]:
            last = self.count - 1
            if place != last:
                for array in (self.rows, self.sign, self.a, self.g, *((self.V,) if self.dense else ())):
                    array[place] = array[last]
                self.K[place, : last + 1] = self.K[last, : last + 1]
                self.K[: last + 1, place] = self.K[: last + 1, last]
                self.K[place, place] = self.K[last, last]
            self.count = last

    def model(self, X_test: Any) -> Model:
        i, j = self._extremes()
        kept = self.a[: self.count] != 0
        return KernelModel(self.a[: self.count][kept], 0.5 * (self.g[i] + self.g[j]), self.rows[: self.count][kept])

    def predict(self, X: Any) -> np.ndarray:
        fitted = self.model(X)
        assert isinstance(fitted, KernelModel)
        values = _blocks.times(self.problem, X, self.X[fitted.support], fitted.coef)
        return np.where(values + fitted.intercept > 0, 1, -1)
