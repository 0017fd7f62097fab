"""Any small problem: the budget holds, weights are repetitions, and the model is what it says it is."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import BudgetSVC
from maxmargin.budget.maintenance import MAINTENANCE, MERGE_SEARCH

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**16),
        "n": st.integers(4, 60),
        "d": st.integers(1, 9),
        "classes": st.integers(2, 4),
        "grid": st.booleans(),  # few distinct values: duplicates and ties
        "sparse": st.booleans(),
        "single": st.booleans(),
    }
)
machines = st.fixed_dictionaries(
    {
        "C": st.sampled_from([0.01, 1.0, 1e4]),
        "gamma": st.sampled_from([1e-3, 0.5, 50.0, "scale"]),
        "budget": st.sampled_from([1, 2, 5, 40]),
        "maintenance": st.sampled_from(list(MAINTENANCE)),
        "merge_search": st.sampled_from(list(MERGE_SEARCH)),
        "fit_intercept": st.booleans(),
        "averaging": st.booleans(),
        "refit": st.booleans(),
    }
)


def make(problem):
    rng = np.random.default_rng(problem["seed"])
    shape = problem["n"], problem["d"]
    x = rng.integers(0, 3, shape).astype(float) if problem["grid"] else rng.normal(size=shape)
    y = np.arange(problem["n"]) % problem["classes"]
    x = x.astype(np.float32 if problem["single"] else np.float64)
    return (sp.csr_matrix(x) if problem["sparse"] else x), rng.permutation(y), rng


@settings(max_examples=60, deadline=None)
@given(problems, machines)
def test_model_is_consistent(problem, machine):
    x, y, _ = make(problem)
    model = BudgetSVC(epochs=2, random_state=problem["seed"], **machine).fit(x, y)
    vectors, coef = model.support_vectors_.astype(float), model.dual_coef_
    assert len(vectors) <= machine["budget"] and np.isfinite(vectors).all() and np.isfinite(coef).all()
    dense = np.asarray(x.todense() if sp.issparse(x) else x, dtype=float)
    kernel = lambda a, b: np.exp(-model.gamma_ * ((a[:, None] - b[None]) ** 2).sum(-1))  # noqa: E731
    values = kernel(dense, vectors) @ coef.T + model.intercept_
    shown = model.decision_function(x).reshape(len(y), -1)
    np.testing.assert_allclose(shown, values, atol=2e-4 * (1 + np.abs(coef).sum()))
    sign = np.where(y[:, None] == (1 if len(coef) == 1 else np.arange(len(coef))), 1, -1)
    norm = np.sum((coef @ kernel(vectors, vectors)) * coef) + np.sum(model.intercept_**2)
    objective = norm / 2 + machine["C"] * np.maximum(0, 1 - sign * values).sum()
    np.testing.assert_allclose(model.objective_, objective, rtol=1e-2, atol=1e-3 * np.abs(coef).sum() ** 2)


@settings(max_examples=40, deadline=None)
@given(problems, machines)
def test_weights_are_repetitions(problem, machine):
    x, y, rng = make(problem)
    weight = rng.integers(1, 4, len(y))
    repeated = rng.permutation(np.repeat(np.arange(len(y)), weight))
    machine = {**machine, "epochs": 2, "random_state": 0}
    a = BudgetSVC(**machine).fit(x, y, sample_weight=weight)
    b = BudgetSVC(**machine).fit(x[repeated], y[repeated])
    np.testing.assert_array_equal(a.support_vectors_, b.support_vectors_)
    np.testing.assert_array_equal(a.dual_coef_, b.dual_coef_)
