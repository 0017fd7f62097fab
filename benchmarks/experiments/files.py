"""Readers and writers of files side by side: LIBSVM text, plain and packed, CSV, and writing LIBSVM text.

Goals: plain LIBSVM text at least 8 times as fast as scikit-learn's reader on two cores, at least 103 MB in 0.85 s
(covtype by LPD-SVM's own program), and a peak of memory of at most 1.3 times the result and 32 MB. The file is written
just before and so in the system's memory; readers give float64. Every reader must find the same numbers.
"""

from __future__ import annotations

import math
from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem

GOAL = 8.0  # times scikit-learn's speed
GOAL_RATE = 103 / 0.85  # MB per second
GOAL_MEMORY, ALLOWANCE_MB = 1.3, 32.0  # a block of text and what comes of it are no part of the result
ACTIONS = {
    "maxmargin-files": ("read", "read gzip", "read csv", "write"),
    "scikit-learn-files": ("read", "read gzip", "write"),
    "libsvm-files": ("read",),
    "pandas-files": ("read csv",),
    "pandas-pyarrow-files": ("read csv",),
}
LEFT_OUT = {"news20": ("read csv",)}  # 5 GB as a dense table


class Files(Experiment):
    title = "Files"
    sets = ("covtype", "mnist8", "news20", "a9a")
    solvers = tuple(ACTIONS)
    baseline = "maxmargin-files"
    repeat = 1  # a file is written anew in every process, and read twice there

    def cells(self, options: Options) -> list[Cell]:
        return [
            Cell(name, solver, Problem("files", options={"action": action}), number=2, judged=False, label=action)
            for name in self.chosen_sets(options)
            for action in ("read", "read gzip", "read csv", "write")
            for solver in self.chosen_solvers(options)
            if action in ACTIONS.get(solver, ()) and action not in LEFT_OUT.get(name, ())
        ]

    def guess(self, cell: Cell) -> float:
        return 1.0 if cell.dataset == "a9a" or cell.solver == self.baseline else 4.0

    def report(self, run: dict[str, Any]) -> str:
        parts = [self._times(run, action) for action in ACTIONS[self.baseline]]
        return "\n\n".join(part for part in (*parts, self._memory(run), report.reasons(run["records"])) if part)

    def _times(self, run: dict[str, Any], action: str) -> str:
        records = [r for r in run["records"] if r["label"] == action]
        columns = report.columns_of(self, records)
        lines = [["seconds (ratio to ours)", "MB", *columns, *(["goals"] if action == "read" else [])]]
        for name in dict.fromkeys(r["dataset"] for r in records):
            cells = {r["solver"]: r for r in records if r["dataset"] == name}
            ours = cells.get(self.baseline)
            if ours is None or ours["status"] != "ok":
                continue
            differs = {s for s, r in cells.items() if r["status"] == "ok" and not _same(r["extra"], ours["extra"], action)}
            times = [report.time_cell(cells.get(column), ours, []) for column in columns]
            times = [f"{time}, OTHER NUMBERS" if column in differs else time for column, time in zip(columns, times)]
            goals = [_verdict(ours, cells.get("scikit-learn-files"))] if action == "read" else []
            lines.append([f"{name} ({report.size(ours)})", f"{ours['extra']['file_mb']:.1f}", *times, *goals])
        return f"## {action.capitalize()}\n\n{report.markdown(lines)}" if len(lines) > 1 else ""

    def _memory(self, run: dict[str, Any]) -> str:
        lines = [["set", "reader", "result, MB", "peak, MB", "goal, MB", "verdict"]]
        for r in run["records"]:
            if r["status"] == "ok" and r["label"] == "read" and not math.isnan(r["memory"]["peak_mb"]):
                result, peak = r["extra"]["result_mb"], r["memory"]["peak_mb"] - r["memory"]["ready_mb"]
                goal = GOAL_MEMORY * result + ALLOWANCE_MB
                verdict = ("reached" if peak <= goal else "LOST") if r["solver"] == self.baseline else ""
                lines.append([r["dataset"], r["solver"], f"{result:.1f}", f"{peak:.1f}", f"{goal:.0f}", verdict])
        return f"## Memory\n\n{report.markdown(lines)}" if len(lines) > 1 else ""


def _same(a: dict[str, float], b: dict[str, float], action: str) -> bool:
    """Whether two readers found the same numbers, but for the order of summation; writers need not agree in size."""
    return action == "write" or all(math.isclose(a[key], b[key], rel_tol=1e-9) for key in ("rows", "values", "labels"))


def _verdict(ours: dict[str, Any], scikit_learn: dict[str, Any] | None) -> str:
    rate = ours["extra"]["file_mb"] * 2**20 / 1e6 / ours["best"]
    words = [f"{rate:.0f} MB/s: {'reached' if rate >= GOAL_RATE else 'LOST'}"]
    if scikit_learn is not None and scikit_learn["status"] == "ok":
        times = scikit_learn["best"] / ours["best"]
        words.append(f"{times:.1f} times scikit-learn: {'reached' if times >= GOAL else 'LOST'}")
    return ", ".join(words)
