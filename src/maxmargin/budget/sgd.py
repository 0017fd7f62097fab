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
from maxmargin.data.matrix import as_matrix
from maxmargin.runtime import Result, Status, Turn

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """What the core must know. `lam` is lambda = 1/(N·C); `outputs` is 1 for two classes, else their number."""

    budget: int
    features: int
    outputs: int
    gamma: float
    lam: float
    maintenance: str = "merge"
    merge_search: str = "lookup-wd"
    grid_size: int = 400
    intercept: bool = False
    averaging: bool = True
    audit: bool = False
    double: bool = False


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
    """Steps over `epochs`, an iterable of passes, each an iterable of batches; `state` continues an earlier run."""

    def __init__(
        self, options: Options, epochs: Iterable[Iterable[Batch]], state: dict[str, Any] | None = None
    ) -> None:
        self.options = options
        self._epochs = epochs
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
        return Status.COMPLETED

    def result(self, status: Status) -> BudgetResult:
        state, counters, options = self._core.state(), self._core.counters(), self.options
        coef, intercept = model_coefficients(state, options.lam, options.averaging)
        seconds = {"search": counters["search_seconds"], "maintenance": counters["merge_seconds"]}
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
            work += options.budget * {"lookup-wd": 5, "lookup-h": 50, "gss": 250, "gss-precise": 1000}[options.merge_search]
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


def model_coefficients(state: dict[str, Any], lam: float, averaging: bool) -> tuple[FloatArray, FloatArray]:
    """alpha (outputs × support vectors) and intercepts: of the last iterate, or of the average of the recent ones."""
    time, start = state["clock"][0], state["clock"][1]
    beta, bias = state["beta"], state["bias"]
    if time == 0:
        return np.zeros_like(beta), np.zeros_like(bias)
    if not averaging or start >= time:
        return beta / (lam * time), bias / (lam * time)
    scale = 2 / (lam * (time * (time + 1) - start * (start + 1)))
    window = state["windows"][: len(beta)]
    return (window[:, :-1] + beta * time) * scale, (window[:, -1] + bias * time) * scale


def decision_values(
    x: Any, centres: NDArray[Any], coef: FloatArray, intercept: FloatArray, gamma: float, threads: int
) -> FloatArray:
    """f (rows × outputs) for the rows of x, a NumPy array or CSR matrix."""
    out = np.zeros((x.shape[0], coef.shape[0]))
    if coef.shape[1] and x.shape[0]:
        _core.budget_decide(as_matrix(x), centres, np.ascontiguousarray(coef), gamma, out, threads)
    return out + intercept


def kernel_matrix(x: Any, centres: NDArray[Any], gamma: float, threads: int) -> NDArray[Any]:
    """k(x_i, centres_j), in the precision of the centres."""
    out = np.empty((x.shape[0], len(centres)), dtype=centres.dtype)
    if out.size:
        _core.budget_kernel(as_matrix(x), centres, gamma, out, threads)
    return out


def squared_norm(centres: NDArray[Any], coef: FloatArray, intercept: FloatArray, gamma: float) -> float:
    """|w|², summed over the outputs, intercepts included (they are regularised)."""
    gram = kernel_matrix(centres, centres, gamma, 1).astype(np.float64)
    return float(np.sum((coef @ gram) * coef) + np.sum(intercept**2))
