"""One rank of a measured MPI job: `mpiexec -n P python -m benchmarks.ranked <job folder>`, started by solvers/mpi.py.

Reads its rows, warms up, says so, and fits when rank 0 is told to on stdin. Rank 0 answers with one line of JSON: seconds
between two barriers, turns, and from every rank its traffic and memory. The model goes to a file.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.worker import _forget_peak, _memory, die_with_parent


def main(folder: pathlib.Path) -> None:
    die_with_parent()
    warnings.simplefilter("ignore")
    from maxmargin import spmd
    from maxmargin.runtime import Mpi
    from maxmargin.runtime.comm import Traffic

    comm = Mpi()
    job = json.loads((folder / "job.json").read_text())
    make = getattr(spmd, job["machine"])
    warm, labels = _warm_rows(job)
    make(**job["parameters"]).fit(warm, labels, comm=comm, **job["fit"])
    start_mb = _memory("VmRSS")
    X, y = rows_of(folder, comm.rank, comm.size)
    comm.share(0)  # a barrier
    if comm.rank == 0:
        print("ready", flush=True)
    while comm.bcast(sys.stdin.readline().strip() if comm.rank == 0 else None) == "fit":
        known = _forget_peak()
        ranks, estimator = Mpi(), make(**job["parameters"])
        ranks.share(0)  # a barrier
        ranks.traffic = Traffic()
        before = time.perf_counter()
        model = estimator.fit(X, y, comm=ranks, **job["fit"])
        own = {"sent": dict(ranks.traffic.sent), "calls": dict(ranks.traffic.calls), "data_mb": _megabytes(X),
               "used_mb": (_memory("VmHWM") if known else float("nan")) - start_mb}  # fmt: skip
        ranks.share(0)
        seconds = time.perf_counter() - before
        every = comm.share(own)
        if comm.rank == 0:
            _save(model, folder)
            turns = float(np.sum(model.n_iter_))
            print(json.dumps({"seconds": seconds, "turns": turns, "status": model.status_, "ranks": every}), flush=True)


def rows_of(folder: pathlib.Path, rank: int, size: int) -> tuple[Any, Any]:
    """This rank's share of consecutive rows."""
    y = np.load(folder / "y.npy", mmap_mode="r")
    part = slice(len(y) * rank // size, len(y) * (rank + 1) // size)
    if not (folder / "indptr.npy").exists():
        return np.array(np.load(folder / "X.npy", mmap_mode="r")[part]), np.array(y[part])
    pointer = np.load(folder / "indptr.npy")
    cut = slice(pointer[part.start], pointer[part.stop])
    data, indices = (np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[cut]) for name in ("data", "indices"))
    width = json.loads((folder / "job.json").read_text())["features"]
    indptr = (pointer[part.start : part.stop + 1] - pointer[part.start]).astype(indices.dtype)
    return sp.csr_matrix((data, indices, indptr), shape=(part.stop - part.start, width)), np.array(y[part])


def _warm_rows(job: dict[str, Any]) -> tuple[Any, Any]:
    """A toy problem of the same kind on every rank."""
    rng = np.random.default_rng(0)
    X = rng.random((60, job["features"])).astype(job["dtype"])
    y = np.resize(job["classes"], 60) if job["classes"] else rng.random(60)
    return (sp.csr_matrix(X * (rng.random(X.shape) < 0.1)) if job["sparse"] else X), y


def _save(model: Any, folder: pathlib.Path) -> None:
    arrays = {"intercept": np.ravel(model.intercept_)}
    if hasattr(model, "support_"):
        dual = model.dual_coef_
        arrays |= {"coef": np.asarray(dual.todense() if sp.issparse(dual) else dual), "support": model.support_}
        if hasattr(model, "n_support_"):
            arrays["n_support"] = np.ravel(model.n_support_)
    else:
        arrays["coef"] = np.atleast_2d(model.coef_)
    np.savez(folder / "model.npz", **arrays)
    import pickle

    (folder / "model.pkl").write_bytes(pickle.dumps(model.to_local()))


def _megabytes(X: Any) -> float:
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return sum(array.nbytes for array in arrays) / 2**20


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(pathlib.Path(sys.argv[1]))
