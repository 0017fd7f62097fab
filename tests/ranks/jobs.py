"""Under mpiexec: one job by its name. Each prints lines that the tests read, from rank 0 unless said."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import warnings
from typing import Any

import numpy as np

import maxmargin
from maxmargin import spmd
from maxmargin.runtime import Mpi
from maxmargin.spmd import command

warnings.simplefilter("ignore")
COMM = Mpi()
RANK, SIZE = COMM.rank, COMM.size


def blobs(n: int = 600, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    return rng.normal(size=(n, 5)) + 1.5 * np.eye(classes, 5)[y], y


def mine(n: int) -> slice:
    """Uneven: rank 0 has half of the rows."""
    cuts = np.append([0, n // 2 if SIZE > 1 else n], np.linspace(n // 2, n, SIZE)[1:]).astype(int)
    return slice(cuts[RANK], cuts[RANK + 1])


def say(**values: Any) -> None:
    if RANK == 0:
        print(json.dumps(values), flush=True)


def linear() -> None:
    """Every linear machine, and whether all ranks have the same bits."""
    X, y = blobs(classes=3)
    here, target = mine(len(y)), X @ np.arange(5.0) + np.sin(9 * X[:, 0])
    cases = [(spmd.LinearSVC, maxmargin.LinearSVC, y, {"solver": solver, "loss": loss, "intercept_scaling": scaling})
             for solver in ("ocas", "newton") for loss in ("hinge", "squared_hinge") for scaling in (1.0, None)]
    cases += [(spmd.LinearSVR, maxmargin.LinearSVR, target, {"epsilon": 0.1, "loss": loss})
              for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")]
    for ours, alone, labels, options in cases:
        model = ours(tol=1e-6, **options).fit(X[here], labels[here])
        same = len(set(COMM.share((model.coef_.tobytes(), model.objective_, model.dual_gap_, model.status_)))) == 1
        serial = alone(tol=1e-6, **(options | {"solver": "auto"})).fit(X, labels)
        say(status=model.status_, same=same, objective=model.objective_, lower=model.lower_bound_,
            serial=serial.objective_, serial_lower=serial.lower_bound_)


def callback() -> None:
    """The callback of the last rank raises."""
    X, y = blobs()

    def bad(row: Any) -> None:
        raise ZeroDivisionError("of the last rank's callback")

    machine = spmd.LinearSVC(solver="ocas", tol=1e-12, callback=bad if RANK == SIZE - 1 else None)
    machine.fit(X[mine(600)], y[mine(600)])


def data() -> None:
    X, y = blobs()
    if RANK == SIZE - 1:
        X[-1, 0] = np.nan
    spmd.LinearSVC().fit(X[mine(600)], y[mine(600)])


def memory() -> None:
    """Within a step, where the others wait for a sum."""
    from maxmargin.linear.over_ranks import RankedProblem

    def fill(*args: Any) -> None:
        raise MemoryError("no room for the margins")

    if RANK == SIZE - 1:
        RankedProblem.fill = fill  # type: ignore[method-assign]
    X, y = blobs()
    spmd.LinearSVC().fit(X[mine(600)], y[mine(600)])


def interrupt() -> None:
    """Ctrl-C that only the last rank hears ends the fit on all with the model reached."""
    X, y = blobs()

    def hear(row: Any) -> None:
        if row["iteration"] == 2 and RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGINT)

    machine = spmd.LinearSVC(solver="ocas", loss="hinge", tol=1e-12, max_iter=-1, callback=hear)
    model = machine.fit(X[mine(600)], y[mine(600)])
    say(statuses=COMM.share(model.status_), turns=model.n_iter_)


def limit() -> None:
    X, y = blobs()
    model = spmd.LinearSVC(solver="ocas", loss="hinge", tol=1e-14, max_time=1e-4).fit(X[mine(600)], y[mine(600)])
    say(statuses=COMM.share(model.status_))


def lines_of(path: str) -> None:
    """Command lines of a JSON file, one after the other: their codes, and what each rank says on stderr."""
    with open(path) as file:
        lines = json.load(file)
    for words in lines:
        heard = io.StringIO()
        try:
            with contextlib.redirect_stderr(heard):
                code: Any = command.main(words)
        except SystemExit as end:
            code = end.code
        codes, texts = COMM.share(code), COMM.share(heard.getvalue())
        say(codes=codes, texts=texts)


if __name__ == "__main__":
    if sys.argv[1] == "lines_of":
        lines_of(sys.argv[2])
    for job in sys.argv[1:] if sys.argv[1] != "lines_of" else []:
        globals()[job]()
