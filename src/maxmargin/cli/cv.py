"""`maxmargin cv`: cross-validation of one setting, in the words of svm-train -v, or a search over a grid of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin.cli import engines, samples, search
from maxmargin.cli.console import INTERRUPTED, Console, code_of
from maxmargin.cli.scores import cross_validated, judged
from maxmargin.runtime import deferred_interrupt

Load = Callable[[argparse.Namespace, str], samples.Samples]
EXAMPLES = (
    ("maxmargin cv -c 10 -g 0.5 train.svm", "five folds"),
    ("maxmargin cv -v 10 -t 0 --json train.svm", "ten folds of a linear machine, with the score of each"),
    ("maxmargin cv --Cs 10 --gammas 10 --model best.mxm train.svm", "the best of a hundred settings, fitted to all samples"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="file of samples; - is standard input")
    engines.add_options(parser)
    parser.add_argument("-v", "--folds", type=int, metavar="N", default=5, help="number of folds (5)")
    search.add_options(parser)
    samples.add_options(parser)


def read(args: argparse.Namespace, load: Load | None = None) -> samples.Samples:
    """The samples, with the labels that the machine needs; `load` gets them in another way."""
    found = (load or (samples.load_gram if args.kernel == "precomputed" else samples.load))(args, args.data)
    check_labels(args, found)
    return found


def check_labels(args: argparse.Namespace, found: samples.Samples) -> None:
    """They must be what the machine learns."""
    if found.y is None and args.machine != "one-class":
        raise ValueError(f"--label none: {args.machine} needs labels")
    if args.machine in ("svr", "nu-svr") and found.y.dtype.kind not in "iuf":
        raise ValueError(f"{args.machine} needs numbers to learn, and {args.data} has labels such as {found.y[0]!r}")
    if args.machine in ("svc", "nu-svc") and found.y.dtype.kind == "f":
        raise ValueError(f"{args.data} has labels such as {found.y[found.y != np.floor(found.y)][:1].tolist()}, "
                         "which are no classes: say -s 3 (--machine svr) to learn numbers")

def run(args: argparse.Namespace, console: Console) -> int:
    from sklearn.model_selection import KFold, StratifiedKFold  # here, as other commands need not wait for it

    found = read(args)
    if found.y is None:
        raise ValueError("cross-validation needs labels to compare with")
    if not 2 <= args.folds <= len(found.y):
        raise ValueError(f"-v {args.folds}: the number of folds must be from 2 to the number of samples, {len(found.y)}")
    if search.wanted(args):
        return search.run(args, console, found)
    for name in ("scoring", "search", "model"):
        if getattr(args, name, None) is not None and hasattr(args, "Cs"):
            raise ValueError(f"--{name} is for a search: give --Cs or --gammas as well")
    engine, why = engines.chosen(args, found)
    machine = engines.built(args, engine, found, console)
    console.note(f"engine {engine} ({type(machine).__name__}): {why}")
    numbers = args.machine in ("svr", "nu-svr")
    kind = KFold if numbers or args.machine == "one-class" else StratifiedKFold
    folds = kind(args.folds, shuffle=True, random_state=args.random_state or 0).split(found.X, found.y)
    predicted: Any = np.empty_like(found.y, dtype=np.float64 if numbers else found.y.dtype)
    statuses, scores = [], []
    with deferred_interrupt() as interrupted, console.warnings_as_notes():
        for k, (train, test) in enumerate(folds):
            fitted = clone(machine).fit(_part(args, found.X, train, train), found.y[train])
            if interrupted.is_set():
                console.note(f"interrupted in fold {k + 1} of {args.folds}: no result")
                return INTERRUPTED
            predicted[test] = fitted.predict(_part(args, found.X, test, train))
            statuses.append(fitted.status_)
            scores.append(judged(found.y[test], predicted[test], numbers))
            console.note(f"fold {k + 1} of {args.folds}: {fitted.status_}, {fitted.timings_['total']:.3g} s")
        lines, values = cross_validated(found.y, predicted, numbers)
        parts = [{"status": status, **score} for status, score in zip(statuses, scores)]
        values |= {"folds": parts, "engine": engine, "reason": why, "data": found.summary()}
        console.results(lines, {"command": "cv", "machine": type(machine).__name__, **values})
    return max(code_of(status) for status in statuses)


def _part(args: argparse.Namespace, X: Any, rows: Any, columns: Any) -> Any:
    return X[np.ix_(rows, columns)] if args.kernel == "precomputed" else X[rows]
