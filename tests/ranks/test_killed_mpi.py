"""Jobs of a real mpiexec that are killed with -9, and what goes on from their files: other numbers of ranks, one process."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from ranks.killed_job import CASES, GO_ON, KILLED, TORN, data
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin.data import save
from maxmargin.data.container import read

JOB = str(Path(__file__).parent / "killed_job.py")


def alone(name: str, **more: Any) -> Any:
    machine, task, options = CASES[name]
    return getattr(maxmargin, machine)(**options, **more).fit(*data(task))


def test_killed_jobs_go_on_with_any_number_of_ranks(mpiexec: Any, tmp_path: Path) -> None:
    killed = mpiexec(3, JOB, "die", str(tmp_path))
    assert killed.returncode != 0
    assert {path.stem for path in tmp_path.glob("*.ckpt")} == set(CASES), killed.stderr
    assert not any(read(path)[1]["done"] for path in tmp_path.glob("*.ckpt"))
    X, y = data("two")
    save(tmp_path / "x.svm", X, y)
    line = {"C": 5.0, "tol": 1e-5, "gamma": 1 / 3}
    rows, labels = maxmargin.data.load(tmp_path / "x.svm")
    with warnings.catch_warnings():  # of one process, for the command line to go on from
        warnings.simplefilter("ignore", ConvergenceWarning)
        limited = maxmargin.SVC(**line, working_set_size=8, max_iter=6, checkpoint=tmp_path / "line.ckpt")
        limited.fit(rows, labels.astype(int))
    assert read(tmp_path / "line.ckpt")[1]["done"] is False

    torn = mpiexec(2, JOB, "go_on", str(tmp_path))
    assert torn.returncode != 0, torn.stderr
    *went_on, by_line = [json.loads(text) for text in torn.stdout.splitlines() if text.startswith("{")]  # mpiexec speaks too
    whole = {name: alone(name) for name in CASES}
    assert [said["name"] for said in went_on] == list(GO_ON), torn.stderr
    for said in went_on:
        name = said["name"]
        assert said["status"] == "converged"
        assert said["objective"] == pytest.approx(whole[name].objective_, rel=1e-4), name
        assert read(tmp_path / f"{name}.ckpt")[1]["done"] is True
    assert went_on[0]["turns"] < whole[KILLED].n_iter_.sum()
    assert by_line["objective"] == pytest.approx(maxmargin.SVC(**line).fit(X, y).objective_, rel=1e-4)
    assert by_line["ranks"] == 2 and not (tmp_path / "line.ckpt").exists()  # the model has it all
    assert maxmargin.load(tmp_path / "line.mxm").checkpoint is None

    assert len(list(tmp_path.glob(f"{TORN}.ckpt.*.part"))) == 1
    for name in CASES.keys() - set(GO_ON):
        model = alone(name, checkpoint=tmp_path / f"{name}.ckpt")
        assert model.status_ == "converged"
        assert model.objective_ == pytest.approx(whole[name].objective_, rel=1e-4), name
    assert not list(tmp_path.glob("*.part"))
