"""Peak memory of a fit against its promise: X + cache_size + 10 %.

Used is the peak of the resident set during fit, less what the process held before it loaded the data (interpreter,
libraries, thread pools, a warm-up fit). The last row trains on all 464,809 rows of covtype with cache_size=2000 and
stops after a minute, when its cache is full: the whole process must stay under 3.5 GB. No model is judged here.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover
from benchmarks.experiments.exact import ROWS

ALLOWANCE = 1.10
PROCESS_LIMIT_MB = 3500.0


class ExactMemory(Experiment):
    title = "Exact kernel machines: memory"
    sets = ("ijcnn1", "a9a", "mnist8", "covtype")
    solvers = ("maxmargin", "scikit-learn", "sklearnex-float32")
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        cells = [
            Cell(name, solver, Problem("svc", **known[name].kernel), rows=ROWS.get(name), judged=False)
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
        ]
        if "covtype" in self.chosen_sets(options) and self.baseline in self.chosen_solvers(options):
            whole = Problem("svc", cache_size=2000.0, options={"max_time": 60.0}, **known["covtype"].kernel)
            cells.append(Cell("covtype", self.baseline, whole, judged=False, label="whole"))
        return cells

    def report(self, run: dict[str, Any]) -> str:
        head = ["set", "solver", "X, MB", "cache_size, MB", "used, MB", "used / (X + cache)", "process, MB", "verdict"]
        lines = [head]
        for r in run["records"]:
            if r["status"] != "ok":
                continue
            memory, cache = r["memory"], r["problem"]["cache_size"]
            used = memory["peak_mb"] - memory["start_mb"]
            share = used / (memory["data_mb"] + cache)
            good = share <= ALLOWANCE and (r["label"] != "whole" or memory["peak_mb"] <= PROCESS_LIMIT_MB)
            verdict = ("reached" if good else "LOST") if r["solver"] == self.baseline else ""
            numbers = [f"{memory['data_mb']:.0f}", f"{cache:.0f}", f"{used:.0f}", f"{100 * share:.0f} %"]
            lines.append([report.row_name(r), r["solver"], *numbers, f"{memory['peak_mb']:.0f}", verdict])
        return "\n\n".join(part for part in (report.markdown(lines), report.reasons(run["records"])) if part)
