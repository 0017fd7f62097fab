"""Several QPs on the same samples as one run: the small ones first, all threads side by side in the core, then the others.

A problem that is small enough for one thread is one of `Many`; the others are solved by decomposition, and so are those
small ones of which SMO in the precision of the data could not make sure: they go on from where they were. Of these others
two are solved at a time, each with half of the threads and of the cache, as threads that share a problem lose a sixth and
more to each other; one that is more work than all others has all threads. No bit depends on how many there are: which
problems are small, and what each has of the cache (it decides the order of sums), is said by their sizes and cache_size.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.many import Many, Problem
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.solver import Decomposition
from maxmargin.decomposition.working_set import MB, row_bytes
from maxmargin.kernel_values import NativeValues, Source
from maxmargin.runtime import ALONE, Comm, Control, Deadline, Progress, Several, Solver, Status, Total, Turn, total

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Variables up to which SMO over all of them on one thread beats decomposition (measured: twice as fast at 1,000 on one
# thread, as fast at 3,000); a problem that is alone has all threads in decomposition.
SMALL = 2500
SMALL_ALONE = 1500
BESIDE = 2  # others of several classes at a time: Options.beside
WIDEST = 8  # bytes of a kernel value, where float32 is not enough


class Together:
    """A solver of all problems. `source(chosen)` gives kernel values; `blocks` are the samples of each block."""

    def __init__(
        self, problems: Sequence[Problem], source: Callable[[IntArray], Source], blocks: Sequence[IntArray],
        options: Options, control: Control, team: Comm = ALONE,
    ) -> None:  # fmt: skip
        self.problems, self._source, self._options, self._control = problems, source, options, control
        self._team = team
        self._parts: dict[int, DualResult] = {}
        self._begin = {p: problem.alpha for p, problem in enumerate(problems)}
        self._before: dict[int, DualResult] = {}  # what small ones had come to that are not sure
        self._ids: list[int] = []  # of the small ones
        self._many: Many | None = None
        self._rest: Several[DualResult] | None = None
        self._which: list[int] = []  # of the others
        self._made = 0  # turns
        kernel = source(np.concatenate(blocks)) if team.size == 1 else None  # ranks share every problem
        self._native = isinstance(kernel, NativeValues)
        if isinstance(kernel, NativeValues) and (small := self._small(kernel)):
            self._ids = small
            ends, some = np.cumsum([0, *map(len, blocks)]), [problems[p] for p in small]
            self._many = Many(some, kernel, ends, options, control.max_iter, control.deadline)

    def _small(self, kernel: NativeValues) -> list[int]:
        o = self._options
        if o.inner_solver != "smo" or o.working_set_size is not None:
            return []
        most = SMALL if o.beside > 1 else SMALL_ALONE
        fits = int(np.sqrt(o.cache_size * MB / 2 / kernel.dtype.itemsize)) - 32
        return [p for p, x in enumerate(self.problems) if x.solver is None and x.qp.n_variables <= min(most, fits)]

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        for turn in self._every_turn():
            self._made += turn is not None
            yield turn
        return None

    def _every_turn(self) -> Generator[Turn | None, None, None]:
        if self._many is not None:
            for turn in self._many.turns():
                if turn is not None and len(self.problems) > 1:
                    turn.extra["problem"] = -1.0  # all of them
                yield turn
            self._take(Status.CONVERGED)
        self._rest = self._others()
        if self._which:
            yield from self._rest.turns()

    def progress(self) -> Progress:
        if len(self.problems) == 1:
            return Progress(self._made, self._control.max_iter if self._control.max_iter >= 0 else None, "it")
        done = len(self._parts) if self._rest is not None else self._many.done if self._many else 0
        rest = 0 if self._rest is None else self._rest.progress().done
        return Progress(done + rest, len(self.problems), "problem")

    def snapshot(self) -> list[dict[str, FloatArray] | None]:
        """Of each problem; None for those that have not begun and would from nothing."""
        out: dict[int, Any] = {p: problem.kept for p, problem in enumerate(self.problems) if problem.kept}
        out |= {p: {"alpha": alpha} for p, alpha in self._begin.items() if alpha is not None}
        if self._many is not None:
            out |= dict(zip(self._ids, self._many.snapshot()))
        out |= {p: part.snapshot() for p, part in self._parts.items()}
        if self._rest is not None and self._which:
            out |= {p: kept for p, kept in zip(self._which, self._rest.snapshot()) if kept is not None}
        return [out.get(p) for p in range(len(self.problems))]

    def result(self, status: Status) -> Total[DualResult]:
        if self._many is not None and self._rest is None:
            self._take(status)
        self._rest = rest = self._rest or self._others()
        found = rest.result(status).parts if self._which else []
        parts = self._parts | {p: self._whole(p, part) for p, part in zip(self._which, found)}
        return total([parts[p] for p in range(len(self.problems))])

    def _whole(self, p: int, part: DualResult) -> DualResult:
        """Of a problem with what it took before."""
        before = self._before[p].timings if p in self._before else {}
        return replace(part, timings={**part.timings, **{k: part.timings.get(k, 0.0) + v for k, v in before.items()}})

    def _take(self, status: Status) -> None:
        """What the small ones have come to; those that are in doubt go to the others, unless the run was stopped."""
        assert self._many is not None
        parts, unsure = self._many.results(status)
        for p, part, doubt in zip(self._ids, parts, unsure):
            good = isfinite(part.objective) and isfinite(part.violation)
            if not doubt or (good and status is not Status.CONVERGED):
                self._parts[p] = part
            else:
                self._before[p] = part
                self._begin[p] = part.alpha if good else self._begin[p]
        self._many = None if status is Status.CONVERGED else self._many

    def _others(self) -> Several[DualResult]:
        which = [p for p in range(len(self.problems)) if p not in self._parts]
        self._which, alone = self._in_order(which)
        beside, threads = self._options.beside, self._options.threads
        part = max(1, threads // beside)

        def make(k: int, deadline: Deadline) -> Solver[DualResult]:
            p = self._which[k]
            problem, begin, source = self.problems[p], self._begin[p], self._source(self.problems[p].chosen)
            options = replace(self._options, cache_size=self._room(p))
            if k >= alone and isinstance(source, NativeValues):
                options, source = replace(options, threads=part), source.with_threads(part)
            if problem.solver is not None:
                return problem.solver(source, options, deadline)
            f, path = problem.known if problem.known and begin is problem.alpha else (None, 0.0)
            solver = Decomposition(problem.qp, source, options, alpha=begin, f=f, deadline=deadline)
            solver.state.came(path)
            return solver

        control, numbers = self._control, self._which if len(self.problems) > 1 else None
        before = [self._before[p].n_iter if p in self._before else 0 for p in self._which]
        return Several(
            make, len(self._which), deadline=control.deadline, max_turns=control.max_iter, at_least=1, numbers=numbers,
            comm=self._team, workers=beside if threads > 1 and alone < len(self._which) else 1, alone=alone, before=before,
        )  # fmt: skip

    def _room(self, p: int) -> float:
        """Of the cache, in MB: a part of it for each of those solved at a time, if a problem can do with that."""
        o, qp = self._options, self.problems[p].qp
        part = o.cache_size / o.beside
        tile = min(o.working_set_size or 0, qp.n_variables) ** 2 * WIDEST
        return part if max(row_bytes(qp.n, WIDEST), tile) <= part * MB else o.cache_size

    def _in_order(self, which: list[int]) -> tuple[list[int], int]:
        """Those to be solved alone, then those beside one another, the largest first; how many are alone."""
        beside = self._options.beside
        if not self._native or self._options.inner_solver != "smo" or beside == 1:
            return which, len(which)
        work = {p: float(self.problems[p].qp.n_variables) ** 2 for p in which}
        giants = {p for p in which if work[p] > sum(work.values()) / beside or self._room(p) == self._options.cache_size}
        order = sorted(which, key=lambda p: (p not in giants, -work[p]))
        return order, len(giants) + (len(which) - len(giants)) % beside  # nobody is left without one beside it
