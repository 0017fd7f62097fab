"""Table 3 of Franc & Sonnenburg 2008: model selection over C, the whole path timed, best test score shown.

The score is the evaluator's (accuracy on the test rows) in place of the paper's area under the ROC curve.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem

STRENGTHS = (0.01, 0.1, 1.0, 10.0)


class LinearSelection(Experiment):
    title = "Linear machines: model selection over C"
    baseline = "linear-maxmargin"
    sets = ("a9a", "w8a", "ijcnn1", "covtype")
    solvers = ("linear-maxmargin", "linear-ocas", "liblinear-s3", "sklearn-sgd")
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(name, solver, Problem("linear", C=C, fit_intercept=False), label="path")
            for name in self.chosen_sets(options)
            for C in STRENGTHS
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "solver", "best C", "test score", "seconds for all C"]]
        done = [r for r in run["records"] if r["status"] == "ok" and r.get("score") is not None]
        for name in dict.fromkeys(r["dataset"] for r in done):
            for solver in dict.fromkeys(r["solver"] for r in done):
                mine = [r for r in done if r["dataset"] == name and r["solver"] == solver]
                if mine:
                    top = max(mine, key=lambda r: r["score"])
                    total = sum(r["best"] for r in mine)
                    lines.append([name, solver, f"{top['problem']['C']:g}", f"{top['score']:.4f}",
                                  report.seconds(total)])
        return report.markdown(lines)
