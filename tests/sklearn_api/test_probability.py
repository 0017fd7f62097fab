"""`probability=True`: what predict_proba promises, whatever the classes, weights, kernel and form of the data."""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

import maxmargin
from maxmargin import SVC, NuSVC
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._probability import _unseen_decisions, coupled, sigmoid
from maxmargin.runtime import Control

pytestmark = pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
BLOBS = make_blobs(150, centers=4, cluster_std=3.0, random_state=1)


@given(st.integers(2, 30), st.integers(0, 2**31), st.sampled_from([1e-6, 1.0, 1e6]), st.sampled_from([1e-4, 1.0, 1e4]))
def test_the_sigmoid_is_the_most_likely_one(n, seed, scale, unit) -> None:
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.5
    f, weight = scale * (rng.normal(size=n) + positive), unit * rng.choice([0.5, 1.0, 3.0], n)
    pros, cons = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (pros + 1) / (pros + 2), 1 / (cons + 2))

    def loss(at):
        z = at[0] * f / scale + at[1]
        return float(weight @ (np.logaddexp(0, -z) + target * z)) / unit

    a, b = sigmoid(f, positive, weight)
    assert loss((a * scale, b)) <= minimize(loss, [0.0, 0.0]).fun + 1e-7 * weight.sum() / unit
    pull = weight * (target - expit(-(a * f + b)))  # of each row on the solution: they cancel
    assert abs(pull.sum()) <= 1e-7 * weight.sum() and abs(pull @ f) <= 1e-7 * weight.sum() * np.abs(f).max()


@given(st.integers(3, 6), st.integers(0, 2**31))
def test_the_coupling_minimises_what_it_should(k, seed) -> None:
    rng = np.random.default_rng(seed)
    r = np.zeros((k, k))
    pair = rng.uniform(0.01, 0.99, k * (k - 1) // 2)
    r[np.triu_indices(k, 1)] = pair
    r = r + np.tril(1 - r.T, -1)

    def misfit(p):
        return float(sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(k) for j in range(k) if i != j))

    p = coupled(pair[None], k)[0]
    assert p.min() >= 0 and p.sum() == pytest.approx(1)
    for q in rng.dirichlet(np.ones(k), 50):
        assert misfit(p) <= misfit(q) + 1e-9
    consistent = rng.dirichlet(np.ones(k))  # probabilities that pairs agree on are found again
    i, j = np.triu_indices(k, 1)
    pair = consistent[i] / (consistent[i] + consistent[j])
    np.testing.assert_allclose(coupled(pair[None], k)[0], consistent, atol=1e-9)


@pytest.mark.parametrize("make", [SVC, NuSVC])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_about_as_good_as_those_of_libsvm(make, n_classes) -> None:
    X, y = BLOBS[0][BLOBS[1] < n_classes], BLOBS[1][BLOBS[1] < n_classes]
    Z, z = make_blobs(400, centers=4, cluster_std=3.0, random_state=1)
    Z, z = Z[z < n_classes], z[z < n_classes]
    ours = make(probability=True).fit(X, y).predict_proba(Z)
    assert ours.shape == (len(Z), n_classes) and ours.min() >= 0
    np.testing.assert_allclose(ours.sum(axis=1), 1)
    theirs = getattr(sklearn.svm, make.__name__)(probability=True, random_state=0).fit(X, y).predict_proba(Z)
    assert log_loss(z, ours) <= log_loss(z, theirs) + 0.03


def test_the_form_of_the_data_does_not_matter() -> None:
    X, y = make_classification(90, 5, n_informative=3, n_redundant=0, random_state=0)
    dense = SVC(kernel="linear", probability=True, tol=1e-8).fit(X, y).predict_proba(X)
    sparse = SVC(kernel="linear", probability=True, tol=1e-8).fit(sp.csr_matrix(X), y).predict_proba(sp.csr_matrix(X))
    gram = SVC(kernel="precomputed", probability=True, tol=1e-8).fit(X @ X.T, y).predict_proba(X @ X.T)
    objects = [(None, row) for row in X]
    inner = SVC(kernel=lambda a, b: np.array([[u[1] @ v[1] for v in b] for u in a]), probability=True, tol=1e-8)
    for other in (sparse, gram, inner.fit(objects, y).predict_proba(objects)):
        np.testing.assert_allclose(other, dense, atol=1e-5)


def test_rows_of_no_weight_do_not_count() -> None:
    X, y = BLOBS
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0, -1.0], len(y))
    counts = weight > 0
    model = SVC(probability=True).fit(X, y, sample_weight=weight)
    without = SVC(probability=True).fit(X[counts], y[counts], sample_weight=weight[counts])
    np.testing.assert_allclose(model.predict_proba(X), without.predict_proba(X), atol=1e-9)


def test_two_classes_are_in_the_order_of_their_decisions() -> None:
    X, y = make_classification(120, random_state=0)
    model = SVC(probability=True).fit(X, y)
    order = np.argsort(model.decision_function(X))
    assert (np.diff(model.predict_proba(X)[order, 1]) >= 0).all()
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


@pytest.mark.parametrize("y", [[0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2], [0, 1, 0, 1, 0, 1]])
def test_classes_of_a_row_or_two(y) -> None:
    X = np.arange(12.0).reshape(6, 2)
    probability = SVC(probability=True).fit(X, y).predict_proba(X)
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_class_that_a_fold_has_not_seen_loses_against_those_that_it_has(n_classes: int) -> None:
    """A row that is alone in its class is on the side of the other class's rows, as sure as one can be."""
    for lone in range(n_classes):
        y = np.concatenate([np.full(1 if c == lone else 20, c) for c in range(n_classes)])
        X = 9 * np.eye(n_classes)[y] + np.random.default_rng(lone).normal(size=(len(y), n_classes))
        machine = SVC()
        values = _unseen_decisions(machine, Labelled.of(machine, X, y, None), Control())
        for value, (i, j) in zip(values.T, combinations(range(n_classes), 2)):
            if lone in (i, j):
                assert np.sign(value[y == (j if lone == i else i)]).tolist() == 20 * value[y == lone].tolist()


def test_a_seed_draws_other_folds_and_the_same_seed_the_same() -> None:
    X, y = BLOBS
    one, again, other = (SVC(probability=True, random_state=s).fit(X, y).predict_proba(X) for s in (0, None, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_the_machine_itself_is_the_one_without(tmp_path) -> None:
    X, y = BLOBS
    plain, model = SVC().fit(X, y), SVC(probability=True).fit(X, y)
    np.testing.assert_array_equal(plain.decision_function(X), model.decision_function(X))
    assert plain.objective_ == model.objective_ and len(plain.trace_) == len(model.trace_)
    assert not hasattr(plain, "predict_proba")
    maxmargin.save(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), maxmargin.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))


def test_max_time_is_for_all_fits_together() -> None:
    X, y = BLOBS
    with pytest.warns(ConvergenceWarning, match="probabilities rest on 5 fits"):
        model = SVC(probability=True, max_time=1e-9, working_set_size=2, tol=1e-9).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_bad_values() -> None:
    with pytest.raises(ValueError, match=r"probability='yes' must be True or False"):
        SVC(probability="yes").fit(*BLOBS)
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        SVC(probability=False).predict_proba  # noqa: B018
