"""Run by mpiexec (test_exact_mpi.py): every kernel machine over the ranks of one job, judged on each of them.

All rows are made on all ranks, from one seed; each rank hands over its share. Rank 0 prints a line per case, and "done".
"""

from __future__ import annotations

import sys

import numpy as np
from exact_cases import MACHINES, Case, check, fit_shard, in_form, mark, problem
from mpi4py import MPI

import maxmargin
from maxmargin import spmd
from maxmargin.runtime import Mpi

world = MPI.COMM_WORLD
KERNELS = ("rbf", "linear", "poly", "laplacian", "sigmoid")
FORMS = ("dense64", "csr64", "dense32", "csr32")


def one(k: int, case: Case, n: int, **more: object) -> None:
    X, y = problem(case.task, k, n)
    kernel = KERNELS[k % len(KERNELS)]
    X = in_form(0.3 * X if kernel in ("linear", "poly") else X, FORMS[k % len(FORMS)])
    options = {"kernel": kernel, "gamma": 0.1, "coef0": -0.1 if kernel == "sigmoid" else 0.5, "working_set_size": 20, **more}
    cuts = np.array([0] + [n // 3 if rank == 0 else n for rank in range(world.size)])  # beyond the second rank none
    cuts[-1] = n
    model = fit_shard(case, Mpi(world) if k % 2 else world, X, y, None, cuts, **options)
    check(model, case, X, y, None, **options)
    marks = world.allgather(mark(model))
    assert all(other == marks[0] for other in marks), [name for name in marks[0] if marks[0][name] != marks[-1][name]]
    if world.rank == 0:
        print(case.machine, case.task, kernel, FORMS[k % len(FORMS)], model.status_, flush=True)


def stopped() -> None:
    X, y = problem("two", 1, 400)
    rows = slice(world.rank, None, world.size)
    seen: list[float] = []
    model = spmd.SVC(C=100, working_set_size=4, tol=1e-6, callback=lambda row: seen.append(1) or len(seen) == 3)
    model.fit(X[rows], y[rows])  # COMM_WORLD
    assert model.status_ == "callback"
    assert model.n_iter_.sum() == 3
    local = model.to_local()
    assert type(local) is maxmargin.SVC
    assert np.array_equal(local.predict(X), model.predict(X))


if __name__ == "__main__":
    for k, case in enumerate(MACHINES):
        one(k, case, 90)
    one(0, MACHINES[0], 1500, tol=1e-3, working_set_size=100)  # float32 values, shrinking
    stopped()
    if world.rank == 0:
        print("done", flush=True)
    sys.exit(0)
