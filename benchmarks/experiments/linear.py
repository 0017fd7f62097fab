"""Linear machines (Table 2 and figure 2 of Franc & Sonnenburg 2008): time, iterations and objective.

No intercept, hinge loss, relative gap 1e-3 for ours. LIBLINEAR's and SGD's tol is not a gap: its objective is judged.
The curves run every solver at several tolerances; the error is the primal value's distance to the best one known.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem

TABLE_TOL = 1e-3
CURVE_TOLS = (1e-1, 1e-2, 1e-4)
STRENGTHS: dict[str, tuple[float, ...]] = {"covtype": (1.0, 10.0)}


class Linear(Experiment):
    title = "Linear machines"
    baseline = "linear-maxmargin"
    yardstick = None
    sets = ("mnist8", "covtype", "celegans", "a9a", "w8a", "ijcnn1", "reuters", "news20_binary")
    solvers = (
        "linear-maxmargin", "linear-ocas", "linear-cpa", "liblinear-s3", "sklearn-sgd", "linear-pegasos",
    )  # fmt: skip

    def cells(self, options: Options) -> list[Cell]:
        tols = options.tols or ([TABLE_TOL] if options.quick else [TABLE_TOL, *CURVE_TOLS])
        table = TABLE_TOL if TABLE_TOL in tols else tols[0]
        return [
            Cell(
                name,
                solver,
                Problem("linear", C=C, tol=tol, fit_intercept=False),
                repeat=None if tol == table else 1,
                label="" if tol == table else "curve",
            )
            for name in self.chosen_sets(options)
            for C in STRENGTHS.get(name, (1.0,))
            for tol in sorted(tols, reverse=True)
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        parts = [report.tables(self, run), iterations(self, run)]
        if any(record["label"] == "curve" for record in run["records"]):
            parts.append("## Time to a relative objective error\n\n![time against objective error](linear_error.svg)")
        return "\n\n".join(parts)

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        return plots.time_to_error(run, folder / "linear_error.svg")


def iterations(experiment: Experiment, run: dict[str, Any]) -> str:
    """The paper's second number per cell."""
    records = [r for r in run["records"] if r["label"] == "" and r["status"] == "ok"]
    columns = report.columns_of(experiment, records)
    lines = [["iterations", *columns]]
    for name in report.rows_of(records):
        cells = {r["solver"]: r.get("extra", {}).get("iterations") for r in records if report.row_name(r) == name}
        lines.append([name, *("" if cells.get(c) is None else f"{cells[c]:,.0f}" for c in columns)])
    return "## Iterations\n\n" + report.markdown(lines)
