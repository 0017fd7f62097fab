"""SMO, interior point and gradient projection inside the decomposition: seed 003, Table 1 and figure 6.

The paper keeps SMO because its interior point method costs q³ per working set and failed on some ν. Here each of the
three solves every working set, on MNIST 8-against-rest (the paper's) and on a ν-SVC; SMO is native, the others are
Python over LAPACK and BLAS. What the paper lacks: seconds to a given relative error of the objective, and the three on
a problem of one working set, where the inner solver is all there is. Every fit runs once.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

INNER = ("smo", "ipm", "gpm")
SIZES = (256, 512, 1024)  # Table 1; half of a working set is new
ROWS = {"mnist8": 20_000, "ijcnn1": 20_000}
NU = {"ijcnn1": 0.05}  # ν-SVC; its largest feasible value there is 0.19
ALONE = 1000  # rows of the one-working-set problems
ALONE_SETS = ("mnist8", "ijcnn1", "mv")
TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
TARGETS = (1e-3, 1e-6, 1e-9)

Record = dict[str, Any]


class Inner(Experiment):
    title = "Inner solvers of the decomposition"
    sets = ("mnist8", "ijcnn1", "mv")
    solvers = ("maxmargin",)
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        tols = options.tols or (TOLS[1:5] if options.quick else TOLS)
        sizes = SIZES[:1] if options.quick else SIZES
        cells = []
        for name in self.chosen_sets(options):
            for inner in INNER:
                if name in ROWS:
                    cells += [_cell(name, inner, ROWS[name], size, 1e-3, "sizes") for size in sizes]
                    cells.append(_cell(name, inner, ROWS[name], sizes[len(sizes) // 2], 1e-3, "threads", threads=1))
            if name in ALONE_SETS:
                for tol in sorted(tols, reverse=True):
                    cells += [_cell(name, inner, ALONE, 2 * ALONE, tol, "alone") for inner in INNER]
        return cells

    def report(self, run: dict[str, Any]) -> str:
        records = run["records"]
        parts = [sizes_table(records), threads_table(records), alone_table(records)]
        if any(r["label"] == "alone" for r in records):
            parts.append("![time against objective error](inner_error.svg)")
        return "\n\n".join([*(part for part in parts if part), report.reasons(records)]).rstrip() + "\n"

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        alone = [r | {"solver": inner_of(r)} for r in run["records"] if r["label"] == "alone"]
        drawn = plots.time_to_error(run | {"records": alone}, folder / "inner_error.svg")
        pairs = thread_pairs(run["records"])
        panels: dict[str, plots.Series] = {}
        for one, all_ in pairs:
            points = [(float(r["threads"]), r["best"]) for r in (one, all_)]
            panels.setdefault(one["dataset"], {})[inner_of(one)] = points
        labels, scales = [("threads", "seconds")] * len(panels), [("linear", "log")] * len(panels)
        return drawn + plots.lines(folder / "inner_threads.svg", panels, labels, scales)


def _cell(name: str, inner: str, rows: int, size: int, tol: float, label: str, threads: int | None = None) -> Cell:
    data = discover("datasets")[name]
    options = {"inner_solver": inner, "working_set_size": size}
    if data.task == "regression":
        problem = Problem("svr", tol=tol, **data.kernel, options=options)
    elif name in NU:
        problem = Problem("nu_svc", nu=NU[name], gamma=data.kernel["gamma"], tol=tol, options=options)
    else:
        problem = Problem("svc", tol=tol, **data.kernel, options=options)
    judged = label != "threads"
    return Cell(name, "maxmargin", problem, rows=rows, threads=threads, judged=judged, label=label)


def inner_of(record: Record) -> str:
    return str(record["problem"]["options"]["inner_solver"])


def size_of(record: Record) -> int:
    return int(record["problem"]["options"]["working_set_size"])


def _extra(record: Record, key: str) -> float:
    return float(record.get("extra", {}).get(key, float("nan")))


def _line(record: Record) -> list[str]:
    """Iterations, seconds and seconds in the inner solver, subproblems that SMO finished, excess."""
    if record["status"] != "ok":
        return [record["status"], "", "", "", ""]
    return [
        f"{_extra(record, 'iterations'):.0f}",
        report.seconds(record["best"]),
        report.seconds(_extra(record, "time_inner")),
        f"{_extra(record, 'time_inner_fallbacks'):.0f}",
        report.number(record.get("dual_excess"), 2),
    ]


def sizes_table(records: list[Record]) -> str:
    """Table 1, with the other two solvers beside the interior point."""
    head = ["set", "working set / new", "solver", "iterations", "s", "s in the inner solver", "finished by SMO", "excess"]
    chosen = [r for r in records if r["label"] == "sizes"]
    chosen.sort(key=lambda r: (report.row_name(r), size_of(r)))
    lines = [[report.row_name(r), f"{size_of(r)}/{size_of(r) // 2}", inner_of(r), *_line(r)] for r in chosen]
    return "## Working set size (Table 1)\n\n" + report.markdown([head, *lines]) if lines else ""


def thread_pairs(records: list[Record]) -> list[tuple[Record, Record]]:
    """The fits on one thread, each with the same fit on all threads."""
    done = [r for r in records if r["status"] == "ok"]
    return [
        (one, all_)
        for one in done
        for all_ in done
        if one["label"] == "threads" and all_["label"] == "sizes"
        if report.row_name(all_) == report.row_name(one) and all_["problem"] == one["problem"]
    ]


def threads_table(records: list[Record]) -> str:
    """Figure 6 as numbers: the same fit on one and on all threads."""
    lines = [["set", "working set / new", "solver", "1 thread, s", "all threads, s", "speed-up"]]
    for one, all_ in thread_pairs(records):
        times = [report.seconds(one["best"]), report.seconds(all_["best"]), f"{one['best'] / all_['best']:.2f}×"]
        size = f"{size_of(one)}/{size_of(one) // 2}"
        lines.append([report.row_name(one), size, inner_of(one), *times])
    if len(lines) == 1:
        return ""
    threads = max(r["threads"] for r in records)
    picture = "![seconds against threads](inner_threads.svg)"
    return f"## Threads (figure 6): one against {threads}\n\n" + report.markdown(lines) + "\n\n" + picture


def alone_table(records: list[Record]) -> str:
    """Seconds of the quickest fit whose objective is within each target of the best one known."""
    chosen = [r for r in records if r["label"] == "alone"]
    lines = [["set", "solver", *(f"to {target:g}" for target in TARGETS)]]
    for name in report.rows_of(chosen):
        for inner in INNER:
            fits = [r for r in chosen if report.row_name(r) == name and inner_of(r) == inner and r["status"] == "ok"]
            times = []
            for target in TARGETS:
                good = [r["best"] for r in fits if r.get("dual_excess") is not None and r["dual_excess"] <= target]
                times.append(report.seconds(min(good)) if good else "not reached")
            lines.append([name, inner, *times])
    if len(lines) == 1:
        return ""
    return (
        f"## Seconds to a relative objective error\n\nThe first {ALONE:,} rows: all variables are one working set, so "
        "that this is the inner solver alone. Each solver at tolerances from "
        f"{max(TOLS):g} to {min(TOLS):g}; the time is that of its quickest fit within the error, by the evaluator's "
        "dual value.\n\n" + report.markdown(lines)
    )
