"""Figure 1 of Franc & Sonnenburg 2008: objective and lower bound of CPA and OCAS, turn by turn.

One run per solver down to a relative gap of 1e-3 (CPA: at most 1,500 turns). A turn of OCAS and of CPA is one pass over
X and one cut; `linear-ocas-mix` is OCAS with other λ than the paper's 0.1 (the point between the best solution and the
reduced problem's at which it cuts). A turn of our default solver also takes a Newton step, so compare its seconds, not
its turns. The curves are the solvers' own reports (for CPA too the best objective so far, where the paper lets it
jump); the last objective is checked by the evaluator.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem

GAPS = (1e-1, 3e-2, 1e-2, 3e-3, 1e-3)
MIX, MIXES = "linear-ocas-mix", (0.01, 0.03, 0.3, 1.0)  # λ; 0.1 is linear-ocas
MOST = 1500  # turns: CPA needs thousands where OCAS needs a hundred


class LinearConvergence(Experiment):
    title = "Linear machines: convergence of the cutting planes"
    shows = ("ocas_figure1",)
    baseline = "linear-ocas"
    sets = ("a9a", "covtype")
    solvers = ("linear-ocas", "linear-cpa", "linear-maxmargin", MIX)
    repeat = 1

    def cells(self, options: Options) -> list[Cell]:
        def problem(**more: Any) -> Problem:
            return Problem("linear", tol=GAPS[-1], fit_intercept=False, options={"max_iter": MOST, **more})

        cells = []
        for name in self.chosen_sets(options):
            for solver in self.chosen_solvers(options):
                points = [problem(mix=mix) for mix in MIXES] if solver == MIX else [problem()]
                cells += [Cell(name, solver, one, curves=True) for one in points]
        return cells

    def column(self, record: dict[str, Any]) -> str:
        mix = record["problem"]["options"].get("mix")
        return str(record["solver"]) if mix is None else f"linear-ocas, λ = {mix:g}"

    def text_mix(self, run: dict[str, Any]) -> str:
        """Turns to the last gap by λ."""
        said = []
        for name in self.sets:
            mine = [
                r
                for r in run["records"]
                if r["dataset"] == name and r["solver"] in (MIX, "linear-ocas") and r["status"] == "ok"
            ]
            turns = {r["problem"]["options"].get("mix", 0.1): int(r["extra"]["iterations"]) for r in mine}
            if len(turns) > 1:
                said.append(f"{name}: " + ", ".join(f"{turns[mix]:,} turns at λ = {mix:g}" for mix in sorted(turns)))
        return "; ".join(said) or "(not measured yet)"

    def report(self, run: dict[str, Any]) -> str:
        done = [r for r in run["records"] if r["status"] == "ok" and r.get("curves")]
        turns = [["turns (seconds) to a relative gap of", "solver", *(f"{gap:g}" for gap in GAPS), "objective"]]
        for r in done:
            reached = [_first(r["curves"], gap) for gap in GAPS]
            turns.append([report.row_name(r), self.column(r), *reached, report.number(r.get("primal"), 6)])
        picture = (
            "Solid: relative distance of the best objective so far from the best one known. Dashed: of the lower "
            "bound. The turn at which both have fallen below tol is the end of a run.\n\n"
            "![objective and lower bound against turns](linear_convergence.svg)"
        )
        parts = [report.markdown(turns), picture, report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        named = [r | {"solver": self.column(r)} for r in run["records"]]
        return plots.bounds(run | {"records": named}, folder / "linear_convergence.svg")


def _first(curves: dict[str, list[float]], gap: float) -> str:
    """The first turn with a relative gap of at most `gap`, and its time."""
    for turn, (f, low, at) in enumerate(zip(curves["objective"], curves["lower"], curves["time"]), 1):
        if f - low <= gap * f:
            return f"{turn:,} ({report.seconds(at)} s)"
    return f"> {len(curves['time']):,}"
