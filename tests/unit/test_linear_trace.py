"""What trace_ says: one meaning per column, turn by turn and in the last row, for every solver and number of classes."""

import warnings

import numpy as np
import pytest
from hinge import hinge_svc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y2 = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
Y3 = np.argmax(X[:, :3] + RNG.normal(size=(120, 3)), axis=1)
SOLVERS = ("newton", "descent", "ocas", "cpa")
KINDS = [
    *((Y2, {"solver": solver, "fit_intercept": free}) for solver in SOLVERS for free in (True, False)),
    (Y2, {"loss": "squared_hinge"}), (Y2, {"multi_class": "crammer_singer"}),
    (Y3, {}), (Y3, {"solver": "ocas", "loss": "squared_hinge"}), (Y3, {"multi_class": "crammer_singer"}),
]
STOPS = [{}, {"max_iter": 1}, {"max_iter": 4}, {"max_time": 1e-9}, {"callback": lambda row: row["iteration"] == 3}]


def fit(y, options, stop):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hinge_svc(**options, **stop, tol=1e-3).fit(X, y)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: " ".join(stop) or "none")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0].max() + 1} classes {kind[1]}")
def test_the_last_row_is_the_model(kind, stop):
    y, options = kind
    model = fit(y, options, stop)
    trace, last = model.trace_, model.trace_[-1]
    assert trace.dtype.names[:7] == ("iteration", "time", "objective", "dual", "gap", "violation", "n_support")
    assert last["objective"] == model.objective_ and last["gap"] == model.dual_gap_
    assert last["dual"] == model.objective_ - model.dual_gap_
    assert last["dual"] == pytest.approx(model.lower_bound_, rel=1e-12)
    assert last["iteration"] == model.n_iter_
    assert (last["violation"] <= model.tol) == (model.status_ == "converged") or model.status_ == "callback"
    assert last["violation"] >= model.dual_gap_ / model.objective_ * (1 - 1e-12) or "problem" in trace.dtype.names
    separate = len(np.unique(y)) > 2 and options.get("multi_class") != "crammer_singer"
    assert ("problem" in trace.dtype.names) == separate
    np.testing.assert_allclose(trace["gap"], trace["objective"] - trace["dual"], atol=1e-15 * trace["objective"][0])
    for k in sorted(set(trace["problem"][:-1])) if separate else [None]:
        mine = trace[:-1][trace["problem"][:-1] == k] if separate else trace
        assert (np.diff(mine["objective"]) <= 1e-12 * model.objective_).all()
        assert (np.diff(mine["dual"]) >= -1e-12 * model.objective_).all()
    if separate:
        assert last["problem"] == -1 and len(trace) == model.n_iter_ + 1
    else:
        assert len(trace) == max(model.n_iter_, 1)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0].max() + 1} classes {kind[1]}")
def test_support_is_counted_in_samples(kind):
    y, options = kind
    model = fit(y, options, {})
    scores = X @ model.coef_.T + model.intercept_
    if len(np.unique(y)) == 2:
        support = np.count_nonzero(np.where(y == 1, 1, -1) * scores[:, 0] <= 1 + model.tol)
    elif options.get("multi_class") == "crammer_singer":
        rows = np.arange(len(y))
        others = scores.copy()
        others[rows, y] = -np.inf
        support = np.count_nonzero(1 + others.max(axis=1) - scores[rows, y] >= -model.tol)
    else:
        support = sum(np.count_nonzero(np.where(y == k, 1, -1) * scores[:, k] <= 1 + model.tol) for k in range(3))
    assert model.trace_["n_support"][-1] == support
    if options.get("multi_class") != "crammer_singer" or len(np.unique(y)) == 2:
        assert (model.trace_["n_support"] >= 0).all() and (model.trace_["n_support"] <= 3 * len(y)).all()
    assert model.trace_["cuts"][0 if len(model.trace_) == 1 else -2] >= 0


def test_the_total_of_several_problems_is_their_sum():
    model = fit(Y3, {}, {})
    trace = model.trace_
    ends = [trace[:-1][trace["problem"][:-1] == k][-1] for k in range(3)]
    for name in ("objective", "dual", "gap"):
        assert trace[-1][name] == pytest.approx(sum(row[name] for row in ends), rel=1e-12)
    assert trace[-1]["n_support"] == sum(row["n_support"] for row in ends)
    assert trace[-1]["violation"] == pytest.approx(max(row["violation"] for row in ends), rel=1e-9)


@pytest.mark.parametrize("y", [Y2, Y3], ids=["two", "three"])
def test_what_is_proven_in_the_turn_of_a_limit_has_converged(y):
    """Converged is converged: max_iter that strikes in the last turn needed changes nothing."""
    whole = hinge_svc(tol=1e-3).fit(X, y)
    several = "problem" in whole.trace_.dtype.names
    turns = np.unique(whole.trace_["problem"][:-1], return_counts=True)[1].max() if several else whole.n_iter_  # of a class
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limited = hinge_svc(tol=1e-3, max_iter=int(turns)).fit(X, y)
    assert limited.status_ == "converged" and limited.n_iter_ == whole.n_iter_
    np.testing.assert_array_equal(limited.coef_, whole.coef_)
    with pytest.warns(Warning, match="max_iter"):
        assert hinge_svc(tol=1e-3, max_iter=int(turns) - 1).fit(X, y).status_ == "max_iter"
