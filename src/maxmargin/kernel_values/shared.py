"""Kernel values of samples that several ranks hold, by columns: each rank those of all others with its own samples.

A rank has the features of its own samples, and for the time that they are needed those of others, which their owners send:

    tile, update    of the working set. Only newcomers are sent; a member's features stay until it leaves
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
from maxmargin.kernel_values.native import Frame, NativeValues, Samples
from maxmargin.kernel_values.source import FloatArray, IntArray
from maxmargin.runtime import Comm

_BYTES_AT_ONCE = 32 << 20  # of features sent in one piece
_ROWS_AT_ONCE = 8192  # of sparse ones, whose bytes the ranks do not know beforehand


def shared_samples(make: Callable[[float, Frame | None], Samples], room: float, comm: Comm) -> Samples:
    """make(room, frame), with one frame for the samples of all ranks, held by their entries on all of them or on none."""
    samples = make(room, None)
    moved, rows, held = len(samples.frame[0]) > 0, samples.X.shape[0] > 0, samples.held_bytes > 0
    shifted, held, dense = comm.allreduce(np.array([moved, held, rows and not held], np.int64), "max").tolist()
    if held and dense:  # a rank without rows is neither
        room = 0.0
        samples = make(room, None)
        shifted = comm.allreduce(np.array(len(samples.frame[0]) > 0, np.int64), "max")
    if shifted:
        count, shift = float(samples.X.shape[0]), samples.frame[0]
        part = count / float(comm.allreduce(np.array(count)))
        mine = part * shift if len(shift) else np.zeros(samples.X.shape[1])
        samples = make(room, (comm.allreduce(mine), 0.0))
    shift, farthest = samples.frame[0], comm.allreduce(np.array(samples.points.farthest), "max")
    return make(room, (shift, float(farthest)))


class SharedValues(NativeValues):
    """Kernel values computed by the core between rows[i] of X here and the samples of all ranks."""

    def __init__(self, samples: Samples, rows: IntArray, comm: Comm) -> None:
        super().__init__(samples, rows)
        self.comm = self.team = comm
        counts = [int(count[0]) for count in comm.allgather(np.array([len(self.rows)]))]
        self.ends = np.cumsum([0, *counts])
        self.first, self.total = int(self.ends[comm.rank]), int(self.ends[-1])
        self._ids = np.empty(0, np.int64)  # of the last tile, ascending
        self._X: Any = self.samples.X[:0]  # their features
        self._points: Any = None

    def wider(self) -> SharedValues | None:
        return None if self.dtype == np.float64 else SharedValues(self.samples.wider(), self.rows, self.comm)

    def tile(self, part: Any, ids: IntArray) -> tuple[NDArray[Any], IntArray]:
        self._bring(ids)
        if self.comm.rank != 0:
            return np.empty((0, 0), self.dtype), ids
        tile, place = part.tile(ids, self._points, np.arange(len(ids)))
        return tile, place

    def update(self, part: Any, ids: IntArray, coef: FloatArray) -> int:
        return int(part.update(ids, coef, self._points, np.searchsorted(self._ids, ids)))

    def sum(self, samples: IntArray, others: IntArray, coef: FloatArray) -> FloatArray:
        s, rows = self.samples, self.rows[samples]
        out = np.zeros((1, len(samples)))
        for at in self._some_at_a_time(len(others)):
            sent = s.like(self._sent(others[at]))
            s.points.sum(rows, sent, np.arange(len(others[at])), np.ascontiguousarray(coef[None, at]), out, s.threads)
        return np.asarray(out[0])

    def fill(self, part: Any, begin: int) -> None:
        mine = np.sort(part.cached) if part.size > begin else np.empty(0, np.int64)
        ids = np.unique(np.concatenate(self.comm.allgather(mine)))
        for at in self._some_at_a_time(len(ids)):
            sent = self.samples.like(self._sent(ids[at]))
            if part.size > begin:
                part.fill(begin, ids[at], sent, np.arange(len(ids[at])))

    # ---- features of samples that others hold ----------------------------------------------------------------------

    def _bring(self, ids: IntArray) -> None:
        """Have the features of these, and no others."""
        at = np.searchsorted(self._ids, ids)
        here = at < len(self._ids)
        here[here] = self._ids[at[here]] == ids[here]
        if here.all() and len(ids) == len(self._ids):
            return
        sent = self._X[:0] if here.all() else self._sent(ids[~here])
        at[~here] = len(self._ids) + np.arange(sent.shape[0])
        both = sp.vstack([self._X, sent], format="csr") if sp.issparse(sent) else np.concatenate([self._X, sent])
        self._ids, self._X = ids, both[at]
        self._points = self.samples.like(self._X)

    def _some_at_a_time(self, count: int) -> list[slice]:
        X = self.samples.X
        step = _ROWS_AT_ONCE if sp.issparse(X) else max(256, _BYTES_AT_ONCE // max(1, X.shape[1] * X.itemsize))
        return [slice(i, i + step) for i in range(0, count, step)]

    def _sent(self, ids: IntArray) -> Any:
        """Rows of features of samples of all ranks, by ascending ids."""
        cut = np.searchsorted(ids, self.ends)
        mine = self.samples.X[self.rows[ids[cut[self.comm.rank] : cut[self.comm.rank + 1]] - self.first]]
        return rows_to_all(mine, np.diff(cut), self.comm)
