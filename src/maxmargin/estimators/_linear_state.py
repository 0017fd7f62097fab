"""Where a linear machine's run is, for a checkpoint: points in the units of the data, cuts and duals.

A point is any run's start. A cut, with the allowance for its rounding, is a statement about a set of samples in one frame
(`frame`: their centre, units and class weights): it serves whoever has them, in whatever order. Duals belong to the rows as
they stand, and serve only where these are the same, byte for byte (`key`); a rank, which has its own rows alone, keeps none.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from maxmargin.estimators._base import FloatArray
from maxmargin.linear import Cuts, Known

MOST = 1 << 24  # numbers in the cuts of a checkpoint, 128 MB: beyond, a run that goes on gathers its cuts anew
WRONG = "it does not hold what its own description says"


class Past(NamedTuple):
    """What an earlier fit leaves for one problem: its cuts, if they are of the same samples; its point; its duals; its h."""

    cuts: Any = None
    start: Any = None
    duals: Any = None
    rounding: float | None = None


class States:
    """Snapshots of a fit's solver (of one problem, of all classes jointly, or one per class) for a file, and back."""

    def __init__(self, machine: Any, data: Any, vectors: int, joint: bool, frame: str) -> None:
        self._machine, self._data, self._joint, self._frame = machine, data, joint, frame
        self._rows = vectors if joint else 1  # vectors of weights per problem
        self._problems = 1 if joint else vectors
        self._alone = machine._comm.size == 1
        self._key = machine._fingerprint(data)
        if not self._alone:
            self._key = hashlib.blake2b("".join(machine._comm.share(self._key)).encode()).hexdigest()

    def stored(self, seen: Known | list[Known | None]) -> dict[str, Any]:
        """Of problems not begun None."""
        every = seen if isinstance(seen, list) else [seen]
        cheap = sum(known.cuts.a.size for known in every if known is not None and known.cuts is not None) <= MOST
        problems = [None if known is None else self._one(known, cheap) for known in every]
        return {"key": self._key, "frame": self._frame, "problems": problems}

    def _one(self, known: Known, cheap: bool) -> dict[str, Any]:
        duals = known.duals if self._alone else None
        out: dict[str, Any] = {"duals": duals, "rounding": known.rounding, "point": None, "cuts": None}
        if known.w is not None:
            coef, intercept = self._machine._published(known.w.reshape(self._rows, -1), self._data)
            out["point"] = np.hstack([coef, intercept[:, None]])
        if known.cuts is not None and cheap:
            out["cuts"] = {field.name: getattr(known.cuts, field.name) for field in fields(Cuts)}
        return out

    def restored(self, state: dict[str, Any]) -> dict[int, Past]:
        same, problems = state["key"] == self._key, state["problems"]
        framed = state.get("frame") == self._frame
        if len(problems) != self._problems:
            raise ValueError(WRONG)
        return {k: self._made(mine, same, framed) for k, mine in enumerate(problems) if mine is not None}

    def _made(self, mine: dict[str, Any], same: bool, framed: bool) -> Past:
        point, cuts, duals = mine["point"], mine["cuts"], mine["duals"]
        w: FloatArray | None = None
        if point is not None:
            _require(point, (self._rows, self._data.X.shape[1] + 1))
            w = self._machine._points(point[:, :-1], point[:, -1], self._data).ravel()
        found = _cuts(cuts) if cuts is not None and framed else None
        if not same:
            return Past(found, w)
        if duals is not None:
            _require(duals, (len(duals) // self._data.X.shape[0] * self._data.X.shape[0],))
        rounding = None if mine["rounding"] is None else max(0.0, float(mine["rounding"]))
        return Past(found, w, duals, rounding)


def _cuts(parts: dict[str, Any]) -> Cuts:
    cuts = Cuts(**parts)
    count = len(cuts.idle)
    _require(cuts.a, (count, cuts.a.shape[1]))
    _require(cuts.numbers, (3, count))
    _require(cuts.gram, (count, count))
    if cuts.idle.dtype != np.int64 or (cuts.numbers[1:] < 0).any():
        raise ValueError(WRONG)
    return cuts


def _require(array: Any, shape: tuple[int, ...]) -> FloatArray:
    if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
        raise ValueError(WRONG)
    return np.asarray(array)
