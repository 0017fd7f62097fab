"""OCAS's Table 3 with a validation split: C chosen by the area under the ROC curve on rows held out of the training rows.

`linear-cv` is LinearSVCCV: all C on two thirds of the training rows, along a path that keeps its cuts, judged on the last
third, and the best one fitted to all of them. The others fit every C from nothing to all training rows, as the paper's
programs did; their time has no choice in it. All rows of each set; the area is that on the test rows.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem

STRENGTHS = (0.01, 0.1, 1.0, 10.0)
SEARCH = "linear-cv"


class SelectionLinear(Experiment):
    title = "Linear machines: C by a validation split"
    baseline = SEARCH
    sets = ("a9a", "w8a", "reuters", "covtype")
    solvers = (SEARCH, "linear-maxmargin", "linear-path", "liblinear-s3")
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        rows = 3_000 if options.quick else None

        def problem(C: float, solver: str) -> Problem:
            many = solver in (SEARCH, "linear-path")
            return Problem("linear", C=C, fit_intercept=False, options={"Cs": list(STRENGTHS)} if many else {})

        return [
            Cell(name, solver, problem(C, solver), rows=rows, score_only=solver == SEARCH, label=f"C={C:g}")
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
            for C in (STRENGTHS[-1:] if solver in (SEARCH, "linear-path") else STRENGTHS)
        ]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "solver", "seconds for all C", "of linear-cv's", "best C", "auROC there", "certified fits"]]
        done = [r for r in run["records"] if r["status"] == "ok"]
        for name in dict.fromkeys(r["dataset"] for r in done):
            search = next((r for r in done if (r["dataset"], r["solver"]) == (name, SEARCH)), None)
            for solver in dict.fromkeys(r["solver"] for r in done if r["dataset"] == name):
                mine = [r for r in done if (r["dataset"], r["solver"]) == (name, solver)]
                total = sum(r["best"] for r in mine)
                ratio = "" if search is None or solver == SEARCH else f"{total / search['best']:.2g}×"
                lines.append([name, solver, report.seconds(total), ratio, *_choice(mine, solver)])
        parts = [report.markdown(lines), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)


def _choice(mine: list[dict[str, Any]], solver: str) -> list[str]:
    """Best C, its area, how many fits are proven. Of programs that do not choose, the best on the test rows."""
    if solver == SEARCH:
        r, e = mine[0], mine[0]["extra"]
        area = "" if r.get("auc") is None else f"{r['auc']:.4f}"
        return [f"{e['C']:g}", area, f"{e['certified']:.0f} of {e['settings']:.0f}"]
    known = [r for r in mine if r.get("auc") is not None]
    if len(known) < len(STRENGTHS):
        return ["", "", ""]
    best = max(known, key=lambda r: r["auc"])
    return [f"{best['problem']['C']:g} (test rows)", f"{best['auc']:.4f}", ""]
