"""Fits every machine on problems large enough to be shared between threads, and prints what they answer, bit for bit.

    python tests/native/every_machine.py 1 2 3                     for n_jobs = 1, 2 and 3
    python tests/native/every_machine.py 2 --each-once --not DC    one problem per machine, none whose name begins with DC

Run by tests/unit/test_threads.py in environments of all kinds.
"""

import argparse
import hashlib
import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

# What two fits of the same problem have in common whatever the clock says.
_ANSWERS = (
    "coef_", "dual_coef_", "intercept_", "support_", "support_vectors_", "n_iter_", "objective_", "dual_gap_",
    "kkt_violation_",
)  # fmt: skip


def problems() -> Iterator[tuple[str, Any, Any, NDArray[Any]]]:
    """Name, machine, samples, labels. Few features and easy classes: many rows in little time."""
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(20_001, 3))
    split = np.where(wide[:, 0] + 0.2 * wide[:, 1] ** 2 + 0.1 * rng.normal(size=len(wide)) > 0, 1, -1)
    thirds = np.digitize(wide[:, 0] + 0.1 * rng.normal(size=len(wide)), [-0.5, 0.5])
    words = sp.random(6000, 3000, 0.004, "csr", random_state=0)
    topic = np.where(words @ rng.normal(size=3000) > 0, 1, -1)
    small, sign, height = wide[:2000], split[:2000], np.sin(wide[:2000, 0])

    yield "SVC", SVC(C=0.1, kernel="linear", tol=0.1), wide, split
    yield "SVC rbf", SVC(C=1.0, gamma=0.5), small.astype(np.float32), sign
    yield "SVC classes", SVC(C=1.0, gamma=0.5), small, thirds[:2000]
    yield "SVC sparse", SVC(C=1.0, gamma=0.5), words[:2000], topic[:2000]
    yield "SVC ipm", SVC(C=1.0, gamma=0.5, inner_solver="ipm", working_set_size=128), small[:400], sign[:400]
    yield "SVC gpm", SVC(C=1.0, gamma=0.5, inner_solver="gpm", working_set_size=128), small[:400], sign[:400]
    yield "NuSVC", NuSVC(nu=0.2, gamma=0.5), small, sign
    yield "SVR", SVR(C=1.0, gamma=0.5), small, height
    yield "NuSVR", NuSVR(nu=0.2, gamma=0.5), small[:1000], height[:1000]
    yield "OneClassSVM", OneClassSVM(nu=0.05, gamma=0.5), small, sign
    yield "DCSVC", DCSVC(C=1.0, gamma=0.5, levels=1, sample_size=200, random_state=0), small, sign
    yield "DCSVR", DCSVR(C=1.0, gamma=0.5, levels=1, sample_size=200, random_state=0), small, height
    for loss in ("hinge", "squared_hinge"):
        for solver in ("auto", "newton", "ocas", "descent"):
            yield f"LinearSVC {loss} {solver}", LinearSVC(loss=loss, solver=solver, random_state=0), wide, split
        yield f"LinearSVC {loss} sparse", LinearSVC(loss=loss, random_state=0), words, topic
    few = {"penalty": "l1", "tol": 1e-4, "random_state": 0}
    yield "LinearSVC l1", LinearSVC(**few), wide, split
    yield "LinearSVC l1 wide", LinearSVC(**few, C=10.0, fit_intercept=False), words[:300].toarray(), topic[:300]
    yield "LinearSVC l1 sparse", LinearSVC(**few, C=0.12, intercept_scaling=None), words, topic
    yield "LinearSVC classes", LinearSVC(random_state=0), wide, thirds
    yield "LinearSVC joint", LinearSVC(multi_class="crammer_singer", random_state=0), wide, thirds
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        for solver in ("newton", "ocas", "descent"):
            yield f"LinearSVR {loss} {solver}", LinearSVR(loss=loss, solver=solver, random_state=0), small, height
    yield "BudgetSVC", BudgetSVC(budget=30, gamma=0.5, epochs=1, random_state=0), small, sign


def digest(value: Any) -> str:
    array = np.ascontiguousarray(value.toarray() if sp.issparse(value) else value)
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


def answer(machine: Any, X: Any, y: NDArray[Any], n_jobs: int) -> dict[str, Any]:
    model = machine.set_params(n_jobs=n_jobs).fit(X, y)
    values = {name: getattr(model, name) for name in _ANSWERS if hasattr(model, name)}
    values["decision_function"] = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return {"status": model.status_, "objective": model.objective_, **{name: digest(v) for name, v in values.items()}}


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("n_jobs", type=int, nargs="+")
    parser.add_argument("--each-once", action="store_true")
    parser.add_argument("--not", dest="without", default="no machine")
    args = parser.parse_args()
    seen = set()
    for name, machine, X, y in problems():
        if (args.each_once and type(machine) in seen) or name.startswith(args.without):
            continue
        seen.add(type(machine))
        for n in args.n_jobs:
            print(json.dumps({"name": name, "n_jobs": n, **answer(machine, X, y, n)}), flush=True)


if __name__ == "__main__":
    main()
