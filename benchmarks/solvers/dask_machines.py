"""maxmargin.dask's machines on a cluster of this machine: a scheduler and workers of one thread each, as processes."""

from __future__ import annotations

import atexit
import ctypes
import importlib
import importlib.util
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.base import Data, Model, Predictions, Problem
from benchmarks.solvers._kernel import KernelMachine

PARTITIONS = 8  # per fit, whatever the number of workers: the same blocks, and so the same model
WARM = ("maxmargin", "maxmargin.dask")  # imported by workers and scheduler, who reads graphs, before the clock runs


class Cluster:
    """Started from the command line, as a user would; ended with this process at the latest."""

    def __init__(self, workers: int) -> None:
        from distributed import Client

        self.file = pathlib.Path(tempfile.mkdtemp()) / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        atexit.register(self.close)
        self._start("dask_scheduler", "--port", "0", "--dashboard-address", ":0")
        for _ in range(workers):
            self._start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        while not self.file.is_file():
            time.sleep(0.05)
        self.client = Client(scheduler_file=str(self.file), set_as_default=False)
        self.client.wait_for_workers(workers, timeout=120)
        self.client.run(_warm)
        self.client.run_on_scheduler(_warm)

    def _start(self, kind: str, *args: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.{kind}", "--scheduler-file", str(self.file), *args]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.processes.append(subprocess.Popen(command, env=environment, preexec_fn=_die_with_parent, **quiet))

    def kill_worker(self) -> None:
        """The last one, without farewell."""
        process = self.processes.pop()
        process.kill()
        process.wait()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []


def _die_with_parent() -> None:
    """In a child, before it starts: SIGKILL when this process ends, however it does. A fit over its limit is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, Linux


def _warm() -> None:
    for name in WARM:
        importlib.import_module(name)


def _usage(dask_worker: Any) -> dict[str, float]:
    """On a worker: what it has used since it started."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    moved = sum(transfer["total"] for transfer in dask_worker.transfer_incoming_log)
    return {"seconds": own.ru_utime + own.ru_stime, "peak_mb": own.ru_maxrss / 1024, "moved_mb": moved / 1e6}


class _OnDask(KernelMachine):
    """options: workers, and killed (1: one of them is, after the first cluster is solved)."""

    requires = ("dask", "distributed")
    package = "maxmargin"
    ours = True
    tasks = ("svc",)

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        missing = importlib.util.find_spec("maxmargin.dask") is None
        return reason or ("this maxmargin has no maxmargin.dask" if missing else None)

    def machine(self, problem: Problem, threads: int, **settings: Any) -> Any:
        raise NotImplementedError

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        import dask.array as da
        from distributed import wait

        options = dict(problem.options)
        workers, self.kills = int(options.pop("workers")), bool(options.pop("killed", 0))
        self.cluster = Cluster(workers)
        client = self.cluster.client
        size = -(-X.shape[0] // PARTITIONS)
        self.rows = client.persist(da.from_array(X, chunks=(size, X.shape[1])))
        self.labels = client.persist(da.from_array(y, chunks=size))
        with client.as_current():
            wait([self.rows, self.labels])
        same = {"random_state": 0, "fit_intercept": False, "client": client, "n_jobs": 1}
        self.estimator = self.machine(problem, threads, **same, **options)
        self.before = client.run(_usage)

    def fit(self) -> None:
        self.estimator.fit(self.rows, self.labels)
        self.after = self.cluster.client.run(_usage)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.estimator.to_local().predict(X))

    def model(self, X_test: Any) -> Model:
        return Predictions(self.predict(X_test))

    def extra(self) -> dict[str, float]:
        spent = [use["seconds"] - self.before[name]["seconds"] for name, use in self.after.items()]
        moved = [use["moved_mb"] - self.before[name]["moved_mb"] for name, use in self.after.items()]
        return {
            "worker_seconds": float(sum(spent)),
            "moved_mb": float(sum(moved)),
            "worker_peak_mb": float(max(use["peak_mb"] for use in self.after.values())),
            "workers_left": float(len(self.after)),
        }


class DaskEarly(_OnDask):
    """Early divide and conquer."""

    name = "maxmargin-dask-early"

    def machine(self, problem: Problem, threads: int, **settings: Any) -> Any:
        from maxmargin.dask import DCSVC

        return DCSVC(**self.parameters(problem, threads) | settings, early=True, callback=self._watch)

    def _watch(self, row: dict[str, float]) -> None:
        if self.kills and row["stage"] == 1 and row["solved"] >= 1:
            self.kills = False
            self.cluster.kill_worker()

    def extra(self) -> dict[str, float]:
        own = {"objective": float(self.estimator.level_objective_), "converged": float(self.estimator.status_ == "early")}
        return super().extra() | own | {"n_support": float(len(self.estimator.support_))}


class DaskBudget(_OnDask):
    """BudgetSVC: a model that goes from partition to partition, or (option per_worker) one per worker, merged."""

    name = "maxmargin-dask-budget"

    def machine(self, problem: Problem, threads: int, **settings: Any) -> Any:
        from maxmargin.dask import BudgetSVC

        settings["per_worker"] = bool(settings.get("per_worker", False))
        return BudgetSVC(C=problem.C, gamma=problem.gamma, **settings)

    def extra(self) -> dict[str, float]:
        return super().extra() | {"objective": float(self.estimator.objective_)}
