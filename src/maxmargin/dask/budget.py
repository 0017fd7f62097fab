"""BudgetSVC on dask collections: a model that goes from partition to partition."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from maxmargin.budget.model import Options, decision_values, squared_norms
from maxmargin.budget.objective import signs
from maxmargin.budget.precision import needs_double
from maxmargin.budget.sgd import Batch, BudgetSolver
from maxmargin.dask.machine import DecidesOnDask
from maxmargin.dask.partitions import IntArray, Partitions
from maxmargin.dask.values import FloatArray, gamma_of
from maxmargin.divide.clustering import drained
from maxmargin.estimators import budget as local
from maxmargin.estimators._labelled import Labelled
from maxmargin.runtime import Control, Deadline, Result, run, steps, thread_count


@dataclass(frozen=True)
class Visit:
    """A partition to go through: its number, labels and weights, and the seed of the order in it (None: as it is)."""

    number: int
    labels: NDArray[np.int32]
    weights: FloatArray
    seed: int | None


class TravellingSolver(BudgetSolver):
    """BudgetSolver whose epochs are lists of Visit: the state goes to where the rows are, and comes back."""

    def __init__(self, options: Options, epochs: Iterable[Any], X: Partitions, deadline: Deadline, **more: Any) -> None:
        super().__init__(options, epochs, **more)
        self._X, self._deadline, self._begun = X, deadline, False

    def _visit(self, epoch: Iterable[Any]) -> Generator[None, None, None]:
        for visit in epoch:
            if self._begun:
                yield None
            state = self._core.state() if self._begun else None
            self._begun = True
            own = [(visit.labels, visit.weights)]
            common = (self.options, visit.seed, state, self._deadline)
            [(state, counters)] = yield from self._X.steps(block_visit, own, [visit.number], common)
            self._core = self._resumed(state)
            for name, value in counters.items():
                self._run[name] += value
                self._pass[name] += value


def block_visit(
    block: Any, options: Options, seed: int | None, state: dict[str, Any] | None, deadline: Deadline,
    labels: NDArray[np.int32], weights: FloatArray,
) -> tuple[dict[str, Any], dict[str, float]]:  # fmt: skip
    """On a worker: one pass over its rows, from a state to the next, and what happened."""
    order = np.flatnonzero(weights > 0)
    if seed is not None:
        order = np.random.default_rng(seed).permutation(order)
    batch = Batch(block, np.ascontiguousarray(order, np.int64), labels, weights)
    result = drained(steps(BudgetSolver(options, [[batch]], state), Control(deadline=deadline)))
    return result.state, result.counters


class PartitionedObjective:
    """budget.objective.Objective, whose losses are sums over partitions."""

    def __init__(self, X: Partitions, labels: NDArray[np.int32], weight: FloatArray, options: Options, threads: int) -> None:
        self._X, self._options, self._threads = X, options, threads
        self._own = list(zip(X.parts(labels), X.parts(weight)))

    def __call__(self, centres: NDArray[Any], models: list[tuple[FloatArray, FloatArray]]) -> list[float]:
        coef, intercept = np.vstack([m[0] for m in models]), np.concatenate([m[1] for m in models])
        common = (centres.astype(np.float64), coef, intercept, self._options, len(models))
        losses = np.sum(self._X.each(block_losses, self._own, common=common), axis=0)
        norms = squared_norms(centres, coef, self._options.gamma, self._threads) + intercept**2
        return [float(v) for v in norms.reshape(len(models), -1).sum(axis=1) / 2 + self._options.C * losses]


def block_losses(
    block: Any, centres: FloatArray, coef: FloatArray, intercept: FloatArray, options: Options, models: int,
    labels: NDArray[np.int32], weight: FloatArray,
) -> FloatArray:  # fmt: skip
    """On a worker: Σ weight·loss of its rows, per model."""
    losses = np.zeros(models)
    for begin in range(0, block.shape[0], 8192):
        rows: IntArray = np.arange(begin, min(begin + 8192, block.shape[0]))
        values = decision_values(block, rows, centres, coef, intercept, options.gamma, 1)
        for c in range(options.outputs):
            lack = np.maximum(0.0, 1 - signs(labels[rows], c, options)[:, None] * values[:, c :: options.outputs])
            losses += weight[rows] @ lack
    return losses


def block_double(block: Any, gamma: float, C: float, weight: FloatArray) -> bool:
    """On a worker: whether its rows need a model in float64."""
    counted = weight > 0
    return bool(counted.any()) and needs_double(block, gamma, C, weight[counted])


class BudgetSVC(DecidesOnDask, local.BudgetSVC):
    """`maxmargin.BudgetSVC` on dask arrays and frames that live on workers.

    The model, at most `budget` support vectors, goes from partition to partition, in their order, and learns from each row
    where it is: as `fit_stream` does on one machine. `objective_` is that of the model on all rows, a sum over partitions.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that was made last.
    shuffle : bool, default=True
        Visit the partitions, and the rows in each, in random order.
    refit, refit_memory
        Not used: a refit needs kernel values of all rows at once.
    C, budget, gamma, epochs, …
        As in `maxmargin.BudgetSVC`.

    Examples
    --------
    As for `maxmargin.dask.DCSVC`.
    """

    _local = local.BudgetSVC

    def _solved(self, data: Labelled, control: Control) -> tuple[Result, dict[str, Any]]:
        X, classes = data.X, data.classes
        labels = np.maximum(data.code, 0).astype(np.int32)
        effective = self._effective(data.weight, data.factors, labels)
        gamma = self.gamma
        if isinstance(gamma, str):
            gamma = 1.0 / X.shape[1] if gamma == "auto" else gamma_of(X, data.weight)
        parts, weights = X.parts(labels), X.parts(effective)
        double = any(X.each(block_double, [(weight,) for weight in weights], common=(float(gamma), float(self.C))))
        visits = int(np.count_nonzero(effective > 0))
        some = np.zeros((1, X.shape[1]))  # what the options ask of the rows, the partitions have said
        options = replace(self._options(some, len(classes), float(gamma), np.ones(1), visits), double=double)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        threads = thread_count(self.n_jobs)
        judge: Any = PartitionedObjective(X, labels, effective, options, threads)
        solver = TravellingSolver(
            options, self._tour(parts, weights, rng), X, control.deadline, objective=judge, rows=self.epochs * visits,
            threads=threads,
        )
        result = run(solver, control)
        return result, self._attributes(result, classes, options)

    def _tour(self, parts: list[Any], weights: list[FloatArray], rng: np.random.Generator) -> Iterable[list[Visit]]:
        """Partitions with rows that count, an epoch at a time."""
        some = [i for i, weight in enumerate(weights) if (weight > 0).any()]
        for _ in range(self.epochs):
            order = rng.permutation(some).tolist() if self.shuffle else some
            seeds = rng.integers(2**31, size=len(order)).tolist() if self.shuffle else [None] * len(order)
            yield [Visit(i, parts[i], weights[i], seed) for i, seed in zip(order, seeds)]
