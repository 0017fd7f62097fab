"""Data sets and models as plain npy/npz files, for the way between the harness and its workers."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.base import Data, KernelModel, LinearModel, Model, PairsModel, Predictions


def save(data: Data, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("X_train", "X_test"):
        _save_rows(getattr(data, name), folder, name)
    np.save(folder / "y_train.npy", data.y_train)
    np.save(folder / "y_test.npy", data.y_test)
    labels = np.unique(data.y_train)
    header = {
        "features": data.X_train.shape[1],
        "dtype": str(data.X_train.dtype),
        "sparse": data.sparse,
        "classes": labels.tolist() if len(labels) <= 1000 and np.issubdtype(labels.dtype, np.integer) else None,
        "source": data.source,
    }
    (folder / "header.json").write_text(json.dumps(header))


def load_train(folder: str | pathlib.Path) -> tuple[Any, np.ndarray]:
    """X and y of the training rows alone, so that test rows take no memory during a fit."""
    folder = pathlib.Path(folder)
    return _load_rows(folder, "X_train"), np.load(folder / "y_train.npy")


def load_test(folder: str | pathlib.Path) -> Any:
    return _load_rows(pathlib.Path(folder), "X_test")


def _save_rows(X: Any, folder: pathlib.Path, name: str) -> None:
    if not sp.issparse(X):
        np.save(folder / f"{name}.npy", np.ascontiguousarray(X))
        return
    for part in ("data", "indices", "indptr"):
        np.save(folder / f"{name}_{part}.npy", getattr(X, part))
    np.save(folder / f"{name}_shape.npy", np.array(X.shape))


def _load_rows(folder: pathlib.Path, name: str) -> Any:
    if (folder / f"{name}.npy").exists():
        return np.load(folder / f"{name}.npy")
    data, indices, indptr, shape = (np.load(folder / f"{name}_{p}.npy") for p in ("data", "indices", "indptr", "shape"))
    return sp.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))


def save_model(model: Model, path: pathlib.Path) -> None:
    if isinstance(model, LinearModel):
        np.savez(path, w=model.w, intercept=model.intercept, penalised=model.penalised)
    elif isinstance(model, Predictions):
        np.savez(path, values=model.values)
    elif isinstance(model, PairsModel):
        np.savez(path, **{field.name: getattr(model, field.name) for field in dataclasses.fields(model)})
    elif model.support is not None:
        np.savez(path, coef=model.coef, intercept=model.intercept, support=model.support)
    else:
        vectors = model.vectors.toarray() if sp.issparse(model.vectors) else model.vectors
        np.savez(path, coef=model.coef, intercept=model.intercept, vectors=vectors)


def load_model(path: pathlib.Path) -> Model:
    with np.load(path) as npz:
        parts = {key: npz[key] for key in npz.files}
    if "w" in parts:
        intercept = parts["intercept"]
        return LinearModel(parts["w"], intercept if intercept.ndim else float(intercept), bool(parts["penalised"]))
    if "values" in parts:
        return Predictions(parts["values"])
    if "n_support" in parts:
        return PairsModel(**parts)
    return KernelModel(parts["coef"], float(parts["intercept"]), parts.get("support"), parts.get("vectors"))
