"""Which results must be measured again, by which commands, and about how long that takes."""

from __future__ import annotations

from typing import Any

from benchmarks import harness, provenance, report
from benchmarks.base import Cell, Experiment, Options

AROUND = 5.0  # seconds beside a fit: process, imports, warm-up, data; the evaluator's pass
LONG = 15.0  # minutes: from here on, `due` also says what each data set takes


Runs = dict[str, dict[str, Any]]


def table(experiments: dict[str, Experiment], runs: Runs) -> str:
    """A line per experiment that is due."""
    found = due(experiments, runs)
    if not found:
        return "nothing is due: every stored result names clean revisions of this history"
    rows = []
    for name, (time, why) in found.items():
        rows.append([f"python -m benchmarks run {name}", f"{time:.0f}", "; ".join(why)])
        parts = by_set(experiments[name], runs) if time > LONG else {}
        for part, spent in parts.items():
            rows.append([f"python -m benchmarks run {name} --sets {part}", f"{spent:.0f}", "of these"])
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


def by_set(experiment: Experiment, runs: Runs) -> dict[str, float]:
    """Minutes of each data set, shortest first: sets are measured and stored one by one."""
    if len(experiment.sets) < 2:
        return {}
    spent = {name: minutes(experiment, runs, [name]) for name in experiment.sets}
    return dict(sorted(spent.items(), key=lambda item: item[1]))


def minutes(experiment: Experiment, runs: Runs, sets: list[str] | None = None) -> float:
    """From the times of the nearest cells on record and the turns that the harness will take."""
    options = Options(sets=sets)
    cells = experiment.cells(options)
    repeat = [min(experiment.repeat, cell.repeat or experiment.repeat) for cell in cells]
    own = runs.get(experiment.name, {"records": []})["records"]
    others = [record for name, run in runs.items() if name != experiment.name for record in run["records"]]
    total = 0.0
    for group in harness.by_data(cells, repeat, options).values():
        known = []
        for cell, _ in group:
            time = _seconds(cell, own) or _seconds(cell, _as_large(cell, others)) or experiment.guess(cell)
            known.append(min(time, cell.limit or experiment.time_limit))
        fits = [(t * cell.number, asked, 1.0 if cell.alone else 0.5) for t, (cell, asked) in zip(known, group)]
        for turn in range(max(asked for _, asked in group)):
            if turn and sum(fit * min(turn, asked) for fit, asked, _ in fits) > harness.TURNS_SECONDS:
                break
            total += sum((fit + AROUND) * share for fit, asked, share in fits if asked > turn)
    return total / 60


def _as_large(cell: Cell, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of other experiments on as many rows of the set: parts of it say nothing of the whole."""
    mine = [r for r in records if r["dataset"] == cell.dataset]
    most = max((r["rows"] for r in mine), default=0)
    return [r for r in mine if r["rows"] == (cell.rows or most)]


def _seconds(cell: Cell, records: list[dict[str, Any]]) -> float | None:
    """The mean over the records of this set and solver that resemble the cell most; None if there are none."""
    near = [r for r in records if (r["dataset"], r["solver"]) == (cell.dataset, cell.solver)]
    times: dict[int, list[float]] = {}
    for r in near:
        if r["status"] in ("ok", "timeout"):
            fields = ("C", "gamma", "kernel", "tol", "options")
            alike = sum(r["problem"][name] == getattr(cell.problem, name) for name in fields)
            alike += (r["label"] == cell.label) + (cell.rows in (None, r["rows"]))
            spent = r["best"] if r["status"] == "ok" else report.limit_of(r)
            times.setdefault(alike, []).append(spent + sum(r.get("fit_times", [])))  # of predictions: the fit before them
    best = times[max(times)] if times else []
    return sum(best) / len(best) if best else None
