"""What every linear solver shares: the best point so far, its objective, the cuts, and the certificate they give."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin.cutting_plane import line_search
from maxmargin.cutting_plane.bundle import Bundle
from maxmargin.cutting_plane.problem import FloatArray, LinearProblem
from maxmargin.runtime import Result, Status, Turn

FAR = 100.0  # longest step: k times the rounding error of q = m − m_best goes into the margins kept


@dataclass
class LinearResult(Result):
    """w (the intercept's coordinate last when there is one), the lower bound and the cuts, for a later C."""

    w: FloatArray = field(default_factory=lambda: np.empty(0))
    lower: float = 0.0
    bundles: list[Bundle | None] = field(default_factory=list)

    @property
    def bundle(self) -> Bundle | None:
        return self.bundles[0] if self.bundles else None


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


class Certified:
    """What every linear solver keeps: the best point with its margins, its objective, and the cuts with their bound."""

    def __init__(
        self, problem: LinearProblem, tol: float, bundle: Bundle | None = None, start: FloatArray | None = None
    ) -> None:
        self.problem = problem
        self.tol = tol
        self.start = self._unjudged = start
        self.bundle = bundle or Bundle(problem)
        self.clock = Clock()
        self.w = np.zeros(problem.size)
        self.m = problem.zeros()
        self.objective = problem.C * problem.risk(self.m)
        self._best_cut: tuple[FloatArray, float] | None = None

    @property
    def gap(self) -> float:
        return max(0.0, self.objective - self.bundle.lower)

    @property
    def relative_gap(self) -> float:
        return self.gap / self.objective if self.objective > 0 else 0.0

    @property
    def certified(self) -> bool:
        return self.relative_gap <= self.tol

    def turn(self, **extra: float) -> Turn:
        return Turn(self.objective, self.bundle.lower, self.relative_gap, -1, {"cuts": self.bundle.count, **extra})

    def judge_start(self) -> Generator[None, None, bool]:
        """Take over the point given, so that no run ends with a worse one; whether the cuts given prove it good."""
        self.clock.start()
        problem, w = self.problem, self._unjudged
        if w is None:
            return False
        m = problem.zeros()
        yield from problem.outputs(w, m)
        self.keep(w, m, 0.5 * problem.inner(w, w) + problem.C * problem.risk(m))
        self._unjudged = None
        self.clock.lap("outputs")
        return self.certified

    def seed_cuts(self) -> None:
        """With a free intercept: one cut per class, so that the reduced problem is bounded from the start."""
        if not self.problem.free_intercept or self.bundle.count:
            return
        for label in (1.0, -1.0):
            alpha = np.where(self.problem.sign == label, self.problem.weight, 0.0)
            a = np.zeros(self.problem.size)
            rows = np.flatnonzero(alpha)
            for _ in self.problem.add(a, rows, label * alpha[rows]):
                pass
            conjugate = float(alpha.sum()) / 4 if self.problem.loss == "squared_hinge" else 0.0
            self.bundle.add(a, float(alpha.sum()) - conjugate)

    def bound(self, a: FloatArray, b: float) -> None:
        """Raise the lower bound by one more cut: alone, or with a free intercept together with the others."""
        problem = self.problem
        if problem.free_intercept:
            self.bundle.add(a, b)
            self.bundle.solve()
            return
        value, norm = problem.C * b, problem.C * problem.C * problem.inner(a, a)
        share = min(1.0, value / norm) if norm > 0 else 1.0  # a mixture with the cut R ≥ 0
        value, norm = share * value, share * share * norm
        lower = value - 0.5 * norm - problem.rounding(value + norm)
        if lower > self.bundle.lower:
            self.bundle.lower, self._best_cut = lower, (a.copy(), b)

    def keep(self, w: FloatArray, m: FloatArray, objective: float) -> None:
        """Take over a point if it is the best so far."""
        if objective < self.objective:
            self.w, self.m, self.objective = w.copy(), m.copy(), objective

    def improve(self, w: FloatArray, m: FloatArray) -> float:
        """Search from the best point along the line through w (margins m); keep the minimiser. Returns the step."""
        return self._go(self.w, self.m, w - self.w, m - self.m)

    def stretch(self, w: FloatArray, m: FloatArray) -> None:
        """Search along the ray through w: under a large C margins a hair short of 1 cost much, a longer w little."""
        self._go(np.zeros_like(w), self.problem.zeros(), w, m)

    def _go(self, w: FloatArray, m: FloatArray, step: FloatArray, q: FloatArray) -> float:
        """Keep the best of the points w + k·step (margins m + k·q), k ≥ 0; its k."""
        problem = self.problem
        quad, lin = problem.inner(step, step), problem.inner(w, step)
        k = min(self._search(m, q, quad, lin), FAR)
        if k > 0:
            moved, margins = w + k * step, m.copy()
            risk = problem.advance(margins, q, k)
            self.keep(moved, margins, 0.5 * problem.inner(moved, moved) + problem.C * risk)
        return k

    def _search(self, m: FloatArray, q: FloatArray, quad: float, lin: float) -> float:
        """The k that is best for ½·quad·k² + lin·k + C·risk(m + k·q)."""
        return line_search.exact(self.problem, m, q, quad, lin)

    def hand_over(self, other: Any) -> Generator[Turn | None, None, Status | None]:
        """Let another solver of the same problem go on from the best point and the bound reached here."""
        other.w, other.m, other.objective, other.clock = self.w, self.m, self.objective, self.clock
        self._store_cut()

        def take_over(turn: Turn | None) -> Turn | None:
            self.w, self.m, self.objective = other.w, other.m, other.objective
            return turn

        status = yield from relayed(other.turns(), take_over)
        take_over(None)
        return status

    def _store_cut(self) -> None:
        """The cut that gave the bound joins the others: for the next solver, or for a later fit with another C."""
        if self._best_cut is not None:
            self.bundle.add(*self._best_cut)
            self._best_cut = None

    def result(self, status: Status) -> LinearResult:
        for _ in self.judge_start():  # of a run that was stopped before it came to that
            pass
        self._store_cut()
        counts = {"passes": self.problem.passes, "pass_seconds": self.problem.pass_seconds}
        return LinearResult(
            status=status, objective=self.objective, gap=self.gap, violation=self.relative_gap,
            timings={**self.clock.seconds, **counts}, w=self.w, lower=self.bundle.lower, bundles=[self.bundle],
        )
