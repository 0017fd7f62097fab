"""Weights over many orders of magnitude: the reduced problem keeps its digits, and fits end with a proof."""

import numpy as np
import pytest
from hinge import hinge_svc

from maxmargin.linear import reduced_qp


def samples(classes, n=240, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X[:, :classes] + rng.normal(size=(n, classes)), axis=1)


@pytest.mark.parametrize("ratio", [1.0, 1e4, 1e8, 1e12])
def test_two_cuts_that_balance_a_free_intercept(ratio):
    """One heavy cut against a light one: β follows from the balance and Σβ = 1, however far apart they are."""
    heavy, light = 50 * ratio, 50.0
    gram = np.diag([1e-6 * heavy, 1e-6 * light]) ** 2
    beta, _ = reduced_qp.solve(gram, np.array([heavy, light]), 1.0, np.array([heavy, -light]))
    np.testing.assert_allclose(beta, [light / (heavy + light), heavy / (heavy + light)], rtol=1e-9)


def test_the_value_does_not_depend_on_the_guess():
    rng = np.random.default_rng(0)
    cuts, offset = rng.normal(size=(12, 5)) * np.logspace(-4, 4, 12)[:, None], np.logspace(-4, 4, 12)
    free = offset * np.where(np.arange(12) % 2, 1.0, -1.0)
    gram = cuts @ cuts.T

    def value(guess):
        beta, _ = reduced_qp.solve(gram, offset, 1.0, free, guess)
        assert (beta >= 0).all() and beta.sum() <= 1 and abs(free @ beta) <= 1e-12 * (np.abs(free) @ beta)
        return float(offset @ beta - 0.5 * beta @ gram @ beta)

    best = value(0.0)
    for guess in (1e-9 * best, 0.5 * best, best, 1e6 * best):
        assert value(guess) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("solver", ["auto", "ocas"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", ["class", "sample"])
def test_binary_fits_are_certified(solver, fit_intercept, weights):
    X, y = samples(2)
    class_weight = {0: 1e4, 1: 1e-4} if weights == "class" else None
    sample_weight = 10.0 ** np.random.default_rng(1).uniform(-4, 4, len(y)) if weights == "sample" else None
    model = hinge_svc(solver=solver, fit_intercept=fit_intercept, class_weight=class_weight, tol=1e-6)
    model.fit(X, y, sample_weight)
    assert model.status_ == "converged"
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    weight = weight * (1.0 if class_weight is None else np.where(y == 0, 1e4, 1e-4))
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    objective = 0.5 * float((model.coef_**2).sum()) + float(weight @ np.maximum(0, 1 - margins))
    assert model.objective_ == pytest.approx(objective, rel=1e-9)
    other = hinge_svc(
        solver="ocas" if solver == "auto" else "auto", fit_intercept=fit_intercept, class_weight=class_weight, tol=1e-7
    ).fit(X, y, sample_weight)
    assert model.lower_bound_ <= other.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
@pytest.mark.parametrize("class_weight", [{0: 1000, 1: 1e-4, 2: 1e-4}, {0: 1e4, 1: 1.0, 2: 1e-4}])
def test_several_classes_are_certified(multi_class, class_weight):
    X, y = samples(3)
    model = hinge_svc(multi_class=multi_class, class_weight=class_weight, max_iter=400).fit(X, y)
    assert model.status_ == "converged" and model.dual_gap_ <= 1e-4 * model.objective_ + 1e-12
    assert np.mean(model.predict(X) == 0) > 0.8  # the heavy class takes all that is in doubt
