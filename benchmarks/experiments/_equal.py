"""Solvers whose tolerances mean different things, each at several: who is first at an objective that the other reached."""

from __future__ import annotations

import dataclasses
from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem

Record = dict[str, Any]


class EqualObjective(Experiment):
    """`ladders`: tolerances per solver. Every peer's run is compared with our quickest one that is not above it.

    A process fits `number` times, and the best counts: of fits of some hundredths of a second a third is what a process
    meets for the first time. Runs at tolerances of `once` or less take seconds, and there the ratios are far from 1: one
    fit is enough.
    """

    ladders: dict[str, tuple[float, ...]] = {}
    once = 1e-4
    number = 3
    repeat = 1
    goal = 0.0  # times a peer's speed, of the first peer named
    time_limit = 60.0
    excess_allowed = float("inf")  # rough runs are wanted: the tables compare them with others as rough

    def problems(self, name: str, options: Options) -> list[Problem]:
        """Problems on one data set; their tol is replaced."""
        raise NotImplementedError

    def cells(self, options: Options) -> list[Cell]:
        known = self.chosen_solvers(options)
        return [
            Cell(name, solver, dataclasses.replace(problem, tol=tol), threads=1, label=f"tol={tol:g}",
                 number=1 if tol <= self.once else self.number)
            for name in self.chosen_sets(options)
            for problem in self.problems(name, options)
            for solver in known
            for tol in self.ladders[solver]
        ]

    def report(self, run: dict[str, Any]) -> str:
        records = run["records"]
        parts = [goal_table(self, records), equal_table(self, records), all_runs(records), report.reasons(records)]
        return "\n\n".join(part for part in parts if part)

    def text_ratios(self, run: dict[str, Any], solver: str = "") -> str:
        """ "2 to 7": the times of a peer, of all of them unless named, as multiples of ours at the same objective."""
        found = [ratio for peer, _, ratio in pairs(self, run["records"]) if ratio and solver in ("", peer["solver"])]
        return report.between(found)


def row_of(record: Record) -> tuple[Any, ...]:
    """What two runs on the way to the same optimum share."""
    problem = record["problem"]
    return (record["dataset"], *(problem[key] for key in ("task", "loss", "C", "epsilon", "fit_intercept")))


def pairs(experiment: Experiment, records: list[Record]) -> list[tuple[Record, Record | None, float | None]]:
    """(a peer's run, our quickest that is at least as good, the ratio of times)."""
    good = [r for r in records if r["status"] == "ok"]
    out: list[tuple[Record, Record | None, float | None]] = []
    for peer in good:
        if peer["solver"] == experiment.baseline:
            continue
        mine = [r for r in good if r["solver"] == experiment.baseline and row_of(r) == row_of(peer)]
        as_good = [r for r in mine if r["primal"] <= peer["primal"] * (1 + 1e-9)]
        ours = min(as_good, key=lambda r: float(r["best"]), default=None)
        out.append((peer, ours, peer["best"] / ours["best"] if ours else None))
    return out


def goal_table(experiment: EqualObjective, records: list[Record]) -> str:
    """Of each set: the ratios to the first peer at its tolerances, over all problems; reached where the smallest is."""
    if not experiment.goal:
        return ""
    peer = experiment.solvers[1]
    found = [(theirs["dataset"], theirs["problem"]["tol"], ratio or 0.0) for theirs, _, ratio in pairs(experiment, records)
             if theirs["solver"] == peer]  # fmt: skip
    tols = sorted({tol for _, tol, _ in found}, reverse=True)
    lines = [["set", *(f"{peer}, tol {tol:g}: mean (smallest)" for tol in tols), "goal", "verdict"]]
    for name in dict.fromkeys(name for name, _, _ in found):
        cells, least = [], float("inf")
        for tol in tols:
            ratios = [ratio for where, at, ratio in found if (where, at) == (name, tol)]
            least = min(least, *ratios) if ratios else least
            cells.append(f"{report.geometric_mean(ratios):.3g}× ({min(ratios):.3g}×)" if ratios and min(ratios) else "")
        lines.append([name, *cells, f"{experiment.goal:g}×", "reached" if least >= experiment.goal else "LOST"])
    return "## Goals\n\n" + report.markdown(lines) if len(lines) > 1 else ""


def equal_table(experiment: EqualObjective, records: list[Record]) -> str:
    lines = [["set", "peer", "its tol", "seconds", "above the best", "ours, at least as good", "above the best", "ratio"]]
    for peer, ours, ratio in pairs(experiment, records):
        beside = ["none", "", "**LOST**"]
        if ours is not None and ratio is not None:
            lost = " **LOST**" if ratio < 1 else ""
            beside = [report.seconds(ours["best"]), report.number(ours["primal_excess"], 2), f"{ratio:.3g}×{lost}"]
        name = f"{report.row_name(peer)}, {peer['problem']['loss']}"
        excess = report.number(peer["primal_excess"], 2)
        lines.append([name, peer["solver"], f"{peer['problem']['tol']:g}", report.seconds(peer["best"]), excess, *beside])
    return "## At equal objective\n\n" + report.markdown(lines)


def all_runs(records: list[Record]) -> str:
    lines = [["set", "solver", "tol", "seconds", "primal", "above the best", "weights not 0", "score"]]
    for r in records:
        if r["status"] == "ok":
            count = "" if r.get("n_support") is None else f"{r['n_support']:,}"
            lines.append([f"{report.row_name(r)}, {r['problem']['loss']}", r["solver"], f"{r['problem']['tol']:g}",
                          report.seconds(r["best"]), report.number(r["primal"], 8), report.number(r["primal_excess"], 2),
                          count, report.score(r)])  # fmt: skip
    return "## All runs\n\n" + report.markdown(lines)
