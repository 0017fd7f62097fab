"""Readers and writers of files: what is timed as a fit is one `load` (or `save`) of the training rows.

`prepare` writes the file, which is then in the system's memory: disks are not measured. All readers give float64 values
and labels. `extra` has the file's size, that of the result, and sums that must be the same for all readers.
"""

from __future__ import annotations

import importlib
import pathlib
import tempfile
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, Predictions, Problem, Solver

SUFFIX = {"read": ".svm", "read gzip": ".svm.gz", "read csv": ".csv", "write": ".svm"}


class _Files(Solver):
    tasks = ("files",)
    stores_kernel = False
    actions: tuple[str, ...] = ("read", "read gzip", "write")

    def skip(self, problem: Problem, data: Data) -> str | None:
        reason = super().skip(problem, data)
        return reason or (None if problem.options["action"] in self.actions else "has no such action")

    def prepare(self, problem: Problem, X: Any, y: np.ndarray, threads: int) -> None:
        from maxmargin import data

        self.threads, self.action, self.n_features = threads, problem.options["action"], X.shape[1]
        self.folder = tempfile.TemporaryDirectory(prefix="maxmargin-files-")
        self.path = pathlib.Path(self.folder.name) / f"rows{SUFFIX[self.action]}"
        csv = self.action == "read csv"
        data.save(self.path, X.toarray() if csv and sp.issparse(X) else X, y)
        self.size = self.path.stat().st_size
        if self.action == "write":
            self.rows = (sp.csr_matrix(X), np.asarray(y, dtype=np.float64))
            self.path = self.path.with_name("written.svm")

    def fit(self) -> None:
        if self.action == "write":
            self.write(*self.rows)
        else:
            self.rows: Any = None  # those of the turn before: the peak of memory is that of one
            self.rows = self.read()

    def read(self) -> tuple[Any, Any]:
        raise NotImplementedError

    def write(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros(X.shape[0])

    def model(self, X_test: Any) -> Predictions:
        return Predictions(np.zeros(X_test.shape[0]))

    def extra(self) -> dict[str, float]:
        if self.action == "write":
            self.size = self.path.stat().st_size
        X, y = self.rows
        parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [np.asarray(X)]
        return {
            "file_mb": self.size / 2**20,
            "result_mb": (sum(part.nbytes for part in parts) + np.asarray(y).nbytes) / 2**20,
            "rows": X.shape[0],
            "values": float(np.abs(parts[0]).sum(dtype=np.float64)),
            "labels": float(np.sum(y)),
        }


class Ours(_Files):
    """maxmargin.data"""

    name = "maxmargin-files"
    package = "maxmargin"
    ours = True
    actions = ("read", "read gzip", "read csv", "write")

    def read(self) -> tuple[Any, Any]:
        from maxmargin import data

        X, y = data.load(self.path, n_jobs=self.threads)
        return X, y

    def write(self, X: Any, y: Any) -> None:
        from maxmargin import data

        data.save(self.path, X, y, n_jobs=self.threads)


class ScikitLearn(_Files):
    """load_svmlight_file and dump_svmlight_file"""

    name = "scikit-learn-files"
    package = "scikit-learn"

    def read(self) -> tuple[Any, Any]:
        from sklearn.datasets import load_svmlight_file

        X, y = load_svmlight_file(str(self.path))
        return X, y

    def write(self, X: Any, y: Any) -> None:
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(X, y, str(self.path), zero_based=False)


class Libsvm(_Files):
    """svm_read_problem of LIBSVM's own Python package, into SciPy's arrays"""

    name = "libsvm-files"
    requires = ("libsvm",)
    package = "libsvm-official"
    actions = ("read",)

    def read(self) -> tuple[Any, Any]:
        y, X = importlib.import_module("libsvm.svmutil").svm_read_problem(str(self.path), return_scipy=True)
        return X, y


class Pandas(_Files):
    """read_csv with its default parser, which rounds most numbers correctly"""

    name = "pandas-files"
    requires = ("pandas",)
    package = "pandas"
    actions = ("read csv",)
    engine = "c"

    def read(self) -> tuple[Any, Any]:
        import pandas as pd

        table = pd.read_csv(self.path, header=None, dtype=np.float64, engine=self.engine).to_numpy()
        return table[:, 1:], table[:, 0]


class PandasArrow(Pandas):
    """read_csv with pyarrow's parser, which uses threads"""

    name = "pandas-pyarrow-files"
    requires = ("pandas", "pyarrow")
    engine = "pyarrow"
