"""Choosing C and γ: `SVCCV` against GridSearchCV over scikit-learn's SVC and over ours; probabilities.

A grid of 10 × 10 with five folds, the same for all. A peer that does not end within the limit is shown as such, and nothing
is extrapolated; sets are parts small enough for the peers to end, but for two of 20,000 and 50,000 rows. Goals: 25 times as
fast as GridSearchCV(scikit-learn's SVC), 5 times as over our own, a score within one standard error. Probabilities (C and γ
of the papers): at most 1.5 times a fit, log loss no worse than CalibratedClassifierCV(ensemble=False)'s.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

ROWS = {
    "dna": 2000, "phishing": 3000, "reuters": 2000, "a9a": 3000, "w8a": 3000, "skin": 5000, "susy": 3000, "mnist8": 2000,
    "ijcnn1": 5000, "covtype": 5000, "digits": 1797,
}  # fmt: skip
LARGE = {"ijcnn1": 20_000, "covtype": 50_000}
SEARCHES = ("selection-maxmargin", "selection-halving", "grid-maxmargin", "grid-sklearn")
PROBABLE = ("calibrated-maxmargin", "calibrated-sklearn", "plain-maxmargin")
PROBABLE_ROWS = {name: 2 * rows for name, rows in ROWS.items() if name not in ("dna", "mnist8", "digits")}
LIMIT = 900.0  # s: a peer beyond it is slower than 25 times a search of 36 s; all large cells together at most two hours
GOALS = {"grid-sklearn": 25.0, "grid-maxmargin": 5.0}


class Selection(Experiment):
    title = "Choosing C and γ, and probabilities"
    sets = tuple(ROWS)
    solvers = (*SEARCHES, *PROBABLE)
    baseline = "selection-maxmargin"
    repeat = 1
    time_limit = LIMIT

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        values = {"values": 3} if options.quick else {}
        for name in self.chosen_sets(options):
            for solver in self.chosen_solvers(options):
                probable = solver in PROBABLE
                if probable and name not in PROBABLE_ROWS:
                    continue
                own = Problem("svc", **known[name].kernel) if probable else Problem("svc", options=dict(values))
                rows = (PROBABLE_ROWS if probable else ROWS)[name]
                cells.append(Cell(name, solver, own, rows=rows, score_only=True, label="probable" if probable else "grid"))
                if name in LARGE and solver in SEARCHES and not options.quick:
                    cells.append(Cell(name, solver, own, rows=LARGE[name], score_only=True, label="large"))
        return cells

    def text_times(self, run: dict[str, Any], solver: str) -> str:
        """ "dna 49, a9a > 110": how many times as long as ours another search takes, by set."""
        said = []
        for name in self.sets:
            mine = {r["solver"]: r for r in run["records"] if r["dataset"] == name and r["label"] == "grid"}
            ours, theirs = mine.get(self.baseline), mine.get(solver)
            if ours is None or theirs is None or ours["status"] != "ok" or theirs["status"] not in ("ok", "timeout"):
                continue
            more = "> " if theirs["status"] == "timeout" else ""
            said.append(f"{name} {more}{_seconds(theirs) / ours['best']:.3g}")
        return ", ".join(said) or "(not measured yet)"

    def guess(self, cell: Cell) -> float:
        return 600.0 if cell.label == "large" or cell.solver == "grid-sklearn" else 30.0

    def report(self, run: dict[str, Any]) -> str:
        parts = [self._searches(run), self._probable(run), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)

    def _searches(self, run: dict[str, Any]) -> str:
        head = "set,rows,search,seconds,times ours,goal,score,C,γ,certified,dropped,verdict"
        lines = [head.split(",")]
        groups = {(r["dataset"], r["rows"]) for r in run["records"] if r["solver"] in SEARCHES}
        for group in sorted(groups, key=str):
            mine = {r["solver"]: r for r in run["records"] if (r["dataset"], r["rows"]) == group}
            ours = mine.get(self.baseline)
            for solver in SEARCHES:
                if solver in mine:
                    lines.append([group[0], str(group[1]), solver, *_search(mine[solver], ours)])
        return "## Searches\n\n" + report.markdown(lines) if len(lines) > 1 else ""

    def _probable(self, run: dict[str, Any]) -> str:
        lines = [["set", "fit, s", "calibrated, s", "times a fit", "CalibratedClassifierCV, s", "log loss", "theirs"]]
        done = {(r["dataset"], r["solver"]): r for r in run["records"] if r["status"] == "ok" and r["solver"] in PROBABLE}
        for name in self.sets:
            ours, theirs, plain = (done.get((name, solver)) for solver in PROBABLE)
            if ours and theirs and plain:
                times = [report.seconds(plain["best"]), report.seconds(ours["best"]), f"{ours['best'] / plain['best']:.2f}"]
                losses = [f"{r['extra']['log_loss']:.4f}" for r in (ours, theirs)]
                lines.append([name, *times, report.seconds(theirs["best"]), *losses])
        return "## Probabilities\n\n" + report.markdown(lines) if len(lines) > 1 else ""


def _seconds(record: dict[str, Any]) -> float:
    """That a search took, or that it was given and did not end in."""
    return float(report.limit_of(record) if record["status"] == "timeout" else record["best"])


def _search(record: dict[str, Any], ours: dict[str, Any] | None) -> list[str]:
    late = record["status"] == "timeout"
    if record["status"] not in ("ok", "timeout"):
        return ["—"] * 9
    time = _seconds(record)
    extra = {} if late else record["extra"]
    ratio, verdict = "", ""
    if ours is not None and ours["status"] == "ok" and record is not ours:
        times, goal = time / ours["best"], GOALS.get(record["solver"])
        ratio = f"{'> ' if late else ''}{times:.3g}"
        if goal is not None:
            near = late or ours["extra"]["score"] >= extra["score"] - ours["extra"]["standard_error"]
            verdict = "reached" if times >= goal and near else "LOST"
    shown = [f"{extra[k]:.4g}" if k in extra else "" for k in ("score", "C", "gamma", "certified", "dropped")]
    goal_text = f"{GOALS[record['solver']]:g}" if record["solver"] in GOALS else ""
    return [("> " if late else "") + report.seconds(time), ratio, goal_text, *shown, verdict]
