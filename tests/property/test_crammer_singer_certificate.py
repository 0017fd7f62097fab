"""Crammer & Singer's joint problem: its search against brute force, its certificate, weights, threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import hinge_svc
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import _core
from maxmargin.linear import CrammerSinger, LinearProblem, drive
from maxmargin.linear.bundle import IDLE
from maxmargin.runtime import Control, Status


def losses(scores, labels):
    rows = np.arange(len(labels))
    own = scores[rows, labels]
    shifted = scores + 1.0 - own[:, None]
    shifted[rows, labels] = 0.0
    return shifted.max(axis=1)


@st.composite
def samples(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n, d, classes = draw(st.integers(6, 50)), draw(st.integers(1, 6)), draw(st.integers(2, 5))
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, d)
    if draw(st.booleans()):
        X = np.round(X)  # ties and repeated rows
    y = np.argmax(X @ rng.normal(size=(d, classes)) + draw(st.sampled_from([0.0, 3.0])) * rng.normal(size=(n, classes)), 1)
    y[:classes] = np.arange(classes)
    return X, y, classes, rng


@settings(max_examples=40, deadline=None)
@given(samples(), st.floats(-3, 1), st.floats(0, 2))
def test_the_search_is_exact(kind, lin, quad):
    _, y, classes, rng = kind
    scores, q = (rng.normal(size=(len(y), classes)) for _ in range(2))
    weight = rng.uniform(0, 2, len(y))

    def value(k):
        return 0.5 * quad * k * k + lin * k + weight @ losses(scores + k * q, y)

    k = _core.joint_search(scores, q, y, weight, quad, lin, 100.0, 1)
    assert 0 <= k <= 100
    near = k * (1 + np.array([-1e-3, 1e-3, -1e-7, 1e-7]))
    others = np.concatenate([np.linspace(0, 2, 41), near[near <= 100], [100.0]])
    assert value(k) <= min(map(value, others)) + 1e-12 * (1 + abs(value(0.0)) + abs(value(100.0)))
    assert k == _core.joint_search(scores, q, y, weight, quad, lin, 100.0, 3)


@settings(max_examples=25, deadline=None)
@given(samples(), st.floats(-2, 1), st.sampled_from([(0.0, False), (1.0, False), (2.0, True)]), st.booleans())
def test_bounds_enclose_the_optimum_and_move_one_way(kind, power, intercept, sparse):
    X, y, classes, rng = kind
    bias, penalised = intercept
    weight = rng.uniform(0.1, 3, len(y))

    def run(tol, **limits):
        problem = LinearProblem(sp.csr_matrix(X) if sparse else X, np.ones(len(y)), weight, 10**power, bias=bias,
                                penalised=penalised)
        return drive(CrammerSinger(problem, y, classes, tol), Control(**limits))

    best, result = run(1e-5), run(1e-2, max_iter=60)
    assert best.status is Status.CONVERGED
    for one in (best, result):
        rounding = 1e-12 * one.trace["objective"][0]
        assert (np.diff(one.trace["objective"]) <= rounding).all() and (np.diff(one.trace["dual"]) >= -rounding).all()
    assert result.lower <= best.objective * (1 + 1e-11) and best.lower <= result.objective * (1 + 1e-11)
    W = result.w[:, : X.shape[1]]
    shift = bias * result.w[:, -1] if bias else np.zeros(classes)
    norm = (W**2).sum() + ((result.w[:, -1] ** 2).sum() if penalised else 0.0)
    exact = 0.5 * norm + 10**power * weight @ losses(X @ W.T + shift, y)
    assert result.objective == pytest.approx(exact, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("entries", [0, 1, 12])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_fewer_entries_than_samples(entries, bias):
    """Rows without any entry are samples too, also where most or all are such."""
    rng = np.random.default_rng(entries)
    X, y = np.zeros((40, 5)), np.arange(40) % 3
    weight = rng.uniform(1, 2, 40)
    X.ravel()[rng.choice(200, entries, replace=False)] = rng.normal(size=entries)
    dense, sparse = (
        drive(CrammerSinger(LinearProblem(form, np.ones(40), weight, 1.0, bias=bias), y, 3, 1e-6), Control())
        for form in (X, sp.csr_matrix(X))
    )
    assert dense.status is sparse.status is Status.CONVERGED
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-6)


def few():
    """Fewer samples than features, unequal weights: almost every dual is free."""
    rng = np.random.default_rng(5)
    return rng.normal(size=(30, 60)), np.arange(30) % 4, rng.uniform(0, 3, 30)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_few_weighted_samples_take_few_turns(fit_intercept, C):
    X, y, weight = few()
    model = hinge_svc(C, multi_class="crammer_singer", fit_intercept=fit_intercept).fit(X, y, weight)
    assert model.status_ == "converged" and model.n_iter_ <= 30  # hundreds by cutting planes alone


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_bound_survives_dropped_cuts(bias):
    """Every cut dropped at once: what is left, their mixture, has the value that they had together."""
    X, y, weight = few()
    solver = CrammerSinger(LinearProblem(X, np.ones(30), weight, 1.0, bias=bias), y, 4, 1e-4)
    solver._descent = None  # cutting planes alone, which take long here
    turns = (turn for turn in solver.turns() if turn is not None)
    for _ in range(40):
        next(turns)
    bundle = solver.bundle
    value, lower = bundle.value, bundle.lower
    assert bundle.count > 20 and value > 0
    bundle._idle[: bundle.count] = IDLE
    bundle._drop(bundle._mixture(bundle._beta))
    assert bundle.count == 1
    bundle.solve()
    assert bundle.value >= value * (1 - 1e-9) and bundle.lower >= lower


@settings(max_examples=10, deadline=None)
@given(samples(), st.booleans())
def test_weights_equal_repeated_rows(kind, fit_intercept):
    X, y, classes, rng = kind
    counts = rng.integers(0, 4, len(y))
    counts[:classes] = np.maximum(counts[:classes], 1)
    rows = np.repeat(np.arange(len(y)), counts)
    options = {"multi_class": "crammer_singer", "tol": 1e-4, "fit_intercept": fit_intercept}
    weighted = hinge_svc(**options).fit(X, y, sample_weight=counts)
    repeated = hinge_svc(**options).fit(X[rows], y[rows])
    np.testing.assert_array_equal(weighted.coef_, repeated.coef_)


def large():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    return X, np.argmax(X[:, :4] + rng.normal(size=(3000, 4)), axis=1), rng.integers(0, 3, 3000)


def test_weights_equal_repeated_rows_in_the_solver():
    X, y, counts = large()
    rows = np.repeat(np.arange(3000), counts)
    options = {"C": 0.01, "multi_class": "crammer_singer", "tol": 1e-5}
    weighted = hinge_svc(**options).fit(X, y, sample_weight=counts)
    repeated = hinge_svc(**options).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-5)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-2)


@pytest.mark.parametrize("sparse", [False, True])
def test_any_number_of_threads_gives_the_same_model(sparse):
    X, y, _ = large()
    X = sp.csr_matrix(X) if sparse else np.repeat(X, 5, axis=1)  # enough work for threads to be woken
    one, many = (hinge_svc(0.1, multi_class="crammer_singer", tol=1e-2, n_jobs=n).fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.coef_, many.coef_)
    assert one.objective_ == many.objective_ and one.n_iter_ == many.n_iter_
