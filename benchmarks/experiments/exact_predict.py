"""Prediction time of exact models on all test rows. Goal: 0.2 s for ijcnn1's 91,701 rows and some 2,500 support vectors.

The best of three predictions counts, of one where it takes more than five seconds. (scikit-learn and float64 are left
out on a9a, where their fits take a minute.)
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options
from benchmarks.experiments.exact import ROWS, at_best

GOAL = {"ijcnn1": 0.2}  # seconds
LEFT_OUT = {"a9a": ("scikit-learn", "sklearnex-float64")}


class ExactPredict(Experiment):
    title = "Exact kernel machines: prediction"
    sets = ("ijcnn1", "a9a", "mnist8")
    solvers = ("maxmargin", "scikit-learn", "sklearnex-float32", "sklearnex-float32-dense", "sklearnex-float64")
    yardstick = "scikit-learn"
    repeat = 1  # a worker predicts three times; the best counts

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(name, solver, at_best(name, solver), rows=ROWS.get(name), measure="predict")
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
            if options.solvers or solver not in LEFT_OUT.get(name, ())
        ]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "test rows", "support vectors", "ours, s", "ns per kernel value", "goal, s", "verdict"]]
        for r in run["records"]:
            if r["solver"] == self.baseline and r["status"] == "ok" and r.get("n_support"):
                each = f"{1e9 * r['best'] / (r['test_rows'] * r['n_support']):.2g}"
                goal = GOAL.get(r["dataset"])
                verdict = "" if goal is None else "reached" if r["best"] <= goal else "LOST"
                sizes = [f"{r['test_rows']:,}", f"{r['n_support']:,}", report.seconds(r["best"])]
                lines.append([r["dataset"], *sizes, each, "" if goal is None else f"{goal:g}", verdict])
        goals = "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""
        return "\n\n".join(part for part in (goals, report.tables(self, run)) if part)
