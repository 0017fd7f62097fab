"""`maxmargin info`: what a model file holds."""

from __future__ import annotations

import argparse
from typing import Any

import maxmargin
from maxmargin.cli.console import DONE, Console
from maxmargin.cli.train import lines, outcome

EXAMPLES = (
    ("maxmargin info train.svm.model", "machine, how its training ended, gap, sizes, parameters"),
    ("maxmargin info --json model.mxm", "the same as JSON"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="of maxmargin, LIBSVM or LIBLINEAR")


def run(args: argparse.Namespace, console: Console) -> int:
    with console.warnings_as_notes():
        model = maxmargin.load(args.model)
    values: dict[str, Any] = {"command": "info", "model": args.model, "format": format_of(args.model), **outcome(model)}
    values |= {"features": int(model.n_features_in_), "classes": getattr(model, "classes_", None)}
    changed = {name: value for name, value in values["parameters"].items() if value != _default(model, name)}
    text = [f"{args.model}: {values['format']} format", *lines(model), f"features: {values['features']}"]
    if values["classes"] is not None:
        text.append(f"classes: {' '.join(map(str, values['classes'].tolist()))}")
    text.append(f"parameters: {', '.join(f'{name}={value}' for name, value in sorted(changed.items())) or 'defaults'}")
    console.results(text, values)
    return DONE


def format_of(path: str) -> str:
    """The format of a model file, by its first bytes; an empty string if it is none."""
    begins = {b"\x89MXM": "maxmargin", b"svm_type ": "libsvm", b"solver_type ": "liblinear"}
    with open(path, "rb") as file:
        begin = file.read(16)
    return next((name for word, name in begins.items() if begin.startswith(word)), "")


def _default(model: Any, name: str) -> Any:
    return type(model)().get_params(deep=False)[name]
