"""Several QPs on the same samples in other processes: joblib's, or the workers of a Dask or Ray cluster.

    bundle    some of the problems, in their order, so that pairs of one class stay together; solved there on one thread as
              `Together` would here, kernel values between its classes shared
    rows      those of a block (a class) are put on a cluster once, and every bundle refers to them; joblib's processes get
              them with each bundle

Four bundles per worker even out what takes longer than it seemed. With a time limit there is one per worker, as problems
of a bundle share its time fairly and bundles in a queue would not. What no worker has finished when a run is stopped is
brought to a first model here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from maxmargin.carriers import ATTEMPTS, LOOK, Carrier, LostError, active_carrier, by_joblib, never, workers
from maxmargin.data.rows import stacked
from maxmargin.decomposition.many import Problem
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.sent import Sent, to_its_end
from maxmargin.decomposition.together import Together
from maxmargin.kernel_values import KernelData, Source
from maxmargin.runtime import Control, Deadline, Progress, Status, Total, Turn, steps, total

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PER_WORKER = 4  # bundles
IN_TIME = 0.9  # of the time that is left, for workers: what they have found must be here when it is up


def elsewhere(problems: int) -> bool:
    """Whether so many problems of one fit are the business of other processes, as the active joblib backend says.

    One problem alone has nothing to share out, and a fit that is itself one of many on a cluster stays where it is.
    """
    backend, _ = joblib.parallel.get_active_backend(prefer="threads")
    return problems > 1 and not workers(1)[1] and not (backend.nesting_level or 0)


@dataclass(frozen=True)
class Bundle(Sent):
    """Problems on the samples of some blocks, of which `sizes` are the numbers, numbered within them."""

    problems: list[Problem]
    sizes: list[int]


def solve_bundle(bundle: Bundle, *rows_and_stopped: Any) -> list[DualResult]:
    """Where the rows are: each block's are an argument, the last is whether nobody waits any more."""
    *rows, stopped = rows_and_stopped
    ends = np.cumsum([0, *bundle.sizes])
    members = [np.arange(begin, end) for begin, end in pairwise(ends)]
    control = Control(max_iter=bundle.max_iter, deadline=bundle.deadline)
    source = bundle.data(stacked(rows), np.arange(ends[-1])).source
    together = Together(bundle.problems, source, members, bundle.options, control)
    return list(to_its_end(lambda over: steps(together, replace(control, max_iter=-1), over), stopped).parts)


class Apart:
    """A solver of all problems, each of two blocks, as `Together` is; `data` is what is sent, `source` what is here."""

    def __init__(
        self, problems: Sequence[Problem], source: Callable[[IntArray], Source], blocks: Sequence[IntArray],
        options: Options, control: Control, data: KernelData,
    ) -> None:  # fmt: skip
        self.problems, self._source, self._blocks, self._data = problems, source, blocks, data
        self._options, self._control = options, control
        self._parts: dict[int, DualResult] = {}
        self._put: dict[int, Any] = {}  # block: reference to its rows

    def progress(self) -> Progress:
        return Progress(len(self._parts), len(self.problems), "problem")

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        with active_carrier() as carrier:
            jobs = workers(self._options.threads)[0] if carrier is None else joblib.effective_n_jobs(-1)
            going = self._by_joblib(jobs) if carrier is None else self._on(carrier, jobs)
            before = 0
            for _ in going:
                done, before = len(self._parts) > before, len(self._parts)
                yield Turn(np.nan, np.nan, np.nan, -1, {"done": float(before), "problem": -1.0}) if done else None
        return None

    def result(self, status: Status) -> Total[DualResult]:
        rest = [p for p in range(len(self.problems)) if p not in self._parts]
        if rest:
            some = [self.problems[p] for p in rest]
            here = Together(some, self._source, self._blocks, self._options, self._control)
            self._parts |= dict(zip(rest, here.result(status).parts))
        return total([self._parts[p] for p in range(len(self.problems))])

    def snapshot(self) -> list[dict[str, FloatArray] | None]:
        """Of each problem; None for those that have not begun and would from nothing."""
        begun = [problem.kept or (None if problem.alpha is None else {"alpha": problem.alpha}) for problem in self.problems]
        return [self._parts[p].snapshot() if p in self._parts else kept for p, kept in enumerate(begun)]

    # ---- bundles ---------------------------------------------------------------------------------------------------

    def _bundles(self, jobs: int) -> list[list[int]]:
        """Problems that follow one another, of about as much work, the largest bundle first."""
        count = jobs if self._control.deadline.left() is not None else PER_WORKER * jobs
        work = np.array([float(problem.qp.n_variables) ** 2 for problem in self.problems])
        middle = np.cumsum(work) - work / 2
        number = (middle / work.sum() * count).astype(np.int64)
        bundles = [np.flatnonzero(number == b) for b in np.unique(number)]
        return [bundle.tolist() for bundle in sorted(bundles, key=lambda some: -work[some].sum())]

    def _bundle(self, some: list[int], processes: int) -> tuple[Bundle, list[int]]:
        """What is sent of some problems, and the blocks whose rows go with it."""
        blocks = sorted({b for p in some for b in self.problems[p].blocks})
        place = np.full(len(self._data.rows), -1, np.int64)
        at = np.concatenate([self._blocks[b] for b in blocks])
        place[at] = np.arange(len(at))
        moved = []
        for problem in (self.problems[p] for p in some):
            first, second = problem.blocks
            moved.append(replace(problem, chosen=place[problem.chosen], blocks=(blocks.index(first), blocks.index(second))))
        data, left = self._data, self._control.deadline.left()
        deadline = Deadline.after(None if left is None else IN_TIME * left)
        options = replace(self._options, threads=1, processes=processes)
        sizes = [len(self._blocks[b]) for b in blocks]
        terms = data.kernel, data.dtype, data.known_frame(), options, self._control.max_iter, deadline
        return Bundle(*terms, problems=moved, sizes=sizes), blocks

    def _rows(self, blocks: list[int]) -> list[Any]:
        """Of each block; of a Gram matrix the part that is about all of them."""
        if self._data.kernel.name == "precomputed":
            return [self._data.restricted(np.concatenate([self._blocks[b] for b in blocks])).X]
        return [self._data.rows_of(self._blocks[b]) for b in blocks]

    # ---- where -----------------------------------------------------------------------------------------------------

    def _by_joblib(self, jobs: int) -> Generator[None, None, None]:
        bundles = self._bundles(jobs)
        calls = []
        for number, some in enumerate(bundles):
            bundle, blocks = self._bundle(some, jobs)  # processes of one machine, most often
            calls.append(joblib.delayed(numbered)(number, bundle, *self._rows(blocks)))
        found: list[tuple[int, list[DualResult]]] = []
        for _ in by_joblib(calls, jobs, found):
            for number, parts in found:
                self._parts |= dict(zip(bundles[number], parts))
            found.clear()
            yield None

    def _on(self, carrier: Carrier, jobs: int) -> Generator[None, None, None]:
        waiting: dict[Any, tuple[list[int], int]] = {}  # reference: the problems, attempts before
        try:
            for some in self._bundles(jobs):
                waiting[self._sent(carrier, some)] = some, 0
                yield None
            while waiting:
                for ref in carrier.wait(list(waiting), LOOK):
                    some, attempts = waiting.pop(ref)
                    try:
                        self._parts |= dict(zip(some, carrier.get(ref)))
                    except LostError as lost:
                        if attempts + 1 >= ATTEMPTS:
                            raise self._too_many(some, lost) from lost
                        self._put.clear()  # rows may be lost with it
                        waiting[self._sent(carrier, some)] = some, attempts + 1
                yield None
        finally:
            carrier.drop(list(waiting))

    def _sent(self, carrier: Carrier, some: list[int]) -> Any:
        bundle, blocks = self._bundle(some, 1)
        if self._data.kernel.name == "precomputed":
            refs = carrier.put_all(self._rows(blocks))
        else:
            new = [b for b in blocks if b not in self._put]
            self._put |= dict(zip(new, carrier.put_all(self._rows(new)))) if new else {}
            refs = [self._put[b] for b in blocks]
        return carrier.solve(solve_bundle, carrier.put(bundle), *refs)

    def _too_many(self, some: list[int], lost: LostError) -> RuntimeError:
        samples = max(self.problems[p].qp.n for p in some)
        return RuntimeError(
            f"{ATTEMPTS} workers died while they solved {len(some)} problems of up to {samples} samples: {lost}. Most often "
            f"that is memory: beside the rows they need {self._options.cache_size:.0f} MB for kernel values (cache_size). "
            "Give workers more, or lower cache_size"
        )


def numbered(number: int, bundle: Bundle, *rows: Any) -> tuple[int, list[DualResult]]:
    """The solutions of a bundle, and which one it was: results come in any order."""
    return number, solve_bundle(bundle, *rows, never)
