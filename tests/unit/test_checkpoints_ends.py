"""When a state is written, what the file says at the end of a fit, and who may use it then."""

from __future__ import annotations

import errno
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from maxmargin import SVC, LinearSVC
from maxmargin.data import atomic
from maxmargin.data.container import read, write
from maxmargin.estimators import _checkpoints, _linear_state
from maxmargin.runtime import Checkpoints, Control, Result, Status, Turn, run

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from checkpointed import fit, no_fsync, stopped, turns_of  # noqa: F401
from killed import CASES, data, machine
from machines import judged


@pytest.mark.parametrize("case", ["SVC", "SVC-3-small", "DCSVC", "LinearSVC"])
def test_a_fit_that_is_done_is_certified_again_at_once(case: str, tmp_path) -> None:
    X, y = data(CASES[case][1])
    path = tmp_path / "a.ckpt"
    first = fit(machine(case, checkpoint=path), X, y)
    assert read(path)[1]["done"] is True and first.timings_["checkpoints"] > 0
    again = fit(machine(case, checkpoint=path), X, y)
    assert again.status_ == "converged" and turns_of(again) <= max(1, turns_of(first) // 3)
    judged(again, X, y)


def test_a_fit_that_is_done_stands_in_no_other_fits_way(tmp_path) -> None:
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    SVC(C=5.0, checkpoint=path).fit(X, y)
    other = LinearSVC(checkpoint=path).fit(X, y)
    assert other.status_ == "converged" and read(path)[1]["of"]["machine"] == "LinearSVC"


def test_seconds_are_those_of_all_runs_of_one_fit(tmp_path, monkeypatch) -> None:
    """By a clock that stands still: a run adds nothing to what the file says, and another fit begins with nothing."""
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    monkeypatch.setattr(_checkpoints, "time", SimpleNamespace(perf_counter=lambda: 5.0))
    stopped(machine("SVC", checkpoint=path), 3, X, y)
    _, header, arrays = read(path)
    assert header["seconds"] == 0
    write(path, {**header, "seconds": 77.0}, arrays)
    fit(machine("SVC", checkpoint=path), X, y)
    assert read(path)[1]["done"] is True and read(path)[1]["seconds"] == 77
    fit(machine("LinearSVC", checkpoint=path), X, y)
    assert read(path)[1]["done"] is True and read(path)[1]["seconds"] == 0


@pytest.mark.parametrize("case", ["LinearSVC", "LinearSVC-3"])
def test_cuts_are_in_the_file_up_to_so_many_numbers_of_all_problems(case: str, tmp_path, monkeypatch) -> None:
    X, y = data(CASES[case][1])

    def cuts(most: int | None) -> list[np.ndarray]:
        if most is not None:
            monkeypatch.setattr(_linear_state, "MOST", most)
        path = tmp_path / f"{most}.ckpt"
        stopped(machine(case, checkpoint=path), 4, X, y)
        _, header, arrays = read(path)
        known = [problem["dict"]["cuts"] for problem in header["state"]["dict"]["problems"] if problem is not None]
        return [arrays[some["dict"]["a"]["array"]] for some in known if some is not None]

    whole = cuts(None)
    size = sum(a.size for a in whole)
    assert size > 0 and [a.shape for a in cuts(size)] == [a.shape for a in whole] and cuts(size - 1) == []


def test_limits_leave_a_file_to_go_on_from(tmp_path) -> None:
    """Hours on a cluster come in slices: max_time and a checkpoint make one fit of them."""
    X, y = data("two")
    path, dual = tmp_path / "a.ckpt", []
    for _ in range(50):
        model = fit(machine("SVC", checkpoint=path, max_iter=7), X, y)
        dual.append(model.objective_ - model.dual_gap_)
        if model.status_ == "converged":
            break
        assert model.status_ == "max_iter" and read(path)[1]["done"] is False
    assert model.status_ == "converged" and len(dual) > 2
    assert (np.diff(dual) >= -1e-9 * abs(dual[-1])).all()
    judged(model, X, y)


def test_without_a_checkpoint_nothing_is_written(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = data("two")
    SVC().fit(X, y)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_does_not_end_the_fit(tmp_path, monkeypatch) -> None:
    X, y = data("two")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", full)
    with pytest.warns(RuntimeWarning, match="checkpoint not written: .*No space left"):
        model = SVC(C=5.0, checkpoint=tmp_path / "a.ckpt").fit(X, y)
    assert model.status_ == "converged" and not list(tmp_path.iterdir())


class Counting:
    def __init__(self, turns: int) -> None:
        self.made, self._turns = 0, turns

    def turns(self) -> Any:
        while self.made < self._turns:
            self.made += 1
            yield Turn(1.0, 0.0, 1.0, 0)

    def snapshot(self) -> int:
        return self.made

    def result(self, status: Status) -> Result:
        return Result(status=status)


def test_a_state_is_put_away_every_so_many_seconds_and_at_the_end(monkeypatch) -> None:
    now = 0.0

    def tick() -> float:
        nonlocal now
        now += 0.25
        return now

    seen: list[tuple[int, bool]] = []
    monkeypatch.setattr(time, "perf_counter", tick)
    control = Control(checkpoints=Checkpoints(lambda state, done: seen.append((state, done)), 10.0))
    result = run(Counting(100), control)
    assert result.timings["checkpoints"] == 0.25 * len(seen)  # a tick each
    assert seen[-1] == (100, True) and 3 <= len(seen) <= 20
    assert all(not done for _, done in seen[:-1]) and np.diff([made for made, _ in seen[:-1]]).min() > 1
