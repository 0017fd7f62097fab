"""Early divide and conquer where the rows are: one and two Dask workers of one thread each, against one process.

Goals: two workers at least 1.7 times as fast as one; the client's memory does not grow with the rows; accuracy and the
level's objective as those of the fit in one process. The rows are on the workers, in eight partitions, before the clock
runs. The last row kills a worker after the first cluster is solved: the fit must end all the same. Core-seconds are the
workers' processor time (of the one that is left, in the last row); moved is what workers fetched from each other.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

GOAL = 1.7
ON_DASK, HERE = "maxmargin-dask-early", "maxmargin-dc-early"
KINDS = (("1 worker", {"workers": 1}), ("2 workers", {"workers": 2}), ("2 workers, one killed", {"workers": 2, "killed": 1}))


class OnDask(Experiment):
    title = "Dask: early divide and conquer on workers"
    sets = ("covtype",)
    solvers = (ON_DASK, HERE)
    baseline = HERE
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        for name in self.chosen_sets(options):
            kernel = dict(known[name].kernel, fit_intercept=False)
            same = {"test_rows": 20_000, "score_only": True, "threads": 1}
            for label, more in KINDS:
                cells.append(Cell(name, ON_DASK, Problem("svc", **kernel, options=more), **same, label=label))
            cells.append(Cell(name, HERE, Problem("svc", **kernel), **same, label="1 process"))
        return [cell for cell in cells if cell.solver in self.chosen_solvers(options)]

    def report(self, run: dict[str, Any]) -> str:
        head = ["set", "where", "seconds", "accuracy", "core-seconds", "moved, MB", "worker's peak, MB", "client's peak, MB"]
        lines = [[*head, "goal"]]
        good = [r for r in run["records"] if r["status"] == "ok"]
        for r in good:
            extra, score = r.get("extra", {}), r.get("score")
            numbers = [report.number(extra.get(key), 3) for key in ("worker_seconds", "moved_mb", "worker_peak_mb")]
            accuracy = "" if score is None else f"{100 * score:.2f} %"
            client = f"{r['memory']['peak_mb']:.0f}"
            lines.append(
                [report.row_name(r), r["label"], report.seconds(r["best"]), accuracy, *numbers, client, _verdict(r, good)]
            )
        return "\n\n".join(part for part in (report.markdown(lines), report.reasons(run["records"])) if part)


def _verdict(record: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """Of two workers: how much faster than one they are."""
    one = [r for r in records if r["dataset"] == record["dataset"] and r["label"] == "1 worker"]
    if record["label"] != "2 workers" or not one:
        return ""
    ratio = one[0]["best"] / record["best"]
    return f"{ratio:.2f}×, {'reached' if ratio >= GOAL else 'LOST'}"
