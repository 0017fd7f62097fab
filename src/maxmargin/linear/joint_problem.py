"""Crammer & Singer's joint multi-class problem and its passes over samples and scores.

    minimise over W    ½ Σ_c ‖w_c‖² + C Σ_i weight_i · max_c ( [c ≠ y_i] + ⟨w_c − w_{y_i}, x_i⟩ )

W is one vector of K·(d + 1) numbers, class by class, each with its intercept last (if there is one), penalised or free
as in the binary problem. What the binary problem has as margins m are scores here: one row per sample, one column per
class. No result depends on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.linear.problem import LinearProblem, Pause
from maxmargin.linear.rounding import NONE, FloatArray

Classes = NDArray[np.int64]


@dataclass
class JointProblem(LinearProblem):
    """The samples of a linear problem with one of K labels each; `sign` and `loss` are not used."""

    labels: Classes = field(default_factory=lambda: np.empty(0, np.int64))
    classes: int = 2

    @classmethod
    def of(cls, one: LinearProblem, labels: NDArray[np.integer], classes: int) -> JointProblem:
        """The samples, weights, C and intercept of `one`."""
        return cls(one.X, one.sign, one.weight, one.C, bias=one.bias, penalised=one.penalised, threads=one.threads,
                   centre=one.centre, extent=one.extent,
                   labels=np.ascontiguousarray(labels, dtype=np.int64), classes=classes)

    @property
    def size(self) -> int:
        return self.classes * (self.d + (self.bias != 0))

    @property
    def free(self) -> slice:
        return slice(self.d, None, self.d + 1) if self.free_intercept else NONE

    def _reach(self) -> tuple[FloatArray, float]:
        largest, length = super()._reach()
        return np.tile(largest, self.classes), float(np.sqrt(2)) * length  # a sample moves two classes, one each way

    def _intercepts(self) -> int:
        return self.classes

    def _lightest(self) -> float:
        return float(np.bincount(self.labels, self.weight, self.classes).min())

    def published(self, w: FloatArray) -> FloatArray:
        if self.centre is None:
            return w
        return np.concatenate([super(JointProblem, self).published(one) for one in w.reshape(self.classes, -1)])

    def support(self, m: FloatArray, width: float) -> int:
        return int(np.count_nonzero((self._losses(m) >= -width) & (self.weight > 0)))

    def _losses(self, m: FloatArray) -> FloatArray:
        """The largest 1 + s_c − s_y over the other classes c, per sample."""
        rows = np.arange(self.n)
        others = m.copy()
        others[rows, self.labels] = -np.inf
        out: FloatArray = 1 + others.max(axis=1) - m[rows, self.labels]
        return out

    def _risk_doubt(self, m: FloatArray, off: float) -> float:
        return 2 * off * float(self.weight[self._losses(m) > -2 * off].sum())

    def zeros(self) -> FloatArray:
        return np.zeros((self.n, self.classes))

    def fill(self, w: FloatArray, begin: int, end: int, out: FloatArray, shifted: bool = True) -> None:
        W = w.reshape(self.classes, -1)
        shift = self.bias * W[:, -1] if self.bias else np.zeros(self.classes)
        _core.joint_outputs(self.matrix, np.ascontiguousarray(W[:, : self.d]), shift, begin, end, out, self.threads)

    def risk(self, m: FloatArray) -> float:
        return self.advance(m, m, 0.0)

    def advance(self, m: FloatArray, q: FloatArray, k: float) -> float:
        return float(_core.joint_advance(m, q, k, self.labels, self.weight, self.threads))

    def worst(self, m: FloatArray, other: FloatArray, mix: float) -> Classes:
        """For each sample the class that attains the loss at (1 − mix)·m + mix·other."""
        out = np.empty(self.n, np.int64)
        _core.joint_worst(m, other, mix, self.labels, out, self.threads)
        return out

    def sums(self, rows: Classes, where: Classes, coef: FloatArray) -> FloatArray:
        """Row c: Σ coef_k x̃_k over the samples `rows` with where_k = c."""
        order = np.argsort(where, kind="stable")
        starts = np.searchsorted(where[order], np.arange(self.classes + 1))
        out = np.zeros((self.classes, self.d))
        _core.joint_add(self.matrix, rows[order], coef[order], starts, out, self.threads)
        if not self.bias:
            return out
        return np.column_stack([out, self.bias * np.bincount(where, coef, self.classes)])

    def move(self, a: FloatArray, rows: Classes, before: Classes, after: Classes) -> Pause:
        """Move a cut: samples `rows`, which it took for the classes `before`, are now taken for `after`."""
        step = self.rows_per_call()
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            weight = self.weight[rows[part]]
            a += self.sums(
                np.tile(rows[part], 2), np.concatenate([before[part], after[part]]), np.concatenate([-weight, weight])
            ).ravel()
            if begin + step < len(rows):
                yield

    def totals(self) -> tuple[FloatArray, FloatArray]:
        """The weight of each class and its weighted sum of samples."""
        weights: FloatArray = np.bincount(self.labels, self.weight, self.classes).astype(np.float64)
        return weights, self.sums(np.arange(self.n), self.labels, self.weight)
