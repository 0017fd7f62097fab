"""The checkpoint of a fit: a file that says what is solved, and how far it is. docs/checkpoints.md has the why.

    of        what is solved, by name: machine, samples, labels, weights, kernel, C, …; a file of anything else is refused
    state     what a solver goes on from: arrays in an order that is the data's own, whatever order the rows came in
    done      the fit reached what was asked for; then the file stands in no other fit's way

Bytes as in model files (data/container.py): checksummed, no code. What a run reports it has computed itself: of all that is
in a file only a linear machine's cuts are believed, and those only for the same samples in the same frame.

Where several ranks share a fit, the first one reads and writes. A file does not know how many there were: of exact machines
it has the states of all samples in hash order, which is that of the ranks (data/exchange.py), one after the other.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.atomic import remove_parts
from maxmargin.data.container import ModelFileError, read, write
from maxmargin.data.matrix import as_matrix
from maxmargin.estimators._base import check_number
from maxmargin.estimators._labelled import Labelled
from maxmargin.runtime import ALONE, Checkpoints, Comm, Control, together

T = TypeVar("T")
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# What a file can do that is not as it was written.
_WRONG = (ModelFileError, KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError)
FORMAT = "maxmargin checkpoint"
LAYOUT = 1  # of `state`; a file of another is refused
EVERY = 60.0  # seconds
SAME = 1e-12  # relative difference of numbers that another order of sums explains (gamma="scale")
# What tells two fits apart, beside samples, kernel and class weights. The others only say how a solution is found.
NAMES = (
    "C", "nu", "epsilon", "penalty", "loss", "fit_intercept", "intercept_scaling", "multi_class", "k", "levels",
    "stop_level", "early", "sample_size",
)  # fmt: skip


class Checkpoint:
    """The file of one fit: what an earlier run left (`state`, or None), and where this one leaves its own.

    `team`: the ranks that share the fit, all of which have the state; the first one alone has to do with the file.
    """

    def __init__(self, path: Path | None, every: float, of: dict[str, Any], team: Comm = ALONE) -> None:
        self.path, self._every, self._of, self._team = path, every, of, team
        self.state: Any = None
        self._spent, self._begun = 0.0, time.perf_counter()  # seconds of earlier runs
        if path is not None:
            left: tuple[Any, float] = (None, 0.0)
            with together(team):
                if team.rank == 0:
                    remove_parts(path)
                    left = self._read(path)
            self.state, self._spent = team.bcast(left)

    @classmethod
    def opened(cls, machine: Any, data: Labelled, threads: int, among: Comm = ALONE, **more: Any) -> Checkpoint:
        """For a machine's fit to these samples; `more` is what else tells it apart (the kernel). An error if the file is of
        another fit, or damaged, or cannot be written where it should be. `among`: ranks that have some samples each."""
        if machine.checkpoint is None:
            return cls(None, 0.0, {})
        own = machine.get_params(deep=False)
        named = {name: plain(own[name]) for name in NAMES if name in own}
        weights = {"class_weight": data.factors.tolist()} if len(data.classes) else {}
        of = {"machine": type(machine).__name__, **fingerprints(data, threads, among), **named, **weights, **more}
        return cls(Path(machine.checkpoint), float(machine.checkpoint_every), of, machine._comm)

    def watched(self, control: Control, stored: Callable[[Any], Any]) -> Control:
        """The run with checkpoints; `stored` makes a state for the file of the solver's snapshot (on all ranks)."""
        if self.path is None:
            return control
        put = Checkpoints(lambda seen, done: self._put(stored(seen), done), self._every, self._team)
        return replace(control, checkpoints=put)

    def _put(self, state: Any, done: bool) -> None:
        assert self.path is not None
        if self._team.rank:
            return
        arrays: list[NDArray[Any]] = []
        header = {
            "format": FORMAT, "layout": LAYOUT, "of": self._of, "done": done,
            "seconds": self._spent + time.perf_counter() - self._begun, "state": _spelled(state, arrays),
        }  # fmt: skip
        write(self.path, header, arrays, durable=True)

    def _read(self, path: Path) -> tuple[Any, float]:
        """The state, and the seconds that led there."""
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise ValueError(f"checkpoint={str(path)!r} is a folder, or its folder is not there or not writable")
        try:
            _, header, arrays = read(path)
            if header.get("format") != FORMAT:
                raise ModelFileError(f"{path} is a model, not a checkpoint")
            if header.get("layout") != LAYOUT:
                raise ModelFileError(f"{path} is of layout {header.get('layout')!r:.20}, this maxmargin has {LAYOUT}")
            of, done, seconds = header["of"], header["done"], float(header["seconds"])
            state = _made(header["state"], arrays)
        except FileNotFoundError:
            return None, 0.0
        except _WRONG as error:
            raise self._useless(error) from None
        differs = _differences(of, self._of)
        if differs and done is True:  # that fit is over: its file is this one's place
            return None, 0.0
        if differs:
            raise ValueError(
                f"checkpoint={str(path)!r} is of another fit, which is not done: {'; '.join(differs)}. Give another path, "
                "or delete the file if that fit is given up"
            )
        return state, seconds

    def recalled(self, made: Callable[[Any], T]) -> T | None:
        """What `made` makes of the state that an earlier run left; None if there is none."""
        if self.state is None:
            return None
        with together(self._team):
            try:
                return made(self.state)
            except _WRONG as error:
                raise self._useless(error) from None

    def _useless(self, error: Exception) -> ValueError:
        return ValueError(
            f"checkpoint={str(self.path)!r} cannot be used: {error}. Give another path, or delete the file to begin anew"
        )


def check_checkpoint(machine: Any) -> None:
    """Raise unless the parameters make sense."""
    path = machine.checkpoint
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"checkpoint={path!r} must be the name of a file, or None")
    check_number("checkpoint_every", machine.checkpoint_every, low=0, closed="left", remedy="seconds between two of them")


# ---- what is solved ------------------------------------------------------------------------------------------------


def fingerprints(data: Labelled, threads: int, among: Comm = ALONE) -> dict[str, Any]:
    """Samples, labels and weights as three digests, the same in any order of the rows; rows of weight 0 are not there.

    `among`: ranks that have some of the rows each. Every one then gets 24 bytes for each row of all.
    """
    counted = data.weight > 0
    matrix = as_matrix(data.X)
    rows, labelled = (
        _of_all(_core.row_hashes(matrix, np.ascontiguousarray(label, np.float64), threads)[counted], among)
        for label in (np.zeros(len(counted)), data.target)
    )
    weight = _of_all(data.weight[counted], among)
    by_row = np.lexsort((weight, labelled))
    digests = {"samples": np.sort(rows), "labels": labelled[by_row], "sample_weight": weight[by_row]}
    shape = {"n_samples": len(weight), "n_features": int(data.X.shape[1]), "n_classes": len(data.classes)}
    return shape | {name: hashlib.blake2b(array.data, digest_size=16).hexdigest() for name, array in digests.items()}


def _of_all(mine: NDArray[Any], among: Comm) -> NDArray[Any]:
    return mine if among.size == 1 else np.concatenate(among.allgather(mine))


def plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    value = value.item() if isinstance(value, np.generic) else value
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def _differences(then: Any, now: dict[str, Any]) -> list[str]:
    """In words. Labels and weights stand by their samples: where these differ, the others tell nothing new."""
    if not isinstance(then, dict) or then.get("machine") != now["machine"]:
        other = then.get("machine") if isinstance(then, dict) else then
        return [f"it is of {other!r:.40}, this is {now['machine']}"]
    out: list[str] = []
    for name in now:
        if _same(then.get(name), now[name]) or (out and name in ("labels", "sample_weight")):
            continue
        if name in ("samples", "labels", "sample_weight"):
            out.append({"samples": "X is another", "labels": "y is another"}.get(name, "sample_weight is another"))
        else:
            out.append(f"{name} was {then.get(name)!r:.60} and is {now[name]!r:.60}")
    return out


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is float and type(b) is float:
        return a == b or abs(a - b) <= SAME * max(abs(a), abs(b))
    return bool(a == b)


# ---- states as JSON and arrays -------------------------------------------------------------------------------------


def _spelled(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """Dicts by name, lists, numbers and None as they are; {"array": i} for an array."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, dict):
        return {"dict": {name: _spelled(item, arrays) for name, item in value.items()}}
    return [_spelled(item, arrays) for item in value] if isinstance(value, list) else value


def _made(node: Any, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(node, list):
        return [_made(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    (tag, content), = node.items()
    if tag == "array":
        return arrays[content]
    return {name: _made(item, arrays) for name, item in content.items()}


# ---- samples in an order of their own --------------------------------------------------------------------------------


@dataclass(frozen=True)
class HashOrder:
    """rank[i] is the place of sample i in the order of the hashes of distinct rows, which is the data's own.

    Among ranks `comm` each has samples of its own, and those of the first come first.
    """

    rank: IntArray
    comm: Comm = ALONE

    def of(self, chosen: Sequence[IntArray], halves: int = 1) -> Snapshots:
        """For problems on the samples `chosen`, with one variable for each of them or two."""
        counts = self.comm.allgather(np.array([[len(some) for some in chosen]], np.int64))
        return Snapshots(self.rank, chosen, halves, self.comm, np.concatenate(counts))

    @property
    def everyone(self) -> IntArray:
        """All samples, in hash order."""
        return np.argsort(self.rank)

    def ids(self, some: IntArray) -> IntArray:
        """Numbers of samples as the file has them, ascending."""
        return np.sort(self.rank[some])

    def samples(self, ids: IntArray) -> IntArray:
        """The way back."""
        return np.sort(self.everyone[ids])


@dataclass(frozen=True)
class Snapshots:
    """Snapshots of several problems' solvers for a file, and back: arrays with an entry per variable, in hash order."""

    rank: IntArray
    chosen: Sequence[IntArray]  # samples of each problem, of those held here
    halves: int  # variables per sample
    comm: Comm
    counts: IntArray  # counts[r, p]: how many of problem p's samples rank r of `comm` has

    @cached_property
    def order(self) -> list[IntArray]:
        """order[p][i] is the sample of problem p that is the i-th in hash order. For fits that have a checkpoint."""
        return [np.argsort(self.rank[some]) for some in self.chosen]

    def stored(self, seen: Sequence[dict[str, FloatArray] | None]) -> dict[str, Any]:
        """All arrays of one name in one: thousands of pairs of classes are few arrays. None: not begun.

        All ranks call it, each with what it has seen of its samples.
        """
        out: dict[str, Any] = {}
        for name in ("alpha", "second"):
            some = [(p, mine[name]) for p, mine in enumerate(seen) if mine is not None and name in mine]
            parts = [alpha.reshape(self.halves, -1)[:, self.order[p]].ravel() for p, alpha in some]
            which = np.array([p for p, _ in some], np.int64)
            out[f"{name}_of"] = which
            out[name] = self._joined(self.comm.allgather(np.concatenate([np.empty(0), *parts])), which)
        return out

    def _joined(self, each: list[FloatArray], which: IntArray) -> FloatArray:
        """Problem by problem, half by half, rank by rank, from what each rank has of all problems."""
        if len(each) == 1:
            return each[0]
        ends = self.halves * np.cumsum(self.counts[:, which], axis=1)
        cut = [np.split(mine, at[:-1]) for mine, at in zip(each, ends)]
        joined = [np.hstack([part.reshape(self.halves, -1) for part in parts]).ravel() for parts in zip(*cut)]
        return np.concatenate([np.empty(0), *joined])

    def restored(self, state: dict[str, Any]) -> list[dict[str, FloatArray]]:
        """The way back, of the samples held here; an empty dict for a problem that had not begun. An error unless there are
        as many numbers."""
        before, total = self.counts[: self.comm.rank].sum(axis=0), self.counts.sum(axis=0)
        out: list[dict[str, FloatArray]] = [{} for _ in self.order]
        for name in ("alpha", "second"):
            which, numbers = state[f"{name}_of"].tolist(), state[name]
            ends = np.cumsum([0, *(self.halves * total[p] for p in which)])
            if numbers.shape != (ends[-1],) or numbers.dtype != np.float64 or not np.isfinite(numbers).all():
                raise ValueError("it does not hold what its own description says")
            for p, begin, end in zip(which, ends, ends[1:]):
                alpha: FloatArray = np.empty((self.halves, len(self.order[p])))
                here = slice(before[p], before[p] + len(self.order[p]))
                alpha[:, self.order[p]] = numbers[begin:end].reshape(self.halves, -1)[:, here]
                out[p][name] = alpha.ravel()
        return out
