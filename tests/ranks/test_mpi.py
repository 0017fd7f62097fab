"""A real mpiexec: machines, failures of one rank, Ctrl-C, and `python -m maxmargin.spmd train`."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
import maxmargin.spmd
from maxmargin import data

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


@pytest.mark.parametrize(("job", "message"), [
    ("callback", "ZeroDivisionError: of the last rank's callback"), ("data", "Input X contains NaN"),
    ("memory", "no room for the margins"),
])  # fmt: skip
def test_an_error_of_one_rank_ends_the_job(mpiexec: Any, job: str, message: str) -> None:
    done = mpiexec(3, JOBS, job)
    assert done.returncode != 0
    assert message in done.stderr


def test_ctrl_c_and_limits_end_all_ranks(mpiexec: Any) -> None:
    interrupted, limited = said(mpiexec(2, JOBS, "interrupt", "limit"))
    assert interrupted == {"statuses": ["interrupted"] * 2, "turns": 2}
    assert limited == {"statuses": ["max_time"] * 2}


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
