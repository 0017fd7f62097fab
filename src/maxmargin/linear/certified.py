"""What every linear solver shares: the best point so far, its objective, the cuts, and the certificate they give."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin.linear import line_search
from maxmargin.linear.bundle import Bundle, Cuts
from maxmargin.linear.problem import Duals, LinearProblem, Sum
from maxmargin.linear.rounding import Cut, FloatArray
from maxmargin.problem.certificates import CertificateError
from maxmargin.runtime import Result, Status, Turn, settled

NOTICED = 0.05  # of the gap asked for: what rounding may take before a sum is made anew
FAR = 100.0  # longest step: k times the rounding error of q = m − m_best goes into the margins kept


@dataclass
class LinearResult(Result):
    """w (the intercept's coordinate last when there is one), the lower bound and the cuts, for a later C."""

    w: FloatArray = field(default_factory=lambda: np.empty(0))
    lower: float = 0.0
    cuts: list[Cuts] = field(default_factory=list)  # of each problem
    duals: list[FloatArray | None] = field(default_factory=list)  # of each problem, for a fit to some of its samples

    def snapshot(self) -> Known:
        """As that of its solver."""
        duals = self.duals[0] if self.duals and self.w.ndim == 1 else None  # of a joint problem they are none
        return Known(self.w.ravel(), self.cuts[0] if self.cuts else None, duals)


@dataclass(frozen=True)
class Known:
    """What one problem's solver has reached, for another run: its best point, and what that is proven by."""

    w: FloatArray | None = None
    cuts: Cuts | None = None
    duals: FloatArray | None = None  # per unit of C
    rounding: float | None = None  # h of Newton's method


class Clock:
    """Seconds per phase, as in the paper's Table 4."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def start(self) -> None:
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


def relayed(
    turns: Generator[Turn | None, None, Status | None], seen: Callable[[Turn | None], Turn | None]
) -> Generator[Turn | None, None, Status | None]:
    """The turns of another solver, each as `seen` makes it, to its status."""
    while True:
        try:
            turn = next(turns)
        except StopIteration as end:
            status: Status | None = end.value
            return status
        yield seen(turn)


@dataclass
class Best:
    """The best point so far. `settled`: its margins were computed for it, not carried along; then `doubt` is known."""

    w: FloatArray
    m: FloatArray
    objective: float
    settled: bool = False
    doubt: float = 0.0  # how far rounding can have taken the objective


class Certified:
    """What every linear solver keeps: the best point with its margins, its objective, and the cuts with their bound."""

    def __init__(
        self, problem: LinearProblem, tol: float, known: Cuts | None = None, start: FloatArray | None = None,
        duals: FloatArray | None = None,
    ) -> None:
        self.problem = problem
        self.tol = tol
        self.start = self._unjudged = start
        self.given = None if duals is None else problem.feasible(duals)
        self.bundle = Bundle(problem, known)
        self.bounds = problem.bounds
        self.clock = Clock()
        m = problem.zeros()
        risk = problem.risk(m)
        w = np.zeros(problem.size)
        self.best = Best(w, m, problem.value(w, risk), True, problem.doubt(w, m, risk))
        self._best_cut: Cut | None = None

    @property
    def objective(self) -> float:
        return self.best.objective

    @property
    def gap(self) -> float:
        return self.best.objective - self.bundle.lower

    @property
    def relative_gap(self) -> float:
        """What is compared with tol: with the objective as high as rounding may have it."""
        return (self.gap + self.best.doubt) / self.objective if self.objective > 0 else 0.0

    @property
    def certified(self) -> bool:
        return self.relative_gap <= self.tol

    def turn(self, **extra: float) -> Turn:
        support = self.problem.support(self.best.m, self.tol)
        return Turn(self.objective, self.bundle.lower, self.relative_gap, support, {"cuts": self.bundle.count, **extra})

    def report(self, **extra: float) -> Generator[Turn | None, None, bool]:
        """End a turn: whether the best point is proven good, its margins computed anew before that is believed."""
        if self.certified:
            yield from self.settle()
        done = self.certified
        yield self.turn(**extra)
        return done

    def settle(self) -> Generator[None, None, None]:
        """One pass for the margins of the best point, as it will be published. They had been carried from step to step."""
        if not self.best.settled:
            self.clock.start()
            yield from self._judge(self.best.w)
            if self._noticed(self.best.doubt):  # margins of 1, rounded, times a large C: a hair longer they cost nothing
                short = self.best
                self.best = replace(short)
                yield from self._judge(short.w * (1 + 4 * self.problem.off(short.w)))
                if short.objective + short.doubt <= self.objective + self.best.doubt:
                    self.best = short
            self.clock.lap("outputs")
        self._check()

    def _judge(self, w: FloatArray) -> Generator[None, None, None]:
        problem, w = self.problem, self.problem.published(w)
        m = problem.zeros()
        yield from problem.outputs(w, m)
        risk = problem.risk(m)
        self.best.w, self.best.m, self.best.objective = w, m, problem.value(w, risk)
        self.best.settled, self.best.doubt = True, problem.doubt(w, m, risk)

    def _check(self) -> None:
        """A bound above the objective is a bug, unless both are the optimum to the last bits."""
        if self.gap < -self.best.doubt:
            raise CertificateError(self.bundle.lower, self.objective)
        self.bundle.lower = min(self.bundle.lower, self.objective)

    def judge_start(self) -> Generator[None, None, bool]:
        """Take over the point given, so that no run ends with a worse one; whether the cuts given prove it good."""
        self.clock.start()
        if self._unjudged is None:
            return False
        zero = replace(self.best)
        yield from self._judge(self._unjudged)
        if zero.objective < self.objective:
            self.best = zero
        self._unjudged = None
        self.clock.lap("outputs")
        self._check()
        return self.certified

    def seed_cuts(self) -> None:
        """With a free intercept: one cut per class, so that the reduced problem is bounded from the start."""
        if not self.problem.free_intercept or self.bundle.count:
            return
        for label in (1.0, -1.0):
            alpha = np.where(self.problem.sign == label, self.problem.weight, 0.0)
            total, mass = Sum(self.problem), float(alpha.sum())
            for _ in total.renew(alpha):
                pass
            curve = 0.25 * mass if self.problem.loss == "squared_hinge" else 0.0
            offset, size, mass = self.problem.total(*self.problem.offset(alpha, mass, curve), mass)
            self.bundle.add(total.cut(offset, mass, size))

    def seed_duals(self) -> Generator[None, None, tuple[FloatArray, Sum]]:
        """The cut of the duals given, which one sum over their rows makes; without any, of none: (duals, their sum)."""
        problem, total = self.problem, Sum(self.problem)
        if self.given is None:
            return np.zeros(problem.hinges), total
        alpha = self.given
        yield from total.renew(alpha)
        mass = float(alpha.sum())
        offset, size, mass = problem.total(*problem.offset(alpha, mass, problem.curve(alpha)), mass)
        self.bound(total.cut(offset, mass, size))
        self.clock.lap("cutting plane")
        return alpha, total

    def duals(self) -> FloatArray | None:
        """The last duals, per hinge and unit of C: for a fit to some of the same samples. None: there are none."""
        return None

    def bound(self, cut: Cut) -> None:
        """Raise the lower bound by one more cut: alone, or with a free intercept together with the others."""
        if self.problem.free_intercept:
            self.bundle.add(cut)
            self.bundle.solve()
            return
        lower = self.bounds.lower(cut.a, cut.b, cut.drift)
        if lower > self.bundle.lower:
            self.bundle.lower, self._best_cut = lower, replace(cut, a=cut.a.copy())

    def summed(self, total: Sum, alpha: FloatArray, found: Duals) -> Generator[None, None, Cut]:
        """The cut of duals whose changes are `found`; summed up anew when rounding has gathered and matters."""
        yield from total.move(found.rows, found.delta, found.mass)
        if total.worn(found.mass) and self.matters(total.cut(found.offset, found.mass, found.size)):
            yield from total.renew(alpha)
        return total.cut(found.offset, found.mass, found.size)

    def matters(self, cut: Cut) -> bool:
        """Whether rounding in this cut takes a part of the gap asked for that one would notice."""
        return self._noticed(self.bounds.allowance(cut))

    def _noticed(self, loss: float) -> bool:
        return loss > NOTICED * self.tol * self.objective

    def keep(self, w: FloatArray, m: FloatArray, objective: float) -> None:
        """Take over a point if it is the best so far."""
        if objective < self.objective:
            self.best = Best(w.copy(), m.copy(), objective)

    def improve(self, w: FloatArray, m: FloatArray) -> float:
        """Search from the best point along the line through w (margins m); keep the minimiser. Returns the step."""
        best = self.best
        return self._go(best.w, best.m, w - best.w, m - best.m)

    def stretch(self, w: FloatArray, m: FloatArray) -> None:
        """Search along the ray through w: under a large C margins a hair short of 1 cost much, a longer w little."""
        zeros = self.problem.zeros()
        self._go(np.zeros_like(w), zeros, w, m - zeros)

    def _go(self, w: FloatArray, m: FloatArray, step: FloatArray, q: FloatArray) -> float:
        """Keep the best of the points w + k·step (margins m + k·q), k ≥ 0; its k."""
        problem = self.problem
        quad, lin = problem.inner(step, step), problem.inner(w, step)
        k = min(self._search(m, q, quad, lin), FAR)
        off = problem.off(w + k * step)
        # The minimum may lie where a margin is 1. Under a large C that, rounded, is not good: a little to either side.
        beside = (-4 * off, 4 * off) if self._noticed(problem.C * problem.heaviest * off) else ()
        for nudge in (0.0, *beside) if k > 0 else ():
            moved, margins = w + k * (1 + nudge) * step, m.copy()
            risk = problem.advance(margins, q, k * (1 + nudge))
            self.keep(moved, margins, problem.value(moved, risk))
        return k

    def _search(self, m: FloatArray, q: FloatArray, quad: float, lin: float) -> float:
        """The k that is best for ½·quad·k² + lin·k + C·risk(m + k·q)."""
        return line_search.exact(self.problem, m, q, quad, lin)

    def hand_over(self, other: Any) -> Generator[Turn | None, None, Status | None]:
        """Let another solver of the same problem go on from the best point and the bound reached here."""
        self._store_cut()
        other.best, other.bundle, other.clock = self.best, self.bundle, self.clock

        def take_over(turn: Turn | None) -> Turn | None:
            self.best = other.best
            return turn

        status = yield from relayed(other.turns(), take_over)
        take_over(None)
        return status

    def _store_cut(self) -> None:
        """The cut that gave the bound joins the others: for the next solver, or for a later fit with another C."""
        if self._best_cut is not None:
            self.bundle.add(self._best_cut)
            self._best_cut = None

    def snapshot(self) -> Known:
        """The best point and the cuts, among them the one that gave the bound."""
        best = self._unjudged if self._unjudged is not None else self.best.w
        duals = self.duals() if self._unjudged is None else self.given
        return Known(best, self.bundle.kept(self._best_cut), None if duals is None else duals.copy())

    def result(self, status: Status) -> LinearResult:
        """Of the best point, judged as it is published, whatever stopped the run."""
        for judged in (self.judge_start(), self.settle()):
            for _ in judged:
                pass
        self._store_cut()
        counts = {"passes": self.problem.passes, "pass_seconds": self.problem.pass_seconds}
        return LinearResult(
            status=settled(status, self.relative_gap, self.tol), objective=self.objective, gap=self.gap,
            violation=self.relative_gap, n_support=self.problem.support(self.best.m, self.tol),
            timings={**self.clock.seconds, **counts}, w=self.best.w, lower=self.bundle.lower, cuts=[self.bundle.kept()],
            duals=[self.duals()],
        )
