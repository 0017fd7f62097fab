"""Choosing C and γ: `SVCCV` against GridSearchCV over scikit-learn's SVC and over ours; probabilities.

A grid of 10 × 10 with five folds, the same for all. A peer that does not end within the limit is shown as such, and nothing
is extrapolated. Sets are parts small enough for the peers to end; 20,000 rows of ijcnn1 have a kernel cache of 2,000 MB in
all programs. Goals: 25 times as fast as GridSearchCV(scikit-learn's SVC), 5 times as over our own, a score within one
standard error of the brute-force grid's; 5,000 rows of covtype within 3 s. `selection-clusters` is `DCSVCCV`: the same
settings and folds, judged inside clusters of the rows, on parts of them first; its model is that of the clusters, so look at
its score on the test rows beside the others'. Eight more sets, mostly of several classes, are there for the choice alone,
beside the grid over our own SVC. Probabilities (C and γ of the papers): at most 1.5 times a fit, log loss no worse than
CalibratedClassifierCV(ensemble=False)'s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

ROWS = {
    "dna": 2000, "phishing": 3000, "reuters": 2000, "a9a": 3000, "w8a": 3000, "skin": 5000, "susy": 3000, "mnist8": 2000,
    "ijcnn1": 5000, "covtype": 5000, "digits": 1797, "census_split": 3000,
}  # fmt: skip
CHOICES = {
    "iris": 150, "wine": 178, "satellite": 2000, "zipcodes": 1500, "news20_binary": 1500, "mnist10": 1000, "covtype7": 1500,
    "kdd_attacks": 2000,
}  # fmt: skip
LARGE = {"ijcnn1": 20_000}
OURS = ("selection-maxmargin", "selection-halving", "selection-clusters")
SEARCHES = (*OURS, "grid-maxmargin", "grid-sklearn")
CHOOSERS = ("selection-maxmargin", "grid-maxmargin")
PROBABLE = ("calibrated-maxmargin", "calibrated-sklearn", "plain-maxmargin")
PROBABLE_ROWS = {name: 2 * rows for name, rows in ROWS.items() if name not in ("dna", "mnist8", "digits", "census_split")}
LIMIT = 400.0  # s: a peer beyond it is slower than 25 times a search of 16 s
LARGE_LIMIT = 900.0
GOALS = {"grid-sklearn": 25.0, "grid-maxmargin": 5.0}


class Selection(Experiment):
    title = "Choosing C and γ, and probabilities"
    sets = (*ROWS, *CHOICES)
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
                if (probable and name not in PROBABLE_ROWS) or (name in CHOICES and solver not in CHOOSERS):
                    continue
                own = Problem("svc", **known[name].kernel) if probable else Problem("svc", options=dict(values))
                rows = (PROBABLE_ROWS if probable else ROWS | CHOICES)[name]
                label = "probable" if probable else "choice" if name in CHOICES else "grid"
                cells.append(Cell(name, solver, own, rows=rows, score_only=True, label=label))
                if name in LARGE and solver in SEARCHES and not options.quick:
                    much = replace(own, cache_size=2000.0)
                    cells.append(
                        Cell(name, solver, much, rows=LARGE[name], score_only=True, label="large", limit=LARGE_LIMIT)
                    )
        return cells

    def text_times(self, run: dict[str, Any], solver: str) -> str:
        """ "dna 49, a9a > 110": how many times as long as ours another search takes, by set."""
        said = [
            f"{ours['dataset']} {'> ' if theirs['status'] == 'timeout' else ''}{_seconds(theirs) / ours['best']:.3g}"
            for ours, theirs in self._beside(run, solver) if ours["label"] == "grid"
        ]  # fmt: skip
        return ", ".join(said) or "(not measured yet)"

    def guess(self, cell: Cell) -> float:
        return 600.0 if cell.label == "large" or cell.solver == "grid-sklearn" else 30.0

    def report(self, run: dict[str, Any]) -> str:
        parts = [self._goals(run), self._searches(run), self._probable(run), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)

    def _goals(self, run: dict[str, Any]) -> str:
        """What is asked of all sets together, and of one."""
        lines = [["what", "found", "goal", "verdict"]]
        for solver, goal in GOALS.items():
            pairs = [(ours, theirs) for ours, theirs in self._beside(run, solver) if ours["label"] != "choice"]
            ratios = [_seconds(theirs) / ours["best"] for ours, theirs in pairs]
            if ratios:
                least, mean = min(ratios), report.geometric_mean(ratios)
                found = f"{mean:.3g}× in the mean of {len(ratios)}, {least:.3g}× at least"
                verdict = "reached" if least >= goal else f"LOST on {sum(r < goal for r in ratios)}"
                lines.append([f"times as fast as {solver}", found, f"{goal:g}× on each", verdict])
        pairs = [(ours, theirs) for ours, theirs in self._beside(run, "grid-maxmargin") if theirs["status"] == "ok"]
        if pairs:
            same = sum(all(a["extra"][k] == b["extra"][k] for k in ("C", "gamma")) for a, b in pairs)
            near = sum(_near(a, b) for a, b in pairs)
            found = f"the same on {same}, a score within one standard error on {near}, of {len(pairs)} sets"
            verdict = "reached" if near >= 0.95 * len(pairs) else "LOST"
            lines.append(["choice, beside the brute-force grid", found, "19 of 20", verdict])
        for r in run["records"]:
            if (r["dataset"], r["rows"]) == ("covtype", 5000) and r["solver"] in OURS and r["status"] == "ok":
                verdict = "reached" if r["best"] <= 3.0 else "LOST"
                lines.append([f"5,000 rows of covtype, {r['solver']}", f"{r['best']:.3g} s", "3 s", verdict])
        return "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""

    def _beside(self, run: dict[str, Any], solver: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Our searches that ended, each with another one of the same rows, ended or stopped."""
        ours = {(r["dataset"], r["rows"]): r for r in run["records"] if r["solver"] == self.baseline and r["status"] == "ok"}
        theirs = [r for r in run["records"] if r["solver"] == solver and r["status"] in ("ok", "timeout")]
        return [(ours[at], r) for r in theirs if (at := (r["dataset"], r["rows"])) in ours]

    def _searches(self, run: dict[str, Any]) -> str:
        head = "set,rows,search,seconds,times ours,goal,score,test rows,C,γ,certified,dropped,verdict"
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


def _near(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether our choice scores within one standard error of theirs."""
    return bool(ours["extra"]["score"] >= theirs["extra"]["score"] - ours["extra"]["standard_error"])


def _search(record: dict[str, Any], ours: dict[str, Any] | None) -> list[str]:
    late = record["status"] == "timeout"
    if record["status"] not in ("ok", "timeout"):
        return ["—"] * 10
    time = _seconds(record)
    extra = {} if late else record["extra"]
    ratio, verdict = "", ""
    if ours is not None and ours["status"] == "ok" and record is not ours:
        times, goal = time / ours["best"], GOALS.get(record["solver"])
        ratio = f"{'> ' if late else ''}{times:.3g}"
        if goal is not None:
            verdict = "reached" if times >= goal and (late or _near(ours, record)) else "LOST"
    score, *shown = [f"{extra[k]:.4g}" if k in extra else "" for k in ("score", "C", "gamma", "certified", "dropped")]
    tested = "" if late else f"{100 * record['score']:.2f} %"
    goal_text = f"{GOALS[record['solver']]:g}" if record["solver"] in GOALS else ""
    return [("> " if late else "") + report.seconds(time), ratio, goal_text, score, tested, *shown, verdict]
