"""Rows as a weighted set, against a dictionary; rows that travel between ranks; and what the core sees of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import _core
from maxmargin.data import matrix
from maxmargin.data.exchange import home_rank, rows_to_all, rows_to_homes
from maxmargin.data.matrix import as_matrix, compacted, far_centre, mostly_zero
from maxmargin.data.rows import distinct_rows, grouped_rows, row_hashes, stacked
from maxmargin.runtime import Threads

FORMS = st.sampled_from([np.asarray, sp.csr_matrix])


@st.composite
def samples(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few different rows and labels, so that pairs repeat, and weights of which some are 0."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, 30))
    X = rng.integers(-1, 2, (n, 2)).astype(draw(st.sampled_from([np.float32, np.float64])))
    return X, rng.integers(0, 2, n).astype(float), rng.choice([0.0, 0.25, 1.0, 3.0], n)


def weights_of(X: np.ndarray, label: np.ndarray, weight: np.ndarray) -> dict[Any, float]:
    """(row, label): its weight, of those that have some."""
    out: dict[Any, float] = {}
    for row, y, w in zip(X.tolist(), label, weight):
        if w > 0:
            out[(*row, y)] = out.get((*row, y), 0.0) + w
    return out


@given(samples(), FORMS, st.integers(1, 2))
def test_the_set_is_a_dictionary_of_weights_whatever_the_order(data: Any, form: Any, threads: int) -> None:
    X, label, weight = data
    rows = distinct_rows(form(X), label, weight, merge=True, threads=threads)
    names = [(*X[i].tolist(), label[i]) for i in rows.index]
    assert dict(zip(names, rows.weight, strict=True)) == weights_of(X, label, weight)
    np.testing.assert_array_equal(np.sort(rows.member), np.flatnonzero(weight > 0))
    np.testing.assert_array_equal(rows.member_weight, weight[rows.member])
    assert (np.diff(rows.owner) >= 0).all() and len(rows.owner) == len(rows.member)  # copies side by side
    assert [(*X[m].tolist(), label[m]) for m in rows.member] == [names[k] for k in rows.owner]
    order = np.random.default_rng(len(X)).permutation(len(X))
    other = distinct_rows(form(X[order]), label[order], weight[order], merge=True, threads=1)
    assert [(*X[i].tolist(), label[i]) for i in order[other.index]] == names
    plain = distinct_rows(form(X), label, weight, merge=False, threads=1)
    np.testing.assert_array_equal(plain.index, np.flatnonzero(weight > 0))
    np.testing.assert_array_equal(plain.owner, np.arange(len(plain.index)))
    np.testing.assert_array_equal(plain.weight, weight[plain.index])


@given(samples())
def test_rows_that_share_a_hash_are_told_apart(data: Any) -> None:
    X, label, weight = data
    same = lambda a, b: (X[a] == X[b]).all(axis=1) & (label[a] == label[b])  # noqa: E731
    rows = grouped_rows(np.zeros(len(X), np.uint64), weight, same)
    found: dict[Any, float] = {}
    for i, w in zip(rows.index, rows.weight, strict=True):  # one pair may be several samples, but none two pairs
        pair = (*X[i].tolist(), label[i])
        found[pair] = found.get(pair, 0.0) + w
    assert found == weights_of(X, label, weight)
    assert same(rows.index[rows.owner], rows.member).all()


@given(samples(), st.integers(0, 2**32 - 1))
def test_the_set_in_another_order_is_the_same_set(data: Any, seed: int) -> None:
    rows = distinct_rows(data[0], data[1], data[2], merge=True, threads=1)
    order = np.random.default_rng(seed).permutation(len(rows.index))
    other = rows.reordered(order)
    np.testing.assert_array_equal(other.index, rows.index[order])
    np.testing.assert_array_equal(other.weight, rows.weight[order])
    for place, sample in enumerate(order):
        for a, b in ((other.member, rows.member), (other.member_weight, rows.member_weight)):
            np.testing.assert_array_equal(a[other.owner == place], b[rows.owner == sample])
    assert (np.diff(other.owner) >= 0).all()


@given(samples(), st.integers(0, 2**32 - 1), st.booleans())
def test_alpha_is_spread_over_the_first_copies_up_to_their_bounds(data: Any, seed: int, several: bool) -> None:
    X, label, weight = data
    rows, rng = distinct_rows(X, label, weight, merge=True, threads=1), np.random.default_rng(seed)
    unit = rng.uniform(0.5, 2, ((3,) if several else ()) + (len(rows.index),))
    share = rng.choice([0.0, 0.3, 0.7, 1.0], unit.shape)
    alpha = share * unit * rows.weight
    out = rows.spread(alpha, len(X), unit)
    assert out.shape == (*alpha.shape[:-1], len(X))
    for a, u, s, spread in zip(*(np.atleast_2d(v) for v in (alpha, unit, share, out))):
        np.testing.assert_allclose(np.bincount(rows.owner, spread[rows.member], len(a)), a, rtol=1e-12, atol=1e-300)
        bound = u[rows.owner] * rows.member_weight
        assert (spread[rows.member] <= bound * (1 + 1e-12)).all() and not spread[weight == 0].any()
        np.testing.assert_allclose(spread[rows.member][s[rows.owner] == 1], bound[s[rows.owner] == 1])
        for k in range(len(a)):  # full ones, at most one that is not, empty ones
            filled = (spread[rows.member] / bound)[rows.owner == k]
            assert (np.diff(filled) <= 1e-9).all() and np.count_nonzero((filled > 1e-9) & (filled < 1 - 1e-9)) <= 1


@given(samples(), FORMS)
def test_equal_pairs_and_only_they_have_equal_hashes(data: Any, form: Any) -> None:
    X, label, _ = data
    hashes = row_hashes(form(X), label, 1)
    assert len(set(hashes.tolist())) == len({(*row, y) for row, y in zip(X.tolist(), label)})
    np.testing.assert_array_equal(row_hashes(form(X[::-1].copy()), label[::-1], 2), hashes[::-1])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_parts_below_one_another(form: Any) -> None:
    X = np.arange(12.0).reshape(6, 2)
    for cuts in ([], [2], [0, 2, 2, 6]):
        found = stacked([form(part) for part in np.split(X, cuts)])
        assert sp.issparse(found) == (form is sp.csr_matrix)
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, X)
        assert not sp.issparse(found) or found.format == "csr"


# ---- rows that travel ------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.integers(1, 2**20))
def test_ranks_have_equal_ranges_of_hashes_in_their_order(hashes: list[int], ranks: int) -> None:
    found = home_rank(np.array(hashes, np.uint64), ranks)
    assert found.tolist() == [(h >> 32) * ranks // 2**32 for h in hashes] and found.dtype == np.int64
    assert (home_rank(np.array([0, 2**64 - 1], np.uint64), ranks) == [0, ranks - 1]).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("features", [None, 3, 2**31 - 1, 2**31, 2**31 + 7])
def test_rows_arrive_as_they_were_sent(features: int | None, dtype: Any, seed: int) -> None:
    """Dense (None) or sparse, columns beyond 32 bits, ranks without rows, and rows without entries."""
    rng = np.random.default_rng(seed)
    dense, features = features is None, features or 3
    counts = rng.permutation([0, 5, *rng.integers(0, 6, 3)])[: 1 + seed % 3].tolist()
    parts = []
    for n in counts:
        column = rng.choice([0, 1, features - 1], (n, 1))
        value = rng.choice([0.0, -1.5, 7.0], (n, 1)).astype(dtype)
        kept = value[:, 0] != 0
        x = sp.csr_matrix((value[kept, 0], (np.flatnonzero(kept), column[kept, 0])), shape=(n, features), dtype=dtype)
        parts.append(x.toarray() if dense else x)
    home = [rng.integers(0, len(counts), n) for n in counts]
    going = [[np.flatnonzero(h == r) for r in range(len(counts))] for h in home]

    def work(comm: Any) -> Any:
        mine = going[comm.rank]
        coming = np.array([len(rows[comm.rank]) for rows in going])
        return (
            rows_to_all(parts[comm.rank], np.array(counts), comm),
            rows_to_homes(parts[comm.rank], mine, coming, comm),
        )

    plain = lambda x: x if dense else (x.shape, x.data.tolist(), x.indices.tolist(), x.indptr.tolist())  # noqa: E731
    for rank, (every, own) in enumerate(Threads.run(len(counts), work)):
        wanted = stacked(parts), stacked([part[rows[rank]] for part, rows in zip(parts, going)])
        for got, want in zip((every, own), wanted):
            assert got.dtype == dtype and sp.issparse(got) != dense
            np.testing.assert_equal(plain(got), plain(want))
            if not dense:
                assert got.indices.dtype == got.indptr.dtype


# ---- what the core sees ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [(np.int32, np.int64), (np.int64, np.int32), (np.int32, np.int32), (np.int64, np.int64)])
def test_indices_of_any_width_are_the_same_matrix(kinds: Any) -> None:
    x = sp.random(20, 9, 0.4, "csr", random_state=0)
    wanted = row_hashes(x, np.zeros(20), 1)
    x.indices, x.indptr = x.indices.astype(kinds[0]), x.indptr.astype(kinds[1])
    np.testing.assert_array_equal(row_hashes(x, np.zeros(20), 1), wanted)


def test_no_rows_are_no_error() -> None:
    for x in (np.empty((0, 3)), np.empty((4, 3))[::2][:0], sp.csr_matrix((0, 3))):
        none = np.zeros(0)
        assert len(row_hashes(x, none, 1)) == len(distinct_rows(x, none, none, merge=True, threads=1).index) == 0


def test_the_share_of_zeros_is_looked_up_all_over_the_rows() -> None:
    """In some rows of the list, from its first to its last."""
    x = np.ones((2560, 64))
    for k in range(8):  # so many eighths of the rows are zeros, at the beginning or at the end
        for rows in (np.arange(2560), np.arange(2560)[::-1]):
            x[:] = 1
            x[rows[: 320 * k]] = 0
            assert mostly_zero(x, np.arange(2560), 1) == (1 - k / 8 <= matrix._FEW)
    x[:] = 0
    assert mostly_zero(x, np.arange(256), 1) and not mostly_zero(x, np.arange(255), 1)
    assert not mostly_zero(x[:, :63].copy(), np.arange(2560), 1)


def test_a_copy_by_entries_has_the_same_values_and_is_made_where_it_pays(monkeypatch: Any, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((400, 80)) < 0.2, rng.normal(size=(400, 80)), 0)
    assert compacted(x, 1) is x  # a small one
    monkeypatch.setattr(matrix, "_LARGE", x.size)
    held = compacted(x, 2)
    assert sp.issparse(held) and held.nnz == np.count_nonzero(x)
    np.testing.assert_array_equal(held.toarray(), x)
    size = (held.data.nbytes + held.indices.nbytes + held.indptr.nbytes) / x.nbytes
    for share, made in ((size * 1.001, True), (size * 0.999, False)):
        monkeypatch.setattr(matrix, "_SMALLER", share)
        assert sp.issparse(compacted(x, 1)) == made
    monkeypatch.setattr(matrix, "_SMALLER", 0.7)
    assert compacted(x + 1, 1).shape == x.shape and not sp.issparse(compacted(x + 1, 1))
    mapped = np.memmap(tmp_path / "x", dtype=x.dtype, mode="w+", shape=(400, 80))
    mapped[:] = x
    assert compacted(mapped, 1) is mapped and compacted(mapped[:400], 1) is not held
    sparse = sp.csr_matrix(x)
    assert compacted(sparse, 1) is sparse


@pytest.mark.parametrize(("n", "d", "far"), [(300, 5, 10.0), (5, 5, 10.0), (5, 6, 2.0), (40, 200, 2.0)])
def test_far_is_so_many_times_the_spread(n: int, d: int, far: float) -> None:
    """Ten times, and twice for rows fewer than features: features at ±1 around their mean."""
    x = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] * np.ones(d)
    mean, spread = x.mean(), x.std()
    assert far_centre(x - mean + 0.99 * far * spread) is None
    centre = far_centre(x - mean + 1.01 * far * spread)
    assert centre is not None
    np.testing.assert_allclose(centre, 1.01 * far * spread)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_centre_is_that_of_the_rows_of_all_ranks(ranks: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 4)) + np.array([100, 0, 0, 0])
    whole = far_centre(x)
    assert whole is not None
    for found in Threads.run(ranks, lambda comm: far_centre(np.array_split(x, ranks)[comm.rank], comm)):
        assert found is not None
        np.testing.assert_allclose(found, whole)
    assert isinstance(as_matrix(x), _core.Matrix)
