"""Fits of 150 rows (iris), where nothing but overhead counts. Goal: within twice scikit-learn's time.

Each process fits 200 times; the best fit counts.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

GOAL = 2.0


class SmallFit(Experiment):
    title = "Small fits"
    sets = ("iris", "iris_binary")
    solvers = ("maxmargin", "scikit-learn", "sklearnex-float64", "libsvm")
    repeat = 2

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        number = 20 if options.quick else 200
        return [
            Cell(name, solver, Problem("svc", **known[name].kernel), number=number)
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        best = {(r["dataset"], r["solver"]): r["best"] for r in run["records"] if r["status"] == "ok"}
        verdicts = []
        for name in dict.fromkeys(r["dataset"] for r in run["records"]):
            ours, theirs = best.get((name, self.baseline)), best.get((name, "scikit-learn"))
            if ours and theirs:
                verdict = "reached" if ours <= GOAL * theirs else "LOST"
                verdicts.append(f"- {name}: {ours / theirs:.2f} times scikit-learn's time, goal {GOAL:g}: {verdict}")
        return "\n\n".join(part for part in (report.tables(self, run), "\n".join(verdicts)) if part)
