"""Dense samples that are mostly zeros: held by their entries where it pays and fits, with the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import DCSVC, SVC, SVR, certify_fit
from maxmargin.data.matrix import entries, mostly_zero
from maxmargin.kernel_values import NativeValues, Samples
from maxmargin.problem.kernels import NATIVE, Kernel

MB = 1 << 20


def zeros_and_values(n: int, d: int, density: float = 0.2, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, d)) < density, rng.random((n, d)), 0).astype(dtype)


def two_classes(n: int = 1500, d: int = 200, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes; more than 1000 rows, so that the kernel is computed in float32."""
    X = zeros_and_values(n, d, seed=seed)
    score = X @ np.random.default_rng(seed).normal(size=d)
    return X, np.where(score > np.median(score), 1, -1)


def values(samples: Samples, other: Samples, rows: np.ndarray, other_rows: np.ndarray, threads: int = 1) -> np.ndarray:
    out = np.empty((len(other_rows), len(rows)), samples.dtype)
    samples.points.block(rows, other.points, other_rows, out, threads)
    return out


# ---- the entries themselves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_are_the_nonzeros_of_the_chosen_rows(dtype: Any) -> None:
    wide = zeros_and_values(40, 30, dtype=dtype)
    wide[3, 5] = -0.0
    X = wide[:, :23]  # rows apart from each other
    X[7], X[8] = 0, 1
    kept = np.array([0, 7, 8, 3, 21, 39])
    found = entries(X, kept, np.inf, 2)
    assert found is not None
    assert found.nnz == np.count_nonzero(X[kept])
    assert found.dtype == dtype
    expected = np.zeros((40, 23), dtype)
    expected[kept] = X[kept]
    np.testing.assert_array_equal(found.toarray(), expected)


def test_entries_beyond_the_room_are_not_made() -> None:
    X = zeros_and_values(300, 100)
    found = entries(X, np.arange(300), np.inf, 1)
    assert found is not None
    size = found.data.nbytes + found.indices.nbytes + found.indptr.nbytes
    assert entries(X, np.arange(300), size - 1, 1) is None
    assert entries(X, np.arange(300), size, 1) is not None


def test_what_counts_as_mostly_zero() -> None:
    rows = np.arange(400)
    assert mostly_zero(zeros_and_values(400, 100), rows, 1)
    assert not mostly_zero(zeros_and_values(400, 100, density=0.6), rows, 1)
    assert not mostly_zero(zeros_and_values(400, 20), rows, 1)  # few features
    assert not mostly_zero(zeros_and_values(400, 100), rows[:100], 1)  # few rows
    assert not mostly_zero(sp.csr_matrix(zeros_and_values(400, 100)), rows, 1)
    half = np.vstack([zeros_and_values(400, 100), np.ones((400, 100), np.float32)])
    assert mostly_zero(half, rows, 1)  # rows that do not count do not decide


# ---- kernel values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize(("dtype", "precision"), [(np.float32, np.float32), (np.float64, np.float32), (np.float64,) * 2])
@pytest.mark.parametrize("d", [70, 700])  # one piece, and several
def test_values_are_the_kernel_s(name: str, dtype: Any, precision: Any, d: int) -> None:
    X = zeros_and_values(300, d, dtype=dtype)
    X[1], X[2] = X[0], X[0] * dtype(1.0001)
    kernel = Kernel(name, 2.0 / d, 0.5, 2)
    rows = np.arange(300)
    dense, held = (Samples(X, kernel, rows, precision, 2, room) for room in (0, np.inf))
    assert not dense.held_bytes
    assert (held.held_bytes > 0) == (name != "laplacian")  # whose values near 1 are exact only from dense rows
    expected = kernel(X, X)
    tolerance = 2e-5 if precision == np.float32 else 1e-12
    for samples in (dense, held):
        np.testing.assert_allclose(values(samples, samples, rows, rows), expected, rtol=tolerance, atol=tolerance)
    if name in ("rbf", "laplacian"):
        assert values(held, held, rows, rows)[0, 1] == 1


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize(("d", "density"), [(100, 0.1), (700, 0.02), (700, 0.3), (3000, 0.1)])
def test_equal_pairs_have_equal_bits_in_any_block(name: str, d: int, density: float) -> None:
    """Rows of very unequal length share blocks, so that pieces are taken for some blocks and not for others."""
    X = zeros_and_values(333, d, density)
    X[::7] = 0
    X[5::50] = zeros_and_values(7, d, 0.9)
    S = Samples(sp.csr_matrix(X), Kernel(name, 1.0 / d, 0.1, 3), np.arange(333), np.float32, 2)
    rows = np.arange(333)
    whole = values(S, S, rows, rows, 2)
    np.testing.assert_array_equal(whole, values(S, S, rows, rows, 1))
    order = np.random.default_rng(0).permutation(333)
    np.testing.assert_array_equal(whole[order], values(S, S, rows, order))
    np.testing.assert_array_equal(whole[:, order], values(S, S, order, rows))
    for i in (0, 5, 105, 332):
        np.testing.assert_array_equal(whole[:, i : i + 1], values(S, S, rows[i : i + 1], rows))
        np.testing.assert_array_equal(whole[i : i + 1], values(S, S, rows, rows[i : i + 1]))
    if name != "laplacian":  # whose sums begin with those of one side
        np.testing.assert_array_equal(whole, whole.T)


def test_unsorted_rows_have_the_same_values() -> None:
    X = zeros_and_values(200, 700)
    S = sp.csr_matrix(X)
    back = np.concatenate([np.arange(S.indptr[i + 1] - 1, S.indptr[i] - 1, -1) for i in range(200)])
    U = sp.csr_matrix((S.data[back], S.indices[back], S.indptr), S.shape)
    rows = np.arange(200)
    sides = [Samples(A, Kernel("rbf", 0.01), rows, np.float64, 1) for A in (S, U)]
    np.testing.assert_allclose(*(values(s, s, rows, rows) for s in sides), rtol=1e-13)


def test_sums_add_the_values() -> None:
    X = zeros_and_values(450, 300)
    S = Samples(X, Kernel("rbf", 0.02), np.arange(450), np.float32, 2, np.inf)
    rows, coef = np.arange(450), np.random.default_rng(0).normal(size=(3, 450))
    out = np.ones((3, 450))
    S.points.sum(rows, S.points, rows, coef, out, 2)
    np.testing.assert_allclose(out, 1 + coef @ values(S, S, rows, rows).astype(np.float64), rtol=1e-12, atol=1e-12)


# ---- fits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly"])
def test_fit_is_certified_and_agrees_with_csr(kernel: str, dtype: Any) -> None:
    X, y = two_classes()
    X = X.astype(dtype)
    params = {"kernel": kernel, "C": 5.0, "gamma": 0.02, "coef0": 1.0, "tol": 1e-4}
    dense, sparse = SVC(**params).fit(X, y), SVC(**params).fit(sp.csr_matrix(X), y)
    assert dense.status_ == "converged"
    assert certify_fit(dense, X, y).violation <= 2e-4
    assert dense.objective_ == pytest.approx(sparse.objective_, rel=1e-5)
    assert not sp.issparse(dense.support_vectors_)
    f, g = dense.decision_function(X), sparse.decision_function(X)
    np.testing.assert_allclose(f, g, atol=2e-3)
    np.testing.assert_allclose(f, dense.decision_function(sp.csr_matrix(X)), rtol=1e-10)


def test_entries_count_in_the_cache() -> None:
    X, _ = two_classes(1500, 400)
    rows, kernel = np.arange(1500), Kernel("rbf", 0.01)
    state = [np.zeros((1, 1500)) for _ in range(4)]
    slots = []
    for room in (0.0, np.inf):
        samples = Samples(X, kernel, rows, np.float32, 1, room)
        part = NativeValues(samples, rows).part(*state, np.zeros((1, 1500), np.int8), np.zeros(1500), 3 * MB)
        slots.append(part.cache_slots)
    # dense panels of 2.4 MB do not fit a quarter of the cache, so that without entries all of it holds rows
    assert samples.held_bytes > 0
    assert slots[0] == 3 * MB // (1504 * 4)
    assert slots[1] == (3 * MB - samples.held_bytes) // (1504 * 4)


def test_small_cache_means_no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Samples] = []
    prepare = Samples.__init__

    def watched(self: Samples, *args: Any, **kwargs: Any) -> None:
        prepare(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(Samples, "__init__", watched)
    X, y = two_classes()
    models = [SVC(C=5.0, gamma=0.02, cache_size=size).fit(X, y) for size in (200, 0.5)]
    small, large = made[1].held_bytes, made[0].held_bytes
    assert large > 0.25 * MB and small == 0
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-4)


def test_one_row_is_predicted_as_in_a_batch() -> None:
    X, y = two_classes()
    test = np.vstack([zeros_and_values(50, 200, seed=3), np.random.default_rng(4).random((5, 200))]).astype(np.float32)
    for model in (SVC(C=5.0, gamma=0.02).fit(X, y), SVR(C=1.0, gamma=0.02).fit(X, y)):
        assert mostly_zero(model.support_vectors_, np.arange(len(model.support_)), 1)
        name = "decision_function" if hasattr(model, "decision_function") else "predict"
        batch = getattr(model, name)(test)
        one = np.concatenate([getattr(model, name)(test[i : i + 1]) for i in range(len(test))])
        np.testing.assert_array_equal(batch, one)
        np.testing.assert_array_equal(batch, getattr(model.set_params(n_jobs=1), name)(test))


def test_order_copies_and_rows_of_no_weight_change_no_bit() -> None:
    X, y = two_classes(1100, 100)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(y))
    weight[:2] = 1
    again = np.repeat(np.arange(len(y)), weight)
    rng.shuffle(again)
    a = SVC(C=2.0, gamma=0.05).fit(X, y, sample_weight=weight)
    b = SVC(C=2.0, gamma=0.05).fit(X[again], y[again])
    assert a.objective_ == b.objective_ and a.intercept_[0] == b.intercept_[0]


def test_memory_map_that_cannot_be_written(tmp_path: Path) -> None:
    X, y = two_classes()
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert SVC(C=5.0, gamma=0.02).fit(mapped, y).objective_ == SVC(C=5.0, gamma=0.02).fit(X, y).objective_


@pytest.mark.parametrize("predict_with", ["early", "all", "bcm"])
def test_divided_model_predicts_as_from_csr(predict_with: str) -> None:
    X, y = two_classes(1200, 100)
    model = DCSVC(C=5.0, gamma=0.05, levels=1, early=True, predict_with=predict_with, random_state=0).fit(X, y)
    f = model.decision_function(X)
    np.testing.assert_array_equal(f[:20], np.concatenate([model.decision_function(X[i : i + 1]) for i in range(20)]))
    np.testing.assert_allclose(f, model.decision_function(sp.csr_matrix(X)), rtol=1e-9, atol=1e-9)
