"""One timed job in a process of its own: `python -m benchmarks.worker <job folder>`, started by harness.py.

A fresh process per fit gives every solver the same cold heap, makes its peak memory measurable, and can be killed when
its time is up. Events go to the pipe that was stdout, one JSON object per line: start and stop around what is timed,
done or error at the end; whatever a solver prints goes nowhere. Order: pin the threads, import, warm up on a toy
problem of the same kind (thread pools, lazy imports), load the data, fit against the clock.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
import warnings
from typing import Any


def main(folder: pathlib.Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    with os.fdopen(os.dup(1), "w", buffering=1) as pipe:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

        def say(event: str, **more: Any) -> None:
            pipe.write(json.dumps({"event": event, **more}) + "\n")

        try:
            _pin(job["threads"])
            say("done", **_measure(job, folder, say))
        except Exception as error:
            message = str(error).strip()
            say("error", reason=f"{type(error).__name__}: {message.splitlines()[0] if message else ''}")


def _pin(threads: int) -> None:
    """Let this process run on `threads` cores only. (The *_NUM_THREADS variables were set by the parent.)"""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _measure(job: dict[str, Any], folder: pathlib.Path, say: Any) -> dict[str, Any]:
    from benchmarks import base, storage

    warnings.simplefilter("ignore")
    make = base.discover("solvers")[job["solver"]]
    problem = base.Problem(**job["problem"])
    header = json.loads((pathlib.Path(job["data"]) / "header.json").read_text())
    _warm_up(make(), problem, header, job["threads"])
    start_mb = _memory("VmRSS")

    solver = make()
    data = storage.load(job["data"])
    X_test = data.X_test
    X = solver.form(data.X_train)
    solver.prepare(problem, X, data.y_train, job["threads"])
    data_mb = _nbytes(X) / 2**20
    del data, X
    _forget_peak()
    ready_mb = _memory("VmRSS")
    say("start")
    times = [_seconds(solver.fit) for _ in range(job["number"])]
    peak_mb = _memory("VmHWM")
    say("stop")

    out: dict[str, Any] = {"times": times, "extra": solver.extra()}
    out["memory"] = {"start_mb": start_mb, "data_mb": data_mb, "ready_mb": ready_mb, "peak_mb": peak_mb}
    if job["curves"]:
        out["curves"] = solver.curves()
    X_test = solver.form(X_test)
    if job["measure"] == "predict":
        say("start")
        out["fit_times"], out["times"] = times, [_seconds(lambda: solver.predict(X_test)) for _ in range(3)]
        say("stop")
    if job["kernel_pass"]:
        X_train = solver.form(storage.load(job["data"]).X_train)
        out["kernel_pass"] = min(_seconds(lambda: solver.predict(X_train)) for _ in range(2))
    storage.save_model(solver.model(X_test), folder / "model.npz")
    return out


def _seconds(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _warm_up(solver: Any, problem: Any, header: dict[str, Any], threads: int) -> None:
    """A fit and a prediction on 60 random rows with the data's width, type and format."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = rng.random((60, header["features"])).astype(header["dtype"])
    if header["sparse"]:
        X = sp.csr_matrix(X * (rng.random(X.shape) < 0.1))
    y = np.resize(header["classes"], 60) if header["classes"] else rng.random(60)
    rows = solver.form(X)
    solver.prepare(problem, rows, y, threads)
    solver.fit()
    solver.predict(rows)


def _memory(field: str) -> float:
    """VmRSS (now) or VmHWM (peak) of this process in MB; NaN where the system does not say."""
    try:
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")), float("nan"))


def _forget_peak() -> None:
    """Ask Linux to start the peak again from here, so that loading the data does not count as part of the fit."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _nbytes(X: Any) -> int:
    return int(X.nbytes if hasattr(X, "nbytes") else sum(a.nbytes for a in (X.data, X.indices, X.indptr)))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
