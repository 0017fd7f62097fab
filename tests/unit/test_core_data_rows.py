"""What the core does with rows as values: their nonzeros, hashes, equality, and shares of their copies. Against NumPy."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

REALS = [np.float32, np.float64]
WHOLE = 1 << 64
# Of 64 columns a slice has 2048 rows at the most, and slices are of about equal size.
SIZES = [0, 1, 15, 16, 17, 2047, 2048, 2049, 5000]


def sparse_rows(n: int, d: int, dtype: Any, seed: int) -> NDArray[Any]:
    """Few different values, zeros of both signs among them, so that rows repeat; a NaN and an infinity."""
    rng = np.random.default_rng(seed)
    x = rng.choice([0.0, -0.0, 1.5, -2.0, 0.1], (n, d), p=[0.4, 0.2, 0.2, 0.1, 0.1]).astype(dtype)
    if x.size:
        x[n // 2, 0], x[-1, -1] = np.nan, np.inf
    return x


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("n", SIZES)
def test_nonzeros_are_counted_and_written_where_they_belong(n: int, dtype: Any, kind: Any) -> None:
    """Of the chosen rows in any order, rows apart from each other; what belongs to other rows is not touched."""
    wide = sparse_rows(max(n, 1), 70, dtype, n)
    x = wide[:, 3:67]
    chosen = np.random.default_rng(n).permutation(len(x))[: n - n // 3]
    count = np.count_nonzero(x, axis=1)
    indptr = np.concatenate([[0], np.cumsum(count)]).astype(kind)
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(_core.nonzeros(_core.Matrix.dense(x), chosen, threads), count[chosen])
        indices, data = np.full(indptr[-1], -1, kind), np.full(indptr[-1], 7, dtype)
        _core.entries(_core.Matrix.dense(x), chosen, indptr, indices, data, threads)
        wanted = [np.full_like(indices, -1), np.full_like(data, 7)]
        for i in chosen:
            wanted[0][indptr[i] : indptr[i + 1]] = np.flatnonzero(x[i])
            wanted[1][indptr[i] : indptr[i + 1]] = x[i][x[i] != 0]
        np.testing.assert_array_equal(indices, wanted[0])
        np.testing.assert_array_equal(data, wanted[1])


def mixed(h: int, word: int) -> int:
    """64 bits by another word: multiplied by the golden ratio's, then folded."""
    h = (h ^ word) * 0x9E3779B97F4A7C15 % WHOLE
    return h ^ (h >> 29)


def bits(value: float) -> int:
    """Of a double; zero has one sign."""
    return int(struct.unpack("<Q", struct.pack("<d", value or 0.0))[0])


def hashed(row: list[float], label: float, stored: bool) -> int:
    """By values, or by place and value of those that are not zero; then by label."""
    h = 0x243F6A8885A308D3
    for place, value in enumerate(row):
        if stored and value:
            h = mixed(h, place)
        if not stored or value:
            h = mixed(h, bits(value))
    return mixed(h, bits(label))


def forms(x: NDArray[Any]) -> list[tuple[Any, bool]]:
    """One matrix in every form that the core reads, some with stored zeros; and whether they are stored entries."""
    out: list[tuple[Any, bool]] = [(x, False), (np.hstack([x, x])[:, : x.shape[1]], False)]
    for kind in (np.int32, np.int64):
        full = sp.csr_matrix(np.ones(x.shape))
        full.data = x.ravel().copy()
        for held in (sp.csr_matrix(x), full):
            held.indices, held.indptr = held.indices.astype(kind), held.indptr.astype(kind)
            out.append((held, True))
    return out


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("n", [0, 1, 17, 300])
def test_hashes_are_what_checkpoints_of_earlier_versions_hold(n: int, dtype: Any) -> None:
    """The same function of values, places and labels in any form and precision, and for any number of threads."""
    x = np.where(np.isnan(x := sparse_rows(n, 5, dtype, n)), dtype(3), x)
    label = np.random.default_rng(n).choice([0.0, -0.0, 1.0, -1.5], n)
    for held, stored in forms(x):
        wanted = np.array([hashed(row, y, stored) for row, y in zip(x.tolist(), label.tolist())], np.uint64)
        for threads in (1, 2, 3):
            np.testing.assert_array_equal(_core.row_hashes(as_matrix(held), label, threads), wanted)


@pytest.mark.parametrize("n", [8191, 8192, 8193, 20_000])
def test_every_row_of_every_slice_has_its_hash(n: int) -> None:
    """As alone, whatever the threads: for dense rows and stored entries."""
    x = np.random.default_rng(n).normal(size=(n, 7))
    label, some = np.arange(n, dtype=float), np.array([0, n // 3, n // 2, n - 2, n - 1])
    for form in (np.asarray, sp.csr_matrix):
        found = [_core.row_hashes(as_matrix(form(x)), label, threads) for threads in (1, 2, 3)]
        assert len(set(found[0].tolist())) == n
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])
        np.testing.assert_array_equal(found[0][some], _core.row_hashes(as_matrix(form(x[some])), label[some], 1))


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("dtype", REALS)
def test_rows_are_equal_as_numpy_compares_them(dtype: Any, d: int) -> None:
    """Zeros of both signs are one value, stored or not; a NaN equals nothing; one row may be the start of another."""
    x = sparse_rows(60, d, dtype, d)
    x[7], x[8] = 0, -0.0
    x[9], x[10] = [1.5] + [0] * (d - 1), [1.5] * d
    first, second = (a.ravel() for a in np.indices((60, 60)))
    wanted = (x[first] == x[second]).all(axis=1)
    assert wanted.any() and not wanted.all()
    for held, _ in forms(x):
        np.testing.assert_array_equal(_core.rows_equal(as_matrix(held), first, second), wanted)


def shares(alpha: float, unit: float, total: float, weights: list[float]) -> list[float]:
    """The first copies up to their bound; all of them if the sample is at its own."""
    if len(weights) == 1:
        return [alpha]
    if alpha >= unit * total:
        return [unit * w for w in weights]
    out = []
    for w in weights:
        out.append(min(alpha, unit * w))
        alpha = max(0.0, alpha - unit * w)
    return out


@pytest.mark.parametrize("samples", [0, 1, 2, 15, 40])
def test_alpha_is_shared_out_to_the_first_copies(samples: int) -> None:
    """Several rows of alphas at once; a sample at its bound fills all copies, also where a weight is lost in the sum."""
    rng = np.random.default_rng(samples)
    copies = [rng.choice([1.0, 0.25, 3.0, 1e-20], rng.integers(1, 5)).tolist() for _ in range(samples)]
    total = np.array([sum(w) for w in copies])
    owner = np.repeat(np.arange(samples), [len(w) for w in copies])
    members = rng.permutation(len(owner) + 7)[: len(owner)]
    unit = rng.uniform(0.5, 2, (3, samples))
    alpha = unit * total * rng.choice([0.0, 0.2, 0.7, 1.0], (3, samples))
    out = np.full((3, len(owner) + 7), -1.0)
    weight = np.array([w for several in copies for w in several])
    _core.spread(alpha, unit, out, total, members, owner, weight)
    wanted = np.full_like(out, -1.0)
    for r in range(3):
        wanted[r, members] = [s for i in range(samples) for s in shares(alpha[r, i], unit[r, i], total[i], copies[i])]
    np.testing.assert_array_equal(out, wanted)


def test_the_worked_example_of_shares() -> None:
    out, weight = np.zeros((1, 3)), np.array([1.0, 2.0, 4.0])
    _core.spread(np.array([[2.5]]), np.ones((1, 1)), out, np.array([7.0]), np.arange(3), np.zeros(3, np.int64), weight)
    assert out.tolist() == [[1.0, 1.5, 0.0]]
