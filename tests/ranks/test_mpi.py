"""A real mpiexec: machines, failures of one rank, Ctrl-C, and `python -m maxmargin.spmd train`."""

from __future__ import annotations

import doctest
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
import maxmargin.spmd
from maxmargin import _core, data
from maxmargin.cli import program
from maxmargin.cli.console import BAD_INPUT
from maxmargin.spmd import command

JOBS = str(Path(__file__).parent / "jobs.py")


def said(done: Any) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_linear_machines_are_those_of_one_process(mpiexec: Any, ranks: int) -> None:
    lines = said(mpiexec(ranks, JOBS, "linear"))
    assert len(lines) == 10
    for line in lines:
        assert line["same"] and line["status"] == "converged"
        assert line["objective"] == pytest.approx(line["serial"], rel=2e-6)
        assert line["lower"] <= line["serial"] * (1 + 1e-12) and line["serial_lower"] <= line["objective"] * (1 + 1e-12)


def test_ranks_whose_processors_round_differently_stay_in_step(mpiexec: Any) -> None:
    """BLAS of two generations of processors: other bits of every dot product."""
    lines = said(mpiexec(2, JOBS, "linear", other={"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"}))
    assert len(lines) == 10 and all(line["same"] and line["status"] == "converged" for line in lines)


def test_ranks_with_cores_of_different_instruction_sets_have_one_model(mpiexec: Any, other_level: str) -> None:
    levels, *lines = said(mpiexec(2, JOBS, "levels", other={"MAXMARGIN_ISA": other_level}))
    assert levels == {"levels": [_core.ISA, other_level]} and len(lines) == 6
    for line in lines:
        assert line["same"] and line["status"] == "converged", line
        unsure = max(1e-6 * max(abs(line["serial"]), 1.0), line["gaps"])
        assert abs(line["objective"] - line["serial"]) <= unsure, line


def test_the_command_says_in_a_line_that_its_ranks_do_not_know_each_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "3")
    assert command.main(["train", "rows.svm"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert said.startswith("python -m maxmargin.spmd: error: 3 processes were started") and said.count("\n") == 1


@pytest.mark.parametrize(("job", "message"), [
    ("callback", "ZeroDivisionError: of the last rank's callback"), ("data", "Input X contains NaN"),
    ("memory", "no room for the margins"), ("kernel_callback", "ZeroDivisionError: of the last rank's callback"),
    ("kernel_memory", "MemoryError: std::bad_alloc"),
])  # fmt: skip
def test_an_error_of_one_rank_ends_the_job(mpiexec: Any, job: str, message: str) -> None:
    done = mpiexec(3, JOBS, job)
    assert done.returncode != 0
    assert message in done.stderr
    if "memory" in job:
        assert "rank 2 of 3 cannot go on" in done.stderr


def test_ctrl_c_and_limits_end_all_ranks(mpiexec: Any) -> None:
    interrupted, limited, kernel, after = said(mpiexec(2, JOBS, "interrupt", "limit", "kernel_interrupt"))
    assert interrupted == {"statuses": ["interrupted"] * 2, "turns": 2}
    assert limited == {"statuses": ["max_time"] * 2}
    assert kernel["statuses"] == ["interrupted"] * 2 and kernel["turns"][0] == 5 and kernel["same"]
    (first,), others = kernel["warnings"]  # of the first rank, as in one process
    assert "status_='interrupted'" in first and others == []
    assert kernel["right"] > 0.4  # a rough vote of all pairs
    assert after == {"statuses": ["converged"] * 2}


def test_ctrl_c_to_mpiexec_ends_the_job_in_order_with_a_model(launcher: str) -> None:
    """What a terminal does: mpiexec hears it, and passes it on to the ranks."""
    command = [launcher, "-n", "2", sys.executable, JOBS, "slow"]  # ends after 100 seconds, whatever happens
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment) as job:
        assert job.stdout is not None
        lines = (json.loads(line) for line in job.stdout if line.startswith("{"))
        assert next(lines) == {"going": True}
        os.killpg(job.pid, signal.SIGINT)
        ended = next(lines)
    assert job.returncode == 0
    assert ended["statuses"] == ["interrupted"] * 2 and ended["same"] and ended["gap"] > 0


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One set of samples in three formats; the last feature is in the last row alone."""
    folder = tmp_path_factory.mktemp("samples")
    rng = np.random.default_rng(1)
    y = np.sort(rng.integers(1, 4, size=301))
    X = np.round(rng.normal(size=(301, 6)), 3) + y[:, None] * np.array([1, 0, 0, 0, 0, 0])
    X[:-1, -1] = 0.0
    for name in ("x.svm", "x.npy", "x.npz"):
        data.save(folder / name, X, y)
    return folder, X, y


@pytest.mark.parametrize(("ranks", "name"), [(1, "x.svm"), (2, "x.svm"), (3, "x.npy"), (2, "x.npz")])
def test_train_reads_a_part_on_each_rank(mpiexec: Any, samples: Any, tmp_path: Path, ranks: int, name: str) -> None:
    folder, X, y = samples
    target = tmp_path / "model.mxm"
    words = ["train", "-t", "0", "-c", "2", "-w1", "3", "-e", "1e-6", "--json", str(folder / name), str(target)]
    done = mpiexec(ranks, "-m", "maxmargin.spmd", *words)
    (line,) = said(done)
    assert line["data"] == {"path": str(folder / name), "rows": 301, "features": 6, "stored": line["data"]["stored"]}
    assert line["ranks"] == ranks and line["status"] == "converged"
    model = maxmargin.load(target)
    here = maxmargin.LinearSVC(loss="hinge", intercept_scaling=None, tol=1e-6, max_iter=-1, C=2.0, class_weight={1: 3.0})
    assert model.objective_ == pytest.approx(here.fit(X, y).objective_, rel=3e-6)
    assert (model.classes_ == [1, 2, 3]).all() and (model.predict(X) == here.predict(X)).mean() > 0.99


def test_predict_reads_a_part_on_each_rank_and_writes_in_order(mpiexec: Any, samples: Any, tmp_path: Path) -> None:
    """More ranks than the rows of one file; labels and values as one process writes them, to the last digit."""
    folder, X, y = samples
    model = maxmargin.SVC(kernel="rbf", gamma=0.3).fit(X, y)
    maxmargin.save(model, tmp_path / "m.mxm")
    maxmargin.save(model, tmp_path / "m.libsvm", format="libsvm")
    data.save(tmp_path / "one.svm", X[:1, :3], y[:1])  # fewer features than the model
    narrow = maxmargin.SVC(gamma=0.3).fit(X[:, :4], y)
    maxmargin.save(narrow, tmp_path / "narrow.libsvm", format="libsvm")
    cases = [
        ["--decision-values", str(folder / "x.svm"), str(tmp_path / "m.mxm")],
        [str(folder / "x.npy"), str(tmp_path / "m.mxm")],
        [str(folder / "x.svm"), str(tmp_path / "m.libsvm")],
        [str(tmp_path / "one.svm"), str(tmp_path / "m.mxm")],
        [str(folder / "x.svm"), str(tmp_path / "narrow.libsvm")],
    ]
    bad = [(["-", str(tmp_path / "m.mxm")], "standard input"), ([str(folder / "x.svm"), str(folder / "x.svm")], "x.svm"),
           (["-b", "1", str(folder / "x.svm"), str(tmp_path / "m.mxm")], "trained without probabilities")]
    words = [["predict", "-q", *case, str(tmp_path / f"{k}.ranks")] for k, case in enumerate(cases)]
    words += [["predict", *case, str(tmp_path / "none")] for case, _ in bad]
    (tmp_path / "lines.json").write_text(json.dumps(words))
    done = mpiexec(3, JOBS, "lines_of", str(tmp_path / "lines.json"))
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["codes"] for line in lines] == [[0, 0, 0]] * len(cases) + [[2, 2, 2]] * len(bad), lines
    for (_, message), line in zip(bad, lines[len(cases) :], strict=True):
        assert message in line["texts"][0] and line["texts"][1:] == ["", ""]
    assert not (tmp_path / "none").exists()
    for k, case in enumerate(cases):
        assert program.main(["predict", "-q", *case, str(tmp_path / f"{k}.alone")]) == 0
        assert (tmp_path / f"{k}.ranks").read_text() == (tmp_path / f"{k}.alone").read_text(), case
    assert told[0].startswith("Accuracy = ") and len(told) == len(cases)


def test_trouble_is_said_once_with_the_command_lines_codes(mpiexec: Any, samples: Any, tmp_path: Path) -> None:
    folder, *_ = samples
    lines = (folder / "x.svm").read_text().splitlines()
    lines[-1] = "3 1:0.5 2:what"
    damaged = tmp_path / "damaged.svm"
    damaged.write_text("\n".join(lines) + "\n")
    cases = [
        (["-t", "0", str(damaged)], "damaged.svm"),
        (["-t", "0", str(folder / "none.svm")], "none.svm"),
        (["--engine", "budget", str(folder / "x.svm")], "for one process"),
        (["-t", "0", "-e", "7", str(folder / "x.svm")], "tol=7"),
        (["--no-such-option", str(folder / "x.svm")], "unrecognized arguments"),
    ]
    target = tmp_path / "m.mxm"
    (tmp_path / "lines.json").write_text(json.dumps([["train", *words, str(target)] for words, _ in cases]))
    lines = said(mpiexec(2, JOBS, "lines_of", str(tmp_path / "lines.json")))
    for (_, message), line in zip(cases, lines, strict=True):
        first, second = line["texts"]
        assert line["codes"] == [2, 2] and message in first and "Traceback" not in first and second == "", line
    assert not target.exists()
    done = mpiexec(2, "-m", "maxmargin.spmd", "train", *cases[0][0], str(target))
    assert done.returncode == 2 and "damaged.svm" in done.stderr


def test_the_example_of_the_package_runs() -> None:
    assert doctest.testmod(maxmargin.spmd).failed == 0
