"""Budgeted stochastic gradient descent for the kernel SVM.

    minimise  ½|w|² + C·Σ_i c_i·max(0, 1 - y_i·f(x_i)),    f(x) = <w, phi(x)> (+ b, a constant feature of value 1)

as Pegasos on lambda/2·|w|² + 1/N·Σ …, lambda = 1/(N·C), N visits per epoch, step 1/(lambda·t). The model is

    w = 1/(lambda·t)·Σ_j beta_j·phi(s_j),      at most `budget` support vectors s_j

y = ±1; with more than two classes one output per class against the rest, all sharing support vectors and kernel values.
A violator (y·f < 1) of weight c enters with beta = c·y; when that is one support vector too many, budget maintenance
(maintenance.py) follows. Gaussian kernel exp(-gamma·|x-z|²).

Stops after the given passes over the data: there is no dual bound and no tolerance, so the status is "completed".
Cost: a pass is N·budget·features multiplications, in blocks (native/budget_sgd.hpp).

Wang, Crammer, Vucetic, "Breaking the curse of kernelization", JMLR 2012; Glasmachers and Qaadan, "Speeding Up Budgeted
SGD SVM Training with Precomputed Golden Section Search", whose algorithm 1 is the merging step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH
from maxmargin.budget.merging import merge_table
from maxmargin.budget.model import Options, model_coefficients, refitted_state, squared_norm
from maxmargin.budget.refit import Refit
from maxmargin.data.matrix import as_matrix
from maxmargin.runtime import Result, Status, Turn

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """Rows to visit in this order. labels (class numbers) and weights are indexed by row."""

    x: Any
    order: NDArray[np.int64]
    labels: NDArray[np.int32]
    weights: FloatArray


@dataclass
class BudgetResult(Result):
    """The model: f_c(x) = Σ_j coef[c, j]·k(x, centres[j]) + intercept[c].

    `state` lets a later run go on; `counters` are of all runs so far, `steps` of this one.
    """

    centres: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0)))
    coef: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    intercept: FloatArray = field(default_factory=lambda: np.empty(0))
    state: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    chunk: int = 0  # rows of the only chunk; 0: passes over a whole set


Objective = Callable[[NDArray[Any], FloatArray, FloatArray], float]


class BudgetSolver:
    """Steps over `epochs`, an iterable of passes, each an iterable of batches.

    `state` and `counters` continue an earlier run; `refit` improves the coefficients after the last pass. `objective`
    judges the final model (centres, coef, intercept); without it, the running losses of the last pass do.
    """

    def __init__(
        self,
        options: Options,
        epochs: Iterable[Iterable[Batch]],
        state: dict[str, Any] | None = None,
        counters: dict[str, float] | None = None,
        refit: Refit | None = None,
        objective: Objective | None = None,
    ) -> None:
        self.options = options
        self._epochs = epochs
        self._counters = counters or {}
        self._refit = refit
        self._objective = objective
        self._running = float("nan")
        self._complete = False
        self._refitted: tuple[FloatArray, FloatArray] | None = None
        core = _core.BudgetSgd64 if options.double else _core.BudgetSgd32
        self._core = core(
            budget=options.budget,
            features=options.features,
            outputs=options.outputs,
            gamma=options.gamma,
            lam=options.lam,
            intercept=options.intercept,
            maintenance=MAINTENANCE[options.maintenance],
            search=MERGE_SEARCH[options.merge_search],
            table=_tables(options),
            audit=options.audit,
        )
        if state is not None:
            self._core.restore(**state)

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        epochs = iter(self._epochs)
        epoch = next(epochs, None)
        while epoch is not None:
            before = self._core.counters()
            yield from self._visit(epoch)
            turn = self._turn(before, self._core.counters())
            self._running = turn.objective
            epoch = next(epochs, None)
            self._complete = epoch is None and self._refit is None  # a limit that strikes now cuts nothing
            yield turn
        if self._refit is not None:
            state = self._core.state()
            self._refitted = model_coefficients(state, self.options.lam, self.options.averaging)
            yield from self._refit.turns(state["centres"], *self._refitted, self.options)
        return Status.COMPLETED

    def _visit(self, epoch: Iterable[Batch]) -> Generator[None, None, None]:
        """One pass, with safe points between the calls of the core: none after the last, when the turn is due."""
        stride = self._steps_per_call()
        started = False
        for batch in epoch:
            matrix = as_matrix(batch.x)
            for begin in range(0, len(batch.order), stride):
                if started:
                    yield None
                started = True
                self._core.run(matrix, batch.order[begin : begin + stride], batch.labels, batch.weights)

    def result(self, status: Status) -> BudgetResult:
        state, counters, options = self._core.state(), self._core.counters(), self.options
        coef, intercept = self._refitted or model_coefficients(state, options.lam, options.averaging)
        if self._refitted is not None:
            state = refitted_state(state, coef, intercept, options.lam)
        seconds = {"search": counters["search_seconds"], "maintenance": counters["merge_seconds"]}
        if self._refit is not None:
            seconds["refit"] = self._refit.seconds
        return BudgetResult(
            status=Status.COMPLETED if status is Status.MAX_TIME and self._complete else status,
            objective=self._objective(state["centres"], coef, intercept) if self._objective else self._running,
            timings=seconds,
            centres=state["centres"],
            coef=coef,
            intercept=intercept,
            state=state,
            counters={name: value + self._counters.get(name, 0.0) for name, value in counters.items()},
            steps=int(counters["steps"]),
        )

    def _steps_per_call(self) -> int:
        """Steps that take the core some 50 ms, so that clock and Ctrl-C are looked at in time."""
        options = self.options
        work = options.budget * (options.features + 20.0)
        if options.maintenance == "merge":
            per_partner = {"lookup-wd": 5 if options.outputs == 1 else 50, "lookup-h": 50, "gss": 250, "gss-precise": 1000}
            work += options.budget * per_partner["gss-precise" if options.audit else options.merge_search]
        elif options.maintenance == "project":
            work += 50.0 * options.budget**2
        return int(min(max(3e8 / work, 64), 1 << 20))

    def _turn(self, before: dict[str, float], now: dict[str, float]) -> Turn:
        seen = {name: now[name] - before[name] for name in now}
        weight, steps = max(seen["weight"], 1e-300), max(seen["steps"], 1.0)
        state = self._core.state()
        coef, intercept = model_coefficients(state, self.options.lam, self.options.averaging)
        loss = seen["loss"] / self.options.lam / steps  # C·Σ c·loss over as many visits as an epoch has
        objective = squared_norm(state["centres"], coef, intercept, self.options.gamma) / 2 + loss
        extra = {
            "accuracy": seen["correct"] / weight,
            "merging_frequency": (seen["merges"] + seen["removals"] + seen["projections"]) / steps,
        }
        return Turn(objective, float("nan"), float("nan"), self._core.count, extra)


def _tables(options: Options) -> Any:
    """The lookup tables where the search reads them, else None."""
    read = options.merge_search == "lookup-h" or (
        options.outputs == 1 and (options.audit or options.merge_search == "lookup-wd")
    )
    return merge_table(options.grid_size) if options.maintenance == "merge" and read else None
