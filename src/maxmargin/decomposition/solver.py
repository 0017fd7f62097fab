"""Decomposition of the one QP (PSMO paper, sections 4 and 5): select → tile → inner → rows → update → check.

    minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_{group} β fixed      β = s∘alpha, see problem/formulations.py
    f = Kβ per sample,  score = c − f
    stop     max over groups of  max_up score − min_low score  ≤  tol      (72); without groups the largest |score| that
             a variable could follow
    cost     per turn O(q² d + n · changed · d) for q = |working set|, less what the row cache holds

Beyond the paper: kernel rows are fetched after the inner solve, and only for variables that changed; samples that
cannot move are left out (shrinking) and brought up to date with one blocked pass K(X_left, X_changed)·Δβ before the
final test, so what converges is the whole problem. A turn that cannot move anything ends the run as a stall.

Before a run counts as converged f is verified (verified.py): sums that have missed their targets, an f that has drifted
by rounding, float32 kernel values too coarse for tol are mended, and the test made again. A run that stalls or overflows
with float32 values goes on with float64 ones: one run, one count of turns, one trace. If float64 overflows too, that is
an error.

Where several ranks share a run (docs/mpi.md), `qp` and `alpha` are those of the samples that a rank holds, targets those
of all. The first rank solves the inner problem and tells the others; each updates the f of its samples. All take the same
turns.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.decomposition.costs import Costs
from maxmargin.decomposition.ending import Progress
from maxmargin.decomposition.inner import solve_tile
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.state import Overflow, Seats, State, over
from maxmargin.decomposition.verified import known_violation, refine, renewed, require_finite, sure, told_apart, too_coarse
from maxmargin.decomposition.working_set import Violators, WorkingSet, merge, packed, unpacked, without_partner
from maxmargin.kernel_values import Source
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import TooLargeError
from maxmargin.runtime import NEVER, Control, Deadline, Status, Turn, drained, known_to_all, run, settled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PATIENCE = 1.0  # seconds after Ctrl-C or the end of the time for which the report may still be completed
MOST_STEPS = 10**7  # and a thousand per sample: a problem that wants more (unscaled features) will not end in sensible time
SHRINK_EVERY = 10  # turns; a look costs one pass over the active samples, a cut one pass over the cached rows
TRIALS = 3  # how often a run that was not what it seemed may go on
AUDITED_FIRST = 16  # turns, and after twice as many, and so on: what is spent in vain is as much again at most
AGAIN = 0.05  # of the way that β has come: how much longer it may be with float32 values once f had to be made exact


def solve(
    qp: QP,
    kernel: Source,
    options: Options | None = None,
    control: Control | None = None,
    *,
    alpha: FloatArray | None = None,
    f: FloatArray | None = None,
) -> DualResult:
    """Solve `qp` with the kernel values of `kernel` (see kernel_values/), from `alpha` or a cold start.

    `f` is K·β at `alpha`, if it is known already; computing it costs one kernel value per sample and support vector.
    """
    control = control or Control()
    solver = Decomposition(qp, kernel, options or Options(), alpha=alpha, f=f, deadline=control.deadline)
    return run(solver, control)


class Decomposition:
    """One run of the decomposition method; driven by runtime.run."""

    def __init__(
        self,
        qp: QP,
        kernel: Source,
        options: Options,
        *,
        alpha: FloatArray | None = None,
        f: FloatArray | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.qp, self.options, self.deadline = qp, options, deadline
        self.comm, self.team = kernel.comm, kernel.team
        self.costs = Costs()
        every = over(self.comm)
        halves = int(every.most(qp.n_variables // qp.n if qp.n else 0))  # a rank without samples does not know
        start = qp.start(every) if alpha is None else alpha
        self.state = State(qp, kernel, options, start, f, self.costs, halves)
        self.start = self.state.beta
        self.n_variables = halves * kernel.total
        self.trials, self._all_free = 0, _core.FreeStep()
        self.predicts = kernel.dtype  # precision in which decision values are as sure as the solution

    @property
    def kernel(self) -> Any:
        """Kernel values in the precision that the run has come to."""
        return self.state.kernel

    # ---- the outer loop ------------------------------------------------------------------------------------------

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        while True:
            begin = self.start
            try:
                ended = yield from self._converge()
                if ended is not Status.STALLED or self._out_of_steps():
                    return ended
                begin = self.state.beta
            except Overflow:
                if self.kernel.wider() is None:
                    raise self._too_large() from None
            if not self.state.widen(begin):
                return Status.STALLED
            self.trials = 0

    def _converge(self) -> Generator[Turn | None, None, Status | None]:
        """Turns with the present kernel values, until the whole problem is solved or they do not help."""
        state, tol = self.state, self.options.tol
        extremes, progress = yield from self._ready()
        checked = looked = False
        while True:
            # Look at the whole problem when the active part is done, and once before, to catch what was left too soon.
            if state.violation <= tol or (state.left and not checked and state.violation <= 10 * tol):
                if state.left:
                    checked = True
                    yield from state.unshrink()
                    extremes = state.look()
                if state.violation > tol:
                    continue
                if renewed(state):
                    if not self._may_try_again():
                        return Status.STALLED
                    extremes, progress = yield from self._ready()
                elif sure(state):
                    return None
                elif self.kernel.dtype == np.float64 or not self._may_try_again():
                    return Status.STALLED
                else:
                    extremes, progress = yield from self._refined()
                    if state.violation <= tol:
                        if too_coarse(state):
                            self.predicts = np.dtype(np.float64)
                        return None
                continue
            gain = self._turn(extremes)
            extremes = state.look()
            yield Turn(np.nan, self.dual, state.violation, state.support, {"active": float(state.active)})
            # The pass that the report needs would end too late.
            if self.deadline.passed_for_all(self.team, state.unshrink_seconds()):
                return Status.MAX_TIME
            if self._out_of_steps() or self._misled(progress.turns):
                return Status.STALLED
            if state.violation > tol and progress.stalled(gain, self.dual):
                if state.left and not looked:  # once: a sample left out may be what is missing
                    looked = True
                    yield from state.unshrink()
                    extremes, progress = state.look(), Progress(self.dual)
                elif renewed(state) and self._may_try_again():  # f may have drifted
                    extremes, progress = yield from self._ready()
                else:
                    return Status.STALLED
            elif self.options.shrinking and progress.turns % SHRINK_EVERY == 0 and state.shrink(extremes):
                self.working_set.forget(state.are_active(self.working_set.members % self.kernel.total))

    def _ready(self) -> Generator[None, None, tuple[FloatArray, Progress]]:
        """Sum up f where it is not known, and begin at β with everyone active."""
        require_finite(self.state)
        self.farthest = self.least = np.inf
        yield from self.state.sum_up()
        self.dual = self.state.dual_at_start()
        self.working_set = WorkingSet(self.state.size, self.state.size // 2)
        return self.state.look(), Progress(self.dual)

    def _refined(self) -> Generator[None, None, tuple[FloatArray, Progress]]:
        """f of float64 wherever it matters; whoever may move by that is active."""
        yield from refine(self.state)
        self.farthest = self.state.path + AGAIN * self.state.summed
        if self.state.left:
            yield from self.state.unshrink()
        self.dual = self.state.dual_at_start()
        return self.state.look(), Progress(self.dual)

    def _may_try_again(self) -> bool:
        self.trials += 1
        return self.trials <= TRIALS

    def _misled(self, turns: int) -> bool:
        """Whether float32 values lead to the optimum of the rounded K, which may lie far off: they go on and on from an
        exact f, or f has come to be off by much of the least that it was said to violate."""
        if self.kernel.dtype == np.float64:
            return False
        self.least = min(self.least, self.state.violation)
        if self.farthest < np.inf and self.state.path > self.farthest:
            return True
        if turns < AUDITED_FIRST or turns & (turns - 1):
            return False
        active = np.sort(self.state.part.active) - self.kernel.first
        return not told_apart(self.state, self.least, active)

    def _out_of_steps(self) -> bool:
        return bool(self.costs.counts["inner_steps"] > MOST_STEPS + 1000 * self.kernel.total)

    def _too_large(self) -> Exception:
        largest = float(self.state.over.most(self.qp.upper.max(initial=0.0)))
        return known_to_all(TooLargeError(self.kernel.describe(), largest))

    def _turn(self, extremes: FloatArray) -> float:
        """One working set: select, solve, update. Returns the gain in the dual value."""
        state, costs, n = self.state, self.costs, self.kernel.total
        with costs.clock("select"):
            variables = self._select(extremes)
        samples, column = variables, np.arange(len(variables))
        if state.halves > 1:
            samples, column = np.unique(variables % n, return_inverse=True)
        with costs.clock("tile"):
            seats = state.seats(samples)
            tile, place = self.kernel.tile(state.part, samples)
        at = variables // n * len(samples) + column  # of the variables in the rows of the seats
        with costs.clock("inner"):
            beta, gain = self._told(seats, *(self._solved(seats, tile, place, column, at) if self.team.rank == 0 else ()))
        if not np.isfinite(gain):
            raise Overflow
        moved = state.move(seats, beta)
        self._note(variables, *(a.ravel()[at] for a in (beta, seats.lo, seats.hi)))
        self.dual += gain
        return gain if moved else 0.0

    def _solved(
        self, seats: Seats, tile: NDArray[Any], place: IntArray, column: IntArray, at: IntArray
    ) -> tuple[FloatArray, float, int, bool]:
        """The inner problem: new β by half and sample, what that gains, steps, and whether the inner solver failed."""
        tile, stands = self._by_variable(tile, place, column)
        seated = np.empty_like(at)  # in the tile's order
        seated[stands] = at
        beta, lo, hi, center = (a.ravel()[seated] for a in (seats.beta, seats.lo, seats.hi, seats.center))
        group = seats.group.ravel()[seated]
        score = center - seats.f[seated % len(seats.samples)]
        before, new_score = beta.copy(), score.copy()
        # A tenth of the outer violation is accurate enough for now; all variables at once want the real thing.
        least = 0.5 * self.options.tol
        tol = least if len(at) == self.n_variables else max(least, 0.1 * self.state.violation)
        steps, fell_back = solve_tile(
            self.options.inner_solver, tile, beta, lo, hi, new_score, group, len(self.qp.targets), tol, 200 * len(at),
            self._all_free,
        )  # fmt: skip
        # ½ βᵀKβ − cᵀβ is quadratic, so its change is the mean of the slopes at both ends.
        gain = 0.5 * float((beta - before) @ (score + new_score))
        new = seats.beta.copy()
        new.ravel()[seated] = beta
        return new, gain + self._one_half_each(new, seats.center), steps, fell_back

    def _one_half_each(self, beta: FloatArray, center: FloatArray) -> float:
        """Regression with one sum: a and a* both positive gain nothing, and hide their difference. Returns what it gains."""
        if len(beta) == 1 or len(self.qp.targets) == 2:
            return 0.0
        common = np.minimum(beta[0], -beta[1])
        some = np.flatnonzero(common > 0)
        if not len(some):
            return 0.0
        total = beta[:, some].sum(axis=0)
        beta[0, some], beta[1, some] = np.maximum(total, 0.0), np.minimum(total, 0.0)
        return float(common[some] @ (center[1, some] - center[0, some]))

    def _told(
        self, seats: Seats, beta: FloatArray | None = None, gain: float = 0.0, steps: int = 0, fell_back: bool = False
    ) -> tuple[FloatArray, float]:
        """What the first rank has found, on all of them: β and gain."""
        if self.team.size > 1:
            news = None if beta is None else np.append(beta.ravel(), [gain, steps, fell_back])
            news = self.team.bcast(news, doubles=seats.beta.size + 3)
            beta, (gain, steps, fell_back) = news[:-3].reshape(seats.beta.shape), news[-3:].tolist()
        assert beta is not None
        self.costs.counts["inner_steps"] += int(steps)
        self.costs.counts["inner_fallbacks"] += int(fell_back)
        return beta, gain

    def _note(self, variables: IntArray, beta: FloatArray, lo: FloatArray, hi: FloatArray) -> None:
        """Where the values of the working set's members lie now, for the next selection."""
        # alpha = 0 is β = lo for s = +1 and β = hi for s = −1
        zero, full = np.where(hi > 0, beta == lo, beta == hi), np.where(hi > 0, beta == hi, beta == lo)
        place = np.where(zero, 1.0, np.where(full, 2.0, 0.0))
        members = self.working_set.members
        self.working_set.place = place if members is variables else place[np.searchsorted(variables, members)]

    def _select(self, e: FloatArray) -> IntArray:
        state = self.state
        if self.n_variables <= state.size and state.active == self.kernel.total:
            return np.arange(self.n_variables)
        k, equality = self.working_set.n_new, len(self.qp.targets) > 0
        groups = []
        for g in range(max(1, len(self.qp.targets))):
            above, below = (e[2 + g], e[g]) if equality else (0.0, 0.0)
            groups.append(Violators(*state.part.candidates(g, k, above, below)))
        if self.comm.size > 1:
            ranks = [unpacked(sent, len(groups)) for sent in self.comm.allgather(packed(groups))]
            groups = [merge(same, k) for same in zip(*ranks)]
        alone = state.halves == 2 and len(groups) == 1 and state.size >= 64
        if not equality:
            groups = [without_partner(groups[0])]
        return self.working_set.select(groups, self.kernel.total if alone else None)

    @staticmethod
    def _by_variable(tile: NDArray[Any], place: IntArray, column: IntArray) -> tuple[NDArray[Any], IntArray]:
        """K between the working set's variables, padded for the core's vectors, and where each of them stands in it."""
        q, n, at = len(column), len(place), place[column]
        if n == q:
            return tile, at
        # Regression: of some samples both halves are in. The second ones stand behind the tile, which is copied by rows.
        second = np.ones(q, bool)
        second[np.unique(column, return_index=True)[1]] = False
        twice = at[second]
        both = np.zeros((-(-q // 16) * 16,) * 2, tile.dtype)
        both[:n, :n] = tile[:n, :n]
        both[:n, n:q] = np.take(tile[:n], twice, axis=1)
        both[n:q] = both[twice]
        at[second] = np.arange(n, q)
        return both, at

    def snapshot(self) -> dict[str, FloatArray]:
        """alpha (of the samples held here, in their order): f follows from it, and a certificate from both."""
        return {"alpha": self.qp.sign * self.state.beta.ravel() + 0.0}

    # ---- the end -------------------------------------------------------------------------------------------------

    def result(self, status: Status) -> DualResult:
        try:
            point = self.state.point(self._completed(status))
        except Overflow:
            raise self._too_large() from None
        multipliers = point.multipliers()[0]
        result = DualResult(
            status=status,
            n_support=self.state.support,
            timings={**self.costs.seconds, **self.costs.counts},
            alpha=point.alpha,
            multipliers=multipliers,
            f=self.state.f,
            dtype=max(self.predicts, self.kernel.dtype),
        )
        if self.state.over.all(bool(point.known.all())):
            result.violation = known_violation(self.state, point)
            result.gap = float(point.gap(multipliers[None, :])[0])
            result.objective = self.state.dual() + result.gap
            if not np.isfinite([result.violation, result.objective]).all():
                raise self._too_large()
        result.status = settled(status, result.violation, self.options.tol)
        return result

    def _completed(self, status: Status) -> NDArray[np.bool_]:
        """Bring f up to date for the report: for which samples that was done. Who presses Ctrl-C does not wait for long."""
        state = self.state
        known = np.ones(self.qp.n, bool)
        if not state.pending and status is not Status.CONVERGED:
            if state.left and status is Status.INTERRUPTED and self._too_long(state.unshrink_seconds()):
                known[np.concatenate([samples for samples, _ in state.left])] = False
                return known
            if state.left:
                drained(state.unshrink())
            renewed(state)
        hurry = status in (Status.INTERRUPTED, Status.MAX_TIME)
        while state.pending:
            waiting = np.zeros(self.qp.n, bool)
            for piece in state.pending:
                waiting[piece] = True
            if hurry and self._too_long(self.costs.expected(float(waiting.sum()) * state.support)):
                return ~waiting
            next(state.sum_up())
        return known

    def _too_long(self, seconds: float) -> bool:
        """Whether a pass would try the patience of who has stopped the run; on all ranks what the first one says."""
        return over(self.team).any(self.team.rank == 0 and seconds > PATIENCE)
