"""Total time over a grid of C and γ (seed 000, Table 4): early, exact, and scikit-learn."""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem

GRID = tuple(2.0**e for e in (-10, -6, 1, 6, 10))  # the paper's, for both
ROWS = {"ijcnn1": 20_000, "covtype": 10_000}
OURS = ("maxmargin-dc-early", "maxmargin-dc")


class DCGrid(Experiment):
    title = "Divide and conquer: a grid of C and γ"
    sets = ("ijcnn1", "covtype")
    solvers = (*OURS, "maxmargin", "scikit-learn")
    baseline = "maxmargin-dc-early"
    repeat = 1
    time_limit = 120.0

    def cells(self, options: Options) -> list[Cell]:
        grid = (2.0**-6, 2.0) if options.quick else GRID
        return [
            Cell(name, solver, Problem("svc", C=C, gamma=gamma, fit_intercept=solver not in OURS), ROWS[name])
            for name in self.chosen_sets(options)
            for C in grid
            for gamma in grid
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "solver", "total seconds", "settings", "over the limit", "best accuracy"]]
        for name in dict.fromkeys(r["dataset"] for r in run["records"]):
            for solver in report.columns_of(self, run["records"]):
                mine = [r for r in run["records"] if r["dataset"] == name and r["solver"] == solver]
                done = [r for r in mine if r["status"] == "ok"]
                late = [r for r in mine if r["status"] == "timeout"]
                total = sum(r["best"] for r in done) + run["time_limit"] * len(late)
                best = max((r["score"] for r in done if r.get("score") is not None), default=float("nan"))
                text = f"{'> ' if late else ''}{total:.3g}"
                lines.append([name, solver, text, f"{len(mine)}", f"{len(late)}", f"{100 * best:.2f} %"])
        return report.markdown(lines)
