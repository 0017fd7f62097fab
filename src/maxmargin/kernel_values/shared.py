"""Kernel values of samples that several ranks hold, by columns: each rank those of all others with its own samples.

A rank has the features of its own samples, and for the time that they are needed those of others, which their owners send:

    tile, update    of the working set. Only newcomers are sent; a member's features stay until it leaves. Where kernel
                    values cost more than to send them, each rank computes some of the newcomers' rows of the tile
    sum, fill       of many samples, some at a time

All ranks name the same ids, so that nobody has to ask: who owns them sends, and the rows come in the order of the ids.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.exchange import rows_to_all
from maxmargin.kernel_values.native import NativeValues, Samples
from maxmargin.kernel_values.source import FloatArray, IntArray
from maxmargin.runtime import Comm

_BYTES_AT_ONCE = 32 << 20  # of features sent in one piece
_ROWS_AT_ONCE = 8192  # of sparse ones, whose bytes the ranks do not know beforehand
_WORTH_DEALING = 1 << 22  # multiplications in the newcomers' rows of a tile: about a millisecond


def shared_samples(make: Callable[[float], Samples], room: float, comm: Comm) -> Samples:
    """make(room) within one frame for the samples of all ranks, held by their entries on all of them or on none."""
    samples = make(room)
    moved, rows, held = len(samples.frame[0]) > 0, samples.X.shape[0] > 0, samples.held_bytes > 0
    shifted, held, dense = comm.allreduce(np.array([moved, held, rows and not held], np.int64), "max").tolist()
    if held and dense:  # a rank without rows is neither
        samples = make(0.0)
        shifted = comm.allreduce(np.array(len(samples.frame[0]) > 0, np.int64), "max")
    if shifted:
        count, shift = float(samples.X.shape[0]), samples.frame[0]
        part = count / float(comm.allreduce(np.array(count)))
        mine = part * shift if len(shift) else np.zeros(samples.X.shape[1])
        samples = samples.within((comm.allreduce(mine), 0.0))
    shift, farthest = samples.frame[0], comm.allreduce(np.array(samples.points.farthest), "max")
    return samples.within((shift, float(farthest)))


class SharedValues(NativeValues):
    """Kernel values computed by the core between rows[i] of X here and the samples of all ranks."""

    def __init__(self, samples: Samples, rows: IntArray, comm: Comm) -> None:
        super().__init__(samples, rows)
        self.comm = self.team = comm
        counts = [int(count[0]) for count in comm.allgather(np.array([len(self.rows)]))]
        self.ends = np.cumsum([0, *counts])
        self.first, self.total = int(self.ends[comm.rank]), int(self.ends[-1])
        self._ids = np.empty(0, np.int64)  # of the last tile, ascending,
        self._place = np.empty(0, np.int64)  # and in which row of _X the features of each are
        self._X: Any = self.samples.as_held(self.samples.X[:0])
        self._points: Any = None
        self._kept: tuple[IntArray, Any] = (np.empty(0, np.int64), None)  # the last samples that were summed over

    def wider(self) -> SharedValues | None:
        return None if self.dtype == np.float64 else SharedValues(self.samples.wider(), self.rows, self.comm)

    def tile(self, part: Any, ids: IntArray) -> tuple[NDArray[Any], IntArray]:
        self._kept = (self._kept[0][:0], None)
        fresh = np.flatnonzero(self._bring(ids))
        shares = np.arange(self.comm.size + 1) * len(fresh) // self.comm.size
        if not self._worth_dealing(len(fresh), len(ids)):
            shares[1:] = len(fresh)  # all to the first rank
        if self.comm.rank == 0:
            tile, place = part.tile(ids, self._points, self._place, fresh[shares[1] :])
        else:
            tile, place = np.empty((0, 0), self.dtype), ids
        if shares[1] < len(fresh):
            self._send_rows(part, fresh, shares)
        return tile, place

    def _worth_dealing(self, newcomers: int, members: int) -> bool:
        """By numbers that all ranks have."""
        return newcomers >= 2 * self.comm.size and newcomers * members * self.samples.X.shape[1] >= _WORTH_DEALING

    def _send_rows(self, part: Any, fresh: IntArray, shares: IntArray) -> None:
        """The other ranks' shares of the newcomers' rows, from shares[r] to shares[r + 1] of rank r, to the first one."""
        rank, room = self.comm.rank, -(-len(self._place) // 32) * 32
        mine = self._place[fresh[shares[rank] : shares[rank + 1]]] if rank else fresh[:0]
        values = np.empty((len(mine), room), self.dtype)
        if rank:
            self._points.block(self._place, self._points, mine, values, self.samples.threads)
        every = self.comm.gather(values, [0, *np.diff(shares)[1:].tolist()])
        if every:
            part.take_rows(fresh[shares[1] :], np.concatenate(every[1:]) if len(every) > 2 else every[1])

    def update(self, part: Any, ids: IntArray, coef: FloatArray) -> int:
        return int(part.update(ids, coef, self._points, self._place[np.searchsorted(self._ids, ids)]))

    def sum(self, samples: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        s, rows = self.samples, self.rows[samples]
        out = np.zeros((1, len(samples)))
        for at in self._some_at_a_time(len(others)):
            sent = self._sent_once(others[at])
            s.points.sum(rows, sent, np.arange(len(others[at])), np.ascontiguousarray(coef[None, at]), out, s.threads)
        return np.asarray(out[0])

    def _sent_once(self, ids: IntArray) -> Any:
        """Other samples, kept for the next piece of a pass over the same ones."""
        if self._kept[1] is None or not np.array_equal(self._kept[0], ids):
            self._kept = (ids[:0], None)  # not two of them
            self._kept = (ids, self.samples.like(self._sent(ids)))
        return self._kept[1]

    def fill(self, part: Any, begin: int) -> None:
        mine = np.sort(part.cached) if part.size > begin else np.empty(0, np.int64)
        ids = np.unique(np.concatenate(self.comm.allgather(mine)))
        for at in self._some_at_a_time(len(ids)):
            sent = self.samples.like(self._sent(ids[at]))
            if part.size > begin:
                part.fill(begin, ids[at], sent, np.arange(len(ids[at])))

    # ---- features of samples that others hold ----------------------------------------------------------------------

    def _bring(self, ids: IntArray) -> NDArray[np.bool_]:
        """Have the features of these; which of them had to be sent for."""
        at = np.searchsorted(self._ids, ids)
        here = at < len(self._ids)
        here[here] = self._ids[at[here]] == ids[here]
        if here.all():
            self._place = self._place[at]
        else:
            sent = self.samples.as_held(self._sent(ids[~here]))
            self._place = self._stored(self._place[at[here]], here, sent)
            self._points = self.samples.like(self._X)
        self._ids = ids
        return ~here

    def _stored(self, stay: IntArray, here: NDArray[np.bool_], sent: Any) -> IntArray:
        """Rows of _X: those that stay, and the ones that were sent, which take the place of others."""
        place = np.empty(len(here), np.int64)
        if sp.issparse(sent):
            place[here], place[~here] = np.arange(len(stay)), len(stay) + np.arange(sent.shape[0])
            self._X = sp.vstack([self._X[stay], sent], format="csr")
            return place
        if len(here) > len(self._X):
            more = np.zeros((len(here) - len(self._X), self._X.shape[1]), self._X.dtype)
            self._X = np.concatenate([self._X, more])
        taken = np.zeros(len(self._X), bool)
        taken[stay] = True
        place[here], place[~here] = stay, np.flatnonzero(~taken)[: len(sent)]
        self._X[place[~here]] = sent
        return place

    def _some_at_a_time(self, count: int) -> list[slice]:
        X = self.samples.X
        step = _ROWS_AT_ONCE if sp.issparse(X) else max(256, _BYTES_AT_ONCE // max(1, X.shape[1] * X.itemsize))
        return [slice(i, i + step) for i in range(0, count, step)]

    def _sent(self, ids: IntArray) -> Any:
        """Rows of features of samples of all ranks, by ascending ids."""
        cut = np.searchsorted(ids, self.ends)
        mine = self.samples.X[self.rows[ids[cut[self.comm.rank] : cut[self.comm.rank + 1]] - self.first]]
        return rows_to_all(mine, np.diff(cut), self.comm)
