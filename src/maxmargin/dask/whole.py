"""The whole problem of divide and conquer, when its rows are in partitions.

    W        the support vectors of level 1
    repeat   solve the QP of W on one worker, from where it stands
             f = K·β at all rows, partition by partition: |S|·n kernel values
             the whole problem's objective, gap and violation follow from f; stop if the violation is ≤ tol
             W = the support vectors and those that violate, at most as many again as there were

Every turn raises the dual, as W has what it rests on and something to gain. One worker must hold W; the exact solution's
support vectors are the model, which the client holds in the end.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from maxmargin.dask.values import FloatArray, PartitionedData, judged
from maxmargin.decomposition.ending import Point
from maxmargin.decomposition.options import DualResult
from maxmargin.divide.remote import Afar
from maxmargin.divide.subproblem import Piece, Subproblem, restricted, variables
from maxmargin.divide.whole import IntArray, Rows, Whole
from maxmargin.problem.formulations import QP, coefficients
from maxmargin.runtime import Status

ROOM = 0.5  # of tol, for the QP of W: what float32 sums differ in from one pass to the next must not undo it
LEAST = 1000  # violators that a turn takes in, if there are as many


class PartitionedWhole(Whole):
    """Whole, by turns that need no row here."""

    data: PartitionedData

    def refine(self, begin: Sequence[FloatArray] | None = None) -> Rows:
        alphas = []
        for p, alpha in enumerate(self.alphas):
            support, new = self.support(p), np.zeros_like(alpha)
            if len(support):
                result = yield from self._on_worker(p, support, alpha)
                self.refined.append(result)
                self.iterations[p] += result.n_iter
                if self.cut_short is not None:
                    return
                new[variables(self.problems[p].qp, support)] = result.alpha
            alphas.append(new)
        self.alphas = alphas

    def begin(self) -> Generator[None, None, None]:
        solutions = []
        for p in range(len(self.problems)):
            solutions.append((yield from self._judged(p, self.alphas[p])))
        self.solutions = solutions

    def _judged(self, p: int, alpha: FloatArray) -> Generator[None, None, DualResult]:
        problem = self.problems[p]
        coef = coefficients(problem.qp, alpha)
        support = np.flatnonzero(coef)
        f = yield from self.data.sums(problem.chosen, problem.chosen[support], coef[support])
        return judged(problem.qp, alpha, f, self.options.tol, Status.MAX_TIME)

    def solve(self) -> Rows:
        for p, problem in enumerate(self.problems):
            deadline, turns = self.plan.deadline.share(len(self.problems) - p), 0
            while self.solutions[p].status is not Status.CONVERGED:
                known = self.solutions[p]
                if deadline.passed():
                    break
                support = np.flatnonzero(known.alpha.reshape(-1, problem.qp.n).any(axis=0))
                wanted = np.setdiff1d(violators(problem.qp, known, self.options.tol, max(LEAST, len(support))), support)
                if not len(wanted) and turns:  # what is left is rounding
                    self.solutions[p] = replace(known, status=Status.STALLED)
                    break
                working = np.union1d(support, wanted)
                result = yield from self._on_worker(p, working, known.alpha)
                alpha = np.zeros_like(known.alpha)
                alpha[variables(problem.qp, working)] = result.alpha
                new = yield from self._judged(p, alpha)
                turns += 1
                self.iterations[p] += result.n_iter
                self.solutions[p] = replace(new, n_iter=known.n_iter + result.n_iter)
                row = {"dual": new.objective - new.gap, "violation": new.violation, "n_support": float(new.n_support)}
                yield p, row
                if 0 <= self.plan.max_iter <= turns and new.status is not Status.CONVERGED:
                    self.solutions[p] = replace(self.solutions[p], status=Status.MAX_ITER)
                    break
            self.solved += 1

    def _on_worker(self, p: int, samples: IntArray, alpha: FloatArray) -> Generator[None, None, DualResult]:
        """The QP of some samples of a problem, from alpha, on one worker and with its threads."""
        qp, chosen = self.problems[p].qp, self.problems[p].chosen[samples]
        order = np.argsort(chosen, kind="stable")
        samples, ids = samples[order], chosen[order]
        threads = max(self.data.X.client.nthreads().values(), default=1)
        options = replace(self.options, tol=ROOM * self.options.tol, threads=threads)
        task = Subproblem(
            p, 0, samples, ids, restricted(qp, samples), self.data, alpha[variables(qp, samples)], options,
            self.plan.max_iter, self.plan.deadline,
        )  # fmt: skip
        pieces: list[Piece] = []
        yield from Afar([task], [ids], self.data.blocks(), self.data.frame).solve(pieces)
        result = pieces[0].result
        back = np.argsort(order, kind="stable")
        place = variables(task.qp, back)
        return replace(result, alpha=result.alpha[place], f=result.f[back])

    def stop(self, status: Status) -> None:
        """What was reached is in `solutions`; what stopped the rest is their status."""
        self.solutions = [
            result if result.status is Status.CONVERGED else replace(result, status=status) for result in self.solutions
        ]


def violators(qp: QP, known: DualResult, tol: float, most: int) -> IntArray:
    """The samples that gain most if their variables move, worst first, `most` at most."""
    point = Point.of(qp, (qp.sign * known.alpha).reshape(-1, qp.n), known.f)
    b = known.multipliers[qp.group] if len(known.multipliers) else 0.0
    (up, low), score = point.movable, point.score - b
    off = np.maximum(np.where(up, score, 0.0), np.where(low, -score, 0.0)).reshape(-1, qp.n).max(axis=0)
    bad = np.flatnonzero(off > 0.5 * tol)  # of both sides together the violation is up to twice that
    return bad[np.argsort(-off[bad], kind="stable")[:most]]
