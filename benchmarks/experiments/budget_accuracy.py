"""Test accuracy on a budget: tables 1 and 2 of the lookup-merging paper, five seeds, its budgets and parameters.

`paper-<search>` is the paper's algorithm with its four ways to find the merging partner: its table of 400 × 400 nodes,
every support vector that is one too many merged, 20 passes, the last iterate. `budget-lookup-wd` has our table and our
drop rule instead, `budget-averaged` returns the average of the recent iterates on top, and `budget`, our default, also
refits the coefficients. What the paper printed stands beside: its splits of w8a, phishing and skin are not public, so
ours are others, and its SUSY has 4,500,000 rows in one pass, ours 24,000 in 20, so that those numbers are not
comparable. No time is shown here, so fits of one thread run side by side (the times are in `budget_speed`). The variant
that only serves as a check on the others (averaged) has one seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.base import Cell, Experiment, Line, Options, Problem, discover
from benchmarks.papers import budget as printed

BUDGETS = {"skin": (100, 200)}
USUAL_BUDGETS = (100, 500)
SEEDS = 5
CHECK_SEEDS = {"budget-averaged": 1}
EPOCHS = 20
FEW = ("budget-lookup-wd", "budget")  # also after one pass
PAPER_LOOKUP_WD = {key: values[printed.SEARCHES.index("lookup-wd")] for key, values in printed.TABLE_2.items()}
PAPER = ("paper-gss-precise", "paper-gss", "paper-lookup-h", "paper-lookup-wd")
OURS = ("budget-lookup-wd", "budget-averaged", "budget")
VARIANTS = (*PAPER, *OURS)
Records = list[dict[str, Any]]


class BudgetAccuracy(Experiment):
    title = "Budgeted machines: accuracy"
    shows = ("budget_table1", "budget_table2")
    sets = ("susy", "skin", "ijcnn1", "a9a", "w8a", "phishing")
    solvers = ("maxmargin", *VARIANTS)
    baseline = "budget"
    repeat = 1
    excess_allowed = float("inf")  # a budget is an approximation: the tables show what it costs

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        cells = []
        for name in self.chosen_sets(options):
            problem = known[name].kernel
            for solver in self.chosen_solvers(options):
                if solver == "maxmargin":
                    exact = Problem("svc", cache_size=1000, **problem)
                    cells.append(Cell(name, solver, exact, score_only=True, label="exact"))
                    continue
                for budget in BUDGETS.get(name, USUAL_BUDGETS):
                    for epochs in (EPOCHS, 1) if solver in FEW else (EPOCHS,):
                        for seed in range(1 if options.quick else CHECK_SEEDS.get(solver, SEEDS)):
                            settings = {"budget": budget, "epochs": epochs, "random_state": seed}
                            cell = Problem("svc", fit_intercept=False, options=settings, **problem)
                            untimed = {"threads": 1, "score_only": True, "alone": False}
                            label = f"B={budget}" if epochs == EPOCHS else f"B={budget}, one pass"
                            cells.append(Cell(name, solver, cell, **untimed, label=label))
        return cells

    def report(self, run: dict[str, Any]) -> str:
        records = [r for r in run["records"] if r["status"] == "ok"]
        parts = [_exact_table(records), _accuracy_table(records), _dropped_table(records), _goals(records)]
        return "\n\n".join(part for part in (*parts, unmeasured(self, run), report.reasons(run["records"])) if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        lines = []
        exact = {r["dataset"]: r for r in run["records"] if r["solver"] == "maxmargin" and r["status"] == "ok"}
        for name, (_, accuracy) in printed.TABLE_1.items():
            why = printed.WHY.get(name, "")
            score = 100 * exact[name]["score"] if name in exact else None
            said = why or printed.WHY_EXACT.get(name, "")
            lines.append(Line("Table 1", f"{name}, exact", "%", accuracy, score, said, "more", not why))
        scores = _scores(run["records"])
        for (name, budget), values in printed.TABLE_2.items():
            found, why = scores.get((name, budget), {}), printed.WHY.get(name, "")
            rows = [(f"paper-{search}", value[0]) for search, value in zip(printed.SEARCHES, values)]
            for solver, accuracy in (*rows, ("budget", values[-1][0])):
                mine = found.get(solver)
                cell = f"{name}, B = {budget}, {solver.removeprefix('paper-')}" + (
                    " (our default)" if solver == "budget" else ""
                )
                spread = f"{len(mine)} seed{'s' if len(mine) > 1 else ''}, ± {mine.std():.2f}" if mine is not None else ""
                said = "; ".join(word for word in (why, spread) if word)
                mean = float(mine.mean()) if mine is not None else None
                lines.append(Line("Table 2", cell, "%", accuracy, mean, said, "more", not why))
        return lines

    def text_within(self, run: dict[str, Any]) -> str:
        """In how many cases lookup-wd is within one standard deviation of golden section search."""
        pairs = [
            (v["paper-lookup-wd"], v["paper-gss"])
            for v in _scores(run["records"]).values()
            if {"paper-lookup-wd", "paper-gss"} <= set(v)
        ]
        differ = [difference for a, b in pairs if (difference := _beyond_spread(a, b))]
        better = sum(difference > 0 for difference in differ)
        beyond = f"; lookup is better by more in {better}, worse in {len(differ) - better}" if differ else ""
        return f"so in {len(pairs) - len(differ)} of {len(pairs)} cases{beyond}" if pairs else "(not measured yet)"

    def text_accuracy(self, run: dict[str, Any], dataset: str, budget: str) -> str:
        """Our default's mean over the seeds."""
        return f"{_scores(run['records'])[dataset, int(budget)][self.baseline].mean():.2f} %"

    def text_table(self, run: dict[str, Any]) -> str:
        """The larger budget of every set: the paper's rules, ours, the default, the exact machine, the paper's print."""
        titles = {
            "paper-lookup-wd": "the paper's rules",
            "budget-lookup-wd": "our table and drop rule",
            "budget": "default: also averaged and refitted",
        }
        scores = _scores(run["records"])
        shown = [name for name in titles if any(name in values for values in scores.values())]
        exact = {r["dataset"]: r for r in run["records"] if r["solver"] == "maxmargin"}
        lines = [["set", "budget", *(titles[name] for name in shown), "exact `SVC`", "printed in the paper"]]
        for name in self.sets:
            budget = max(BUDGETS.get(name, USUAL_BUDGETS))
            values, paper = scores.get((name, budget)), PAPER_LOOKUP_WD[name, budget]
            if values:
                cells = [_mean_and_spread(values.get(solver)) for solver in shown]
                rows = " (other rows)" if name == "susy" else ""
                lines.append(
                    [name, str(budget), *cells, report.score(exact[name]), f"{paper[0]:.2f} ± {paper[1]:.2f}{rows}"]
                )
        return report.markdown(lines)

    def text_gains(self, run: dict[str, Any]) -> str:
        """How often averaging and the refit are better, over all sets and budgets, seed 0."""
        first = [r for r in run["records"] if r["status"] == "ok" and r["problem"]["options"].get("random_state") == 0]
        scores = {key: {name: v[0] for name, v in values.items()} for key, values in _scores(first).items()}
        parts = []
        steps = {"averaging": ("budget-averaged", "budget-lookup-wd"), "the refit": ("budget", "budget-averaged")}
        for what, (name, less) in steps.items():
            pairs = [(v[name], v[less]) for v in scores.values() if name in v and less in v]
            better, worse = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
            parts.append(f"{what} is better on the test rows in {better} of {len(pairs)} cases and worse in {worse}")
        return " and ".join(parts)

    def text_one_pass(self, run: dict[str, Any], dataset: str) -> str:
        """What one pass gives, with and without averaging and refit."""
        budget = max(BUDGETS.get(dataset, USUAL_BUDGETS))
        found = _scores(run["records"], epochs=1).get((dataset, budget), {})
        if not all(name in found for name in FEW):
            return "not measured yet"
        with_refit, without = found["budget"].mean(), found["budget-lookup-wd"].mean()
        return f"{with_refit:.2f} % ({without:.2f} % without)"


def unmeasured(experiment: Experiment, run: dict[str, Any]) -> str:
    """A note on solvers that the stored result does not have yet."""
    missing = [name for name in experiment.solvers if name not in {r["solver"] for r in run["records"]}]
    return f"**Not measured yet: {', '.join(missing)}.**" if missing and not run["quick"] else ""


def _scores(records: Records, epochs: int = EPOCHS) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Test accuracies in per cent by (set, budget) and solver, one per seed."""
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    for r in records:
        options = r["problem"]["options"]
        if r["solver"] in VARIANTS and r["status"] == "ok" and options["epochs"] == epochs:
            found.setdefault((r["dataset"], options["budget"]), {}).setdefault(r["solver"], []).append(100 * r["score"])
    return {key: {solver: np.array(v) for solver, v in values.items()} for key, values in found.items()}


def _beyond_spread(ours: np.ndarray, others: np.ndarray) -> float:
    """The difference of the means, or 0 where it is within one standard deviation (the larger of the two)."""
    difference = float(ours.mean() - others.mean())
    return 0.0 if abs(difference) <= max(ours.std(), others.std(), 1e-9) else difference


def _exact_table(records: Records) -> str:
    lines = [["set", "rows", "C", "γ", "accuracy", "support vectors"]]
    for r in records:
        if r["solver"] == "maxmargin":
            problem = r["problem"]
            shown = [f"{r['rows']:,}", f"{problem['C']:g}", f"{problem['gamma']:.4g}", f"{100 * r['score']:.2f} %"]
            lines.append([r["dataset"], *shown, f"{r['n_support']:,}"])
    return "## Table 1: the exact machine\n\n" + report.markdown(lines) if len(lines) > 1 else ""


def _mean_and_spread(scores: np.ndarray | None) -> str:
    if scores is None:
        return ""
    return f"{scores.mean():.2f} ± {scores.std():.2f}" if len(scores) > 1 else f"{scores[0]:.2f}"


def _accuracy_table(records: Records) -> str:
    scores = _scores(records)
    columns = [name for name in VARIANTS if any(name in values for values in scores.values())]
    lines = [["set", "budget", *columns, "printed: lookup-wd"]]
    for (name, budget), values in scores.items():
        cells = [_mean_and_spread(values.get(c)) for c in columns]
        paper = PAPER_LOOKUP_WD.get((name, budget))
        lines.append([name, str(budget), *cells, f"{paper[0]:.2f} ± {paper[1]:.2f}" if paper else ""])
    return "## Table 2: accuracy in per cent, mean ± standard deviation over the seeds\n\n" + report.markdown(lines)


def _dropped_table(records: Records) -> str:
    """Support vectors that were dropped instead of merged, of all that were one too many."""
    found: dict[tuple[str, int], dict[str, list[dict[str, float]]]] = {}
    for r in records:
        if r["solver"] in VARIANTS and r["problem"]["options"]["epochs"] == EPOCHS:
            key = r["dataset"], r["problem"]["options"]["budget"]
            found.setdefault(key, {}).setdefault(r["solver"], []).append(r["extra"])
    columns = [name for name in VARIANTS if any(name in values for values in found.values())]
    lines = [["set", "budget", *columns]]
    for (name, budget), values in found.items():
        cells = []
        for column in columns:
            events = sum(e["merges"] + e["removals"] for e in values.get(column, []))
            dropped = sum(e["removals"] for e in values.get(column, []))
            cells.append(f"{100 * dropped / events:.2f} %" if events else "")
        lines.append([name, str(budget), *cells])
    text = "Of the support vectors that were one too many, those dropped instead of merged. The paper drops none."
    return f"## The drop rule\n\n{text}\n\n{report.markdown(lines)}" if len(lines) > 1 else ""


def _goals(records: Records) -> str:
    """Is lookup-wd within one standard deviation of gss; is our default as accurate as the paper's, with less spread?

    Where the exact machine on our split is below the paper's budgeted one, reaching the exact one (−0.1) is enough.
    """
    exact = {r["dataset"]: 100 * r["score"] for r in records if r["solver"] == "maxmargin"}
    head = ["set", "budget", "the paper's lookup-wd within one sd of its gss"]
    lines = [[*head, "default ≥ printed", "default's spread ≤ printed"]]
    for (name, budget), values in _scores(records).items():
        paper = PAPER_LOOKUP_WD.get((name, budget))
        lookup, gss, default = (values.get(k) for k in ("paper-lookup-wd", "paper-gss", "budget"))
        if lookup is None or gss is None or default is None or paper is None or len(lookup) < SEEDS:
            continue
        goal = min(paper[0], exact.get(name, 100.0) - 0.1)
        more = _beyond_spread(lookup, gss)
        within = "yes" if more == 0 else "better" if more > 0 else "LOST"
        verdicts = [default.mean() >= goal, default.std() <= paper[1]]
        lines.append([name, str(budget), within, *("yes" if v else "LOST" for v in verdicts)])
    return "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""
