"""LIBLINEAR's model files, both ways, for LinearSVC and LinearSVR.

    solver_type L2R_L1LOSS_SVC_DUAL
    nr_class 2
    label 1 -1
    nr_feature 3
    bias 1                   the size of the constant feature; below 0: there is none
    w
    0.5                      a line per feature, the constant one last; a column per class, but one for two classes
    …                        (two for MCSVM_CS)

Two classes: ⟨w, x⟩ > 0 → the first label. More: the largest, the first on ties. Ours: of two sorted classes the second
is positive, so it is written first. Regression has nr_class 2, no labels and one column. The intercept is the weight of a
constant feature 1, whatever it was trained with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators.linear import LinearSVC, LinearSVR
from maxmargin.models.schema import MACHINES
from maxmargin.models.text import (
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

FloatArray = NDArray[np.float64]

JOINT = "MCSVM_CS"
# solver_type: (loss, multi_class); the first of a pair is what we write
SOLVERS = {
    "L2R_L1LOSS_SVC_DUAL": ("hinge", "ovr"),
    "L2R_L2LOSS_SVC_DUAL": ("squared_hinge", "ovr"),
    "L2R_L2LOSS_SVC": ("squared_hinge", "ovr"),
    "L1R_L2LOSS_SVC": ("squared_hinge", "ovr"),
    JOINT: ("hinge", "crammer_singer"),
}
# of regression: loss; the first of a pair is what we write
REGRESSION = {
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
}
KEYS = {"solver_type", "nr_class", "label", "nr_feature", "bias"}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model that LIBLINEAR's predict reads; the file appears complete or not at all."""
    check_kind(model, (LinearSVC, LinearSVR), "LIBLINEAR")
    write_lines(path, _regression_lines(model) if isinstance(model, LinearSVR) else _lines(model))


def _regression_lines(model: LinearSVR) -> Iterator[str]:
    yield f"solver_type {next(name for name, loss in REGRESSION.items() if loss == model.loss)}"
    yield "nr_class 2"
    yield from _weights(model, np.append(model.coef_, model.intercept_)[None, :])


def _lines(model: LinearSVC) -> Iterator[str]:
    labels = whole_labels(model, "LIBLINEAR")
    joint = model.multi_class == "crammer_singer"
    kinds = {name: kind for name, kind in SOLVERS.items() if name.startswith("L1R") == (model.penalty == "l1")}
    solver = JOINT if joint else next(name for name, kind in kinds.items() if kind == (model.loss, "ovr"))
    weights = np.hstack([model.coef_, model.intercept_[:, None]])
    if len(labels) == 2 and solver == JOINT:
        weights = np.vstack([-weights, weights]) / 2  # a column per class, whose difference decides; on ties the first
    elif len(labels) == 2:
        labels = labels[::-1]
    yield f"solver_type {solver}"
    yield f"nr_class {len(labels)}"
    yield f"label {' '.join(map(str, labels))}"
    yield from _weights(model, weights)


def _weights(model: LinearSVC | LinearSVR, weights: FloatArray) -> Iterator[str]:
    """From the line on features on: a row of weights per problem, the intercept last."""
    yield f"nr_feature {weights.shape[1] - 1}"
    yield f"bias {1 if model.fit_intercept else -1}"
    yield "w"
    for row in weights.T if model.fit_intercept else weights.T[:-1]:
        yield spelled(row)


def load(path: str | os.PathLike[str], n_features: int | None = None) -> LinearSVC | LinearSVR:
    """The machine in a file of LIBLINEAR's train. What the file does not say (C) has its default.

    `n_features` is for data with more features than the model was trained on. Nothing is known of how well it was
    trained: status_ is "unknown", gaps are NaN.
    """
    head = Head(read_text(path), b"w", KEYS, path)
    solver = head.choice("solver_type", [*SOLVERS, *REGRESSION])
    size, stored = head.whole("nr_class")[0], head.whole("nr_feature")[0]
    bias = head.real("bias")[0]
    if size < 2 or stored < 0:
        raise head.error(f"nr_class {size} and nr_feature {stored} make no sense")
    if solver in REGRESSION:
        return _regression(head, REGRESSION[solver], stored, bias, n_features, path)
    labels = head.whole("label", size)
    if len(set(labels)) != size:
        raise head.error("labels must differ")
    columns = 1 if size == 2 and solver != JOINT else size
    weights = _table(head, stored + (bias >= 0), columns, path)
    order = np.argsort(labels)
    if size == 2:
        difference = weights[1] - weights[0] if solver == JOINT else -weights[0]
        weights = (difference if order[0] == 0 else -difference)[None, :]
    else:
        weights = weights[order]
    state = _state(weights, stored, bias, n_features, path) | {"classes_": np.array(labels, np.int64)[order]}
    MACHINES["LinearSVC"].check(state)
    loss, multi_class = SOLVERS[solver]
    penalty = "l1" if solver.startswith("L1R") else "l2"
    scaling = bias if bias > 0 else None
    model = LinearSVC(penalty, loss, multi_class=multi_class, fit_intercept=bias >= 0, intercept_scaling=scaling)
    model.__dict__.update(state)
    return model


def _regression(
    head: Head, loss: str, stored: int, bias: float, n_features: int | None, path: str | os.PathLike[str]
) -> LinearSVR:
    if "label" in head.words:
        raise head.error("regression has no labels")
    state = _state(_table(head, stored + (bias >= 0), 1, path), stored, bias, n_features, path)
    state["coef_"] = state["coef_"][0]
    MACHINES["LinearSVR"].check(state)
    model = LinearSVR(loss=loss, fit_intercept=bias >= 0, intercept_scaling=bias if bias > 0 else None)
    model.__dict__.update(state)
    return model


def _table(head: Head, rows: int, columns: int, path: str | os.PathLike[str]) -> FloatArray:
    """The weights, one row per problem."""
    values = numbers(head.rest, path)
    if len(values) != rows * columns:
        raise head.error(f"there are {len(values)} weights, not {rows} lines of {columns}")
    out: FloatArray = values.reshape(rows, columns).T
    return out


def _state(
    weights: FloatArray, stored: int, bias: float, n_features: int | None, path: str | os.PathLike[str]
) -> dict[str, Any]:
    """Fitted attributes that a table of weights tells."""
    state = uncertified(features(stored, n_features, path))
    intercept = weights[:, stored] * bias if bias >= 0 else np.zeros(len(weights))
    coef = np.zeros((len(weights), state["n_features_in_"]))
    coef[:, :stored] = weights[:, :stored]
    return state | {"coef_": coef, "intercept_": np.ascontiguousarray(intercept)}
