"""`python -m maxmargin.demo` (or `make demo`): every machine on generated data, a closing table and a picture.

Adding a machine: one line in MACHINES.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_moons

import maxmargin
from maxmargin.plots.canvas import BLUE, INK, PALE_RED

FloatArray = NDArray[np.float64]
PICTURE = Path("demo") / "decision_regions.png"


@dataclass(frozen=True)
class Task:
    """Generated data and what counts as success on it."""

    name: str
    score: str
    X: FloatArray
    y: NDArray[Any]
    X_test: FloatArray
    y_test: NDArray[Any]


@dataclass(frozen=True)
class Entry:
    """A machine of the demo: the public name, its parameters and the task it is shown on."""

    name: str
    task: Callable[[], Task]
    options: dict[str, Any]


@dataclass(frozen=True)
class Fitted:
    entry: Entry
    task: Task
    model: Any
    seconds: float


def moons(n: int = 6000) -> Task:
    """Two classes in half moons that overlap a little."""
    X, y = make_moons(n + n // 2, noise=0.25, random_state=0)
    return Task("two moons", "accuracy", X[:n], y[:n], X[n:], y[n:])


def wave(n: int = 3000) -> Task:
    """A curve with noise on it."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, size=(n + n // 2, 1))
    clean = np.sin(2 * x[:, 0]) + 0.3 * x[:, 0]
    y = clean + 0.2 * rng.normal(size=len(x))
    return Task("noisy wave", "R²", x[:n], y[:n], x[n:], clean[n:])


def blobs(n: int = 4000) -> Task:
    """Normal samples in two blobs; the test set has as many outliers spread around them, labelled −1."""
    rng = np.random.default_rng(2)
    centers = np.array([[-1.2, -0.8], [1.2, 0.9]])
    X = centers[rng.integers(2, size=n + n // 4)] + 0.35 * rng.normal(size=(n + n // 4, 2))
    away = rng.uniform([-3.2, -2.8], [3.2, 2.8], size=(4 * n, 2))
    away = away[np.linalg.norm(away[:, None] - centers, axis=2).min(axis=1) > 1.2][: n // 4]
    X_test = np.vstack([X[n:], away])
    return Task("two blobs", "accuracy", X[:n], np.ones(n), X_test, np.repeat([1, -1], [n // 4, len(away)]))


MACHINES = (
    Entry("SVC", moons, {"C": 1.0, "gamma": 2.0}),
    Entry("NuSVC", moons, {"nu": 0.2, "gamma": 2.0}),
    Entry("DCSVC", moons, {"C": 1.0, "gamma": 2.0}),
    Entry("LinearSVC", moons, {"C": 1.0, "loss": "hinge", "intercept_scaling": None}),
    Entry("BudgetSVC", moons, {"C": 1.0, "gamma": 2.0, "random_state": 0}),
    Entry("SVR", wave, {"C": 10.0, "gamma": 1.0, "epsilon": 0.2}),
    Entry("LinearSVR", wave, {"C": 1.0, "epsilon": 0.2}),
    Entry("NuSVR", wave, {"C": 10.0, "gamma": 1.0, "nu": 0.3}),
    Entry("DCSVR", wave, {"C": 10.0, "gamma": 1.0, "epsilon": 0.2}),
    Entry("OneClassSVM", blobs, {"nu": 0.03, "gamma": 1.0}),
)


def main() -> int:
    """Train every machine, print the table, save the picture; the exit status is 0 when every fit reached its end."""
    fitted = [fit(entry) for entry in MACHINES]
    print(f"\n{table(fitted)}\n")
    try:
        draw(fitted, PICTURE)
    except ImportError:
        print("no picture: matplotlib is not installed (pip install 'maxmargin[plot]')")
    else:
        print(f"decision regions: {PICTURE}")
    return 0 if all(f.model.status_ in ("converged", "completed") for f in fitted) else 1


def fit(entry: Entry) -> Fitted:
    """One machine on its task, with a progress bar."""
    task = entry.task()
    model = getattr(maxmargin, entry.name)(**entry.options, verbose=True)
    start = time.perf_counter()
    model.fit(task.X, task.y)
    return Fitted(entry, task, model, time.perf_counter() - start)


# ---- the table --------------------------------------------------------------------------------------------------


def table(fitted: list[Fitted]) -> str:
    """What each machine did, in columns. The gap is relative to the objective: 1e-3 means within a thousandth of it."""
    head = ("solver", "data", "rows", "seconds", "score", "", "gap", "vectors", "status")
    rows = [head, *(row(f) for f in fitted)]
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = []
    for cells in rows:
        # names to the left, numbers to the right
        out = [c.ljust(w) if k in (0, 1, 5, 8) else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths))]
        lines.append("  ".join(out).rstrip())
    lines.insert(1, "  ".join("─" * w for w in widths))
    return "\n".join(lines)


def row(f: Fitted) -> tuple[str, ...]:
    score = np.mean(f.model.predict(f.task.X_test) == f.task.y_test)
    if f.task.score == "R²":
        score = f.model.score(f.task.X_test, f.task.y_test)
    gap = getattr(f.model, "dual_gap_", np.nan) / max(abs(getattr(f.model, "objective_", np.nan)), 1e-300)
    vectors = getattr(f.model, "support_vectors_", None)
    return (
        f.entry.name,
        f.task.name,
        f"{len(f.task.X):,}",
        f"{f.seconds:.2f}",
        f"{score:.3f}",
        f.task.score,
        f"{gap:.1e}" if np.isfinite(gap) else "-",
        "-" if vectors is None else f"{vectors.shape[0]:,}",
        f.model.status_,
    )


# ---- the picture ------------------------------------------------------------------------------------------------


def draw(fitted: list[Fitted], path: Path) -> None:
    """One panel per machine: regions and margins of classifiers, curves and tubes of regressors."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = 3 if len(fitted) > 4 else max(1, len(fitted))
    lines = -(-len(fitted) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.9 * lines), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    for k, f in enumerate(fitted):
        axes = figure.add_subplot(lines, columns, k + 1)
        (curve_panel if f.task.X.shape[1] == 1 else region_panel)(axes, f)
        cells = row(f)
        title = f"{cells[5]} {cells[4]}, {cells[3]} s" + (f", {cells[7]} vectors" if cells[7] != "-" else "")
        axes.set_title(f.entry.name, loc="left", fontsize=12, fontweight="bold", color=INK)
        axes.set_title(title, loc="right", fontsize=9, color=INK)
        axes.set_xticks([])
        axes.set_yticks([])
        for side in axes.spines.values():
            side.set_color("#c9d1d3")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def region_panel(axes: Any, f: Fitted) -> None:
    from maxmargin.plots import DecisionRegionsDisplay

    DecisionRegionsDisplay.from_estimator(f.model, f.task.X_test, f.task.y_test, max_points=500, ax=axes)


def curve_panel(axes: Any, f: Fitted) -> None:
    shown = slice(0, 500)
    x = np.linspace(f.task.X.min(), f.task.X.max(), 400)
    value = np.asarray(f.model.predict(x[:, None]))
    axes.scatter(f.task.X[shown, 0], f.task.y[shown], s=7, color=BLUE, alpha=0.45, linewidths=0)
    width = f.entry.options.get("epsilon")
    if width is not None:
        axes.fill_between(x, value - width, value + width, color=PALE_RED, alpha=0.45, linewidth=0)
    axes.plot(x, value, color=INK, linewidth=1.8)


if __name__ == "__main__":
    sys.exit(main())
