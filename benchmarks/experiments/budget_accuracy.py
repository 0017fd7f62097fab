"""Test accuracy on a budget: tables 1 and 2 of the lookup-merging paper, five seeds, its budgets and parameters.

`budget-<search>` is the paper's algorithm with four ways to find the merging partner (20 passes, the last iterate);
`budget-averaged` returns the average of the recent iterates, `budget` also refits the coefficients (our default).
SUSY is a part of 30,000 rows here; the paper used 4,500,000 in one pass, so its numbers are not comparable for that set.
No time is shown here, so fits of one thread run side by side (the times are in `budget_speed`). Variants that only serve
as a check on the others (gss-precise, lookup-h, averaged) have one seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

BUDGETS = {"skin": (100, 200)}
USUAL_BUDGETS = (100, 500)
SEEDS = 5
CHECK_SEEDS = dict.fromkeys(("budget-gss-precise", "budget-lookup-h", "budget-averaged"), 1)
EPOCHS = 20
PAPER_EXACT = {"susy": 79.79, "skin": 99.96, "ijcnn1": 98.77, "a9a": 84.82, "w8a": 98.81, "phishing": 97.55}
PAPER_LOOKUP_WD = {
    ("susy", 100): (76.88, 1.26),
    ("susy", 500): (75.57, 3.93),
    ("skin", 100): (99.62, 0.88),
    ("skin", 200): (99.75, 0.09),
    ("ijcnn1", 100): (97.13, 0.36),
    ("ijcnn1", 500): (98.07, 0.37),
    ("a9a", 100): (84.20, 0.80),
    ("a9a", 500): (83.95, 1.00),
    ("w8a", 100): (98.79, 0.04),
    ("w8a", 500): (98.81, 0.02),
    ("phishing", 100): (96.39, 0.37),
    ("phishing", 500): (97.53, 0.20),
}
VARIANTS = ("budget-gss-precise", "budget-gss", "budget-lookup-h", "budget-lookup-wd", "budget-averaged", "budget")


class BudgetAccuracy(Experiment):
    title = "Budgeted machines: accuracy"
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
                    for seed in range(1 if options.quick else CHECK_SEEDS.get(solver, SEEDS)):
                        settings = {"budget": budget, "epochs": EPOCHS, "random_state": seed}
                        cell = Problem("svc", fit_intercept=False, options=settings, **problem)
                        untimed = {"threads": 1, "score_only": True, "alone": False}
                        cells.append(Cell(name, solver, cell, **untimed, label=f"B={budget}"))
        return cells

    def text_accuracy(self, run: dict[str, Any], dataset: str, budget: str) -> str:
        """Our default's mean over the seeds."""
        return f"{_scores(run['records'])[dataset, int(budget)][self.baseline].mean():.2f} %"

    def report(self, run: dict[str, Any]) -> str:
        records = [r for r in run["records"] if r["status"] == "ok"]
        parts = [_exact_table(records), _accuracy_table(records), _spread_goal(records), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)


def _scores(records: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """Test accuracies in per cent by (set, budget) and solver, one per seed."""
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    for r in records:
        if r["solver"] != "maxmargin":
            key = r["dataset"], r["problem"]["options"]["budget"]
            found.setdefault(key, {}).setdefault(r["solver"], []).append(100 * r["score"])
    return {key: {solver: np.array(v) for solver, v in values.items()} for key, values in found.items()}


def _exact_table(records: list[dict[str, Any]]) -> str:
    lines = [["set", "rows", "C", "γ", "accuracy", "support vectors", "the paper's (LIBSVM)"]]
    for r in records:
        if r["solver"] == "maxmargin":
            problem = r["problem"]
            shown = [f"{r['rows']:,}", f"{problem['C']:g}", f"{problem['gamma']:.4g}", f"{100 * r['score']:.2f} %"]
            lines.append([r["dataset"], *shown, f"{r['n_support']:,}", f"{PAPER_EXACT[r['dataset']]:.2f} %"])
    return "## Table 1: the exact machine\n\n" + report.markdown(lines) if len(lines) > 1 else ""


def _mean_and_spread(scores: np.ndarray | None) -> str:
    if scores is None:
        return ""
    return f"{scores.mean():.2f} ± {scores.std():.2f}" if len(scores) > 1 else f"{scores[0]:.2f}"


def _accuracy_table(records: list[dict[str, Any]]) -> str:
    scores = _scores(records)
    columns = [name for name in VARIANTS if any(name in values for values in scores.values())]
    lines = [["set", "budget", *columns, "the paper's lookup-wd"]]
    for (name, budget), values in scores.items():
        cells = [_mean_and_spread(values.get(c)) for c in columns]
        paper = PAPER_LOOKUP_WD.get((name, budget))
        lines.append([name, str(budget), *cells, f"{paper[0]:.2f} ± {paper[1]:.2f}" if paper else ""])
    return "## Table 2: accuracy in per cent, mean ± standard deviation over the seeds\n\n" + report.markdown(lines)


def _spread_goal(records: list[dict[str, Any]]) -> str:
    """Is lookup-wd within one standard deviation of gss; is our default as accurate as the paper's, with less spread?

    Where the exact machine on our split is below the paper's budgeted one, reaching the exact one (−0.1) is enough.
    """
    exact = {r["dataset"]: 100 * r["score"] for r in records if r["solver"] == "maxmargin"}
    lines = [["set", "budget", "lookup-wd within one sd of gss", "default's accuracy", "default's spread ≤ paper's"]]
    for (name, budget), values in _scores(records).items():
        paper = PAPER_LOOKUP_WD.get((name, budget))
        ours, gss, default = (values.get(k) for k in ("budget-lookup-wd", "budget-gss", "budget"))
        if ours is None or gss is None or default is None or paper is None or len(ours) < SEEDS:
            continue
        spread = max(ours.std(), gss.std(), 1e-9)
        goal = min(paper[0], exact.get(name, 100.0) - 0.1)
        verdicts = [abs(ours.mean() - gss.mean()) <= spread, default.mean() >= goal, default.std() <= paper[1]]
        lines.append([name, str(budget), *("yes" if v else "LOST" for v in verdicts)])
    return "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""
