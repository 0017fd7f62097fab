"""Which results must be measured again, by which commands, and about how long that takes."""

from __future__ import annotations

from typing import Any

from benchmarks import harness, provenance, report
from benchmarks.base import Cell, Experiment, Options

AROUND = 5.0  # seconds beside a fit: process, imports, warm-up, data; the evaluator's pass
UNKNOWN = 10.0  # seconds for a cell that nobody has timed yet


Runs = dict[str, dict[str, Any]]


def table(experiments: dict[str, Experiment], runs: Runs) -> str:
    """A line per experiment that is due."""
    found = due(experiments, runs)
    if not found:
        return "nothing is due: every stored result names clean revisions of this history"
    rows = [[f"python -m benchmarks run {name}", f"{time:.0f}", "; ".join(why)] for name, (time, why) in found.items()]
    total = f"{sum(time for time, _ in found.values()):.0f}"
    return report.markdown([["command", "minutes, about", "why"], *rows, ["python -m benchmarks run due", total, "all"]])


def due(experiments: dict[str, Experiment], runs: Runs) -> dict[str, tuple[float, list[str]]]:
    """Experiments without a result, or with one whose origin is not what it must be: minutes and why, shortest first."""
    found = {}
    for name, experiment in experiments.items():
        why = provenance.faults(runs[name]) if name in runs else ["not measured yet"]
        if why:
            found[name] = minutes(experiment, runs), why
    return dict(sorted(found.items(), key=lambda item: item[1]))


def minutes(experiment: Experiment, runs: Runs) -> float:
    """From the times of the nearest cells on record and the turns that the harness will take."""
    options = Options()
    cells = experiment.cells(options)
    repeat = [min(experiment.repeat, cell.repeat or experiment.repeat) for cell in cells]
    own = runs.get(experiment.name, {"records": []})["records"]
    records = own or [record for run in runs.values() for record in run["records"]]
    total = 0.0
    for group in harness.by_data(cells, repeat, options).values():
        fits = [(_seconds(cell, records) * cell.number, asked, 1.0 if cell.alone else 0.5) for cell, asked in group]
        for turn in range(max(asked for _, asked in group)):
            if turn and sum(fit * min(turn, asked) for fit, asked, _ in fits) > harness.TURNS_SECONDS:
                break
            total += sum((fit + AROUND) * share for fit, asked, share in fits if asked > turn)
    return total / 60


def _seconds(cell: Cell, records: list[dict[str, Any]]) -> float:
    """The mean over the records of this set and solver that resemble the cell most."""
    near = [r for r in records if (r["dataset"], r["solver"]) == (cell.dataset, cell.solver)]
    times: dict[int, list[float]] = {}
    for r in near:
        if r["status"] in ("ok", "timeout"):
            fields = ("C", "gamma", "kernel", "tol", "options")
            alike = sum(r["problem"][name] == getattr(cell.problem, name) for name in fields)
            alike += (r["label"] == cell.label) + (cell.rows in (None, r["rows"]))
            times.setdefault(alike, []).append(r["best"] if r["status"] == "ok" else report.limit_of(r))
    best = times[max(times)] if times else [UNKNOWN]
    return min(sum(best) / len(best), cell.limit or float("inf"))
