"""Exact kernel machines where C is large: linear and Gaussian kernels, C from 1 to 10,000, against the peers at tol 1e-3.

With wide bounds it is the variables between them that take the steps of SMO, and programs that move two at a time take very
many. maxmargin moves all of them at once where that pays. Small parts of the sets, so that the peers end within the limit;
every program has a kernel cache that holds the whole matrix. A peer that is stopped counts with the limit, a lower bound.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

ROWS = {"a9a": 3000, "w8a": 6000, "ijcnn1": 6000, "covtype": 3000}
STRENGTHS = (1.0, 100.0, 10_000.0)
KERNELS = {"linear": "linear", "rbf": "Gaussian"}
CACHE = 2000.0  # MB


class LargeC(Experiment):
    title = "Exact kernel machines: large C"
    yardstick = "scikit-learn"
    sets = tuple(ROWS)
    solvers = ("maxmargin", "scikit-learn", "sklearnex-float64")
    repeat = 2
    time_limit = 60.0

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        return [
            Cell(
                name, solver, Problem("svc", C=C, kernel=kernel, gamma=known[name].kernel["gamma"], cache_size=CACHE),
                rows=ROWS[name], test_rows=20_000,
            )
            for name in self.chosen_sets(options)
            for kernel in KERNELS
            for C in (STRENGTHS[:2] if options.quick else STRENGTHS)
            for solver in self.chosen_solvers(options)
        ]  # fmt: skip

    def report(self, run: dict[str, Any]) -> str:
        parts = []
        for kernel, title in KERNELS.items():
            records = [r for r in run["records"] if r["problem"]["kernel"] == kernel]
            if records:
                tables = report.time_table(self, records), report.objective_table(self, records)
                parts.append("\n\n".join(part.replace("## ", f"## {title} kernel: ", 1) for part in tables if part))
        return "\n\n".join([*parts, report.reasons(run["records"])])

    def text_ratios(self, run: dict[str, Any], kernel: str, C: str) -> str:
        """ "3 to 40": the times of the peers as multiples of ours, for one kernel and C."""
        mine = [r for r in run["records"] if (r["problem"]["kernel"], f"{r['problem']['C']:g}") == (kernel, C)]
        ratios: list[float] = []
        for name in report.rows_of(mine):
            cells = {r["solver"]: r for r in mine if report.row_name(r) == name}
            for solver in self.solvers[1:]:
                report.time_cell(cells.get(solver), cells.get(self.baseline), ratios)
        return report.between(ratios)
