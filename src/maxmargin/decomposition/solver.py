"""Decomposition of the one QP (seed 003, sections 4 and 5): select → tile → inner → rows → update → check.

    minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_{group} β fixed      β = s∘alpha, see problem/formulations.py
    f = Kβ per sample,  score = c − f
    stop     max over groups of  max_up score − min_low score  ≤  tol      (72); without groups the largest |score| that
             a variable could follow
    cost     per turn O(q² d + n · changed · d) for q = |working set|, less what the row cache holds

Beyond the paper: kernel rows are fetched after the inner solve, and only for variables that changed; samples that
cannot move are left out (shrinking) and brought up to date with one blocked pass K(X_left, X_changed)·Δβ before the
final test, so what converges is the whole problem. A turn that cannot move anything ends the run as a stall.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.inner import solve_tile
from maxmargin.decomposition.working_set import Violators, WorkingSet, merge
from maxmargin.problem.formulations import QP
from maxmargin.runtime import NEVER, Comm, Control, Deadline, Result, Serial, Status, Turn, run, settled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MB = 1 << 20
PATIENCE = 1.0  # seconds after Ctrl-C for which the report may still be completed
MOST_STEPS = 10**7  # and a thousand per sample: a problem that wants more (unscaled features) will not end in sensible time
HIT_COST = 0.8  # what a cached row saves of the time of a computed one, about
SHRINK_EVERY = 10  # turns; a look costs one pass over the active samples, a cut one pass over the cached rows


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
    """Solution of the QP: alpha per variable, one multiplier per group, f = Kβ per sample."""

    alpha: FloatArray = field(default_factory=lambda: np.empty(0))
    multipliers: FloatArray = field(default_factory=lambda: np.empty(0))
    f: FloatArray = field(default_factory=lambda: np.empty(0))


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
        self.start = qp.start() if alpha is None else alpha
        shape = (self.halves, qp.n)
        self.center = np.ascontiguousarray(qp.center.reshape(shape))
        signed = qp.sign * qp.upper
        self.lo = np.minimum(signed, 0.0).reshape(shape)
        self.hi = np.maximum(signed, 0.0).reshape(shape)
        self.beta = (qp.sign * self.start).reshape(shape)
        self.group = qp.group.reshape(shape)
        self.f_known = f is not None
        self.f = np.zeros(qp.n) if f is None else f
        self.size = _working_set_size(options, qp, kernel.dtype.itemsize)
        self.working_set = WorkingSet(self.size, self.size // 2)
        self.dual = 0.0
        self.violation = np.inf
        self.values = 0.0  # kernel values computed in updates so far
        self.timings = dict.fromkeys(("start", "select", "tile", "inner", "update", "shrink"), 0.0)
        self.counts = dict.fromkeys(("inner_steps", "rows", "cache_hits", "unshrinks", "inner_fallbacks"), 0)

    # ---- the outer loop ------------------------------------------------------------------------------------------

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        yield from self._initial_f()
        with _clock(self.timings, "start"):
            self.part = self.kernel.part(
                self.center, self.lo, self.hi, self.beta, self.group, self.f, self._bytes_for_rows()
            )
            self.left: list[tuple[IntArray, FloatArray]] = []  # inactive samples, and the β that their f reflects
            self.dual = self._dual_value() if self.beta.any() else 0.0
        progress = _Progress(self.dual)
        checked = looked = False
        while True:
            extremes = self._extremes()
            self.violation = self._violation(extremes)
            # Look at the whole problem when the active part is done, and once before, to catch what was left too soon.
            done = self.violation <= self.options.tol
            if done or (self.left and not checked and self.violation <= 10 * self.options.tol):
                if self.left:
                    checked = True
                    yield from self._unshrink()
                if self.violation <= self.options.tol:
                    return None
                continue
            gain = self._turn(extremes)
            support = int(np.count_nonzero(self.beta.any(axis=0)))
            yield Turn(np.nan, self.dual, self.violation, support, {"active": float(self.part.size)})
            if self._no_time_left():
                return Status.MAX_TIME
            if self.counts["inner_steps"] > MOST_STEPS + 1000 * self.qp.n:
                return Status.STALLED
            if progress.stalled(gain, self.dual):
                if looked or not self.left:
                    return Status.STALLED
                looked = True  # once: a sample left out may be what is missing
                yield from self._unshrink()
                progress = _Progress(self.dual)
                continue
            if self.options.shrinking and progress.turns % SHRINK_EVERY == 0:
                self._shrink()

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
        delta = beta - before
        with _clock(self.timings, "update"):
            self.part.write(seated, beta)
            self.beta.ravel()[seated] = beta
            change = np.bincount(column, weights=delta[place], minlength=len(samples))
            moved = change != 0
            rows = int(moved.sum())
            hits = self.kernel.update(self.part, samples[moved], change[moved])
            self.counts["rows"] += rows
            self.counts["cache_hits"] += hits
            self.values += (rows - HIT_COST * hits) * self.part.size
        # ½ βᵀKβ − cᵀβ is quadratic, so its change is the mean of the slopes at both ends.
        gain = 0.5 * float(delta @ (score + new_score))
        self.dual += gain
        return gain if moved.any() else 0.0

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _initial_f(self) -> Generator[None, None, None]:
        support = np.flatnonzero(self.beta.any(axis=0))
        if len(support) and not self.f_known:
            with _clock(self.timings, "start"):
                everyone = np.arange(self.qp.n)
                coef = self.beta.sum(axis=0)[support]
                f = np.zeros(self.qp.n)  # set as a whole: a run stopped on the way begins again in result()
                for piece in self.kernel.pieces(self.qp.n, len(support)):
                    f[piece] = self.kernel.sum(everyone[piece], support, coef)
                    yield None
                self.f = f

    def _bytes_for_rows(self) -> float:
        """What the tile, and a smaller one while it grows, leave of the cache; they never take more than half of it."""
        budget = self.options.cache_size * MB
        itemsize = int(self.kernel.dtype.itemsize)
        return max(budget - 1.25 * self.size**2 * itemsize, budget / 2, _row_bytes(self.qp.n, itemsize))

    def _extremes(self) -> FloatArray:
        """(max_up per group, min_low per group) over the active samples of all ranks."""
        return self._reduced(np.array(self.part.extremes()))

    def _reduced(self, mine: FloatArray) -> FloatArray:
        if not len(self.qp.targets):  # no equality: a score of 0 is the other side
            mine[0], mine[2] = max(mine[0], 0.0), min(mine[2], 0.0)
        up = self.comm.allreduce(mine[:2], "max")
        low = self.comm.allreduce(mine[2:], "min")
        return np.concatenate([up, low])

    def _violation(self, e: FloatArray) -> float:
        if not len(self.qp.targets):
            return float(max(e[0], -e[2], 0.0))
        gaps = [float(e[g] - e[2 + g]) for g in range(self.groups)]
        return max([0.0, *(gap for gap in gaps if math.isfinite(gap))])

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
            groups = [_without_partner(groups[0])]
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

    def _shrink(self) -> None:
        with _clock(self.timings, "shrink"):
            keep = self.part.movable(*self._extremes())
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
        """Bring the inactive samples up to date and take them back."""
        start = time.perf_counter()
        self.counts["unshrinks"] += 1
        now = self.beta.sum(axis=0)
        f = self.f.copy()  # set as a whole: a run stopped on the way must not count a piece twice
        for ids, then in self.left:
            moved = np.flatnonzero(now != then)
            for piece in self.kernel.pieces(len(ids), len(moved)):
                f[ids[piece]] += self.kernel.sum(ids[piece], moved, (now - then)[moved])
                yield None
        self.f = f
        self.f[self.part.active] = self.part.f
        extremes = self._full_extremes()
        self.violation = self._violation(extremes)
        ids = np.sort(np.concatenate([ids for ids, _ in self.left]))
        back = self._can_move(ids, extremes)
        state = (self.center, self.lo, self.hi, self.beta, self.group)
        took = ids[back]
        self.part.extend(took, *(np.ascontiguousarray(a[:, took]) for a in state), self.f[took])
        self.left = [(ids[~back], now)]
        self.timings["shrink"] += time.perf_counter() - start

    def _pass_seconds(self) -> float:
        """About how long it would take to bring the inactive samples up to date."""
        values = sum(len(ids) for ids, _ in self.left) * int(np.count_nonzero(self.beta.any(axis=0)))
        return values * self.timings["update"] / max(self.values, 1.0)

    def _no_time_left(self) -> bool:
        """Whether that pass, which the report needs, would end after the deadline."""
        return self.deadline.passed(self._pass_seconds())

    def _full_extremes(self) -> FloatArray:
        """As _extremes, over all samples: for when f is up to date everywhere."""
        score = self.center - self.f
        up = np.where(self.beta < self.hi, score, -np.inf)
        low = np.where(self.beta > self.lo, score, np.inf)
        mine = np.empty(4)
        for g in range(2):
            mine[g] = up[self.group == g].max(initial=-np.inf)
            mine[2 + g] = low[self.group == g].min(initial=np.inf)
        return self._reduced(mine)

    def _can_move(self, ids: IntArray, e: FloatArray) -> NDArray[np.bool_]:
        """Which samples are not held at a bound by a score beyond the other side's extreme."""
        score, group, beta = self.center[:, ids] - self.f[ids], self.group[:, ids], self.beta[:, ids]
        rise = (beta < self.hi[:, ids]) & (score >= e[2 + group])
        fall = (beta > self.lo[:, ids]) & (score <= e[group])
        return np.asarray((rise | fall).any(axis=0))

    # ---- the end -------------------------------------------------------------------------------------------------

    def _dual_value(self) -> float:
        """cᵀβ − ½ βᵀKβ: a lower bound on the primal objective, and what a turn raises."""
        per_sample = self.beta.sum(axis=0)
        return float(np.vdot(self.center, self.beta) - 0.5 * per_sample @ self.f)

    def result(self, status: Status) -> DualResult:
        unknown: IntArray | None = None  # samples whose f is out of date
        if hasattr(self, "part"):
            self.f[self.part.active] = self.part.f
            if status is not Status.CONVERGED and self.left:  # stopped while shrunk
                if status is Status.INTERRUPTED and self._pass_seconds() > PATIENCE:
                    unknown = np.concatenate([ids for ids, _ in self.left])
                else:
                    for _ in self._unshrink():
                        pass
        else:  # stopped before the first turn
            for _ in self._initial_f():
                pass
        alpha = (self.qp.sign * self.beta.ravel()) + 0.0
        score = (self.center - self.f).ravel()
        up, low = self.beta < self.hi, self.beta > self.lo
        if unknown is not None:
            up[:, unknown] = low[:, unknown] = False
        multipliers, violation = _multipliers(self.qp, up.ravel(), low.ravel(), score)
        result = DualResult(
            status=settled(status, violation, self.options.tol),
            violation=violation,
            n_support=int(np.count_nonzero(self.beta.any(axis=0))),
            timings={**self.timings, **self.counts},
            alpha=alpha,
            multipliers=multipliers,
            f=self.f,
        )
        if unknown is None:  # else the gap stays NaN: nobody waited for it
            b = multipliers[self.qp.group] if len(multipliers) else 0.0
            slack = self.qp.sign * (score - b)  # −r of formulations.py
            result.gap = float(np.sum(self.qp.upper * np.maximum(slack, 0) - alpha * slack))
            result.objective = self._dual_value() + result.gap
        return result


def _multipliers(
    qp: QP, up: NDArray[np.bool_], low: NDArray[np.bool_], score: FloatArray
) -> tuple[FloatArray, float]:
    """Each group's b: the mean score of its free variables, or else the middle of what its bounds allow; and (72)."""
    if not len(qp.targets):
        worst = max(score[up].max(initial=0.0), -score[low].min(initial=0.0))
        return np.empty(0), float(worst)
    b, violation = np.zeros(len(qp.targets)), 0.0
    for g in range(len(qp.targets)):
        rise, fall = up, low
        if len(qp.targets) > 1:
            rise, fall = up & (qp.group == g), low & (qp.group == g)
        top, bottom = score[rise].max(initial=-np.inf), score[fall].min(initial=np.inf)
        free = score[rise & fall]
        if len(free):
            b[g] = free.mean()
        elif np.isfinite(top) and np.isfinite(bottom):
            b[g] = 0.5 * (top + bottom)
        else:
            b[g] = top if np.isfinite(top) else bottom
        if np.isfinite(top) and np.isfinite(bottom):
            violation = max(violation, top - bottom)
    return b, float(violation)


def _without_partner(g: Violators) -> Violators:
    """No equality constraint: every violator stands alone. In pairs of neighbours in rank they are all taken in turn."""
    alone = np.concatenate([g.up, g.low])
    size = np.concatenate([g.up_score, -g.low_score])
    order = np.argsort(-size, kind="stable")
    if len(order) % 2:
        order = np.append(order, order[-1])
    first, second = order[0::2], order[1::2]
    return Violators(alone[first], size[first], alone[second], -size[second])


def _working_set_size(options: Options, qp: QP, itemsize: int) -> int:
    """1536 by default, 1024 in regression: a third of the turns that the paper's 512 takes.

    Rows are computed only for variables that changed, so a larger set costs its tile (9 MB in float32, which stays in
    L3) and not n·q kernel values; beyond that, and sooner in regression with its many inner steps, the tile and the
    inner steps outweigh the turns saved (measured on the seven sets of the benchmarks). The tile must fit the cache: a
    default size gives way, a wish that does not fit is refused, and so is a cache of less than one kernel row.
    """
    budget = int(options.cache_size * MB)
    row = _row_bytes(qp.n, itemsize)
    if budget < row:
        raise ValueError(
            f"cache_size={options.cache_size:g} MB does not hold one kernel row of {qp.n} samples: "
            f"give at least {row / MB:.3g} MB"
        )
    wanted = options.working_set_size
    default = 1536 if qp.n_variables == qp.n else 1024
    size = min(wanted if wanted is not None else default, qp.n_variables)
    if wanted is not None and size * size * itemsize > budget:
        raise ValueError(
            f"cache_size={options.cache_size:g} MB is too small for working_set_size={wanted}: "
            f"give at least {size * size * itemsize / MB:.3g} MB, or a smaller working set"
        )
    size = min(size, int((budget / itemsize) ** 0.5))
    return max(2, size - size % 2 if size < qp.n_variables else size)


def _row_bytes(n: int, itemsize: int) -> int:
    return -(-n // 32) * 32 * itemsize  # the core pads rows to whole vectors


class _Progress:
    """Notices when turns no longer raise the dual value: three that change nothing, or a hundred that hardly do."""

    def __init__(self, dual: float) -> None:
        self.turns, self._idle, self._dual = 0, 0, dual

    def stalled(self, gain: float, dual: float) -> bool:
        self.turns += 1
        self._idle = 0 if gain > 0 else self._idle + 1
        if self._idle >= 3:
            return True
        if self.turns % 100:
            return False
        before, self._dual = self._dual, dual
        return dual - before <= 1e-11 * abs(dual)


class _clock:
    """Adds the time spent inside to one entry of a dict."""

    def __init__(self, timings: dict[str, float], name: str) -> None:
        self._timings, self._name = timings, name

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        self._timings[self._name] += time.perf_counter() - self._start
