"""BudgetSVC on dask collections: a model that goes from partition to partition, or one per worker, merged at the end."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from maxmargin.budget.model import Options, averaged_state, decision_values, squared_norms
from maxmargin.budget.objective import signs
from maxmargin.budget.precision import needs_double
from maxmargin.budget.sgd import Batch, BudgetResult, BudgetSolver
from maxmargin.dask.machine import DecidesOnDask
from maxmargin.dask.partitions import IntArray, Partitions
from maxmargin.dask.values import FloatArray, gamma_of
from maxmargin.estimators import budget as local
from maxmargin.estimators._base import check_flags
from maxmargin.estimators._labelled import Labelled
from maxmargin.runtime import Control, Deadline, Result, Status, drained, run, steps, thread_count

MERGES = 256  # support vectors less per call of the core, which then takes some milliseconds


@dataclass(frozen=True)
class Visit:
    """A partition to go through: its number, labels and weights, and the seed of the order in it (None: as it is)."""

    number: int
    labels: NDArray[np.int32]
    weights: FloatArray
    seed: int | None


class TravellingSolver(BudgetSolver):
    """BudgetSolver whose models go to where the rows are, and come back.

    An epoch is a list of rounds, a round a Visit for some of the `models`, which happen side by side. Several models are
    one in the end: their mean, its support vectors merged down to the budget. So that every turn has a model, that is done
    after every epoch; training goes on from the models as they were.
    """

    def __init__(
        self, options: Options, epochs: Iterable[Any], X: Partitions, deadline: Deadline, models: int = 1, **more: Any
    ) -> None:
        super().__init__(options, epochs, **more)
        self._X, self._deadline = X, deadline
        self._states: list[dict[str, Any] | None] = [None] * models
        self._behind = False  # whether the states are ahead of the one model

    def _visit(self, epoch: Iterable[Any]) -> Generator[None, None, None]:
        for visits in epoch:
            if any(self._states):
                yield None
            own = [(v.labels, v.weights, v.seed, self._states[model]) for model, v in visits.items()]
            which, common = [v.number for v in visits.values()], (self.options, self._deadline)
            found = yield from self._X.steps(block_visit, own, which, common)
            for model, (state, counters) in zip(visits, found):
                self._states[model], self._behind = state, True
                self._count(counters)
        yield from self._merge()

    def _merge(self) -> Generator[None, None, None]:
        """All models as one of the budget's size."""
        states = [state for state in self._states if state is not None]
        if len(self._states) == 1 or not states:
            self._core = self._resumed(self._states[0])
        else:
            options = self.options
            together = averaged_state(states, options.lam, options.averaging)
            core = self._resumed(together, max(self._slots, len(together["centres"])))
            while core.count > options.budget:
                core.reduce(MERGES)
                yield None
            self._count(core.take_counters())
            self._core = core
        self._behind = False

    def _count(self, counters: dict[str, float]) -> None:
        for name, value in counters.items():
            self._run[name] += value
            self._pass[name] += value

    def result(self, status: Status) -> BudgetResult:
        if self._behind:  # stopped in the middle of an epoch
            for _ in self._merge():
                pass
        return super().result(status)


def block_visit(
    block: Any, options: Options, deadline: Deadline, labels: NDArray[np.int32], weights: FloatArray, seed: int | None,
    state: dict[str, Any] | None,
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
    where it is: as `fit_stream` does on one machine. Or (`per_worker`) each worker has a model of its own for the partitions
    that it holds, and their mean is merged down to the budget at the end: as many times faster as there are workers, and
    less accurate ([docs/scaling.md](scaling.md) has numbers). `objective_` is that of the model on all rows, a sum over
    partitions.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that was made last.
    per_worker : bool, default=False
        One model per worker, merged at the end. It then depends on which worker holds what.
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

    def __init__(self, *, client: Any = None, per_worker: bool = False, **parameters: Any) -> None:
        super().__init__(client=client, **parameters)
        self.per_worker = per_worker

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*super()._get_param_names(), "per_worker"])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_flags(self, "per_worker")

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
        groups = self._groups(X, [i for i, weight in enumerate(weights) if (weight > 0).any()])
        solver = TravellingSolver(
            options, self._tour(groups, parts, weights, rng), X, control.deadline, len(groups), objective=judge,
            rows=self.epochs * visits, threads=threads,
        )
        result = run(solver, control)
        return result, self._attributes(result, classes, options)

    def _groups(self, X: Partitions, some: list[int]) -> list[list[int]]:
        """The partitions of each model."""
        if not self.per_worker:
            return [some]
        homes = X.homes()
        return [[i for i in some if homes[i] == home] for home in sorted({homes[i] for i in some})]

    def _tour(
        self, groups: list[list[int]], parts: list[Any], weights: list[FloatArray], rng: np.random.Generator
    ) -> Iterable[list[dict[int, Visit]]]:
        """Partitions with rows that count, an epoch at a time, in rounds of one for each model that has some left."""
        for _ in range(self.epochs):
            rounds: list[dict[int, Visit]] = [{} for _ in range(max(map(len, groups)))]
            for model, some in enumerate(groups):
                order = rng.permutation(some).tolist() if self.shuffle else some
                seeds = rng.integers(2**31, size=len(order)).tolist() if self.shuffle else [None] * len(order)
                for visits, i, seed in zip(rounds, order, seeds):
                    visits[model] = Visit(i, parts[i], weights[i], seed)
            yield rounds
