"""One timed job in a process of its own: `python -m benchmarks.worker <job folder>`, started by harness.py.

A fresh process per fit gives every solver the same cold heap, makes its peak memory measurable, and can be killed when
its time is up. Events go to the pipe that was stdout, one JSON object per line: start and stop around what is timed,
done or error at the end; whatever a solver prints goes nowhere. Order: pin the threads, import, warm up on a toy
problem of the same kind (thread pools, lazy imports), load the data, touch and free memory, fit against the clock.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import pathlib
import signal
import sys
import time
import warnings
from typing import Any

TOUCHED_MB = 256  # more than a fit needs beside its data and its cache


def main(folder: pathlib.Path) -> None:
    job = json.loads((folder / "job.json").read_text())
    with os.fdopen(os.dup(1), "w", buffering=1) as pipe:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

        def say(event: str, **more: Any) -> None:
            pipe.write(json.dumps({"event": event, **more}) + "\n")

        try:
            die_with_parent()
            _pin(job["cores"])
            say("done", **_measure(job, folder, say))
        except Exception as error:
            message = str(error).strip()
            say("error", reason=f"{type(error).__name__}: {message.splitlines()[0] if message else ''}")


def die_with_parent() -> None:
    """A harness that is killed must not leave a fit behind that takes the cores of the next run. (Linux only.)"""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _pin(cores: list[int]) -> None:
    """Let this process run on these cores only. (The *_NUM_THREADS variables were set by the parent.)"""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def _measure(job: dict[str, Any], folder: pathlib.Path, say: Any) -> dict[str, Any]:
    from benchmarks import base, neighbours, storage

    warnings.simplefilter("ignore")
    make = base.discover("solvers")[job["solver"]]
    problem = base.Problem(**job["problem"])
    header = json.loads((pathlib.Path(job["data"]) / "header.json").read_text())
    _warm_up(make(), problem, header, job["threads"])
    start_mb = _memory("VmRSS")

    solver = make()
    X, y = storage.load_train(job["data"])
    X = solver.form(X)
    solver.prepare(problem, X, y, job["threads"])
    data_mb = _nbytes(X) / 2**20
    if job["timed"]:
        kernel_mb = 4 * X.shape[0] ** 2 / 2**20 if solver.stores_kernel else 0.0
        _touch_memory(min(TOUCHED_MB + problem.cache_size, kernel_mb) + 4 * data_mb + 64)
    del X, y
    known = _forget_peak()
    ready_mb = _memory("VmRSS")
    say("start")
    before = _cpu_seconds()
    twins = neighbours.twins(solver.fit, job["cores"], die_with_parent) if job["twins"] else contextlib.nullcontext()
    with neighbours.busy(job["cores"], job["neighbours"]), twins:  # their processes are our children: not among the others
        times = [_seconds(solver.fit) for _ in range(job["number"])]
    others = _others(before, _cpu_seconds())
    peak_mb = _memory("VmHWM") if known else float("nan")
    say("stop")

    out: dict[str, Any] = {"times": times, "others": others, "extra": solver.extra()}
    out["memory"] = {"start_mb": start_mb, "data_mb": data_mb, "ready_mb": ready_mb, "peak_mb": peak_mb}
    if job["curves"]:
        out["curves"] = solver.curves()
    X_test = solver.form(storage.load_test(job["data"]))
    if job["measure"] == "predict" or job["predict"]:
        _touch_memory(TOUCHED_MB)
        say("start")
        out["predict_times"] = _predict_times(solver, X_test)
        say("stop")
    if job["measure"] == "predict":
        out["fit_times"], out["times"] = times, out.pop("predict_times")
    if job["kernel_pass"]:
        X_train = solver.form(storage.load_train(job["data"])[0])
        out["kernel_pass"] = min(_seconds(lambda: solver.predict(X_train)) for _ in range(2))
    storage.save_model(solver.model(X_test), folder / "model.npz")
    return out


def _predict_times(solver: Any, X: Any) -> list[float]:
    """Three predictions, or fewer where they take long."""
    times: list[float] = []
    while len(times) < 3 and sum(times) < 5.0:
        times.append(_seconds(lambda: solver.predict(X)))
    return times


def _seconds(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _cpu_seconds() -> tuple[float, float, float] | None:
    """Now, the CPU time that all programs (and other guests of the host) have taken, and what this one has and those that it
    started; Linux only."""
    try:
        fields = pathlib.Path("/proc/stat").read_text().split(maxsplit=11)[1:9]
        user, nice, system, _, _, irq, softirq, steal = (float(field) for field in fields)
    except (OSError, ValueError):
        return None
    own = os.times()
    everybody = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    mine = own.user + own.system + own.children_user + own.children_system + _of_living_children()
    return time.monotonic(), everybody, mine


def _of_living_children() -> float:
    """The CPU time of the processes that this one has started and that still run, such as a Dask cluster, and of theirs.

    What ended is counted by who waited for it.
    """
    children: dict[int, list[tuple[int, int]]] = {}  # parent: (process, ticks of its own and of those it waited for)
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it may end while we look
            fields = path.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append((int(path.parent.name), sum(map(int, fields[11:15]))))
    ticks, parents = 0, [os.getpid()]
    while parents:
        for process, spent in children.get(parents.pop(), []):
            ticks += spent
            parents.append(process)
    return ticks / os.sysconf("SC_CLK_TCK")


def _others(before: tuple[float, float, float] | None, after: tuple[float, float, float] | None) -> list[float]:
    """[the share of the machine that others took in between], or [] where the system does not say.

    The system counts in hundredths of a second per core: shorter times say nothing and count as 0.
    """
    if before is None or after is None:
        return []
    elapsed, everybody, own = (b - a for a, b in zip(before, after))
    count = os.cpu_count() or 1
    foreign = everybody - own - count / os.sysconf("SC_CLK_TCK")
    return [round(max(0.0, foreign / (elapsed * count)), 3)]


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


def _forget_peak() -> bool:
    """Ask Linux to start the peak again from here, so that what came before does not count as part of the fit."""
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _touch_memory(megabytes: float) -> None:
    """Write to so much memory, by huge pages where there are any, and give it back to the system.

    A virtual machine hands out memory that nobody has used for a while at up to 3 ns per byte: a second for a cache of
    300 MB, and by chance for one solver and not for the next. So the system gets it from its host beforehand, for every
    solver alike. It has left the process again when the fit starts, so that the fit's own peak is what is measured.
    """
    size = int(min(megabytes, 0.5 * _free_mb())) << 20
    if not size or sys.platform != "linux":
        return
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        with contextlib.suppress(OSError):  # a kernel without huge pages
            area.madvise(mmap.MADV_HUGEPAGE)
        for start in range(0, size, mmap.PAGESIZE):
            area[start] = 1


def _free_mb() -> float:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (ValueError, OSError):
        return 0.0


def _nbytes(X: Any) -> int:
    return int(X.nbytes if hasattr(X, "nbytes") else sum(a.nbytes for a in (X.data, X.indices, X.indptr)))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
