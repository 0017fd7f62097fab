"""How good a machine is on given samples: confusion matrix, residuals, decision values."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import confusion_matrix, r2_score

from maxmargin.estimators._summary import share
from maxmargin.reports import page, svg

MOST_ROWS = 20_000  # that are predicted: enough for every number here, and a page does not take as long as the fit
MOST_POINTS = 600  # of a scatter
MOST_CLASSES = 12  # of a matrix; beyond, the largest confusions are listed


@dataclass(frozen=True)
class Quality:
    """Key figures and the section's parts."""

    cards: list[tuple[str, str]]
    body: list[str]


def quality(model: Any, X: Any, y: Any) -> Quality:
    """Judge on all samples, or on some of them drawn at random if they are many."""
    rows = X.shape[0]
    note = ""
    if rows > MOST_ROWS:
        some = np.sort(np.random.default_rng(0).permutation(rows)[:MOST_ROWS])
        X = X.iloc[some] if hasattr(X, "iloc") else (X.tocsr() if sp.issparse(X) else X)[some]
        y = None if y is None else y[some]
        note = f"On {MOST_ROWS:,} of the {rows:,} samples, drawn at random."
    if is_regressor(model):
        told = _numbers(model, X, y)
    elif is_classifier(model):
        told = _classes(model, X, y)
    else:
        told = _one_class(model, X)
    return Quality(told.cards, [page.text(note, "soft") if note else "", *told.body] if told.body else [])


def _numbers(model: Any, X: Any, y: Any) -> Quality:
    if y is None:
        return Quality([], [])
    target, predicted = np.asarray(y, np.float64), np.asarray(model.predict(X), np.float64)
    residual = target - predicted
    cards = [(f"{r2_score(target, predicted):.4f}", "R² on these samples"),
             (f"{np.sqrt(np.mean(residual**2)):.4g}", "root mean squared error")]  # fmt: skip
    some = np.random.default_rng(0).permutation(len(target))[:MOST_POINTS]
    points = svg.scatter(target[some], predicted[some], "Predicted against true", "true", "predicted")
    body = page.charts(
        ("Predicted against true", points),
        ("Residuals (true − predicted)", svg.histogram([("", residual)], "Histogram of the residuals", "true − predicted")),
    )
    return Quality(cards, [body])


def _classes(model: Any, X: Any, y: Any) -> Quality:
    if y is None:
        return Quality([], [])
    classes, predicted = model.classes_, model.predict(X)
    counts = confusion_matrix(y, predicted, labels=classes)
    right = float(np.mean(y == predicted))
    names = [str(name) for name in classes]
    parts = [_confusion(counts, names)]
    if len(classes) == 2 and hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), np.float64)
        groups = [(name, values[y == label]) for name, label in zip(names, classes)]
        keys = " and ".join(f'<span class="key c{k}">{escape(name)}</span>' for k, name in enumerate(names))
        chart = svg.histogram(groups, "Histogram of the decision values by class", "decision value")
        parts.append(("Decision values", chart + f"<p>Samples of class {keys}.</p>"))
    return Quality([(f"{100 * right:.2f} %", "right on these samples")], [page.charts(*parts)])


def _confusion(counts: Any, names: list[str]) -> tuple[str, str]:
    if len(names) <= MOST_CLASSES:
        return "Confusion matrix", page.matrix(counts, names)
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CLASSES]
    pairs = [np.unravel_index(k, wrong.shape) for k in order]
    rows = [(names[i], names[j], int(wrong[i, j]), int(counts[i].sum())) for i, j in pairs if wrong[i, j]]
    return "Largest confusions", page.table(rows, ("true", "predicted as", "samples", "of"))


def _one_class(model: Any, X: Any) -> Quality:
    values = np.asarray(model.decision_function(X), np.float64)
    outside = float(np.mean(values < 0))
    chart = svg.histogram([("", values)], "Histogram of the decision values", "decision value; outside below 0")
    return Quality([(share(outside), "of these samples are outside")], [page.charts(("Decision values", chart))])
