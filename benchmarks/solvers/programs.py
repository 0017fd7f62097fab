"""Programs as a user starts them: what is timed as a fit is a process, from a text file of samples to a model file.

`prepare` writes the file, which is then in the system's memory. Start-up counts: imports of Python and reading included.
Both models are judged by their support vectors and coefficients, as their files have them.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, KernelModel, Model, Problem, Solver


class _Program(Solver):
    tasks = ("svc",)
    stores_kernel = False  # in another process

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        from maxmargin import data

        self.folder = tempfile.TemporaryDirectory(prefix="maxmargin-program-")
        self.text, self.file = (pathlib.Path(self.folder.name) / name for name in ("rows.svm", "model"))
        self.n_features = X.shape[1]
        data.save(self.text, X, y)
        options = f"-c {problem.C!r} -g {problem.gamma!r} -e {problem.tol!r}".split()
        self.command = [*self.program(problem, threads), *options, str(self.text), str(self.file)]

    def program(self, problem: Problem, threads: int) -> list[str]:
        raise NotImplementedError

    def fit(self) -> None:
        # as installed: with Python's compiled files, which the warm-up writes
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(self.command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)

    def fitted(self) -> Any:
        """The model in the file."""
        import maxmargin

        ours = self.file.read_bytes()[:4] == b"\x89MXM"
        return maxmargin.load(self.file) if ours else maxmargin.load(self.file, n_features=self.n_features)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(self.fitted().predict(X))

    def model(self, X_test: Any) -> Model:
        machine = self.fitted()
        coef = machine.dual_coef_
        coef = np.asarray(coef.toarray() if sp.issparse(coef) else coef, np.float64).ravel()
        return KernelModel(coef, float(machine.intercept_[0]), vectors=machine.support_vectors_)

    def extra(self) -> dict[str, float]:
        return {"text_mb": self.text.stat().st_size / 2**20, "model_mb": self.file.stat().st_size / 2**20}


class Ours(_Program):
    """maxmargin train, at its defaults"""

    name = "maxmargin-train"
    package = "maxmargin"
    ours = True

    def program(self, problem: Problem, threads: int) -> list[str]:
        features = ["--features", str(self.n_features)]  # the last of them need not occur in the text
        return [sys.executable, "-m", "maxmargin", "train", "--quiet", "--jobs", str(threads), *features]

    def extra(self) -> dict[str, float]:
        """Beside the sizes: the fit alone, as the model tells of it."""
        return super().extra() | {"fit_s": float(self.fitted().timings_["total"])}


class SvmTrain(_Program):
    """LIBSVM's svm-train from Debian's libsvm-tools, with a cache of 2,000 MB"""

    name = "svm-train"

    def skip(self, problem: Problem, data: Data) -> str | None:
        missing = None if shutil.which("svm-train") else "svm-train is not installed (Debian's libsvm-tools)"
        return super().skip(problem, data) or missing

    def program(self, problem: Problem, threads: int) -> list[str]:
        return ["svm-train", "-q", "-m", "2000"]
