"""The constants of clustering, chosen on training rows alone: a fifth of each set's training rows is held out for it.

One constant at a time is varied around the values in use. Those that shape the clusters of early prediction are judged by
the mean accuracy on the held out rows, over all sets and seeds; what is within 0.1 points of the best counts as equal, and
of these the least CPU time wins (one thread; geometric mean, over sets and seeds, of the ratio to the value in use). Those
that choose among clusterings of coarse levels, on the way to the exact solution, are judged by that time alone. Times
within 3 % of the least count as equal, and of these the value nearest to the one in use wins, so that noise changes
nothing. No test row is looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover
from benchmarks.datasets.training_rows import SETS

Record = dict[str, Any]

EARLY, EXACT = "early", "exact"
VALUES: dict[str, tuple[float, ...]] = {
    "_WIDTHS": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 1e9),
    "_FAR_ABOVE_MEAN": (1.5, 2.0, 3.0, 4.0),
    "_SPLIT_SAMPLE": (16, 32, 64),
    "_RESTARTS": (1, 2, 4, 8, 16),
    "_BALANCE": (0.0, 0.02, 0.1, 0.5),
}
JUDGED = {"_WIDTHS": EARLY, "_FAR_ABOVE_MEAN": EARLY, "_SPLIT_SAMPLE": EARLY, "_RESTARTS": EXACT, "_BALANCE": EXACT}
ABOUT = {
    "_WIDTHS": "γ d² of two random points from which on the kernel is widened (1e9: never)",
    "_FAR_ABOVE_MEAN": "clusters larger than this many times the mean are split",
    "_SPLIT_SAMPLE": "sampled points per part of a split",
    "_RESTARTS": "runs of kernel k-means on coarse levels",
    "_BALANCE": "what imbalance costs when one of them is chosen",
}
ROWS = {"covtype": 40_000, "skin": 60_000, "mnist_round": 12_000, "kddcup99": 60_000}
EXACT_ROWS = {"covtype": 150_000}  # where the solution by levels pays
SEEDS = {EARLY: (0, 1, 2), EXACT: (0, 1)}
SOLVER = "maxmargin-dc-constants"
EQUAL, FASTER = 0.001, 0.97


class DCConstants(Experiment):
    title = "Divide and conquer: the constants of clustering"
    sets = tuple(f"{name}_train" for name in SETS)
    solvers = (SOLVER,)
    baseline = SOLVER
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        known, cells = discover("datasets"), []
        for name in self.chosen_sets(options):
            of = known[name].of
            for mode in (EARLY, EXACT):
                mine = [constant for constant in VALUES if JUDGED[constant] == mode]
                settings = [{}, *({constant: value} for constant in mine for value in VALUES[constant])]
                for seed in SEEDS[mode][: 1 if options.quick else None]:
                    for constants in settings[: 3 if options.quick else None]:
                        how = {"constants": constants, "random_state": seed, "early": mode == EARLY}
                        problem = Problem("svc", **known[of].kernel, fit_intercept=False, options=how)
                        cells.append(
                            Cell(
                                name, SOLVER, problem, (EXACT_ROWS if mode == EXACT and of in EXACT_ROWS else ROWS).get(of),
                                threads=1, score_only=True, alone=False, label=f"{mode} {_shown(constants)}",
                            )
                        )  # fmt: skip
        return cells

    def report(self, run: dict[str, Any]) -> str:
        records = [r for r in run["records"] if r["status"] == "ok"]
        parts = [_verdicts(records), *(_table(records, constant) for constant in VALUES), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)

    def text_cut(self, run: dict[str, Any], dataset: str, widths: str) -> str:
        """The share of the kernel that 64 clusters cut, mean over the seeds: "9 %"."""
        mine = [r for r in run["records"] if r["dataset"] == dataset and r["label"] == f"{EARLY} _WIDTHS={float(widths):g}"]
        return f"{100 * np.mean([r['extra']['cut'] for r in mine]):.0f} %"


def _shown(constants: dict[str, float]) -> str:
    return " ".join(f"{name}={value:g}" for name, value in constants.items()) or "in use"


def in_use(records: list[Record], constant: str) -> float:
    """The value that the library had when this was measured."""
    return float(next(r for r in records if r["label"].endswith("in use"))["extra"][constant])


def compared(records: list[Record], constant: str) -> dict[float, tuple[float, float]]:
    """value → (mean accuracy over sets and seeds, CPU time relative to the value in use)."""
    mode, used = JUDGED[constant], in_use(records, constant)
    found: dict[float, dict[tuple[str, int], Record]] = {}
    for r in records:
        options = r["problem"]["options"]
        if r["label"].startswith(mode) and set(options["constants"]) <= {constant}:
            value = float(options["constants"].get(constant, used))
            found.setdefault(value, {})[r["dataset"], options["random_state"]] = r
    base = found[used]
    out = {}
    for value, cells in sorted(found.items()):
        same = [key for key in base if key in cells]
        score = float(np.mean([cells[key]["score"] for key in same]))
        ratios = [cells[key]["extra"]["cpu"] / base[key]["extra"]["cpu"] for key in same]
        out[value] = score, report.geometric_mean(ratios)
    return out


def chosen(records: list[Record], constant: str) -> float:
    """By the rule on top of this page."""
    values, used = compared(records, constant), in_use(records, constant)
    if JUDGED[constant] == EARLY:
        best = max(score for score, _ in values.values())
        values = {value: known for value, known in values.items() if known[0] >= best - EQUAL}
    least = min(ratio for _, ratio in values.values())
    order = list(VALUES[constant])
    place = order.index(used)
    equal = [value for value, (_, ratio) in values.items() if FASTER * ratio <= least]
    return min(equal, key=lambda value: abs(order.index(value) - place))


def _verdicts(records: list[Record]) -> str:
    lines = [["constant", "what it is", "in use", "chosen"]]
    for constant in VALUES:
        used, best = in_use(records, constant), chosen(records, constant)
        differs = "" if best == used else " **not in use**"
        lines.append([f"`{constant}`", ABOUT[constant], f"{used:g}", f"{best:g}{differs}"])
    return "## Outcome\n\n" + report.markdown(lines)


def _table(records: list[Record], constant: str) -> str:
    lines = [["value", "accuracy", "CPU time, relative"]]
    for value, (score, ratio) in compared(records, constant).items():
        lines.append([f"{value:g}", f"{100 * score:.3f} %", f"{ratio:.3f}"])
    title = "early prediction" if JUDGED[constant] == EARLY else "to the exact solution"
    return f"## `{constant}`, {title}\n\n" + report.markdown(lines)
