"""Random search over extreme inputs: whatever the numbers are, what a LinearSVC says of itself is true, or an error says
why not.

C from 1e-8 to 1e12, weights from 1e-12 to 1e12, columns up to 1e30 and beyond, rows that stand out, samples far from 0, both
losses, all solvers, every kind of intercept, one-vs-rest and joint, dense and CSR, both precisions, stops of every kind, and
warm starts after anything changed. The judge below evaluates objectives in long double and shares no code with the product.
`make fuzz` draws thousands of new cases.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hinge import hinge_svc
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from maxmargin import LinearSVC

EXAMPLES = max(1, int(os.environ.get("MAXMARGIN_FUZZ", "1200")) // 10)  # each takes a tenth of a second
U = 2.0**-53
LONG = np.longdouble


@dataclass(frozen=True)
class Case:
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    options: dict[str, Any]

    @property
    def joint(self) -> bool:
        return self.options["multi_class"] == "crammer_singer"


# ---- the judge


def judged(case: Case, coef: np.ndarray, intercept: np.ndarray) -> tuple[float, float]:
    """The objective of a model, and how far float64 may be from it: the rounding of margins that are sums of d products."""
    X = np.asarray(case.X.toarray() if sp.issparse(case.X) else case.X).astype(LONG)
    classes, label = np.unique(case.y, return_inverse=True)
    weight = np.ones(len(label)) if case.weight is None else case.weight
    kept = np.unique(label[weight > 0])
    classes, rows = classes[kept], np.isin(label, kept)
    X, label, weight = X[rows], np.searchsorted(kept, label[rows]), weight[rows].astype(LONG)
    if case.options["class_weight"] == "balanced":
        mass = np.array([weight[label == k].sum() for k in range(len(kept))])
        weight = weight * (mass.sum() / (len(kept) * mass))[label]
    if len(kept) == 2 and case.joint:  # published as the difference of two opposite machines
        coef, intercept = np.vstack([-coef, coef]) / 2, np.concatenate([-intercept, intercept]) / 2
    W, b = coef.astype(LONG), intercept.astype(LONG)
    scores = X @ W.T + b
    off = 8 * (X.shape[1] + 4) * U * (np.abs(X) @ np.abs(W).T + np.abs(b) + 1)
    C, squared = LONG(case.options["C"]), case.options["loss"] == "squared_hinge"
    norm = (W**2).sum()
    if case.options["fit_intercept"] and case.options["intercept_scaling"] is not None:
        norm += ((b / LONG(case.options["intercept_scaling"])) ** 2).sum()
    if case.joint:
        own = scores[np.arange(len(label)), label][:, None]
        u = np.where(np.arange(scores.shape[1]) == label[:, None], -np.inf, 1 + scores - own).max(axis=1, keepdims=True)
        off, weight = 2 * off.max(axis=1, keepdims=True), weight[:, None]
    else:
        sign = np.where(label == 1, 1, -1)[:, None] if len(kept) == 2 else 2 * (label[:, None] == np.arange(len(kept))) - 1
        u, weight = 1 - sign * scores, weight[:, None]
    loss = np.maximum(u, 0)
    doubt = np.where(u > -off, off * ((2 * loss + off) if squared else 1), 0)
    value = norm / 2 + C * (weight * (loss**2 if squared else loss)).sum()
    return float(value), float(C * (weight * doubt).sum() + 1e-12 * value)


def check(case: Case, model: LinearSVC) -> None:
    """The laws of one fit."""
    value, doubt = judged(case, model.coef_, model.intercept_)
    lower = model.objective_ - model.dual_gap_
    note(f"{model.status_}, {model.n_iter_} turns: {model.objective_!r}, gap {model.dual_gap_!r}; {value!r} ± {doubt!r}")
    event(model.status_)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    assert abs(model.objective_ - value) <= doubt
    assert model.dual_gap_ >= 0 and abs(lower - model.lower_bound_) <= 4 * U * model.objective_
    if model.status_ == "converged":
        assert model.dual_gap_ <= model.tol * model.objective_
    last = model.trace_[-1]
    assert last["objective"] == model.objective_ and last["gap"] == model.dual_gap_ and last["dual"] == lower
    for name in ("objective", "dual", "gap", "violation"):
        assert not np.isnan(model.trace_[name]).any()
    known = min([value, *(judged(case, *other)[0] for other in others(case))])
    assert model.lower_bound_ <= known * (1 + 2 * U)  # no model is better than the bound says
    if model.status_ == "converged":
        assert value - known <= 1.01 * model.tol * value + doubt


def others(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """Models by other programs and by another of our solvers; good or bad, none may lie below the bound."""
    found = []
    solver = {"newton": "descent", "descent": "newton"}.get(case.options["solver"], "newton")
    makes = [hinge_svc(**case.options).set_params(
        tol=1e-9, solver="ocas" if case.joint else solver, max_iter=60, max_time=None, callback=None, warm_start=False)]
    free = case.options["fit_intercept"] and case.options["intercept_scaling"] is None
    common = {"C": case.options["C"], "class_weight": case.options["class_weight"], "tol": 1e-8, "max_iter": 3000}
    if not (free or case.joint):
        makes.append(sklearn.svm.LinearSVC(
            **common, loss=case.options["loss"], fit_intercept=case.options["fit_intercept"],
            intercept_scaling=case.options["intercept_scaling"] or 1.0, random_state=0))
    elif case.options["loss"] == "hinge" and len(np.unique(case.y)) == 2 and not case.joint:
        makes.append(sklearn.svm.SVC(**common, kernel="linear"))
    for make in makes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                make.fit(case.X, case.y, case.weight)
            except (ValueError, OverflowError):
                continue
        coef = np.asarray(make.coef_.toarray() if sp.issparse(make.coef_) else make.coef_, np.float64)
        intercept = np.atleast_1d(np.asarray(make.intercept_, np.float64))
        if np.isfinite(coef).all() and np.isfinite(intercept).all():
            found.append((coef, intercept))
    return found


# ---- the cases


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    return st.one_of(st.just(1.0), st.floats(low, high).map(lambda e: float(10.0**e)))


@st.composite
def samples(draw: st.DrawFn) -> tuple[Any, np.ndarray, np.ndarray | None]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, classes = draw(st.integers(4, 50)), draw(st.integers(1, 6)), draw(st.sampled_from([2, 2, 3, 4]))
    X = rng.normal(size=(n, d)) * draw(powers(-6, 6))
    kind = draw(st.sampled_from(["plain", "plain", "grid", "columns", "huge", "far", "row", "same", "few"]))
    if kind == "grid":
        X = np.round(X)
    elif kind == "columns":
        X *= 10.0 ** rng.uniform(-15, 15, d)
    elif kind == "huge":
        X *= 10.0 ** rng.uniform(0, draw(st.sampled_from([30, 160, 300])), d)
    elif kind == "far":
        X += 10.0 ** rng.uniform(0, 8)
    elif kind == "row":
        X[rng.integers(n)] *= 10.0 ** rng.uniform(0, 12)
    elif kind == "same":
        X = X[rng.integers(0, 2, n)]
    elif kind == "few":
        X *= rng.random((n, d)) < 0.2
    y = np.argmax(rng.normal(size=(n, classes)) * draw(st.sampled_from([0.01, 1.0])) + X[:, :1] * np.arange(classes), axis=1)
    y[:classes] = np.arange(classes)
    weight = draw(st.sampled_from(["none", "none", "some", "wild", "class"]))
    weights = {
        "none": None, "some": rng.integers(0, 4, n).astype(float), "wild": 10.0 ** rng.uniform(-12, 12, n),
        "class": 10.0 ** rng.uniform(-12, 12, classes)[y],
    }[weight]
    if weights is not None:
        weights[:classes] = np.maximum(weights[:classes], 1e-12)
    if draw(st.booleans()) and np.abs(X).max() < 1e38:
        X = X.astype(np.float32)
    return (sp.csr_matrix(X) if draw(st.booleans()) else X), y, weights


@st.composite
def parameters(draw: st.DrawFn) -> dict[str, Any]:
    joint = draw(st.sampled_from([False, False, True]))
    stop = draw(st.sampled_from(["none", "none", "turns", "callback", "time"]))
    seen: list[int] = []
    after = draw(st.integers(1, 6))
    return {
        "C": draw(powers(-8, 12)), "loss": "hinge" if joint else draw(st.sampled_from(["hinge", "squared_hinge"])),
        "solver": draw(st.sampled_from(["auto", "ocas"] if joint else ["auto", "newton", "descent", "ocas", "cpa"])),
        "multi_class": "crammer_singer" if joint else "ovr", "tol": draw(st.sampled_from([1e-2, 1e-4, 1e-6])),
        "fit_intercept": draw(st.booleans()), "intercept_scaling": draw(st.sampled_from([None, None, 1.0, 30.0])),
        "class_weight": draw(st.sampled_from([None, None, "balanced"])), "warm_start": draw(st.booleans()),
        "max_iter": after if stop == "turns" else 80, "max_time": 1e-3 if stop == "time" else None,
        "callback": (lambda row: seen.append(1) or len(seen) % after == 0) if stop == "callback" else None,
    }


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return Case(*draw(samples()), draw(parameters()))


@st.composite
def changed(draw: st.DrawFn, case: Case) -> Case:
    """The same fit after something has changed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    what = draw(st.sampled_from(["C", "C", "labels", "X", "weight", "loss", "intercept", "scaling", "nothing"]))
    options, n = dict(case.options), len(case.y)
    if what == "C":
        options["C"] = draw(powers(-8, 12))
    elif what == "labels":
        return replace(case, y=case.y[rng.permutation(n)])
    elif what == "X":
        return replace(case, X=case.X * 0.5 if draw(st.booleans()) else case.X[rng.permutation(n)])
    elif what == "weight":
        return replace(case, weight=10.0 ** rng.uniform(-3, 3, n))
    elif what == "loss" and not case.joint:
        options["loss"] = {"hinge": "squared_hinge", "squared_hinge": "hinge"}[options["loss"]]
    elif what == "intercept":
        options["fit_intercept"] = not options["fit_intercept"]
    elif what == "scaling":
        options["intercept_scaling"] = draw(st.sampled_from([None, 0.5, 7.0]))
    return replace(case, options=options)


def fitted(model: LinearSVC, case: Case, terminal: pytest.CaptureFixture[str]) -> bool:
    """Whether a fit came to an end; an error must say what to do, and nothing is printed (LAPACK would)."""
    terminal.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.set_params(**case.options).fit(case.X, case.y, case.weight)
        except ValueError as error:
            event("refused")
            assert any(word in str(error) for word in ("Scale the features", "infinity", "greater than one")), error
            return False
    assert not "".join(terminal.readouterr()).strip()
    return True


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_a_fit_says_is_true_fuzz(capfd, data) -> None:
    case = data.draw(cases())
    note(f"{case.options}, weight {case.weight!r}")
    model = hinge_svc()
    if fitted(model, case, capfd):
        check(case, model)
    for _ in range(data.draw(st.sampled_from([0, 0, 1, 2]))):
        case = data.draw(changed(case))
        note(f"then {case.options}")
        if fitted(model, case, capfd):
            check(case, model)
