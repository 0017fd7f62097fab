"""Decomposition of the one QP (PSMO paper, sections 4 and 5): select → tile → inner → rows → update → check.

    minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_{group} β fixed      β = s∘alpha, see problem/formulations.py
    f = Kβ per sample,  score = c − f
    stop     max over groups of  max_up score − min_low score  ≤  tol      (72); without groups the largest |score| that
             a variable could follow
    cost     per turn O(q² d + n · changed · d) for q = |working set|, less what the row cache holds

Beyond the paper: kernel rows are fetched after the inner solve, and only for variables that changed; samples that
cannot move are left out (shrinking) and brought up to date with one blocked pass K(X_left, X_changed)·Δβ before the
final test, so what converges is the whole problem. A turn that cannot move anything ends the run as a stall.

Before a run counts as converged f is verified: sums that have missed their targets, an f that has drifted by rounding,
float32 kernel values too coarse for tol are mended, and the test made again. A run that stalls or overflows with float32
values goes on with float64 ones: one run, one count of turns, one trace. If float64 overflows too, that is an error.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.ending import EPSILON, Point, Progress, violations
from maxmargin.decomposition.inner import solve_tile
from maxmargin.decomposition.working_set import (
    MB,
    Violators,
    WorkingSet,
    largest_tile,
    merge,
    row_bytes,
    without_partner,
    working_set_size,
)
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import TooLargeError
from maxmargin.runtime import NEVER, Comm, Control, Deadline, Result, Serial, Status, Turn, run, settled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PATIENCE = 1.0  # seconds after Ctrl-C or the end of the time for which the report may still be completed
MOST_STEPS = 10**7  # and a thousand per sample: a problem that wants more (unscaled features) will not end in sensible time
HIT_COST = 0.8  # what a cached row saves of the time of a computed one, about
SHRINK_EVERY = 10  # turns; a look costs one pass over the active samples, a cut one pass over the cached rows
DRIFT = 1e-4  # of tol: rounding that f may have gathered on its way
PATH = 8.0  # times Σ|β|: rounding of a longer way is worth a fresh sum, of a shorter one a fresh sum has as much
AUDITED = 256  # samples, at most a sixteenth, whose f is computed again in float64 where float32 may be too coarse
TRIALS = 3  # how often a run that was not what it seemed may go on


class Overflow(ArithmeticError):
    """A kernel value, a sum of them or a variable is not a finite number."""


@dataclass(frozen=True)
class Options:
    """How to solve; none of it changes what the answer is."""

    tol: float = 1e-3
    working_set_size: int | None = None
    cache_size: float = 200.0  # MB
    shrinking: bool = True
    threads: int = 1
    inner_solver: str = "smo"


@dataclass
class DualResult(Result):
    """Solution of the QP: alpha per variable, one multiplier per group, f = Kβ per sample, and in which precision.

    A number that nobody waited for is NaN: after Ctrl-C, or time that ended before the first pass, f may not be known
    for all samples.
    """

    alpha: FloatArray = field(default_factory=lambda: np.empty(0))
    multipliers: FloatArray = field(default_factory=lambda: np.empty(0))
    f: FloatArray = field(default_factory=lambda: np.empty(0))
    dtype: Any = np.float64


def solve(
    qp: QP,
    kernel: Any,
    options: Options | None = None,
    control: Control | None = None,
    *,
    alpha: FloatArray | None = None,
    f: FloatArray | None = None,
    comm: Comm | None = None,
) -> DualResult:
    """Solve `qp` with the kernel values of `kernel` (see decomposition/rows.py), from `alpha` or a cold start.

    `f` is K·β at `alpha`, if it is known already; computing it costs one kernel value per sample and support vector.
    """
    control = control or Control()
    solver = Decomposition(qp, kernel, options or Options(), alpha=alpha, f=f, comm=comm, deadline=control.deadline)
    return run(solver, control)


class Decomposition:
    """One run of the decomposition method; driven by runtime.run."""

    def __init__(
        self,
        qp: QP,
        kernel: Any,
        options: Options,
        *,
        alpha: FloatArray | None = None,
        f: FloatArray | None = None,
        comm: Comm | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.qp, self.kernel, self.options, self.comm = qp, kernel, options, comm or Serial()
        self.deadline = deadline
        self.halves = qp.n_variables // qp.n
        self.groups = max(1, len(qp.targets))
        shape = (self.halves, qp.n)
        self.center = np.ascontiguousarray(qp.center.reshape(shape))
        signed = qp.sign * qp.upper
        self.lo = np.minimum(signed, 0.0).reshape(shape)
        self.hi = np.maximum(signed, 0.0).reshape(shape)
        self.start = (qp.sign * (qp.start() if alpha is None else alpha)).reshape(shape)
        self.group = qp.group.reshape(shape)
        self.size = working_set_size(
            options.working_set_size, options.cache_size, qp.n, qp.n_variables, kernel.dtype.itemsize
        )
        self.violation = np.inf
        self.trials = 0
        self.timings = dict.fromkeys(("start", "select", "tile", "inner", "update", "shrink"), 0.0)
        self.counts = dict.fromkeys(("inner_steps", "rows", "cache_hits", "unshrinks", "inner_fallbacks"), 0)
        self.values = self.first_values = 0.0  # kernel values computed in updates, and in sums at the start
        self._at(self.start, f)

    def _at(self, beta: FloatArray, f: FloatArray | None = None) -> None:
        """Stand at β, with its f or with all of it to be computed."""
        self.beta = beta.copy()
        self.f = np.zeros(self.qp.n) if f is None else f.copy()
        self.pending: list[slice] = []  # samples whose f is still to be summed
        support = int(np.count_nonzero(beta.any(axis=0)))
        if f is None and support:
            self.pending = list(self.kernel.pieces(self.qp.n, support))
        self.part: Any = None
        self.left: list[tuple[IntArray, FloatArray]] = []  # inactive samples, and the β that their f reflects
        self.working_set = WorkingSet(self.size, self.size // 2)
        self.path = 0.0  # what β has gone through since f was summed: Σ |Δβ_i| m_i

    # ---- the outer loop ------------------------------------------------------------------------------------------

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        while True:
            begin, status = self.start, Status.STALLED
            try:
                ended = yield from self._converge()
                if ended is not Status.STALLED or self._out_of_steps():
                    return ended
                begin = self.beta
                wider = self.kernel.wider()
            except Overflow:
                wider = self.kernel.wider()
                if wider is None:
                    raise TooLargeError(self.kernel.describe(), float(self.qp.upper.max())) from None
            if wider is None or row_bytes(self.qp.n, wider.dtype.itemsize) > self.options.cache_size * MB:
                return status
            self.kernel, self.trials = wider, 0
            self.size = min(self.size, largest_tile(self.options.cache_size, wider.dtype.itemsize))
            self._at(begin)

    def _converge(self) -> Generator[Turn | None, None, Status | None]:
        """Turns with the present kernel values, until the whole problem is solved or they do not help."""
        tol = self.options.tol
        extremes, progress = yield from self._ready()
        checked = looked = False
        while True:
            # Look at the whole problem when the active part is done, and once before, to catch what was left too soon.
            if self.violation <= tol or (self.left and not checked and self.violation <= 10 * tol):
                if self.left:
                    checked = True
                    yield from self._unshrink()
                    extremes = self._look()
                if self.violation > tol:
                    continue
                if not self._renewed():
                    return None if self._sure() else Status.STALLED
                if self.trials > TRIALS:
                    return Status.STALLED
                extremes, progress = yield from self._ready()
                continue
            gain = self._turn(extremes)
            extremes = self._look()
            support = int(np.count_nonzero(self.beta.any(axis=0)))
            yield Turn(np.nan, self.dual, self.violation, support, {"active": float(self.part.size)})
            if self._no_time_left():
                return Status.MAX_TIME
            if self._out_of_steps():
                return Status.STALLED
            if self.violation > tol and progress.stalled(gain, self.dual):
                if self.left and not looked:  # once: a sample left out may be what is missing
                    looked = True
                    yield from self._unshrink()
                    extremes, progress = self._look(), Progress(self.dual)
                elif self._renewed() and self.trials <= TRIALS:  # f may have drifted
                    extremes, progress = yield from self._ready()
                else:
                    return Status.STALLED
            elif self.options.shrinking and progress.turns % SHRINK_EVERY == 0:
                self._shrink(extremes)

    def _turn(self, extremes: FloatArray) -> float:
        """One working set: select, solve, update. Returns the gain in the dual value."""
        with _clock(self.timings, "select"):
            variables = self._select(extremes)
        samples, column = variables, np.arange(len(variables))
        if self.halves > 1:
            samples, column = np.unique(variables % self.qp.n, return_inverse=True)
        with _clock(self.timings, "tile"):
            tile, place = self._tile(samples, column)
            seated = np.empty_like(variables)  # in the tile's order
            seated[place] = variables
            beta, lo, hi, score, group = self.part.read(seated)
        before = beta.copy()
        with _clock(self.timings, "inner"):
            # A tenth of the outer violation is accurate enough for now; all variables at once want the real thing.
            whole = len(variables) == self.qp.n_variables
            tol = 0.5 * self.options.tol if whole else max(0.5 * self.options.tol, 0.1 * self.violation)
            new_score = score.copy()
            steps, fell_back = solve_tile(
                self.options.inner_solver, tile, beta, lo, hi, new_score, group, len(self.qp.targets), tol,
                200 * len(variables),
            )
            self.counts["inner_steps"] += steps
            self.counts["inner_fallbacks"] += fell_back
        # ½ βᵀKβ − cᵀβ is quadratic, so its change is the mean of the slopes at both ends.
        gain = 0.5 * float((beta - before) @ (score + new_score))
        if not np.isfinite(gain):
            raise Overflow
        with _clock(self.timings, "update"):
            then = self.beta[:, samples].sum(axis=0)
            self.beta.ravel()[seated] = beta
            gain += self._one_half_each(samples)
            self.part.write(seated, self.beta.ravel()[seated])
            change = self.beta[:, samples].sum(axis=0) - then
            moved = change != 0
            rows = int(moved.sum())
            hits = self.kernel.update(self.part, samples[moved], change[moved])
            self.counts["rows"] += rows
            self.counts["cache_hits"] += hits
            self.values += (rows - HIT_COST * hits) * self.part.size
            self.path += float(np.sum(np.abs(change) * _of(self.kernel.magnitude, samples)))
        self.dual += gain
        return gain if moved.any() else 0.0

    def _one_half_each(self, samples: IntArray) -> float:
        """Regression with one sum: a and a* both positive gain nothing, and hide their difference. Returns what it gains."""
        if self.halves == 1 or len(self.qp.targets) == 2:
            return 0.0
        both = self.beta[:, samples]
        common = np.minimum(both[0], -both[1])
        some = samples[common > 0]
        if not len(some):
            return 0.0
        common, total = common[common > 0], self.beta[:, some].sum(axis=0)
        self.beta[0, some], self.beta[1, some] = np.maximum(total, 0.0), np.minimum(total, 0.0)
        self.part.write(np.concatenate([some, some + self.qp.n]), self.beta[:, some].ravel())
        return float(common @ (self.center[1, some] - self.center[0, some]))

    # ---- f, and whether it is what it seems ------------------------------------------------------------------------

    def _ready(self) -> Generator[None, None, tuple[FloatArray, Progress]]:
        """Sum up f where it is not known, and begin at β with everyone active."""
        largest = float(np.max(self.kernel.magnitude))
        if not largest * largest <= np.finfo(self.kernel.dtype).max:
            raise Overflow
        yield from self._sum_up()
        with _clock(self.timings, "start"):
            state = (self.center, self.lo, self.hi, self.beta, self.group, self.f)
            self.part = self.kernel.part(*state, self._bytes_for_rows())
            self.dual = float(self._point().dual()[0])
        if not np.isfinite(self.dual):
            raise Overflow
        return self._look(), Progress(self.dual)

    def _sum_up(self) -> Generator[None, None, None]:
        """f where it is pending, a piece at a time: a run stopped on the way can go on."""
        everyone = np.arange(self.qp.n)
        support = np.flatnonzero(self.beta.any(axis=0))
        coef = self.beta.sum(axis=0)[support]
        while self.pending:
            with _clock(self.timings, "start"):
                piece = everyone[self.pending[0]]
                self.f[piece] = self.kernel.sum(piece, support, coef)
                self.pending.pop(0)
                self.first_values += float(len(piece)) * len(support)
            yield None

    def _renewed(self) -> bool:
        """Where β misses its sums or f has drifted, begin again from β: whether that was so."""
        point = self._point()
        size = float(np.sum(np.abs(self.beta).sum(axis=0) * self.kernel.magnitude))
        drift = EPSILON * float(np.max(self.kernel.magnitude)) * self.path
        missed = point.missed().any()
        if not missed and (self.path <= PATH * size or drift <= DRIFT * self.options.tol):
            return False
        self.trials += 1
        self._at((self.qp.sign * self.qp.repaired(point.alpha)).reshape(self.beta.shape) if missed else self.beta)
        return True

    def _sure(self) -> bool:
        """Whether kernel values are fine enough to tell that the violation is below tol."""
        tol = self.options.tol
        if self.kernel.dtype == np.float64:
            return self._known_violation(self._point()) <= tol
        coef = self.beta.sum(axis=0)
        # Rounding of many values cancels for the most part: four times what chance leaves of it is no reason to look.
        spread = float(np.sqrt(np.sum(np.square(coef * self.kernel.magnitude))))
        if 4 * self.kernel.noise * float(np.max(self.kernel.magnitude)) * spread <= 0.25 * tol:
            return True
        self._point()  # brings f up to date
        ids = np.unique(np.linspace(0, self.qp.n - 1, max(1, min(AUDITED, self.qp.n // 16))).astype(np.int64))
        support = np.flatnonzero(coef)
        error = np.abs(self.kernel.wider().sum(ids, support, coef[support]) - self.f[ids]).max(initial=0.0)
        return bool(2 * error <= 0.5 * tol)

    def _known_violation(self, point: Point) -> float:
        """Of all samples; with the rounding of f where float64 does not tell whether it is below tol."""
        rounding: FloatArray | float = 0.0
        if self.kernel.dtype == np.float64:
            m = self.kernel.magnitude
            each = self.kernel.noise * m * float(np.sum(np.abs(self.beta).sum(axis=0) * m))
            if 2 * np.max(each) > self.options.tol:
                rounding = np.tile(np.broadcast_to(each, self.qp.n), self.halves)
        return self._violation(self._reduced(point.extremes(rounding)[0]))

    def _violation(self, extremes: FloatArray) -> float:
        return float(violations(len(self.qp.targets), extremes[None, :])[0])

    def _point(self, known: NDArray[np.bool_] | None = None) -> Point:
        if self.part is not None:
            self.f[self.part.active] = self.part.f
        return Point.of(self.qp, self.beta, self.f, known)

    def _look(self) -> FloatArray:
        """(max_up per group, min_low per group) over the active samples of all ranks; keeps the violation."""
        mine = np.array(self.part.extremes())
        if np.isnan(mine).any():
            raise Overflow
        extremes = self._reduced(mine)
        self.violation = self._violation(extremes)
        return extremes

    def _reduced(self, mine: FloatArray) -> FloatArray:
        if not len(self.qp.targets):  # no equality: a score of 0 is the other side
            mine[0], mine[2] = max(mine[0], 0.0), min(mine[2], 0.0)
        up = self.comm.allreduce(mine[:2], "max")
        low = self.comm.allreduce(mine[2:], "min")
        return np.concatenate([up, low])

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _bytes_for_rows(self) -> float:
        """What the tile, and a smaller one while it grows, leave of the cache; they never take more than half of it."""
        budget = self.options.cache_size * MB
        itemsize = int(self.kernel.dtype.itemsize)
        return max(budget - 1.25 * self.size**2 * itemsize, budget / 2, row_bytes(self.qp.n, itemsize))

    def _select(self, e: FloatArray) -> IntArray:
        if self.qp.n_variables <= self.size and self.part.size == self.qp.n:
            return np.arange(self.qp.n_variables)
        k = self.working_set.n_new
        groups = []
        for g in range(self.groups):
            above, below = (0.0, 0.0) if not len(self.qp.targets) else (e[2 + g], e[g])
            mine = Violators(*self.part.candidates(g, k, above, below))
            columns = [self.comm.allgather(column) for column in mine]
            groups.append(merge([Violators(*c) for c in zip(*columns)], k))
        if not len(self.qp.targets):
            groups = [without_partner(groups[0])]
        members = self.working_set.members
        beta, lo, hi = (a.ravel()[members] for a in (self.beta, self.lo, self.hi))
        # alpha = 0 is β = lo for s = +1 and β = hi for s = −1
        zero, full = np.where(hi > 0, beta == lo, beta == hi), np.where(hi > 0, beta == hi, beta == lo)
        place = np.where(zero, 1.0, np.where(full, 2.0, 0.0))
        alone = self.halves == 2 and self.groups == 1 and self.size >= 64
        return self.working_set.select(groups, place, self.qp.n if alone else None)

    def _tile(self, samples: IntArray, column: IntArray) -> tuple[NDArray[Any], IntArray]:
        """K between the working set's variables, padded for the core's vectors, and where each of them stands in it."""
        tile, place = self.kernel.tile(self.part, samples)
        q, at = len(column), place[column]
        if len(samples) == q:
            return tile, at
        both = np.zeros((-(-q // 16) * 16,) * 2, tile.dtype)  # regression: both halves of a sample are in
        both[:q, :q] = tile[np.ix_(at, at)]
        return both, np.arange(q)

    def _shrink(self, extremes: FloatArray) -> None:
        with _clock(self.timings, "shrink"):
            keep = self.part.movable(*extremes)
            if len(keep) >= 0.8 * self.part.size or len(keep) < 2:
                return
            active = self.part.active
            out = np.delete(active, keep)
            self.f[active] = self.part.f
            self.left.append((out, self.beta.sum(axis=0)))
            self.part.restrict(keep)
            still = np.zeros(self.qp.n, bool)
            still[active[keep]] = True
            self.working_set.forget(np.tile(still, self.halves))

    def _unshrink(self) -> Generator[None, None, None]:
        """Bring the inactive samples up to date and take back those that can move."""
        self.counts["unshrinks"] += 1
        now = self.beta.sum(axis=0)
        while True:  # piece by piece, each once: a run stopped on the way can go on
            stale = next((k for k, (_, then) in enumerate(self.left) if then is not now), None)
            if stale is None:
                break
            with _clock(self.timings, "shrink"):
                ids, then = self.left.pop(stale)
                moved = np.flatnonzero(now != then)
                end = min(next(self.kernel.pieces(len(ids), len(moved))).stop, len(ids))
                some = ids[:end]
                if len(moved):
                    self.f[some] += self.kernel.sum(some, moved, (now - then)[moved])
                self.left += [(some, now)] + ([(ids[end:], then)] if end < len(ids) else [])
            yield None
        with _clock(self.timings, "shrink"):
            extremes = self._reduced(self._point().extremes()[0])
            ids = np.sort(np.concatenate([ids for ids, _ in self.left]))
            back = self._can_move(ids, extremes)
            took = ids[back]
            state = (self.center, self.lo, self.hi, self.beta, self.group)
            self.part.extend(took, *(np.ascontiguousarray(a[:, took]) for a in state), self.f[took])
            self.left = [(ids[~back], now)] if not back.all() else []

    def _can_move(self, ids: IntArray, e: FloatArray) -> NDArray[np.bool_]:
        """Which samples are not held at a bound by a score beyond the other side's extreme."""
        score, group, beta = self.center[:, ids] - self.f[ids], self.group[:, ids], self.beta[:, ids]
        rise = (beta < self.hi[:, ids]) & (score >= e[2 + group])
        fall = (beta > self.lo[:, ids]) & (score <= e[group])
        return np.asarray((rise | fall).any(axis=0))

    def _seconds(self, values: float) -> float:
        """About how long so many kernel values take."""
        spent, made = (self.timings["update"], self.values) if self.values else (self.timings["start"], self.first_values)
        return values * spent / max(made, 1.0)

    def _pass_seconds(self) -> float:
        """About how long it would take to bring the inactive samples up to date."""
        return self._seconds(sum(len(ids) for ids, _ in self.left) * float(np.count_nonzero(self.beta.any(axis=0))))

    def _no_time_left(self) -> bool:
        """Whether that pass, which the report needs, would end after the deadline."""
        return self.deadline.passed(self._pass_seconds())

    def _out_of_steps(self) -> bool:
        return self.counts["inner_steps"] > MOST_STEPS + 1000 * self.qp.n

    # ---- the end -------------------------------------------------------------------------------------------------

    def result(self, status: Status) -> DualResult:
        point = self._point(self._completed(status))
        multipliers = point.multipliers()[0]
        result = DualResult(
            status=status,
            n_support=int(np.count_nonzero(self.beta.any(axis=0))),
            timings={**self.timings, **self.counts},
            alpha=point.alpha,
            multipliers=multipliers,
            f=self.f,
            dtype=self.kernel.dtype,
        )
        if point.known.all():
            result.violation = self._known_violation(point)
            result.gap = float(point.gap(multipliers[None, :])[0])
            result.objective = float(point.dual()[0]) + result.gap
            if not np.isfinite([result.violation, result.objective]).all():
                raise TooLargeError(self.kernel.describe(), float(self.qp.upper.max()))
        result.status = settled(status, result.violation, self.options.tol)
        return result

    def _completed(self, status: Status) -> NDArray[np.bool_]:
        """Bring f up to date for the report: for which samples that was done. Who presses Ctrl-C does not wait for long."""
        known = np.ones(self.qp.n, bool)
        if self.part is not None and status is not Status.CONVERGED:
            self._point()
            if self.left and status is Status.INTERRUPTED and self._pass_seconds() > PATIENCE:
                known[np.concatenate([ids for ids, _ in self.left])] = False
                return known
            if self.left:
                _drained(self._unshrink())
            self._renewed()
        hurry = status in (Status.INTERRUPTED, Status.MAX_TIME)
        support = np.count_nonzero(self.beta.any(axis=0))
        while self.pending:
            waiting = np.zeros(self.qp.n, bool)
            for piece in self.pending:
                waiting[piece] = True
            if hurry and self._seconds(float(waiting.sum()) * support) > PATIENCE:
                return ~waiting
            next(self._sum_up())
        return known


def _of(values: FloatArray | float, ids: IntArray) -> FloatArray | float:
    """The entries of an array, or the number that stands for all of them."""
    return values[ids] if isinstance(values, np.ndarray) else values


def _drained(steps: Generator[None, None, None]) -> None:
    for _ in steps:
        pass


class _clock:
    """Adds the time spent inside to one entry of a dict."""

    def __init__(self, timings: dict[str, float], name: str) -> None:
        self._timings, self._name = timings, name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        self._timings[self._name] += time.perf_counter() - self._start
