"""Machines where the rows are: one and two Dask workers of one thread each, against one process.

Early divide and conquer. Goals: two workers at least 1.7 times as fast as one; the client's memory does not grow with the
rows; accuracy and the level's objective as those of the fit in one process. One row kills a worker after the first cluster
is solved: the fit must end all the same.

BudgetSVC. A model that goes from partition to partition is as fast on two workers as on one; one model per worker, merged at
the end, is faster and has a larger objective: what that costs in accuracy stands beside it. Refits, which need all rows in
one place, are left out everywhere.

The rows are on the workers, in eight partitions, before the clock runs. Core-seconds are the workers' processor time (of the
one that is left, where one was killed); moved is what workers fetched from each other.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

GOAL = 1.7
SAME = 0.005  # of accuracy, by which the fit on workers may differ from that in one process
ON_DASK, HERE = "maxmargin-dask-early", "maxmargin-dc-early"
BUDGET, BUDGET_HERE = "maxmargin-dask-budget", "budget-averaged"
PASSES = {"budget": 500, "epochs": 2}
KINDS = (
    (ON_DASK, "1 worker", {"workers": 1}),
    (ON_DASK, "2 workers", {"workers": 2}),
    (ON_DASK, "2 workers, one killed", {"workers": 2, "killed": 1}),
    (HERE, "1 process", {}),
    (BUDGET, "budget, 2 workers, in order", {"workers": 2, **PASSES}),
    (BUDGET, "budget, 2 workers, one model each", {"workers": 2, "per_worker": 1, **PASSES}),
    (BUDGET_HERE, "budget, 1 process", {**PASSES, "random_state": 0}),
)


class OnDask(Experiment):
    title = "Dask: machines on workers"
    sets = ("covtype",)
    solvers = (ON_DASK, HERE, BUDGET, BUDGET_HERE)
    baseline = HERE
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known, wanted = discover("datasets"), self.chosen_solvers(options)
        same = {"test_rows": 20_000, "score_only": True, "threads": 1, "cores": 2}  # two workers need two
        return [
            Cell(name, solver, Problem("svc", **known[name].kernel, fit_intercept=False, options=more), **same, label=label)
            for name in self.chosen_sets(options)
            for solver, label, more in KINDS
            if solver in wanted
        ]

    def report(self, run: dict[str, Any]) -> str:
        head = ["set", "where", "seconds", "accuracy", "objective", "core-seconds", "moved, MB", "worker's peak, MB"]
        lines = [[*head, "client's peak, MB", "goal"]]
        good = [r for r in run["records"] if r["status"] == "ok"]
        for r in good:
            extra, score = r.get("extra", {}), r.get("score")
            shown = ("objective", "worker_seconds", "moved_mb", "worker_peak_mb")
            numbers = [report.number(extra.get(key), 6 if key == "objective" else 3) for key in shown]
            accuracy = "" if score is None else f"{100 * score:.2f} %"
            client = f"{r['memory']['peak_mb']:.0f}"
            lines.append(
                [report.row_name(r), r["label"], report.seconds(r["best"]), accuracy, *numbers, client, _verdict(r, good)]
            )
        return "\n\n".join(part for part in (report.markdown(lines), report.reasons(run["records"])) if part)

    def text_cost(self, run: dict[str, Any]) -> str:
        """Of docs/scaling.md: what a fit costs, in core-seconds."""
        lines = [["covtype", "rows", "seconds", "core-seconds", "accuracy"]]
        for r in run["records"]:
            if r["status"] == "ok":
                spent = r.get("extra", {}).get("worker_seconds", r["best"])
                score = "" if r.get("score") is None else f"{100 * r['score']:.1f} %"
                name = r["label"] if r["label"].startswith("budget") else f"early DC, {r['label']}"
                lines.append([name, f"{r['rows']:,}", report.seconds(r["best"]), report.seconds(spent), score])
        return report.markdown(lines)


def _verdict(record: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """Of two workers: how much faster than one they are. Of the others: whether the model is the one of one process."""
    def beside(label: str) -> dict[str, Any] | None:
        return next((r for r in records if r["dataset"] == record["dataset"] and r["label"] == label), None)

    one, here, ordered = beside("1 worker"), beside("1 process"), beside("budget, 2 workers, in order")
    words = []
    if record["label"] == "2 workers" and one:
        ratio = one["best"] / record["best"]
        words.append(f"{ratio:.2f}×, {'reached' if ratio >= GOAL else 'LOST'}")
    if record["solver"] == ON_DASK and here:
        words.append("the same accuracy" if abs(record["score"] - here["score"]) <= SAME else "LOST: another accuracy")
    if record["label"].endswith("one model each") and ordered:
        words.append(f"{ordered['best'] / record['best']:.2f}×, {100 * (record['score'] - ordered['score']):+.2f} % points")
    return "; ".join(words)
