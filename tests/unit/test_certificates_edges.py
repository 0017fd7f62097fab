"""Certificates at the edges: solutions of zero, whole intervals of constants, tiny alphas, machines that say little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.pipeline import make_pipeline

import maxmargin
from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify, decision_values, smallest_loss
from maxmargin.problem.fitted import certify_fit


@pytest.mark.parametrize("kind", ["tiny C", "large C"])
@pytest.mark.parametrize("scaling", [None, 1.0])
def test_solutions_of_the_one_norm_have_no_gap(kind: str, scaling: float | None) -> None:
    """Also where the weights are all zero, and the best multiple of the duals is no longer the largest allowed."""
    X, y = make_classification(200, 10, weights=[0.5], flip_y=0, random_state=0)
    C = 1e-5 if kind == "tiny C" else 1.0
    model = maxmargin.LinearSVC(penalty="l1", C=C, intercept_scaling=scaling, tol=1e-8).fit(X, y)
    assert (kind == "tiny C") == (not model.coef_.any())
    answer = certify_fit(model, X, y)
    assert answer.infeasibility < 1e-9
    assert -1e-9 < answer.relative_gap < 1e-5


@pytest.mark.parametrize("shift", [-2.0, -0.1, 0.1, 2.0])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_wherever_the_free_intercept_is_the_bound_is_one(penalty: str, shift: float) -> None:
    """Away from the solution one class's duals outweigh the other's: they are made equal, and stay below the optimum."""
    X, y = make_classification(200, 10, flip_y=0.1, random_state=0)
    model = maxmargin.LinearSVC(penalty=penalty, intercept_scaling=None, tol=1e-8).fit(X, y)
    best = certify_fit(model, X, y)
    model.intercept_ = model.intercept_ + shift
    answer = certify_fit(model, X, y)
    assert answer.infeasibility < 1e-9
    assert answer.dual <= best.primal * (1 + 1e-9) < answer.primal


@given(data=st.data())
def test_of_a_whole_interval_of_constants_the_middle_is_taken(data: st.DataObject) -> None:
    """Its end when it has one only; samples of no weight have no say in it."""
    n = data.draw(st.integers(2, 8))
    draw = lambda values: np.array(data.draw(st.lists(values, min_size=n, max_size=n)), dtype=np.float64)  # noqa: E731
    sign, score, upper = draw(st.sampled_from([-1, 1])), draw(st.integers(-9, 9)), draw(st.integers(0, 3))
    upper[0] = 1.0
    target = data.draw(st.integers(-int(upper[sign < 0].sum()), int(upper[sign > 0].sum())))  # falls first, rises last
    knots = score[upper > 0]
    loss = np.array([upper @ np.maximum(0, sign * (score - b)) + b * target for b in knots])  # whole numbers: exact
    best = knots[loss == loss.min()]
    assert smallest_loss(sign, score, upper, float(target)) == 0.5 * (best.min() + best.max())


@given(seed=st.integers(0, 999), unit=st.sampled_from([1e-12, 1e-6, 0.1, 1e6, 1e12]))
def test_the_best_constant_does_not_know_the_unit_of_the_bounds(seed: int, unit: float) -> None:
    """Sums of bounds are rounded; a flat piece is one all the same, and a slope is none however small the bounds are."""
    rng = np.random.default_rng(seed)
    sign, score, upper = rng.choice([-1.0, 1.0], 9), rng.integers(-9, 9, 9) / 1.0, rng.integers(1, 4, 9) / 1.0
    for target in range(-int(upper[sign < 0].sum()), int(upper[sign > 0].sum()) + 1):
        once = smallest_loss(sign, score, upper, float(target))
        assert smallest_loss(sign, score, unit / 3 * upper, unit / 3 * target) == once


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_linear_regression_is_judged_in_any_unit_of_its_targets(unit: float, loss: str) -> None:
    """Duals of the squared loss have no bound, and grow with the targets."""
    X, t = make_regression(60, 4, noise=1.0, bias=3.0, random_state=0)
    t, C = unit * t, unit if loss == "epsilon_insensitive" else 1.0
    model = maxmargin.LinearSVR(C=C, epsilon=0.1 * unit, loss=loss, intercept_scaling=None, tol=1e-8).fit(X, t)
    answer = certify_fit(model, X, t)
    assert answer.primal == pytest.approx(model.objective_, rel=1e-9)
    assert answer.infeasibility <= 1e-9 * max(unit, 1.0) and -1e-9 < answer.relative_gap < 1e-3


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("nu", [0.2, 0.77, 1.0])
def test_a_margin_of_zero_divides_nothing(nu: float, kernel: str) -> None:
    """One point in both classes: no function keeps a margin, and the coefficients are the alphas themselves."""
    X, y = np.full((20, 2), 0.5), np.repeat([0, 1], 10)
    model = maxmargin.NuSVC(nu=nu, kernel=kernel, tol=1e-9).fit(X, y)
    assert model.margin_ == 0 and np.abs(model.dual_coef_).sum() == pytest.approx(20 * nu, rel=1e-12)
    answer = certify_fit(model, X, y)
    assert answer.infeasibility < 1e-12 and abs(answer.primal) < 1e-12 and answer.violation < 1e-12


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_violation_does_not_know_the_unit_of_the_features(scale: float, intercept: bool) -> None:
    """Features times s, alpha over s²: the same function. Alphas of 1e-18 are no rounding where all of them are."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 3)), np.array([1.0, -1.0] * 4)
    alpha = np.repeat(rng.uniform(0.1, 1.0, 4), 2)
    alpha[:2] = 0.0
    qp = formulations.c_svc(y, np.full(8, 1e14), intercept)
    once = certify(qp, x @ x.T, alpha)
    assert once.violation > 0.1
    again = certify(qp, scale**2 * (x @ x.T), alpha / scale**2)
    assert again.violation == pytest.approx(once.violation, rel=1e-9)


def test_a_pipeline_of_one_step_is_that_step() -> None:
    X, y = make_classification(60, random_state=0)
    pipeline = make_pipeline(maxmargin.SVC()).fit(X, y)
    assert certify_fit(pipeline, X, y).primal == certify_fit(pipeline[-1], X, y).primal


class Plain(sklearn.svm.LinearSVC):  # type: ignore[misc]
    """A machine whose parameters do not tell of an intercept: it has one, like all."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: value for name, value in super().get_params(deep).items() if name != "fit_intercept"}


def test_what_a_machine_does_not_say_is_as_usual() -> None:
    X, y = make_classification(60, random_state=0)
    kernel = sklearn.svm.SVC().fit(X, y)
    linear = sklearn.svm.LinearSVC().fit(X, y)
    before = [certify_fit(model, X, y).primal for model in (kernel, linear)]
    del kernel.class_weight_
    linear.__class__ = Plain
    assert [certify_fit(model, X, y).primal for model in (kernel, linear)] == before


@pytest.mark.parametrize("scaling", [None, 1.0, 0.5])
@pytest.mark.parametrize(
    "machine", [maxmargin.LinearSVC(), maxmargin.LinearSVC(penalty="l1"), maxmargin.LinearSVR()], ids=["l2", "l1", "svr"]
)
def test_multipliers_of_linear_machines_are_their_free_intercepts(machine: Any, scaling: float | None) -> None:
    """A penalised intercept is a weight like the others, and no intercept is none: no equality, no multiplier."""
    X, y = make_classification(60, 4, random_state=0)
    for fit_intercept in (True, False):
        model = clone(machine).set_params(intercept_scaling=scaling, fit_intercept=fit_intercept).fit(X, y)
        free = fit_intercept and scaling is None
        assert certify_fit(model, X, y).multipliers.tolist() == (np.ravel(model.intercept_).tolist() if free else [])


def test_kernel_values_are_asked_for_some_at_a_time() -> None:
    n, asked = 4000, []

    def gram(rows: Any, columns: Any) -> Any:
        asked.append((len(rows), len(columns)))
        return np.broadcast_to(1.0, (len(rows), len(columns)))

    alpha = np.where(np.arange(n) % 2, 1.0, 0.0)
    np.testing.assert_array_equal(decision_values(gram, alpha), np.full(n, n / 2))
    assert sum(rows for rows, _ in asked) == n and all(columns == n / 2 for _, columns in asked)
    assert max(rows * columns for rows, columns in asked) <= 1 << 22  # 32 MB of float64
    assert len(asked) == 2  # not row by row
