"""Lemma 1 and Theorem 1 of divide and conquer on any small problem, and the truth of a run that is stopped anywhere."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC
from maxmargin.decomposition.solver import Options, solve
from maxmargin.divide.clustering import nearest_in
from maxmargin.divide.early import drained
from maxmargin.divide.levels import DivideAndConquer
from maxmargin.divide.model import DivideResult, Plan, Problem
from maxmargin.divide.subproblem import KernelData, restricted, variables
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
    assert result.status is Status.CONVERGED
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


@pytest.mark.parametrize("intercept", [False, True])
def test_divide_stopped_anywhere_reports_the_truth(intercept: bool) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2)) * np.where(np.arange(300) < 30, 8.0, 1.0)[:, None]
    y = np.where(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=300) > 0, 1.0, -1.0)
    qp = formulations.c_svc(y, np.full(300, 5.0), intercept)
    case = Case(X, qp, Kernel("rbf", 2.0), Plan(k=3, levels=2, sample_size=60))
    options = Options(tol=1e-3, working_set_size=8)

    def stopped_after(steps: int) -> tuple[DivideResult, int]:
        solver = case.solver(options)
        turns = solver.turns()
        taken = sum(1 for _ in zip(range(steps), turns))
        turns.close()
        return solver.result(Status.MAX_TIME), taken

    _, total = stopped_after(10**6)
    seen = set()
    for steps in sorted({1, 2, 3, *range(4, total, max(1, total // 30)), total - 1}):
        result, _ = stopped_after(steps)
        model = result.model
        seen.add((model.level, len(result.levels)))
        if model.partition is not None:
            answers = [certify(*part) for part in of_clusters(case, result)]
            source = KernelData(X, model.partition.kernel, np.arange(300), np.float64, 1).source()
            routed = drained(model.partition.centers.assign(np.arange(300), nearest_in(source)))
            np.testing.assert_array_equal(routed, model.partition.label)
        elif np.isnan(result.gap):  # refined: of the whole problem nothing is known
            assert np.isnan(result.violation) and np.isnan(result.objective)
            continue
        else:
            whole = model.intercept[0] if result.levels.size else np.zeros(1)  # a constant is no multiplier
            answers = [certify(qp, case.gram, model.alphas[0], whole[: len(qp.targets)])]
        assert result.gap == pytest.approx(sum(a.gap for a in answers), rel=1e-6, abs=1e-6)
        assert result.violation == pytest.approx(max(a.violation for a in answers), abs=1e-6)
    assert {(2, 0), (2, 1), (1, 2), (0, 3)} <= seen


def test_ctrl_c_at_any_kernel_call_of_a_divided_fit_keeps_a_model(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=240) > 0).astype(int)
    calls, press_at = 0, 0

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == press_at:
            signal.raise_signal(signal.SIGINT)
        return Kernel("rbf", 1.0)(a, b)

    machine = DCSVC(kernel=kernel, C=5.0, k=3, levels=2, sample_size=50, working_set_size=8, random_state=0, n_jobs=1)
    machine.fit(X, y)
    total, statuses = calls, set()
    for press_at in sorted({1, 2, *range(3, total, max(1, total // 15))}):
        calls = 0
        monkeypatch.setattr("maxmargin.runtime.interrupt._last", -float("inf"))
        with pytest.warns(ConvergenceWarning, match="interrupted|complete"):
            machine.fit(X, y)
        calls = press_at  # prediction is not interrupted
        statuses.add(machine.status_)
        assert np.isfinite(machine.decision_function(X)).all() and machine.score(X, y) >= 0.5
        assert press_at > 2 or machine.kkt_violation_ >= 1  # nothing was solved, and that is what it says
    assert {"interrupted before the end of level 2", "interrupted at level 2", "interrupted at level 0"} <= statuses
