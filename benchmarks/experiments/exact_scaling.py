"""Fit time against the number of training rows: covtype, C=32, γ=32, 10,000 to 100,000 rows, and the exponent.

The exponent is the slope of log(seconds) over log(rows), by least squares over the sizes that finished. Peers run at the
sizes that take them a minute or two at most, with a kernel cache of 2,000 MB, maxmargin with its default of 200 MB. Ours
also runs on one thread. Models are judged up to 20,000 rows.
"""

from __future__ import annotations

import math
import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options
from benchmarks.experiments.exact import at_best

SIZES = (10_000, 20_000, 50_000, 100_000)
LARGEST = {"scikit-learn": 20_000, "sklearnex-float32": 50_000}
LARGEST_ONE_THREAD = 50_000
JUDGED_ROWS, TEST_ROWS = 20_000, 20_000
GOAL = 1.7  # speed-up on 2 cores


class ExactScaling(Experiment):
    title = "Exact kernel machines: time against n"
    sets = ("covtype",)
    solvers = ("maxmargin", "sklearnex-float32", "scikit-learn")
    yardstick = "scikit-learn"
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        sizes = (500, 1000, 2000) if options.quick else [n for n in SIZES if not options.rows or n <= options.rows]
        cells = []
        for name in self.chosen_sets(options):
            for rows in sizes:
                same = {"rows": rows, "test_rows": TEST_ROWS, "judged": rows <= JUDGED_ROWS}
                for solver in self.chosen_solvers(options):
                    if rows <= LARGEST.get(solver, rows):
                        cells.append(Cell(name, solver, at_best(name, solver), **same))
                if self.baseline in self.chosen_solvers(options) and rows <= LARGEST_ONE_THREAD:
                    ours = at_best(name, self.baseline)
                    cells.append(Cell(name, self.baseline, ours, threads=1, label="1 thread", **same))
        return cells

    def report(self, run: dict[str, Any]) -> str:
        lines = [["solver", "threads allowed", "exponent", "sizes"]]
        for (solver, threads), points in curves(run).items():
            if len(points) > 1:
                sizes = ", ".join(f"{rows:,}" for rows, _ in points)
                lines.append([solver, str(threads), f"{exponent(points):.2f}", sizes])
        parts = [report.tables(self, run)]
        if len(lines) > 1:
            parts += ["## Exponents", report.markdown(lines), "![time against rows](exact_scaling.svg)"]
        return "\n\n".join([*parts, threads_table(self, run)]).rstrip()

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        named = [r | {"solver": f"{r['solver']}, 1 thread"} if r["label"] else r for r in run["records"]]
        return plots.time_against_rows(run | {"records": named}, folder / "exact_scaling.svg")


def curves(run: dict[str, Any]) -> dict[tuple[str, int], list[tuple[float, float]]]:
    """(rows, seconds) of the fits that finished, by solver and threads."""
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for r in run["records"]:
        if r["status"] == "ok":
            found.setdefault((r["solver"], r["threads"]), []).append((r["rows"], r["best"]))
    return found


def threads_table(experiment: Experiment, run: dict[str, Any]) -> str:
    """One thread against all, per size."""
    lines = [["rows", "1 thread, s", f"{run['threads']} threads, s", "speed-up", "efficiency", f"goal {GOAL:g}×"]]
    found = curves(run)
    one, all_ = (dict(found.get((experiment.baseline, threads), [])) for threads in (1, run["threads"]))
    for rows in (n for n in one if n in all_ and run["threads"] > 1):
        speedup = one[rows] / all_[rows]
        efficiency = speedup / run["threads"]
        verdict = "reached" if efficiency >= GOAL / 2 else "LOST"
        times = [f"{rows:,}", report.seconds(one[rows]), report.seconds(all_[rows])]
        lines.append([*times, f"{speedup:.2f}×", f"{100 * efficiency:.0f} %", verdict])
    return "## One thread against all\n\n" + report.markdown(lines) if len(lines) > 1 else ""


def exponent(points: list[tuple[float, float]]) -> float:
    """Least-squares slope of log(y) over log(x)."""
    xs, ys = ([math.log(p[i]) for p in points] for i in (0, 1))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)
