"""SMO, interior point and gradient projection inside the decomposition: PSMO paper, Table 1 and figure 6.

The paper keeps SMO because its interior point method costs q³ per working set and failed on some ν. Here each of the
three solves every working set, on MNIST 8-against-rest (the paper's) and on a ν-SVC; SMO is native, the others are
Python over LAPACK and BLAS. What the paper lacks: seconds to a given relative error of the objective, and the three on
a problem of one working set, where the inner solver is all there is: easy ones, and ill-conditioned ones (huge C, cubic
polynomials) at tol 1e-6. Every fit runs once.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Line, Options, Problem, discover
from benchmarks.papers import psmo

INNER = ("smo", "ipm", "gpm")
SIZES = (256, 512, 1024)  # Table 1; half of a working set is new
ROWS = {"mnist8": 60_000, "ijcnn1": 20_000}  # of MNIST as many as in the paper
NU = {"ijcnn1": 0.05}  # ν-SVC; its largest feasible value there is 0.19
ALONE = 1000  # rows of the one-working-set problems
ALONE_SETS = ("mnist8", "ijcnn1", "mv")
TOLS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
TARGETS = (1e-3, 1e-6, 1e-9)
HARD_ROWS, HARD_TOL, HARD_LIMIT = 300, 1e-6, 30.0
CUBIC = {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0, "C": 10.0}
HARD: dict[str, tuple[dict[str, Any], ...]] = {  # an easy one first
    "ijcnn1": ({"task": "svc", "C": 10.0, "gamma": 2.0}, {"task": "svc", **CUBIC}),
    "abalone": (
        {"task": "svr", "C": 1e4, "gamma": 1.0, "epsilon": 0.05},
        {"task": "nu_svr", "C": 1e4, "gamma": 1.0},
        {"task": "svr", "epsilon": 0.05, **CUBIC},
    ),
}

Record = dict[str, Any]


class Inner(Experiment):
    title = "Inner solvers of the decomposition"
    shows = ("psmo_table1", "psmo_figure6")
    sets = ("mnist8", "ijcnn1", "mv", "abalone")
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
                    cells += [_cell(name, inner, ROWS[name], size, 1e-3, "threads", threads=1) for size in sizes]
            if name in ALONE_SETS:
                for tol in sorted(tols, reverse=True):
                    cells += [_cell(name, inner, ALONE, 2 * ALONE, tol, "alone") for inner in INNER]
            for problem in HARD.get(name, ()):
                for inner in INNER:
                    options_ = {"inner_solver": inner, "working_set_size": 2 * HARD_ROWS}
                    hard = Problem(tol=HARD_TOL, options=options_, **problem)
                    cells.append(Cell(name, "maxmargin", hard, rows=HARD_ROWS, limit=HARD_LIMIT, label="hard"))
        return cells

    def report(self, run: dict[str, Any]) -> str:
        records = run["records"]
        parts = [
            "## Working set size (Table 1)\n\n" + sizes_table(records),
            f"## Threads (figure 6): one against {run['threads']}\n\n" + threads_table(records),
            "![seconds against threads](inner_threads.svg)",
            "## Seconds to a relative objective error\n\n" + ALONE_TEXT + alone_table(records),
        ]
        if any(r["label"] == "alone" for r in records):
            parts.append("![time against objective error](inner_error.svg)")
        parts.append("## Ill-conditioned problems\n\n" + HARD_TEXT + hard_table(records))
        return "\n\n".join([*parts, report.reasons(records)]).rstrip() + "\n"

    def compare(self, run: dict[str, Any]) -> list[Line]:
        lines = []
        for (size, processors), (iterations, seconds) in psmo.TABLE_1.items():
            label = "sizes" if processors == run["threads"] else "threads" if processors == 1 else ""
            r = next((r for r in _interior(run, label) if size_of(r) == size), None)
            why = f"{psmo.MACHINE}; its 576 features and 60,000 rows" + (
                f", here {r['features']} and {r['rows']:,}" if r else "; no such machine" if processors > 2 else ""
            )
            cell = f"interior point, working set {size}, {processors} processor{'s' if processors > 1 else ''}"
            turns, time = (_extra(r, "iterations"), r["best"]) if r else (None, None)
            lines.append(Line("Table 1", f"{cell}: iterations", "", float(iterations), turns, why))
            lines.append(Line("Table 1", cell, "s", seconds, time, why, "less", True))
        return lines

    def text_constant(self, run: dict[str, Any]) -> str:
        """The interior point method's time by the size of the working set, on the paper's problem."""
        found = sorted(_interior(run, "sizes"), key=size_of)
        said = [f"{report.seconds(r['best'])} s with {size_of(r)} ({_extra(r, 'iterations'):.0f} turns)" for r in found]
        return ", ".join(said) or "(not measured yet)"

    def text_sizes(self, run: dict[str, Any]) -> str:
        return sizes_table(run["records"])

    def text_threads(self, run: dict[str, Any]) -> str:
        return threads_table(run["records"])

    def text_alone(self, run: dict[str, Any]) -> str:
        return ALONE_TEXT + alone_table(run["records"])

    def text_hard(self, run: dict[str, Any]) -> str:
        return HARD_TEXT + hard_table(run["records"])

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        alone = [r | {"solver": inner_of(r)} for r in run["records"] if r["label"] == "alone"]
        drawn = plots.time_to_error(run | {"records": alone}, folder / "inner_error.svg")
        pairs = thread_pairs(run["records"])
        panels: dict[str, plots.Series] = {}
        for one, all_ in pairs:
            points = [(float(r["threads"]), r["best"]) for r in (one, all_)]
            panels.setdefault(f"{one['dataset']}, working set {size_of(one)}", {})[inner_of(one)] = points
        labels, scales = [("threads", "seconds")] * len(panels), [("linear", "log")] * len(panels)
        return drawn + plots.lines(folder / "inner_threads.svg", panels, labels, scales)


def _interior(run: dict[str, Any], label: str) -> list[Record]:
    """The fits on MNIST with an interior point method inside."""
    mine = [r for r in run["records"] if r["dataset"] == "mnist8" and r["label"] == label and r["status"] == "ok"]
    return [r for r in mine if inner_of(r) == "ipm"]


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
    return report.markdown([head, *lines])


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
    return report.markdown(lines)


ALONE_TEXT = (
    f"The first {ALONE:,} rows: all variables are one working set, so that this is the inner solver alone. Each solver at\n"
    f"tolerances from {max(TOLS):g} to {min(TOLS):g}; the time is that of its quickest fit within the error, by the\n"
    "evaluator's dual value.\n\n"
)


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
    return report.markdown(lines)


HARD_TEXT = (
    f'The first {HARD_ROWS} rows, seconds to tol {HARD_TOL:g}, all variables in one working set; "not reached" by fits\n'
    f'that stalled or were stopped after {HARD_LIMIT:g} s, "finished by SMO" where the solver gave up.\n\n'
)


def hard_table(records: list[Record]) -> str:
    """A row per ill-conditioned problem, a column per inner solver."""
    chosen = [r for r in records if r["label"] == "hard"]
    if not chosen:
        return "Not measured yet."
    lines = [["problem", *INNER]]
    names = {(report.row_name(r), r["problem"]["kernel"]): r for r in chosen}
    for (name, kernel), first in names.items():
        same = [r for r in chosen if (report.row_name(r), r["problem"]["kernel"]) == (name, kernel)]
        cells = {inner_of(r): _hard(r) for r in same}
        cubic = f", polynomial of degree {first['problem']['degree']}" if kernel == "poly" else ""
        lines.append([name + cubic, *(cells.get(inner, "") for inner in INNER)])
    return report.markdown(lines)


def _hard(record: Record) -> str:
    if record["status"] != "ok" or not _extra(record, "converged"):
        return "not reached" if record["status"] in ("ok", "timeout") else record["status"]
    return report.seconds(record["best"]) + (", finished by SMO" if _extra(record, "time_inner_fallbacks") else "")
