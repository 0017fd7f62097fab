"""Fit time against the number of training rows: covtype, C=32, γ=32, 10,000 to 100,000 rows, and the exponent.

The exponent is the slope of log(seconds) over log(rows), by least squares over the sizes that finished. LIBSVM's grows
with n² and more; a time limit keeps it from holding up the rest.
"""

from __future__ import annotations

import math
import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

SIZES = (10_000, 20_000, 50_000, 100_000)


class ExactScaling(Experiment):
    title = "Exact kernel machines: time against n"
    sets = ("covtype",)
    solvers = ("maxmargin", "sklearnex-float32", "scikit-learn")
    yardstick = "scikit-learn"
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        sizes = (500, 1000, 2000) if options.quick else [n for n in SIZES if not options.rows or n <= options.rows]
        kernel = {name: discover("datasets")[name].kernel for name in self.chosen_sets(options)}
        return [
            Cell(name, solver, Problem("svc", **kernel[name]), rows=rows)
            for name in self.chosen_sets(options)
            for rows in sizes
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        lines = [["solver", "exponent", "sizes"]]
        for solver in report.columns_of(self, run["records"]):
            points = [(r["rows"], r["best"]) for r in run["records"] if r["solver"] == solver and r["status"] == "ok"]
            if len(points) > 1:
                lines.append([solver, f"{exponent(points):.2f}", ", ".join(f"{rows:,}" for rows, _ in points)])
        if len(lines) == 1:
            return report.tables(self, run)
        picture = "![time against rows](exact_scaling.svg)"
        return "\n\n".join([report.tables(self, run), "## Exponents", report.markdown(lines), picture])

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        return plots.time_against_rows(run, folder / "exact_scaling.svg")


def exponent(points: list[tuple[float, float]]) -> float:
    """Least-squares slope of log(y) over log(x)."""
    xs, ys = ([math.log(p[i]) for p in points] for i in (0, 1))
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)
