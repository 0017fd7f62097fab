"""Random search over extreme inputs: what a LinearSVR says of itself is true, or an error says why not.

Targets of any size and far from 0, tubes that hold all of them or none, weights and columns over many orders of magnitude,
both losses, all solvers, every kind of intercept, dense and CSR, stops of every kind, warm starts after anything changed.
The judge evaluates objectives in long double and shares no code with the product.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from maxmargin import LinearSVR

EXAMPLES = max(1, int(os.environ.get("MAXMARGIN_FUZZ", "1200")) // 12)
U = 2.0**-53
LONG = np.longdouble
SQUARED = "squared_epsilon_insensitive"


@dataclass(frozen=True)
class Case:
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    options: dict[str, Any]


def judged(case: Case, coef: np.ndarray, b: float) -> tuple[float, float]:
    """The objective of a model, and how far float64 may be from it: the rounding of errors that are sums of d products."""
    X = np.asarray(case.X.toarray() if sp.issparse(case.X) else case.X).astype(LONG)
    weight = np.ones(len(case.y), LONG) if case.weight is None else case.weight.astype(LONG)
    w, o = coef.astype(LONG), case.options
    error = np.abs(case.y.astype(LONG) - X @ w - LONG(b))
    typical = np.abs(case.y[weight > 0]).max(initial=0.0) + o["epsilon"]
    off = 8 * (X.shape[1] + 4) * U * (np.abs(X) @ np.abs(w) + abs(b) + 4 * typical)
    u = error - LONG(o["epsilon"])
    loss, squared = np.maximum(u, 0), o["loss"] == SQUARED
    norm = w @ w
    if o["fit_intercept"] and o["intercept_scaling"] is not None:
        norm += (LONG(b) / LONG(o["intercept_scaling"])) ** 2
    doubt = np.where(u > -off, off * ((2 * loss + off) if squared else 1), 0)
    value = norm / 2 + LONG(o["C"]) * (weight * (loss**2 if squared else loss)).sum()
    return float(value), float(LONG(o["C"]) * (weight * doubt).sum() + 1e-12 * value)


def check(case: Case, model: LinearSVR) -> None:
    value, doubt = judged(case, model.coef_, float(model.intercept_[0]))
    note(f"{model.status_}, {model.n_iter_} turns: {model.objective_!r}, gap {model.dual_gap_!r}; {value!r} ± {doubt!r}")
    event(model.status_)
    lower = model.objective_ - model.dual_gap_
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert abs(model.objective_ - value) <= doubt
    assert model.dual_gap_ >= 0 and abs(lower - model.lower_bound_) <= 4 * U * model.objective_
    last = model.trace_[-1]
    assert last["objective"] == model.objective_ and last["gap"] == model.dual_gap_ and last["dual"] == lower
    for name in ("objective", "dual", "gap", "violation"):
        assert not np.isnan(model.trace_[name]).any()
    known = min([value, *(judged(case, *other)[0] for other in others(case))])
    assert model.lower_bound_ <= known * (1 + 2 * U)
    if model.status_ == "converged":
        assert model.dual_gap_ <= model.tol * model.objective_
        assert value - known <= 1.01 * model.tol * value + doubt


def others(case: Case) -> list[tuple[np.ndarray, float]]:
    """Models by other programs and by another of our solvers: none may lie below the bound."""
    o = case.options
    solver = "descent" if o["solver"] == "newton" else "newton"
    makes = [LinearSVR(**o).set_params(tol=1e-9, solver=solver, max_iter=60, max_time=None, callback=None)]
    common = {"C": o["C"], "epsilon": o["epsilon"], "tol": 1e-8, "max_iter": 3000}
    if not (o["fit_intercept"] and o["intercept_scaling"] is None):
        makes.append(sklearn.svm.LinearSVR(
            **common, loss=o["loss"], fit_intercept=o["fit_intercept"], dual=True, random_state=0,
            intercept_scaling=o["intercept_scaling"] or 1.0))
    elif o["loss"] != SQUARED:
        makes.append(sklearn.svm.SVR(**common, kernel="linear"))
    found = []
    for make in makes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                make.fit(case.X, case.y, case.weight)
            except (ValueError, OverflowError):
                continue
        coef = np.ravel(make.coef_.toarray() if sp.issparse(make.coef_) else make.coef_).astype(np.float64)
        b = float(np.ravel(make.intercept_)[0])
        if np.isfinite(coef).all() and np.isfinite(b):
            found.append((coef, b))
    return found


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.one_of(st.just(1.0), st.floats(low, high).map(lambda e: float(10.0**e)))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 50)), draw(st.integers(1, 6))
    X = rng.normal(size=(n, d)) * draw(powers(-4, 4))
    kind = draw(st.sampled_from(["plain", "plain", "grid", "columns", "far", "same"]))
    if kind == "grid":
        X = np.round(X)
    elif kind == "columns":
        X *= 10.0 ** rng.uniform(-12, 12, d)
    elif kind == "far":
        X += 10.0 ** rng.uniform(0, 8)
    elif kind == "same":
        X = X[rng.integers(0, min(2, n), n)]
    size = draw(powers(-9, 9))
    noise = {"plain": 1.0, "line": 0.0, "flat": 0.0, "far": 1.0, "outlier": 1.0}
    form = draw(st.sampled_from(list(noise)))
    slope = 0.0 if form == "flat" else 1.0
    y = size * (slope * X @ rng.normal(size=d) / max(np.abs(X).max(), 1e-300) + noise[form] * rng.normal(size=n))
    y += size * 10.0 ** rng.uniform(0, 6) if form in ("far", "flat") else 0.0
    y[-1] *= 1e8 if form == "outlier" else 1.0
    weight = {"none": None, "some": rng.integers(0, 4, n).astype(float), "wild": 10.0 ** rng.uniform(-9, 9, n)}
    weights = weight[draw(st.sampled_from(["none", "none", "some", "wild"]))]
    if weights is not None:
        weights[0] = max(weights[0], 1e-9)
    X = X.astype(np.float32) if draw(st.booleans()) and np.abs(X).max() < 1e38 else X
    stop = draw(st.sampled_from(["none", "none", "turns", "callback", "time"]))
    seen: list[int] = []
    after = draw(st.integers(1, 6))
    return Case(sp.csr_matrix(X) if draw(st.booleans()) else X, y, weights, {
        "C": draw(powers(-8, 8)) / (size if draw(st.booleans()) else 1),
        "epsilon": draw(st.sampled_from([0.0, 0.0, 0.3, 50.0])) * size, "warm_start": draw(st.booleans()),
        "loss": draw(st.sampled_from(["epsilon_insensitive", SQUARED])), "tol": draw(st.sampled_from([1e-2, 1e-4, 1e-6])),
        "solver": draw(st.sampled_from(["auto", "auto", "newton", "descent", "ocas", "cpa"])),
        "fit_intercept": draw(st.booleans()), "intercept_scaling": draw(st.sampled_from([None, None, 1.0, 30.0])),
        "max_iter": after if stop == "turns" else 80, "max_time": 1e-3 if stop == "time" else None,
        "callback": (lambda row: seen.append(1) or len(seen) % after == 0) if stop == "callback" else None,
    })  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, case: Case) -> Case:
    """The same fit after something has changed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    what = draw(st.sampled_from(["C", "C", "targets", "shift", "weight", "epsilon", "loss", "scaling"]))
    options = dict(case.options)
    if what == "C":
        options["C"] *= draw(powers(-3, 3))
    elif what == "targets":
        return replace(case, y=case.y[rng.permutation(len(case.y))] * draw(powers(-3, 3)))
    elif what == "shift":
        return replace(case, y=case.y + np.abs(case.y).max() * draw(powers(-3, 3)))
    elif what == "weight":
        return replace(case, weight=10.0 ** rng.uniform(-3, 3, len(case.y)))
    elif what == "epsilon":
        options["epsilon"] = options["epsilon"] / 2 + 0.1 * float(np.abs(case.y).mean())
    elif what == "loss":
        options["loss"] = "epsilon_insensitive" if options["loss"] == SQUARED else SQUARED
    elif what == "scaling":
        options["intercept_scaling"] = draw(st.sampled_from([None, 0.5, 7.0]))
    return replace(case, options=options)


def fitted(model: LinearSVR, case: Case) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.set_params(**case.options).fit(case.X, case.y, case.weight)
        except ValueError as error:
            event("refused")
            assert "Scale the features" in str(error), error
            return False
    return True


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_a_fit_says_is_true_fuzz(data) -> None:
    case, model = data.draw(cases()), LinearSVR()
    note(f"{case.options}, weight {case.weight!r}")
    if fitted(model, case):
        check(case, model)
    for _ in range(data.draw(st.sampled_from([0, 0, 1, 2]))):
        case = data.draw(changed(case))
        note(f"then {case.options}")
        if fitted(model, case):
            check(case, model)
