"""Where float32 kernel values do not tell whether a run is done, f is computed in float64 for the samples that matter."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.decomposition import solver, verified
from maxmargin.decomposition.ending import Point
from maxmargin.decomposition.state import State
from maxmargin.kernel_values.native import NativeValues

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from machines import data, judged, last_row_is_the_model

MACHINES = [
    (SVC(C=100.0, gamma=0.5), "two"),
    (SVC(C=10.0, gamma=0.2, kernel="poly", coef0=1.0), "two"),
    (SVC(C=10.0, gamma=0.5, class_weight={"a": 3.0, "b": 0.2}), "two"),
    (NuSVC(nu=0.3, gamma=0.5), "two"),
    (SVR(C=10.0, gamma=0.5, epsilon=0.3), "numbers"),
    (NuSVR(C=10.0, gamma=0.5, nu=0.2), "numbers"),
    (OneClassSVM(nu=0.1, gamma=0.5), "none"),
]
N = 2000  # more than are always in float64


@pytest.fixture
def sums(monkeypatch) -> list[tuple[Any, int]]:
    """Precision and samples of every sum that a fit asks for; float32 values never seem fine enough."""
    asked: list[tuple[Any, int]] = []
    plain = NativeValues.sum

    def noted(self: Any, samples: Any, others: Any, coef: Any) -> Any:
        asked.append((self.dtype, len(samples)))
        return plain(self, samples, others, coef)

    monkeypatch.setattr(NativeValues, "sum", noted)
    fine = verified.sure
    monkeypatch.setattr(solver, "sure", lambda state: state.kernel.dtype == np.float64 and fine(state))
    return asked


def rows(task: str) -> tuple[Any, Any]:
    X, y = data(task, N)
    return X.astype(np.float32), y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("machine, task", MACHINES, ids=lambda m: type(m).__name__)
def test_what_is_said_is_as_exact_as_if_all_were_in_float64(machine, task, form, sums) -> None:
    X, y = rows(task)
    model = clone(machine).fit(form(X), y)
    assert model.status_ == "converged"
    assert any(dtype == np.float64 for dtype, _ in sums)
    judged(model, form(X), y, rough=1e-9)
    last_row_is_the_model(model)


def test_samples_that_do_not_matter_are_left_alone(sums) -> None:
    """Two classes far apart with few samples in between: most are neither support vectors nor near the margin."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)).astype(np.float32)
    X[:, 0] += np.where(np.arange(4000) % 2, 3.0, -3.0)
    y = np.arange(4000) % 2
    model = SVC(C=10.0, gamma=0.1).fit(X, y)
    assert model.status_ == "converged"
    assert len(model.support_) <= sum(count for dtype, count in sums if dtype == np.float64) < 1000
    judged(model, X, y, rough=1e-9)


@pytest.mark.parametrize("away", [0.0, 1.0], ids=["those without a coefficient", "everyone"])
@pytest.mark.parametrize("machine, task", MACHINES, ids=lambda m: type(m).__name__)
def test_no_error_within_the_bound_is_left(machine, task, away, monkeypatch) -> None:
    """Of a run far from its end f is put off by as much as coarse values may be, so that violators seem to be none."""
    states: list[State] = []
    monkeypatch.setattr(solver, "sure", lambda state: states.append(state) is None)
    X, y = rows(task)
    clone(machine).set_params(tol=0.5 if task != "none" else 0.01).fit(X, y)
    state, n = states[0], N
    m = np.broadcast_to(state.kernel.magnitude, n)
    exact = state.kernel.wider().sum(np.arange(n), *state.gathered(state.coef))
    truth = Point.of(state.qp, state.beta, exact)
    violation = state.violation_at(truth.extremes()[0])
    bound = 1.5 * violation * m / m.max()
    gone = state.path + np.sum(np.abs(state.coef) * m)
    monkeypatch.setattr(NativeValues, "noise", property(lambda self: 1.5 * violation / m.max() / gone))
    up, low = (side.reshape(state.shape).any(axis=0) for side in truth.movable)
    hide = np.where(up & ~low, 1.0, np.where(low & ~up, -1.0, np.random.default_rng(0).choice([-1.0, 1.0], n)))
    hide[state.coef != 0] *= away
    state.part.add(np.arange(n), exact + 0.99 * bound * hide - state.f)
    assert not away or abs(state.violation_at(state.point().extremes()[0]) - violation) > 0.1 * violation
    for _ in verified.refine(state):
        pass
    point = state.point()
    assert state.violation_at(point.extremes()[0]) == pytest.approx(violation, rel=1e-9)
    assert point.gap(point.multipliers())[0] == pytest.approx(truth.gap(truth.multipliers())[0], rel=1e-9)


def test_who_was_left_out_comes_back_when_its_exact_value_says_so(sums, monkeypatch) -> None:
    """Violators that seemed to be none from the start, and were left out: the run does not end without them."""
    X, y = rows("two")
    begin, plain, turns = solver.Decomposition._ready, verified.refine, []
    monkeypatch.setattr(NativeValues, "noise", property(lambda self: 1.0 if self.dtype == np.float32 else 1e-14))

    def ready(self: Any) -> Any:
        found = yield from begin(self)
        if self.kernel.dtype == np.float32:
            hidden = np.arange(0, N, 10)
            self.state.part.add(hidden, 5.0 * self.qp.sign[hidden])
            found = self.state.look(), found[1]
        return found

    def refine(state: Any) -> Any:
        if not turns:
            active = np.asarray(state.part.active)
            keep = np.flatnonzero(state.coef[active])
            state.left.append((np.delete(active, keep), state.coef))
            state.part.restrict(keep)
            state.active = len(keep)
        turns.append(int(state.costs.counts["inner_steps"]))
        yield from plain(state)

    monkeypatch.setattr(solver.Decomposition, "_ready", ready)
    monkeypatch.setattr(solver, "refine", refine)
    monkeypatch.setattr(solver, "AGAIN", np.inf)  # however far they have to go,
    monkeypatch.setattr(solver, "AUDITED_FIRST", 10**9)  # and whatever f is before
    rising: list[float] = []
    model = SVC(C=10.0, gamma=0.5, callback=lambda info: rising.append(info["dual"]) if turns else None).fit(X, y)
    assert len(turns) > 1 and turns[-1] > turns[0]  # it went on
    assert model.status_ == "converged"
    judged(model, X, y, rough=1e-9)
    assert max(rising) <= model.objective_


def test_chance_decides_who_matters_where_the_bound_is_far_beyond_it(sums, monkeypatch) -> None:
    """A bound that would take everyone; errors that some samples are found to have take few."""
    monkeypatch.setattr(NativeValues, "noise", property(lambda self: 1.0 if self.dtype == np.float32 else 1e-14))
    X, y = rows("two")
    X[:, 0] += np.where(y == "a", 2.0, -2.0)
    model = SVC(C=10.0, gamma=0.1).fit(X, y)
    assert model.status_ == "converged"
    audit = N // 16
    computed = [count for dtype, count in sums if dtype == np.float64]
    assert audit in computed and len(model.support_) <= sum(computed) - computed.count(audit) * audit < N / 4
    judged(model, X, y, rough=1e-9)


@pytest.mark.parametrize("machine, task", MACHINES, ids=lambda m: type(m).__name__)
def test_a_second_look_sums_what_has_moved_since(machine, task, monkeypatch) -> None:
    """f is as exact as if it had been summed over all support vectors again."""
    states: list[State] = []
    monkeypatch.setattr(solver, "sure", lambda state: states.append(state) is None)
    X, y = rows(task)
    clone(machine).set_params(tol=0.1 if task != "none" else 0.01).fit(X, y)
    (state,) = states
    widths: list[int] = []
    plain = NativeValues.sum

    def noted(self: Any, samples: Any, others: Any, coef: Any) -> Any:
        if len(samples) != N // 16:  # not of those that are looked at for the error
            widths.append(len(others))
        return plain(self, samples, others, coef)

    def exact() -> set[int]:
        widths.clear()
        for _ in verified.refine(state):
            pass
        known = ~np.isnan(state.exact[0])
        assert known.any() and known[state.coef != 0].all()
        truth = plain(state.kernel.wider(), np.flatnonzero(known), *state.gathered(state.coef))
        m = np.broadcast_to(state.kernel.magnitude, N)
        rounding = state.kernel.wider().noise * m.max() * np.sum(np.abs(state.coef) * m)
        assert np.abs(state.f[known] - truth).max() <= rounding < 1e-9 * np.abs(truth).max()
        assert (state.exact[0][known] == state.f[known]).all()
        return set(widths)

    monkeypatch.setattr(NativeValues, "sum", noted)
    all_of_them = np.count_nonzero(state.coef)
    assert exact() == {all_of_them}
    free = np.flatnonzero((state.beta[0] > state.bounds[0][0]) & (state.beta[0] < state.bounds[1][0]))[:4]
    seats, moved = state.seats(free), state.seats(free).beta.copy()
    moved[0] *= 0.999
    state.kernel.tile(state.part, free)
    state.move(seats, moved)
    assert len(free) in (width := exact()) and width <= {len(free), all_of_them}  # all: who did not matter before


def test_an_error_that_was_found_is_not_forgotten_when_those_who_had_it_are_exact(monkeypatch) -> None:
    """Whoever was left alone may still have it: the bound by which others are judged stays."""
    states: list[State] = []
    monkeypatch.setattr(solver, "sure", lambda state: states.append(state) is None)
    X, y = rows("two")
    SVC(C=10.0, gamma=0.5, tol=0.1).fit(X, y)
    (state,) = states
    monkeypatch.setattr(NativeValues, "noise", property(lambda self: 1.0))  # nobody believes float32 unseen
    off = 0.1
    state.part.add(np.arange(N), np.full(N, off))
    found = verified._audited(state, np.arange(N))
    assert found == pytest.approx(off, rel=0.1)
    exact = state.kernel.wider().sum(np.arange(N), *state.gathered(state.coef))
    state.part.add(np.arange(N), exact - state.f)
    assert verified._audited(state, np.arange(N)) == found and not verified.sure(state)
    state.stand_at(state.beta.copy(), exact)
    assert verified._audited(state, np.arange(N)) < 1e-3 * found and verified.sure(state)


@pytest.mark.parametrize("C, precision", [(100.0, "float32"), (9000.0, "float64")])
def test_decision_values_are_as_sure_as_the_solution(C, precision, sums) -> None:
    """In float32, though float64 told that the run was done, while that puts no value off by more than half of tol."""
    X, y = rows("two")
    rng = np.random.default_rng(1)
    y = np.where(rng.random(N) < 0.05, rng.permutation(y), y)
    model = SVC(C=C, gamma=0.5).fit(X, y)
    assert any(dtype == np.float64 for dtype, _ in sums) and model._precision == precision
    coarse, exact = (clone_with(model, each).decision_function(X) for each in ("float32", "float64"))
    assert (np.abs(coarse - exact).max() <= 0.5 * model.tol) == (precision == "float32")
    judged(model, X, y, rough=1e-9)


def clone_with(model: SVC, precision: str) -> SVC:
    other = copy.copy(model)
    other._precision = precision
    return other


def exaggerate(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """f follows float32 steps by so many times what it should."""
    plain = NativeValues.update

    def wrong(self: Any, part: Any, ids: Any, coef: Any) -> int:
        return plain(self, part, ids, coef * (factor if self.dtype == np.float32 else 1.0))

    monkeypatch.setattr(NativeValues, "update", wrong)


@pytest.mark.parametrize("machine, task", MACHINES, ids=lambda m: type(m).__name__)
def test_values_that_lead_astray_again_are_given_up(machine, task, sums, monkeypatch) -> None:
    """f follows float32 steps half as far again as it should, so no exact f helps: they end after a twentieth of the way."""
    exaggerate(1.5, monkeypatch)
    refine, turn = verified.refine, solver.Decomposition._turn
    farthest, turns = [np.inf], []

    def noted(state: Any) -> Any:
        farthest[0] = 1.05 * state.path + 0.05 * float(np.sum(np.abs(state.coef) * state.kernel.magnitude))
        yield from refine(state)

    def watched(self: Any, extremes: Any) -> float:
        if self.kernel.dtype == np.float32 and farthest[0] < np.inf:
            assert self.state.path <= farthest[0]
            turns.append(self.state.path)
        return turn(self, extremes)

    monkeypatch.setattr(solver, "refine", noted)
    monkeypatch.setattr(solver, "AUDITED_FIRST", 10**9)  # nothing is noticed before
    monkeypatch.setattr(solver.Decomposition, "_turn", watched)
    X, y = rows(task)
    model = clone(machine).set_params(working_set_size=100).fit(X, y)
    assert turns and model.status_ == "converged"
    judged(model, X, y, rough=1e-9)
    last_row_is_the_model(model)


@pytest.mark.parametrize("machine, task", MACHINES, ids=lambda m: type(m).__name__)
def test_values_that_never_come_to_an_end_are_given_up(machine, task, monkeypatch) -> None:
    """f follows float32 steps twice as far as it should: no step comes nearer, and what f says of violators is not so."""
    exaggerate(2.0, monkeypatch)
    turn, turns = solver.Decomposition._turn, []

    def counted(self: Any, extremes: Any) -> float:
        turns.append(self.kernel.dtype)
        return turn(self, extremes)

    monkeypatch.setattr(NativeValues, "noise", property(lambda self: 1.0 if self.dtype == np.float32 else 1e-14))
    monkeypatch.setattr(solver.Decomposition, "_turn", counted)
    X, y = rows(task)
    model = clone(machine).set_params(working_set_size=100).fit(X, y)
    assert turns.count(np.float32) <= 2 * solver.AUDITED_FIRST and turns[-1] == np.float64
    assert model.status_ == "converged"
    judged(model, X, y, rough=1e-9)
    last_row_is_the_model(model)
