"""The whole problem whose rows are in partitions: what each turn solves, on what, and when it ends."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from generators import listened

sys.path.insert(0, str(Path(__file__).parent))
from partitioned import partitions

from maxmargin.dask import whole as module
from maxmargin.dask.values import PartitionedData, frame_of
from maxmargin.dask.whole import PartitionedWhole, violators
from maxmargin.decomposition.options import Options
from maxmargin.divide.model import Plan, Problem
from maxmargin.divide.subproblem import Piece, Subproblem
from maxmargin.kernel_values import KernelData
from maxmargin.problem.formulations import c_svc, epsilon_svr
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Deadline, Status, drained

CUTS, KERNEL = (7, 7, 40, 66), Kernel("rbf", 0.5)


class Solved:
    """In the place of a worker: solves here what it is told to."""

    asked: list
    status = None

    def __init__(self, tasks, ids, blocks, frame):
        (self.task,), (moved,) = tasks, ids
        assert (np.diff(self.task.ids) > 0).all()  # rows are moved in their order
        np.testing.assert_array_equal(self.task.ids, moved)
        assert blocks.place.shape == (80,) and frame is self.task.data.frame
        Solved.asked.append(self.task)

    def solve(self, pieces):
        yield None
        task, there = self.task, self.task.data
        data = KernelData(there.X.whole, there.kernel, there.rows, np.float64, 1, there.frame)
        twin = Subproblem(0, 0, task.samples, task.ids, task.qp, data, task.alpha, task.options, task.max_iter)
        result = drained(twin.solving().steps(task.max_iter))
        pieces.append(Piece.of(task, replace(result, status=Solved.status or result.status)))


def made(monkeypatch, kind="classes", alphas=None, **plan):
    """Two problems on some of 80 samples, one row each; `alphas`: where they begin."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    target = np.sin(2 * X[:, 0]) + X[:, 1]
    there = partitions(X, CUTS)
    there.whole = X
    there.client = SimpleNamespace(nthreads=lambda: {"one": 2, "two": 3})
    samples = rng.permutation(80)
    data = PartitionedData(there, KERNEL, samples, np.float64, 1, frame_of(there, KERNEL, samples, np.float64))
    problems = []
    for seed, chosen in ((1, np.arange(80)), (2, rng.permutation(80)[:50])):
        upper = np.random.default_rng(seed).uniform(0.5, 3, len(chosen))
        t = target[samples[chosen]]
        qp = c_svc(np.where(t > 0, 1.0, -1.0), upper) if kind == "classes" else epsilon_svr(t, 0.1, upper)
        problems.append(Problem(qp, chosen))
    options = {"k": 2, "levels": 1, "deadline": Deadline(), **plan}
    whole = PartitionedWhole(problems, data, Options(tol=1e-3), Plan(**options), None)
    if alphas is not None:
        whole.alphas = [p.qp.repaired(rng.uniform(0, alphas, p.qp.n_variables) * p.qp.upper) for p in problems]
    Solved.asked, Solved.status = [], None
    monkeypatch.setattr(module, "Afar", Solved)
    return whole


def gram(whole, p):
    x = whole.data.X.whole[whole.data.rows[whole.problems[p].chosen]]
    return np.exp(-0.5 * np.square(x[:, None] - x[None]).sum(axis=2))


def certified(whole, p, known):
    """f, objective and violation of alpha, in NumPy."""
    qp = whole.problems[p].qp
    beta = (qp.sign * known.alpha).reshape(-1, qp.n)
    f = gram(whole, p) @ beta.sum(axis=0)
    np.testing.assert_allclose(known.f, f, atol=1e-6)
    score = qp.center - np.tile(f, len(beta))
    up = beta.ravel() < np.maximum(qp.sign * qp.upper, 0)
    low = beta.ravel() > np.minimum(qp.sign * qp.upper, 0)
    assert known.violation == pytest.approx(max(0.0, score[up].max() - score[low].min()), abs=1e-6)
    dual = (qp.sign * qp.center) @ known.alpha - 0.5 * beta.sum(axis=0) @ f
    assert known.objective - known.gap == pytest.approx(dual, rel=1e-6)
    assert abs(beta.sum()) <= 1e-9 and (known.alpha >= 0).all() and (known.alpha <= qp.upper).all()


@pytest.mark.parametrize("kind", ["classes", "regression"])
def test_each_problem_is_solved_by_working_sets_that_grow(kind, monkeypatch):
    monkeypatch.setattr(module, "LEAST", 12)
    whole = made(monkeypatch, kind, alphas=0.3)
    whole.alphas = [np.where(np.arange(len(a)) % (len(a) // (1 + (kind != "classes"))) < 20, a, 0.0) for a in whole.alphas]
    whole.alphas = [p.qp.repaired(a) for p, a in zip(whole.problems, whole.alphas)]
    listened(whole.begin())
    before = list(whole.solutions)
    for p, known in enumerate(before):
        certified(whole, p, known)
        np.testing.assert_array_equal(known.alpha, whole.alphas[p])
        assert known.status is Status.MAX_TIME
    steps, rows, turn = whole.solve(), [], 0
    known = list(before)
    while True:
        try:
            row = next(steps)
        except StopIteration:
            break
        if row is None:
            continue
        p, said = row
        task, problem = Solved.asked[turn], whole.problems[p]
        support = np.flatnonzero(known[p].alpha.reshape(-1, problem.qp.n).any(axis=0))
        worst = violators(problem.qp, known[p], 1e-3, max(12, len(support)))
        expected = np.union1d(support, worst)
        assert task.problem == p and sorted(task.samples) == expected.tolist()
        np.testing.assert_array_equal(problem.chosen[task.samples], task.ids)
        assert task.options.tol == 0.5e-3 and task.options.threads == 3 and task.max_iter == -1
        new = whole.solutions[p]
        certified(whole, p, new)
        assert said == {"dual": new.objective - new.gap, "violation": new.violation, "n_support": new.n_support}
        outside = np.setdiff1d(np.arange(problem.qp.n), task.samples)
        assert not new.alpha.reshape(-1, problem.qp.n)[:, outside].any()
        assert new.objective - new.gap >= known[p].objective - known[p].gap - 1e-9
        known[p] = new
        rows.append(p)
        turn += 1
    assert rows == sorted(rows) and rows.count(0) > 1 and rows.count(1) > 1 and len(rows) == len(Solved.asked)
    assert whole.solved == 2 and [s.status for s in whole.solutions] == [Status.CONVERGED] * 2
    assert [s.n_iter for s in whole.solutions] == whole.iterations.tolist() and (whole.iterations > 0).all()
    assert all(s.violation <= 1e-3 for s in whole.solutions)


def test_turns_and_time_are_limited(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 8)
    for most in (0, 1, 2):
        whole = made(monkeypatch, max_iter=most)
        listened(whole.begin())
        _, said = listened(whole.solve())
        turns = [row[0] for row in said if row is not None]
        assert turns == [0] * max(1, most) + [1] * max(1, most) and whole.solved == 2
        assert [s.status for s in whole.solutions] == [Status.MAX_ITER] * 2
        assert {task.max_iter for task in Solved.asked} == {most}
    whole = made(monkeypatch, deadline=Deadline(1e-9))
    listened(whole.begin())
    before = list(whole.solutions)
    _, said = listened(whole.solve())
    assert not any(said) and whole.solutions == before and whole.solved == 2 and not Solved.asked


def test_what_is_left_after_a_turn_that_nobody_would_gain_from_is_rounding(monkeypatch):
    """Before the first turn it is not: float32 may have left something else."""
    whole = made(monkeypatch, alphas=0.3)
    listened(whole.begin())
    monkeypatch.setattr(module, "violators", lambda qp, known, tol, most: np.arange(0))
    _, said = listened(whole.solve())
    assert [row[0] for row in said if row is not None] == [0, 1]
    for known, task in zip(whole.solutions, Solved.asked):
        assert known.status in (Status.STALLED, Status.CONVERGED)
        assert len(task.samples) == np.count_nonzero(whole.alphas[task.problem])
    assert any(known.status is Status.STALLED for known in whole.solutions) or all(
        len(task.samples) == whole.problems[task.problem].qp.n for task in Solved.asked
    )


@pytest.mark.parametrize("kind", ["classes", "regression"])
def test_refining_solves_each_problem_on_its_support_vectors(kind, monkeypatch):
    whole = made(monkeypatch, kind, alphas=0.5)
    chosen = [np.random.default_rng(p).random(a.shape) < 0.4 for p, a in enumerate(whole.alphas)]
    whole.alphas = [problem.qp.repaired(a * some) for problem, a, some in zip(whole.problems, whole.alphas, chosen)]
    whole.alphas[1][:] = 0.0  # which has none
    supports, begun = [whole.support(p) for p in range(2)], [a.copy() for a in whole.alphas]
    listened(whole.refine())
    (task,) = Solved.asked
    assert sorted(task.samples) == supports[0].tolist() and len(whole.refined) == 1
    n = whole.problems[0].qp.n
    np.testing.assert_array_equal(task.alpha, begun[0].reshape(-1, n)[:, task.samples].ravel())
    outside = np.setdiff1d(np.arange(n), supports[0])
    assert not whole.alphas[0].reshape(-1, n)[:, outside].any() and not whole.alphas[1].any()
    qp, K = whole.problems[0].qp, gram(whole, 0)

    def dual(alpha):
        beta = (qp.sign * alpha).reshape(-1, n)
        return (qp.sign * qp.center) @ alpha - 0.5 * beta.sum(axis=0) @ K @ beta.sum(axis=0)

    assert dual(whole.alphas[0]) > dual(begun[0])
    assert whole.refined[0].objective - whole.refined[0].gap == pytest.approx(dual(whole.alphas[0]), rel=1e-6)
    f = K @ (qp.sign * whole.alphas[0]).reshape(-1, n).sum(axis=0)
    np.testing.assert_allclose(whole.refined[0].f, f[supports[0]], atol=1e-6)
    assert whole.iterations.tolist() == [whole.refined[0].n_iter, 0]


def test_a_refinement_that_time_ends_changes_nothing(monkeypatch):
    whole = made(monkeypatch, alphas=0.5)
    begun = [a.copy() for a in whole.alphas]
    Solved.status = Status.MAX_TIME
    listened(whole.refine())
    assert len(Solved.asked) == 1 and whole.cut_short is Status.MAX_TIME
    for now, then in zip(whole.alphas, begun):
        np.testing.assert_array_equal(now, then)


def test_what_stops_the_rest_is_its_status(monkeypatch):
    whole = made(monkeypatch)
    listened(whole.begin())
    whole.solutions[0] = replace(whole.solutions[0], status=Status.CONVERGED)
    whole.stop(Status.CALLBACK)
    assert [known.status for known in whole.solutions] == [Status.CONVERGED, Status.CALLBACK]
