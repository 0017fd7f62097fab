"""Budgeted stochastic gradient descent for the kernel SVM.

    minimise  ½|w|² + C·Σ_i c_i·max(0, 1 - y_i·f(x_i)),    f(x) = <w, phi(x)> (+ b, a constant feature of value 1)

as Pegasos on lambda/2·|w|² + 1/N·Σ …, lambda = 1/(N·C), N visits per epoch, step 1/(lambda·t). The model is

    w = 1/(lambda·t)·Σ_j beta_j·phi(s_j),      at most `budget` support vectors s_j

y = ±1; with more than two classes one output per class against the rest, all sharing support vectors and kernel values.
A violator (y·f < 1) of weight c enters with beta = c·y; when that is one support vector too many, budget maintenance
(maintenance.py) follows. Gaussian kernel exp(-gamma·|x-z|²).

Stops after the given passes over the data: there is no dual bound and no tolerance, so the status is "completed".

What the turns report as objective is an estimate: ½|w|² of the model at the end of the pass, exact, plus C·N times the
mean loss of the pass, each row judged before the model learnt from it. The result's is exact where `objective` is given.
Cost: a pass is N·budget·features multiplications, in blocks (native/budget/sgd.hpp).

Wang, Crammer, Vucetic, "Breaking the curse of kernelization", JMLR 2012; Glasmachers and Qaadan, "Speeding Up Budgeted
SGD SVM Training with Precomputed Golden Section Search", whose algorithm 1 is the merging step.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH
from maxmargin.budget.merging import merge_table
from maxmargin.budget.model import Options, model_coefficients, refitted_state, squared_norms
from maxmargin.budget.objective import Objective
from maxmargin.budget.refit import Refit
from maxmargin.data.matrix import as_matrix
from maxmargin.runtime import Progress, Result, Status, Turn

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
    refitted: bool = False  # whether the coefficients are those of the refit


class BudgetSolver:
    """Steps over `epochs`, an iterable of passes, each an iterable of batches.

    `state` and `counters` continue an earlier run; `refit` improves the coefficients after the last pass. `objective`
    judges the final model, and the refit by it; without it, the running losses of the last pass do. `rows` is the number
    of visits in all, where it is known.
    """

    def __init__(
        self,
        options: Options,
        epochs: Iterable[Iterable[Batch]],
        state: dict[str, Any] | None = None,
        counters: dict[str, float] | None = None,
        refit: Refit | None = None,
        objective: Objective | None = None,
        rows: int | None = None,
        threads: int = 1,
    ) -> None:
        self.options = options
        self._epochs, self._rows, self._threads = epochs, rows, threads
        self._refit, self._objective = refit, objective
        self._running = float("nan")
        self._complete = False
        self._refitted: tuple[FloatArray, FloatArray] | None = None
        held = 0 if state is None else len(state["label"])
        self._slots = options.budget if rows is None else min(options.budget, held + rows)
        self._core = self._resumed(state)
        nothing = self._core.take_counters()
        self._before = counters or {}
        self._run, self._pass = dict(nothing), dict(nothing)  # counters of this run, and of the pass under way

    def _resumed(self, state: dict[str, Any] | None, slots: int | None = None) -> Any:
        """A model of the core, empty or in this state, which may be larger than the budget if there are `slots` for it."""
        options = self.options
        core = _core.BudgetSgd64 if options.double else _core.BudgetSgd32
        made = core(
            budget=options.budget,
            slots=slots or self._slots,
            features=options.features,
            outputs=options.outputs,
            gamma=options.gamma,
            lam=options.lam,
            intercept=options.intercept,
            maintenance=MAINTENANCE[options.maintenance],
            search=MERGE_SEARCH[options.merge_search],
            table=_table(options),
            drop=options.drop_useless,
            audit=options.audit,
        )
        if state is not None:
            made.restore(**state)
        return made

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        epochs = iter(self._epochs)
        epoch = next(epochs, None)
        while epoch is not None:
            self._pass = dict.fromkeys(self._pass, 0.0)
            yield from self._visit(epoch)
            turn = self._turn()
            self._running = turn.objective
            epoch = next(epochs, None)
            self._complete = epoch is None and self._refit is None  # a limit that strikes now cuts nothing
            yield turn
        if self._refit is not None:
            state = self._core.state()
            self._refitted = model_coefficients(state, self.options.lam, self.options.averaging)
            yield from self._refit.turns(state["centres"], *self._refitted)
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
                for name, value in self._core.take_counters().items():
                    self._run[name] += value
                    self._pass[name] += value

    def progress(self) -> Progress:
        """Rows visited; the refit counts as one pass per stage of it, of which it does not know the length."""
        epoch, seen = self.options.visits, int(self._run["steps"])
        if self._refit is None:
            return Progress(seen, self._rows, "row")
        total = None if self._rows is None else self._rows + epoch * self._refit.stages
        if self._refitted is None:
            return Progress(seen, total, "row")
        return Progress(seen + epoch * self._refit.done, total, "row", "refit")

    def result(self, status: Status) -> BudgetResult:
        state, options = self._core.state(), self.options
        models = [model_coefficients(state, options.lam, options.averaging)]
        if self._refitted is not None:
            models.append(self._refitted)
        begun = time.perf_counter()
        values = self._objective(state["centres"], models) if self._objective else [self._running] * len(models)
        chosen = len(models) - 1 if values[-1] <= values[0] or not self._objective else 0
        coef, intercept = models[chosen]
        if chosen:
            state = refitted_state(state, coef, intercept, options.lam)
        seconds = {"search": self._run["search_seconds"], "maintenance": self._run["merge_seconds"]}
        if self._refit is not None:
            seconds["refit"] = self._refit.seconds
        if self._objective is not None:
            seconds["objective"] = time.perf_counter() - begun
        return BudgetResult(
            status=Status.COMPLETED if status is Status.MAX_TIME and self._complete else status,
            objective=values[chosen],
            n_support=len(state["centres"]),
            timings=seconds,
            centres=state["centres"],
            coef=coef,
            intercept=intercept,
            state=state,
            counters={name: value + self._before.get(name, 0.0) for name, value in self._run.items()},
            steps=int(self._run["steps"]),
            refitted=bool(chosen),
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
        return int(min(max(3e8 / work, 8), 1 << 20))  # the core measures 8 rows at once

    def _turn(self) -> Turn:
        seen, options = self._pass, self.options
        weight, steps = max(seen["weight"], 1e-300), max(seen["steps"], 1.0)
        state = self._core.state()
        coef, intercept = model_coefficients(state, options.lam, options.averaging)
        loss = seen["loss"] / options.lam / steps  # C·Σ c·loss over as many visits as an epoch has
        norms = squared_norms(state["centres"], coef, options.gamma, self._threads) + intercept**2
        extra = {
            "accuracy": seen["correct"] / weight,
            "merging_frequency": (seen["merges"] + seen["removals"] + seen["projections"]) / steps,
        }
        return Turn(float(norms.sum()) / 2 + loss, float("nan"), float("nan"), self._core.count, extra)


def _table(options: Options) -> Any:
    """The lookup table where the search reads it, else None."""
    read = options.merge_search == "lookup-h" or (
        options.outputs == 1 and (options.audit or options.merge_search == "lookup-wd")
    )
    return merge_table(options.grid_size, options.merge_table) if options.maintenance == "merge" and read else None
