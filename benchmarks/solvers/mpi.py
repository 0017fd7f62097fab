"""maxmargin.spmd under mpiexec on this machine: one thread per rank, the ranks started and the rows read beforehand.

options: ranks, and partition ("rows": the PSMO paper's scheme, replicated data) for the kernel machines.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import KERNEL_TASKS, Data, KernelModel, LinearModel, Model, PairsModel, Problem
from benchmarks.solvers._kernel import CLASS_NAMES, KernelMachine
from benchmarks.worker import die_with_parent


def program() -> str | None:
    """mpiexec: that of the package mpich beside Python, else the system's."""
    beside = pathlib.Path(sys.executable).parent / "mpiexec"
    return str(beside.resolve()) if beside.exists() else shutil.which("mpiexec")


class Ranks(KernelMachine):
    name = "maxmargin-mpi"
    requires = ("mpi4py",)
    package = "maxmargin"
    ours = True
    tasks = (*KERNEL_TASKS, "linear")

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        if reason is None and program() is None:
            return "there is no mpiexec (pip install mpich)"
        if reason is None and importlib.util.find_spec("maxmargin.spmd") is None:
            return "this maxmargin has no maxmargin.spmd"
        if reason is None:
            import maxmargin.spmd

            if not hasattr(maxmargin.spmd, self.machine(problem)):
                return f"this maxmargin.spmd has no {self.machine(problem)}"
        return reason

    def machine(self, problem: Problem) -> str:
        return "LinearSVC" if problem.task == "linear" else CLASS_NAMES[problem.task]

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        options = dict(problem.options)
        ranks, partition = int(options.pop("ranks")), options.pop("partition", None)
        self.linear = problem.task == "linear"
        if self.linear:
            names = ("C", "loss", "tol", "fit_intercept")
            parameters = {name: getattr(problem, name) for name in names} | {"intercept_scaling": None, "max_iter": -1}
        else:
            parameters = self.parameters(problem, 1)
            parameters["cache_size"] = problem.cache_size / ranks  # as much memory for all ranks as for one process
        self.folder = tempfile.TemporaryDirectory(prefix="maxmargin-mpi-")
        folder = pathlib.Path(self.folder.name)
        np.save(folder / "y.npy", y)
        for name in ("data", "indices", "indptr") if sp.issparse(X) else ():
            np.save(folder / f"{name}.npy", getattr(X, name))
        if not sp.issparse(X):
            np.save(folder / "X.npy", X)
        classes = np.unique(y).tolist() if problem.task in ("svc", "nu_svc", "linear") else []
        job = {"machine": self.machine(problem), "parameters": parameters | {"n_jobs": 1} | options,
               "fit": {} if partition in (None, "columns") else {"partition": partition},
               "features": X.shape[1], "dtype": str(X.dtype), "sparse": sp.issparse(X), "classes": classes}  # fmt: skip
        (folder / "job.json").write_text(json.dumps(job))
        words = [program(), "-n", str(ranks), sys.executable, "-m", "benchmarks.ranked", str(folder)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.job = subprocess.Popen(
            words, env=environment, preexec_fn=die_with_parent, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        atexit.register(self.end)
        self.said: dict[str, Any] = {}
        if self._answer() != "ready\n":
            raise RuntimeError("the ranks did not start")

    def fit(self) -> None:
        assert self.job.stdin is not None
        self.job.stdin.write("fit\n")
        self.job.stdin.flush()
        self.said = json.loads(self._answer())

    def _answer(self) -> str:
        assert self.job.stdout is not None
        line = self.job.stdout.readline()
        if not line:
            raise RuntimeError("the ranks have ended without an answer")
        return line

    def end(self) -> None:
        """Ranks that wait for a word take the cores of others."""
        if self.job.poll() is None:
            assert self.job.stdin is not None
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self.job.stdin.write("end\n")
                self.job.stdin.close()
                self.job.wait(30)
        self.job.kill()

    def predict(self, X: Any) -> np.ndarray:
        self.end()
        model = pickle.loads((pathlib.Path(self.folder.name) / "model.pkl").read_bytes())
        return np.asarray(model.predict(X))

    def model(self, X_test: Any) -> Model:
        with np.load(pathlib.Path(self.folder.name) / "model.npz") as arrays:
            coef, intercept = arrays["coef"], arrays["intercept"]
            if self.linear:
                return LinearModel(coef.ravel(), float(intercept[0]), False)
            if len(intercept) > 1:
                return PairsModel(coef, intercept, arrays["support"], arrays["n_support"])
            return KernelModel(coef.ravel(), float(intercept[0]), arrays["support"])

    def extra(self) -> dict[str, float]:
        self.end()
        ranks = self.said["ranks"]
        kinds = {
            "reduced": ("allreduce",),
            "gathered": ("allgather", "gather", "counts", "share"),
            "dealt": ("alltoall",),
            "cast": ("bcast",),
        }
        sent = {f"{name}_bytes": max(sum(r["sent"].get(kind, 0) for kind in parts) for r in ranks)
                for name, parts in kinds.items()}  # fmt: skip
        return {
            "turns": self.said["turns"],
            "rank_seconds": self.said["seconds"],
            "converged": float(self.said["status"] == "converged"),
            "messages": float(max(sum(r["calls"].values()) for r in ranks)),
            "used_mb": float(max(r["used_mb"] for r in ranks)),
            "rank_data_mb": float(max(r["data_mb"] for r in ranks)),
            **{name: float(value) for name, value in sent.items()},
        }
