"""Training time on a budget: lookup against golden section search (table 3 and figure 3 of the lookup-merging paper).

`paper-<search>` is the paper's algorithm (its table, every support vector that is one too many merged, the last iterate);
the savings compare these with each other. All four searches run in our own program, on the same blocks and vector
instructions: golden section search treats 16 candidates side by side, so its times are far below those of a scalar one. The
savings are of our program, not of the paper's: kernel values are computed in vectors too, which leaves a larger part of the
time to the search than there. `budget-lookup-wd` has our table and drop rule, `budget` is our
default, with averages and a refit. A is the search for the partner and h, B the rest of budget maintenance.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Line, Options, Problem, discover
from benchmarks.experiments.budget_accuracy import BUDGETS, PAPER, USUAL_BUDGETS, unmeasured
from benchmarks.papers import budget as printed

EPOCHS = 3
SEARCHES = (*PAPER, "budget-lookup-wd")


class BudgetSpeed(Experiment):
    title = "Budgeted machines: training time"
    shows = ("budget_table3", "budget_figure3")
    sets = ("susy", "skin", "ijcnn1", "a9a", "w8a", "phishing")
    solvers = (*SEARCHES, "budget")
    baseline = "budget-lookup-wd"
    repeat = 2
    excess_allowed = float("inf")

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        return [
            Cell(
                name,
                solver,
                Problem(
                    "svc",
                    fit_intercept=False,
                    options={"budget": budget, "epochs": EPOCHS, "random_state": 0},
                    **known[name].kernel,
                ),
                threads=1,
                judged=False,
                label=f"B={budget}",
            )
            for name in self.chosen_sets(options)
            for budget in BUDGETS.get(name, USUAL_BUDGETS)
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        cells = _cells(run)
        parts = [_saving_table(cells), _breakdown_table(cells), _refit_table(cells), unmeasured(self, run)]
        parts.append(report.reasons(run["records"]))
        if cells:
            parts.append("![merging time split into its two parts](budget_speed.svg)")
        return "\n\n".join(part for part in parts if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        """Table 3's left half, by the paper's rules."""
        cells, lines = _cells(run), []
        for (name, budget), saved in printed.SAVED_3.items():
            cell = cells.get((name, budget), {})
            for search, value in zip(("lookup-h", "lookup-wd"), saved):
                known = {"paper-gss", f"paper-{search}"} <= set(cell)
                mine = _saving(cell, f"paper-{search}", "total") if known else None
                why = "kernel values take little time here, so that more of it is the search" + (
                    "; " + printed.WHY[name] if name in printed.WHY else ""
                )
                lines.append(Line("Table 3", f"{name}, B = {budget}: {search} saves", "%", value, mine, why))
        return lines

    def text_saved(self, run: dict[str, Any]) -> str:
        """What lookup-wd saves of the training time, over all sets and budgets."""
        known = {key: cell for key, cell in _cells(run).items() if {"paper-gss", "paper-lookup-wd"} <= set(cell)}
        saved = {key: _saving(cell, "paper-lookup-wd", "total") for key, cell in known.items()}
        if not saved:
            return "(not measured yet)"
        slower = [f"{name} (B = {budget})" for (name, budget), value in saved.items() if value < 0]
        more = f"; slower on {report.listed(slower)}" if slower else "; slower nowhere"
        return f"{min(saved.values()):.0f} to {max(saved.values()):.0f} % of the training time{more}"

    def text_pass_seconds(self, run: dict[str, Any], dataset: str, budget: str) -> str:
        """Seconds per pass of our default search."""
        numbers = _cells(run)[dataset, int(budget)][self.baseline]
        return f"{numbers['time_training'] / EPOCHS:.2g}"

    def text_refit(self, run: dict[str, Any], dataset: str, budget: str) -> str:
        """How long the refit takes, in seconds and in passes."""
        numbers = _cells(run).get((dataset, int(budget)), {}).get("budget")
        if numbers is None:
            return "(not measured yet)"
        one = numbers["time_training"] / EPOCHS
        return f"{report.seconds(numbers['time_refit'])} s, as long as {numbers['time_refit'] / one:.0f} passes"

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        pyplot = plots._pyplot()
        cells = _cells(run)
        if pyplot is None or not cells:
            return []
        keys = list(cells)
        figure, axes = pyplot.subplots(-(-len(keys) // 4), 4, figsize=(13, 2.6 * -(-len(keys) // 4)), squeeze=False)
        for axis, key in zip(axes.ravel(), keys):
            names = [name for name in SEARCHES if name in cells[key]]
            search = [cells[key][name]["search_seconds"] / EPOCHS for name in names]
            other = [cells[key][name]["other_seconds"] / EPOCHS for name in names]
            axis.bar(range(len(names)), search, label="A: search")
            axis.bar(range(len(names)), other, bottom=search, label="B: the rest")
            axis.set_xticks(range(len(names)), names, rotation=20)
            axis.set_title(f"{key[0]}, budget {key[1]}")
            axis.set_ylabel("seconds per pass")
        for axis in axes.ravel()[len(keys) :]:
            axis.set_visible(False)
        axes[0, 0].legend(frameon=False)
        figure.tight_layout()
        path = folder / "budget_speed.svg"
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
        return [path]


def _cells(run: dict[str, Any]) -> dict[tuple[str, int], dict[str, dict[str, float]]]:
    """The numbers of each (set, budget) and solver: those of the first turn, and the best fit time."""
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    for r in run["records"]:
        if r["status"] == "ok":
            key = r["dataset"], r["problem"]["options"]["budget"]
            found.setdefault(key, {})[r["solver"]] = {**r["extra"], "best": r["best"]}
    return found


def _saving(cell: dict[str, dict[str, float]], solver: str, part: str) -> float:
    def value(name: str) -> float:
        numbers = cell[name]
        return numbers["search_seconds"] + numbers["other_seconds"] if part == "merging" else numbers["time_training"]

    return 100 * (1 - value(solver) / value("paper-gss"))


def _saving_table(cells: dict[tuple[str, int], dict[str, dict[str, float]]]) -> str:
    """What the lookups save of gss's time, all by the paper's rules; its goals for SUSY, never slower anywhere."""
    head = ["set", "budget", "events per step", "lookup-wd: merging", "lookup-wd: total", "lookup-h: total", "verdict"]
    lines = [head]
    for (name, budget), cell in cells.items():
        if not {"paper-gss", "paper-lookup-wd", "paper-lookup-h"} <= set(cell):
            continue
        merging, total = (_saving(cell, "paper-lookup-wd", part) for part in ("merging", "total"))
        goal = merging >= 65 and total >= 44 if name == "susy" else total >= 0
        frequency = f"{100 * cell['paper-lookup-wd']['merging_frequency']:.1f} %"
        shown = [frequency, _less(merging), _less(total), _less(_saving(cell, "paper-lookup-h", "total"))]
        lines.append([name, str(budget), *shown, "reached" if goal else "LOST"])
    title = "## Table 3: saving against golden section search, by the paper's rules"
    return f"{title}\n\n{report.markdown(lines)}" if len(lines) > 1 else ""


def _less(per_cent: float) -> str:
    return f"{'−' if per_cent >= 0 else '+'}{abs(per_cent):.0f} %"


def _breakdown_table(cells: dict[tuple[str, int], dict[str, dict[str, float]]]) -> str:
    lines = [["set", "budget", "search", "A: search, s", "B: the rest, s", "training, s", "fit, s"]]
    for (name, budget), cell in cells.items():
        for solver in (s for s in SEARCHES if s in cell):
            numbers = cell[solver]
            parts = [numbers["search_seconds"], numbers["other_seconds"], numbers["time_training"]]
            shown = [report.seconds(value / EPOCHS) for value in parts]
            lines.append([name, str(budget), solver, *shown, report.seconds(numbers["best"])])
    title = f"## Figure 3: where the time goes, per pass (fit: {EPOCHS} passes, set-up, objective)"
    return f"{title}\n\n{report.markdown(lines)}"


def _refit_table(cells: dict[tuple[str, int], dict[str, dict[str, float]]]) -> str:
    lines = [["set", "budget", "a pass, s", "refit, s", "objective, s", "fit, s"]]
    for (name, budget), cell in cells.items():
        if "budget" in cell:
            numbers = cell["budget"]
            parts = [numbers["time_training"] / EPOCHS, numbers["time_refit"], numbers["time_objective"], numbers["best"]]
            lines.append([name, str(budget), *map(report.seconds, parts)])
    return f"## The default: {EPOCHS} passes and a refit\n\n{report.markdown(lines)}" if len(lines) > 1 else ""
