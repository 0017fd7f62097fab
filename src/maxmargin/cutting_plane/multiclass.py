"""Crammer & Singer's joint multi-class machine by one cutting plane problem.

    minimise over W    ½ Σ_k ‖w_k‖² + C Σ_i weight_i · max_k ( [k ≠ y_i] + ⟨w_k − w_{y_i}, x_i⟩ )

The risk is again a sum of convex, piecewise linear functions, so algorithm 1 of Franc & Sonnenburg carries over: the
cut at W takes, for each sample, the class that attains the maximum. One difference: along a line each sample's loss
has up to K pieces, so the search brackets the sign change of the slope by bisection and ends on the linear piece,
where the minimum is known exactly.

Weights are stored as one vector of K·size numbers (class by class, intercept last). The classes' outputs take one
pass over X each; an intercept is a constant feature, penalised or free as in the binary problem.
Stops at a relative gap of tol, certified by the reduced problem's value.
"""

from __future__ import annotations

import time
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.cutting_plane import reduced_qp
from maxmargin.cutting_plane.certified import Clock, LinearResult
from maxmargin.cutting_plane.problem import FloatArray, LinearProblem
from maxmargin.runtime import Status, Turn

MIX = 0.1
IDLE = 20


class CrammerSinger:
    """OCAS for the joint problem. `problem` supplies samples, weights, C and the intercept; its signs are not used."""

    def __init__(self, problem: LinearProblem, labels: NDArray[np.intp], classes: int, tol: float) -> None:
        self.problem, self.labels, self.classes, self.tol = problem, labels, classes, tol
        self.clock = Clock()
        self._ones = np.ones(problem.n)
        self._rows = np.arange(problem.n)
        self.W = np.zeros((classes, problem.size))
        self.scores = np.zeros((classes, problem.n))
        self.objective = problem.C * self._risk(self.scores)
        self.lower = 0.0
        self._cuts: list[FloatArray] = []
        self._offsets: list[float] = []
        self._idle: list[int] = []
        self._gram = np.zeros((0, 0))

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        self.clock.start()
        scores = self.scores.copy()
        rest, last = 0, np.inf
        if self.problem.free_intercept:
            self._seed_cuts()
        while True:
            self._cut((1 - MIX) * self.scores + MIX * scores)
            self.clock.lap("cutting plane")
            reduced = self._reduced()
            self.clock.lap("reduced problem")
            yield from self._outputs(reduced, scores)
            self.clock.lap("outputs")
            step = self._search(reduced, scores)
            self.clock.lap("line search")
            gap = max(0.0, self.objective - self.lower)
            yield Turn(self.objective, gap, gap / self.objective if self.objective else 0.0, len(self._cuts),
                       {"lower": self.lower, "step": step})
            if gap <= self.tol * self.objective:
                return None
            rest, last = (rest + 1 if gap >= last else 0), gap
            if rest >= 30:
                return Status.STALLED
            self.clock.start()

    def result(self, status: Status) -> LinearResult:
        gap = max(0.0, self.objective - self.lower)
        counts = {"passes": self.problem.passes, "pass_seconds": self.problem.pass_seconds}
        return LinearResult(
            status=status, objective=self.objective, gap=gap, violation=gap / max(self.objective, 1e-300),
            timings={**self.clock.seconds, **counts}, w=self.W, lower=self.lower,
        )

    def _inner(self, U: FloatArray, V: FloatArray) -> float:
        d = self.problem.d if self.problem.free_intercept else self.problem.size
        return float(np.sum(U[:, :d] * V[:, :d]))

    def _outputs(self, W: FloatArray, out: FloatArray) -> Generator[None, None, None]:
        problem = self.problem
        for k in range(self.classes):
            shift = float(problem.bias * W[k, -1]) if problem.bias else 0.0
            w = np.ascontiguousarray(W[k, : problem.d])
            start = time.perf_counter()
            _core.linear_outputs(problem.matrix, w, shift, self._ones, 0, problem.n, out[k], problem.threads)
            problem.pass_seconds += time.perf_counter() - start
            problem.passes += 1
            yield

    def _violators(self, scores: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """For each sample the class that attains the maximum, and the loss."""
        own = scores[self.labels, self._rows]
        losses = scores + 1.0
        losses[self.labels, self._rows] = own
        losses -= own
        worst = np.argmax(losses, axis=0)
        return worst, losses[worst, self._rows]

    def _risk(self, scores: FloatArray) -> float:
        return float(self.problem.weight @ self._violators(scores)[1])

    def _seed_cuts(self) -> None:
        """Class c taken for class c + 1, for each c: mixed in proportion they balance every free intercept."""
        for c in range(self.classes):
            self._add(np.where(self.labels == c, (c + 1) % self.classes, self.labels))

    def _cut(self, scores: FloatArray) -> None:
        self._add(self._violators(scores)[0])

    def _add(self, worst: NDArray[np.intp]) -> None:
        """The cut in which sample i is taken for class worst_i."""
        problem = self.problem
        wrong = np.flatnonzero((worst != self.labels) & (problem.weight > 0))
        a = np.zeros((self.classes, problem.size))
        for k in range(self.classes):
            for rows, sign in ((wrong[worst[wrong] == k], -1.0), (wrong[self.labels[wrong] == k], 1.0)):
                for _ in problem.add(a[k], rows, sign * problem.weight[rows]):
                    pass
        row = np.array([self._inner(c, a) for c in [*self._cuts, a]])
        t = len(self._cuts)
        gram = np.zeros((t + 1, t + 1))
        gram[:t, :t], gram[t, :], gram[:, t] = self._gram, row, row
        self._gram = gram
        self._cuts.append(a)
        self._offsets.append(float(problem.weight[wrong].sum()))
        self._idle.append(0)

    def _reduced(self) -> FloatArray:
        problem, C = self.problem, self.problem.C
        offsets = np.array(self._offsets)
        free = np.array([c[:, -1] for c in self._cuts]).T if problem.free_intercept else None
        beta, shift = reduced_qp.solve(self._gram, offsets, C, free, self.lower)
        total = np.tensordot(beta, np.array(self._cuts), axes=1)
        W = -C * total
        if free is not None:
            W[:, -1] = shift
        value, norm = C * float(beta @ offsets), self._inner(W, W)
        self.lower = max(self.lower, value - 0.5 * norm - problem.rounding(value + norm))
        used = beta * offsets > 1e-9 * float(beta @ offsets)
        self._idle = [0 if hit else idle + 1 for hit, idle in zip(used, self._idle)]
        if max(self._idle) >= IDLE:
            keep = [j for j, idle in enumerate(self._idle) if idle < IDLE]
            self._cuts = [self._cuts[j] for j in keep]
            self._offsets = [self._offsets[j] for j in keep]
            self._idle = [self._idle[j] for j in keep]
            self._gram = self._gram[np.ix_(keep, keep)]
        return W

    def _search(self, W: FloatArray, scores: FloatArray) -> float:
        """Exact search along self.W + k(W − self.W), k ≥ 0."""
        problem, step, q = self.problem, W - self.W, scores - self.scores
        quad, lin = self._inner(step, step), self._inner(self.W, step)
        own = q[self.labels, self._rows]

        def slope(k: float) -> tuple[float, float]:
            worst, _ = self._violators(self.scores + k * q)
            rise = problem.C * float(problem.weight @ (q[worst, self._rows] - own))
            return quad * k + lin + rise, lin + rise

        if slope(0.0)[0] >= 0:
            return 0.0
        low, high = 0.0, 1.0
        while slope(high)[0] < 0 and high < 1e6:
            low, high = high, 2 * high
        for _ in range(60):
            k = 0.5 * (low + high)
            value, constant = slope(k)
            ramp = -constant / quad if quad > 0 else k
            if low <= ramp <= high and slope(ramp)[1] == constant:
                k = ramp
                break
            low, high = (k, high) if value < 0 else (low, k)
        moved = self.scores + k * q
        objective = 0.5 * self._inner(self.W + k * step, self.W + k * step) + problem.C * self._risk(moved)
        if objective < self.objective:
            self.W, self.scores, self.objective = self.W + k * step, moved, objective
        return k
