"""Exact kernel machines against the peers: seconds, ratios, objectives; and time against the objective's error.

The table is at tol 1e-3, best of k. The curves add other tolerances, each run once (`--tols 1e-3` leaves them out).
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

TABLE_TOL = 1e-3
CURVE_TOLS = (1e-1, 1e-2, 1e-4, 1e-5)
INTELEX = ("sklearnex-float32", "sklearnex-float32-dense", "sklearnex-float64")
GOALS = {"scikit-learn": (("scikit-learn",), 12.0), "scikit-learn-intelex, its best variant": (INTELEX, 4.0)}
ROWS = {"covtype": 50_000, "mnist8": 20_000}


class Exact(Experiment):
    title = "Exact kernel machines"
    yardstick = "scikit-learn"
    sets = ("ijcnn1", "a9a", "w8a", "covtype", "mnist8", "mv", "cadata")
    solvers = (
        "maxmargin", "scikit-learn", "sklearnex-float32", "sklearnex-float32-dense", "sklearnex-float64", "libsvm",
    )  # fmt: skip

    def cells(self, options: Options) -> list[Cell]:
        tols = options.tols or ([TABLE_TOL] if options.quick else [TABLE_TOL, *CURVE_TOLS])
        table_tol = TABLE_TOL if TABLE_TOL in tols else tols[0]
        known = discover("datasets")
        cells = []
        for name in self.chosen_sets(options):
            for tol in sorted(tols, reverse=True):  # loose first: a timeout there spares the tighter ones
                for solver in self.chosen_solvers(options):
                    task = "svr" if known[name].task == "regression" else "svc"
                    cells.append(
                        Cell(
                            name,
                            solver,
                            Problem(task, tol=tol, **known[name].kernel),
                            rows=ROWS.get(name),
                            repeat=None if tol == table_tol else 1,
                            kernel_pass=solver == self.baseline and tol == table_tol,
                            label="" if tol == table_tol else "curve",
                        )
                    )
        return cells

    def report(self, run: dict[str, Any]) -> str:
        parts = [report.tables(self, run) + "\n", goal_table(self, run), report.limit_table(self, run)]
        if any(record["label"] == "curve" for record in run["records"]):
            parts.append(
                "## Time to a relative objective error\n\nEach point is one fit at one tolerance; the error is the "
                "dual value's distance to the best one known, as the evaluator sees it.\n\n"
                "![time against objective error](exact_error.svg)\n"
            )
        return "\n".join(part for part in parts if part)

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        return plots.time_to_error(run, folder / "exact_error.svg")


def goal_table(experiment: Experiment, run: dict[str, Any]) -> str:
    """Geometric mean and smallest ratio against each peer, taking the fastest of its variants that is not marked."""
    lines = [["against", "goal", "geometric mean", "smallest", "verdict"]]
    records = [r for r in run["records"] if r["label"] == "" and r["status"] != "skipped"]
    for peer, (variants, goal) in GOALS.items():
        ratios, failed = [], False
        for name in report.rows_of(records):
            cells = {r["solver"]: r for r in records if report.row_name(r) == name}
            good = {solver: r["best"] for solver, r in cells.items() if r["status"] == "ok" and not r["mark"]}
            times = [good[variant] for variant in variants if variant in good]
            failed |= experiment.baseline in cells and experiment.baseline not in good
            if experiment.baseline in good and times:
                ratios.append(min(times) / good[experiment.baseline])
        if ratios:
            mean = report.geometric_mean(ratios)
            verdict = "reached" if mean >= goal and min(ratios) >= 1 and not failed else "LOST"
            lines.append([peer, f"{goal:g}×, slower on none", f"{mean:.3g}×", f"{min(ratios):.3g}×", verdict])
    return "## Goals\n\n" + report.markdown(lines) + "\n" if len(lines) > 1 else ""
