"""Single rows: the time of one `predict` with 1,000 support vectors × 20 features, for one caller and for two at once.

Goal: 50 µs per prediction, for one caller and for two at once. Most of it is not arithmetic, which takes some
microseconds, but the way to it: validation, conversions, calls. The best of several rounds counts.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem

GOAL = 50e-6  # seconds
CALLERS = (1, 2)


class Latency(Experiment):
    title = "Prediction of single rows"
    sets = ("ijcnn1",)
    solvers = ("maxmargin-latency", "scikit-learn-latency")
    baseline = "maxmargin-latency"
    repeat = 2

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(name, solver, Problem("latency", options={"callers": callers}), rows=1000, number=20, judged=False,
                 label=f"{callers} at once" if callers > 1 else "one caller")
            for name in self.chosen_sets(options)
            for callers in CALLERS
            for solver in self.chosen_solvers(options)
        ]  # fmt: skip

    def guess(self, cell: Cell) -> float:
        return 0.1  # 200 predictions

    def report(self, run: dict[str, Any]) -> str:
        records = run["records"]
        columns = report.columns_of(self, records)
        lines = [["µs per prediction", "support vectors", *columns, "goal", "verdict"]]
        for label in dict.fromkeys(r["label"] for r in records):
            cells = {r["solver"]: r for r in records if r["label"] == label and r["status"] == "ok"}
            ours = cells.get(self.baseline)
            if ours is None:
                continue
            each = {name: r["best"] / r["extra"]["calls"] for name, r in cells.items()}
            times = [f"{1e6 * each[name]:.3g}" if name in each else "" for name in columns]
            verdict = "reached" if each[self.baseline] <= GOAL else "LOST"
            size = f"{ours['extra']['support_vectors']:,.0f}"
            lines.append([label, size, *times, f"{1e6 * GOAL:g}", verdict])
        parts = [report.markdown(lines) if len(lines) > 1 else "", report.reasons(records)]
        return "\n\n".join(part for part in parts if part)
