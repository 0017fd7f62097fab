"""Time to a relative error of the objective: fits at tolerances from 1e-1 to 1e-5, each once.

The error is the dual value's distance to the best one that any fit of the set reached, as the evaluator sees it. The
peers have a kernel cache of 2,000 MB, maxmargin its default of 200 MB. A fit is stopped after 100 seconds: single precision
cannot reach every tolerance, and a program that does not notice goes on for ever.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options
from benchmarks.experiments.exact import ROWS, at_best

TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
TARGETS = (1e-2, 1e-4, 1e-6)
LIBSVM_TOLS = (1e-1, 1e-2, 1e-3, 1e-4)  # it is the slow one
LIMIT = 100.0


class ExactError(Experiment):
    title = "Exact kernel machines: time against error"
    yardstick = "scikit-learn"
    sets = ("ijcnn1", "mnist8", "cadata")
    solvers = ("maxmargin", "scikit-learn", "sklearnex-float32")
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        tols = sorted(options.tols or TOLS, reverse=True)  # loose first: a timeout there spares the tighter ones
        return [
            Cell(
                name,
                solver,
                at_best(name, solver, tol),
                rows=ROWS.get(name),
                limit=LIMIT,
                label=f"tol {tol:g}",
            )
            for name in self.chosen_sets(options)
            for tol in tols
            for solver in self.chosen_solvers(options)
            if options.tols or solver != "scikit-learn" or tol in LIBSVM_TOLS
        ]

    def report(self, run: dict[str, Any]) -> str:
        records = run["records"]
        lines = [["set", "solver", *(f"to {target:g}" for target in TARGETS)]]
        for name in report.rows_of(records):
            ours: list[float | None] = []
            for solver in report.columns_of(self, records):
                fits = [r for r in records if report.row_name(r) == name and r["solver"] == solver]
                times = [_seconds_to(fits, target) for target in TARGETS]
                ours = times if solver == self.baseline else ours
                lines.append([name, solver, *(_shown(t, o) for t, o in zip(times, ours or [None] * len(times)))])
        table = "Seconds of the quickest fit within the error (ratio to ours).\n\n" + report.markdown(lines)
        picture = "![time against objective error](exact_error.svg)"
        return "\n\n".join(part for part in (table, picture, report.reasons(records)) if part)

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        return plots.time_to_error(run, folder / "exact_error.svg")


def _seconds_to(fits: list[dict[str, Any]], target: float) -> float | None:
    good = [r["best"] for r in fits if r["status"] == "ok" and r.get("dual_excess", 1.0) <= target]
    return min(good, default=None)


def _shown(time: float | None, ours: float | None) -> str:
    if time is None:
        return "not reached"
    if ours is None or time is ours:
        return report.seconds(time)
    return f"{report.seconds(time)} ({time / ours:.3g}×)" + (" **LOST**" if time < ours else "")
