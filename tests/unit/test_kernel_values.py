"""Kernel values in float64 are as accurate as documented, wherever the samples are; some samples have those of all."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data.matrix import as_matrix
from maxmargin.kernel_values.data import KernelData
from maxmargin.kernel_values.given import GivenValues
from maxmargin.kernel_values.native import NativeValues, Samples
from maxmargin.kernel_values.source import pieces
from maxmargin.problem.kernels import Kernel

ACCURACY = 4e-13  # kernel_values/native.py, _ENTRY_ERROR
N = 40


def samples_at(place: float, layout: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    where = {"one place": np.ones(N), "two places": np.repeat([1.0, -1.0], N // 2), "a line": np.linspace(-1, 1, N)}[layout]
    return X + place * where[:, None]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("layout", ["one place", "two places", "a line"])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_values_from_differences_are_accurate_far_out(name, layout, form) -> None:
    for place in [0.0, 1e2, 1e3, 1e4, 1e6, 1e8, -1e9, 1e10, 1e12, 1e15, 1e80, 1e160]:
        X = samples_at(place, layout)
        difference = np.abs(X[:, None] - X[None]).astype(np.longdouble)
        with np.errstate(over="ignore"):
            wanted = np.exp(-0.7 * (difference if name == "laplacian" else difference**2).sum(axis=2)).astype(float)
        rows = NativeValues(Samples(form(X), Kernel(name, gamma=0.7), np.arange(N), np.float64, 1), np.arange(N))
        each = np.array([rows.sum(np.arange(N), np.array([i]), np.ones(1)) for i in range(N)])
        zeros = np.zeros((1, N))
        part = rows.part(zeros, zeros, zeros + 1, zeros, np.zeros((1, N), np.int8), np.zeros(N), 1 << 20)
        tile, at = rows.tile(part, np.arange(N))
        for values in (each, tile[np.ix_(at, at)]):
            assert np.abs(values - wanted).max() <= ACCURACY, place
        assert rows.noise * rows.magnitude**2 >= np.abs(each - wanted).max()  # what a fit takes them to be off by


@pytest.mark.parametrize("n", [1, 1023, 1024, 1025, 2050])
def test_the_magnitude_of_a_given_matrix_is_that_of_its_rows(n) -> None:
    """However many there are, and whichever are chosen; it bounds them: |K(i, j)| ≤ m_i m_j."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n + 3, n + 3)).astype(np.float32)
    X += X.T
    chosen = rng.permutation(n + 3)[:n]
    found, K = GivenValues(X, Kernel("precomputed"), chosen, np.float32, 1).magnitude, np.abs(X[np.ix_(chosen, chosen)])
    np.testing.assert_array_equal(found, np.sqrt(K.max(axis=1)))
    assert (np.outer(found, found) * (1 + 1e-6) >= K).all()


@pytest.mark.parametrize("name", ["precomputed", "function"])
def test_sums_and_tiles_of_given_values_are_those_of_numpy(name) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, N))
    X += X.T
    kernel = Kernel("precomputed") if name == "precomputed" else Kernel("callable", function=lambda a, b: a @ b.T)
    chosen = rng.permutation(N)[:30]
    K = X[np.ix_(chosen, chosen)] if name == "precomputed" else X[chosen] @ X[chosen].T
    values = GivenValues(X, kernel, chosen, np.float64, 1)
    some, others, coef = np.array([3, 0, 17]), np.array([1, 3, 20, 29]), rng.normal(size=4)
    np.testing.assert_allclose(values.sum(some, others, coef), K[np.ix_(some, others)] @ coef, rtol=1e-12)
    tile, at = values.tile(None, others)
    np.testing.assert_allclose(tile[np.ix_(at, at)], K[np.ix_(others, others)], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "precomputed", "callable"])
def test_some_samples_on_their_own_keep_the_bits_of_their_values(name, form, dtype) -> None:
    """Some of some: by any kernel, in any order, near 0 or far from it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, N)) + 1e3 * (name == "rbf")
    X = form((X + X.T).astype(dtype)) if name != "precomputed" else (X + X.T).astype(dtype)
    kernel = Kernel(name, gamma=0.01, function=(lambda a, b: (a @ b.T) if form is np.asarray else (a @ b.T).toarray()))
    whole = KernelData(X, kernel, rng.permutation(N)[:30], dtype, 1)
    for ids in (np.arange(30), rng.permutation(30)[:17], np.array([29])):
        alone, every = whole.restricted(ids), np.arange(len(ids))
        assert alone.X.shape[0] == len(ids) and len(alone.rows) == len(ids)
        for other in every:
            found = alone.source().sum(every, np.array([other]), np.ones(1))
            np.testing.assert_array_equal(found, whole.source().sum(ids, ids[[other]], np.ones(1)))


@pytest.mark.parametrize("m", [0, 1, 10**5, 10**8, 10**8 + 1, 10**12])
@pytest.mark.parametrize("n", [0, 1, 1023, 5000])
def test_pieces_are_all_rows_in_turn(n, m) -> None:
    """However many there are to be summed over; no piece is empty."""
    found = list(pieces(n, m))
    assert [i for piece in found for i in range(n)[piece]] == list(range(n))
    assert all(len(range(n)[piece]) for piece in found)


@pytest.mark.parametrize("other", [lambda X: sp.csr_matrix(X), lambda X: X[:, :5]], ids=["form", "features"])
def test_samples_of_another_form_or_width_are_refused_and_not_read(other) -> None:
    """The core would read past their memory."""
    X = samples_at(0.0, "a line")
    points = Samples(X, Kernel("rbf", gamma=0.7), np.arange(N), np.float64, 1).points
    points.like(as_matrix(X), 1)
    with pytest.raises(ValueError, match="in one form"):
        points.like(as_matrix(other(X)), 1)
