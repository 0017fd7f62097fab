"""What the levels find (seed 000, figures 1, 2 and 3): bound and difference, support vectors, time, error, accuracy.

Each line is a fit that stops at one level; level 0 is the whole problem. The difference is f(level) − f(best known),
with all support vectors together; the bound is Theorem 1's (at lower levels Theorem 3's), estimated on the sample.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

ROWS = {"covtype": 10_000, "ijcnn1": 20_000}  # figure 1's size for covtype


class DCLevels(Experiment):
    title = "Divide and conquer: what the levels find"
    sets = ("covtype", "ijcnn1")
    solvers = ("maxmargin-dc-coefficients", "maxmargin-dc-level", "maxmargin")
    baseline = "maxmargin"
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        for name in self.chosen_sets(options):
            kernel = dict(known[name].kernel, fit_intercept=False)
            for stop in (4, 3, 2, 1, 0):
                problem = Problem("svc", **kernel, options={"levels": 4, "stop_level": stop})
                for solver in ("maxmargin-dc-coefficients", "maxmargin-dc-level"):
                    cells.append(Cell(name, solver, problem, ROWS[name], label=f"level {stop}"))
            for tol in (1e-1, 1e-2, 1e-3, 1e-4):
                cells.append(Cell(name, "maxmargin", Problem("svc", **kernel, tol=tol), ROWS[name], label=f"tol {tol:g}"))
        return [cell for cell in cells if cell.solver in self.chosen_solvers(options)]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "model", "seconds", "bound", "relative difference", "precision", "recall", "accuracy, early"]]
        early = {(r["dataset"], r["label"]): r for r in run["records"] if r["solver"] == "maxmargin-dc-level"}
        for r in run["records"]:
            if r["status"] != "ok" or r["solver"] == "maxmargin-dc-level":
                continue
            extra, score = r.get("extra", {}), early.get((r["dataset"], r["label"]), r).get("score")
            shown = [report.number(extra.get(key), 3) for key in ("precision", "recall")]
            accuracy = "" if score is None else f"{100 * score:.2f} %"
            bound, error = report.number(extra.get("bound"), 3), report.number(r.get("dual_excess"), 2)
            lines.append([r["dataset"], r["label"], report.seconds(r["best"]), bound, error, *shown, accuracy])
        return report.markdown(lines) + "\n\n![time against error](dc_levels.svg)"

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        def point(r: dict[str, Any]) -> tuple[float, float] | None:
            return None if r.get("dual_excess") is None else (r["best"], max(r["dual_excess"], 1e-9))

        return plots.panels(run, folder / "dc_levels.svg", point, ("seconds", "relative error of the objective"))
