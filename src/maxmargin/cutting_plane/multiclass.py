"""Crammer & Singer's joint multi-class machine by cutting planes.

    minimise over W    ½ Σ_c ‖w_c‖² + C Σ_i weight_i · max_c ( [c ≠ y_i] + ⟨w_c − w_{y_i}, x_i⟩ )

The risk is again a sum of convex, piecewise linear functions, so algorithm 1 of Franc & Sonnenburg carries over: the
cut at W takes each sample for the class that attains its maximum. Along a line a sample's loss has up to K pieces;
`_core.joint_search` brackets the minimum by bisection and drops the samples that are straight inside the bracket.

W is one vector of K·(d + 1) numbers, class by class, each with its intercept last (if there is one), penalised or free
as in the binary problem. Scores are an array with one row per sample and one column per class.
Stops at a relative gap of tol, certified by the reduced problem's value. Cost per turn: one pass over X with K outputs
per row, the rows whose class changed, some five passes over the scores. The result is the same for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.cutting_plane.bundle import Bundle
from maxmargin.cutting_plane.certified import FAR, LinearResult
from maxmargin.cutting_plane.ocas import CANCELLED, Ocas
from maxmargin.cutting_plane.problem import FloatArray, LinearProblem, Pause
from maxmargin.runtime import Status

Classes = NDArray[np.int64]


@dataclass
class JointProblem(LinearProblem):
    """The samples of a linear problem with one of K labels each; `sign` is not used, m are the scores."""

    labels: Classes = field(default_factory=lambda: np.empty(0, np.int64))
    classes: int = 2

    @classmethod
    def of(cls, one: LinearProblem, labels: NDArray[np.integer], classes: int) -> JointProblem:
        """The samples, weights, C and intercept of `one`."""
        return cls(one.X, one.sign, one.weight, one.C, bias=one.bias, penalised=one.penalised, threads=one.threads,
                   labels=np.ascontiguousarray(labels, dtype=np.int64), classes=classes)

    @property
    def size(self) -> int:
        return self.classes * (self.d + (self.bias != 0))

    @property
    def free(self) -> slice:
        return slice(self.d, None, self.d + 1) if self.free_intercept else slice(0, 0)

    def zeros(self) -> FloatArray:
        return np.zeros((self.n, self.classes))

    def fill(self, w: FloatArray, begin: int, end: int, out: FloatArray) -> None:
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

    def move(self, a: FloatArray, rows: Classes, before: Classes, after: Classes) -> Pause:
        """Move a cut: samples `rows`, which it took for the classes `before`, are now taken for `after`."""
        total = np.zeros((self.classes, self.d))
        step = self.rows_per_call()
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            where = np.concatenate([before[part], after[part]])
            order = np.argsort(where, kind="stable")
            starts = np.searchsorted(where[order], np.arange(self.classes + 1))
            which = np.concatenate([rows[part], rows[part]])[order]
            coef = self.weight[which] * np.where(order < len(order) // 2, -1.0, 1.0)
            _core.joint_add(self.matrix, which, coef, starts, total, self.threads)
            if begin + step < len(rows):
                yield
        A = a.reshape(self.classes, -1)
        A[:, : self.d] += total
        if self.bias:
            weight = self.weight[rows]
            A[:, -1] += self.bias * (
                np.bincount(after, weight, self.classes) - np.bincount(before, weight, self.classes)
            )


class CrammerSinger(Ocas):
    """OCAS for the joint problem. `bundle` holds cuts of an earlier fit on the same rows."""

    problem: JointProblem

    def __init__(
        self, one: LinearProblem, labels: NDArray[np.integer], classes: int, tol: float, bundle: Bundle | None = None
    ) -> None:
        problem = JointProblem.of(one, labels, classes)
        if bundle is not None:
            bundle.adopt(problem)
        super().__init__(problem, tol, bundle=bundle)
        self._taken = problem.labels.copy()  # the classes that the last cut took the samples for

    def seed_cuts(self) -> None:
        """Class c taken for class c + 1, for each c: mixed in proportion they balance every free intercept."""
        problem = self.problem
        if not problem.free_intercept or self.bundle.count:
            return
        for c in range(problem.classes):
            rows = np.flatnonzero(problem.labels == c)
            a = np.zeros(problem.size)
            before = problem.labels[rows]
            for _ in problem.move(a, rows, before, (before + 1) % problem.classes):
                pass
            self.bundle.add(a, float(problem.weight[rows].sum()))

    def _search(self, q: FloatArray, quad: float, lin: float) -> float:
        problem, C = self.problem, self.problem.C
        return float(_core.joint_search(
            self.m, q, problem.labels, problem.weight, quad / C, lin / C, FAR, problem.threads
        ))

    def _cut(self, margins: FloatArray, fresh: bool) -> Pause:
        problem, labels, weight = self.problem, self.problem.labels, self.problem.weight
        taken = problem.worst(self.m, margins, self.mix)
        offset = float(weight[taken != labels].sum())
        self._moved += float(weight[taken != self._taken].sum())
        if fresh or self._moved > CANCELLED * offset:
            self._taken, self._a, self._moved = labels, np.zeros(problem.size), offset
        rows = np.flatnonzero(taken != self._taken)
        yield from problem.move(self._a, rows, self._taken[rows], taken[rows])
        self._taken = taken
        self.bundle.add(self._a, offset)
        self.clock.lap("cutting plane")

    def result(self, status: Status) -> LinearResult:
        result = super().result(status)
        result.w = result.w.reshape(self.problem.classes, -1)
        return result
