"""What the page tells, section by section."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.base import is_classifier

from maxmargin import _core
from maxmargin.estimators._base import VERSION
from maxmargin.estimators._summary import mood, relative_gap, share
from maxmargin.plots.curves import curves, phases, shown_quantity
from maxmargin.problem.fitted import certify_fit
from maxmargin.reports import page, svg, words
from maxmargin.reports.quality import quality
from maxmargin.runtime import thread_count

LABELS = {"gap": "objective − lower bound", "violation": "violation", "objective": "objective"}
UNEVEN = 100.0  # ratio of the features' spreads from which on scaling them is advised
MOST_CLASSES = 15  # shown one by one


def sections(model: Any, machine: Any, X: Any, y: Any, certify: bool, command: str | None) -> Iterator[str]:
    """The page from top to bottom."""
    X = X if sp.issparse(X) else np.asarray(X) if not hasattr(X, "columns") else X
    y = None if y is None else np.asarray(y)
    told = quality(model, X, y)
    yield page.text(f"{type(machine).__name__}: {machine.status_}", f"badge {mood(machine.status_)}")
    yield page.cards([*told.cards, *_cards(machine)])
    yield _certificate(model, machine, X, y, certify)
    yield page.section("How it got there", page.charts(*_convergence(machine), *_levels(machine), _costs(machine)))
    if told.body:
        yield page.section("How good it is on these samples", *told.body)
    yield _data(X, y, is_classifier(machine))
    yield _parameters(machine)
    yield _repeat(model, machine, X, y, command)


def _cards(machine: Any) -> list[tuple[str, str]]:
    out = []
    if math.isfinite(machine.dual_gap_):
        out.append((share(relative_gap(machine)), "proven distance from the optimum"))
    if hasattr(machine, "support_vectors_"):
        out.append((f"{len(getattr(machine, 'support_', machine.support_vectors_)):,}", "support vectors"))
    if "total" in machine.timings_:
        out.append((f"{machine.timings_['total']:.3g} s", "training"))
    return out


def _certificate(model: Any, machine: Any, X: Any, y: Any, certify: bool) -> str:
    sentences = words.certificate(machine)
    if certify:
        try:
            sentences.append(words.checked(certify_fit(model, X, y)))
        except ValueError as error:
            sentences.append(f"It could not be judged once more: {error}.")
    return page.section("What is proven", *(page.text(sentence) for sentence in sentences))


def _convergence(machine: Any) -> Iterator[tuple[str, str]]:
    trace = getattr(machine, "trace_", None)
    if trace is None or not len(trace):
        return
    for wanted in dict.fromkeys((shown_quantity(trace, "auto", "time"), "objective")):
        found = curves(trace, wanted, "time")
        if wanted == "objective" and len(found) > 1:
            continue  # objectives of pairs of classes, one after the other: nothing to be seen
        drawn = []
        for curve in found:
            both = ((curve.values, "c0"), (curve.lower, "c1 dashed"))
            drawn += [(curve.x, v, style) for v, style in both if v is not None and np.isfinite(v).sum() >= 2]
        if drawn:
            title = {"gap": "Gap", "violation": "Violation", "objective": _bounds(drawn)}[wanted]
            several = f", {len(found)} problems" if len(found) > 1 else ""
            yield title + several, svg.lines(drawn, title, "seconds", LABELS[wanted], log=wanted != "objective")
        elif wanted != "objective":
            yield LABELS[wanted].capitalize(), page.text("One turn was enough: there is no curve.", "soft")


def _bounds(drawn: list[Any]) -> str:
    """What is shown of objectives and lower bounds."""
    kinds = {style for _, _, style in drawn}
    return {1: "Objective" if kinds == {"c0"} else "Lower bound", 2: "Objective and lower bound (dashed)"}[len(kinds)]


def _levels(machine: Any) -> Iterator[tuple[str, str]]:
    levels = getattr(machine, "levels_", ())
    if len(levels):
        head = ("stage", "clusters", "support vectors", "seconds")
        rows = [
            (f"level {row['level']}" if row["stage"] == "level" else str(row["stage"]), int(row["clusters"]),
             int(row["n_support"]), float(row["time_clustering"] + row["time_solving"]))
            for row in levels
        ]  # fmt: skip
        yield "Levels", page.table(rows, head)


def _costs(machine: Any) -> tuple[str, str]:
    return "Seconds per phase", page.bars(phases(machine.timings_))


def _data(X: Any, y: Any, classes: bool) -> str:
    rows, features = X.shape
    values = X.data if sp.issparse(X) else np.asarray(X, np.float64)
    stored = X.nnz if sp.issparse(X) else int(np.count_nonzero(values))
    dtype = X.dtype if hasattr(X, "dtype") else values.dtype
    facts: list[tuple[str, Any]] = [
        ("samples", rows), ("features", features),
        ("stored as", f"{'sparse (CSR)' if sp.issparse(X) else 'dense'}, {dtype}"),
        ("not zero", f"{stored:,} values, {share(stored / max(1, rows * features))}"),
    ]  # fmt: skip
    if values.size:
        facts.append(("values", f"{values.min():.4g} to {values.max():.4g}"))
    spread = _spread(X)
    constant = int((spread == 0).sum())
    if constant:
        facts.append(("constant features", constant))
    varying = spread[spread > 0]
    uneven = len(varying) > 1 and varying.max() > UNEVEN * varying.min()
    advice = ""
    if uneven:
        factor = f"{varying.max() / varying.min():.2g}"
        advice = page.text(
            f"The spreads of the features differ by a factor of {factor}: scale them (StandardScaler, `maxmargin scale`) "
            "unless that is meant."
        )
    return page.section("The samples", page.charts(("Summary", page.table(facts)), _labels(y, classes)), advice)


def _spread(X: Any) -> Any:
    """Standard deviation of each feature."""
    if not sp.issparse(X):
        return np.asarray(X, np.float64).std(axis=0)
    mean = np.asarray(X.mean(axis=0), np.float64).ravel()
    square = np.asarray(X.multiply(X).mean(axis=0), np.float64).ravel()
    return np.sqrt(np.maximum(square - mean**2, 0))


def _labels(y: Any, classes: bool) -> tuple[str, str]:
    if y is None:
        return "Labels", ""
    if not classes:
        numbers = np.asarray(y, np.float64)
        return "Targets", svg.histogram([("", numbers)], "Histogram of the targets", "target")
    names, counts = np.unique(y, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    shown = {str(names[k]): float(counts[k]) for k in order}
    more = f", the {MOST_CLASSES} largest of {len(names)}" if len(names) > MOST_CLASSES else ""
    return f"Samples per class{more}", page.bars(shown, "{:,.0f}".format)


def _parameters(machine: Any) -> str:
    defaults = type(machine)().get_params(deep=False)
    rows = []
    for name, value in sorted(machine.get_params(deep=False).items()):
        same = type(value) is type(defaults[name]) and bool(np.all(value == defaults[name]))
        rows.append((name, _short(value), "" if same else f"default: {_short(defaults[name])}"))
    return page.section("Parameters", page.table(rows))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _repeat(model: Any, machine: Any, X: Any, y: Any, command: str | None) -> str:
    inside = "" if model is machine else f"  # inside {type(model).__name__}"
    code = command or f"from maxmargin import {type(machine).__name__}\n\nmodel = {machine!r}.fit(X, y){inside}"
    threads = thread_count(getattr(machine, "n_jobs", None))
    facts = [
        ("maxmargin", f"{VERSION}, instruction set {_core.ISA}, {threads} threads"),
        ("Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("NumPy, SciPy, scikit-learn", f"{np.__version__}, {scipy.__version__}, {sklearn.__version__}"),
        ("these samples", f"SHA-256 {_fingerprint(X, y)}"),
    ]
    return page.section("How to repeat it", f"<pre>{escape(code)}</pre>", page.table(facts))


def _fingerprint(X: Any, y: Any) -> str:
    """A checksum of values, shape and labels: the same samples have the same one."""
    digest = hashlib.sha256(repr(X.shape).encode())
    for part in [X.data, X.indices, X.indptr] if sp.issparse(X) else [np.asarray(X)]:
        digest.update(np.ascontiguousarray(part).tobytes() if part.dtype.kind != "O" else repr(part.tolist()).encode())
    if y is not None:
        digest.update(repr(y.tolist()).encode())
    return digest.hexdigest()[:32]

