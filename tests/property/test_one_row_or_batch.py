"""A prediction is a function of its row alone: not of the other rows of the batch, its size, its order, or the threads."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC, SVC, OneClassSVM

N = 11_000


@cache
def many_islands(offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Groups of samples far apart (γ = 30), in no order, their labels by chance: most become support vectors."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.random((60, 6))
    X = centres[rng.integers(60, size=N)] + 0.1 * rng.standard_normal((N, 6))
    return (X + offset).astype(np.float32), rng.integers(2, size=N)


@cache
def large_machine(offset: float, sparse: bool) -> SVC:
    X, y = many_islands(offset)
    model = SVC(C=1.0, gamma=30.0, tol=0.5).fit(sp.csr_matrix(X) if sparse else X, y)
    assert len(model.support_) > 10_000
    return model


def queries(offset: float, seed: int) -> np.ndarray:
    """Rows near the training samples, and some very far from all of them, which change no other row's value."""
    rng = np.random.default_rng(seed)
    X, _ = many_islands(offset)
    near = X[rng.integers(N, size=120)] + rng.choice([0, 0.01, 0.3], size=(120, 1)) * rng.standard_normal((120, 6))
    far = offset + rng.choice([10, 1e3, 1e6], size=(5, 1)) * rng.standard_normal((5, 6))
    return np.concatenate([near, far]).astype(np.float32)


def assert_every_row_stands_alone(values: Any, rows: Any, seed: int) -> None:
    """`values` of the whole batch, of a permutation, of pieces and of single rows are the same bits."""
    whole = values(rows)
    n = rows.shape[0]
    order = np.random.default_rng(seed).permutation(n)
    np.testing.assert_array_equal(values(rows[order]), whole[order])
    np.testing.assert_array_equal(np.concatenate([values(rows[: n // 3]), values(rows[n // 3 :])]), whole)
    for i in order[:6]:
        np.testing.assert_array_equal(values(rows[i : i + 1]), whole[i : i + 1])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_ten_thousand_support_vectors(offset: float, sparse: bool) -> None:
    model = large_machine(offset, sparse)
    rows = queries(offset, seed=1)
    assert_every_row_stands_alone(model.decision_function, sp.csr_matrix(rows) if sparse else rows, seed=1)
    one, two = (model.set_params(n_jobs=k).decision_function(rows) for k in (1, 2))
    np.testing.assert_array_equal(one, two)


@given(
    kernel=st.sampled_from(["rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed", "callable"]),
    sparse=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    offset=st.sampled_from([0.0, 30.0, 1e4]),
    gamma=st.sampled_from([1e-3, 0.3, 30.0]),
    classes=st.sampled_from([2, 3]),
    seed=st.integers(0, 100),
)
@settings(max_examples=60)
def test_small_machines(
    kernel: str, sparse: bool, dtype: type, offset: float, gamma: float, classes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 5)) * np.where(rng.random((90, 1)) < 0.1, 20.0, 1.0) + offset
    X = X.astype(dtype)
    y = rng.permutation(np.arange(60) % classes)
    options: dict[str, Any] = {"gamma": gamma, "max_iter": 20, "kernel": kernel}
    if kernel == "callable":  # one that is itself a function of the two rows alone
        options["kernel"] = lambda a, b: np.exp(-gamma * np.abs(a[:, None, :] - b[None, :, :]).sum(axis=2))
    if kernel == "precomputed":
        D = np.abs(X[:, None, :].astype(float) - X[None, :60, :]).sum(axis=2)
        train, rows = np.exp(-gamma * D[:60]), np.exp(-gamma * D)
    elif sparse and kernel != "callable":
        train, rows = sp.csr_matrix(X[:60]), sp.csr_matrix(X)
    else:
        train, rows = X[:60], X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # twenty turns may not be enough
        model = SVC(decision_function_shape="ovo", working_set_size=20, **options).fit(train, y)
    assert_every_row_stands_alone(model.decision_function, rows, seed)


def test_several_precisions_of_the_rows() -> None:
    """Rows of another dtype or storage are converted one by one, too."""
    X, _ = many_islands(0.0)
    model = OneClassSVM(gamma=3.0, nu=0.1).fit(X[:1500].astype(np.float64))
    rows = queries(0.0, seed=3)
    for form in (rows, rows.astype(np.float64), sp.csr_matrix(rows), sp.csr_matrix(rows.astype(np.float64))):
        assert_every_row_stands_alone(model.decision_function, form, seed=3)


@pytest.mark.parametrize("early", [False, True])
def test_divide_and_conquer(early: bool) -> None:
    X, y = many_islands(100.0)
    model = DCSVC(gamma=30.0, C=1.0, stop_level=int(early), levels=1, random_state=0).fit(X[:3000], y[:3000])
    assert_every_row_stands_alone(model.decision_function, queries(100.0, seed=4), seed=4)
