"""The best coefficients on support vectors that no longer move: a convex problem of `budget` variables.

    minimise  F(a) = ½·aᵀKa + C·Σ_i c_i·loss(1 - y_i·(R_i·a))        R_ij = k(x_i, s_j),  K_jl = k(s_j, s_l)

one problem per output, all sharing R. An intercept is a column of ones in R and a 1 on K's diagonal. newton.py solves it
from the coefficients of the stochastic gradient. Memory is kept below a limit:

- with more rows than fit in, on some of them, drawn at random, at least ROWS_PER_COEFFICIENT per support vector;
- where these do not fit in with all coefficients, for a block of coefficients after the other, drawn at random, each once,
  the others held. No block raises F. That is less than a minimum of F, and documented as such.

Cost: R once (rows·budget kernel values, twice with blocks), then two products with R and a Cholesky factorisation per step.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.budget.model import FloatArray, Options, decision_values, fill_kernel
from maxmargin.budget.newton import MOST_BYTES, STAGES, Problem, minimise
from maxmargin.budget.objective import WORK, signs
from maxmargin.runtime import one_blas_thread

ROWS_PER_COEFFICIENT = 30  # measured on held-out rows: with 10 the coefficients fit the rows drawn rather than the data
LEAST_BLOCK = 50  # coefficients at a time; with fewer a step of Python takes longer than its arithmetic
CONSTANT = 1 << 19  # bytes of objects that grow with nothing


@dataclass(frozen=True)
class Plan:
    """How many rows the refit uses, and how many coefficients at a time."""

    rows: int
    block: int


def bytes_needed(rows: int, block: int, options: Options) -> float:
    """An upper bound on what the refit allocates, but for copies of the support vectors."""
    unknowns, item = block + options.intercept, 8 if options.double else 4
    per_row, per_pair = MOST_BYTES
    return rows * (unknowns * item + per_row + 16 * options.outputs) + unknowns**2 * (per_pair + 2 * item) + CONSTANT


def plan(rows: int, centres: int, megabytes: float, options: Options) -> Plan:
    """All rows and coefficients if they fit in; else fewer rows; else blocks of coefficients; else an error."""
    room = megabytes * 1e6
    least = min(rows, ROWS_PER_COEFFICIENT * centres)
    each = bytes_needed(1, centres, options) - bytes_needed(0, centres, options)
    fitting = int((room - bytes_needed(0, centres, options)) / each)
    if fitting >= least:
        return Plan(min(rows, fitting), centres)
    low = min(LEAST_BLOCK, centres)
    needed = bytes_needed(least, low, options)
    if needed > room:
        raise ValueError(
            f"refit_memory={megabytes:g} (megabytes) is too small for a refit of {centres} coefficients on {least} rows: "
            f"give {needed * 1.01e-6:.3g} or more, or refit=False"
        )
    high = centres
    while high - low > 1:  # the largest block that fits in
        middle = (low + high) // 2
        low, high = (middle, high) if bytes_needed(least, middle, options) <= room else (low, middle)
    return Plan(least, low)


class Refit:
    """Improve the coefficients of a model on these rows of x; `weight` is one number per entry of rows.

    BLAS runs on one thread: the products are bound by memory, and the pools of NumPy and SciPy would fight for cores.
    """

    def __init__(
        self,
        x: Any,
        rows: NDArray[np.int64],
        labels: NDArray[np.int32],
        weight: FloatArray,
        megabytes: float,
        rng: np.random.Generator,
        threads: int,
        options: Options,
    ) -> None:
        self._x, self._rows, self._labels, self._weight = x, rows, labels, weight
        self._megabytes, self._rng, self._threads, self._options = megabytes, rng, threads, options
        self.plan = plan(len(rows), options.budget, megabytes, options)  # an error now, not after hours of training
        self.begun, self.seconds = False, 0.0
        self.done, self.stages = 0, STAGES * options.outputs * -(-options.budget // self.plan.block)

    def turns(self, centres: NDArray[Any], coef: FloatArray, intercept: FloatArray) -> Generator[None, None, None]:
        """Change coef and intercept in place, an output and a block at a time; a safe point after every step."""
        start = time.perf_counter()
        if not len(centres):
            return
        self.begun, options = True, self._options
        self.plan = plan(len(self._rows), len(centres), self._megabytes, options)
        rows, weight = self._sample(self.plan.rows)
        order = self._rng.permutation(len(centres))
        blocks = [np.sort(order[b : b + self.plan.block]) for b in range(0, len(order), self.plan.block)]
        self.done, self.stages = 0, STAGES * options.outputs * len(blocks)
        with one_blas_thread():
            values = None
            if len(blocks) > 1:
                values = np.empty((len(rows), options.outputs))
                for part in self._pieces(rows, centres):
                    found = decision_values(self._x, rows[part], centres, coef, intercept, options.gamma, self._threads)
                    values[part] = found
                    yield
            for block in blocks:
                yield from self._block(centres, coef, intercept, block, rows, weight, values)
                self.seconds = time.perf_counter() - start

    def summary(self, kept: bool) -> dict[str, Any]:
        """What was done, for the user."""
        return {"rows": self.plan.rows, "coefficients": self.plan.block, "kept": kept}

    def _block(
        self,
        centres: NDArray[Any],
        coef: FloatArray,
        intercept: FloatArray,
        block: NDArray[np.int64],
        rows: NDArray[np.int64],
        weight: FloatArray,
        values: FloatArray | None,
    ) -> Generator[None, None, None]:
        """The coefficients of one block; `values` (rows × outputs) are the model's and are kept up, unless it is all."""
        options, size, chosen = self._options, len(block), centres[block]
        design = np.ones((len(rows), size + options.intercept), dtype=centres.dtype)
        for part in self._pieces(rows, chosen):
            fill_kernel(design[part, :size], self._x, rows[part], chosen, options.gamma, self._threads)
            yield
        gram = self._gram(chosen.astype(np.float64))
        for c in range(options.outputs):
            sign = signs(self._labels[rows], c, options)
            a = np.append(coef[c, block], intercept[c]) if options.intercept else coef[c, block]
            problem = Problem(design, gram, sign, options.C * weight)
            if values is not None:
                problem.offset = values[:, c] - problem.product(a)
                problem.pull = self._pull(centres, coef[c], block, intercept[c]) - gram @ a
            best = yield from self._counted(minimise(problem, a))
            coef[c, block] = best[:size]
            if options.intercept:
                intercept[c] = best[size]
            if values is not None:
                values[:, c] = problem.values(best)

    def _counted(self, steps: Generator[bool, None, FloatArray]) -> Generator[None, None, FloatArray]:
        """The steps of a minimisation as safe points; its stages are counted for whoever shows progress."""
        end = self.done + STAGES
        while True:
            try:
                self.done += next(steps)
            except StopIteration as stop:
                self.done = end
                best: FloatArray = stop.value
                return best
            yield

    def _pull(
        self, centres: NDArray[Any], coef: FloatArray, block: NDArray[np.int64], intercept: float
    ) -> FloatArray:
        """The gradient of ½|w|² at the block, with the intercept's."""
        points = centres.astype(np.float64)
        pull = decision_values(points, block, points, coef[None], np.zeros(1), self._options.gamma, self._threads)[:, 0]
        return np.append(pull, intercept) if self._options.intercept else pull

    def _gram(self, points: FloatArray) -> FloatArray:
        """K of these centres in float64, with a 1 for the intercept."""
        n = len(points)
        gram = np.eye(n + self._options.intercept)
        fill_kernel(gram[:n, :n], points, np.arange(n), points, self._options.gamma, self._threads)
        return gram

    def _sample(self, count: int) -> tuple[NDArray[np.int64], FloatArray]:
        """So many rows in random order, and their weights; with fewer than all, one out of each of equal parts."""
        n = len(self._rows)
        if count < n:
            edges = np.arange(count + 1) * n // count
            at = edges[:-1] + (self._rng.random(count) * np.diff(edges)).astype(np.int64)
            at = at[self._rng.permutation(count)]
        else:
            at = self._rng.permutation(n)
        weight = self._weight[at]
        return self._rows[at], weight * (self._weight.sum() / weight.sum()) if count < n else weight

    def _pieces(self, rows: NDArray[np.int64], centres: NDArray[Any]) -> list[slice]:
        """Parts of the rows whose kernel values with these centres take the core a moment."""
        step = max(256, int(WORK / (len(centres) * (self._options.features + 20.0))))
        return [slice(b, b + step) for b in range(0, len(rows), step)]
