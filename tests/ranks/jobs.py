"""Under mpiexec: one job by its name. Each prints lines that the tests read, from rank 0 unless said."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import sys
import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from exact_cases import mark

import maxmargin
from maxmargin import _core, spmd
from maxmargin.runtime import Mpi
from maxmargin.runtime import interrupt as ctrl_c
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


def bad(row: Any) -> None:
    if RANK == SIZE - 1:
        raise ZeroDivisionError("of the last rank's callback")


def callback() -> None:
    """The callback of the last rank raises."""
    X, y = blobs()
    spmd.LinearSVC(solver="ocas", tol=1e-12, callback=bad).fit(X[mine(600)], y[mine(600)])


def kernel_callback() -> None:
    X, y = blobs()
    spmd.SVC(callback=bad).fit(X[mine(600)], y[mine(600)])


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


def kernel_memory() -> None:
    """In a call of the core, which asks for a cache of 9 MB and gets none, while the others wait for an exchange."""
    from maxmargin.kernel_values import SharedValues

    whole = SharedValues.part

    def part(self: Any, *args: Any) -> Any:
        if sys.platform != "linux":  # where this limit has no meaning
            raise MemoryError("std::bad_alloc")
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 20),) * 2)
        return whole(self, *args)

    if RANK == SIZE - 1:
        SharedValues.part = part  # type: ignore[method-assign]
    X, y = blobs(3000)
    spmd.SVC(n_jobs=1).fit(X[mine(3000)], y[mine(3000)])


def interrupt() -> None:
    """Ctrl-C that only the last rank hears ends the fit on all with the model reached."""
    X, y = blobs()

    def hear(row: Any) -> None:
        if row["iteration"] == 2 and RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGINT)

    machine = spmd.LinearSVC(solver="ocas", loss="hinge", tol=1e-12, max_iter=-1, callback=hear)
    model = machine.fit(X[mine(600)], y[mine(600)])
    say(statuses=COMM.share(model.status_), turns=model.n_iter_)


def kernel_interrupt() -> None:
    """The same for kernel machines: of the last rank, in a fit of several pairs of classes; the next fit is a new one."""
    X, y = blobs(classes=3)
    here = mine(600)
    ctrl_c.TWICE = 0.0  # the one before was another's

    def hear(row: Any) -> None:
        if row["iteration"] == 5 and RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGINT)

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = spmd.SVC(C=100.0, working_set_size=8, tol=1e-6, callback=hear).fit(X[here], y[here])
    say(statuses=COMM.share(model.status_), turns=model.n_iter_.tolist(), same=same(model),
        warnings=COMM.share([str(warning.message) for warning in heard]), right=float(np.mean(model.predict(X) == y)))
    say(statuses=COMM.share(spmd.SVC().fit(X[here], y[here]).status_))


def slow() -> None:
    """A fit that takes long; it says when it is under way, and each rank how it ended."""
    X, y = blobs()

    def pause(row: Any) -> None:
        if row["iteration"] == 3:
            say(going=True)
        time.sleep(0.02)

    machine = spmd.SVC(C=1e4, gamma=10.0, tol=1e-9, working_set_size=4, max_time=100.0, callback=pause)
    model = machine.fit(X[mine(600)], y[mine(600)])
    say(statuses=COMM.share(model.status_), same=same(model), gap=model.dual_gap_)


def same(model: Any) -> bool:
    """Whether all ranks have the same bits of what was fitted; in the trace are the clocks of each."""
    first, *others = COMM.share({name: value for name, value in mark(model).items() if name != "trace_"})
    return all(other == first for other in others)


def levels() -> None:
    """Machines on ranks whose cores are of different instruction sets: other bits of every kernel value and dot product."""
    say(levels=COMM.share(_core.ISA))
    X, y = blobs(1400, 3)
    two, target = y % 2, np.sin(X[:, 0]) + 0.1 * X[:, 1]
    sparse = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    for name, rows, labels, options in (
        ("SVC", X, two, {"C": 3.0, "tol": 1e-4}), ("SVC", sparse, y, {"C": 3.0, "tol": 1e-4, "working_set_size": 200}),
        ("SVR", X.astype(np.float32), target, {"tol": 1e-4, "working_set_size": 200}),
        ("LinearSVC", X, y, {"loss": "hinge", "solver": "ocas", "tol": 1e-6}), ("LinearSVC", sparse, two, {"tol": 1e-8}),
        ("LinearSVR", X, target, {"tol": 1e-6, "intercept_scaling": None}),
    ):  # fmt: skip
        here = mine(rows.shape[0])
        model = getattr(spmd, name)(**options).fit(rows[here], labels[here])
        alone = getattr(maxmargin, name)(**options).fit(rows, labels)
        say(name=name, status=model.status_, same=same(model), objective=model.objective_, serial=alone.objective_,
            gaps=model.dual_gap_ + alone.dual_gap_)


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
