"""DC-SVM against the peers (seed 000, Table 2): seconds and accuracy, early and exact.

The divide and conquer machines fit no intercept, as in the paper; the peers always do. All of covtype (464,809 rows) is
for our machines alone: LIBSVM takes hours there.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

OURS = ("maxmargin-dc-early", "maxmargin-dc")
ROWS = {"covtype": 50_000, "mnist_round": 20_000, "kddcup99": 50_000}
POLY = {"kernel": "poly", "degree": 3, "C": 2.0, "gamma": 1.0}  # the paper's for covtype


class DC(Experiment):
    title = "Divide and conquer"
    sets = ("ijcnn1", "covtype", "kddcup99", "mnist_round")
    solvers = (*OURS, "maxmargin", "scikit-learn", "sklearnex-float32")
    baseline = "maxmargin-dc-early"
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        for name in self.chosen_sets(options):
            for solver in self.chosen_solvers(options):
                problem = Problem("svc", **known[name].kernel, fit_intercept=solver not in OURS)
                cells.append(Cell(name, solver, problem, rows=ROWS.get(name)))
                if name == "covtype":
                    poly = Problem("svc", **POLY, fit_intercept=solver not in OURS)
                    cells.append(Cell(name, solver, poly, rows=20_000))
                    if solver in OURS:
                        cells.append(Cell(name, solver, problem, label="all rows"))
        return cells

    def report(self, run: dict[str, Any]) -> str:
        lines = [["covtype, all rows", "seconds", "accuracy", "support vectors", "peak MB"]]
        for r in run["records"]:
            if r["label"] == "all rows" and r["status"] == "ok":
                count, memory = r["extra"].get("n_support", float("nan")), r.get("memory") or {}
                peak = memory.get("peak_mb", "") if isinstance(memory, dict) else memory
                score = f"{100 * r['score']:.2f} %" if r.get("score") is not None else ""
                lines.append([r["solver"], report.seconds(r["best"]), score, f"{count:,.0f}", f"{peak}"])
        large = "## Half a million rows\n\n" + report.markdown(lines) if len(lines) > 1 else ""
        return "\n\n".join(part for part in (report.tables(self, run), large) if part)
