"""A few rows are looked at by the short way: it finds what scikit-learn's validation finds, in every case."""

from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_moons

from maxmargin import DCSVC, SVC, SVR, BudgetSVC, LinearSVC, OneClassSVM, _core
from maxmargin.data.matrix import as_matrix
from maxmargin.estimators import _base, _prediction

MACHINES = [SVC(), LinearSVC(), OneClassSVM(nu=0.3), SVR(), BudgetSVC(budget=10), DCSVC(levels=1, k=2)]
X, Y = make_moons(60, noise=0.2, random_state=0)
INPUTS = {
    "a row": X[:1], "float32": X[:3].astype(np.float32), "columns first": np.asfortranarray(X[:5]), "every second": X[:9:2],
    "a list": X[:2].tolist(), "whole numbers": np.array([[1, 2]]), "float16": X[:2].astype(np.float16), "1-d": X[0],
    "three dimensions": X[None, :2], "no rows": X[:0], "three features": np.ones((2, 3)), "one feature": np.ones((2, 1)),
    "NaN": np.array([[0.0, np.nan]]), "infinite": np.array([[np.inf, 0.0]]), "text": np.array([["a", "b"]]),
    "other byte order": X[:2].astype(">f8"), "sparse": sp.csr_matrix(X[:4]), "a frame": pd.DataFrame(X[:2]),
    "objects": X[:2].astype(object), "a matrix of its own": np.ma.masked_array(X[:2]), "read only": X[:2].copy(),
}  # fmt: skip
INPUTS["read only"].flags.writeable = False


def outcome(model, rows):
    """What predict gives or says."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            return "answer", np.asarray(model.predict(rows)).tolist(), [str(w.message) for w in seen]
        except (ValueError, TypeError) as error:
            return "error", type(error), str(error)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("model", MACHINES, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("names", [False, True], ids=["plain", "names"])
def test_the_short_way_and_the_long_way_agree(model, name, names, monkeypatch) -> None:
    model.fit(pd.DataFrame(X, columns=["a", "b"]) if names else X, Y)
    short = outcome(model, INPUTS[name])
    monkeypatch.setattr(_base, "FEW_VALUES", 0)
    assert outcome(model, INPUTS[name]) == short


def test_the_short_way_is_taken() -> None:
    model = SVC().fit(X, Y)
    assert model._as_it_is(X[:1]) and not model._as_it_is(np.resize(X, (_base.FEW_VALUES, 2)))
    with pytest.raises(Exception, match="not fitted"):
        SVC().predict(X[:1])


def test_a_fit_to_small_arrays_is_that_by_the_long_way(monkeypatch) -> None:
    """Whatever X and y are: the same model, or the same error."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 3
    kinds = [
        (X, y), (X.astype(np.float32), y.astype(float)), (X[:, ::-1], y), (X, y.tolist()), (X.tolist(), y), (X, y[:, None]),
        (X, y[:-1]), (np.where(X > 2, np.nan, X), y), (X, np.where(y == 1, np.nan, y)), (X[:0], y[:0]), (X[0], y),
        (X.astype(int), y), (X, y.astype(str)), (X, y > 0), (X, y.astype(np.uint8)), (X, y + 0.5), (X, y.astype(complex)),
    ]  # fmt: skip
    for machine in (SVC(), SVR(), LinearSVC()):
        for Z, t in kinds:
            outcomes = []
            for few in (10_000, 0):
                monkeypatch.setattr("maxmargin.estimators._base.FEW_VALUES", few)
                model = clone(machine)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model.fit(Z, t)
                    outcomes.append((model.n_features_in_, np.asarray(model.predict(X)).tolist()))
                except Exception as error:
                    outcomes.append((type(error), str(error)))
            assert outcomes[0] == outcomes[1]


def test_a_fit_to_an_array_forgets_the_names_of_a_table() -> None:
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    model = SVC().fit(pd.DataFrame(X, columns=list("abc")), y)
    assert list(model.feature_names_in_) == list("abc")
    assert not hasattr(model.fit(X[:, :2].copy(), y), "feature_names_in_") and model.n_features_in_ == 2


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "laplacian", "linear", "precomputed"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("make", [SVC, SVR, OneClassSVM])
def test_the_shortest_way_has_the_same_bits(make, kind, kernel, monkeypatch) -> None:
    rows = X.astype(kind)
    given = rows @ rows.T if kernel == "precomputed" else rows
    model = make(kernel=kernel, gamma=0.7).fit(given, Y)
    decide = getattr(model, "decision_function", model.predict)
    short = [decide(given[:k]) for k in (1, 2, 16)] + [np.concatenate([decide(given[i : i + 1]) for i in range(20)])]
    monkeypatch.setattr(_prediction, "FEW", 0)
    long = [decide(given[:k]) for k in (1, 2, 16)] + [decide(given)[:20]]
    for a, b in zip(short, long):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "laplacian", "linear"])
@pytest.mark.parametrize("k", [1, 16, 17, 60])
def test_without_support_vectors_the_constant_is_what_is_said(kernel, k) -> None:
    """Of few rows and of many; a tube that holds all targets needs none."""
    model = SVR(kernel=kernel, epsilon=2.0).fit(X, Y * 1.0)
    assert len(model.support_) == 0
    np.testing.assert_array_equal(model.predict(X[:k]), np.full(k, model.intercept_[0]))


def test_the_shortest_way_sees_what_was_changed() -> None:
    model = SVC(gamma=0.7).fit(X, Y)
    before = model.decision_function(X[:1])
    model.dual_coef_[0, 0] += 1.0
    assert model.decision_function(X[:1]) != before
    model.n_support_[0] += 1
    with pytest.raises(ValueError, match="was altered"):
        model.predict(X[:1])


def test_rows_too_large_for_float32_are_looked_at_closer() -> None:
    far = np.full((1, 2), 1e30, np.float32)
    model = SVR(kernel="poly", degree=1, gamma=1e10, tol=0.1).fit(X.astype(np.float32), Y * 1.0)
    assert np.isfinite(model.predict(far)).all()


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("n", [300, 1500], ids=["float64", "float32"])
def test_the_shortest_way_of_many_features_and_classes(kernel, classes, n, monkeypatch) -> None:
    """More support vectors than a group of the core's; rows far away, equal to support vectors, and of another type."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 9)) + np.where(np.arange(n) % 50 == 0, 30.0, 0.0)[:, None]
    model = SVC(kernel=kernel, gamma=0.2, coef0=0.1, tol=0.3, decision_function_shape="ovo")
    model.fit(rows, np.arange(n) % classes)
    expansion = _prediction.prepared(model)
    assert expansion._at_hand is not None and len(model.support_) > 100
    asked = [rows[:16], rows[48:52], rows[:5].astype(np.float32), 1e4 * rows[:3], rows[:1] + 1e-9]
    short = [model.decision_function(some) for some in asked]
    assert all(expansion.few(some, model.intercept_) is not None for some in asked[:4])
    monkeypatch.setattr(_prediction, "FEW", 0)
    for a, some in zip(short, asked):
        np.testing.assert_array_equal(a, model.decision_function(some))


def test_callers_side_by_side_of_a_machine_that_nobody_has_asked_before() -> None:
    """What is prepared at the first question is prepared whole for all who ask at once."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 6))
    model = SVC(gamma=0.5).fit(rows, np.arange(400) % 3)
    expected = model.decision_function(rows)
    for machine in (clone(model).fit(rows, np.arange(400) % 3), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        with ThreadPoolExecutor(8) as pool:
            got = list(pool.map(machine.decision_function, [rows[i : i + 1] for i in range(400)]))
        np.testing.assert_array_equal(np.vstack(got), expected)


def test_what_the_core_packs_must_fit() -> None:
    points = _core.Points64(as_matrix(X), "rbf", 1.0, 0.0, 3, np.arange(60), 1)
    for coef, end in ((np.ones((1, 59)), [0, 59]), (np.ones((1, 60)), [0, 61]), (np.ones((1, 60)), [0, 30, 40, 60])):
        with pytest.raises(ValueError, match="RowSums"):
            _core.RowSums64(points, coef, np.array(end))
    sums = _core.RowSums64(points, np.ones((1, 60)), np.array([0, 60]))
    for rows, size in ((X[:2], 2), (np.ones((1, 3)), 1)):
        with pytest.raises(ValueError, match="shapes"):
            sums.decide(as_matrix(rows), np.zeros(1), np.zeros((size + 1, 1)))
