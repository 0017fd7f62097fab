"""From a text file to a model file: `maxmargin train` against LIBSVM's `svm-train -m 2000`, as processes.

Goal: at least 15 times as fast on every set. Start-up, reading the text, training and writing the model count. Of our
time, fit is the training alone (of the last run), and around it are Python's start, the import of NumPy, SciPy and
scikit-learn's base classes, reading and writing. At most: the ratio that a fit as it is would have with nothing around it.
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
        lines = [["set", "text, MB", "ours, s", "fit", "around it", "svm-train, s", "times as fast", "at most", "goal",
                  "verdict"]]  # fmt: skip
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
            more = ours["extra"]
            alone = more.get("fit_s")
            parts = [report.seconds(s) for s in (alone, ours["best"] - alone)] if alone else ["", ""]
            most = f"{sign}{time / alone:.3g}" if alone else ""
            cells = [f"{more['text_mb']:.1f}", report.seconds(ours["best"]), *parts, sign + report.seconds(time)]
            lines.append([ours["dataset"], *cells, f"{sign}{ratio:.3g}", most, f"{GOAL:g}", verdict])
        return "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""
