"""Prediction from a level of divide and conquer: early (6), all (5), and the Bayesian committee machine (DC-SVM paper, §4).

    early    f(x) = Σ_{i in cluster of x} coef_i K(x, x_i) + b_cluster      the cluster by the rule that training used;
             in a cluster of one class that class, without asking
    all      f(x) = Σ_i coef_i K(x, x_i) + b                                b the mean over clusters, by size
    bcm      each cluster's model votes on every x: logit p_c(x) = slope_c f_c(x) + logit(prior), the slope fitted on its
             own training points, so that far from its data it says no more than the prior, and
             logit p(x) = Σ_c logit p_c(x) − (clusters − 1) logit(prior)      (Tresp 2000)
             Regression: f(x) = Σ_c t_c f_c(x) / (Σ_c t_c − (clusters − 1)), t_c = v / v_c with v the variance of the
             targets and v_c that of the cluster's residuals, at most v.

    cost per point     early m + |S|/clusters kernel values, the others |S|
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.matrix import as_matrix
from maxmargin.divide.clustering import Centers, nearest_native, nearest_of_blocks
from maxmargin.divide.model import LevelModel, Problem, regression_targets
from maxmargin.kernel_values import Samples
from maxmargin.problem.kernels import Kernel, checked_block, weighted_sums
from maxmargin.runtime import drained

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SLOPE_POINTS = 1000  # of a cluster: one number is fitted
_LEAST_VARIANCE = 1e-12  # of a cluster's residuals, relative to the targets': below, all are equally right


@dataclass(frozen=True)
class Router:
    """Which cluster a point belongs to: the centres' sampled points and the kernel they were found with.

    `columns` are the sampled points' training rows, for a precomputed kernel; `vectors` the points themselves otherwise.
    """

    centers: Centers
    kernel: Kernel
    precision: str
    vectors: Any
    columns: IntArray

    def prepared(self, threads: int) -> Samples | None:
        """The sampled points as the core has them; None for a kernel that is not its own."""
        if not self.kernel.native:
            return None
        return Samples(self.vectors, self.kernel, np.arange(self.vectors.shape[0]), self.precision, threads)

    def cluster(self, X: Any, threads: int, sampled: Samples | None = None) -> IntArray:
        """The cluster of each row of X (in the form of `vectors`; for a precomputed kernel K(x, training rows))."""
        ids = np.arange(X.shape[0])
        sampled = sampled or self.prepared(threads)
        if sampled is not None:
            known = sampled.points
            points = known.like(as_matrix(X), threads)
            return drained(
                self.centers.assign(ids, lambda i, rows, end, z: nearest_native(points, i, known, rows, end, z, threads))
            )
        return drained(
            self.centers.assign(
                ids, lambda i, rows, end, z: nearest_of_blocks(lambda some: self._block(X, some, rows), i, end, z)
            )
        )

    def _block(self, X: Any, ids: IntArray, rows: IntArray) -> FloatArray:
        if self.kernel.name == "precomputed":
            return np.asarray(X[np.ix_(ids, self.columns[rows])], dtype=np.float64)
        assert self.kernel.function is not None
        return checked_block(self.kernel.function(X[ids], self.vectors[rows]), (len(ids), len(rows)))


def groups(cluster: IntArray) -> Iterator[tuple[int, IntArray]]:
    """(cluster, its points) for each cluster that has points."""
    order = np.argsort(cluster, kind="stable")
    cuts = np.flatnonzero(np.diff(cluster[order])) + 1
    for some in np.split(order, cuts):
        if len(some):
            yield int(cluster[some[0]]), some


def fit_slope(f: FloatArray, sign: FloatArray, weight: FloatArray, shift: float, iterations: int = 50) -> float:
    """The slope ≥ 0 of p(+1 | f) = 1 / (1 + exp(−slope·f − shift)), by Newton, with Platt's smoothed targets."""
    plus, minus = float(weight[sign > 0].sum()), float(weight[sign < 0].sum())
    target = np.where(sign > 0, (plus + 1) / (plus + 2), 1 / (minus + 2))
    slope, value = 0.0, np.inf
    for _ in range(iterations):
        z = slope * f + shift
        new = float(weight @ (np.logaddexp(0, z) - target * z))
        if value - new <= 1e-7 * abs(new):
            break
        value = new
        p = 1 / (1 + np.exp(-np.clip(z, -500, 500)))
        gradient, curvature = float((weight * (p - target)) @ f), float((weight * p * (1 - p)) @ (f * f))
        slope = max(0.0, slope - gradient / max(curvature, np.finfo(float).tiny))
    return slope


class Expansion:
    """Σ_i coef_i K(x, sv_i) over some support vectors, for blocks of points in the support vectors' form."""

    def __init__(self, kernel: Kernel, vectors: Any, support: IntArray, precision: str, threads: int) -> None:
        self.kernel, self.vectors, self.support = kernel, vectors, support
        self.machine: Samples | None = None
        if kernel.native and len(support):
            self.machine = Samples(vectors, kernel, np.arange(len(support)), precision, threads, room=np.inf)

    def at(self, X: Any, threads: int) -> Callable[[IntArray, IntArray, FloatArray], FloatArray]:
        """A function (points, columns, coef) → sums, points × outputs, with coef of shape outputs × columns."""
        like = None if self.machine is None else self.machine.with_threads(threads).like(X)

        def sums(points: IntArray, columns: IntArray, coef: FloatArray) -> FloatArray:
            out = np.zeros((len(coef), len(points)))
            if not len(columns):
                return np.asarray(out.T)
            if like is not None and self.machine is not None:
                like.sum(points, self.machine.points, columns, np.ascontiguousarray(coef), out, threads)
                return np.asarray(out.T)
            if self.kernel.name == "precomputed":
                return weighted_sums(X[np.ix_(points, self.support[columns])], coef)
            assert self.kernel.function is not None
            step = max(1, 2**24 // len(columns))  # 128 MB of kernel values at a time
            for i in range(0, len(points), step):
                some = points[i : i + step]
                block = self.kernel.function(X[some], self.vectors[columns])
                out[:, i : i + step] = weighted_sums(checked_block(block, (len(some), len(columns))), coef).T
            return np.asarray(out.T)

        return sums


@dataclass(frozen=True)
class Ready:
    """What a committee needs beside its own numbers, made once for all predictions."""

    expansion: Expansion  # of the support vectors
    sampled: Samples | None  # the router's points
    columns: dict[int, IntArray]  # the support vectors of each cluster that has some


@dataclass(frozen=True)
class Committee:
    """A level's model for prediction: where each support vector belongs, each cluster's intercepts, and its trust.

    classification: `trust` is the slope of the cluster's logit, `prior` the logit of +1; regression: v / v_c, and 1.
    """

    router: Router | None  # None: one cluster
    cluster: IntArray  # of each support vector
    intercept: FloatArray  # clusters × problems
    constant: FloatArray  # clusters × problems; NaN: ask the machine (model.LevelModel)
    trust: FloatArray  # clusters × problems
    prior: FloatArray  # per problem
    regression: bool

    def ready(self, expansion: Expansion, threads: int) -> Ready:
        """To predict with: the support vectors' expansion is given."""
        assert self.router is not None
        return Ready(expansion, self.router.prepared(threads), dict(groups(self.cluster)))

    def early(self, X: Any, ready: Ready, coef: FloatArray, threads: int) -> FloatArray:
        """(6): each point by the model of its own cluster; points × problems."""
        assert self.router is not None
        out = np.empty((X.shape[0], len(coef)))
        none, sums = np.empty(0, np.int64), ready.expansion.at(X, threads)
        for c, points in groups(self.router.cluster(X, threads, ready.sampled)):
            out[points] = self.constant[c]
            asked = np.isnan(self.constant[c])
            if asked.any():
                mine = ready.columns.get(c, none)
                values = sums(points, mine, coef[np.ix_(asked, mine)]) + self.intercept[c, asked]
                out[np.ix_(points, asked)] = values
        return out

    def bcm(self, X: Any, ready: Ready, coef: FloatArray, threads: int) -> FloatArray:
        """Every cluster's model on every point, combined; points × problems."""
        points, sums = np.arange(X.shape[0]), ready.expansion.at(X, threads)
        none = np.empty(0, np.int64)
        top, weight = np.zeros((X.shape[0], len(coef))), np.zeros(len(coef))
        for c in range(len(self.intercept)):
            mine = ready.columns.get(c, none)
            f = sums(points, mine, coef[:, mine]) + self.intercept[c]
            top += self.trust[c] * f
            weight += self.trust[c]
        if self.regression:
            return np.asarray(top / (weight - (len(self.intercept) - 1) * self.prior))
        return np.asarray(top + self.prior)


def trust_of(model: LevelModel, problems: Sequence[Problem], regression: bool) -> tuple[FloatArray, FloatArray]:
    """(trust, prior) of a committee, from the training points of each cluster."""
    trust = np.ones((len(model.intercept), len(problems)))
    prior = np.zeros(len(problems))
    for p, problem in enumerate(problems):
        qp, weight = problem.qp, problem.qp.upper[: problem.qp.n]
        label = np.zeros(qp.n, np.int64) if model.partition is None else model.partition.label[problem.chosen]
        if regression:
            target, prior[p] = regression_targets(qp), 1.0
            variance = _variance(target, weight, mean=True)
        else:
            plus, minus = (float(weight[side].sum()) for side in (qp.sign > 0, qp.sign < 0))
            prior[p] = np.log(plus) - np.log(minus)
        if model.partition is None:
            continue
        for c, mine in groups(label):
            f = model.f[p][mine] + model.intercept[c, p]
            if regression:
                residual = _variance(target[mine] - f, weight[mine], mean=False)
                trust[c, p] = 1 / np.clip(residual / variance if variance > 0 else 0.0, _LEAST_VARIANCE, 1.0)
            elif not model.f[p][mine].any():  # a constant has no say outside its cluster
                trust[c, p] = 0.0
            else:
                some = slice(None, None, max(1, len(mine) // _SLOPE_POINTS))
                trust[c, p] = fit_slope(f[some], qp.sign[mine][some], weight[mine][some], prior[p])
        empty = np.bincount(label, minlength=len(trust)) == 0
        trust[empty, p] = prior[p] if regression else 0.0  # no say
    return trust, prior


def _variance(x: FloatArray, weight: FloatArray, mean: bool) -> float:
    center = np.average(x, weights=weight) if mean else 0.0
    return float(np.average((x - center) ** 2, weights=weight))
