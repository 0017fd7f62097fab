"""Small QPs side by side (pairs of classes), one thread of the core each: native/decomposition/many.hpp.

    minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_{group} β fixed         one per problem, see problem/formulations.py
    turn     SMO over all variables, at most 200 steps for each, until the scores that it keeps say violation < tol;
             then f = Kβ is summed anew in double, and the test made on that
    cost     O(rows that move · samples of the problem · d): kernel rows are computed when a step asks for them, and what
             a class shares with itself once for all problems that it is in

The core is asked for slices of some hundredths of a second; clock, progress, callback and Ctrl-C live between them. A
solution whose precision is in doubt is not called solved: `results` names those that the decomposition of
decomposition/solver.py must look at.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.decomposition.ending import cancels
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.solver import MOST_STEPS
from maxmargin.decomposition.working_set import MB
from maxmargin.kernel_values import NativeValues, Source
from maxmargin.problem.formulations import QP, ROUNDING
from maxmargin.runtime import NEVER, Deadline, Solver, Status, Turn, settled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SLICE = 0.03  # seconds between two looks at the clock and Ctrl-C
# Samples of a problem up to which all kernel values are computed beforehand, each once and in large tiles. On demand a value
# between two classes is computed for the rows of both, and few rows at a time: that takes as long when a third of the rows
# are used. In problems of some hundred samples so many are (measured: 46 to 100 % at up to 600, 16 to 30 % at 1,500).
WHOLE = 700
LAST_STEPS = 64  # for problems that a stopped run has not come to: enough for a rough vote, too few to be waited for
CONVERGED, STALLED, ROUNDS, STEPS = 2, 3, 4, 5  # native/decomposition/many.hpp, Progress
NUMBERS = 11  # that the core says of a problem before those by group
ENDS = {CONVERGED: Status.CONVERGED, STALLED: Status.STALLED, ROUNDS: Status.MAX_ITER, STEPS: Status.STALLED}


@dataclass(frozen=True)
class Problem:
    """A QP on the samples `chosen`, which are those of one or two blocks, one after the other (-1: no second one).

    Of regression, which has two variables per sample, both halves are the same block.
    `alpha` is a warm start; `solver` makes the solver of a problem that is more than one QP, which is none for `Many`, and
    `kept` the snapshot that it goes on from. `known` is f = K·β at `alpha`, where somebody knows it, and what it has gone
    through since it was summed (State.path).
    """

    qp: QP
    chosen: IntArray
    blocks: tuple[int, int] = (0, -1)
    alpha: FloatArray | None = None
    solver: Callable[[Source, Options, Deadline], Solver[DualResult]] | None = None
    kept: dict[str, FloatArray] | None = None
    known: tuple[FloatArray, float] | None = None


class Many:
    """A solver of all problems; block b is samples ends[b] … ends[b + 1] of `kernel`."""

    def __init__(
        self, problems: Sequence[Problem], kernel: NativeValues, ends: IntArray, options: Options, max_turns: int = -1,
        deadline: Deadline = NEVER,
    ) -> None:  # fmt: skip
        self.kernel, self.tol, self.deadline, self.done = kernel, options.tol, deadline, 0
        qps = [problem.qp for problem in problems]
        n = [qp.n_variables for qp in qps]
        self.halves = n[0] // qps[0].n
        self.offset, most = np.cumsum([0, *n]), MOST_STEPS + 1000 * max(n)
        self._sign, center, upper, group = (
            np.concatenate([getattr(qp, name) for qp in qps]) for name in ("sign", "center", "upper", "group")
        )
        self.targets = np.array([qp.targets for qp in qps])
        alpha = np.concatenate([p.qp.start() if p.alpha is None else p.alpha for p in problems])
        samples = kernel.samples
        Core: Any = _core.Many32 if samples.dtype == np.float32 else _core.Many64
        first, second = np.array([p.blocks for p in problems], np.int64).T
        room = options.cache_size * MB / 2
        workers = int(room / (samples.dtype.itemsize * max(n) ** 2))  # that have room for all rows of the largest
        self._core = Core(
            samples.points, kernel.rows, ends, first.copy(), second.copy(), self.offset, self._sign, center, upper, alpha,
            group, self.targets.shape[1], self.tol, max_turns if max_turns >= 0 else most, most, options.shrinking,
            int(room / options.processes), self._mostly_wanted(), max(1, min(samples.threads, len(problems), workers)),
        )  # fmt: skip

    def _mostly_wanted(self) -> bool:
        """Whether problems are so small that most of their kernel rows will be asked for."""
        n = np.diff(self.offset)
        mean = float(np.square(n).sum() / n.sum())  # by the kernel values that they are about
        return mean <= WHOLE * self.halves

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        while self.done < len(self.offset) - 1:
            left = self.deadline.left()
            self.done = self._core.run(SLICE if left is None else min(SLICE, left), np.inf if left is None else left)
            yield Turn(np.nan, np.nan, np.nan, -1, {"done": float(self.done)})
        return None

    def snapshot(self) -> list[dict[str, FloatArray]]:
        """alpha of each problem."""
        alpha = self._sign * self._core.beta + 0.0
        return [{"alpha": alpha[begin:end]} for begin, end in pairwise(self.offset)]

    def results(self, status: Status) -> tuple[list[DualResult], list[bool]]:
        """The solutions, and of which it is not sure that they are what they seem. `status` is why the run ended."""
        core, ends, groups = self._core, self.offset.tolist(), self.targets.shape[1]
        core.finish(LAST_STEPS)
        alpha, f = self._sign * core.beta + 0.0, core.f
        magnitude = np.full(len(self.kernel.rows), self.kernel.magnitude)
        found = core.judged(self.targets, magnitude).reshape(len(ends) - 1, -1)
        multipliers = found[:, NUMBERS : NUMBERS + groups]
        parts, unsure = [], []
        for p, row in enumerate(found.tolist()):
            how, rounds, steps, rows, dual, gap, violation, support, *_ = row
            sure = isfinite(dual + gap) and isfinite(violation) and self._told(row)
            begin, end = ends[p], ends[p + 1]
            parts.append(DualResult(
                status=self._status(int(how), violation, sure, status), n_iter=int(rounds), objective=dual + gap, gap=gap,
                violation=violation, n_support=int(support), timings={"inner_steps": steps, "rows": rows},
                alpha=alpha[begin:end], multipliers=multipliers[p], f=f[begin : begin + (end - begin) // self.halves],
                dtype=self.kernel.dtype,
            ))  # fmt: skip
            unsure.append(how == STALLED or (how == CONVERGED and not sure))
        return parts, unsure

    def _status(self, how: int, violation: float, sure: bool, status: Status) -> Status:
        """Of a problem that ended in this way (`how`), in a run that ended for the reason `status`."""
        if how == CONVERGED and sure and violation <= self.tol:
            return Status.CONVERGED
        cut = how in (STEPS, STALLED) and status is not Status.CONVERGED  # it would have gone on
        ended = settled(status if cut else ENDS[how], violation, self.tol)
        if sure or ended is not Status.CONVERGED:
            return ended
        return status if status is not Status.CONVERGED else Status.STALLED

    def _told(self, row: list[float]) -> bool:
        """Of a problem, whether numbers are fine enough to tell: kernel values, that its violation is below tol, and
        coefficients, that their sums are what they must be."""
        largest, absolute, square = row[NUMBERS - 3 : NUMBERS]
        if self.kernel.dtype == np.float64:  # the bound of decomposition/ending.py
            fine = 2 * (self.kernel.noise * largest * absolute) <= self.tol
        else:
            fine = cancels(self.kernel.noise * largest * sqrt(square), self.tol)
        groups = self.targets.shape[1]
        off, mass = row[NUMBERS + groups : NUMBERS + 2 * groups], row[NUMBERS + 2 * groups :]
        return fine and all(miss <= 4 * ROUNDING * weight for miss, weight in zip(off, mass))
