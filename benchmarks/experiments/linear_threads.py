"""Table 4 of Franc & Sonnenburg 2008: seconds per phase with one thread and with more, and GB/s beside the machine's.

Relative gap 1e-3. Phases are the solvers' own clocks in the first run of a cell, so they need not add up to the best
time. GB/s: bytes of X times the full passes over X, per second spent in those passes; the machine's is a stream of
reads by as many threads (dot products in NumPy over 512 MB), measured in the same run. The paper's 15 million rows of
human splice sites are not at hand.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Line, Options, Problem
from benchmarks.experiments.linear import speed_of_passes
from benchmarks.papers import ocas


class LinearThreads(Experiment):
    title = "Linear machines: threads"
    shows = ("ocas_table4",)
    baseline = "linear-maxmargin"
    sets = ("mnist8", "covtype")
    solvers = ("linear-maxmargin", "linear-ocas")
    bandwidth = True

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(name, solver, Problem("linear", fit_intercept=False), threads=threads, label=f"{threads} threads")
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
            for threads in (1, max(2, options.threads))
        ]

    def report(self, run: dict[str, Any]) -> str:
        done = [r for r in run["records"] if r["status"] == "ok"]
        alone = {(r["dataset"], r["solver"]): r for r in done if r["threads"] == 1}
        parts = []
        for solver in dict.fromkeys(r["solver"] for r in done):
            mine = [r for r in done if r["solver"] == solver]
            phases = list(
                dict.fromkeys(
                    key for r in mine for key in r.get("extra", {}) if key.startswith("time_") and key != "time_total"
                )
            )
            lines = [["set", "threads", "seconds", "speed-up", *(p.removeprefix("time_") for p in phases)]]
            for r in mine:
                one = alone.get((r["dataset"], solver))
                ratio = f"{one['best'] / r['best']:.2f}×" if one and r is not one else ""
                spent = [f"{r['extra'][p]:.3f}" if p in r["extra"] else "" for p in phases]
                lines.append([report.row_name(r), str(r["threads"]), report.seconds(r["best"]), ratio, *spent])
            parts.append(f"## {solver}\n\n{report.markdown(lines)}")
        parts += [speed_of_passes(run, done), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        why = "15 million rows there; memory is the limit here too"
        found = speedups(run)
        lines = [
            Line(
                "Table 4",
                f"{name}, {solver}: speed-up on {threads} CPUs",
                "",
                ocas.TABLE_4[threads][0],
                value,
                why,
                "more",
                True,
            )
            for (name, solver, threads), value in found.items()
            if threads in ocas.TABLE_4
        ]
        more = [count for count in ocas.TABLE_4 if count > run["threads"]]
        return lines + [
            Line("Table 4", f"speed-up on {n} CPUs", "", ocas.TABLE_4[n][0], None, "no such machine") for n in more
        ]

    def text_speedups(self, run: dict[str, Any]) -> str:
        found = [f"{solver} on {name} {value:.2f}" for (name, solver, _), value in speedups(run).items()]
        return ", ".join(found) or "(not measured yet)"


def speedups(run: dict[str, Any]) -> dict[tuple[str, str, int], float]:
    """{(set, solver, threads): times faster than with one}"""
    done = [r for r in run["records"] if r["status"] == "ok"]
    alone = {(r["dataset"], r["solver"]): r["best"] for r in done if r["threads"] == 1}
    several = [r for r in done if r["threads"] > 1 and (r["dataset"], r["solver"]) in alone]
    return {(r["dataset"], r["solver"], r["threads"]): alone[r["dataset"], r["solver"]] / r["best"] for r in several}
