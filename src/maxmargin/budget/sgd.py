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

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH
from maxmargin.budget.merging import merge_table
from maxmargin.budget.model import Options, model_coefficients, squared_norm
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
    """The model: f_c(x) = Σ_j coef[c, j]·k(x, centres[j]) + intercept[c]; `state` lets a later run go on."""

    centres: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0)))
    coef: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    intercept: FloatArray = field(default_factory=lambda: np.empty(0))
    state: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)


class BudgetSolver:
    """Steps over `epochs`, an iterable of passes, each an iterable of batches.

    `state` continues an earlier run; `refit` improves the coefficients after the last pass.
    """

    def __init__(
        self,
        options: Options,
        epochs: Iterable[Iterable[Batch]],
        state: dict[str, Any] | None = None,
        refit: Refit | None = None,
    ) -> None:
        self.options = options
        self._epochs = epochs
        self._refit = refit
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
            table=merge_table(options.grid_size),
            audit=options.audit,
        )
        if state is not None:
            self._core.restore(**state)

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        stride = self._steps_per_call()
        for epoch in self._epochs:
            before = self._core.counters()
            for batch in epoch:
                matrix = as_matrix(batch.x)
                for begin in range(0, len(batch.order), stride):
                    self._core.run(matrix, batch.order[begin : begin + stride], batch.labels, batch.weights)
                    yield None
            yield self._turn(before, self._core.counters())
        if self._refit is not None:
            state = self._core.state()
            self._refitted = model_coefficients(state, self.options.lam, self.options.averaging)
            yield from self._refit.turns(state["centres"], *self._refitted, self.options)
        return Status.COMPLETED

    def result(self, status: Status) -> BudgetResult:
        state, counters, options = self._core.state(), self._core.counters(), self.options
        coef, intercept = self._refitted or model_coefficients(state, options.lam, options.averaging)
        seconds = {"search": counters["search_seconds"], "maintenance": counters["merge_seconds"]}
        if self._refit is not None:
            seconds["refit"] = self._refit.seconds
        return BudgetResult(
            status=status,
            timings=seconds,
            centres=state["centres"],
            coef=coef,
            intercept=intercept,
            state=state,
            counters=counters,
        )

    def _steps_per_call(self) -> int:
        """Steps that take the core some 50 ms, so that clock and Ctrl-C are looked at in time."""
        options = self.options
        work = options.budget * (options.features + 20.0)
        if options.maintenance == "merge":
            per_partner = {"lookup-wd": 5, "lookup-h": 50, "gss": 250, "gss-precise": 1000}
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
