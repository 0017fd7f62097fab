"""Table 4 of Franc & Sonnenburg 2008: seconds per phase with one thread and with more."""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem


class LinearThreads(Experiment):
    title = "Linear machines: threads"
    baseline = "linear-maxmargin"
    sets = ("mnist8", "covtype")
    solvers = ("linear-maxmargin", "linear-ocas")

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(name, solver, Problem("linear", fit_intercept=False), threads=threads, label=f"{threads} threads")
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
            for threads in (1, max(2, options.threads))
        ]

    def report(self, run: dict[str, Any]) -> str:
        done = [r for r in run["records"] if r["status"] == "ok"]
        phases = list(dict.fromkeys(
            key for r in done for key in r.get("extra", {}) if key.startswith("time_") and key != "time_total"
        ))
        lines = [["set", "solver", "threads", "seconds", *(p.removeprefix("time_") for p in phases), "GB/s of X"]]
        for r in done:
            extra = r.get("extra", {})
            spent = extra.get("time_outputs", 0.0)
            size = r.get("memory", {}).get("data_mb", 0.0) / 1e3
            speed = f"{size * extra.get('iterations', 0) / spent:.1f}" if spent else ""
            lines.append([r["dataset"], r["solver"], str(r["threads"]), report.seconds(r["best"]),
                          *(f"{extra.get(p, 0.0):.3f}" for p in phases), speed])
        return report.markdown(lines)
