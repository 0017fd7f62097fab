"""Table 3 of Franc & Sonnenburg 2008: model selection over C by the area under the ROC curve, and the time of it all.

Each solver fits every C on its own, from zero; `linear-path` is our `LinearSVC.path`, which goes from C to C and keeps
its cuts. The area (and the accuracy beside it) is the evaluator's, from decision values on the test rows. As in the
paper the best C is chosen on the test rows: it shows what the grid contains, not what a user without them would pick.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options, Problem

STRENGTHS = (0.01, 0.1, 1.0, 10.0)
PATH = "linear-path"


class LinearSelection(Experiment):
    title = "Linear machines: model selection over C"
    baseline = "linear-maxmargin"
    sets = ("a9a", "w8a", "reuters", "covtype")
    solvers = ("linear-maxmargin", PATH, "linear-ocas", "liblinear-s3")
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        def problem(C: float, solver: str) -> Problem:
            more = {"Cs": list(STRENGTHS)} if solver == PATH else {}
            return Problem("linear", C=C, fit_intercept=False, options=more)

        return [
            Cell(name, solver, problem(C, solver), label=f"C={C:g}")
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
            for C in (STRENGTHS[-1:] if solver == PATH else STRENGTHS)
        ]

    def text_paths(self, run: dict[str, Any]) -> str:
        """ "a9a 0.9, covtype 0.7": the time of our path over C beside that of separate fits."""
        done = [r for r in run["records"] if r["status"] == "ok"]
        total = dict.fromkeys(((name, solver) for name in self.sets for solver in self.solvers), 0.0)
        for r in done:
            total[r["dataset"], r["solver"]] += r["best"]
        return ", ".join(f"{n} {total[n, PATH] / total[n, self.baseline]:.2g}" for n in self.sets if total[n, PATH])

    def report(self, run: dict[str, Any]) -> str:
        lines = [["set", "solver", *(f"auROC C={C:g}" for C in STRENGTHS), "best C", "accuracy there",
                  "seconds for all C", "notes"]]
        done = [r for r in run["records"] if r["status"] == "ok"]
        for name, solver in dict.fromkeys((r["dataset"], r["solver"]) for r in done):
            mine = {r["problem"]["C"]: r for r in done if (r["dataset"], r["solver"]) == (name, solver)}
            lines.append([name, solver, *_row(mine, solver)])
        parts = [report.markdown(lines), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)


def _row(mine: dict[float, dict[str, Any]], solver: str) -> list[str]:
    areas = [f"{mine[C]['auc']:.4f}" if C in mine and mine[C].get("auc") is not None else "" for C in STRENGTHS]
    total = report.seconds(sum(r["best"] for r in mine.values()))
    notes = "; ".join(f"C={C:g}: {r['mark']}" for C, r in mine.items() if r.get("mark"))
    known = {C: r for C, r in mine.items() if r.get("auc") is not None}
    if solver == PATH or not known:
        return [*areas, "", "", total, notes]
    if len(mine) < len(STRENGTHS):
        total = f"> {total}"
    best = max(known, key=lambda C: known[C]["auc"])
    return [*areas, f"{best:g}", f"{100 * known[best]['score']:.2f} %", total, notes]
