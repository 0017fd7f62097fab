"""Decision values of kernel machines: by classes, through w, prepared once; the plain sums, for one row or for many."""

from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.estimators import _prediction
from maxmargin.problem.kernels import weighted_sums


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(240, 5, centers=6, cluster_std=4.0, random_state=1)
    return X, y


def plain(model, X):
    """Every pair's value from its own definition, in NumPy."""
    kernel, vectors = model._fitted_kernel, np.asarray(model.support_vectors_)
    values = kernel(X, vectors)
    coef, ends = np.asarray(model.dual_coef_), np.r_[0, np.cumsum(model.n_support_)]
    pairs = []
    for k, (i, j) in enumerate(combinations(range(len(model.classes_)), 2)):
        a, b = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        pairs.append(values[:, a] @ coef[j - 1, a] + values[:, b] @ coef[i, b] + model.intercept_[k])
    return np.array(pairs).T


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_pairs_are_the_plain_sums(data, kernel, make) -> None:
    X, y = data
    options = {"nu": 0.1} if make is NuSVC else {}
    model = make(kernel=kernel, decision_function_shape="ovo", gamma=0.02, coef0=0.1, **options).fit(X, y)
    values, expected = model.decision_function(X), plain(model, X)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert (_prediction.prepared(model)._weights is not None) == (kernel == "linear")
    rows = np.vstack([model.decision_function(X[i : i + 1]) for i in range(40)])
    np.testing.assert_array_equal(rows, values[:40])


def test_votes_of_a_row_do_not_depend_on_the_rows_beside_it(data) -> None:
    X, y = data
    model = SVC().fit(X, y)
    rows = np.vstack([model.decision_function(X[i : i + 1]) for i in range(60)])
    np.testing.assert_array_equal(rows, model.decision_function(X)[:60])


def test_w_is_used_only_where_it_is_less_work(data, monkeypatch) -> None:
    X, y = data
    wide = sp.random(60, 5000, density=0.01, format="csr", random_state=0)
    labels = np.arange(60) % 20  # 190 pairs of 60 support vectors at the most
    model = SVC(kernel="linear", decision_function_shape="ovo").fit(wide, labels)
    assert _prediction.prepared(model)._weights is None
    by_values = model.decision_function(wide)
    dense = model.coef_.toarray() @ wide.toarray().T
    np.testing.assert_allclose(by_values, dense.T + model.intercept_, atol=1e-9)
    narrow = SVC(kernel="linear").fit(X, y)
    through_w = narrow.decision_function(X)
    monkeypatch.setattr(_prediction, "MOST_WEIGHTS", 0)
    np.testing.assert_allclose(copy.deepcopy(narrow).decision_function(X), through_w, atol=1e-9)


def test_memory_is_bounded_by_pieces(data, monkeypatch) -> None:
    X, y = data
    model = SVC().fit(X, y)
    whole, labels = model.decision_function(X), model.predict(X)
    monkeypatch.setattr(_prediction, "AT_A_TIME", 7 * 36)
    np.testing.assert_array_equal(model.decision_function(X), whole)
    np.testing.assert_array_equal(model.predict(X), labels)


@pytest.mark.parametrize("make", [SVR, OneClassSVM])
def test_one_output_through_w(data, make) -> None:
    X, _ = data
    model = make(kernel="linear").fit(X, X[:, 0]) if make is SVR else make(kernel="linear").fit(X)
    expected = X @ np.ravel(model.coef_) + (model.intercept_ if make is SVR else 0.0)
    got = model.predict(X) if make is SVR else model.score_samples(X)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


def test_what_is_prepared_follows_the_model(data) -> None:
    X, y = data
    model = SVC().fit(X, y)
    first = model.decision_function(X)
    model.set_params(C=100.0).fit(X, y)
    assert (model.decision_function(X) != first).any()
    model.dual_coef_ = 2 * model.dual_coef_
    model.intercept_ = 2 * model.intercept_
    doubled = model.set_params(decision_function_shape="ovo").decision_function(X)
    np.testing.assert_allclose(doubled, plain(model, X), rtol=1e-6, atol=1e-6)


def test_what_is_prepared_is_neither_kept_nor_pickled(data) -> None:
    X, y = data
    model = SVC().fit(X, y)
    before = len(pickle.dumps(model))
    model.predict(X)
    assert len(pickle.dumps(model)) == before
    known = len(_prediction._PREPARED)
    del model
    gc.collect()
    assert len(_prediction._PREPARED) < known


def test_a_precomputed_kernel_and_a_function_go_by_classes_too(data) -> None:
    X, y = data
    linear = SVC(kernel="linear", decision_function_shape="ovo").fit(X, y)
    gram = SVC(kernel="precomputed", decision_function_shape="ovo").fit(X @ X.T, y)
    function = SVC(kernel=lambda a, b: a @ b.T, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(gram.decision_function(X @ X.T), plain(gram_like(gram, X), X), atol=1e-8)
    np.testing.assert_allclose(function.decision_function(X), linear.decision_function(X), atol=0.05)


def gram_like(gram, X):
    """The machine of a Gram matrix of dot products, with its support vectors."""
    model = SVC(kernel="linear").fit(X, gram.classes_[np.arange(len(X)) % len(gram.classes_)])
    for name in ("classes_", "n_support_", "intercept_"):
        setattr(model, name, getattr(gram, name))
    model.__dict__["dual_coef_"] = gram.dual_coef_
    model.support_, model.support_vectors_ = gram.support_, X[gram.support_]
    return model


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (5, 7), (3000, 1500), (2, 1 << 21)], ids=str)
def test_sums_over_a_block_take_little_memory_and_are_those_of_each_row(shape) -> None:
    rng = np.random.default_rng(0)
    block, coef = rng.random(shape, np.float32), rng.normal(size=(2, shape[1]))
    tracemalloc.start()
    found = weighted_sums(block, coef)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= found.nbytes + max(8 << 20, 8 * shape[1]) * 1.1 + 4096  # of a row, if a row is more
    rows = range(0, shape[0], max(1, shape[0] // 5))
    np.testing.assert_array_equal(found[rows], [weighted_sums(block[i : i + 1], coef)[0] for i in rows] or found)
    np.testing.assert_allclose(found, block.astype(float) @ coef.T, rtol=1e-9, atol=1e-9)
