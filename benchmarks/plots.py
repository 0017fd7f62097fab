"""Pictures of the results, as SVG. Without matplotlib there are none, and the tables still are."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any


def _pyplot() -> Any:
    try:
        import matplotlib

        matplotlib.use("svg")
        matplotlib.rcParams.update({"svg.hashsalt": "maxmargin", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})
        import matplotlib.pyplot as pyplot
    except ImportError:
        return None
    return pyplot


def panels(
    run: dict[str, Any],
    path: pathlib.Path,
    value: Callable[[dict[str, Any]], tuple[float, float] | None],
    labels: tuple[str, str],
    panel: Callable[[dict[str, Any]], str] = lambda record: record["dataset"],
) -> list[pathlib.Path]:
    """A log-log panel per data set with a line per solver, its points in the order of the records.

    `value` gives the point of a record, or None.
    """
    pyplot = _pyplot()
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for record in run["records"]:
        point = value(record) if record["status"] == "ok" else None
        if point is not None and min(point) > 0:
            lines.setdefault(panel(record), {}).setdefault(record["solver"], []).append(point)
    if pyplot is None or not lines:
        return []
    columns = min(3, len(lines))
    height = -(-len(lines) // columns)
    figure, axes = pyplot.subplots(height, columns, figsize=(4.2 * columns, 3.2 * height), squeeze=False)
    order = list(dict.fromkeys(solver for series in lines.values() for solver in series))
    for axis, (name, series) in zip(axes.ravel(), lines.items()):
        for solver, points in series.items():
            axis.loglog(*zip(*points), "o-", ms=4, label=solver, color=f"C{order.index(solver)}")
        _readable_ticks(axis.xaxis, axis.get_xlim())
        _readable_ticks(axis.yaxis, axis.get_ylim())
        axis.set_title(name)
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])
    for axis in axes.ravel()[len(lines) :]:
        axis.set_visible(False)
    handles = {h: l for a in axes.ravel() for h, l in zip(*a.get_legend_handles_labels())}
    unique = {label: handle for handle, label in handles.items()}
    wide = min(len(unique), 4 if columns > 1 else 2)
    figure.legend(unique.values(), unique.keys(), loc="lower center", ncol=wide, frameon=False)
    figure.tight_layout(rect=(0, 0.09 * -(-len(unique) // wide) / height, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return [path]


def bounds(run: dict[str, Any], path: pathlib.Path) -> list[pathlib.Path]:
    """Per data set: objective (solid) and lower bound (dashed) over the turns, as distances from the best objective."""
    pyplot = _pyplot()
    done = [r for r in run["records"] if r["status"] == "ok" and r.get("curves")]
    names = list(dict.fromkeys(r["dataset"] for r in done))
    if pyplot is None or not names:
        return []
    solvers = list(dict.fromkeys(r["solver"] for r in done))
    figure, axes = pyplot.subplots(1, len(names), figsize=(4.2 * len(names), 3.6), squeeze=False)
    for axis, name in zip(axes.ravel(), names):
        mine = [r for r in done if r["dataset"] == name]
        best = min(min(r["curves"]["objective"]) for r in mine)
        for r in mine:
            turns = range(1, len(r["curves"]["objective"]) + 1)
            color = f"C{solvers.index(r['solver'])}"
            above = [max(f / best - 1, 1e-6) for f in r["curves"]["objective"]]
            below = [max(1 - low / best, 1e-6) for low in r["curves"]["lower"]]
            axis.loglog(turns, above, "-", color=color, label=r["solver"])
            axis.loglog(turns, below, "--", color=color)
        axis.set_ylim(1e-5, 10)
        axis.set_title(name)
        axis.set_xlabel("turns")
        axis.set_ylabel("relative distance from the best objective")
    handles, labels = axes.ravel()[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return [path]


def _readable_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Within one or two decades label 1, 2 and 5; beyond, matplotlib's powers of ten will do."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_minor_formatter(NullFormatter())
    if limits[1] / limits[0] < 100:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")


def time_to_error(run: dict[str, Any], path: pathlib.Path, floor: float = 1e-12) -> list[pathlib.Path]:
    """Fit time against the relative excess of the objective (dual where there is one), floored for the log axis."""

    def point(record: dict[str, Any]) -> tuple[float, float] | None:
        excess = record.get("dual_excess", record.get("primal_excess"))
        return None if excess is None else (record["best"], max(excess, floor))

    return panels(run, path, point, ("seconds", "relative objective error"))


def time_against_rows(run: dict[str, Any], path: pathlib.Path) -> list[pathlib.Path]:
    return panels(run, path, lambda record: (record["rows"], record["best"]), ("training rows", "seconds"))


Series = dict[str, list[tuple[float, float]]]


def lines(
    path: pathlib.Path, panels: dict[str, Series], labels: list[tuple[str, str]], scales: list[tuple[str, str]]
) -> list[pathlib.Path]:
    """Panels side by side, {title: {series: points}}, each with its own labels and scales ("linear" or "log")."""
    pyplot = _pyplot()
    if pyplot is None or not panels:
        return []
    columns = min(2, len(panels))
    height = -(-len(panels) // columns)
    figure, axes = pyplot.subplots(height, columns, figsize=(5.2 * columns, 3.6 * height), squeeze=False)
    for axis, (title, series), label, scale in zip(axes.ravel(), panels.items(), labels, scales):
        for name, points in series.items():
            axis.plot(*zip(*points), "o-", ms=4, label=name)
        axis.set(title=title, xlabel=label[0], ylabel=label[1], xscale=scale[0], yscale=scale[1])
        axis.legend(frameon=False)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return [path]
