"""Which results must be measured again, by which commands, and about how long that takes."""

from __future__ import annotations

from typing import Any

from benchmarks import harness, provenance, report
from benchmarks.base import Cell, Experiment, Options

AROUND = 5.0  # seconds beside a fit: process, imports, warm-up, data; the evaluator's pass
UNKNOWN = 20.0  # seconds for a cell that nobody has timed yet


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
            found[name] = minutes(experiment, runs.get(name)), why
    return dict(sorted(found.items(), key=lambda item: item[1]))


def minutes(experiment: Experiment, run: dict[str, Any] | None) -> float:
    """From the times of the stored run (or of the same solver on the same set) and the turns that the harness will take."""
    options = Options()
    cells = experiment.cells(options)
    repeat = [min(experiment.repeat, cell.repeat or experiment.repeat) for cell in cells]
    total = 0.0
    for group in harness.by_data(cells, repeat, options).values():
        fits = [(_known(cell, run) * cell.number, asked, 1.0 if cell.alone else 0.5) for cell, asked in group]
        for turn in range(max(asked for _, asked in group)):
            if turn and sum(fit * min(turn, asked) for fit, asked, _ in fits) > harness.TURNS_SECONDS:
                break
            total += sum((fit + AROUND) * share for fit, asked, share in fits if asked > turn)
    return total / 60


def _known(cell: Cell, run: dict[str, Any] | None) -> float:
    near = [r for r in (run or {"records": []})["records"] if (r["dataset"], r["solver"]) == (cell.dataset, cell.solver)]
    alike = [r for r in near if r["label"] == cell.label and r["problem"]["tol"] == cell.problem.tol] or near
    times = [r["best"] for r in alike if r["status"] == "ok"]
    times += [report.limit_of(r) for r in alike if r["status"] == "timeout"]
    return min(max(times, default=UNKNOWN), cell.limit or float("inf"))
