"""A machine that others use too: two threads against one while a foreign process keeps every core busy, and idle.

Goal: with one busy process per core, `n_jobs=2` takes at most 1.3 times what `n_jobs=1` takes then, on every engine. Here
every fit may use all cores whatever its number of threads is, as it may for users. The busy processes start before the clock
and are pinned, one per core. Medians over all fits of a cell, as luck has a larger part here than elsewhere.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

Record = dict[str, Any]

GOAL = 1.3
FITS = 5  # per process, of which there is one: most of its time goes into its start
IDLE, BUSY = "idle", "busy"


class Busy(Experiment):
    title = "Busy machines"
    sets = ("ijcnn1", "letters", "mnist10", "covtype")
    solvers = ("maxmargin", "linear-maxmargin", "maxmargin-dc", "budget")
    excess_allowed = float("inf")  # how long it takes is the question here; other pages judge the models
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        threads = max(2, options.threads)
        number = 1 if options.quick else FITS
        return [
            Cell(name, solver, problem, rows=rows, test_rows=100, threads=count, cores=threads, neighbours=neighbours,
                 number=number, judged=False, label=f"{engine}, {IDLE if neighbours == 0 else BUSY}")
            for engine, name, solver, rows, problem in engines()
            if name in self.chosen_sets(options) and solver in self.chosen_solvers(options)
            for neighbours in (0, 1)
            for count in (1, threads)
        ]  # fmt: skip

    def report(self, run: dict[str, Any]) -> str:
        return "\n\n".join(part for part in (goal_table(run["records"]), report.reasons(run["records"])) if part)


def engines() -> list[tuple[str, str, str, int | None, Problem]]:
    """Engine, set, solver, rows and problem: fits of some tenths of a second, so that threads have work."""
    known = discover("datasets")
    ijcnn1, letters, mnist10 = (known[name].kernel for name in ("ijcnn1", "letters", "mnist10"))
    return [
        ("SVC, two classes", "ijcnn1", "maxmargin", 20_000, Problem("svc", **ijcnn1)),
        ("SVC, 26 classes", "letters", "maxmargin", None, Problem("svc", **letters)),
        ("SVC, 26 classes, linear kernel", "letters", "maxmargin", None, Problem("svc", kernel="linear")),
        ("SVC, ten classes", "mnist10", "maxmargin", 3_000, Problem("svc", **mnist10)),
        ("LinearSVC", "covtype", "linear-maxmargin", 100_000, Problem("linear")),
        ("DCSVC", "ijcnn1", "maxmargin-dc", 20_000, Problem("svc", **ijcnn1, fit_intercept=False)),
        ("BudgetSVC", "ijcnn1", "budget", 20_000, Problem("svc", **ijcnn1, options={"random_state": 0})),
    ]


def goal_table(records: list[Record]) -> str:
    """Per engine the medians of one thread and of several, idle and busy, and the verdict on the busy ones."""
    lines = [["engine", "set", "", "1 thread, s", "more threads, s", "ratio", "goal", "verdict"]]
    for label in dict.fromkeys(r["label"] for r in records):
        row = [r for r in records if r["label"] == label]
        engine, _, kind = label.rpartition(", ")
        bad = next((r for r in row if r["status"] != "ok"), None)
        goal = f"≤ {GOAL}" if kind == BUSY else ""
        place = [engine, report.row_name(row[0]), kind]
        if bad is not None or len(row) < 2:
            lines.append([*place, "", "", bad["status"] if bad else "", goal, "LOST" if goal and bad else ""])
            continue
        one, more = (statistics.median(r["times"]) for r in sorted(row, key=lambda r: int(r["threads"])))
        ratio = more / one
        verdict = ("reached" if ratio <= GOAL else "LOST") if goal else ""
        lines.append([*place, report.seconds(one), report.seconds(more), f"{ratio:.2f}", goal, verdict])
    return "## Goals\n\nMedian seconds of a fit.\n\n" + report.markdown(lines) if len(lines) > 1 else ""
