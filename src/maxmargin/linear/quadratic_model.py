"""The quadratic model of the squared hinge around a point, for some features, and its minimum under the 1-norm.

    minimise over w    Σ_j penalty_j |w_j| + ⟨grad, w − w₀⟩ + ½ (w − w₀)ᵀ H (w − w₀),     H = Σ_{i: u_i > 0} curve_i x_i x_iᵀ

H changes only by the samples whose margin crosses 1. From one point to the next they are few, so it is made once and then
moved: what rounding leaves in it does no harm, as the caller judges every step by the objective itself.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.rounding import FloatArray

Indices = NDArray[np.int64]

SWEEPS = 15  # of coordinate descent over the model before a Newton step on it, which costs about as much for 500 weights
CALM = 0.01  # of the violation at the start, at which the model counts as solved


class QuadraticModel:
    """`by_feature`: a row per feature, the constant one last, each sample with its sign."""

    def __init__(self, problem: LinearProblem, by_feature: _core.Matrix, curve: FloatArray) -> None:
        self._problem, self._by_feature, self._curve = problem, by_feature, curve
        self.features: Indices = np.empty(0, np.int64)
        self._held = np.zeros(problem.size, bool)
        self._near = np.zeros(problem.n, bool)
        self._place = np.empty(0, np.int32)
        self._space, self._H = np.empty(0), np.empty((0, 0))

    def covers(self, features: NDArray[np.bool_]) -> bool:
        return bool(len(self.features)) and not (features & ~self._held).any()

    def choose(self, features: NDArray[np.bool_]) -> None:
        """Begin anew with these features, or with all of them where choosing would cost more than it saves."""
        if self._problem.size <= 2 * np.count_nonzero(features):
            features = np.ones(self._problem.size, bool)
        self._held, self.features = features, np.flatnonzero(features)
        count = len(self.features)
        self._place = np.where(features, np.cumsum(features, dtype=np.int32) - 1, -1).astype(np.int32)
        self._near = np.zeros(self._problem.n, bool)
        if len(self._space) < count * count:
            self._space = np.empty(count * count)
        self._H = self._space[: count * count].reshape(count, count)

    def outputs(self, step: FloatArray) -> FloatArray:
        """By how much a step of the features changes the margins."""
        problem, out = self._problem, np.zeros(self._problem.n)
        moved = np.flatnonzero(step)
        _core.linear_add_rows(self._by_feature, self.features[moved], step[moved], out, problem.threads)
        return out

    def _move(self, near: NDArray[np.bool_]) -> None:
        """H of these samples, by those that come and those that leave, unless they are more than there are."""
        changed = near != self._near
        if np.count_nonzero(changed) >= np.count_nonzero(near):
            self._H[:] = 0.0
            self._add(self._H, near)
        else:
            for which in (changed & self._near, changed & near):  # −H takes in what leaves H: the same twice is H again
                np.negative(self._H, out=self._H)
                self._add(self._H, which)
        _core.linear_mirror(self._H)
        self._near = near

    def _add(self, H: FloatArray, which: NDArray[np.bool_]) -> None:
        problem, rows = self._problem, np.flatnonzero(which)
        if len(self.features) == problem.size:
            _core.linear_gram(problem.matrix, rows, self._curve[rows], problem.bias, True, H, problem.threads)
        else:
            _core.linear_chosen_gram(problem.matrix, rows, self._curve[rows], problem.bias, self._place, H, problem.threads)

    def minimum(
        self, near: NDArray[np.bool_], w: FloatArray, grad: FloatArray, penalty: FloatArray, damping: float, rounds: int
    ) -> FloatArray:
        """Near the minimum of the model around w, the samples of which are `near`."""
        self._move(near)
        w, grad = w.copy(), grad.copy()
        calm = CALM * float(violations(w, grad, penalty).max(initial=0.0))
        for last in range(rounds - 1, -1, -1):
            _, seen = _core.one_norm_sweeps(self._H, penalty, w, grad, calm, SWEEPS)
            if seen <= calm or not last or not _newton_step(self._H, w, grad, penalty, damping):
                break
        return w


def violations(w: FloatArray, grad: FloatArray, penalty: FloatArray) -> FloatArray:
    """How far 0 is from the subgradients of each weight."""
    at_zero = np.maximum(np.abs(grad) - penalty, 0.0)
    return np.where(w == 0, at_zero, np.abs(grad + np.sign(w) * penalty))


def _newton_step(H: FloatArray, w: FloatArray, grad: FloatArray, penalty: FloatArray, damping: float) -> bool:
    """Move the weights that are not 0 to the model's minimum for their signs, or to where the first of them is 0."""
    support = np.flatnonzero((w != 0) | (penalty == 0))
    if not len(support):
        return False
    old = w[support]
    pull = penalty[support] * np.sign(old)
    part = H[np.ix_(support, support)]
    # Where the loss is flat (features that add up to a constant) the signs alone would send weights to infinity: damped,
    # each moves by about its own size, and less and less so as the gap closes.
    diagonal = np.diag_indices(len(part))
    part[diagonal] += np.divide(damping, np.abs(old), out=np.zeros(len(old)), where=pull != 0) + 1e-12 * part[diagonal].max()
    try:
        step = -sl.cho_solve(sl.cho_factor(part.T, lower=True, overwrite_a=True), grad[support] + pull)
    except (np.linalg.LinAlgError, ValueError):
        return False
    if not np.isfinite(step).all():
        return False
    crossing = (pull != 0) & (old * (old + step) < 0)
    if crossing.any():
        ends = np.where(crossing, -old / np.where(crossing, step, 1.0), np.inf)
        first = int(np.argmin(ends))
        step *= ends[first]
        step[first] = -old[first]
    moved = np.zeros(len(w))
    moved[support] = step
    w += moved
    grad += H @ moved
    return True
