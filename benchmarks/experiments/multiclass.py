"""Machines of several classes (one against one): fit and prediction, 13 sets × four kernels, SVC and NuSVC, tol 1e-3.

Goals: in the geometric mean 8 times as fast as scikit-learn and 6 times as fast as scikit-learn-intelex, predictions 10
times as fast as scikit-learn's, and slower on none. Objectives are sums over all pairs of classes of the binary ones. The
polynomial kernel is (γ x·z + 1)³ with γ of at most 0.5; it and the linear kernel have C=1, ν-SVC has the Gaussian kernel.
scikit-learn has its default cache of 200 MB, and 2,000 MB where a pair of classes needs more than 200; elsewhere the two
are the same. scikit-learn-intelex gets float64. Small sets are fitted several times in one process; the best fit counts.
`letters`, `satellite`, `zipcodes` and `text100` are generated in the shape of well-known sets.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

Record = dict[str, Any]

ROWS = {"mnist10": 3_000, "cifar10": 1_000, "covtype7": 5_000, "news20": 5_000}
TEST_ROWS = {"cifar10": 500}
MOST_TEST_ROWS = 1_000  # scikit-learn predicts some of these sets longer than it fits them
LARGE = {"mnist10": 10_000, "covtype7": 10_000}  # also with so many rows, Gaussian and linear kernel
NUMBER = {"iris": 20, "wine": 20, "digits": 5, "dna": 3, "satellite": 3, "kdd_attacks": 3}  # fits per process
LINEAR_ONLY = ("news20",)  # a Gaussian kernel takes scikit-learn minutes there
LARGE_PAIRS = (("covtype7", 10_000),)  # set and rows where two classes together need more than 200 MB
NU = {"covtype7": 0.01}  # its rarest class has a two-hundredth of the rows: a larger ν has no solution
USUAL_NU = 0.1
KERNELS = {"rbf": "Gaussian", "linear": "linear", "poly": "polynomial", "nu": "ν-SVC with Gaussian"}
PEERS = {"scikit-learn": 8.0, "sklearnex-float64": 6.0}
PREDICTION = {"scikit-learn": 10.0}
ONE_THREAD, ONE_THREAD_SETS = ", 1 thread", ("letters", "satellite", "zipcodes", "mnist10")


class MultiClass(Experiment):
    title = "Several classes"
    sets = (
        "iris", "wine", "digits", "dna", "satellite", "letters", "zipcodes", "mnist10", "cifar10", "covtype7", "kdd_attacks",
        "text100", "news20",
    )  # fmt: skip
    solvers = ("maxmargin", *PEERS)
    yardstick = "scikit-learn"
    repeat = 1  # the limit of this page is a quarter of an hour; --repeat 3 for more certainty
    time_limit = 60.0

    def cells(self, options: Options) -> list[Cell]:
        cells = []
        for name in self.chosen_sets(options):
            for kernel in ("linear",) if name in LINEAR_ONLY else KERNELS:
                for solver in self.chosen_solvers(options):
                    cells += _cells(name, kernel, solver, ROWS.get(name))
        large = () if options.quick else LARGE  # which has as many rows for both
        for name in (name for name in self.chosen_sets(options) if name in large):
            for kernel in ("rbf", "linear"):
                for solver in self.chosen_solvers(options):
                    cells += _cells(name, kernel, solver, LARGE[name])
        return cells

    def column(self, record: Record) -> str:
        if record["solver"] == self.baseline:
            return self.baseline + (ONE_THREAD if record["threads"] == 1 else "")
        cache = record["problem"]["cache_size"]
        return str(record["solver"]) + (f", {cache:,.0f} MB" if cache != 200.0 else "")

    def report(self, run: dict[str, Any]) -> str:
        records = run["records"]
        parts = [goal_table(self, records)]
        for kernel, title in KERNELS.items():
            mine = [r for r in records if r["label"] == kernel]
            if mine:
                fits = report.time_table(self, mine).replace("## Times", f"## {title} kernel: fits", 1)
                shown = report.time_table(self, [_prediction(r) for r in mine])
                judged = report.objective_table(self, mine)
                parts += [fits, shown.replace("## Times", f"### {title} kernel: predictions of the test rows", 1)]
                parts.append(judged.replace("## Objectives and scores", f"### {title} kernel: objectives and scores", 1))
        return "\n\n".join(part for part in [*parts, report.reasons(records)] if part)


def _cells(name: str, kernel: str, solver: str, rows: int | None) -> list[Cell]:
    """A solver on one kernel: at its default; with a larger cache, or with one thread, where that may matter."""
    problem = problem_of(name, kernel)
    same: dict[str, Any] = {
        "rows": rows, "test_rows": TEST_ROWS.get(name, MOST_TEST_ROWS), "number": NUMBER.get(name, 1), "predict": True,
        "label": kernel,
    }  # fmt: skip
    cells = [Cell(name, solver, problem, **same)]
    if solver == "scikit-learn" and (name, rows) in LARGE_PAIRS:
        cells.append(Cell(name, solver, problem_of(name, kernel, cache_size=2000.0), **same))
    if solver == "maxmargin" and kernel == "rbf" and name in ONE_THREAD_SETS:
        cells.append(Cell(name, solver, problem, threads=1, **same))
    return cells


def problem_of(name: str, kernel: str, cache_size: float = 200.0) -> Problem:
    known = discover("datasets")[name].kernel
    gamma = known.get("gamma", 1.0)
    if kernel == "nu":
        return Problem("nu_svc", nu=NU.get(name, USUAL_NU), gamma=gamma, cache_size=cache_size)
    if kernel == "linear":
        return Problem("svc", kernel="linear", cache_size=cache_size)
    if kernel == "poly":
        return Problem("svc", kernel="poly", gamma=min(gamma, 0.5), coef0=1.0, cache_size=cache_size)
    return Problem("svc", C=known["C"], gamma=gamma, cache_size=cache_size)


def _prediction(record: Record) -> Record:
    """The record with the time of its predictions in place of the fit's; one that was killed has none."""
    if record["status"] == "timeout":
        return record | {"status": "error", "reason": "no model to predict with"}
    return record | {"best": record.get("predict")}


def ratios(experiment: Experiment, records: list[Record], peer: str, kernel: str | None) -> tuple[list[float], int]:
    """How many times slower the peer is at its best, problem by problem, and how many of ours failed.

    A model of the peer that is marked or missing counts nowhere; one of ours that is, is lost.
    """
    found, failed = [], 0
    chosen = [r for r in records if kernel in (None, r["label"])]
    for label in KERNELS:
        rows = [r for r in chosen if r["label"] == label]
        for name in report.rows_of(rows):
            row = [r for r in rows if report.row_name(r) == name]
            ours = next((r for r in row if experiment.column(r) == experiment.baseline), None)
            if ours is None:
                continue
            if ours["status"] != "ok" or ours.get("mark"):
                failed += 1
                continue
            values: list[float] = []
            for r in row:
                if r["solver"] == peer:
                    report.time_cell(r, ours, values)
            found += [min(values)] if values else []
    return found, failed


def goal_table(experiment: Experiment, records: list[Record]) -> str:
    """A line per peer and kernel, and in all: mean, smallest, how often slower, and whether the goal is reached."""
    lines = [["what", "against", "kernel", "goal, mean", "mean", "smallest", "slower on", "problems", "verdict"]]
    kinds = (("fit", PEERS, records), ("prediction", PREDICTION, [_prediction(r) for r in records]))
    for what, peers, rows in kinds:
        for peer, goal in peers.items():
            for kernel in (None, *KERNELS):
                found, failed = ratios(experiment, rows, peer, kernel)
                if not found and not failed:
                    continue
                mean = report.geometric_mean(found) if found else 0.0
                slower = sum(value < 1 for value in found) + failed
                name = "**all**" if kernel is None else KERNELS[kernel]
                verdict = "reached" if mean >= goal and not slower else "LOST"
                lines.append([
                    what, peer, name, f"{goal:g}×", f"{mean:.3g}×", f"{min(found, default=0.0):.3g}×", str(slower),
                    str(len(found) + failed), verdict,
                ])  # fmt: skip
    if len(lines) == 1:
        return ""
    excess = [r["dual_excess"] for r in records if r["solver"] == experiment.baseline and "dual_excess" in r]
    words = "Our objectives are within {:.1g} (relative) of the best that any solver found."
    equal = "\n\n" + words.format(max(excess)) if excess else ""
    return (
        "## Goals\n\nGeometric means of ratios of seconds, theirs to ours; slower on none is part of every goal. A peer's "
        "models that are marked do not count, ours that are count as lost.\n\n" + report.markdown(lines) + equal
    )
