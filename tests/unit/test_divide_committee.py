"""Prediction from a level against its formulas, written anew from public attributes: early (6), all (5), committee."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from maxmargin import DCSVC, DCSVR
from maxmargin.divide.early import fit_slope
from maxmargin.problem.kernels import Kernel

RBF = Kernel("rbf", 0.7)


def points(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + 4 * rng.integers(0, 3, size=(n, 1))
    return X, X[:, 1] - X[:, 0] + 0.5 * rng.normal(size=n)


def machines(model, X):
    """(f_c(x) of every cluster's machine, rows × clusters; the cluster of each row), from public attributes."""
    gram = RBF(X, model.support_vectors_)
    clusters = range(len(model.cluster_intercept_))
    parts = [gram[:, model.support_cluster_ == c] @ model.dual_coef_[0, model.support_cluster_ == c] for c in clusters]
    return np.array(parts).T + model._committee.intercept[:, 0], model._committee.router.cluster(X, 1)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("positive", [0.2, 0.5, 0.9])
def test_the_committee_of_classifiers(positive, intercept):
    """logit p(x) = Σ_c logit p_c(x) − (clusters − 1) logit(prior), logit p_c = slope_c f_c + logit(prior)."""
    X, score = points()
    y, weight = np.where(score > np.quantile(score, 1 - positive), 1, -1), np.where(np.arange(400) % 3, 1.0, 2.0)
    same = {"C": 2.0, "gamma": 0.7, "k": 4, "levels": 1, "stop_level": 1, "sample_size": 100, "random_state": 0}
    model = DCSVC(**same, predict_with="bcm", fit_intercept=intercept).fit(X, y, sample_weight=weight)
    f, cluster = machines(model, X)
    prior = np.log(weight[y > 0].sum() / weight[y < 0].sum())
    logits = np.zeros(f.shape)
    for c in range(f.shape[1]):
        mine = cluster == c
        alone = not np.isin(model.support_cluster_, c).any()  # no machine: says no more than the prior
        slope = 0.0 if alone else fit_slope(f[mine, c], y[mine].astype(float), 2.0 * weight[mine], prior)
        logits[:, c] = slope * f[:, c] + prior
    expected = logits.sum(axis=1) - (f.shape[1] - 1) * prior
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-4, atol=1e-4)
    if not intercept:  # far from all data no machine says anything
        np.testing.assert_allclose(model.decision_function([[1e3, -1e3]]), prior, atol=1e-9)


def test_the_committee_of_regressors():
    """f(x) = Σ_c t_c f_c(x) / (Σ_c t_c − (clusters − 1)), t_c = v / v_c."""
    X, y = points()
    weight = np.where(np.arange(400) % 3, 1.0, 2.0)
    same = {"C": 2.0, "gamma": 0.7, "k": 4, "levels": 1, "stop_level": 1, "sample_size": 100, "random_state": 0}
    model = DCSVR(**same, predict_with="bcm", fit_intercept=True).fit(X, y, sample_weight=weight)
    f, cluster = machines(model, X)
    variance = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    trust = []
    for c in range(f.shape[1]):
        mine = cluster == c
        residual = np.average((y[mine] - f[mine, c]) ** 2, weights=weight[mine])
        trust.append(1 / np.clip(residual / variance, 1e-12, 1.0))
    expected = f @ trust / (np.sum(trust) - (f.shape[1] - 1))
    assert min(trust) > 1 and max(trust) / min(trust) > 1.2
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rule", ["early", "all"])
def test_early_and_all(rule):
    X, score = points()
    y = np.where(score > 0, 1, -1)
    same = {"C": 2.0, "gamma": 0.7, "k": 4, "levels": 1, "stop_level": 1, "sample_size": 100, "random_state": 0}
    model = DCSVC(**same, predict_with=rule, fit_intercept=True).fit(X, y)
    f, cluster = machines(model, X)
    if rule == "early":
        expected = f[np.arange(400), cluster]
        constant = model._committee.constant[cluster, 0]
        expected = np.where(np.isnan(constant), expected, constant)
    else:
        mean = np.average(model._committee.intercept[:, 0], weights=np.bincount(cluster))
        expected = RBF(X, model.support_vectors_) @ model.dual_coef_[0] + mean
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)


def test_each_pair_of_classes_has_its_own_committee():
    X, y = make_blobs(300, centers=6, cluster_std=1.0, random_state=0)
    y = y % 3
    same = {"C": 2.0, "gamma": 0.5, "k": 3, "levels": 1, "stop_level": 1, "sample_size": 100, "random_state": 0}
    model = DCSVC(**same, predict_with="bcm", decision_function_shape="ovo").fit(X, y)
    count = np.bincount(y)
    far = model.decision_function([[1e3, -1e3]])[0]  # nothing but the priors of (0, 1), (0, 2), (1, 2)
    np.testing.assert_allclose(far, [np.log(count[i] / count[j]) for i, j in ((0, 1), (0, 2), (1, 2))], atol=1e-9)
    committee = model._committee
    label = committee.router.cluster(X, 1)
    for p, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):  # a cluster with none of a pair's points has no say in it
        there = np.bincount(label[(y == i) | (y == j)], minlength=len(committee.trust)) > 0
        assert (committee.trust[~there, p] == 0).all()


def test_slope_recovers_the_model_that_made_the_labels():
    rng = np.random.default_rng(0)
    f = rng.normal(size=20000)
    sign = np.where(rng.random(20000) < 1 / (1 + np.exp(-(2 * f - 0.5))), 1.0, -1.0)
    assert fit_slope(f, sign, np.ones(20000), -0.5) == pytest.approx(2, abs=0.1)
    assert fit_slope(f, -sign, np.ones(20000), 0.0) == 0  # never against the machine
    half = rng.random(20000) < 0.5
    mixed = np.where(half, sign, -sign)  # those that count have the labels right
    assert fit_slope(f, mixed, half + 1e-9, -0.5) == pytest.approx(2, abs=0.15)
    assert 1 < fit_slope(np.abs(f), np.ones(20000), np.ones(20000), -0.5) < 1000  # one class: sure of it, but finite
