"""Data files on the command line: the options that say how to read them, and what was read."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import data

FORMATS = ("libsvm", "csv", "npy", "npz", "parquet", "arrow")
ROWS = 20_000  # of a chunk, where a file is gone through in chunks


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to read DATA")
    group.add_argument("--data-format", choices=FORMATS, help="default: by the name, LIBSVM text if it says nothing")
    group.add_argument("--label", default="0", help="tables: number or name of the label's column, or none (default: 0)")
    group.add_argument("--features", type=int, metavar="N", help="LIBSVM text: number of features, if the last may lack")
    group.add_argument("--first-index", choices=("auto", "0", "1"), default="auto", help="LIBSVM text: where indices begin")
    group.add_argument("--delimiter", help="CSV: what separates fields")


def reading(args: argparse.Namespace, **more: Any) -> dict[str, Any]:
    """The keywords of `maxmargin.data.load` that the options stand for."""
    label: Any = None if args.label.lower() == "none" else args.label
    if isinstance(label, str) and label.lstrip("-").isdigit():
        label = int(label)
    options = {
        "format": args.data_format, "label": label, "n_features": args.features, "delimiter": args.delimiter,
        "zero_based": {"auto": "auto", "0": True, "1": False}[args.first_index], "n_jobs": getattr(args, "jobs", None),
    }  # fmt: skip
    return options | more


def source(path: str) -> Any:
    """A file's name, or standard input for `-`."""
    return sys.stdin.buffer if path == "-" else path


@dataclass(frozen=True)
class Samples:
    """What a file holds; labels are whole numbers if all of them are."""

    path: str
    X: Any
    y: Any

    @property
    def stored(self) -> int:
        return int(self.X.nnz if sp.issparse(self.X) else np.count_nonzero(self.X))

    @property
    def density(self) -> float:
        return self.stored / max(1, int(self.X.shape[0]) * int(self.X.shape[1]))

    def summary(self) -> dict[str, Any]:
        rows, features = self.X.shape
        return {"path": self.path, "rows": rows, "features": features, "stored": self.stored}


def load(args: argparse.Namespace, path: str, **more: Any) -> Samples:
    """All samples of a file; an empty one is an error."""
    X, y = data.load(source(path), **reading(args, **more))
    if not X.shape[0]:
        raise ValueError(f"{path} has no samples")
    return Samples(path, X, whole(y))


def load_gram(args: argparse.Namespace, path: str) -> Samples:
    """The kernel matrix of training: the columns of a table, or LIBSVM text with each row's number as `0:number`."""
    if not text(args, path):
        return load(args, path)
    X, y = data.load(source(path), **reading(args, zero_based=True))
    if not np.array_equal(X[:, [0]].toarray().ravel(), np.arange(1, X.shape[0] + 1)):
        raise ValueError(f"{path}: with a precomputed kernel row i must begin with 0:i, in order")
    return Samples(path, X[:, 1:].toarray(), whole(y))


def text(args: argparse.Namespace, path: str) -> bool:
    """Whether a file is LIBSVM text."""
    return data.format_of(source(path), args.data_format) == "libsvm"


def whole(y: Any) -> Any:
    """Labels as integers, if nothing is lost by that."""
    if y is None or y.dtype.kind != "f" or not len(y):
        return y
    fits = np.isfinite(y).all() and (np.abs(y) < 2**53).all() and (y == np.floor(y)).all()
    return y.astype(np.int64) if fits else y
