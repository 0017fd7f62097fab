"""Decision values of rows that were not seen, and probabilities from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from maxmargin import SVC, SVCCV, SVR, LinearSVC, NuSVC, certify_fit
from maxmargin.decomposition.solver import Decomposition
from maxmargin.estimators._labelled import Labelled
from maxmargin.selection import Calibrated, calibrated, cross_val_decisions
from maxmargin.selection.calibration import in_favour, unseen_values
from maxmargin.selection.fits import fitted_from
from maxmargin.selection.folds import folds_of
from maxmargin.selection.search import Task

TIGHT = {"tol": 1e-6, "n_jobs": 1, "gamma": 0.3}


def samples(n_classes: int, n: int = 120, seed: int = 0) -> tuple[Any, Any]:
    return make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.15, random_state=seed
    )


@pytest.mark.parametrize("machine", [SVC(C=3.0, **TIGHT), NuSVC(nu=0.3, **TIGHT), LinearSVC(tol=1e-7)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decisions_are_those_of_the_folds(machine: Any, n_classes: int, shape: str) -> None:
    X, y = samples(n_classes)
    machine = clone(machine)  # the test may run in several threads at once
    if hasattr(machine, "decision_function_shape"):
        machine.set_params(decision_function_shape=shape)
    elif shape == "ovo":
        pytest.skip("has no pairs")
    weight = np.random.default_rng(0).integers(1, 3, len(y)).astype(float)
    folds = list(StratifiedKFold(4).split(X, y))
    found = cross_val_decisions(machine, X, y, folds, sample_weight=weight)
    for train, test in folds:
        expected = machine.fit(X[train], y[train], sample_weight=weight[train]).decision_function(X[test])
        np.testing.assert_allclose(found[test], expected, atol=1e-3 * np.abs(expected).max())


def test_regression() -> None:
    X, y = samples(2)
    t = X[:, 0] + 0.1 * y
    found = cross_val_decisions(SVR(C=3.0, **TIGHT), X, t, KFold(3))
    for train, test in KFold(3).split(X):
        np.testing.assert_allclose(found[test], SVR(C=3.0, **TIGHT).fit(X[train], t[train]).predict(X[test]), atol=1e-3)


def test_bad_input() -> None:
    X, y = samples(2)
    with pytest.raises(ValueError, match="left out once at most"):
        cross_val_decisions(SVC(), X, y, ShuffleSplit(5, random_state=0))
    with pytest.raises(TypeError, match="maxmargin"):
        from sklearn.svm import SVC as Other

        cross_val_decisions(Other(), X, y)
    with pytest.raises(ValueError, match="method"):
        calibrated(SVC(), X, y, method="platt")
    with pytest.raises(ValueError, match="fold_tol=-1"):
        calibrated(SVC(), X, y, fold_tol=-1)
    with pytest.raises(TypeError, match=r"SVC or a NuSVC.*CalibratedClassifierCV"):
        calibrated(LinearSVC(), X, y)


@pytest.mark.parametrize("machine", [SVC(C=3.0), SVC(C=1e-3), NuSVC(nu=0.3), SVC(C=30.0, class_weight={0: 5.0})])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_loose_folds_change_the_probabilities_little_and_the_machine_not_at_all(machine: Any, n_classes: int) -> None:
    X, y = samples(n_classes, 500)
    machine = clone(machine).set_params(n_jobs=1, gamma=0.3)
    loose, tight = (calibrated(machine, X[:300], y[:300], fold_tol=t) for t in (0.1, 0.0))
    np.testing.assert_allclose(loose.predict_proba(X[300:]), tight.predict_proba(X[300:]), atol=0.05)
    losses = [log_loss(y[300:], model.predict_proba(X[300:])) for model in (loose, tight)]
    assert losses[0] <= 1.02 * losses[1]
    for model in (loose, tight):
        assert model.machine_.status_ == "converged" and model.machine_.kkt_violation_ <= machine.tol
        truth = certify_fit(model.machine_, X[:300], y[:300])
        assert model.machine_.dual_gap_ >= truth.gap - 1e-6 * abs(truth.primal)


def test_the_machine_begins_with_the_f_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it says is true all the same, also where that f has come too far to be trusted."""
    X, y = samples(2, 1700)
    machine, begun = SVC(C=3.0, n_jobs=1, gamma=0.3), []
    init = Decomposition.__init__

    def noted(self: Any, *args: Any, **more: Any) -> None:
        init(self, *args, **more)
        begun.append(self)

    monkeypatch.setattr(Decomposition, "__init__", noted)
    rows = Labelled.of(machine, X, y, None)
    found = unseen_values(machine, Task(rows, y, folds_of(3, rows, y, None)))
    assert found.seed is not None
    seed = found.seed[0, 1]
    assert seed.f is not None and seed.path > 0
    far = replace(seed, f=seed.f + 1.0 * (np.arange(1700) % 2), path=1e300)
    for start, summed in ((seed, False), (replace(seed, dtype=np.float16), True), (far, True)):
        begun.clear()
        model = fitted_from(clone(machine), {(0, 1): start}, X, y, None)
        assert len(begun) == 1 and (begun[0].costs._summed > 0) == summed
        truth = certify_fit(model, X, y)
        assert model.status_ == "converged" and truth.violation <= 1.01 * machine.tol
        assert model.dual_gap_ == pytest.approx(truth.gap, abs=1e-5 * truth.primal)  # values in float32


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_say_something(method: str, n_classes: int) -> None:
    X, y = samples(n_classes, 400)
    model = calibrated(SVC(C=1.0, n_jobs=1), X[:250], y[:250], method=method, cv=3)
    p = model.predict_proba(X[250:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    prior = np.bincount(y[:250]) / 250
    assert log_loss(y[250:], p) < 0.9 * log_loss(y[250:], np.tile(prior, (150, 1)))
    assert model.score(X[250:], y[250:]) > 0.6


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.05, 1.0, 50.0]), st.booleans())
def test_the_predicted_class_is_the_most_probable_one(seed: int, n_classes: int, C: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, n_classes, 60) * rng.integers(0, 2, 60)
    y[: 3 * n_classes] = np.repeat(np.arange(n_classes), 3)
    other = 3 * rng.normal(size=(100, 2))
    model = Calibrated(SVC(C=C, n_jobs=1), cv=3).fit(X, y)
    assert (model.predict(other) == model.classes_[model.predict_proba(other).argmax(axis=1)]).all()
    search = SVCCV(Cs=[C], gammas=[1.0], cv=3, probabilities=True, break_ties=ties, n_jobs=1).fit(X, y)
    p = search.predict_proba(other)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (search.predict(other) == search.classes_[p.argmax(axis=1)]).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_in_favour_is_the_nearest(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    p, winner = rng.dirichlet(np.ones(k), 20), rng.integers(0, k, 20)
    out = in_favour(p, winner)
    assert (out.argmax(axis=1) == winner).all()
    np.testing.assert_allclose(out.sum(axis=1), 1.0)
    for _ in range(30):  # no other probabilities in favour are nearer
        other = rng.dirichlet(np.ones(k), 20)
        fine = other.argmax(axis=1) == winner
        assert (((out - p) ** 2).sum(1) <= ((other - p) ** 2).sum(1) + 1e-12)[fine].all()


def test_probabilities_are_an_offer() -> None:
    X, y = samples(2)
    model = SVCCV(Cs=[1.0], gammas=[0.3], cv=3).fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="probabilities"):
        SVCCV(probabilities="yes").fit(X, y)
