"""`maxmargin scale`: features brought to one range, by svm-scale's options and in its file of ranges.

    x                     the file of ranges: the limits, then index, smallest and largest value of each feature
    -1 1
    1 0.5 7
    …

A feature that is constant is left out. Zeros that LIBSVM text leaves out count, and are scaled like other values.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import data
from maxmargin.cli import samples
from maxmargin.cli.console import DONE, Console
from maxmargin.data.atomic import replacing

FloatArray = NDArray[np.float64]
CELLS = 1 << 22  # of a block of rows that is unpacked: 32 MB

EXAMPLES = (
    ("maxmargin scale -s ranges train.svm train.scaled", "to [-1, 1]; the ranges are kept"),
    ("maxmargin scale -r ranges test.svm test.scaled", "test data by the same ranges"),
    ("maxmargin scale -l 0 train.svm > train.scaled", "to [0, 1], which keeps sparse data sparse; on stdout, as svm-scale"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="file of samples; - is standard input")
    parser.add_argument("output", metavar="OUTPUT", nargs="?", default="-", help="default: standard output, LIBSVM text")
    parser.add_argument("-l", "--lower", type=float, default=-1.0, help="of the features (-1)")
    parser.add_argument("-u", "--upper", type=float, default=1.0, help="of the features (1)")
    parser.add_argument("-y", nargs=2, type=float, metavar=("LOWER", "UPPER"), help="of the labels (they stay as they are)")
    parser.add_argument("-s", "--save", metavar="FILE", help="where to keep the ranges")
    parser.add_argument("-r", "--restore", metavar="FILE", help="ranges kept before, instead of those of DATA")
    samples.add_options(parser)


@dataclass(frozen=True)
class Ranges:
    """Smallest and largest value per feature, and the limits to bring them to; the same for labels, or None."""

    lower: float
    upper: float
    low: FloatArray
    high: FloatArray
    labels: tuple[float, float, float, float] | None = None  # limits, then smallest and largest

    @classmethod
    def of(cls, args: argparse.Namespace, X: Any, y: Any) -> Ranges:
        if sp.issparse(X):
            low, high = (getattr(X, name)(axis=0).toarray().ravel() for name in ("min", "max"))
        else:
            low, high = X.min(axis=0), X.max(axis=0)
        labels = None if args.y is None else (*args.y, float(y.min()), float(y.max()))
        return cls(args.lower, args.upper, np.asarray(low, np.float64), np.asarray(high, np.float64), labels)

    def scaled(self, X: Any) -> Any:
        """X in CSR, without what became zero."""
        if not (self._at_zero() != 0).any():
            out = sp.csr_matrix(X, copy=True)
            out.data = self._values(out.data, out.indices)
            out.eliminate_zeros()
            return out
        step = max(1, CELLS // X.shape[1])
        blocks = (X[i : i + step] for i in range(0, X.shape[0], step))
        every = np.arange(X.shape[1])
        return sp.vstack([
            sp.csr_matrix(self._values(b.toarray() if sp.issparse(b) else np.asarray(b), every[None, :])) for b in blocks
        ], format="csr")  # fmt: skip

    def _at_zero(self) -> FloatArray:
        return np.asarray(self._values(np.zeros(len(self.low)), np.arange(len(self.low))))

    def _values(self, value: Any, feature: Any) -> Any:
        low, high = self.low[feature], self.high[feature]
        width = np.where(high > low, high - low, 1.0)
        inside = self.lower + (self.upper - self.lower) * ((value - low) / width)
        inside = np.where(value == high, self.upper, np.where(value == low, self.lower, inside))
        return np.where(high > low, inside, 0.0)

    def scaled_labels(self, y: Any) -> Any:
        if self.labels is None:
            return y
        lower, upper, low, high = self.labels
        if not high > low:
            raise ValueError(f"the labels are all {low:g}: they cannot be brought to another range")
        return lower + (upper - lower) * ((y - low) / (high - low))

    def write(self, path: str) -> None:
        with replacing(path) as out:
            if self.labels is not None:
                out.write("y\n{:.17g} {:.17g}\n{:.17g} {:.17g}\n".format(*self.labels).encode())
            out.write(f"x\n{self.lower:.17g} {self.upper:.17g}\n".encode())
            for j in np.flatnonzero(self.high > self.low).tolist():
                out.write(f"{j + 1} {self.low[j]:.17g} {self.high[j]:.17g}\n".encode())

    @classmethod
    def read(cls, path: str, X: Any, console: Console) -> Ranges:
        """Those of a file; features of X that it does not have are left out, with a warning."""
        with open(path, encoding="ascii", errors="replace") as file:
            words = file.read().split()
        try:
            labels = None
            if words[0] == "y":
                labels, words = tuple(float(word) for word in words[1:5]), words[5:]
            if words[0] != "x" or len(words) % 3:
                raise ValueError
            table = np.array(words[3:], dtype=np.float64).reshape(-1, 3)
            index = table[:, 0].astype(np.int64)
            if (index != table[:, 0]).any() or (index < 1).any() or not np.isfinite(table).all():
                raise ValueError
            lower, upper = float(words[1]), float(words[2])
        except (ValueError, IndexError):
            raise ValueError(f"{path} is no file of ranges as maxmargin scale -s and svm-scale -s write it") from None
        low, high = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        there = index <= X.shape[1]
        low[index[there] - 1], high[index[there] - 1] = table[there, 1], table[there, 2]
        varying = sp.csr_matrix(X).getnnz(axis=0) > 0
        gone = np.flatnonzero(varying & ~np.isin(np.arange(X.shape[1]), index - 1)) + 1
        if len(gone):
            console.note(f"warning: {len(gone)} features, such as {gone[0]}, are not in {path} and are left out")
        return cls(lower, upper, low, high, labels)  # type: ignore[arg-type]


def run(args: argparse.Namespace, console: Console) -> int:
    if args.save and args.restore:
        raise ValueError("-s and -r: ranges are either kept or taken from a file, not both")
    if not args.upper > args.lower or (args.y is not None and not args.y[1] > args.y[0]):
        raise ValueError("the upper limit must be above the lower one")
    found = samples.load(args, args.data)
    values = found.X.data if sp.issparse(found.X) else found.X
    if not np.isfinite(values).all():
        raise ValueError(f"{args.data} has values that are not finite: they cannot be scaled")
    if args.y is not None and (found.y is None or found.y.dtype.kind not in "iuf"):
        raise ValueError("-y: the labels are no numbers")
    ranges = Ranges.read(args.restore, found.X, console) if args.restore else Ranges.of(args, found.X, found.y)
    X, y = ranges.scaled(found.X), ranges.scaled_labels(found.y)
    if sp.issparse(found.X) and X.nnz > 2 * found.X.nnz:
        console.note(f"warning: {found.X.nnz:,} values that are not zero became {X.nnz:,}; -l 0 keeps data ≥ 0 sparse")
    if args.save:
        ranges.write(args.save)
    to_stdout = args.output == "-"
    dense = not to_stdout and data.format_of(args.output) not in ("libsvm", "npz")
    data.save(sys.stdout.buffer if to_stdout else args.output, X.toarray() if dense else X, y,
              **({"format": "libsvm"} if to_stdout else {}))  # type: ignore[arg-type]
    return DONE
