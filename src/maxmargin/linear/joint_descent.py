"""Dual coordinate descent for Crammer & Singer's problem (Keerthi et al., KDD 2008), as a source of cuts and points.

    beta_ic ≤ 0 for c ≠ y_i,   beta_iy ≤ C·weight_i,   Σ_c beta_ic = 0,   w_c = Σ_i beta_ic x_i

Any such beta is a cut: a = −W/C, b = Σ_i beta_iy/C. Cutting planes alone need about as many turns as the optimum has
free duals, which on few samples with unequal weights means hundreds; descent finds those duals in some epochs.

Free intercepts add Σ_i beta_ic = 0 and are treated by the method of multipliers, as in `descent`. What is left of the
imbalance is made up for by taking a part of each class with too much for the classes with too little.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _core
from maxmargin.linear.joint_problem import JointProblem
from maxmargin.linear.problem import Pause
from maxmargin.linear.rounding import UNIT, Cut, FloatArray, gamma

EPOCHS = 50  # per turn, at most
BUDGET = 10_000_000  # products per turn, in some 10 ms: what the reduced problem of the same turn takes


class JointDescent:
    """beta (n × K), the sums v that belong to it, and the centre of the intercepts' penalty."""

    def __init__(self, problem: JointProblem, seed: int) -> None:
        self.problem = problem
        self._seed = seed
        self._upper = problem.C * problem.weight
        self._norms = np.empty(problem.n)
        _core.linear_norms(problem.matrix, self._norms, problem.threads)
        self._feature = problem.bias
        if problem.free_intercept:  # a penalty of the size of the other curvatures
            self._feature = float(np.sqrt(max(self._norms.mean(), 1e-12)))
            self._class_weight, self._class_sum = problem.totals()
        self._centre = np.zeros(problem.classes)
        self._beta = problem.zeros()
        self._v = np.zeros(problem.size).reshape(problem.classes, -1)
        self._active = np.arange(problem.n)
        self._drift = 0.0  # of v, in units of beta (see `rounding`)

    def descend(self) -> Pause:
        """Some epochs over the active samples."""
        problem = self.problem
        work = problem.classes * max(problem.stored // problem.n, 1) * max(len(self._active), 1)
        for _ in range(int(np.clip(BUDGET // work, 1, EPOCHS))):
            moved, steps = _core.joint_epoch(
                problem.matrix, self._active, problem.labels, self._upper, self._norms, self._feature, self._centre,
                self._beta, self._v, self._seed,
            )
            self._drift += gamma(steps + 1) * (self._mass() + moved) + 4 * UNIT * moved  # as in `descent`
            self._seed += 1
            yield
        if problem.free_intercept:
            self._centre += self._feature * self._v[:, -1]

    def point(self) -> FloatArray:
        """The primal point of beta; free intercepts are the penalty's multipliers."""
        W: FloatArray = self._v.copy()
        if self.problem.free_intercept:
            W[:, -1] = self._centre / self.problem.bias
        return W.ravel()

    def choose(self, scores: FloatArray) -> None:
        """Active next: samples with duals, and those that violate the margin at the scores of `point`."""
        problem = self.problem
        own = self._beta[np.arange(problem.n), problem.labels]
        self._active = np.flatnonzero((own > 0) | (problem.worst(scores, scores, 0.0) != problem.labels))

    def _mass(self) -> float:
        return float(self._beta[np.arange(self.problem.n), self.problem.labels].sum())

    def cut(self) -> Cut:
        """beta as a cut of the risk, free intercepts balanced."""
        problem, a, b = self.problem, -self._v / self.problem.C, self._mass() / self.problem.C
        drift = self._drift / problem.C + gamma(problem.classes + 8) * b  # the last: the own class balances the others
        if not problem.free_intercept:
            return Cut.of(a.ravel(), b, b, drift, problem.n, b)
        excess = a[:, -1] / self._feature
        a[:, -1] = problem.bias * excess
        share = np.maximum(excess, 0.0) / self._class_weight  # of class c, to be taken for the classes that lack
        lack = np.maximum(-excess, 0.0)
        taken = share[:, None] * self._class_sum
        a += np.outer(lack / max(float(lack.sum()), np.finfo(float).tiny), taken.sum(axis=0)) - taken
        a[:, -1] = 0.0
        mass, scale = b + float(lack.sum()), 1.0 + float(share.max())  # none is taken for others beyond its weight
        drift += gamma(problem.n + problem.classes + 8) * (mass + float(lack.sum()))
        return Cut.of(a.ravel() / scale, mass / scale, mass / scale, drift / scale, problem.n, mass / scale)
