"""The evaluator on one-vs-one machines: the sum over all pairs of classes of the binary objective.

Pair (i, j), i < j in the order of the sorted labels, is a problem of its own on the rows of both classes, class i being
+1. A row of class i is part of the pairs with i alone, so f is needed for (classes − 1) pairs per row: one pass over the
n × |SV| kernel block, class by class, gives all of them. Coefficients of a class's rows are then sparse columns, one per
pair, with the vectors of two classes in each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, PairsModel, Problem
from benchmarks.formulations import FORMULATIONS, Image, Point
from benchmarks.kernels import expansion


class Totals(NamedTuple):
    """Sums over the pairs; `infeasible` is the largest of all."""

    primal: float
    primal_best: float
    dual: float
    infeasible: float


class _Machine:
    """A model with its vectors by class, and who belongs to which pair."""

    def __init__(self, data: Data, model: PairsModel) -> None:
        self.classes, label = np.unique(data.y_train, return_inverse=True)
        self.k = len(self.classes)
        self.pairs = [(i, j) for i in range(self.k) for j in range(i + 1, self.k)]
        self.support = np.asarray(model.support, dtype=np.int64)
        self.coef, self.intercept = np.asarray(model.coef, dtype=np.float64), np.asarray(model.intercept, dtype=np.float64)
        expected = (self.k - 1, len(self.support))
        if self.coef.shape != expected or len(self.intercept) != len(self.pairs):
            shapes = f"coefficients {self.coef.shape} and {len(self.intercept)} intercepts"
            raise ValueError(f"{shapes}: {self.k} classes ask for {expected} and {len(self.pairs)}")
        of = label[self.support]
        if not np.array_equal(np.bincount(of, minlength=self.k), model.n_support) or np.any(np.diff(of) < 0):
            raise ValueError("the support vectors are not in the order of their classes, as n_support says they are")
        self.rows = [np.flatnonzero(label == i) for i in range(self.k)]
        self.mine = [np.flatnonzero(of == i) for i in range(self.k)]  # places in `support`
        self.place = [np.searchsorted(rows, self.support[mine]) for rows, mine in zip(self.rows, self.mine)]

    def coefficients(self, i: int, j: int) -> np.ndarray:
        """Of pair i < j: first those of i's vectors, then those of j's."""
        return np.concatenate([self.coef[j - 1, self.mine[i]], self.coef[i, self.mine[j]]])

    def columns(self, parts: dict[tuple[int, int], np.ndarray]) -> sp.csr_matrix:
        """One column per pair of `parts`, a row per support vector."""
        rows = [np.concatenate([self.mine[i], self.mine[j]]) for i, j in parts]
        column = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
        shape = (len(self.support), len(rows))
        return sp.csr_matrix((np.concatenate(list(parts.values())), (np.concatenate(rows), column)), shape=shape)


def totals(problem: Problem, data: Data, model: PairsModel, threads: int = 2) -> Totals:
    """Primal and dual of a machine, summed over its pairs."""
    machine = _Machine(data, model)
    make_point, make_values = FORMULATIONS[problem.task]
    points: dict[tuple[int, int], Point] = {}
    for i, j in machine.pairs:
        own = np.repeat([1.0, -1.0], [len(machine.mine[i]), len(machine.mine[j])])
        n = len(machine.rows[i]) + len(machine.rows[j])
        points[i, j] = make_point(problem, n, own, machine.coefficients(i, j))
    outputs = [_outputs(problem, data, machine, points, i, threads) for i in range(machine.k)]
    found = []
    for index, (i, j) in enumerate(machine.pairs):
        point, y = points[i, j], np.repeat([1.0, -1.0], [len(machine.rows[i]), len(machine.rows[j])])
        f, feasible = (np.concatenate([outputs[i][j][:, c], outputs[j][i][:, c]]) for c in (0, 1))
        at = np.concatenate([machine.place[i], len(machine.rows[i]) + machine.place[j]])
        image = Image(f, float(point.coef @ f[at]), float(point.feasible @ feasible[at]))
        values = make_values(problem, y, y[at], point, image, float(machine.intercept[index]))
        found.append((*values, point.moved))
    primal, best, dual = (float(sum(column)) for column in list(zip(*found))[:3])
    return Totals(primal, best, dual, float(max(moved for *_, moved in found)))


def _outputs(
    problem: Problem, data: Data, machine: _Machine, points: dict[tuple[int, int], Point], i: int, threads: int
) -> dict[int, np.ndarray]:
    """{other class: f and f of the feasible coefficients, without intercept, on the rows of class i}."""
    mine = {pair: point for pair, point in points.items() if i in pair}
    columns = [machine.columns({pair: getattr(p, name) for pair, p in mine.items()}) for name in ("coef", "feasible")]
    vectors = data.X_train[machine.support]
    f = expansion(problem, data.X_train[machine.rows[i]], vectors, sp.hstack(columns, format="csr"), threads)
    return {a + b - i: f[:, [c, len(mine) + c]] for c, (a, b) in enumerate(mine)}


def predictions(problem: Problem, data: Data, model: PairsModel, X: Any, threads: int = 2) -> np.ndarray:
    """Labels of X by votes, the first of the classes with most votes, as LIBSVM does it."""
    machine = _Machine(data, model)
    vectors = data.X_train[machine.support]
    votes = np.zeros((X.shape[0], machine.k), dtype=np.int64)
    # Through w some pairs at a time: as many w as there are pairs may not fit into memory.
    size = machine.k - 1 if problem.kernel == "linear" else len(machine.pairs)
    for start in range(0, len(machine.pairs), size):
        pairs = machine.pairs[start : start + size]
        columns = machine.columns({(i, j): machine.coefficients(i, j) for i, j in pairs})
        f = expansion(problem, X, vectors, columns, threads) + machine.intercept[start : start + size]
        for column, (i, j) in enumerate(pairs):
            first = f[:, column] > 0
            votes[:, i] += first
            votes[:, j] += ~first
    return np.asarray(machine.classes[votes.argmax(axis=1)])
