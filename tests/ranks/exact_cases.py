"""Kernel machines over ranks, and what must hold of each: for ranks that are threads, and for those of mpiexec."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin
from maxmargin import certify_fit, spmd

TOL = 1e-7


@dataclass(frozen=True)
class Case:
    """A machine and the kind of targets it wants: "two", "three" (classes), "words", "numbers", "none"."""

    machine: str
    task: str = "two"
    options: dict[str, Any] = field(default_factory=dict)

    def make(self, module: Any, **more: Any) -> Any:
        return getattr(module, self.machine)(**({"tol": TOL} | self.options | more))


MACHINES = (
    Case("SVC", "two", {"C": 2.0}),
    Case("SVC", "two", {"C": 2.0, "fit_intercept": False}),
    Case("SVC", "three", {"C": 2.0, "class_weight": "balanced"}),
    Case("SVC", "words", {"C": 2.0, "class_weight": {"red": 3.0}}),
    Case("NuSVC", "two", {"nu": 0.3}),
    Case("NuSVC", "three", {"nu": 0.2}),
    Case("NuSVC", "two", {"nu": 0.5, "class_weight": {1: 2.0}}),
    Case("SVR", "numbers", {"C": 2.0}),
    Case("SVR", "numbers", {"C": 2.0, "fit_intercept": False}),
    Case("NuSVR", "numbers", {"C": 2.0, "nu": 0.4}),
    Case("OneClassSVM", "none", {"nu": 0.4}),
)


def problem(task: str, seed: int, n: int, d: int = 3, copies: bool = False) -> tuple[np.ndarray, Any]:
    """Samples and targets; every class has at least three."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if copies:
        X = np.round(X)
    score = X[:, 0] + 0.5 * rng.normal(size=n)
    if task == "none":
        return X, None
    if task == "numbers":
        return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    classes = 2 if task == "two" else 3
    y = np.digitize(score, [0.0] if classes == 2 else [-0.4, 0.4])
    y[: 3 * classes] = np.arange(3 * classes) % classes
    return X, np.array(["blue", "green", "red"])[y] if task == "words" else y


def in_form(X: np.ndarray, form: str) -> Any:
    """ "dense64", "dense32", "csr64" or "csr32"."""
    X = X.astype(np.float32 if form.endswith("32") else np.float64)
    return sp.csr_matrix(X) if form.startswith("csr") else X


def shard(a: Any, cuts: np.ndarray, rank: int) -> Any:
    """Rank r's rows are those from cuts[r] to cuts[r + 1]."""
    return None if a is None else a[cuts[rank] : cuts[rank + 1]]


def fit_shard(
    case: Case, comm: Any, X: Any, y: Any, weight: Any, cuts: np.ndarray, partition: str = "columns", **more: Any
) -> Any:
    """This rank's part of a fit. `fit` is given an MPI communicator or one of ours."""
    rank = comm.rank
    model = case.make(spmd, **more)
    return model.fit(shard(X, cuts, rank), shard(y, cuts, rank), shard(weight, cuts, rank), comm=comm, partition=partition)


def check(model: Any, case: Case, X: Any, y: Any, weight: Any, **more: Any) -> None:
    """The answer over ranks is a solution by an independent judge, and as good as the one of a single process."""
    alone = case.make(maxmargin, **more).fit(X, y, weight)
    assert model.status_ == alone.status_ == "converged"
    tol = alone.tol
    unsure = 1e-6 * max(abs(alone.objective_), 1.0) if tol == TOL else model.dual_gap_ + alone.dual_gap_  # from the optimum
    assert abs(model.objective_ - alone.objective_) <= unsure + 1e-9
    assert model.dual_gap_ >= 0
    assert model.kkt_violation_ <= tol
    if "class_weight" not in case.options or case.machine != "NuSVC":
        judged = certify_fit(model, X, y, weight)
        assert judged.violation <= 2 * tol + 1e-9
        assert abs(judged.gap - model.dual_gap_) <= 1e-5 * abs(model.objective_) + 1e-2 * judged.gap + 1e-7
        assert judged.infeasibility <= 1e-9
    if y is not None and case.task != "numbers":
        assert np.array_equal(model.classes_, alone.classes_)
    assert model.shape_fit_ == X.shape
    vectors = X[model.support_]
    found = model.support_vectors_  # support_ names rows of all ranks
    assert (vectors != found).nnz == 0 if sp.issparse(X) else np.array_equal(vectors, found)
    np.testing.assert_allclose(score(model, X), score(alone, X), atol=max(1e-3, 30 * tol))


def score(model: Any, X: Any) -> Any:
    """Decision values by pairs of classes, in the units of the problem: ν-SVC divides them by a margin that may be small."""
    if not hasattr(model, "decision_function"):
        return model.predict(X)
    shape = {"decision_function_shape": "ovo"} if hasattr(model, "classes_") else {}
    values = model.set_params(**shape).decision_function(X)
    return values * np.abs(model.margin_) if hasattr(model, "margin_") else values


def mark(model: object) -> dict[str, int]:
    """Of what must be the same on all ranks: a checksum of each fitted attribute."""

    def content(value: object) -> bytes:
        if sp.issparse(value):
            return b"".join(part.tobytes() for part in (value.data, value.indices, value.indptr))
        return value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()

    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name != "timings_"}
    return {name: zlib.crc32(content(value)) for name, value in fitted.items()}


def same_model(a: Any, b: Any) -> bool:
    """Whether two ranks have the same model, to the last bit, and the same report of it."""
    fitted = [name for name in vars(a) if name.endswith("_") and name != "timings_"]
    assert fitted == [name for name in vars(b) if name.endswith("_") and name != "timings_"]

    def same(x: Any, z: Any) -> bool:
        if sp.issparse(x):
            return bool((x != z).nnz == 0)
        if isinstance(x, np.ndarray) and x.dtype.names:
            return all(np.array_equal(x[name], z[name], equal_nan=True) for name in x.dtype.names)
        return np.array_equal(x, z, equal_nan=np.asarray(x).dtype.kind == "f")  # not known in time: NaN on all

    return all(same(getattr(a, name), getattr(b, name)) for name in fitted)
