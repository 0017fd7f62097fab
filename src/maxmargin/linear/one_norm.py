"""Linear machines under the 1-norm: few weights differ from 0.

    minimise over w, b    F = ‖w‖₁ + C Σ_i weight_i · max(0, 1 − m_i)²,     m_i = sign_i (⟨x_i, w⟩ + b)

The intercept is the weight of a constant feature, penalised like the others or free. Duals alpha_i ≥ 0 make a lower bound:

    F ≥ C (θ Σ alpha_i − θ² Σ alpha_i²/(4 weight_i))      for 0 ≤ θ ≤ 1 / (C · max_j |Σ alpha_i sign_i x_ij|)

(the loss lies above its tangents, and ‖w‖₁ above every ⟨v, w⟩ with |v_j| ≤ 1), with Σ alpha_i sign_i = 0 where the
intercept is free. alpha_i = 2·weight_i·max(0, 1 − m_i) at the present point, scaled by the best θ, closes the gap at the
optimum. Rounding is allowed for as in `rounding`.

One turn: all derivatives (a pass over the samples that count) and the bound; then either epochs of coordinate descent
(`native/linear/one_norm.hpp`) over a working set, the weights that are not 0 and the features that violate most, until they
violate a third of what they did, extrapolated every few epochs (Bertrand & Massias, AISTATS 2021); or, once the epochs have
cost as much as that would, a step to the minimum of the quadratic model at the present point (`quadratic_model.py`), as in
GLMNET's and newGLMNET's outer loop (Yuan, Ho & Lin, JMLR 2012), for as long as such steps can be taken whole. Working sets
and a gap as in Massias et al. (ICML 2018). Stops at a relative gap of tol. X is copied once, by features.
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
from maxmargin.linear.quadratic_model import QuadraticModel, violations
from maxmargin.linear.rounding import UNIT, FloatArray, gamma
from maxmargin.problem.certificates import CertificateError
from maxmargin.runtime import Status, Turn, settled

EPOCHS = 20       # of coordinate descent per turn, at most: a turn's pass over all features costs about one
LEAST = 2         # epochs before a Newton step: signs that it then holds
WINDOW = 5        # differences of epochs that an extrapolation combines
CALM = 0.3        # of the largest violation at the start of a turn, at which its epochs end
SPREAD = 2        # violating features that join, in units of the weights that are not 0,
FEWEST = 100      # and at least
CHEAP = 0.5       # of the entries of these: if all others that violate have no more, they join too
DENSE = 1000      # weights beyond which no model is made: its matrix fits no cache, and epochs are as quick
PAIR = 0.55       # cost of a product in the model's matrix, in entries that an epoch reads,
SWEPT = 7         # of an element of it, in all sweeps,
COPIED = 1        # and of an entry of its samples, where they are copied without its other features
SOON = 0.9        # of the derivative at which a weight leaves 0: such features are in a model from the start
HALVINGS = 6      # of the way to the minimum of a model, in search of the best point on it
ROUNDS = 3        # of work on a model, at most
FAIR = 0.25       # of that way, below which more epochs come before the next model: twice as many,
PATIENCE = 4.0    # up to so many times the price of a model
MANY = 0.5        # of the samples: if more have a dual, sums over them are taken by features, which write less
AT_REST = 12      # turns without progress after which float64 has no more to give


class OneNorm:
    """The solver; `start`: a point to start from. The loss of `problem` is the squared hinge."""

    def __init__(self, problem: LinearProblem, tol: float, *, seed: int = 0, start: FloatArray | None = None) -> None:
        self.problem, self.tol, self.clock = problem, tol, Clock()
        self.w = np.zeros(problem.size) if start is None else start.copy()
        self.u = np.ones(problem.n)  # 1 − margins
        self.lower, self.objective, self.doubt = 0.0, np.inf, 0.0
        self.best, self._best_margins = np.zeros(problem.size), np.empty(problem.n)
        self._settled, self._seed, self._epochs, self._rounds = False, seed, 0, 1
        self._patience, self._spent = 1.0, 0.0  # prices of a model that epochs may cost before the next; what they did
        self._curve = 2 * problem.C * problem.weight
        by_feature, self._most = _by_feature(problem, self._curve)
        self._matrix = as_matrix(by_feature)
        self._model = QuadraticModel(problem, self._matrix, self._curve)
        self._inverse = np.divide(1.0, problem.weight, out=np.zeros(problem.n), where=problem.weight > 0)
        self._penalty = np.ones(problem.size)
        self._penalty[problem.free] = 0.0
        self._stored = np.diff(by_feature.indptr) if sp.issparse(by_feature) else np.full(problem.size, problem.n)
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
        rest, last, modelled = 0, (np.inf, -np.inf), False
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
            modelled = modelled and self._model_step(grad)
            clock.lap("model")
            if not modelled:
                modelled = yield from self._descend(grad)
                clock.lap("descent")
            self._keep(self.w, self.u)

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
        sums, astray = self._sums(alpha), 0.0
        grad = -problem.C * sums
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
        problem, out = self.problem, np.zeros(self.problem.size)
        if np.count_nonzero(alpha) > MANY * problem.n:
            _core.linear_outputs(self._matrix, alpha, 0.0, np.ones(len(out)), NOTHING, 0, len(out), out, problem.threads)
            return out
        coef = alpha * problem.sign
        _core.linear_sum_rows(problem.matrix, coef, out[: problem.d], problem.threads)
        if problem.bias:
            out[-1] = problem.bias * float(coef.sum())
        return out

    def _lower(self, alpha: FloatArray, sums: FloatArray, astray: float) -> float:
        """No point is below this. `astray` is made up for by samples of one class, as in `rounding`."""
        problem, few = self.problem, gamma(self.problem.n + 8)
        mass = float(alpha.sum())
        share = astray / problem._lightest() if astray else 0.0  # of each sample's weight in the class that makes up
        bend = 0.25 * float(np.square(alpha) @ self._inverse) + 0.5 * share * mass
        bend = (bend + 0.25 * share**2 * float(problem.weight.sum())) * (1 + few)
        reach = np.abs(sums)
        reach += (few * mass + astray) * self._largest
        reach[problem.free] = 0.0
        top = problem.C * float(reach.max(initial=0.0)) * (1 + 4 * UNIT)
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
            m = self._best_margins
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
        counts = {"passes": self.problem.passes, "pass_seconds": self.problem.pass_seconds}
        return LinearResult(
            status=settled(status, self.relative_gap, self.tol), objective=self.objective, gap=self.objective - self.lower,
            violation=self.relative_gap, n_support=self.problem.support(self._best_margins, self.tol),
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
        points, price = Extrapolation(self, features.copy()), np.inf
        count, fresh = len(features), True
        for epoch in range(EPOCHS):
            count, seen, reads = _core.one_norm_epoch(
                self._matrix, features, count, fresh, self._curve, self._penalty, self._most, self.w, self.u,
                self._seed + self._epochs,
            )
            fresh, self._spent, self._epochs = False, self._spent + reads, self._epochs + 1
            yield
            if seen <= CALM * largest or not count:
                return False
            points.add()
            if epoch + 1 == LEAST:
                price = self._patience * self._price()
            if self._spent >= price:
                return True
        return False

    def _working_set(self, grad: FloatArray) -> tuple[NDArray[np.int64], float]:
        """The weights that are not 0 and the features that violate most; the largest violation."""
        w, penalty = self.w, self._penalty
        violation = violations(w, grad, penalty)
        held = w != 0
        held[self.problem.free] = True
        most = max(FEWEST, SPREAD * int(np.count_nonzero(held)))
        joining = np.flatnonzero((violation > 0) & ~held)
        if len(joining) > most:
            some = joining[np.argpartition(-violation[joining], most)[:most]]
            rest = float(self._stored[joining].sum()) - float(self._stored[some].sum())
            if rest > CHEAP * float(self._stored[held].sum() + self._stored[some].sum()):  # else all may join
                joining = some
        features = np.concatenate([np.flatnonzero(held), joining]).astype(np.int64)
        return features, float(violation.max(initial=0.0))

    def _price(self) -> float:
        """Of a model, in entries that epochs read in the same time, as measured."""
        support = np.flatnonzero((self.w != 0) | (self._penalty == 0))
        count, near = len(support), max(1, int(np.count_nonzero(self.u > 0)))
        if not 0 < count <= DENSE:
            return np.inf
        stored, share = float(self._stored[support].sum()), near / self.problem.n
        pairs = (stored * share) ** 2 / near  # of entries of a sample, for samples of equal length
        copied = 0.0 if self.problem.size <= 2 * count else COPIED * share * self.problem.stored
        # A matrix that no cache holds is read more slowly.
        return PAIR * min(pairs, near * count * count / 32) + SWEPT * count * count * (1 + count / 1000) + copied

    def _model_step(self, grad: FloatArray) -> bool:
        """Towards the minimum of the quadratic model at the present point; whether the model was good for all of the way."""
        model, w, penalty = self._model, self.w, self._penalty
        needed = (w != 0) | (np.abs(grad) > penalty) | (penalty == 0)
        if not model.covers(needed):
            soon = needed | (np.abs(grad) > SOON * penalty)
            chosen = soon if np.count_nonzero(soon) <= DENSE else needed
            if np.count_nonzero(chosen) > DENSE:
                return False
            model.choose(chosen)
        features = model.features
        old, cost = w[features], penalty[features]
        new = model.minimum(self.u > 0, old, grad[features], cost, min(1.0, self.relative_gap), self._rounds)
        step = new - old
        q = model.outputs(step)
        part = self._line(old, step, q, cost)
        full = part == 1
        self._rounds = min(2 * self._rounds, ROUNDS) if full else 1
        self._patience, self._spent = (1.0 if part >= FAIR else min(2 * self._patience, PATIENCE)), 0.0
        if part > 0:
            self.w = w.copy()
            self.w[features] = new if full else old + part * step
            self.u = self.u - part * q
        return full

    def _line(self, old: FloatArray, step: FloatArray, q: FloatArray, cost: FloatArray) -> float:
        """The part of a step to take: all of it, or what is best on the way."""
        counts = (self.u > 0) | (self.u > q)  # samples with a loss somewhere on the way
        u, q, curve = self.u[counts], q[counts], self._curve[counts]

        def value(part: float) -> float:
            short = np.maximum(u - part * q, 0.0)
            return float(cost @ np.abs(old + part * step)) + 0.5 * float(curve @ (short * short))

        def slope(part: float) -> float:
            short = np.maximum(u - part * q, 0.0)
            return float((cost * np.sign(old + part * step)) @ step) - float((curve * short) @ q)

        start, low, high = value(0.0), 0.0, 1.0
        if slope(1 - 0.5**HALVINGS) < 0:  # the best is at the end, or so close to it that no halving would tell
            return 1.0 if value(1.0) < start else 0.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) < 0 else (low, middle)
        return low if low > 0 and value(low) < start else 0.0


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


def _by_feature(problem: LinearProblem, curve: FloatArray) -> tuple[Any, FloatArray]:
    """sign_i x_ij, a row per feature, the constant one last; Σ_i curve_i x_ij² of each."""
    X, kind, n, size, bias = problem.X, problem.X.dtype, problem.n, problem.size, problem.bias
    if float(kind.type(bias)) != bias:  # as Python's numbers: NumPy would round the other one as well
        kind = np.dtype(np.float64)
    if not sp.issparse(X):
        out = np.empty((size, n), kind)
        np.multiply(X.T, problem.sign.astype(kind), out=out[: problem.d])
        if bias:
            out[-1] = bias * problem.sign
        return out, np.asarray(np.square(out, dtype=np.float64) @ curve)
    count = X.nnz + (n if bias else 0)
    indices = np.int32 if max(count, n) < 2**31 else np.int64
    value, index, start = np.empty(count, kind), np.empty(count, indices), np.empty(size + 1, indices)
    squares = np.empty(size)
    _core.linear_by_feature(problem.matrix, problem.sign, curve, bias, value, index, start, squares)
    return sp.csr_matrix((value, index, start), shape=(size, n)), squares
