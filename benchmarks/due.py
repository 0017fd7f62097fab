"""Which results must be measured again, by which commands, and about how long that takes."""

from __future__ import annotations

from typing import Any

from benchmarks import harness, provenance, report
from benchmarks.base import Cell, Experiment, Options

AROUND = 5.0  # seconds beside a fit: process, imports, warm-up, data; the evaluator's pass
UNKNOWN = 20.0  # seconds for a cell that nobody has timed yet


def table(experiments: dict[str, Experiment], runs: dict[str, dict[str, Any]]) -> str:
    """A line per experiment that has no result, or one whose origin is not what it must be; the shortest first."""
    lines = []
    for name, experiment in experiments.items():
        why = provenance.faults(runs[name]) if name in runs else ["not measured yet"]
        if why:
            lines.append((minutes(experiment, runs.get(name)), f"python -m benchmarks run {name}", "; ".join(why)))
    if not lines:
        return "nothing is due: every stored result names clean revisions of this history"
    lines.sort()
    rows = [[command, f"{time:.0f}", why] for time, command, why in lines]
    return report.markdown([["command", "minutes, about", "why"], *rows, ["all", f"{sum(l[0] for l in lines):.0f}", ""]])


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
