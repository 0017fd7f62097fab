"""The model steps of the 1-norm solver: the copy by features, its moving matrix, and its minimum, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix
from maxmargin.linear import LinearProblem
from maxmargin.linear.one_norm import _by_feature
from maxmargin.linear.quadratic_model import QuadraticModel, violations


def rows(n=60, d=9, kind=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    return sp.csr_matrix(rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4), dtype=kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_the_copy_by_features(kind, bias, index):
    X, rng = rows(kind=kind), np.random.default_rng(1)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    sign, curve = rng.choice([-1.0, 1.0], 60), rng.random(60)
    problem = LinearProblem(X, sign, curve, 1.0, loss="squared_hinge", bias=bias, penalised=True)
    Z, squares = _by_feature(problem, curve)
    expected = np.hstack([X.toarray(), np.full((60, 1), bias)])[:, : 9 + (bias != 0)].T
    assert Z.dtype == kind
    np.testing.assert_array_equal(Z.toarray(), expected * sign)
    assert Z.has_sorted_indices
    np.testing.assert_allclose(squares, np.square(expected, dtype=float) @ curve)


def test_shapes_of_the_core_are_checked():
    X, ones = rows(), np.ones(60)
    out = np.empty(X.nnz), np.empty(X.nnz, np.int32), np.empty(10, np.int32), np.empty(9)
    with pytest.raises(ValueError, match="linear_by_feature"):
        _core.linear_by_feature(as_matrix(X), ones[:59], ones, 0.0, *out)
    with pytest.raises(ValueError, match="linear_by_feature"):
        _core.linear_by_feature(as_matrix(X.toarray()), ones, ones, 0.0, *out)
    with pytest.raises(ValueError, match="linear_sum_rows"):
        _core.linear_sum_rows(as_matrix(X), ones[:59], np.zeros(9), 1)
    every, place = np.arange(60), np.full(9, -1, np.int32)
    with pytest.raises(ValueError, match="linear_chosen_gram: shapes"):
        _core.linear_chosen_gram(as_matrix(X), every, ones, 0.0, place[:8], np.zeros((2, 2)), 1)
    place[4] = 2
    with pytest.raises(ValueError, match="linear_chosen_gram: a feature's place"):
        _core.linear_chosen_gram(as_matrix(X), every, ones, 0.0, place, np.zeros((2, 2)), 1)
    with pytest.raises(ValueError, match="one_norm_sweeps"):
        _core.one_norm_sweeps(np.eye(3), np.ones(3), np.zeros(3), np.zeros(2), 0.0, 1)
    with pytest.raises(ValueError, match="linear_mirror"):
        _core.linear_mirror(np.zeros((3, 4)))


@pytest.mark.parametrize("size", [1, 31, 32, 33, 70])
def test_the_mirrored_matrix(size):
    H = np.random.default_rng(size).random((size, size))
    expected = np.triu(H) + np.triu(H, 1).T
    _core.linear_mirror(H)
    np.testing.assert_array_equal(H, expected)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_minimum_of_the_model_as_samples_come_and_leave(dense, few, bias):
    X, rng = rows(), np.random.default_rng(2)
    sign, weight = rng.choice([-1.0, 1.0], 60), rng.random(60) + 0.5
    problem = LinearProblem(X.toarray() if dense else X, sign, weight, 1.0, loss="squared_hinge", bias=bias, penalised=True)
    full = np.hstack([X.toarray(), np.full((60, 1), bias)])[:, : problem.size]
    by_feature = np.ascontiguousarray((full * sign[:, None]).T)
    model = QuadraticModel(problem, as_matrix(by_feature if dense else sp.csr_matrix(by_feature)), weight)
    chosen = np.zeros(problem.size, bool)
    chosen[[0, 3, problem.size - 1] if few else slice(None)] = True
    model.choose(chosen)
    assert model.covers(chosen) and (not few or not model.covers(~chosen))
    penalty, some = np.full(len(model.features), 0.5), full[:, model.features]
    for near in (rng.random(60) < 0.5, rng.random(60) < 0.9, rng.random(60) < 0.2, np.ones(60, bool)):
        w, grad = rng.standard_normal(len(model.features)), 5 * rng.standard_normal(len(model.features))
        at = model.minimum(near, w, grad, penalty, 0.0, 20)
        H = (some[near].T * weight[near]) @ some[near]
        left, first = violations(at, grad + H @ (at - w), penalty), violations(w, grad, penalty)
        assert left.max() <= 0.0101 * first.max()
    step = rng.standard_normal(len(model.features))
    np.testing.assert_allclose(model.outputs(step), sign * (some @ step), atol=1e-12)
