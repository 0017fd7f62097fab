"""Exact kernel machines against the peers at tol 1e-3: seconds, ratios, objectives, and the distance from the limit.

Two rows are covtype: `covtype_first` has the file's first 50,000 rows, scaled by the range of the whole file, which is
the set that the goals were written for; `covtype` has 50,000 rows drawn from everywhere, which is harder (three quarters
more support vectors), and stays out of goals and means. Every solver runs equally often: twice, or once on sets where a
peer takes a minute or more. Left out for their time are libsvm-official and float64 on the large sets, and scikit-learn
on the second covtype. How time and accuracy go together is the experiment `exact_error`.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

TOL = 1e-3
INTELEX = ("sklearnex-float32", "sklearnex-float32-dense", "sklearnex-float64")
GOALS = {"scikit-learn": (("scikit-learn",), 12.0), "scikit-learn-intelex, its best variant": (INTELEX, 4.0)}
ROWS = {"covtype": 50_000, "mnist8": 20_000}
SLOW = ("a9a", "mv", "covtype_first", "covtype")  # a peer's fit takes a minute or more
LEFT_OUT = dict.fromkeys(SLOW, ("sklearnex-float64", "libsvm")) | {
    "covtype": ("scikit-learn", "sklearnex-float64", "libsvm")
}
TEST_ROWS = 20_000  # of covtype's 116,203, for the evaluator's sake


class Exact(Experiment):
    title = "Exact kernel machines"
    yardstick = "scikit-learn"
    sets = ("ijcnn1", "a9a", "w8a", "covtype_first", "mnist8", "mv", "cadata", "covtype")
    beside = ("covtype",)
    solvers = (
        "maxmargin", "scikit-learn", "sklearnex-float32", "sklearnex-float32-dense", "sklearnex-float64", "libsvm",
    )  # fmt: skip

    def cells(self, options: Options) -> list[Cell]:
        tol = options.tols[0] if options.tols else TOL
        known = discover("datasets")
        return [
            Cell(
                name,
                solver,
                Problem("svr" if known[name].task == "regression" else "svc", tol=tol, **known[name].kernel),
                rows=ROWS.get(name),
                test_rows=TEST_ROWS if name in ("covtype", "covtype_first") else None,
                repeat=options.repeat or (1 if name in SLOW else 2),
                kernel_pass=solver == self.baseline,
            )
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
            if options.solvers or solver not in LEFT_OUT.get(name, ())
        ]

    def report(self, run: dict[str, Any]) -> str:
        parts = [goal_table(self, run), report.tables(self, run) + "\n", report.limit_table(self, run)]
        return "\n".join(part for part in parts if part)


def goal_table(experiment: Experiment, run: dict[str, Any]) -> str:
    """Geometric mean and smallest ratio against each peer, taking the fastest of its variants that is not marked."""
    lines = [["against", "goal", "geometric mean", "sets", "smallest", "verdict"]]
    counted = [r for r in run["records"] if r["dataset"] not in experiment.beside]
    records = [r for r in counted if r["label"] == "" and r["status"] != "skipped"]
    for peer, (variants, goal) in GOALS.items():
        ratios, failed = [], False
        for name in report.rows_of(records):
            cells = {r["solver"]: r for r in records if report.row_name(r) == name}
            good = {solver: r["best"] for solver, r in cells.items() if r["status"] == "ok" and not r["mark"]}
            times = [good[variant] for variant in variants if variant in good]
            if not times:  # the time limit of one that was killed is a lower bound
                killed = [cells[v] for v in variants if v in cells and cells[v]["status"] == "timeout"]
                times = [report.limit_of(r) for r in killed]
            failed |= experiment.baseline in cells and experiment.baseline not in good
            if experiment.baseline in good and times:
                ratios.append(min(times) / good[experiment.baseline])
        if ratios:
            mean = report.geometric_mean(ratios)
            verdict = "reached" if mean >= goal and min(ratios) >= 1 and not failed else "LOST"
            shown = [f"{mean:.3g}×", str(len(ratios)), f"{min(ratios):.3g}×"]
            lines.append([peer, f"{goal:g}×, slower on none", *shown, verdict])
    if len(lines) == 1:
        return ""
    beside = f" without {', '.join(experiment.beside)}" if experiment.beside else ""
    return (
        f"## Goals\n\nOver all sets{beside}; the fastest variant whose model is not marked counts, and one that was "
        "stopped at the time limit counts with that limit.\n\n" + report.markdown(lines) + "\n"
    )
