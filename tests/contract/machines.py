"""The machines, each on a small problem of its own kind, those with a search inside, and the judge of what they say.

Whatever is promised of one is tested on all: a new machine joins the list and every test below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin
from maxmargin import certify_fit
from maxmargin.estimators._kernel import KernelMachine
from maxmargin.runtime import Deadline

FloatArray = np.ndarray


@dataclass(frozen=True)
class Case:
    """A machine with parameters under which a fit takes several turns, and the targets it wants."""

    name: str
    make: Callable[..., Any]
    task: str  # "two", "three" (classes), "numbers", "none"
    slow: dict[str, Any] = field(default_factory=dict)  # many short turns: for runs that are stopped
    limit: str | None = "max_iter"  # the parameter that limits turns

    def __str__(self) -> str:
        return self.name

    def build(self, **options: Any) -> Any:
        return self.make(**options)

    def tight(self, **options: Any) -> Any:
        """With a tolerance at which two ways to the optimum end at the same place."""
        model = self.make(**options)
        return model.set_params(tol=1e-8) if "tol" in model.get_params() else model

    @property
    def rough(self) -> bool:
        """Whether the last bits of kernel values may lead it another way, to another model of the same kind."""
        return "Budget" in self.name or "early" in self.name or "DCSVCCV" in self.name

    @property
    def warm(self) -> bool:
        return "warm_start" in self.make().get_params()


def _case(name: str, cls: Any, task: str, own: dict[str, Any], slow: dict[str, Any], limit: str | None = "max_iter") -> Case:
    def make(**options: Any) -> Any:
        return cls(**{**own, **options})

    return Case(name, make, task, slow, limit)


SMALL_SETS = {"working_set_size": 4, "tol": 1e-6}
DC = {"k": 2, "levels": 2, "sample_size": 40, "random_state": 0}
BUDGET = {"C": 5.0, "budget": 20, "random_state": 0}
HINGE = {"C": 5.0, "loss": "hinge", "intercept_scaling": None}
SQUARED_TUBE = {"C": 5.0, "loss": "squared_epsilon_insensitive"}
CASES = [
    _case("SVC", maxmargin.SVC, "two", {"C": 5.0}, SMALL_SETS),
    _case("SVC-3", maxmargin.SVC, "three", {"C": 5.0}, SMALL_SETS),
    _case("NuSVC", maxmargin.NuSVC, "two", {"nu": 0.2}, SMALL_SETS),
    _case("NuSVC-3", maxmargin.NuSVC, "three", {"nu": 0.2}, SMALL_SETS),
    _case("SVR", maxmargin.SVR, "numbers", {"C": 5.0}, SMALL_SETS),
    _case("NuSVR", maxmargin.NuSVR, "numbers", {"C": 5.0, "nu": 0.3}, SMALL_SETS),
    _case("OneClassSVM", maxmargin.OneClassSVM, "none", {"nu": 0.3}, SMALL_SETS),
    _case("DCSVC", maxmargin.DCSVC, "two", {"C": 5.0, **DC}, SMALL_SETS, None),
    _case("DCSVC-3", maxmargin.DCSVC, "three", {"C": 5.0, **DC}, SMALL_SETS, None),
    _case("DCSVC-early", maxmargin.DCSVC, "two", {"C": 5.0, **DC, "stop_level": 1}, SMALL_SETS, None),
    _case("DCSVR", maxmargin.DCSVR, "numbers", {"C": 5.0, **DC}, SMALL_SETS, None),
    _case("LinearSVC", maxmargin.LinearSVC, "two", HINGE, {"solver": "ocas", "tol": 1e-9}),
    _case("LinearSVC-3", maxmargin.LinearSVC, "three", HINGE, {"solver": "ocas", "tol": 1e-9}),
    _case("LinearSVC-squared", maxmargin.LinearSVC, "two", {"C": 5.0}, {"tol": 1e-9}),
    _case("LinearSVC-l1", maxmargin.LinearSVC, "two", {"C": 5.0, "penalty": "l1"}, {"tol": 1e-9}),
    _case("LinearSVR", maxmargin.LinearSVR, "numbers", {"C": 5.0, "epsilon": 0.2}, {"solver": "ocas", "tol": 1e-9}),
    _case("LinearSVR-free", maxmargin.LinearSVR, "numbers", {"C": 5.0, "intercept_scaling": None}, {"tol": 1e-9}),
    _case("LinearSVR-squared", maxmargin.LinearSVR, "numbers", SQUARED_TUBE, {"tol": 1e-9}),
    _case("BudgetSVC", maxmargin.BudgetSVC, "two", BUDGET, {"epochs": 20}, "epochs"),
    _case("BudgetSVC-3", maxmargin.BudgetSVC, "three", BUDGET, {"epochs": 20}, "epochs"),
]

GRID = {"Cs": [0.5, 5.0], "gammas": [0.1, 1.0], "cv": 2}
SEARCHES = [
    _case("SVCCV", maxmargin.SVCCV, "two", GRID, {"tol": 1e-6}),
    _case("SVCCV-3", maxmargin.SVCCV, "three", {**GRID, "probabilities": True}, {"tol": 1e-6}),
    _case("NuSVCCV", maxmargin.NuSVCCV, "two", {"nus": [0.2, 0.4], "gammas": [0.1, 1.0], "cv": 2}, {"tol": 1e-6}),
    _case("SVRCV", maxmargin.SVRCV, "numbers", {**GRID, "epsilons": [0.1, 0.3]}, {"tol": 1e-6}),
    _case("DCSVCCV", maxmargin.DCSVCCV, "two", {**GRID, "samples_per_cluster": 20, "random_state": 0}, {"tol": 1e-6}),
    _case("LinearSVCCV", maxmargin.LinearSVCCV, "two", {"Cs": [0.1, 5.0], "cv": 2}, {"tol": 1e-9}),
    _case("LinearSVCCV-3", maxmargin.LinearSVCCV, "three", {"Cs": [0.1, 5.0], "cv": 2}, {"tol": 1e-9}),
    _case("LinearSVRCV", maxmargin.LinearSVRCV, "numbers", {"Cs": [0.1, 5.0], "cv": 2}, {"tol": 1e-9}),
]


def data(task: str, n: int = 120, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Samples of which many are on the wrong side, so that bounds, margins and slacks all matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    if task in ("numbers", "none"):
        return X, signal
    cuts = [0.5] if task == "two" else [0.0, 1.0]
    return X, np.array(["a", "b", "c"])[np.digitize(signal, cuts)]


def judged(model: Any, X: Any, y: FloatArray, weight: FloatArray | None = None, rough: float | None = None) -> None:
    """Whatever the model says of itself is true, by code that shares nothing with its solver.

    `rough`: how far it may be off, relative to the objective; as far as its kernel values are, if not given.
    """
    if isinstance(model, maxmargin.BudgetSVC):
        assert model.objective_ == np.float64(budget_objective(model, X, y, weight)) or np.isclose(
            model.objective_, budget_objective(model, X, y, weight), rtol=1e-5
        )
        return
    answer = certify_fit(model, X, y, weight)
    scale = max(abs(answer.primal), abs(answer.dual), 1.0)
    assert answer.infeasibility <= 1e-9 * scale
    if np.isnan(model.objective_):  # nothing is claimed of the whole problem
        assert model.status_ != "converged" and np.isnan(model.dual_gap_)
        return
    if rough is None:
        rough = 1e-5 if getattr(model, "_precision", "float64") == "float32" else 1e-9
    assert abs(model.objective_ - answer.primal) <= rough * scale
    assert model.dual_gap_ >= 0
    if isinstance(model, (maxmargin.LinearSVC, maxmargin.LinearSVR)):
        assert model.objective_ - model.dual_gap_ <= answer.primal * (1 + 1e-12)
        assert model.status_ != "converged" or model.dual_gap_ <= model.tol * model.objective_ * (1 + 1e-9)
        return
    assert abs(model.dual_gap_ - answer.gap) <= rough * scale
    if np.isfinite(model.kkt_violation_) and not isinstance(model, maxmargin.NuSVR):  # whose halves cannot be told apart
        assert abs(model.kkt_violation_ - answer.violation) <= 1e3 * rough * scale
    if model.status_ not in ("callback", "interrupted"):
        assert (model.status_ == "converged") == (model.kkt_violation_ <= model.tol)


def last_row_is_the_model(model: Any) -> None:
    last = model.trace_[-1]
    np.testing.assert_equal(float(last["objective"]), float(model.objective_))
    np.testing.assert_equal(float(last["gap"]), float(model.dual_gap_))
    if hasattr(model, "kkt_violation_"):
        np.testing.assert_equal(float(last["violation"]), float(model.kkt_violation_))
    if isinstance(model, KernelMachine) and "problem" not in last.dtype.names:  # which counts samples once per problem
        assert last["n_support"] == len(model.support_)
    assert (np.diff(model.trace_["time"]) >= 0).all()


def budget_objective(model: Any, X: Any, y: FloatArray, weight: FloatArray | None) -> float:
    """½ Σ_c |w_c|² + C Σ_i weight_i Σ_c max(0, 1 − s_ic f_c(x_i)), one machine per class (two classes: one machine)."""
    x = X.toarray() if sp.issparse(X) else np.asarray(X)
    v, coef = np.asarray(model.support_vectors_, float), np.atleast_2d(model.dual_coef_)
    v = v if v.ndim == 2 else model.support_vectors_.toarray()
    gamma = model.gamma_
    kernel = lambda a, b: np.exp(-gamma * ((a[:, None] - b[None]) ** 2).sum(-1))  # noqa: E731
    f = kernel(x.astype(float), v) @ coef.T + np.ravel(model.intercept_)
    label = np.searchsorted(model.classes_, y)
    columns = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    sign = np.stack([np.where(label == c, 1.0, -1.0) for c in columns], axis=1)
    w = np.ones(len(y)) if weight is None else weight
    loss = (w[:, None] * np.maximum(0, 1 - sign * f)).sum()
    return float(0.5 * np.einsum("ci,ij,cj->", coef, kernel(v, v), coef) + model.C * loss)


def decisions(model: Any, X: Any) -> FloatArray:
    return np.asarray(getattr(model, "decision_function", model.predict)(X))


def equally_good(one: Any, other: Any, X: Any) -> None:
    """Two solutions of the same problem: objectives within what their gaps leave open, and the same decisions."""
    open_ = one.dual_gap_ + other.dual_gap_ + 1e-6 * abs(one.objective_)  # rounding of float32 in gamma
    assert abs(one.objective_ - other.objective_) <= open_
    a, b = decisions(one, X), decisions(other, X)
    if a.ndim == 1:  # sums of votes jump
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-2 * np.abs(a).max())


def time_is_up(monkeypatch: Any, looks: int) -> list[bool]:
    """After so many looks at a clock that has an end; an entry for each look that is made."""
    made: list[bool] = []

    def passed(self: Deadline, margin: float = 0.0) -> bool:
        if self.end is None:
            return False
        made.append(len(made) >= looks)
        return made[-1]

    monkeypatch.setattr(Deadline, "passed", passed)
    return made
