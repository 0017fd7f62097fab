"""Divide and conquer where there is nothing to divide: `DCSVC(early=True)` beside a cold `SVC` on sets that are easy.

Goal: at most 1.2 times the time of the cold machine where that one is the faster. Both fit no intercept. `shuttle` is
generated: 43,500 rows, two classes with next to no overlap, less than a hundred support vectors.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

EARLY, COLD = "maxmargin-dc-early", "maxmargin"
ROWS = {"kddcup99": 50_000}
GOAL = 1.2


class EasyDC(Experiment):
    title = "Divide and conquer: easy data"
    sets = ("shuttle", "kddcup99", "w8a")
    solvers = (EARLY, COLD)
    baseline = EARLY

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        size: dict[str, Any] = {"test_rows": 15_000, "score_only": True, "number": 1 if options.quick else 3}
        return [
            Cell(name, solver, Problem("svc", **known[name].kernel, fit_intercept=False), rows=ROWS.get(name), **size)
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        return "\n\n".join(part for part in (goal_table(run["records"]), report.reasons(run["records"])) if part)


def goal_table(records: list[dict[str, Any]]) -> str:
    lines = [["set", "early, s", "score", "cold `SVC`, s", "score", "early / cold", "goal", "verdict"]]
    for name in report.rows_of(records):
        cells = {r["solver"]: r for r in records if report.row_name(r) == name}
        early, cold = cells.get(EARLY), cells.get(COLD)
        if early is None or cold is None or cold["status"] != "ok":
            continue
        if early["status"] != "ok":
            times = [early["status"], "", report.seconds(cold["best"]), report.score(cold)]
            lines.append([name, *times, "", f"≤ {GOAL}", "LOST"])
            continue
        ratio = early["best"] / cold["best"]
        numbers = [text for r in (early, cold) for text in (report.seconds(r["best"]), report.score(r))]
        lines.append([name, *numbers, f"{ratio:.2f}", f"≤ {GOAL}", "reached" if ratio <= GOAL else "LOST"])
    return "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""
