"""Peak memory of a fit against its promise: X + cache_size + 10 %.

Used is the peak of the resident set during fit, less what the process held before it loaded the data (interpreter,
libraries, thread pools, a warm-up fit). The last row trains on all 464,809 rows of covtype with cache_size=2000: the
whole process must stay under 3.5 GB. It is given some minutes; "ended" says whether it got to its tolerance in them. No
model is judged here, and scikit-learn is left out where it takes minutes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options
from benchmarks.experiments.exact import ROWS, problem_of

ALLOWANCE = 1.10
PROCESS_LIMIT_MB = 3500.0
PATIENCE = 450.0  # seconds for all rows of covtype
PEERS = {
    "ijcnn1": ("scikit-learn", "sklearnex-float32"),
    "mnist8": ("scikit-learn", "sklearnex-float32"),
    "a9a": ("sklearnex-float32",),
}


class ExactMemory(Experiment):
    title = "Exact kernel machines: memory"
    sets = ("ijcnn1", "a9a", "w8a", "mnist8", "covtype")
    solvers = ("maxmargin", "scikit-learn", "sklearnex-float32")
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        cells = [
            Cell(name, solver, problem_of(name), rows=ROWS.get(name), judged=False)
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
            if options.solvers or solver == self.baseline or solver in PEERS.get(name, ())
        ]
        if "covtype" in self.chosen_sets(options) and self.baseline in self.chosen_solvers(options):
            whole = replace(problem_of("covtype", cache_size=2000.0), options={"max_time": PATIENCE})
            cells.append(Cell("covtype", self.baseline, whole, judged=False, label="whole"))
        return cells

    def report(self, run: dict[str, Any]) -> str:
        head = ["set", "solver", "X, MB", "cache_size, MB", "used, MB", "used / (X + cache)", "process, MB", "ended"]
        lines = [[*head, "verdict"]]
        for r in run["records"]:
            if r["status"] != "ok":
                continue
            memory, cache = r["memory"], r["problem"]["cache_size"]
            used = memory["peak_mb"] - memory["start_mb"]
            share = used / (memory["data_mb"] + cache)
            good = share <= ALLOWANCE and (r["label"] != "whole" or memory["peak_mb"] <= PROCESS_LIMIT_MB)
            verdict = ("reached" if good else "LOST") if r["solver"] == self.baseline else ""
            numbers = [f"{memory['data_mb']:.0f}", f"{cache:.0f}", f"{used:.0f}", f"{100 * share:.0f} %"]
            ended = [f"{memory['peak_mb']:.0f}", _ended(r)]
            lines.append([report.row_name(r), r["solver"], *numbers, *ended, verdict])
        return "\n\n".join(part for part in (report.markdown(lines), report.reasons(run["records"])) if part)


def _ended(record: dict[str, Any]) -> str:
    """Seconds, and honestly when they were not enough."""
    converged = record.get("extra", {}).get("converged", 1.0)
    text = f"{report.seconds(record['best'])} s"
    return text if converged else f"{text}, stopped by max_time"
