"""`maxmargin predict`: a data file and a model in, predictions out; how good they are on stdout, as svm-predict says it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor

import maxmargin
from maxmargin import data
from maxmargin.cli import samples
from maxmargin.cli.console import DONE, Console
from maxmargin.cli.info import format_of
from maxmargin.cli.scores import judged, predicted_lines
from maxmargin.data.atomic import replacing

EXAMPLES = (
    ("maxmargin predict test.svm train.svm.model", "how good it is"),
    ("maxmargin predict test.svm train.svm.model answers.txt", "the same, and a label per line into answers.txt"),
    ("maxmargin predict --quiet test.svm train.svm.model - | sort | uniq -c", "labels on stdout, the score on stderr"),
    ("maxmargin predict --decision-values test.svm train.svm.model values.txt", "decision values beside the labels"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="DATA", help="file of samples; - is standard input")
    parser.add_argument("model", metavar="MODEL", help="of maxmargin, LIBSVM or LIBLINEAR")
    parser.add_argument("output", metavar="OUTPUT", nargs="?", help="a prediction per line; - is standard output")
    parser.add_argument("--decision-values", action="store_true", help="write them after each prediction")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads (all cores)")
    parser.add_argument("-b", "--probabilities", type=int, choices=(0, 1), default=0,
                        help="the most probable class, then the probability of each; of a model trained with -b 1")
    samples.add_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    with console.warnings_as_notes():
        model = _model(args)
    prepare(args, model)
    labels, answers = [], []
    with opened(args, model) as out:
        for X, y in parts(args, model, console):
            predicted, text = answered(args, model, X)
            answers.append(predicted)
            labels.append(y)
            if out is not None:
                out.write(text)
    tell(args, model, labels, np.concatenate(answers), console)
    return DONE


def prepare(args: argparse.Namespace, model: Any) -> None:
    """The model as the options want it; an error if it cannot do what they ask for."""
    if args.jobs is not None:
        model.set_params(n_jobs=args.jobs)
    if args.decision_values and args.probabilities:
        raise ValueError("--decision-values and -b 1: one of them at a time")
    if args.decision_values and not hasattr(model, "decision_function"):
        raise ValueError(f"{type(model).__name__} has no decision values, it predicts numbers: leave --decision-values out")
    if args.probabilities and not (hasattr(model, "predict_proba") and hasattr(model, "_probA")):
        raise ValueError(f"-b 1: {args.model} was trained without probabilities: train it with -b 1")


def tell(args: argparse.Namespace, model: Any, labels: list[Any], predicted: Any, console: Console) -> None:
    """How good the predictions are, where there are labels."""
    result: dict[str, Any] = {"rows": len(predicted)}
    lines = [f"{len(predicted)} predictions, and no labels to compare with"]
    if labels[0] is not None:
        result = judged(samples.whole(np.concatenate(labels)), predicted, is_regressor(model))
        lines = predicted_lines(result)
    if args.output == "-":
        console.note("\n".join(lines))
    else:
        names = {"model": args.model, "data": args.data, "output": args.output}
        console.results(lines, {"command": "predict", "machine": type(model).__name__, **names, **result})


def _model(args: argparse.Namespace) -> Any:
    """The model. That of another program does not say how many features it has: it gets those that the data have."""
    model = maxmargin.load(args.model)
    if format_of(args.model) != "maxmargin" and args.data != "-" and samples.text(args, args.data):
        found = data.describe(args.data, format="libsvm")
        beyond = found.n_features - (found.zero_based and model.get_params().get("kernel") == "precomputed")
        if beyond > model.n_features_in_:
            return maxmargin.load(args.model, n_features=beyond)
    return model


def parts(args: argparse.Namespace, model: Any, console: Console) -> Iterator[tuple[Any, Any]]:
    """The samples of a file, in chunks with the features that the model has."""
    expected = int(model.n_features_in_)
    text = samples.text(args, args.data)
    given = getattr(model, "kernel", None) == "precomputed" and text
    if args.data == "-":
        pieces: Any = [data.load(samples.source("-"), **samples.reading(args, **({"zero_based": True} if given else {})))]
    else:
        options = samples.reading(args)
        if text:
            found = data.describe(args.data, format="libsvm")
            options |= {"n_features": max(expected + given, found.n_features), "zero_based": given or found.zero_based}
        pieces = data.chunks(args.data, samples.ROWS, **options)
    rows, told = 0, False
    for X, y in pieces:
        if not X.shape[0]:
            continue
        rows += X.shape[0]
        if given:
            X = X[:, 1:]
        beyond = text and X[:, expected:].nnz > 0
        X = fitting(X, expected, text, None if told else console)
        told = told or beyond
        yield X.toarray() if given else X, y
    if not rows:
        raise ValueError(f"{args.data} has no samples")


def fitting(X: Any, expected: int, text: bool, console: Console | None) -> Any:
    """X with as many columns as the model was trained on. LIBSVM text does not say how many it has."""
    if X.shape[1] == expected or not text:
        return X
    if X.shape[1] < expected:
        X.resize(X.shape[0], expected)
        return X
    if X[:, expected:].nnz and console is not None:
        console.note(f"warning: features above {expected}, which the model was trained on, are left out")
    return sp.csr_matrix(X[:, :expected])


@contextmanager
def opened(args: argparse.Namespace, model: Any) -> Iterator[Any]:
    """The file of predictions, or None; of probabilities it begins with the classes."""
    if args.output is None:
        yield None
        return
    with nullcontext(sys.stdout.buffer) if args.output == "-" else replacing(args.output) as out:
        if args.probabilities:
            out.write(f"labels {' '.join(map(str, model.classes_.tolist()))}\n".encode())
        yield out


def answered(args: argparse.Namespace, model: Any, X: Any) -> tuple[Any, bytes]:
    """Predictions, and the lines that are to be written."""
    values: Any = None
    if args.probabilities:
        values = np.asarray(model.predict_proba(X))
        predicted = model.classes_[values.argmax(axis=1)]
    else:
        predicted = model.predict(X)
        if args.decision_values:
            values = np.asarray(model.decision_function(X))
    return predicted, "".join(_lines(predicted, values, " " if args.probabilities else "\t")).encode()


def _lines(predicted: Any, values: Any, between: str) -> Iterator[str]:
    """Predictions, one per line, by as many digits as it takes to read them back; then the values that go with each."""
    words = [f"{p:.17g}" if isinstance(p, float) else str(p) for p in predicted.tolist()]
    if values is None:
        yield from (f"{word}\n" for word in words)
        return
    for word, row in zip(words, values.reshape(len(words), -1).tolist()):
        yield between.join([word, *(f"{value:.17g}" for value in row)]) + "\n"
