"""Under mpiexec (test_killed_mpi.py): fits with checkpoints that end by kill -9, and fits that go on from what others left.

    die FOLDER      every case is stopped with its file as it is after some turns; at last one rank is killed in mid-fit
    go_on FOLDER    the cases of GO_ON, from files of another number of ranks; at last rank 0 is killed in mid-write

Rank 0 prints a line of JSON per fit that went on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import spmd
from maxmargin.data import atomic
from maxmargin.runtime import Mpi
from maxmargin.spmd import command

SLOW = {"working_set_size": 16, "tol": 1e-4}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "SVC": ("SVC", "two", {"C": 5.0, **SLOW}),
    "SVC-3": ("SVC", "three", {"C": 5.0, **SLOW}),
    "NuSVC": ("NuSVC", "two", {"nu": 0.3, **SLOW}),
    "SVR": ("SVR", "numbers", {"C": 1.0, **SLOW}),
    "NuSVR": ("NuSVR", "numbers", {"nu": 0.3, **SLOW}),
    "OneClassSVM": ("OneClassSVM", "none", {"nu": 0.3, **SLOW}),
    "LinearSVC": ("LinearSVC", "three", {"loss": "hinge", "solver": "ocas", "tol": 1e-5}),
    "LinearSVR": ("LinearSVR", "numbers", {"solver": "ocas", "tol": 1e-5}),
}
KILLED = "SVC"  # the last of `die`, by a rank that is killed
TORN = "SVC-3"  # the last of `go_on`, killed when half of its fourth checkpoint is written
GO_ON = ("SVC", "NuSVC", "NuSVR", "LinearSVC", "OneClassSVM")  # on ranks; the others in one process


def data(task: str, n: int = 240) -> tuple[np.ndarray, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.normal(size=n)
    if task in ("numbers", "none"):
        return X, score if task == "numbers" else None
    return X, np.digitize(score, [0.5] if task == "two" else [0.0, 1.0])


def fit(comm: Any, name: str, **more: Any) -> Any:
    machine, task, options = CASES[name]
    X, y = data(task)
    rows = slice(comm.rank, None, comm.size)
    model = getattr(spmd, machine)(**options, checkpoint_every=0, **more)
    return model.fit(X[rows], None if y is None else y[rows], comm=comm)


def die(comm: Any, folder: Path) -> None:
    for name in CASES:
        path = folder / f"{name}.run"

        def keep(row: dict[str, float], path: Path = path) -> bool:
            if row["iteration"] == 9 and comm.rank == 0:
                shutil.copy(path, path.with_suffix(".ckpt"))  # the file as it is now is what a kill would leave
            return row["iteration"] >= 9

        if name != KILLED:
            fit(comm, name, checkpoint=path, callback=keep)

    def kill(row: dict[str, float]) -> None:
        if row["iteration"] == 12 and comm.rank == comm.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)

    fit(comm, KILLED, checkpoint=folder / f"{KILLED}.ckpt", callback=kill)


def go_on(comm: Any, folder: Path) -> None:
    for name in GO_ON:
        model = fit(comm, name, checkpoint=folder / f"{name}.ckpt")
        if comm.rank == 0:
            print(json.dumps({"name": name, "status": model.status_, "objective": model.objective_,
                              "turns": int(np.sum(model.n_iter_))}), flush=True)
    line = ["train", "-t", "2", "-c", "5", "-e", "1e-5", "-q", "--json", "--checkpoint", str(folder / "line.ckpt"),
            str(folder / "x.svm"), str(folder / "line.mxm")]
    assert command.main(line, comm) == 0
    sys.stdout.flush()
    rename, writes = os.replace, 0

    def torn(part: str, target: str) -> None:
        nonlocal writes
        writes += 1
        if writes == 4:
            os.truncate(part, os.path.getsize(part) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        rename(part, target)

    atomic.os.replace = torn
    fit(comm, TORN, checkpoint=folder / f"{TORN}.ckpt")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    atomic.os.fsync = lambda handle: None  # power does not fail here
    {"die": die, "go_on": go_on}[sys.argv[1]](Mpi(), Path(sys.argv[2]))
