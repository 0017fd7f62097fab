"""`maxmargin convert`: a file of samples, or a model, in another format."""

from __future__ import annotations

import argparse
from pathlib import Path

import scipy.sparse as sp

import maxmargin
from maxmargin import data
from maxmargin.cli import samples
from maxmargin.cli.console import DONE, Console
from maxmargin.cli.info import format_of
from maxmargin.data.atomic import replacing

MODELS = ("maxmargin", "libsvm", "liblinear", "onnx")
SUFFIXES = {".mxm": "maxmargin", ".onnx": "onnx"}

EXAMPLES = (
    ("maxmargin convert prices.csv prices.svm --label price", "a table as LIBSVM text"),
    ("maxmargin convert train.svm train.npz", "LIBSVM text as sparse NumPy arrays"),
    ("maxmargin convert train.svm.model theirs.model --to libsvm", "a model that svm-predict reads"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="samples, or a model of maxmargin, LIBSVM or LIBLINEAR")
    parser.add_argument("output", metavar="OUTPUT", help="its format goes by the name, unless --to says otherwise")
    parser.add_argument("--to", choices=tuple(dict.fromkeys((*samples.FORMATS, *MODELS))), metavar="FORMAT",
                        help=f"samples: {', '.join(samples.FORMATS)}; models: {', '.join(MODELS)}")
    samples.add_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    kind = format_of(args.input) if args.input != "-" else ""
    if kind:
        to = args.to or SUFFIXES.get(Path(args.output).suffix)
        if to not in MODELS:
            raise ValueError(f"{args.input} is a model: say --to {' | '.join(MODELS)}, or name OUTPUT .mxm or .onnx")
        with console.warnings_as_notes():
            model = maxmargin.load(args.input)
            if to == "onnx":
                with replacing(args.output) as out:
                    out.write(maxmargin.to_onnx(model).SerializeToString())
            else:
                maxmargin.save(model, args.output, format=to)
        console.note(f"{type(model).__name__}: {kind} → {to}")
        return DONE
    to = data.format_of(args.output, args.to)
    found = samples.load(args, args.input)
    X = found.X.toarray() if sp.issparse(found.X) and to not in ("libsvm", "npz") else found.X
    data.save(args.output, X, found.y, format=to)  # type: ignore[arg-type]
    console.note(f"{found.X.shape[0]:,} rows × {found.X.shape[1]:,} features → {to}")
    return DONE
