"""Lemma 1 and Theorem 1 of divide and conquer on any small problem."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.decomposition.options import Options
from maxmargin.decomposition.solver import solve
from maxmargin.divide.levels import DivideAndConquer
from maxmargin.divide.model import DivideResult, Plan, Problem
from maxmargin.divide.subproblem import restricted, variables
from maxmargin.kernel_values import KernelData
from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Control, Status, run

TOL = 1e-6


@dataclass(frozen=True)
class Case:
    X: np.ndarray
    qp: QP
    kernel: Kernel
    plan: Plan

    @property
    def data(self) -> KernelData:
        return KernelData(self.X, self.kernel, np.arange(len(self.X)), np.float64, 1)

    @property
    def gram(self) -> np.ndarray:
        return self.kernel(self.X, self.X)

    def solver(self, options: Options) -> DivideAndConquer:
        return DivideAndConquer([Problem(self.qp, np.arange(len(self.X)))], self.data, options, self.plan)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Clouds of points; labels by cloud (clusters of one class), by place, or by chance."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(8, 60))
    cloud = rng.integers(0, 3, size=n)
    X = rng.normal(size=(n, 2)) + draw(st.sampled_from([0.0, 3.0, 20.0])) * cloud[:, None]
    by = draw(st.sampled_from(["cloud", "place", "chance"]))
    score = {"cloud": cloud - 1.5, "place": X[:, 1], "chance": rng.normal(size=n)}[by]
    upper = 2.0 * rng.integers(1, 4, size=n)
    intercept = draw(st.booleans())
    if draw(st.booleans()):
        qp = formulations.c_svc(np.where(score > 0, 1.0, -1.0), upper, intercept)
    else:
        qp = formulations.epsilon_svr(score, 0.1, upper, intercept)
    # With an intercept each cluster has its equality, and the core solves QPs of two at most.
    plan = Plan(k=2 if intercept else draw(st.integers(2, 4)), levels=1, stop_level=1, sample_size=60)
    return Case(X, qp, Kernel("rbf", draw(st.sampled_from([0.01, 0.5, 5.0]))), plan)


def of_clusters(case: Case, result: DivideResult) -> list[tuple[QP, np.ndarray, np.ndarray, np.ndarray]]:
    """(QP, Gram matrix, alpha, multipliers) of each cluster."""
    assert result.model.partition is not None
    out = []
    for c, mine in enumerate(result.model.partition.members()):
        alpha = result.model.alphas[0][variables(case.qp, mine)]
        multipliers = result.model.intercept[c, : len(case.qp.targets)]
        out.append((restricted(case.qp, mine), case.gram[np.ix_(mine, mine)], alpha, multipliers))
    return out


def value(case: Case, alpha: np.ndarray) -> float:
    beta = formulations.coefficients(case.qp, alpha)
    return float(0.5 * beta @ case.gram @ beta + case.qp.linear @ alpha)


@settings(max_examples=60)
@given(case=cases())
def test_lemma_1_the_level_is_optimal_without_kernel_between_clusters(case: Case) -> None:
    result = run(case.solver(Options(tol=TOL)), Control())
    assert result.status is Status.EARLY
    for qp, gram, alpha, multipliers in of_clusters(case, result):
        answer = certify(qp, gram, alpha, multipliers)
        assert answer.violation <= 2 * TOL and answer.infeasibility <= 1e-9


@settings(max_examples=60)
@given(case=cases())
def test_theorem_1_the_level_is_within_the_bound_of_the_optimum(case: Case) -> None:
    """With an intercept: of the optimum among all alpha that meet every cluster's equality."""
    result = run(case.solver(Options(tol=TOL)), Control())
    assert result.model.partition is not None
    label, qp = result.model.partition.label, case.qp
    if len(qp.targets) and label.any():
        qp = replace(qp, group=np.tile(label, qp.n_variables // qp.n).astype(np.int8), targets=np.zeros(2))
    best = solve(qp, case.data.source(), Options(tol=TOL))
    distance = value(case, result.model.alphas[0]) - value(case, best.alpha)
    rounding = 10 * TOL * (1 + qp.upper.sum())
    assert -rounding <= distance <= result.levels["bound"][0] + rounding
