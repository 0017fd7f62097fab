"""Figure 1 of Franc & Sonnenburg 2008: objective and lower bound of CPA and OCAS, turn by turn, and the gap reached.

Each row is one run at a relative gap; the standard cutting plane algorithm lets its objective jump up and down, the
optimised one does not, which shows in the number of turns.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem

GAPS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)


class LinearConvergence(Experiment):
    title = "Linear machines: convergence of the cutting planes"
    baseline = "linear-ocas"
    sets = ("covtype", "a9a")
    solvers = ("linear-ocas", "linear-cpa", "linear-maxmargin")
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(name, solver, Problem("linear", tol=gap, fit_intercept=False), label=f"gap {gap:g}")
            for name in self.chosen_sets(options)
            for gap in (GAPS[:2] if options.quick else GAPS)
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "gap", "solver", "iterations", "seconds"]]
        for r in run["records"]:
            if r["status"] == "ok":
                turns = r.get("extra", {}).get("iterations", 0)
                lines.append([r["dataset"], f"{r['problem']['tol']:g}", r["solver"], f"{turns:.0f}",
                              report.seconds(r["best"])])
        return report.markdown(lines) + "\n\n![iterations against the gap](linear_convergence.svg)"

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        def point(record: dict[str, Any]) -> tuple[float, float]:
            return record.get("extra", {}).get("iterations", 0.0), record["problem"]["tol"]

        return plots.panels(run, folder / "linear_convergence.svg", point, ("iterations", "relative gap"))
