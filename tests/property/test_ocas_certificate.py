"""What the certificate promises, on small random problems of every kind."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import hinge_svc
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.linear import LinearProblem, make, solve
from maxmargin.runtime import Control, Status

SOLVERS = ["newton", "descent", "ocas", "cpa"]


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, d = draw(st.integers(4, 60)), draw(st.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, d)
    if draw(st.booleans()):
        X = np.round(X)  # ties and repeated rows
    y = np.where(X @ rng.normal(size=d) + draw(st.sampled_from([0.0, 0.5, 5.0])) * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    if draw(st.booleans()):
        X = X.astype(np.float32)
    if draw(st.booleans()):
        X = sp.csr_matrix(X)
    bias, penalised = draw(st.sampled_from([(0.0, False), (1.0, False), (2.0, True)]))
    weight = rng.uniform(0.1, 3, n) if draw(st.booleans()) else np.ones(n)
    return {
        "X": X, "sign": y, "weight": weight, "C": 10 ** draw(st.floats(-2, 2)), "bias": bias, "penalised": penalised,
        "loss": draw(st.sampled_from(["hinge", "squared_hinge"])), "threads": draw(st.sampled_from([1, 2])),
    }


def exact_objective(problem, w):
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    f = X.astype(np.float64) @ w[: problem.d] + (problem.bias * w[-1] if problem.bias else 0.0)
    hinge = np.maximum(0, 1 - problem.sign * f)
    return 0.5 * problem.inner(w, w) + problem.C * problem.weight @ (hinge if problem.loss == "hinge" else hinge**2)


@settings(max_examples=25, deadline=None)
@given(problems())
def test_bounds_enclose_the_optimum_and_move_one_way(kind):
    best = solve(LinearProblem(**kind), 1e-6, "auto", Control())
    assert best.status is Status.CONVERGED
    for name in SOLVERS:
        problem = LinearProblem(**kind)
        result = solve(problem, 1e-3, name, Control(max_iter=60))
        trace = result.trace
        rounding = 1e-12 * trace["objective"][0]
        assert (np.diff(trace["objective"]) <= rounding).all(), name
        assert (np.diff(trace["dual"]) >= -rounding).all(), name
        assert result.lower <= best.objective * (1 + 1e-11) + 1e-12, name
        assert best.lower <= result.objective * (1 + 1e-11) + 1e-12, name
        assert result.objective == pytest.approx(exact_objective(problem, result.w), rel=1e-9, abs=1e-12), name
        if result.status is Status.CONVERGED:
            assert result.objective - result.lower <= 1e-3 * result.objective


@settings(max_examples=15, deadline=None)
@given(problems(), st.integers(0, 1000))
def test_weights_equal_repeated_rows(kind, seed):
    counts = np.random.default_rng(seed).integers(0, 4, len(kind["sign"]))
    counts[:2] = np.maximum(counts[:2], 1)
    X, y = kind["X"], kind["sign"]
    options = {"C": kind["C"], "loss": kind["loss"], "tol": 1e-5, "fit_intercept": kind["bias"] != 0}
    weighted = hinge_svc(**options).fit(X, y, sample_weight=counts)
    rows = np.repeat(np.arange(len(y)), counts)
    repeated = hinge_svc(**options).fit(X[rows], y[rows])
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)
    np.testing.assert_array_equal(weighted.intercept_, repeated.intercept_)


def large(n=4000, d=12, seed=0):
    """More rows than the estimator merges, so that weights reach the solver."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X @ rng.normal(size=d) + 2 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("solver", ["newton", "descent", "ocas"])
def test_weights_equal_repeated_rows_in_the_solvers(solver):
    X, y = large(3000)
    counts = np.random.default_rng(1).integers(0, 3, 3000)
    rows = np.repeat(np.arange(3000), counts)
    weighted = hinge_svc(0.01, solver=solver, tol=1e-6).fit(X, y, sample_weight=counts)
    repeated = hinge_svc(0.01, solver=solver, tol=1e-6).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-6)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-3)


@pytest.mark.parametrize("solver", ["auto", "ocas"])
def test_forms_of_the_same_data_agree(solver, tmp_path):
    X, y = large()
    X = X.astype(np.float32).astype(np.float64)
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    reference = hinge_svc(0.01, tol=1e-6, solver=solver, n_jobs=1).fit(X, y)
    forms = [
        (X.astype(np.float32), 1), (sp.csr_matrix(X), 1), (X, 2), (np.load(tmp_path / "x.npy", mmap_mode="r"), 2),
    ]
    for form, jobs in forms:
        model = hinge_svc(0.01, tol=1e-6, solver=solver, n_jobs=jobs).fit(form, y)
        assert model.objective_ == pytest.approx(reference.objective_, rel=2e-6)
    mapped = hinge_svc(0.01, tol=1e-6, solver=solver, n_jobs=1).fit(np.load(tmp_path / "x.npy", mmap_mode="r"), y)
    array = hinge_svc(0.01, tol=1e-6, solver=solver, n_jobs=1).fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(mapped.coef_, array.coef_)


@pytest.mark.parametrize("solver", ["auto", "ocas"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_path_equals_separate_fits(solver, loss):
    X, y = large(2500)
    Cs = [1.0, 0.01, 0.1]
    models = hinge_svc(solver=solver, loss=loss, tol=1e-5).path(X, y, Cs)
    for model, C in zip(models, Cs):
        alone = hinge_svc(C, solver=solver, loss=loss, tol=1e-5).fit(X, y)
        assert model.C == C and model.status_ == "converged" and not model.warm_start
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-5)
        assert model.lower_bound_ <= alone.objective_ * (1 + 1e-12)


def test_warm_start_saves_turns_and_never_reuses_cuts_of_other_data():
    X, y = large(2500)
    model = hinge_svc(0.1, solver="ocas", warm_start=True, tol=1e-4).fit(X, y)
    cold = hinge_svc(0.12, solver="ocas", tol=1e-4).fit(X, y)
    model.set_params(C=0.12).fit(X, y)
    assert model.trace_["gap"][0] < 0.05 * cold.trace_["gap"][0]  # the cuts of the first fit hold for the second
    assert model.n_iter_ <= cold.n_iter_
    model.fit(X, -y)  # other labels: the old cuts do not hold
    assert model.lower_bound_ <= hinge_svc(0.12, tol=1e-8).fit(X, -y).objective_


def test_theorem_1_bounds_the_iterations():
    """At most max(2C/eps, 8C³Q²/eps²) turns, C and eps in the paper's scale (risk divided by m)."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=50) > 0, 1.0, -1.0)
    m, C, eps = 50, 2.0, 0.05
    solver = make(LinearProblem(X, y, np.full(m, 1 / m), C), 1e-12, "ocas")
    bound = max(2 * C / eps, 8 * C**3 * (X**2).sum(1).max() / eps**2)
    gaps = []
    for turn in solver.turns():
        if turn is not None:
            gaps.append(turn.gap)
            if turn.gap <= eps:
                break
    assert gaps[-1] <= eps and len(gaps) <= bound


def test_ocas_needs_fewer_turns_than_cpa():
    X, y = large(2500)
    turns = [hinge_svc(1.0, solver=s, tol=1e-3, fit_intercept=False).fit(X, y).n_iter_ for s in ("ocas", "cpa")]
    assert turns[0] < turns[1]


def test_limits_are_honest():
    X, y = large(2500)
    with pytest.warns(Warning, match="max_iter"):
        model = hinge_svc(10.0, solver="ocas", max_iter=3).fit(X, y)
    assert model.status_ == "max_iter" and model.n_iter_ == 3
    assert model.dual_gap_ == pytest.approx(model.objective_ - model.lower_bound_)
    with pytest.warns(Warning, match="max_time"):
        assert hinge_svc(10.0, solver="ocas", max_time=1e-9).fit(X, y).status_ == "max_time"
    seen = []
    stopped = hinge_svc(10.0, solver="ocas", callback=lambda row: seen.append(row) or len(seen) == 2).fit(X, y)
    assert stopped.status_ == "callback" and len(seen) == 2 and {"objective", "gap", "dual"} <= set(seen[0])
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.warns(Warning, match="max_iter"):
        assert hinge_svc(solver="ocas", max_iter=3).fit(X, three).coef_.shape == (3, 12)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"C": -1.0}, "C=-1.0"), ({"C": "x"}, "C='x'"), ({"tol": 0.0}, "tol=0.0"), ({"loss": "log"}, "loss='log'"),
        ({"solver": "sgd"}, "solver='sgd'"), ({"multi_class": "ovo"}, "multi_class='ovo'"),
        ({"intercept_scaling": 0.0}, "intercept_scaling=0.0"), ({"fit_intercept": "no"}, "fit_intercept='no'"),
        ({"warm_start": 3}, "warm_start=3"), ({"max_iter": 0}, "max_iter=0"),
        ({"class_weight": {5: 1.0}}, r"\[5\]"), ({"n_jobs": 0}, "n_jobs=0"),
        ({"penalty": "l0"}, "penalty='l0'"), ({"dual": "both"}, "dual='both'"),
        ({"multi_class": "crammer_singer", "solver": "newton"}, "solver='newton'"),
        ({"multi_class": "crammer_singer", "solver": "cpa"}, "optimised cutting planes only"),
    ],
)
def test_bad_parameters_are_named_and_change_nothing(options, message):
    X, y = large(60)
    model = hinge_svc().fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match=message):
        model.set_params(**options).fit(X, y)
    assert model.coef_ is before


def test_bad_data_gets_clear_errors():
    X, y = large(60)
    model = hinge_svc()
    with pytest.raises(ValueError, match="greater than one"):
        model.fit(X, np.ones(60))
    with pytest.raises(ValueError, match="all samples with positive weights belong to the same class"):
        model.fit(X, y, sample_weight=(y > 0).astype(float))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((60, 2), np.nan), y)
    with pytest.raises(ValueError, match="empty"):
        model.path(X, y, [])
    assert not hasattr(model, "coef_")


def test_converged_fits_do_not_warn():
    X, y = large(2500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for solver in ("auto", "newton", "descent", "ocas"):
            assert hinge_svc(0.1, solver=solver, tol=1e-3).fit(X, y).status_ == "converged"
