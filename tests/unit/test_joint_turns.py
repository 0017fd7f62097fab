"""Crammer & Singer's machine, turn by turn: epochs of its descent, the classes that a cut takes, when descent is left."""

from types import SimpleNamespace

import numpy as np
import pytest
from generators import listened

from maxmargin import _core
from maxmargin.linear import CrammerSinger, LinearProblem, certified, joint_descent, multiclass
from maxmargin.linear.joint_descent import JointDescent
from maxmargin.linear.joint_problem import JointProblem
from maxmargin.linear.rounding import UNIT, gamma
from maxmargin.runtime import Status


def made(seed=0, n=60, d=4, classes=3, bias=1.0, penalised=False, C=0.6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    labels = np.argmax(X[:, :classes] + rng.normal(size=(n, classes)), axis=1)
    labels[:classes] = np.arange(classes)
    return LinearProblem(X, np.ones(n), rng.uniform(0.2, 2, n), C, bias=bias, penalised=penalised), labels


def losses(problem, w):
    W = w.reshape(problem.classes, -1)
    s = problem.X @ W[:, : problem.d].T + (problem.bias * W[:, -1] if problem.bias else 0.0)
    rows = np.arange(problem.n)
    s = s - s[rows, problem.labels][:, None] + 1
    s[rows, problem.labels] = 0.0
    return s.max(axis=1), s.argmax(axis=1)


# ---- descent


@pytest.mark.parametrize(("active", "epochs"), [(60, None), (60, 13), (7, 13), (60, 1)])
def test_a_turn_has_as_many_epochs_as_its_budget_pays_for(active, epochs, monkeypatch):
    """In products: classes times values of a row times active samples. Each has an order of its own; rounding gathers."""
    one, labels = made()
    problem, asked = JointProblem.of(one, labels, 3), []

    def epoch(matrix, samples, labels, upper, norms, feature, centre, beta, v, seed):
        asked.append((samples, upper, norms, feature, centre.copy(), seed))
        v[:, -1] += 0.5
        return 0.25, 9

    core = SimpleNamespace(joint_epoch=epoch, linear_norms=_core.linear_norms)
    monkeypatch.setattr(joint_descent, "_core", core)
    descent = JointDescent(problem, 100)
    descent._active = np.arange(active)
    products = 3 * 4 * active
    budget = 13 * products + products // 2 if epochs == 13 else products // 2 if epochs == 1 else 10**9
    monkeypatch.setattr(joint_descent, "BUDGET", budget)
    expected = epochs or joint_descent.EPOCHS
    descent._beta[np.arange(60), labels] = 0.125
    mass = 0.125 * 60
    _, said = listened(descent.descend())
    assert len(asked) == len(said) == expected and [a[-1] for a in asked] == [100 + k for k in range(expected)]
    for samples, upper, norms, feature, centre, _ in asked:
        assert len(samples) == active and not centre.any() and feature == descent._feature
        np.testing.assert_array_equal(upper, problem.C * problem.weight)
        np.testing.assert_allclose(norms, (problem.X**2).sum(axis=1))
    assert descent._drift == pytest.approx(expected * (gamma(10) * (mass + 0.25) + 4 * UNIT * 0.25), rel=1e-12, abs=0)
    np.testing.assert_allclose(descent._centre, descent._feature * 0.5 * expected)
    assert descent._feature == pytest.approx(np.sqrt((problem.X**2).sum(axis=1).mean()))
    assert descent._mass() == pytest.approx(mass)


def test_a_descent_without_active_samples_does_not_divide_by_them():
    one, labels = made()
    descent = JointDescent(JointProblem.of(one, labels, 3), 0)
    descent._active = np.arange(0)
    _, said = listened(descent.descend())
    assert len(said) == joint_descent.EPOCHS and descent._mass() == 0.0


@pytest.mark.parametrize(("bias", "penalised"), [(0.0, False), (2.0, True), (2.0, False)])
def test_the_cut_of_a_descent_takes_from_the_classes_with_too_much_what_others_lack(bias, penalised):
    """Its free intercepts are balanced, and it is the cut of those duals: a share of each rich class for the poor ones."""
    one, labels = made(bias=bias, penalised=penalised)
    problem = JointProblem.of(one, labels, 3)
    descent = JointDescent(problem, 0)
    x = np.column_stack([problem.X, np.full(problem.n, bias)])[:, : problem.d + (bias != 0)]
    for _ in range(4):
        listened(descent.descend())
        beta, C = descent._beta / problem.C, problem.C
        np.testing.assert_allclose(descent._v[:, : problem.d], C * beta.T @ problem.X, atol=1e-9)
        cut, own = descent.cut(), beta[np.arange(problem.n), labels]
        if not problem.free_intercept:
            np.testing.assert_allclose(cut.a.reshape(3, -1), -beta.T @ x, atol=1e-9)
            assert cut.b == pytest.approx(own.sum(), rel=1e-9) and cut.mass == pytest.approx(own.sum(), rel=1e-12)
            assert cut.drift == pytest.approx(descent._drift / C + gamma(3 + 8) * own.sum(), rel=1e-9, abs=0)
        else:
            off = -beta.sum(axis=0)
            lack, weights = np.maximum(-off, 0), np.bincount(labels, problem.weight)
            share = np.maximum(off, 0) / weights
            taken = share[labels] * problem.weight  # of each sample of a rich class, for the poor ones as they lack
            more = np.zeros_like(beta)
            more[np.arange(problem.n), labels] += taken
            more -= np.outer(taken, lack / max(lack.sum(), 1e-300))
            whole = (beta + more) / (1 + share.max())
            a = -whole.T @ x
            np.testing.assert_allclose(a[:, -1], 0.0, atol=1e-9)
            np.testing.assert_allclose(cut.a.reshape(3, -1), a, atol=1e-9)
            assert cut.b == pytest.approx(whole[np.arange(problem.n), labels].sum(), rel=1e-9)
            assert cut.mass == pytest.approx(cut.b, rel=1e-9)
            mass = own.sum() + lack.sum()
            drift = descent._drift / C + gamma(3 + 8) * own.sum() + gamma(60 + 3 + 8) * (mass + lack.sum())
            assert cut.drift == pytest.approx(drift / (1 + share.max()), rel=1e-9, abs=0)
        w = descent.point().reshape(3, -1)
        np.testing.assert_allclose(w[:, : problem.d], descent._v[:, : problem.d])
        if bias:
            np.testing.assert_allclose(w[:, -1], descent._centre / bias if problem.free_intercept else descent._v[:, -1])
        scores = problem.zeros()
        listened(problem.outputs(descent.point(), scores))
        descent.choose(scores)


# ---- turns


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize(("bias", "penalised"), [(0.0, False), (2.0, True), (2.0, False)])
def test_every_cut_takes_each_sample_for_the_class_that_attains_its_loss(classes, bias, penalised, monkeypatch):
    one, labels = made(classes=classes, bias=bias, penalised=penalised)
    solver, cuts, moved = CrammerSinger(one, labels, classes, 1e-5), [], CrammerSinger._moved
    problem = solver.problem
    x = np.column_stack([problem.X, np.full(problem.n, bias)])[:, : problem.d + (bias != 0)]

    def seen(self, taken, mass):
        cut = yield from moved(self, taken, mass)
        weight = problem.weight[:, None]
        a = ((np.eye(classes)[taken] - np.eye(classes)[labels]) * weight).T @ x
        np.testing.assert_allclose(cut.a.reshape(classes, -1), a, atol=1e-9)
        off = problem.weight[taken != labels].sum()
        assert mass == pytest.approx(off) and cut.mass == mass and cut.b == pytest.approx(off, rel=1e-12) and cut.b < off
        assert 0 < cut.drift <= 1e-9 and cut.drift >= UNIT * mass
        cuts.append(cut)
        return cut

    monkeypatch.setattr(CrammerSinger, "_moved", seen)
    end, said = listened(solver.turns())
    turns = [turn for turn in said if turn is not None]
    assert end is None and turns[-1].violation <= 1e-5 and len(cuts) == len(turns)
    result = solver.result(Status.CONVERGED)
    loss, _ = losses(problem, result.w.ravel())
    w = result.w[:, : problem.d] if problem.free_intercept else result.w
    assert result.objective == pytest.approx(0.5 * (w**2).sum() + problem.C * problem.weight @ loss, rel=1e-9)
    assert result.w.shape == (classes, problem.d + (bias != 0)) and solver.snapshot().duals is None
    assert len(turns) <= 40


def test_a_cut_that_has_gathered_rounding_is_summed_up_anew_where_that_matters(monkeypatch):
    for matters in (True, False):
        one, labels = made()
        solver, count = CrammerSinger(one, labels, 3, 1e-5), []
        monkeypatch.setattr(CrammerSinger, "matters", lambda self, cut, matters=matters: matters)

        def seen(self, taken, mass, moved=CrammerSinger._moved, count=count):
            count.append(mass)
            return moved(self, taken, mass)

        monkeypatch.setattr(CrammerSinger, "_moved", seen)
        scores = solver.best.m.copy()
        solver._drift = 1.0
        listened(solver._cut(scores))
        assert len(count) == 1 + matters and (solver._drift < 1e-6) == matters
        solver._drift = 0.0
        del count[:]
        listened(solver._cut(scores))
        assert len(count) == 1
        monkeypatch.undo()


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_descent_is_left_after_three_turns_in_a_row_in_which_it_is_behind(C, monkeypatch):
    """Its own gap is more than twice that of all cuts, and has not fallen to 0.7 of what it was."""
    cuts, cut, descend = [], JointDescent.cut, CrammerSinger._descend

    def told(self):
        cuts.append(cut(self))
        return cuts[-1]

    def seen(self, descent, scores):
        last, behind = self._own_gap, self._behind
        yield from descend(self, descent, scores)
        a, b, problem = cuts[-1].a, cuts[-1].b, self.problem
        gap = self.objective - (problem.C * b - 0.5 * problem.C**2 * problem.inner(a, a))
        assert self._own_gap == pytest.approx(gap, rel=1e-12)
        late = gap > max(multiclass.BEHIND * self.gap, multiclass.CATCH_UP * last)
        assert self._behind == (behind + 1 if late else 0)
        assert (self._descent is None) == (self._behind >= multiclass.PATIENCE)
        kinds.append(late)

    monkeypatch.setattr(JointDescent, "cut", told)
    monkeypatch.setattr(CrammerSinger, "_descend", seen)
    kinds = []
    for n in (40, 600):
        one, labels = made(n=n, C=C)
        listened(CrammerSinger(one, labels, 3, 1e-4).turns())
    assert kinds and not kinds[0]


def test_a_search_ends_at_the_best_point_of_the_line():
    rng = np.random.default_rng(1)
    one, labels = made()
    solver = CrammerSinger(one, labels, 3, 1e-5)
    problem = solver.problem
    for _ in range(10):
        m, q = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
        quad, lin = rng.uniform(0.1, 5), -rng.uniform(0, 30)

        def value(k, m=m, q=q, quad=quad, lin=lin):
            return 0.5 * quad * k * k + lin * k + problem.C * problem.risk(m + k * q)

        k = solver._search(m, q, quad, lin)
        assert 0 <= k <= certified.FAR
        grid = min(value(t) for t in np.concatenate([np.linspace(0, 5, 400), k * np.linspace(0.9, 1.1, 41)]))
        assert value(k) <= grid + 1e-9 * abs(grid)
