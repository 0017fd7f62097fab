"""Fits that are killed with -9, for test_checkpoints.py: python killed.py FOLDER

One process per fit, forked before any thread runs. Each kills itself at its moment: after a turn, or in the middle of
writing its n-th checkpoint, when half of the bytes are in the temporary file. Prints a line per fit that did not die so.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin
from maxmargin.data import atomic
from maxmargin.decomposition import many

SLOW = {"working_set_size": 8, "tol": 1e-4}
DC = {"C": 5.0, "k": 2, "levels": 2, "sample_size": 60, "n_jobs": 1, "random_state": 0, **SLOW}
CASES: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "SVC": (maxmargin.SVC, "two", {"C": 5.0, **SLOW}),
    "SVC-3": (maxmargin.SVC, "three", {"C": 5.0, **SLOW}),
    "SVC-3-small": (maxmargin.SVC, "three", {"C": 1e3, "tol": 1e-6}),  # pairs side by side in the core
    "NuSVC-weighted": (maxmargin.NuSVC, "three", {"nu": 0.3, "class_weight": {0: 2.0}, "working_set_size": 8}),
    "SVR": (maxmargin.SVR, "numbers", {"C": 1.0, **SLOW}),
    "NuSVR": (maxmargin.NuSVR, "numbers", {"nu": 0.3, **SLOW}),
    "OneClassSVM": (maxmargin.OneClassSVM, "numbers", {"nu": 0.3, **SLOW}),
    "DCSVC": (maxmargin.DCSVC, "two", DC),
    "DCSVC-3": (maxmargin.DCSVC, "three", {**DC, "random_state": None}),
    "DCSVC-early": (maxmargin.DCSVC, "two", {**DC, "stop_level": 1}),
    "DCSVR": (maxmargin.DCSVR, "numbers", {**DC, "C": 1.0, "working_set_size": 16}),
    "LinearSVC": (maxmargin.LinearSVC, "two", {"C": 5.0, "loss": "hinge", "solver": "ocas"}),
    "LinearSVC-3": (maxmargin.LinearSVC, "three", {"C": 5.0, "loss": "hinge", "solver": "ocas"}),
    "LinearSVC-joint": (maxmargin.LinearSVC, "three", {"C": 5.0, "multi_class": "crammer_singer"}),
    "LinearSVC-newton": (maxmargin.LinearSVC, "two", {"C": 5.0, "tol": 1e-9}),
    "LinearSVC-descent": (maxmargin.LinearSVC, "two", {"C": 50.0, "loss": "hinge", "solver": "descent", "tol": 1e-8}),
    "LinearSVC-l1": (maxmargin.LinearSVC, "two", {"C": 0.1, "penalty": "l1", "tol": 1e-9}),
    "LinearSVR": (maxmargin.LinearSVR, "numbers", {"C": 5.0, "solver": "ocas", "intercept_scaling": None}),
}
# After a turn, or in the n-th write; a fit that ends before does not die.
MOMENTS = [("turn", 1), ("turn", 12), ("turn", 40), ("write", 5)]


def data(task: str, n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    signal = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.normal(size=n)
    return X, signal if task == "numbers" else np.digitize(signal, [0.5] if task == "two" else [0.0, 1.0])


def machine(case: str, **options: Any) -> Any:
    kind, _, own = CASES[case]
    return kind(**{**own, **options})


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(case: str, how: str, number: int, path: Path) -> None:
    """In a process of its own."""
    seen = 0

    def count(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            die()

    if how == "write":
        rename = os.replace

        def torn(part: str, target: str) -> None:
            if seen + 1 == number:
                os.truncate(part, os.path.getsize(part) // 2)
            count()
            rename(part, target)

        atomic.os.replace = torn
    atomic.os.fsync = lambda handle: None  # power does not fail here, and hundreds of these take minutes
    many.SLICE = 1e-4
    warnings.simplefilter("ignore")
    machine(case, checkpoint=path, checkpoint_every=0, callback=count if how == "turn" else None).fit(*data(CASES[case][1]))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for case in CASES:
        for how, number in MOMENTS:
            pid = os.fork()
            if pid == 0:
                killed(case, how, number, folder / f"{case}-{how}-{number}")
                os._exit(0)
            _, status = os.waitpid(pid, 0)
            if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                print(f"{case}-{how}-{number}", os.waitstatus_to_exitcode(status), flush=True)
