"""Paths over C and warm starts: what one fit hands to the next."""

import copy
import pickle
import signal
import weakref

import numpy as np
import pytest
from hinge import hinge_svc
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

X, y = make_classification(2500, 12, n_informative=8, flip_y=0.1, random_state=0)
X3, y3 = make_classification(400, 10, n_informative=6, n_classes=3, random_state=1)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["newton", "descent", "ocas"])
def test_a_path_is_as_good_as_separate_fits(solver: str, loss: str) -> None:
    strengths = [1.0, 0.01, 10.0]
    models = hinge_svc(solver=solver, loss=loss, tol=1e-4, fit_intercept=False).path(X, y, strengths)
    for C, model in zip(strengths, models):
        alone = hinge_svc(C, solver=solver, loss=loss, tol=1e-4, fit_intercept=False).fit(X, y)
        assert model.C == C
        assert model.status_ == "converged"
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-4)
        assert model.lower_bound_ <= alone.objective_ * (1 + 1e-12)
        assert model.n_features_in_ == 12
        assert not model.warm_start


def test_the_same_problem_again_is_proven_at_once() -> None:
    model = hinge_svc(tol=1e-3, warm_start=True, fit_intercept=False, solver="newton").fit(X, y)
    turns, before = model.n_iter_, model.objective_
    model.fit(X, y)
    assert np.all(model.n_iter_ <= np.minimum(1, turns))
    assert model.objective_ <= before
    assert model.status_ == "converged"


@pytest.mark.parametrize("solver", ["newton", "descent", "ocas", "cpa"])
def test_a_warm_start_that_is_stopped_is_no_worse_than_its_start(solver: str) -> None:
    model = hinge_svc(C=0.1, tol=1e-3, warm_start=True, fit_intercept=False, solver=solver).fit(X, y)
    start = model.coef_.ravel()
    margins = np.where(y == model.classes_[1], 1, -1) * (X @ start)
    model.set_params(C=0.11, tol=1e-9, max_iter=1)
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(X, y)
    assert model.objective_ <= 0.5 * start @ start + 0.11 * np.maximum(0, 1 - margins).sum() + 1e-9


@pytest.mark.parametrize("multi_class", ["ovr", "crammer_singer"])
def test_paths_of_several_classes(multi_class: str) -> None:
    models = hinge_svc(multi_class=multi_class, tol=1e-4).path(X3, y3, [0.1, 1.0])
    for C, model in zip((0.1, 1.0), models):
        alone = hinge_svc(C, multi_class=multi_class, tol=1e-4).fit(X3, y3)
        assert model.objective_ == pytest.approx(alone.objective_, rel=5e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_joint_problem_reuses_its_cuts(fit_intercept: bool) -> None:
    options = {"multi_class": "crammer_singer", "tol": 1e-4, "fit_intercept": fit_intercept}
    cold = hinge_svc(1.2, **options).fit(X3, y3)
    model = hinge_svc(1.0, warm_start=True, **options).fit(X3, y3)
    model.set_params(C=1.2).fit(X3, y3)
    along = hinge_svc(**options).path(X3, y3, [1.0, 1.2])[1]
    for warm in (model, along):
        assert warm.status_ == "converged" and warm.n_iter_ < 0.75 * cold.n_iter_
        assert warm.trace_["gap"][0] < 0.1 * cold.trace_["gap"][0]
        assert warm.lower_bound_ <= cold.objective_ and cold.lower_bound_ <= warm.objective_
    model.set_params(multi_class="ovr").fit(X3, y3)  # cuts of another problem
    assert model.lower_bound_ <= hinge_svc(1.2, tol=1e-6, fit_intercept=fit_intercept).fit(X3, y3).objective_


@pytest.mark.parametrize("again", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_a_model_to_start_from_can_be_copied_and_keeps_its_cuts(again) -> None:
    model = hinge_svc(tol=1e-3, warm_start=True).fit(X3, y3)
    twin = again(model).fit(X3, y3)
    assert twin.n_iter_ <= 3 < model.n_iter_  # each class is proven at once
    assert twin.objective_ <= model.objective_


def test_a_model_to_start_from_does_not_hold_the_samples() -> None:
    samples = X.copy()
    model = hinge_svc(warm_start=True).fit(samples, y)
    alive = weakref.ref(samples)
    del samples
    assert model.status_ == "converged" and alive() is None


def test_every_C_of_a_path_is_checked_before_the_first_fit() -> None:
    turns: list[object] = []
    with pytest.raises(ValueError, match=r"C=-1\.0"):
        hinge_svc(callback=turns.append).path(X, y, [0.1, -1.0, 1.0])
    with pytest.raises(ValueError, match="C=inf"):
        hinge_svc(callback=turns.append).path(X, y, [0.1, np.inf])
    assert not turns


def test_an_interrupted_path_hands_over_the_models_it_has() -> None:
    fits = 0

    def press(row: dict[str, float]) -> None:
        nonlocal fits
        fits += row["iteration"] == 1
        if fits == 2 and row["iteration"] == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        second, first = hinge_svc(callback=press, warm_start=True).path(X, y, [1.0, 0.01, 10.0])
    assert (first.C, first.status_, first.warm_start) == (0.01, "converged", True)
    assert (second.C, second.status_, second.warm_start) == (1.0, "interrupted", True)
    assert second.score(X, y) > 0.5


def test_classes_that_a_stopped_fit_has_not_reached_keep_their_start() -> None:
    model = hinge_svc(warm_start=True).fit(X3, y3)
    before = model.coef_
    model.set_params(C=1.1, callback=lambda row: True).fit(X3, y3)
    assert model.status_ == "callback"
    np.testing.assert_array_equal(model.coef_[1:], before[1:])
