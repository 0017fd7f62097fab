"""Prediction from a level (DC-SVM paper, Table 1): early (6), all support vectors (5), Bayesian committee; ms per sample.

50,000 training rows of covtype (the paper: 464,810, so its accuracies are higher), all of ijcnn1; 20,000 test rows. The
last line of a set is the exact machine.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

RULES = ("early", "all", "bcm")
CLUSTERS = (50, 100)
ROWS, TEST_ROWS = {"covtype": 50_000}, 20_000
PAPER = {
    ("covtype", "early 50"): "96.1 %, 0.4 ms",
    ("covtype", "all 50"): "94.6 %, 2.6 ms",
    ("covtype", "bcm 50"): "91.5 %, 3.7 ms",
    ("covtype", "early 100"): "96.0 %, 0.2 ms",
    ("covtype", "all 100"): "92.7 %, 2.6 ms",
    ("covtype", "bcm 100"): "89.3 %, 5.6 ms",
}


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
            same = {"rows": ROWS.get(name), "test_rows": TEST_ROWS, "measure": "predict", "score_only": True}
            for k in CLUSTERS:
                for rule in RULES:
                    level = {"k": k, "levels": 1, "stop_level": 1, "predict_with": rule}
                    problem = Problem("svc", **kernel, options=level)
                    cells.append(Cell(name, "maxmargin-dc-level", problem, **same, label=f"{rule} {k}"))
            cells.append(Cell(name, "maxmargin-dc", Problem("svc", **kernel), **same, label="exact"))
        return [cell for cell in cells if cell.solver in self.chosen_solvers(options)]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "rule, clusters asked for", "clusters", "accuracy", "ms per sample", "exact / this", "the paper"]]
        exact = {r["dataset"]: r["best"] for r in run["records"] if r["label"] == "exact" and r["status"] == "ok"}
        for r in run["records"]:
            if r["status"] != "ok":
                continue
            name, label = r["dataset"], r["label"]
            score = f"{100 * r['score']:.2f} %" if r.get("score") is not None else ""
            ratio = f"{exact[name] / r['best']:.3g}×" if name in exact and label != "exact" else ""
            clusters = f"{r['extra'].get('clusters', float('nan')):.0f}" if label != "exact" else ""
            time = f"{1e3 * r['best'] / r['test_rows']:.3g}"
            lines.append([name, label, clusters, score, time, ratio, PAPER.get((name, label), "")])
        return "\n\n".join(part for part in (report.markdown(lines), report.reasons(run["records"])) if part)
