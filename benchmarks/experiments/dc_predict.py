"""Prediction from a level (seed 000, Table 1): early (6), all support vectors (5), Bayesian committee; ms per sample."""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

RULES = ("early", "all", "bcm")
CLUSTERS = (50, 100)


class DCPredict(Experiment):
    title = "Divide and conquer: prediction from a level"
    sets = ("covtype", "ijcnn1")
    solvers = ("maxmargin-dc-level", "maxmargin-dc")
    baseline = "maxmargin-dc-level"
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        for name in self.chosen_sets(options):
            kernel = dict(known[name].kernel, fit_intercept=False)
            rows = 50_000 if name == "covtype" else None
            for k in CLUSTERS:
                for rule in RULES:
                    level = {"k": k, "levels": 1, "stop_level": 1, "predict_with": rule}
                    problem = Problem("svc", **kernel, options=level)
                    cells.append(Cell(name, "maxmargin-dc-level", problem, rows, measure="predict", label=f"{rule} {k}"))
            cells.append(Cell(name, "maxmargin-dc", Problem("svc", **kernel), rows, measure="predict", label="exact"))
        return [cell for cell in cells if cell.solver in self.chosen_solvers(options)]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "rule, clusters", "accuracy", "ms per sample"]]
        for r in run["records"]:
            if r["status"] == "ok":
                per_sample = 1e3 * r["best"] / r["test_rows"] if r.get("test_rows") else float("nan")
                score = f"{100 * r['score']:.2f} %" if r.get("score") is not None else ""
                lines.append([r["dataset"], r["label"], score, f"{per_sample:.3g}"])
        return report.markdown(lines)
