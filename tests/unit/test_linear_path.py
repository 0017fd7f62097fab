"""Paths over C and warm starts: what one fit hands to the next."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from maxmargin import LinearSVC

X, y = make_classification(2500, 12, n_informative=8, flip_y=0.1, random_state=0)
X3, y3 = make_classification(400, 10, n_informative=6, n_classes=3, random_state=1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["newton", "descent", "ocas"])
def test_a_path_is_as_good_as_separate_fits(solver: str, loss: str) -> None:
    strengths = [1.0, 0.01, 10.0]
    models = LinearSVC(solver=solver, loss=loss, tol=1e-4, fit_intercept=False).path(X, y, strengths)
    for C, model in zip(strengths, models):
        alone = LinearSVC(C, solver=solver, loss=loss, tol=1e-4, fit_intercept=False).fit(X, y)
        assert model.C == C
        assert model.status_ == "converged"
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-4)
        assert model.lower_bound_ <= alone.objective_ * (1 + 1e-12)
        assert model.n_features_in_ == 12
        assert not model.warm_start


def test_the_same_problem_again_is_proven_at_once() -> None:
    model = LinearSVC(tol=1e-3, warm_start=True, fit_intercept=False, solver="newton").fit(X, y)
    turns, before = model.n_iter_, model.objective_
    model.fit(X, y)
    assert np.all(model.n_iter_ <= np.minimum(1, turns))
    assert model.objective_ <= before
    assert model.status_ == "converged"


def test_a_warm_start_that_is_stopped_is_no_worse_than_its_start() -> None:
    model = LinearSVC(C=0.1, tol=1e-6, warm_start=True, fit_intercept=False, solver="newton").fit(X, y)
    start = model.coef_.ravel()
    margins = np.where(y == model.classes_[1], 1, -1) * (X @ start)
    model.set_params(C=0.11, max_iter=1)
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(X, y)
    assert model.objective_ <= 0.5 * start @ start + 0.11 * np.maximum(0, 1 - margins).sum() + 1e-9


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_paths_of_several_classes(multi_class: str) -> None:
    models = LinearSVC(multi_class=multi_class, tol=1e-4).path(X3, y3, [0.1, 1.0])
    for C, model in zip((0.1, 1.0), models):
        alone = LinearSVC(C, multi_class=multi_class, tol=1e-4).fit(X3, y3)
        assert model.objective_ == pytest.approx(alone.objective_, rel=5e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_joint_problem_reuses_its_cuts(fit_intercept: bool) -> None:
    options = {"multi_class": "crammer_singer", "tol": 1e-4, "fit_intercept": fit_intercept}
    cold = LinearSVC(1.2, **options).fit(X3, y3)
    model = LinearSVC(1.0, warm_start=True, **options).fit(X3, y3)
    model.set_params(C=1.2).fit(X3, y3)
    along = LinearSVC(**options).path(X3, y3, [1.0, 1.2])[1]
    for warm in (model, along):
        assert warm.status_ == "converged" and warm.n_iter_ < 0.75 * cold.n_iter_
        assert warm.trace_["gap"][0] < 0.1 * cold.trace_["gap"][0]
        assert warm.lower_bound_ <= cold.objective_ and cold.lower_bound_ <= warm.objective_
    model.set_params(multi_class="ovr").fit(X3, y3)  # cuts of another problem
    assert model.lower_bound_ <= LinearSVC(1.2, tol=1e-6, fit_intercept=fit_intercept).fit(X3, y3).objective_
