"""A Dask scheduler and two single-thread workers, each a process of its own, started from the command line; a Ray."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import dask
import joblib
import pytest

pytest.importorskip("distributed")
from distributed import Client


def _die_with_parent() -> None:
    """In a child, before it starts: tests that are killed leave no cluster behind (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    """The processes, by name; `client` talks to them."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.file, self.processes = folder / "scheduler.json", {}
        self._start("scheduler", "--port", "0", "--dashboard-address", ":0")
        for k in range(workers):
            self.add(f"worker-{k}")
        self.client = Client(self._address(), set_as_default=False)
        self.client.wait_for_workers(workers, timeout=60)

    def _start(self, kind: str, *args: str, name: str = "scheduler") -> None:
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind, "--scheduler-file", str(self.file), *args]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.processes[name] = subprocess.Popen(command, env=environment, preexec_fn=_die_with_parent, **quiet)

    def _address(self) -> str:
        for _ in range(600):
            try:
                return json.loads(self.file.read_text())["address"]
            except (OSError, ValueError, KeyError):
                time.sleep(0.1)
        raise RuntimeError("the Dask scheduler did not start")

    def add(self, name: str) -> None:
        self._start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", name, name=name)

    def kill(self, name: str) -> None:
        """As a machine that is taken away: no farewell."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        self.client.close()
        for process in self.processes.values():
            process.kill()
            process.wait()


@contextmanager
def in_this_process(workers):
    """A client whose workers, of one thread each, are threads of this process.

    A worker that needs a client of its own makes it Dask's default: for all tests to come, but for the setting around it.
    """
    options = {"processes": False, "n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with dask.config.set(scheduler=None), Client(set_as_default=False, **options) as made:
        yield made


@pytest.fixture
def one_worker():
    with in_this_process(1) as client:
        yield client


@pytest.fixture(scope="module")
def two_workers():
    with in_this_process(2) as client:
        yield client


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Two workers that every test finds alive: who kills one starts another."""
    made = Cluster(tmp_path_factory.mktemp("dask"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def local_ray():
    """A Ray of two worker processes, known to joblib as "ray"."""
    ray = pytest.importorskip("ray")  # has no wheels for the newest Python
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    register_ray()
    yield ray
    ray.shutdown()


@pytest.fixture
def client(cluster):
    """The client of the cluster; not the default one, unless a test says so."""
    return cluster.client


@pytest.fixture
def on_dask(client):
    """The client, whose cluster is joblib's active backend."""
    with client.as_current(), joblib.parallel_config("dask"):
        yield client
