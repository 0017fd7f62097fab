"""Every source of kernel values keeps the one protocol: sums, tiles, updates and what was left out, against NumPy."""

from __future__ import annotations

import pickle
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.kernel_values import (
    DealtValues,
    GivenValues,
    KernelData,
    NativeValues,
    Samples,
    SharedValues,
    native,
    shared,
    shared_samples,
)
from maxmargin.kernel_values.dealt import dealt_out
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Serial, Threads

N, D = 90, 5
KERNEL = Kernel("rbf", gamma=0.3)
KINDS = ["dense", "csr", "float32", "matrix", "function", "few slots", "dealt", "shared"]


def rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N + 7, D)).astype(np.float32).astype(np.float64)


CHOSEN = np.random.default_rng(1).permutation(N + 7)[:N]
GRAM = KERNEL(rows(), rows())[np.ix_(CHOSEN, CHOSEN)]


def source(kind: str, comm: Any) -> Any:
    X = rows()
    if kind in ("matrix", "few slots"):
        return GivenValues(KERNEL(X, X), Kernel("precomputed"), CHOSEN, np.float64, 1)
    if kind == "function":
        return GivenValues(X, Kernel("callable", function=lambda a, b: KERNEL(a, b)), CHOSEN, np.float64, 1)
    if kind == "shared":
        mine = CHOSEN[slice(*np.array([0, 30, 30, N])[[comm.rank, comm.rank + 1]])]  # a rank without samples
        return SharedValues(shared_samples(lambda room: Samples(X[mine], KERNEL, np.arange(len(mine)), np.float64, 1, room),
                                           0.0, comm), np.arange(len(mine)), comm)  # fmt: skip
    X = {"csr": sp.csr_matrix, "float32": np.float32}.get(kind, np.asarray)(X)  # type: ignore[operator]
    samples = Samples(X, KERNEL, np.arange(N + 7), np.float32 if kind == "float32" else np.float64, 1)
    return DealtValues(samples, CHOSEN, comm) if kind == "dealt" else NativeValues(samples, CHOSEN)


def part_of(values: Any, f: Any = None, cache: float = 1 << 20) -> Any:
    n = len(values.rows)
    zeros = np.zeros((1, n))
    return values.part(zeros, zeros, zeros + 1, zeros, np.zeros((1, n), np.int8), np.zeros(n) if f is None else f, cache)


def ranks_of(kind: str) -> int:
    return 3 if kind in ("dealt", "shared") else 1


def on_ranks(kind: str, work: Any) -> list[Any]:
    size = ranks_of(kind)
    return [work(Serial())] if size == 1 else Threads.run(size, work, timeout=60)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_all_samples(kind: str) -> None:
    firsts = []
    for values in on_ranks(kind, lambda comm: source(kind, comm)):
        assert values.total == N and values.ends[0] == 0 and values.ends[-1] == N and (np.diff(values.ends) >= 0).all()
        firsts.append((values.first, len(values.rows)))
    assert firsts == ([(0, 30), (30, 0), (30, 60)] if kind == "shared" else [(0, N)] * ranks_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_those_of_the_matrix(kind: str) -> None:
    rng = np.random.default_rng(2)
    for count in (0, 1, 50, N):
        others = np.sort(rng.choice(N, count, replace=False))
        coef = rng.normal(size=count)
        wanted = GRAM[:, others] @ coef

        def work(comm: Any, others: Any = others, coef: Any = coef) -> Any:
            values = source(kind, comm)
            some = np.arange(len(values.rows))[::-1]
            found = values.sum(some, others, coef)
            np.testing.assert_allclose(values.sum(some[:3], others, coef), found[:3], atol=1e-12)
            return values.first, some, found

        for first, some, found in on_ranks(kind, work):
            np.testing.assert_allclose(found, wanted[first + some], rtol=1e-4 if kind == "float32" else 1e-10, atol=1e-4
                                       if kind == "float32" else 1e-10)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dealing", [False, True])
def test_f_follows_whatever_tiles_come_and_whoever_is_left_out(kind: str, dealing: bool) -> None:
    """Tiles that overlap, with rows in the cache and without; then some samples are left out, and all taken back."""
    rng = np.random.default_rng(3)
    tiles = [np.sort(rng.choice(N, size, replace=False)) for size in (20, 33, 33, 2, 40)]
    tiles += [tiles[-1], tiles[0]]
    moves = [(ids, np.flatnonzero(rng.random(len(ids)) < 0.7)) for ids in tiles]
    moves = [(ids, some, rng.normal(size=len(some))) for ids, some in moves]
    exact = 1e-3 if kind == "float32" else 1e-9
    cache = 8 * 128 * 3 if kind == "few slots" else 1 << 20

    def work(comm: Any) -> Any:
        values = source(kind, comm)
        part, wanted, hits = part_of(values, cache=cache), np.zeros(N), 0
        mine = slice(values.first, values.first + len(values.rows))
        for turn, (ids, some, coef) in enumerate(moves):
            if turn == 3 and len(values.rows):
                part.restrict(np.arange(0, len(values.rows), 2))
            tile, place = values.tile(part, ids)
            if comm.rank == 0:
                np.testing.assert_allclose(tile[np.ix_(place, place)], GRAM[np.ix_(ids, ids)], atol=exact)
            else:
                assert tile.shape == (0, 0)
            hits += values.update(part, ids[some], coef)
            before = wanted.copy()
            wanted += GRAM[:, ids[some]] @ coef
            active = part.active if len(values.rows) else np.empty(0, np.int64)
            np.testing.assert_allclose(np.asarray(part.f)[active - values.first], wanted[active], atol=exact)
            if turn >= 3:  # those left out have the f of before
                out = np.setdiff1d(np.arange(mine.start, mine.stop), active)
                wanted[out] = before[out]
        begin = part.size
        inf = np.inf
        if len(values.rows):
            part.take_back(inf, inf, -inf, -inf)
            part.take_back(-inf, -inf, inf, inf)
        values.fill(part, begin)
        ids = tiles[0]
        values.tile(part, ids)
        values.update(part, ids, np.ones(len(ids)))
        active = part.active if len(values.rows) else np.empty(0, np.int64)
        wanted += GRAM[:, ids].sum(axis=1)
        np.testing.assert_allclose(np.asarray(part.f)[active - values.first], wanted[active], atol=exact)
        return hits, comm.traffic.calls.get("gather", 0)

    with mock.patch.object(shared, "_WORTH_DEALING", 0 if dealing else 1 << 40):
        found = on_ranks(kind, work)
    assert all((calls > 0) == (dealing and kind == "shared") for _, calls in found)
    if kind in ("dense", "matrix", "function"):
        again = sum(len(np.intersect1d(ids[some], np.concatenate([i[s] for i, s, _ in moves[:t]])))
                    for t, (ids, some, _) in enumerate(moves) if t)  # fmt: skip
        assert 0 < found[0][0] <= again  # rows that had been computed are not computed again


def test_rows_go_to_who_has_them_and_the_others_to_who_has_fewest() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        ranks, count = int(rng.integers(1, 5)), int(rng.integers(0, 30))
        held = rng.random((ranks, count)) < 0.2
        who = dealt_out(held)
        assert ((who >= 0) & (who < ranks)).all() if count else len(who) == 0
        kept = held.any(axis=0)
        for row in np.flatnonzero(kept):
            assert held[who[row], row] and not held[: who[row], row].any()
        load = np.bincount(who, minlength=ranks)
        least, fixed = load.min(), np.bincount(who[kept], minlength=ranks)
        assert all(load[r] <= least + 1 or load[r] == fixed[r] for r in range(ranks))
    assert dealt_out(np.zeros((3, 7), bool)).tolist() == [0, 1, 2, 0, 1, 2, 0]


@pytest.mark.parametrize("kind", ["dense", "float32", "matrix", "dealt", "shared"])
def test_the_wider_is_in_float64_and_has_none_itself(kind: str) -> None:
    def work(comm: Any) -> Any:
        values = source(kind, comm)
        wider = values.wider()
        assert (wider is None) == (values.dtype == np.float64)
        if wider is not None:
            assert wider.dtype == np.float64 and wider.wider() is None and type(wider) is type(values)
            np.testing.assert_allclose(wider.sum(np.arange(N), np.arange(N), np.ones(N)), GRAM.sum(axis=1), rtol=1e-6)

    on_ranks(kind, work)
    for make in (lambda: GivenValues(GRAM.astype(np.float32), Kernel("precomputed"), np.arange(N), np.float32, 1),):
        wider = make().wider()
        assert wider.dtype == np.float64 and wider.wider() is None and make().noise > 1e6 * wider.noise > 0


def test_what_is_known_of_a_function_s_values_is_the_largest_so_far() -> None:
    values = GivenValues(rows(), Kernel("callable", function=lambda a, b: a @ b.T), CHOSEN, np.float64, 1)
    assert values.magnitude == 0.0
    K = rows()[CHOSEN] @ rows()[CHOSEN].T
    some = np.argsort(np.abs(K).max(axis=1))
    for ids in (some[:5], some[:50], some[:5]):
        values.block(ids, ids)
        largest = max(np.abs(K[np.ix_(i, i)]).max() for i in (some[:5], some[: len(ids) if len(ids) > 5 else 5]))
        assert values.magnitude >= np.sqrt(largest)
    assert values.magnitude == pytest.approx(np.sqrt(np.abs(K[np.ix_(some[:50], some[:50])]).max()))
    assert "up to" in values.describe()


@pytest.mark.parametrize("name", ["rbf", "laplacian", "linear", "poly"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_noise_of_values_bounds_their_error_and_grows_with_the_norms(name: str, dtype: Any) -> None:
    kernel, last = Kernel(name, gamma=0.3, coef0=1.0), 0.0
    for scale in (1e-3, 0.1, 1.0, 30.0, 1e4):
        X = (scale * rows()).astype(dtype)
        values = NativeValues(Samples(X, kernel, np.arange(len(X)), dtype, 1), np.arange(len(X)))
        each = np.array([values.sum(np.arange(len(X)), np.array([i]), np.ones(1)) for i in range(len(X))])
        m = np.broadcast_to(values.magnitude, len(X))
        error = np.abs(each - kernel(X.astype(np.float64), X.astype(np.float64)))
        assert (error <= (values.noise + 1e-15) * np.outer(m, m) * (D if name != "rbf" else 1)).all()
        assert values.noise >= max(last, float(np.finfo(dtype).eps))
        last = values.noise
        if name not in ("rbf", "laplacian"):
            assert values.noise == 2 * np.finfo(dtype).eps
    if name in ("rbf", "laplacian"):
        assert last == native._ENTRY_ERROR[np.dtype(dtype)]


def test_values_are_cheap_where_few_features_make_them() -> None:
    for d, cheap in ((1, True), (16, True), (17, False), (64, False)):
        X = np.random.default_rng(0).normal(size=(50, d)) * 1e-3
        samples = Samples(X, KERNEL, np.arange(50), np.float64, 1)
        assert samples.cheap(np.arange(50)) is cheap
        assert not samples.cheap(np.arange(0))
        assert not Samples(sp.csr_matrix(X), KERNEL, np.arange(50), np.float64, 1).cheap(np.arange(50))
    places = np.repeat(np.random.default_rng(1).normal(size=(8, 20)) * 1e3, 512, axis=0)  # most values are 0
    assert Samples(places, KERNEL, np.arange(4096), np.float64, 1).cheap(np.arange(4096))


def test_rows_kept_are_fewer_where_values_are_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    def slots(d: int, cache: float, **options: Any) -> int:
        X = np.random.default_rng(0).normal(size=(400, d))
        return int(
            part_of(NativeValues(Samples(X, KERNEL, np.arange(400), np.float64, 1), np.arange(400)), cache=cache).cache_slots
        )

    monkeypatch.setattr(native, "_ENOUGH_WHEN_CHEAP", 20 * 8 * 432)
    assert slots(2, 1e6) < slots(64, 1e6) and slots(2, 1e4) <= slots(2, 1e6) <= slots(2, 1e8)
    assert slots(64, 0.0) >= 1  # one row at least


def test_samples_for_other_numbers_of_threads_share_what_is_prepared() -> None:
    samples = Samples(rows(), KERNEL, np.arange(N), np.float32, 2)
    assert samples.with_threads(2) is samples
    other = samples.with_threads(3)
    assert other.threads == 3 and samples.threads == 2 and other.points is samples.points
    wide = other.wider()
    assert wide.threads == 3 and wide.dtype == np.float64 and wide.wider() is wide
    assert samples.wider().points is wide.points and samples.wider().threads == 2  # made once for all of them
    values = NativeValues(samples, CHOSEN[:N]).with_threads(3)
    assert values.samples.threads == 3
    moved = samples.within((np.ones(D), 50.0))
    np.testing.assert_array_equal(moved.frame[0], np.ones(D))
    assert moved.frame[1] == 50.0 and moved.wider().frame[1] == 50.0 and samples.frame[1] != 50.0


@pytest.mark.parametrize("zeros", [0.0, 0.95])
def test_other_samples_are_held_as_these_are(zeros: float) -> None:
    rng = np.random.default_rng(4)
    X = 0.1 * rng.normal(size=(300, 120)) * (rng.random((300, 120)) >= zeros)
    samples = Samples(X, KERNEL, np.arange(300), np.float64, 1, room=1e9)
    assert (samples.held_bytes > 0) == (zeros > 0)
    assert Samples(X, Kernel("laplacian", gamma=0.3), np.arange(300), np.float64, 1, room=1e9).held_bytes == 0
    assert Samples(X, KERNEL, np.arange(300), np.float64, 1, room=10.0).held_bytes == 0
    other = samples.as_held(X[:7])
    assert sp.issparse(other) == (zeros > 0) and samples.as_held(X[:0]).shape == (0, 120)
    if samples.held_bytes:
        csr = sp.csr_matrix(X)
        assert samples.held_bytes >= csr.data.nbytes and samples.as_held(csr) is csr
    coef, out = rng.normal(size=(2, 300)), np.ones((2, 3))
    samples.sum_at(X, np.array([5, 0, 9]), np.arange(300), coef, out)
    np.testing.assert_allclose(out, 1 + coef @ KERNEL(X, X[[5, 0, 9]]), rtol=1e-9)
    blocks = np.zeros((4, 6))
    samples.sum_by_block(X[:6], np.array([0, 100, 300]), coef, blocks)
    np.testing.assert_allclose(blocks[:2], coef[:, :100] @ KERNEL(X[:100], X[:6]), rtol=1e-9)
    np.testing.assert_allclose(blocks[2:], coef[:, 100:] @ KERNEL(X[100:], X[:6]), rtol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "precomputed"])
def test_samples_with_their_kernel_whole_in_part_and_on_their_way(name: str) -> None:
    X = rows() if name == "rbf" else KERNEL(rows(), rows())
    data = KernelData(X, KERNEL if name == "rbf" else Kernel(name), CHOSEN, np.float64, 2)
    assert data.at_hand and data.afar is None
    every, ids = np.arange(N), np.array([7, 3, 50])
    np.testing.assert_allclose(data.source().sum(every, every, np.ones(N)), GRAM.sum(axis=1), rtol=1e-9)
    some = data.source(ids, threads=1)
    np.testing.assert_allclose(
        some.sum(np.arange(3), np.arange(3), np.ones(3)), GRAM[np.ix_(ids, ids)].sum(axis=1), rtol=1e-9
    )
    again = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(again.source().sum(every, every, np.ones(N)), data.source().sum(every, every, np.ones(N)))
    part = data.restricted(ids)
    assert part.X.shape[0] == 3 and part.threads == 1 and part.rows.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(part.rows_of(np.arange(3)), part.X)
    np.testing.assert_allclose(part.source().sum(np.arange(3), np.arange(3), np.ones(3)), GRAM[np.ix_(ids, ids)].sum(axis=1))
    np.testing.assert_array_equal(data.rows_of(ids), X[CHOSEN[ids]])
    frame = data.known_frame()
    assert (frame is None) == (name == "precomputed")
    if frame is not None:
        assert data.source(threads=5).samples.threads == 5 and data.source().samples.threads == 2
        assert data.source().samples.points is data.source(ids).samples.points  # prepared once
        np.testing.assert_array_equal(part.known_frame()[0], frame[0])
        other = data.with_kernel(Kernel("linear"))
        np.testing.assert_allclose(other.source().sum(every, every, np.ones(N)), rows()[CHOSEN] @ rows()[CHOSEN].sum(axis=0))
