"""Kernel values between the samples of several ranks: those of all samples in one place, sent no more often than needed."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.kernel_values import Samples, shared
from maxmargin.kernel_values.shared import SharedValues, shared_samples
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Comm, Threads

KERNEL = Kernel("rbf", gamma=0.05)
N, D = 700, 64
CUTS = [0, 300, 300, N]  # a rank without rows


def rows(zeros: float) -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.where(rng.random((N, D)) < zeros, 0.0, rng.normal(size=(N, D)) + 1.0)


def on_rank(comm: Comm, X: Any, room: float = 0.0) -> SharedValues:
    mine = X[CUTS[comm.rank] : CUTS[comm.rank + 1]]
    held = np.arange(mine.shape[0])
    return SharedValues(shared_samples(lambda r: Samples(mine, KERNEL, held, np.float64, 1, r), room, comm), held, comm)


@pytest.mark.parametrize(("full", "wanted"), [(slice(0, 0), True), (slice(0, 300), False), (slice(300, N), False)])
def test_all_ranks_hold_their_rows_by_the_entries_or_none_does(full: slice, wanted: bool) -> None:
    X = rows(0.9)
    X[full] = 1.0
    bytes_ = Threads.run(3, lambda comm: on_rank(comm, X, room=1e9).samples.held_bytes, timeout=60)
    assert [bytes_[0] > 0, bytes_[2] > 0] == [wanted, wanted]
    assert bytes_[1] == 0  # it has none


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_sums_in_pieces_are_those_of_one_process(form: Any) -> None:
    """However many rows are sent at once; and what a pass over all samples needs is sent once, not for each piece of it."""
    X, rng = rows(0.5), np.random.default_rng(0)
    others = np.sort(rng.choice(N, 600, replace=False))
    coef = rng.normal(size=600)
    wanted = KERNEL(X, X[others]) @ coef
    sent = {}
    for at_once in (250, N):

        def pass_over(comm: Comm) -> tuple[np.ndarray, int]:
            values = on_rank(comm, form(X))
            before = comm.traffic.messages
            halves = np.array_split(np.arange(len(values.rows)), 2)
            return np.concatenate([values.sum(half, others, coef) for half in halves]), comm.traffic.messages - before

        patches = {"_ROWS_AT_ONCE": at_once, "_BYTES_AT_ONCE": at_once * D * 8}
        with mock.patch.multiple(shared, **patches):
            found = Threads.run(3, pass_over, timeout=60)
        np.testing.assert_allclose(np.concatenate([f for f, _ in found]), wanted, rtol=1e-10, atol=1e-10)
        sent[at_once] = found[0][1]
    assert sent[N] * 2 * 3 == sent[250]  # three pieces, each needed for both halves; as one piece it is still there


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_features_of_others_take_the_room_of_the_largest_tile(form: Any) -> None:
    """Members that leave make room for those that come; a tile is the kernel of its members, whoever was there before."""
    X, rng = rows(0.5), np.random.default_rng(1)
    tiles = [np.sort(rng.choice(N, size, replace=False)) for size in (40, 40, 90, 10, 90)]
    tiles += [tiles[-1][::2]]

    def run(comm: Comm) -> list[tuple[int, np.ndarray]]:
        values, out = on_rank(comm, form(X)), []
        n = len(values.rows)
        zeros = np.zeros((1, n))
        part = values.part(zeros, zeros, zeros + 1, zeros, np.zeros((1, n), np.int8), np.zeros(n), 1 << 20)
        for ids in tiles:
            tile, place = values.tile(part, ids)
            out.append((values._X.shape[0], tile[np.ix_(place, place)] if comm.rank == 0 else tile))
        assert "gather" not in comm.traffic.calls  # tiles so small are the first rank's alone
        return out

    found = Threads.run(3, run, timeout=60)
    for rank in found:
        most = np.maximum.accumulate([len(ids) for ids in tiles])
        assert all(room <= size for (room, _), size in zip(rank, most))
    for ids, (_, tile) in zip(tiles, found[0]):
        np.testing.assert_allclose(tile, KERNEL(X[ids], X[ids]), rtol=1e-10, atol=1e-12)
