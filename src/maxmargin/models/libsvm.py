"""LIBSVM's model files, both ways, for SVC, NuSVC, SVR, NuSVR and OneClassSVM.

    svm_type c_svc
    kernel_type rbf
    gamma 0.5                degree and coef0 where the kernel has them
    nr_class 2
    total_sv 3
    rho 0.1                  one per pair of classes
    label 1 -1               classes only
    nr_sv 1 2                classes only
    SV
    0.7 1:0.5 3:1.25         a coefficient per other class, then the nonzero features, from 1; `0:row` if precomputed

LIBSVM decides pair (i, j), i before j in `label`, by Σ coef K − rho > 0 → i; most votes win, the first in `label` on
ties. Ours: classes are sorted, several vote in the same way with intercept = −rho, and of two the second is positive.
So two classes are written second first, and the file's order is kept for ties (`_vote_order`).
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.estimators.oneclass import OneClassSVM
from maxmargin.estimators.svc import SVC, NuSVC
from maxmargin.estimators.svr import SVR, NuSVR
from maxmargin.models.schema import MACHINES
from maxmargin.models.text import (
    FloatArray,
    Head,
    check_kind,
    features,
    numbers,
    read_text,
    spelled,
    uncertified,
    whole_labels,
    write_lines,
)
from maxmargin.problem.kernels import Kernel

TYPES: dict[str, Any] = {
    "c_svc": SVC, "nu_svc": NuSVC, "one_class": OneClassSVM, "epsilon_svr": SVR, "nu_svr": NuSVR,
}  # fmt: skip
KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid", "precomputed": "precomputed"}
PARAMETERS = {"poly": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
PROBABILITIES = {"probA", "probB", "prob_density_marks"}
KEYS = {"svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "nr_sv"}


def reordered(coef: FloatArray, intercept: FloatArray, counts: list[int], order: list[int]) -> tuple[
    FloatArray, FloatArray, NDArray[np.int64]
]:  # fmt: skip
    """Coefficients and intercepts of pairs when class order[i] takes place i; and which support vector goes where.

    Class a's coefficients against class b stand in row b − 1, or b if b comes first. Worked example: order 2 0 1 makes
    the pair (0, 1) of what was (2, 0), known as (0, 2): its signs turn, from row 0 of class 2 to row 0 of class 0.
    """
    ends = np.r_[0, np.cumsum(counts)]
    parts = [np.arange(ends[a], ends[a + 1]) for a in order]
    columns = np.concatenate(parts).astype(np.int64)
    new, shift = np.zeros_like(coef), np.zeros_like(intercept)
    pair = {both: k for k, both in enumerate(combinations(range(len(order)), 2))}
    place = np.r_[0, np.cumsum([len(part) for part in parts])]
    for i, a in enumerate(order):
        for j, b in enumerate(order):
            if i == j:
                continue
            sign = 1.0 if (i < j) == (a < b) else -1.0
            new[j - (j > i), place[i] : place[i + 1]] = sign * coef[b - (b > a), parts[i]]
            if i < j:
                shift[pair[i, j]] = sign * intercept[pair[min(a, b), max(a, b)]]
    return new, shift, columns


def _reordered_sigmoids(a: FloatArray, b: FloatArray, counts: list[int], order: list[int]) -> tuple[FloatArray, FloatArray]:
    """A and B of P(i | i or j) = 1/(1 + exp(A f + B)) when class order[i] takes place i.

    Where a pair turns, so does f, and P is 1 − P: B turns as an intercept does, A stays.
    """
    none = np.zeros((len(order) - 1, sum(counts)))
    signed, turned, shifted = (reordered(none, v, counts, order)[1] for v in (a, np.ones_like(a), b))
    return signed * turned, shifted


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model that svm-predict reads; the file appears complete or not at all."""
    check_kind(model, tuple(TYPES.values()), "LIBSVM")
    kernel: Kernel = model._fitted_kernel
    names = {ours: theirs for theirs, ours in KERNELS.items()}
    if kernel.name not in names:
        raise ValueError(
            f"LIBSVM has no {kernel.name} kernel, only {', '.join(names)}: use maxmargin.save or maxmargin.to_onnx"
        )
    write_lines(path, _lines(model, kernel, names[kernel.name]))


def _lines(model: Any, kernel: Kernel, kernel_type: str) -> Iterator[str]:
    coef, rho, columns = model._dual, -model.intercept_, np.arange(len(model.support_))
    labels: list[int] = []
    counts: list[int] = []
    sigmoids = (model._probA, model._probB) if hasattr(model, "_probA") else None
    if hasattr(model, "classes_"):
        labels, counts = whole_labels(model, "LIBSVM"), model.n_support_.tolist()
        order = list(range(len(labels)) if model._vote_order is None else model._vote_order)
        if len(labels) == 2:  # the second is ours to be positive, the first theirs: no sign turns
            order, columns = [1, 0], np.r_[counts[0] : sum(counts), 0 : counts[0]]
            coef = coef[:, columns]
        elif order != sorted(order):
            sigmoids = sigmoids and _reordered_sigmoids(*sigmoids, counts, order)
            coef, rho, columns = reordered(coef, rho, counts, order)
        labels, counts = [labels[a] for a in order], [counts[a] for a in order]
    yield f"svm_type {next(name for name, kind in TYPES.items() if kind is type(model))}"
    yield f"kernel_type {kernel_type}"
    for name in PARAMETERS.get(kernel.name, ()):
        yield f"{name} {spelled([getattr(kernel, name)])}"
    yield f"nr_class {len(labels) or 2}"
    yield f"total_sv {len(columns)}"
    yield f"rho {spelled(rho)}"
    if labels:
        yield f"label {' '.join(map(str, labels))}"
        if sigmoids is not None:
            yield f"probA {spelled(sigmoids[0])}"
            yield f"probB {spelled(sigmoids[1])}"
        yield f"nr_sv {' '.join(map(str, counts))}"
    yield "SV"
    if kernel.name == "precomputed":
        for k, row in enumerate(model.support_[columns]):
            yield f"{spelled(coef[:, k])} 0:{row + 1}"
        return
    vectors = sp.csr_matrix(model.support_vectors_)[columns]
    for k in range(len(columns)):
        some = slice(vectors.indptr[k], vectors.indptr[k + 1])
        pairs = (f"{j + 1}:{float(v):.17g}" for j, v in zip(vectors.indices[some], vectors.data[some]))
        yield " ".join([spelled(coef[:, k]), *pairs])


def load(path: str | os.PathLike[str], n_features: int | None = None) -> Any:
    """The machine in a file of svm-train. What the file does not say (C, nu, epsilon) has its default.

    `n_features` is for data with more features than the support vectors have; a Gram matrix has as many as rows were
    trained on. Nothing is known of how well the model was trained: status_ is "unknown", gaps are NaN.
    """
    head = Head(read_text(path), b"SV", KEYS | PROBABILITIES, path)
    kind = TYPES[head.choice("svm_type", TYPES)]
    kernel = _kernel(head)
    classes = kind in (SVC, NuSVC)
    if PROBABILITIES & set(head.words) and not classes:
        warnings.warn(f"{path}: its probabilities are left out; predictions do not need them", UserWarning, stacklevel=3)
    size = head.whole("nr_class")[0]
    if size < 2 or (not classes and size != 2):
        raise head.error(f"nr_class {size} makes no sense for {kind.__name__}")
    labels = head.whole("label", size) if classes else []
    counts = head.whole("nr_sv", size) if classes else head.whole("total_sv")
    if len(set(labels)) != len(labels) or min(counts) < 0 or sum(counts) != head.whole("total_sv")[0]:
        raise head.error("labels must differ, and nr_sv add up to total_sv")
    intercept = -np.array(head.real("rho", size * (size - 1) // 2))
    coef, vectors = _support(head, path, size - 1, sum(counts))
    state: dict[str, Any] = {"_precision": "float64", "_fitted_kernel": kernel, "_gamma": kernel.gamma}
    if kernel.name == "precomputed":
        state |= _given(head, vectors, n_features)
        vectors = None
    else:
        state |= uncertified(features(vectors.shape[1], n_features, path))
    state["kkt_violation_"] = float("nan")
    probable = classes and "probA" in head.words
    if probable:
        given = [np.array(head.real(name, size * (size - 1) // 2)) for name in ("probA", "probB")]
        sorting = sorted(range(size), key=labels.__getitem__)
        state["_probA"], state["_probB"] = _reordered_sigmoids(given[0], given[1], counts, sorting)
        if size == 2:  # of two the second is positive with us
            state["_probB"] = -state["_probB"]
    if classes:
        coef, intercept, columns, order = _sorted_classes(coef, intercept, labels, counts)
        state["classes_"] = np.array(sorted(labels), np.int64)
        state |= {"_vote_order": order} if size > 2 and labels != sorted(labels) else {}
        counts = [counts[labels.index(label)] for label in sorted(labels)]
        vectors = None if vectors is None else vectors[columns]
        if vectors is None:
            state["support_"] = state["support_"][columns]
    state |= {"dual_coef_": coef, "intercept_": intercept, "n_support_": np.array(counts, np.int32)}
    if vectors is not None:
        vectors.resize(vectors.shape[0], state["n_features_in_"])
        dense = 2 * vectors.nnz >= vectors.shape[0] * vectors.shape[1]  # at most twice what the file has
        state |= {"support_": np.full(sum(counts), -1, np.int32)}
        state |= {"support_vectors_": vectors.toarray() if dense else vectors}
    if kind is OneClassSVM:
        state["offset_"] = -float(intercept[0])
    MACHINES[kind.__name__].check(state)
    model = kind(kernel=kernel.name, degree=kernel.degree, gamma=kernel.gamma, coef0=kernel.coef0)
    if probable:
        model.set_params(probability=True)
    model.__dict__.update(state)
    return model


def _kernel(head: Head) -> Kernel:
    name = KERNELS[head.choice("kernel_type", KERNELS)]
    given = {key: head.real(key)[0] for key in PARAMETERS.get(name, ())}
    degree = head.whole("degree")[0] if "degree" in given else 3
    if given.get("gamma", 1.0) <= 0 or not 0 <= degree < 2**31:
        raise head.error("gamma must be above 0, and degree from 0 on")
    return Kernel(name, given.get("gamma", 1.0), given.get("coef0", 0.0), degree)


def _support(head: Head, path: Any, outputs: int, count: int) -> tuple[FloatArray, Any]:
    """Coefficients (outputs × support vectors) and the support vectors (CSR, columns from 0)."""
    rows = [row for row in head.rest.split(b"\n") if row.strip()]
    line = re.compile(rb"\s*(?:[^\s:]+\s+){%d}[^\s:]+(?:\s+\d{1,10}:[^\s:]+)*\s*" % (outputs - 1))
    for number, row in enumerate(rows):
        if not line.fullmatch(row):
            raise head.error(f"line {head.first_line + number} is not {outputs} coefficient(s) and index:value pairs")
    if len(rows) != count:
        raise head.error(f"there are {len(rows)} support vectors, not the {count} that total_sv says")
    pairs = np.array([row.count(b":") for row in rows], np.int64)
    values = numbers(head.rest.replace(b":", b" "), path)
    width = outputs + 2 * pairs
    start = np.cumsum(width) - width
    coef = values[start[:, None] + np.arange(outputs)].T if count else np.zeros((outputs, 0))
    is_coef = np.zeros(len(values), bool)
    is_coef[(start[:, None] + np.arange(outputs)).ravel().astype(np.int64)] = True
    table = values[~is_coef].reshape(-1, 2)
    columns, data = table[:, 0].astype(np.int64), np.ascontiguousarray(table[:, 1])
    indptr = np.r_[0, np.cumsum(pairs)]
    inner = np.ones(max(len(columns) - 1, 0), bool)
    inner[(indptr[1:-1] - 1)[(indptr[1:-1] > 0) & (indptr[1:-1] < len(columns))]] = False
    if (np.diff(columns)[inner] <= 0).any() or (len(columns) and columns.max() >= 2**31):
        raise head.error("the features of a support vector must ascend, up to 2**31 − 1")
    precomputed = head.words["kernel_type"] == ["precomputed"]
    if precomputed and not ((pairs == 1).all() and (columns == 0).all()):
        raise head.error("a support vector of a precomputed kernel is one pair, 0:row")
    if not precomputed and len(columns) and columns.min() < 1:
        raise head.error("features count from 1")
    columns -= 0 if precomputed else 1
    shape = (count, int(columns.max(initial=-1)) + 1)
    return np.ascontiguousarray(coef), sp.csr_matrix((data, columns.astype(np.int32), indptr), shape=shape)


def _given(head: Head, vectors: Any, n_features: int | None) -> dict[str, Any]:
    """support_ and the report for a precomputed kernel: `0:row` names the training row, from 1."""
    rows = vectors.data
    if not ((rows >= 1) & (rows < 2**31) & (rows == np.floor(rows))).all():
        raise head.error("a support vector of a precomputed kernel must name its training row, from 1")
    size = features(int(rows.max(initial=1)), n_features, "the model")
    return {"support_": rows.astype(np.int32) - 1, "support_vectors_": np.empty((0, 0))} | uncertified(size)


def _sorted_classes(
    coef: FloatArray, intercept: FloatArray, labels: list[int], counts: list[int]
) -> tuple[FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64]]:
    """Coefficients and intercepts for sorted classes; which support vector goes where; the file's order of votes."""
    order = sorted(range(len(labels)), key=labels.__getitem__)
    coef, intercept, columns = reordered(coef, intercept, counts, order)
    if len(labels) == 2:  # of two the second is positive with us
        coef, intercept = -coef, -intercept
    return coef, intercept, columns, np.argsort(order)
