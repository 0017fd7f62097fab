"""From a text file to a model file: `maxmargin train` against LIBSVM's `svm-train -m 2000`, as processes.

Goal: at least 15 times as fast on every set. Start-up, reading the text, training and writing the model count, of which
a Python program needs a second or so before it begins.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

GOAL = 15.0  # times svm-train's speed
ROWS = {"covtype": 50_000}


class EndToEnd(Experiment):
    title = "From text file to model file"
    sets = ("a9a", "ijcnn1", "covtype")
    solvers = ("maxmargin-train", "svm-train")
    baseline = "maxmargin-train"
    excess_allowed = 1e-2  # of the primal value, as files of models name no rows; at one tol it differs more than the dual

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        return [
            Cell(name, solver, Problem("svc", **known[name].kernel), rows=ROWS.get(name))
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        return "\n\n".join(part for part in (self._goals(run), report.tables(self, run)) if part)

    def _goals(self, run: dict[str, Any]) -> str:
        lines = [["set", "text, MB", "ours, s", "svm-train, s", "times as fast", "goal", "verdict"]]
        peer = {r["dataset"]: r for r in run["records"] if r["solver"] == "svm-train"}
        for ours in (r for r in run["records"] if r["solver"] == self.baseline and r["status"] == "ok"):
            theirs = peer.get(ours["dataset"])
            if theirs is None or theirs["status"] not in ("ok", "timeout"):
                continue
            late = theirs["status"] == "timeout"
            time = report.limit_of(theirs) if late else theirs["best"]
            ratio = time / ours["best"]
            wrong = ours.get("mark")
            verdict = "LOST" if ratio < GOAL or wrong else "reached"
            sign = "> " if late else ""
            cells = [f"{ours['extra']['text_mb']:.1f}", report.seconds(ours["best"]), sign + report.seconds(time)]
            lines.append([ours["dataset"], *cells, f"{sign}{ratio:.3g}", f"{GOAL:g}", verdict])
        return "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""
