"""Small QPs side by side (pairs of classes), one thread of the core each: native/decomposition/many.hpp.

    minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_{group} β fixed         one per problem, see problem/formulations.py
    turn     SMO over all variables, at most 200 steps for each, until the scores that it keeps say violation < tol;
             then f = Kβ is summed anew in double, and the test made on that
    cost     O(rows that move · samples of the problem · d): kernel rows are computed when a step asks for them, and what
             a class shares with itself once for all problems that it is in

The core is asked for slices of some hundredths of a second; clock, progress, callback and Ctrl-C live between them. What is
known of the solutions is computed here for all problems at once. A solution whose precision is in doubt is not called
solved: `unsure` names those that the decomposition of decomposition/solver.py must look at.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.decomposition.ending import Point, cancels, violations
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.solver import MOST_STEPS
from maxmargin.decomposition.working_set import MB
from maxmargin.kernel_values import NativeValues
from maxmargin.problem.formulations import QP
from maxmargin.runtime import NEVER, Deadline, Solver, Status, Turn, settled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SLICE = 0.03  # seconds between two looks at the clock and Ctrl-C
# Samples of a problem up to which all kernel values are computed beforehand, each once and in large tiles. On demand a value
# between two classes is computed for the rows of both, and few rows at a time: that takes as long when a third of the rows
# are used. In problems of some hundred samples so many are (measured: 46 to 100 % at up to 600 samples, 16 to 30 % at
# 1,500), and where entries are sparse, where 64 rows at a time cost as much as one.
WHOLE = 700
WHOLE_SPARSE = 1500
LAST_STEPS = 64  # for problems that a stopped run has not come to: enough for a rough vote, too few to be waited for
CONVERGED, STALLED, ROUNDS, STEPS = 2, 3, 4, 5  # native/decomposition/many.hpp, Progress
ENDS = {CONVERGED: Status.CONVERGED, STALLED: Status.STALLED, ROUNDS: Status.MAX_ITER, STEPS: Status.STALLED}


@dataclass(frozen=True)
class Problem:
    """A QP on the samples `chosen`, which are those of one or two blocks, one after the other (-1: no second one).

    `alpha` is a warm start; `solver` makes the solver of a problem that is more than one QP, which is none for `Many`.
    """

    qp: QP
    chosen: IntArray
    blocks: tuple[int, int] = (0, -1)
    alpha: FloatArray | None = None
    solver: Callable[[Deadline], Solver[DualResult]] | None = None


class Many:
    """A solver of all problems; block b is samples ends[b] … ends[b + 1] of `kernel`."""

    def __init__(
        self, problems: Sequence[Problem], kernel: NativeValues, ends: IntArray, options: Options, max_turns: int = -1,
        deadline: Deadline = NEVER,
    ) -> None:  # fmt: skip
        self.kernel, self.tol, self.deadline, self.done = kernel, options.tol, deadline, 0
        qps = [problem.qp for problem in problems]
        self.offset = np.cumsum([0, *(qp.n for qp in qps)])
        beta = np.concatenate([p.qp.sign * (p.qp.start() if p.alpha is None else p.alpha) for p in problems])
        self.start = point = Point.of_several(qps, beta, np.zeros(len(beta)))
        signed = point.sign * point.upper
        samples = kernel.samples
        Core: Any = _core.Many32 if samples.dtype == np.float32 else _core.Many64
        first, second = (np.array([p.blocks[k] for p in problems], np.int64) for k in range(2))
        every = [(0, 0), *pairwise(ends)]  # 0 is no block
        self.samples = np.concatenate([np.arange(*every[b + 1]) for p in problems for b in p.blocks])
        most = MOST_STEPS + 1000 * max(qp.n for qp in qps)
        self._core = Core(
            samples.points, kernel.rows, ends, first, second, self.offset, point.center, np.minimum(signed, 0.0),
            np.maximum(signed, 0.0), beta, point.group, point.targets.shape[1], self.tol,
            max_turns if max_turns >= 0 else most, most, options.shrinking, int(options.cache_size * MB / 2),
            self._mostly_wanted(), min(samples.threads, len(problems)),
        )  # fmt: skip

    def _mostly_wanted(self) -> bool:
        """Whether problems are so small that most of their kernel rows will be asked for."""
        n = np.diff(self.offset)
        mean = float(np.square(n).sum() / n.sum())  # by the kernel values that they are about
        return mean <= (WHOLE_SPARSE if self.kernel.samples.sparse else WHOLE)

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        while self.done < len(self.offset) - 1:
            left = self.deadline.left()
            self.done = self._core.run(SLICE if left is None else min(SLICE, left), np.inf if left is None else left)
            yield Turn(np.nan, np.nan, np.nan, -1, {"done": float(self.done)})
        return None

    def results(self, status: Status) -> tuple[list[DualResult], BoolArray]:
        """The solutions, and of which it is not sure that they are what they seem. `status` is why the run ended."""
        self._core.finish(LAST_STEPS)
        with np.errstate(all="ignore"):  # what is not a finite number is one of the doubts
            return self._judged(status)

    def _judged(self, status: Status) -> tuple[list[DualResult], BoolArray]:
        core = self._core
        progress, rounds, steps, rows = core.progress, core.rounds, core.steps, core.rows
        point = replace(self.start, beta=core.beta, f=core.f)
        b = point.multipliers()
        gaps, alpha = point.gap(b), point.alpha
        objectives = point.dual() + gaps
        fine, worst = self._precision(point)
        sure = np.isfinite(objectives) & np.isfinite(worst) & fine & ~point.missed()
        support = point.total((alpha != 0).astype(np.float64))
        parts = []
        for p, how in enumerate(progress.tolist()):
            at = slice(self.offset[p], self.offset[p + 1])
            cut = how in (STEPS, STALLED) and status is not Status.CONVERGED  # it would have gone on
            ended = status if cut else ENDS[how]
            part = DualResult(
                status=settled(ended, float(worst[p]), self.tol), n_iter=int(rounds[p]), objective=float(objectives[p]),
                gap=float(gaps[p]), violation=float(worst[p]), n_support=int(support[p]),
                timings={"inner_steps": float(steps[p]), "rows": float(rows[p])}, alpha=alpha[at], multipliers=b[p],
                f=point.f[at], dtype=self.kernel.dtype,
            )  # fmt: skip
            if not sure[p] and part.status is Status.CONVERGED:
                part.status = status if status is not Status.CONVERGED else Status.STALLED
            parts.append(part)
        return parts, (progress == STALLED) | ((progress == CONVERGED) & ~sure)

    def _precision(self, point: Point) -> tuple[BoolArray, FloatArray]:
        """Of each problem, whether kernel values are fine enough to tell that its violation is below tol; the violation."""
        found = violations(point.targets.shape[1], point.extremes())
        each = np.broadcast_to(self.kernel.magnitude, len(self.kernel.rows))[self.samples]
        largest = np.maximum.reduceat(each, point.begin)
        if self.kernel.dtype == np.float64:  # the bound of decomposition/ending.py
            error = self.kernel.noise * largest * point.total(np.abs(point.beta) * each)
            return 2 * error <= self.tol, found
        spread = np.sqrt(point.total(np.square(point.beta * each)))
        return cancels(self.kernel.noise * largest * spread, self.tol), found
