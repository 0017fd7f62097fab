"""Figure 2 of Franc & Sonnenburg 2008: objective against time of CPA, SGD and OCAS, down to a precision of 1e-6.

One fit per point: OCAS, CPA and our default at falling tolerances (relative gap), SGD with growing numbers of passes;
every objective is the evaluator's. Sets and C as in `ocas_table2`. CPA is stopped after half a minute.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem
from benchmarks.experiments.ocas_table2 import guess
from benchmarks.papers import ocas

TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
EPOCHS = (1, 3, 10, 30)
SGD, OCAS = "sklearn-sgd-epochs", "linear-ocas"
LIMIT = {"linear-cpa": 30.0, SGD: 60.0}


class OcasFigure2(Experiment):
    title = "Linear machines: objective against time"
    name = "ocas_figure2"
    shows = ("ocas_figure2",)
    sets = tuple(ocas.OURS.values())
    solvers = ("linear-maxmargin", OCAS, "linear-cpa", SGD)
    baseline = "linear-maxmargin"
    repeat = 1
    time_limit = 120.0
    excess_allowed = float("inf")

    def cells(self, options: Options) -> list[Cell]:
        cells = []
        for theirs, name in ocas.OURS.items():
            if name not in self.chosen_sets(options):
                continue
            for solver in self.chosen_solvers(options):
                same = {"C": ocas.STRENGTH[theirs], "fit_intercept": False}
                if solver == SGD:
                    points = [Problem("linear", **same, options={"epochs": count}) for count in EPOCHS]
                else:
                    points = [Problem("linear", **same, tol=tol) for tol in options.tols or TOLS]
                cells += [Cell(name, solver, p, limit=LIMIT.get(solver), label="curve") for p in points]
        return cells

    def guess(self, cell: Cell) -> float:
        return guess(cell)

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "solver", "seconds: relative error"]]
        done = [r for r in run["records"] if r["status"] == "ok" and r.get("primal_excess") is not None]
        for name, solver in dict.fromkeys((r["dataset"], r["solver"]) for r in done):
            mine = [r for r in done if (r["dataset"], r["solver"]) == (name, solver)]
            lines.append([name, solver, ", ".join(f"{report.seconds(r['best'])}: {r['primal_excess']:.1e}" for r in mine)])
        picture = "![objective against time](ocas_figure2.svg)"
        return "\n\n".join(part for part in (picture, report.markdown(lines), report.reasons(run["records"])) if part)

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        return plots.time_to_error(run, folder / "ocas_figure2.svg", floor=1e-8)

    def text_ahead(self, run: dict[str, Any]) -> str:
        """On which sets OCAS has the less error at the time of SGD's first pass, and at the time of its tenth."""
        said = []
        for passes in (1, 10):
            ahead, behind = [], []
            for name in self.sets:
                mine = [
                    r
                    for r in run["records"]
                    if r["dataset"] == name and r["status"] == "ok" and r.get("primal_excess") is not None
                ]
                sgd = next((r for r in mine if r["solver"] == SGD and r["problem"]["options"]["epochs"] == passes), None)
                if sgd is None:
                    continue
                then = [r["primal_excess"] for r in mine if r["solver"] == OCAS and r["best"] <= sgd["best"]]
                (ahead if then and min(then) < sgd["primal_excess"] else behind).append(name)
            if ahead or behind:
                words = [
                    f"ahead of SGD on {report.listed(ahead)}" if ahead else "",
                    f"behind on {report.listed(behind)}" if behind else "",
                ]
                said.append(
                    f"after {passes} pass{'es' if passes > 1 else ''} of SGD, OCAS is {', '.join(w for w in words if w)}"
                )
        return "; ".join(said) or "(not measured yet)"
