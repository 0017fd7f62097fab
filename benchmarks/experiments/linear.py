"""Linear machines: time, iterations and objective at C = 1 (the tables of Franc & Sonnenburg 2008 are `ocas_table2` and
others).

No intercept, hinge loss, relative gap 1e-3 for ours. LIBLINEAR's and SGD's tol is not a gap: its objective is judged.
The curves run every solver at several tolerances on the smaller sets; the error is the primal value's distance to the
best one known. Solvers without hope of a place (the plain cutting plane algorithm, the two stochastic ones) run once
per cell and are stopped after half a minute.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem

TABLE_TOL = 1e-3
CURVE_TOLS = (1e-1, 1e-2, 1e-4)
CURVE_SETS = ("a9a", "w8a", "ijcnn1", "reuters", "news20_binary")
SLOW = ("linear-cpa", "sklearn-sgd", "linear-pegasos")
SLOW_LIMIT = 30.0
NAMES = {
    "linear-maxmargin": "maxmargin",
    "liblinear-s3": "LIBLINEAR -s 3",
    "linear-ocas": "our own OCAS (Algorithm 1)",
    "linear-cpa": "plain cutting planes",
}
STRENGTHS: dict[str, tuple[float, ...]] = {"covtype": (1.0, 10.0)}


class Linear(Experiment):
    title = "Linear machines"
    baseline = "linear-maxmargin"
    yardstick = None
    bandwidth = True
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
                repeat=None if tol == table and solver not in SLOW else 1,
                limit=SLOW_LIMIT if solver in SLOW else None,
                label="" if tol == table else "curve",
            )
            for name in self.chosen_sets(options)
            for C in STRENGTHS.get(name, (1.0,))
            for tol in sorted(tols, reverse=True)
            for solver in self.chosen_solvers(options)
            if tol == table or (name in CURVE_SETS and solver != "linear-pegasos")  # which has no tolerance
        ]

    def report(self, run: dict[str, Any]) -> str:
        ours = [r for r in run["records"] if r["label"] == "" and r["status"] == "ok"]
        parts = [report.tables(self, run), iterations(self, run), speed_of_passes(run, ours)]
        if any(record["label"] == "curve" for record in run["records"]):
            parts.append("## Time to a relative objective error\n\n![time against objective error](linear_error.svg)")
        return "\n\n".join(part for part in parts if part)

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        return plots.time_to_error(run, folder / "linear_error.svg")

    def text_readme(self, run: dict[str, Any]) -> str:
        """README's table: ours, LIBLINEAR, and the paper's own algorithm."""
        return self._short_table(run, (self.baseline, "liblinear-s3", "linear-ocas"))

    def text_table(self, run: dict[str, Any]) -> str:
        """The table of docs/linear.md."""
        return self._short_table(run, (self.baseline, "linear-ocas", "liblinear-s3", "linear-cpa"))

    def text_stochastic(self, run: dict[str, Any]) -> str:
        """ "0.3 to 700 %": how far above the best objective the stochastic methods end."""
        found = [r for r in run["records"] if r["label"] == "" and r["solver"] in ("sklearn-sgd", "linear-pegasos")]
        return report.between([100 * r["primal_excess"] for r in found if r["status"] == "ok"]) + " %"

    def _short_table(self, run: dict[str, Any], solvers: tuple[str, ...]) -> str:
        columns = {solver: NAMES[solver] for solver in solvers}
        records = [r for r in run["records"] if r["label"] == ""]
        lines = [["data", "rows × features", *columns.values()]]
        for name in report.rows_of(records):
            cells = {r["solver"]: r for r in records if report.row_name(r) == name}
            ours = cells[self.baseline]
            times = [report.time_cell(cells.get(solver), ours, []) for solver in columns]
            lines.append([f"{ours['dataset']}, {report.parameters(ours)}", report.size(ours), f"**{times[0]}**", *times[1:]])
        return report.markdown(lines)


def iterations(experiment: Experiment, run: dict[str, Any]) -> str:
    """The paper's second number per cell."""
    records = [r for r in run["records"] if r["label"] == "" and r["status"] == "ok"]
    columns = report.columns_of(experiment, records)
    lines = [["iterations", *columns]]
    for name in report.rows_of(records):
        cells = {r["solver"]: r.get("extra", {}).get("iterations") for r in records if report.row_name(r) == name}
        lines.append([name, *("" if cells.get(c) is None else f"{cells[c]:,.0f}" for c in columns)])
    return "## Iterations\n\n" + report.markdown(lines)


def speed_of_passes(run: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """Bytes of X read by full passes, per second in them, beside what the machine can read."""
    machine = run.get("read_gb_per_s") or {}
    lines = [["set", "solver", "threads", "X, MB", "passes", "seconds in them", "GB/s", "machine's GB/s", "share"]]
    for r in records:
        extra, size = r.get("extra", {}), r.get("memory", {}).get("data_mb", 0.0) * 2**20
        passes, spent = extra.get("passes"), extra.get("pass_seconds")
        if not passes or not spent:
            continue
        speed, limit = size * passes / spent / 1e9, machine.get(str(r["threads"]))
        beside = [f"{limit:.1f}", f"{100 * speed / limit:.0f} %"] if limit else ["", ""]
        lines.append(
            [
                report.row_name(r),
                r["solver"],
                str(r["threads"]),
                f"{size / 1e6:.1f}",
                f"{passes:.0f}",
                report.seconds(spent),
                f"{speed:.1f}",
                *beside,
            ]
        )
    if len(lines) == 1:
        return ""
    return (
        "## Memory bandwidth\n\nA turn needs the outputs X·w: one pass over X. GB/s is the size of X times its full "
        "passes per second spent in them (first run of a cell); the machine's is measured in the same run, by NumPy's "
        "dot products over 512 MB on as many threads. Above 100 %: X fits into the caches, or (mnist8) it is mostly "
        "zeros and read through a copy without them. Passes over a part of the rows (cuts, Newton matrices, coordinate "
        "descent) are not counted.\n\n" + report.markdown(lines)
    )
