"""Random search over extreme inputs: whatever the numbers are, what a fit says of itself is true, or an error says why not.

C from 1e-8 to 1e12, weights from 1e-12 to 1e12, columns up to 1e30, all kernels and formulations, all inner solvers. The
judge (judge.py) shares no code with the product. `make fuzz` runs thousands of cases.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC, DCSVR, SVC, SVR, NuSVC, NuSVR, OneClassSVM

sys.path.insert(0, str(Path(__file__).parent))
from judge import AT_BOUND, EQUALITY, U, dense, judge

EXAMPLES = int(os.environ.get("MAXMARGIN_FUZZ", 2_500)) // 10  # a tenth of what tests of files try: these take long
MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM, DCSVC, DCSVR)
# What keeps a case short; a run that ends so must tell the truth as well.
TURNS = {"smo": 30, "ipm": 8, "gpm": 2}


def intersection(a: Any, b: Any) -> Any:
    """A kernel of the user's: positive semidefinite on non-negative features."""
    a, b = (np.abs(m.toarray() if sp.issparse(m) else m).astype(float) for m in (a, b))
    return np.minimum(a[:, None, :], b[None, :, :]).sum(axis=2)


def constant(a: Any, b: Any) -> Any:
    return np.full((a.shape[0], b.shape[0]), 2.5)


def powers(low: int, high: int) -> st.SearchStrategy[float]:
    return st.one_of(st.just(1.0), st.floats(low, high).map(lambda e: float(10**e)))


@dataclass(frozen=True)
class Case:
    make: Any
    options: dict[str, Any]
    X: Any
    y: Any
    weight: Any
    tags: dict[str, Any] = field(default_factory=dict)

    def fit(self) -> Any:
        return self.make(**self.options).fit(self.X, self.y, sample_weight=self.weight)

    @property
    def staged(self) -> bool:
        return self.make is NuSVC and self.options["class_weight"] is not None

    def decisions(self, model: Any) -> Any:
        """f + b of every row, a column per problem."""
        return model.decision_function(self.X) if hasattr(model, "decision_function") else model.predict(self.X)

    def pair(self, model: Any, k: int) -> Any:
        """Rows of the k-th pair of classes."""
        ours = list(combinations(model.classes_, 2))[k]
        return np.flatnonzero(np.isin(self.y, ours) & (self.weight > 0))

    @property
    def gamma(self) -> float:
        """γ by the documented rule: rows counted by their weight."""
        gamma = self.options["gamma"]
        if not isinstance(gamma, str):
            return float(gamma)
        x = dense(self.X).astype(np.longdouble)
        if gamma == "auto":
            return 1.0 / x.shape[1]
        x = x - x[0, 0]  # the variance is that of the differences, and theirs have no rounding
        w = self.weight[:, None] / (self.weight.sum() * np.longdouble(x.shape[1]))
        variance = float((w * (x - (w * x).sum()) ** 2).sum())
        return 1.0 / (x.shape[1] * variance) if variance > 0 else 1.0


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 50)), draw(st.integers(1, 6))
    make = draw(st.sampled_from(MACHINES))
    kernel = draw(st.sampled_from(["linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed", "user", "constant"]))
    X = rng.normal(size=(n, d)) * draw(powers(-3, 2))
    kind = draw(st.sampled_from(["plain", "plain", "grid", "wide columns", "far", "same"]))
    if kind == "grid":
        X = np.round(X)
    elif kind == "wide columns":
        X = X * 10.0 ** rng.uniform(-30, draw(st.sampled_from([0, 10, 30])), size=d)
    elif kind == "far":
        X = X + draw(st.sampled_from([1e3, 1e6, -1e9]))
    elif kind == "same":
        X[:] = X[0]
    X = X.astype(draw(st.sampled_from([np.float64, np.float64, np.float32])))
    y: Any = rng.integers(0, draw(st.sampled_from([2, 2, 3])), size=n)
    y[:2] = 0, 1
    if make in (SVR, NuSVR, DCSVR):
        y = rng.normal(size=n) * draw(powers(-6, 6))
    weight = np.ones(n)
    if draw(st.booleans()):
        weight = 10.0 ** rng.uniform(*draw(st.sampled_from([(-12, 12), (-1, 1), (11, 12), (-12, -11)])), size=n)
    options: dict[str, Any] = {
        "kernel": kernel,
        "gamma": draw(st.one_of(st.sampled_from(["scale", "auto"]), powers(-6, 4))),
        "coef0": draw(st.sampled_from([0.0, 1.0, -1.0, -1e3])),
        "degree": draw(st.sampled_from([0, 1, 2, 3, 7])),
        "inner_solver": (inner := draw(st.sampled_from(["smo", "smo", "ipm", "gpm"]))),
        "tol": draw(st.sampled_from([1e-3, 1e-3, 1e-6, 0.1])),
        "working_set_size": draw(st.sampled_from([None, None, 4, 10])),
        "shrinking": draw(st.booleans()),
        "max_iter": TURNS[inner],
    }
    sparse = draw(st.booleans()) and kernel not in ("precomputed", "user", "constant")
    if kernel in ("user", "constant"):
        options["kernel"] = {"user": intersection, "constant": constant}[kernel]
    if kernel == "precomputed":
        with np.errstate(all="ignore"):
            X = X.astype(float) @ X.T.astype(float)
    if make in (SVC, SVR, NuSVR, DCSVC, DCSVR):
        options["C"] = draw(powers(-8, 12))
    if make in (SVC, SVR, DCSVC, DCSVR):
        options["fit_intercept"] = draw(st.booleans())
    if make in (DCSVC, DCSVR):
        options |= {"k": 2, "levels": draw(st.sampled_from([0, 1, 2])), "random_state": 0, "n_jobs": 1}
    if make in (SVR, DCSVR):
        options["epsilon"] = draw(st.sampled_from([0.1, 0.0, 1e-6, 10.0]))
    if make in (NuSVC, NuSVR, OneClassSVM):
        options["nu"] = draw(st.sampled_from([0.5, 0.05, 0.9, 1.0, 1e-3]))
    if make is NuSVC:  # mostly feasible
        mass = [weight[y == c].sum() for c in np.unique(y)]
        pairs = [2 * min(a, b) / (a + b) for i, a in enumerate(mass) for b in mass[:i]]
        options["nu"] = float(options["nu"] * min(pairs))
    if make in (SVC, NuSVC, DCSVC):
        options["decision_function_shape"] = "ovo"
        options["class_weight"] = draw(st.sampled_from([None, None, "balanced", {0: 1e-3, 1: 1e3}]))
    return Case(make, options, sp.csr_matrix(X) if sparse else X, None if make is OneClassSVM else y, weight)


def check(case: Case, model: Any) -> list[str]:
    """Which promises are broken, and by how much."""
    broken = []

    def law(name: str, holds: bool, *numbers: float) -> None:
        if not holds:
            broken.append(f"{name}: {', '.join(f'{x:.6g}' for x in numbers)}")

    numbers = [model.objective_, model.dual_gap_, model.kkt_violation_, *model.intercept_, *dense(model.dual_coef_).ravel()]
    law("finite", bool(np.isfinite(numbers).all()), *numbers[:3])
    truths = judge(model, case.X, case.y, case.weight, case.gamma)
    for t in truths:
        law("bounds", t.outside <= AT_BOUND, t.outside)
        law("equality", t.equality <= EQUALITY * t.total, t.equality, t.total)
    primal, dual = sum(t.primal for t in truths), sum(t.dual for t in truths)
    unsure, dual_unsure = sum(t.primal_unsure for t in truths), sum(t.dual_unsure for t in truths)
    law("objective", abs(model.objective_ - primal) <= unsure, model.objective_, primal, unsure)
    lower, dual_unsure = model.objective_ - model.dual_gap_, dual_unsure + 4 * U * abs(model.objective_)
    law("lower bound", abs(lower - dual) <= dual_unsure, lower, dual, dual_unsure)
    law("gap", model.dual_gap_ >= 0, model.dual_gap_)
    worst, strict, noise = (max(getattr(t, name) for t in truths) for name in ("violation", "strict", "violation_unsure"))
    added = max(t.violation_added for t in truths)
    added = added if added > model.tol else 0.0
    if not np.isnan(worst):
        law("violation", worst - noise <= model.kkt_violation_ <= strict + noise + added,
            model.kkt_violation_, worst, strict, noise, added)  # fmt: skip
        if model.status_ == "converged":
            law("converged", worst <= model.tol + min(noise, model.tol), worst, model.tol, noise)
    reached = model.kkt_violation_ <= model.tol
    if case.staged:  # the first stage may have ended otherwise, and what it ended as is the fit's status
        law("status", reached or model.status_ != "converged", model.kkt_violation_, model.tol)
    else:
        law("status", (model.status_ == "converged") == reached, model.kkt_violation_, model.tol)
    rows = np.flatnonzero(case.weight > 0) if case.make in (SVR, NuSVR, DCSVR, OneClassSVM) else None
    for k, (t, values) in enumerate(zip(truths, np.atleast_2d(case.decisions(model).T))):
        mine = case.pair(model, k) if rows is None else rows
        off = np.abs(values[mine] - t.decision) - t.decision_unsure
        law("decision", bool((off <= 0).all()), float(off.max()), float(np.abs(t.decision).max()))
    return broken


@given(case=cases())
@settings(
    max_examples=EXAMPLES, derandomize="MAXMARGIN_FUZZ" not in os.environ, suppress_health_check=list(HealthCheck),
    print_blob=True,
)  # fmt: skip
def test_fuzz_what_a_fit_says_is_true(case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    note(str(case.make.__name__) + str(case.options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = case.fit()
        except ValueError as error:
            note(str(error))
            assert any(word in str(error) for word in ("scale the features", "nu", "gamma"))
            return
    broken = check(case, model)
    assert not broken, (model.status_, broken)
    shown = capfd.readouterr()
    assert shown.out == shown.err == ""


@pytest.mark.parametrize("seed", range(10))
def test_halves_of_regression_that_are_large_where_their_sum_is_small(seed: int) -> None:
    """K of 1e36, a and a* of 1e9 that differ by 1e-5: f is of the difference, and so is its rounding."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(2, 1)) + 1e6).astype(np.float32)
    y = rng.normal(size=2) * 10.0 ** rng.uniform(-6, 6)
    options = {"kernel": "poly", "gamma": 1.0, "coef0": 0.0, "degree": 3, "inner_solver": "ipm", "tol": 0.1,
               "working_set_size": 4, "shrinking": False, "max_iter": 8, "C": 27025848802.4, "nu": 0.05}  # fmt: skip
    case = Case(NuSVR, options, X, y, np.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = case.fit()
    assert not check(case, model)
