"""Prediction from a level (DC-SVM paper, Table 1): early (6), all support vectors (5), Bayesian committee; ms per sample.

All 464,809 training rows of covtype, as in the paper, and 20,000 test rows. The last line is the exact machine.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Line, Options, Problem, discover
from benchmarks.papers import dcsvm

RULES = ("early", "all", "bcm")
NAMES = {"early": "early prediction (6)", "all": "prediction by (5)", "bcm": "BCM"}
CLUSTERS = (50, 100)
TEST_ROWS = 20_000


class DCPredict(Experiment):
    title = "Divide and conquer: prediction from a level"
    shows = ("dcsvm_table1",)
    sets = ("covtype",)
    solvers = ("maxmargin-dc-level", "maxmargin-dc")
    baseline = "maxmargin-dc-level"
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        for name in self.chosen_sets(options):
            kernel = dict(known[name].kernel, fit_intercept=False)
            same = {"test_rows": TEST_ROWS, "measure": "predict", "score_only": True}
            for k in CLUSTERS:
                for rule in RULES:
                    level = {"k": k, "levels": 1, "stop_level": 1, "predict_with": rule}
                    problem = Problem("svc", **kernel, options=level)
                    cells.append(Cell(name, "maxmargin-dc-level", problem, **same, label=f"{rule} {k}"))
            cells.append(Cell(name, "maxmargin-dc", Problem("svc", **kernel), **same, label="exact"))
        return [cell for cell in cells if cell.solver in self.chosen_solvers(options)]

    def guess(self, cell: Cell) -> float:
        """A fit on all rows, and up to three predictions of seconds each."""
        return 90.0 if cell.solver == "maxmargin-dc" else 45.0

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "rule, clusters asked for", "clusters", "accuracy", "ms per sample", "exact / this"]]
        exact = {r["dataset"]: r["best"] for r in run["records"] if r["label"] == "exact" and r["status"] == "ok"}
        for r in run["records"]:
            if r["status"] != "ok":
                continue
            name, label = r["dataset"], r["label"]
            score = f"{100 * r['score']:.2f} %" if r.get("score") is not None else ""
            ratio = f"{exact[name] / r['best']:.3g}×" if name in exact and label != "exact" else ""
            clusters = f"{r['extra'].get('clusters', float('nan')):.0f}" if label != "exact" else ""
            time = f"{1e3 * r['best'] / r['test_rows']:.3g}"
            lines.append([name, label, clusters, score, time, ratio])
        return "\n\n".join(part for part in (report.markdown(lines), report.reasons(run["records"])) if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        found = {(r["dataset"], r["label"]): r for r in run["records"] if r["status"] == "ok"}
        lines = []
        for (name, rule, k), (accuracy, ms) in dcsvm.TABLE_1.items():
            r, cell = found.get((name, f"{rule} {k}")), f"{name}, {NAMES[rule]}, k = {k}"
            if name != "covtype":
                lines.append(Line("Table 1", cell, "%", accuracy, None, "the data is not at hand"))
                continue
            part = f"{r['rows']:,} training rows" if r and r["rows"] < 460_000 else ""
            score, time = (100 * r["score"], 1e3 * r["best"] / r["test_rows"]) if r else (None, None)
            mine = rule == "early"
            lines.append(Line("Table 1", cell, "%", accuracy, score, part, "more", mine))
            why = "; ".join(word for word in (dcsvm.MACHINE, part) if word)
            lines.append(Line("Table 1", cell, "ms", ms, time, why, "less", mine))
        return lines

    def text_rules(self, run: dict[str, Any]) -> str:
        """Accuracy and time of the three rules."""
        said = []
        for k in CLUSTERS:
            mine = {r["label"].split()[0]: r for r in run["records"] if r["label"].endswith(f" {k}") and r["status"] == "ok"}
            if set(RULES) <= set(mine):
                each = [
                    f"{rule} {report.score(mine[rule])} in {1e3 * mine[rule]['best'] / mine[rule]['test_rows']:.2g} ms"
                    for rule in RULES
                ]
                said.append(f"k = {k} ({mine['early']['rows']:,} rows of {mine['early']['dataset']}): {', '.join(each)}")
        return "; ".join(said) or "(not measured yet)"
