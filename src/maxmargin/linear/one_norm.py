"""Linear machines under the 1-norm: few weights differ from 0.

    minimise over w, b    F = ‖w‖₁ + C Σ_i weight_i · max(0, 1 − m_i)²,     m_i = sign_i (⟨x_i, w⟩ + b)

The intercept is the weight of a constant feature, penalised like the others or free. Duals alpha_i ≥ 0 make a lower bound:

    F ≥ C (θ Σ alpha_i − θ² Σ alpha_i²/(4 weight_i))      for 0 ≤ θ ≤ 1 / (C · max_j |Σ alpha_i sign_i x_ij|)

(the loss lies above its tangents, and ‖w‖₁ above every ⟨v, w⟩ with |v_j| ≤ 1), with Σ alpha_i sign_i = 0 where the
intercept is free. alpha_i = 2·weight_i·max(0, 1 − m_i) at the present point, scaled by the best θ, closes the gap at the
optimum. Rounding is allowed for as in `rounding`.

One turn: all derivatives (a pass over X by features), the bound, and a working set, the weights that are not 0 and the
features that violate most; epochs of coordinate descent over it (`native/linear/one_norm.hpp`) until they violate a third of
what they did, extrapolated every few epochs (Bertrand & Massias, AISTATS 2021); where that does not happen soon, and they
cost no more than the epochs, Newton steps for the weights that are not 0, their signs held. Working sets and a gap as in
Massias et al. (ICML 2018). Stops at a relative gap of tol. X is copied once, by features.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix
from maxmargin.linear.certified import Clock, Known, LinearResult
from maxmargin.linear.problem import NOTHING, LinearProblem
from maxmargin.linear.rounding import UNIT, FloatArray, gamma
from maxmargin.problem.certificates import CertificateError
from maxmargin.runtime import Status, Turn, settled

EPOCHS = 20       # of coordinate descent per turn, at most: a turn's pass over all features costs about one
LEAST = 2         # epochs before a Newton step: signs that it then holds
WINDOW = 5        # differences of epochs that an extrapolation combines
CALM = 0.3        # of the largest violation at the start of a turn, at which its epochs end
SPREAD = 2        # violating features that join, in units of the weights that are not 0,
FEWEST = 100      # and at least
DENSE = 5000      # weights beyond which no Newton step is tried: their matrix would take 200 MB
STEPS = 8         # of Newton's method per turn, at most, each of which must take
PAYS = 0.1        # of the gap that is left
AT_REST = 12      # turns without progress after which float64 has no more to give


class OneNorm:
    """The solver; `start`: a point to start from. The loss of `problem` is the squared hinge."""

    def __init__(self, problem: LinearProblem, tol: float, *, seed: int = 0, start: FloatArray | None = None) -> None:
        self.problem, self.tol, self.clock = problem, tol, Clock()
        self.w = np.zeros(problem.size) if start is None else start.copy()
        self.u = np.ones(problem.n)  # 1 − margins
        self.lower, self.objective, self.doubt = 0.0, np.inf, 0.0
        self.best = np.zeros(problem.size)
        self._settled, self._seed, self._epochs = False, seed, 0
        self._by_feature = _transposed(problem)
        self._matrix = as_matrix(self._by_feature)
        self._curve = 2 * problem.C * problem.weight
        self._penalty = np.ones(problem.size)
        self._penalty[problem.free] = 0.0
        by_feature, sparse = self._by_feature, sp.issparse(self._by_feature)
        self._stored = np.diff(by_feature.indptr) if sparse else np.full(problem.size, problem.n)
        self._most = _squares(by_feature, self._curve)
        assert problem.extent is not None
        self._largest = np.append(problem.extent.columns, problem.bias)[: problem.size]
        self._keep(np.zeros(problem.size), np.ones(problem.n))

    @property
    def relative_gap(self) -> float:
        return (self.objective - self.lower + self.doubt) / self.objective if self.objective > 0 else 0.0

    def turns(self) -> Generator[Turn | None, None, Status | None]:
        clock = self.clock
        clock.start()
        if self.w.any():
            yield from self._fresh_margins()
            self._keep(self.w, self.u)
        rest, last = 0, (np.inf, -np.inf)
        while True:
            grad = self._bound()
            clock.lap("bound")
            if self.relative_gap <= self.tol:
                yield from self._settle()
            done = self.relative_gap <= self.tol
            yield self._turn()
            if done:
                return None
            state = (self.objective, self.lower)
            rest = rest + 1 if state[0] >= last[0] and state[1] <= last[1] else 0
            last = (min(state[0], last[0]), max(state[1], last[1]))
            if rest >= AT_REST:
                return Status.STALLED
            if rest == AT_REST // 2:
                yield from self._fresh_margins()
            clock.start()
            slow = yield from self._descend(grad)
            clock.lap("descent")
            if slow:
                yield from self._newton()
            self._keep(self.w, self.u)
            clock.lap("newton")

    def _turn(self) -> Turn:
        extra = {"nonzero": float(np.count_nonzero(self.best)), "epochs": float(self._epochs)}
        return Turn(self.objective, self.lower, self.relative_gap, self.problem.support(1 - self.u, self.tol), extra)

    def value(self, w: FloatArray, u: FloatArray) -> float:
        short = np.maximum(u, 0.0)
        return float(self._penalty @ np.abs(w)) + 0.5 * float(self._curve @ (short * short))

    def _keep(self, w: FloatArray, u: FloatArray) -> None:
        value = self.value(w, u)
        if value < self.objective:
            self.objective, self.best, self._settled, self.doubt = value, w.copy(), False, 0.0

    # ---- the certificate ---------------------------------------------------------------------------------------------

    def _bound(self) -> FloatArray:
        """Raise the lower bound by the duals of the present point; the derivatives of the loss there."""
        problem, alpha = self.problem, 2 * self.problem.weight * np.maximum(self.u, 0.0)
        grad = -problem.C * self._sums(alpha)
        sums, astray = -grad / problem.C, 0.0
        if problem.free_intercept:
            up, down = float(alpha[problem.sign > 0].sum()), float(alpha[problem.sign < 0].sum())
            heavy, ratio = (1.0, down / up) if up > down else (-1.0, up / down if down > 0 else 0.0)
            alpha = np.where(problem.sign == heavy, alpha * ratio, alpha)
            sums = self._sums(alpha)
            astray = gamma(problem.n + 8) * float(alpha.sum())  # what rounding may leave of Σ alpha_i sign_i
        self.lower = max(self.lower, self._lower(alpha, sums, astray))
        return grad

    def _sums(self, alpha: FloatArray) -> FloatArray:
        """Σ alpha_i sign_i x_ij for every feature j."""
        out, ones = np.empty(self.problem.size), np.ones(self.problem.size)
        _core.linear_outputs(self._matrix, alpha, 0.0, ones, NOTHING, 0, len(out), out, self.problem.threads)
        return out

    def _lower(self, alpha: FloatArray, sums: FloatArray, astray: float) -> float:
        """No point is below this. `astray` is made up for by samples of one class, as in `rounding`."""
        problem, few = self.problem, gamma(self.problem.n + 8)
        counted = problem.weight > 0
        alpha, weight = alpha[counted], problem.weight[counted]
        mass = float(alpha.sum())
        share = astray / problem._lightest() if astray else 0.0  # of each sample's weight in the class that makes up
        bend = 0.25 * float((alpha * alpha / weight).sum()) + 0.5 * share * mass + 0.25 * share**2 * float(weight.sum())
        bend *= 1 + few
        reach = np.abs(sums) + (few * mass + astray) * self._largest
        top = problem.C * float(reach[self._penalty > 0].max(initial=0.0)) * (1 + 4 * UNIT)
        theta = min(1 / top if top > 0 else np.inf, mass / (2 * bend) if bend > 0 else 0.0)
        if not np.isfinite(theta):
            return 0.0
        line, curve = problem.C * theta * mass * (1 - few), problem.C * theta * theta * bend
        value = line - curve - 8 * UNIT * (line + curve)
        return value if value > 0 else 0.0

    def _settle(self) -> Generator[None, None, None]:
        """The objective of the best point as it is published, its margins computed anew."""
        if not self._settled:
            problem, self.best = self.problem, self.problem.published(self.best)
            m = np.empty(problem.n)
            yield from problem.outputs(self.best, m)
            risk, norm = problem.risk(m), float(self._penalty @ np.abs(self.best))
            self.objective, self._settled = norm + problem.C * risk, True
            risks = problem._risk_doubt(m, problem.off(self.best)) + gamma(problem.n + 8) * risk
            self.doubt = problem.C * risks + gamma(problem.size + 8) * norm
        if self.objective - self.lower < -self.doubt:
            raise CertificateError(self.lower, self.objective)
        self.lower = min(self.lower, self.objective)

    def snapshot(self) -> Known:
        return Known(self.best)

    def result(self, status: Status) -> LinearResult:
        for _ in self._settle():
            pass
        m = np.empty(self.problem.n)
        for _ in self.problem.outputs(self.best, m):
            pass
        counts = {"passes": self.problem.passes, "pass_seconds": self.problem.pass_seconds}
        return LinearResult(
            status=settled(status, self.relative_gap, self.tol), objective=self.objective, gap=self.objective - self.lower,
            violation=self.relative_gap, n_support=self.problem.support(m, self.tol),
            timings={**self.clock.seconds, **counts}, w=self.best, lower=self.lower,
        )

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _fresh_margins(self) -> Generator[None, None, None]:
        m = np.empty(self.problem.n)
        yield from self.problem.outputs(self.w, m)
        self.u = 1 - m

    def _descend(self, grad: FloatArray) -> Generator[None, None, bool]:
        """Epochs of coordinate descent over the working set, extrapolated as they go; whether Newton steps should follow."""
        features, largest = self._working_set(grad)
        points = Extrapolation(self, features.copy())
        count, fresh, spent = len(features), True, 0
        for epoch in range(EPOCHS):
            count, seen, reads = _core.one_norm_epoch(
                self._matrix, features, count, fresh, self._curve, self._penalty, self._most, self.w, self.u,
                self._seed + self._epochs,
            )
            fresh, spent, self._epochs = False, spent + reads, self._epochs + 1
            yield
            if seen <= CALM * largest or not count:
                return False
            points.add()
            if epoch + 1 >= LEAST and spent >= self._price():
                return True
        return False

    def _working_set(self, grad: FloatArray) -> tuple[NDArray[np.int64], float]:
        """The weights that are not 0 and the features that violate most; the largest violation."""
        w, penalty = self.w, self._penalty
        at_zero = np.maximum(np.abs(grad) - penalty, 0.0)
        violation = np.where(w == 0, at_zero, np.abs(grad + np.sign(w) * penalty))
        held = w != 0
        held[self.problem.free] = True
        most = max(FEWEST, SPREAD * int(np.count_nonzero(held)))
        joining = np.flatnonzero((violation > 0) & ~held)
        if len(joining) > most:
            joining = joining[np.argpartition(-violation[joining], most)[:most]]
        features = np.concatenate([np.flatnonzero(held), joining]).astype(np.int64)
        return features, float(violation.max(initial=0.0))

    def _newton(self) -> Generator[None, None, None]:
        """Newton steps for the weights that are not 0, as long as they pay: they end what descent does slowly."""
        now = self.value(self.w, self.u)
        for _ in range(STEPS):
            before, now = now, (yield from self._newton_step(now))
            if before - now < PAYS * (before - self.lower):
                return

    def _price(self) -> float:
        """Of a Newton step, in entries that epochs read in the same time: its loops run over vectors, 0.4 as measured."""
        support = np.flatnonzero((self.w != 0) | (self._penalty == 0))
        count, near = len(support), max(1, int(np.count_nonzero(self.u > 0)))
        if not 0 < count <= DENSE:
            return np.inf
        stored = float(self._stored[support].sum())
        pairs = (stored * near / self.problem.n) ** 2 / near  # of entries of a sample, for samples of equal length
        return 0.4 * (min(pairs, near * count * count / 32) + count**3 / 48 + count * count + 8 * stored)

    def _newton_step(self, now: float) -> Generator[None, None, float]:
        """One of them, which may take weights to 0 but not beyond; the value there, or `now` where nothing is better."""
        support = np.flatnonzero((self.w != 0) | (self._penalty == 0))
        near = np.flatnonzero(self.u > 0)
        if not len(support) or not len(near):
            return now
        old, penalised = self.w[support], self._penalty[support] > 0
        step = self._newton_direction(support, near)
        if step is None:
            return now
        crossing = penalised & (old * (old + step) < 0)
        ends = np.sort(-old[crossing] / step[crossing])  # the parts of the step at which weights become 0
        for part in (1.0, *(ends[[len(ends) // 2, len(ends) // 8, 0]] if len(ends) else (0.5, 0.2, 0.05))):
            new = old + part * step
            new[penalised & (new * old <= 0)] = 0.0
            w, m = self.w.copy(), np.empty(self.problem.n)
            w[support] = new
            yield from self.problem.outputs(w, m)
            value = self.value(w, 1 - m)
            if value < now:
                self.w, self.u = w, 1 - m
                return value
        return now

    def _newton_direction(self, support: NDArray[np.int64], near: NDArray[np.int64]) -> FloatArray | None:
        """−H⁻¹·gradient of some features over the samples that have a loss; None where it has none."""
        problem, old = self.problem, self.w[support]
        pull = self._penalty[support] * np.sign(old)
        H = self._curvature(support, near)
        # Where the loss is flat (features that add up to a constant) the signs alone would send weights to infinity: damped,
        # each moves by about its own size, and less and less so as the gap closes.
        damping = np.divide(min(1.0, self.relative_gap), np.abs(old), out=np.zeros(len(old)), where=pull != 0)
        H[np.diag_indices(len(H))] += damping + 1e-12 * H.diagonal().max()
        grad = pull - problem.C * self._sums(2 * problem.weight * np.maximum(self.u, 0.0))[support]
        try:
            step: FloatArray = -sl.cho_solve(sl.cho_factor(H.T, lower=True, overwrite_a=True), grad)
        except (np.linalg.LinAlgError, ValueError):
            return None
        return step if np.isfinite(step).all() else None

    def _curvature(self, support: NDArray[np.int64], near: NDArray[np.int64]) -> FloatArray:
        """The upper triangle of Σ curve_i x_i x_iᵀ over some samples, for some features."""
        problem, size = self.problem, self.problem.size
        if size <= 2 * len(support):  # the samples as they are: choosing features would cost more than it saves
            H = np.zeros((size, size))
            _core.linear_gram(problem.matrix, near, self._curve[near], problem.bias, True, H, problem.threads)
            return H[np.ix_(support, support)]
        some, H = self._by_feature[support], np.zeros((len(support), len(support)))
        by_sample = some.T.tocsr() if sp.issparse(some) else np.ascontiguousarray(some.T)
        _core.linear_gram(as_matrix(by_sample), near, self._curve[near], 0.0, True, H, problem.threads)
        return H


class Extrapolation:
    """Anderson's: where epochs in one order are heading, as the combination of the last ones whose steps cancel most."""

    def __init__(self, solver: OneNorm, features: NDArray[np.int64]) -> None:
        self._solver, self._features = solver, features
        self._points: list[tuple[FloatArray, FloatArray]] = []
        self.add()

    def add(self) -> None:
        """Take note of the present point; after WINDOW epochs, move on to where they lead if that is better."""
        solver, features = self._solver, self._features
        self._points.append((solver.w[features], solver.u.copy()))
        if len(self._points) <= WINDOW:
            return
        points, penalty = np.array([w for w, _ in self._points]), solver._penalty[features]
        share = self._shares(np.diff(points, axis=0))
        if share is not None:
            w, u = share @ points[1:], share @ np.array([u for _, u in self._points[1:]])
            curve = solver._curve
            here = float(penalty @ np.abs(points[-1])) + 0.5 * float(curve @ np.square(np.maximum(solver.u, 0.0)))
            there = float(penalty @ np.abs(w)) + 0.5 * float(curve @ np.square(np.maximum(u, 0.0)))
            if there < here:
                solver.w[features], solver.u = w, u
        self._points = [(solver.w[features], solver.u.copy())]

    @staticmethod
    def _shares(differences: FloatArray) -> FloatArray | None:
        """Shares that add up to 1 and make Σ share_k difference_k small; None where rounding decides."""
        product = differences @ differences.T
        product[np.diag_indices(WINDOW)] += 1e-8 * np.trace(product)
        try:
            share = sl.solve(product, np.ones(WINDOW), assume_a="pos")
        except (np.linalg.LinAlgError, ValueError):
            return None
        total = float(share.sum())
        return share / total if np.isfinite(total) and total > 0 else None


def _transposed(problem: LinearProblem) -> Any:
    """sign_i x_ij, a row per feature, the constant one last."""
    X, kind = problem.X, problem.X.dtype
    if problem.bias and kind.type(problem.bias) != problem.bias:
        kind = np.dtype(np.float64)
    sign = problem.sign.astype(kind)
    if sp.issparse(X):
        out = sp.csr_matrix(X.T.astype(kind))
        out.data *= sign[out.indices]
        if not problem.bias:
            return out
        return sp.vstack([out, sp.csr_matrix(problem.bias * sign[None, :])], format="csr", dtype=kind)
    out = np.empty((problem.size, problem.n), kind)
    np.multiply(X.T, sign, out=out[: problem.d])
    if problem.bias:
        out[-1] = problem.bias * sign
    return out


def _squares(Z: Any, curve: FloatArray) -> FloatArray:
    """Σ_i curve_i z_ij² of every feature j, a row of Z each."""
    if sp.issparse(Z):
        squares = np.square(Z.data, dtype=np.float64)
        return np.asarray(sp.csr_matrix((squares, Z.indices, Z.indptr), shape=Z.shape) @ curve)
    return np.asarray(np.square(Z, dtype=np.float64) @ curve)
