"""Merging decisions: table 3 of the lookup-merging paper, and the two functions of its figure 2.

One pass with budget 100 in which every merge is decided three times: by lookup, by golden section search to 0.01 and by
a precise search. "Factor" is the weight degradation of a method's choice over the least one, averaged over the events.
"""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Options, Problem, discover

BUDGET = 100
PAPER = {  # equal decisions (per cent), factor of gss, factor of lookup-wd
    "susy": (93.64, 1.01795, 1.00733),
    "skin": (74.31, 1.00047, 1.00005),
    "ijcnn1": (91.79, 1.02429, 1.00149),
    "a9a": (92.54, 1.05064, 1.00402),
    "w8a": (93.77, 1.00255, 1.00039),
    "phishing": (96.96, 1.00055, 1.00008),
}


class BudgetDecisions(Experiment):
    title = "Budgeted machines: merging decisions"
    sets = ("susy", "skin", "ijcnn1", "a9a", "w8a", "phishing")
    solvers = ("budget-lookup-wd",)
    baseline = "budget-lookup-wd"
    repeat = 1
    excess_allowed = float("inf")

    def cells(self, options: Options) -> list[Cell]:
        known = discover("datasets")
        settings = {"budget": BUDGET, "epochs": 1, "random_state": 0, "audit": True}
        return [
            Cell(
                name,
                solver,
                Problem("svc", fit_intercept=False, options=settings, **known[name].kernel),
                judged=False,
                label="audit",
            )
            for name in self.chosen_sets(options)
            for solver in self.chosen_solvers(options)
        ]

    def report(self, run: dict[str, Any]) -> str:
        head = ["set", "merging frequency", "lookup-wd = precise", "gss = precise", "lookup-wd = gss"]
        lines = [[*head, "factor lookup-wd", "factor gss", "the paper: equal to gss, factors", "goal"]]
        for r in run["records"]:
            if r["status"] != "ok" or "factor_lookup_wd" not in r["extra"]:
                continue
            x = r["extra"]
            shares = [x["merging_frequency"], x["equal_to_precise"], x["gss_equal_to_precise"], x["equal_to_gss"]]
            factors = [f"{x['factor_lookup_wd']:.6f}", f"{x['factor_gss']:.5f}"]
            equal, gss, lookup = PAPER[r["dataset"]]
            reached = x["equal_to_precise"] > 0.99 and x["factor_lookup_wd"] <= 1.001
            paper = f"{equal:.1f} %, {lookup:.5f} and {gss:.5f}"
            shown = [f"{100 * share:.2f} %" for share in shares]
            lines.append([r["dataset"], *shown, *factors, paper, "reached" if reached else "LOST"])
        notes = report.reasons(run["records"])
        picture = "## Figure 2: the functions h(m, κ) and WD(m, κ)\n\n![h and WD](budget_functions.svg)"
        return "\n\n".join(part for part in ("## Table 3\n\n" + report.markdown(lines), picture, notes) if part)

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        pyplot = plots._pyplot()
        if pyplot is None:
            return []
        m, h, degradation = functions()
        figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
        values = ((h, "h(m, κ)", None), (degradation, "WD(m, κ)", "log"))
        for axis, (value, title, norm) in zip(axes, values):
            shown = axis.pcolormesh(m, m, value, norm=norm, shading="nearest", cmap="viridis", rasterized=True)
            axis.axhline(np.exp(-2), color="white", lw=0.6, ls="--")
            axis.set(title=title, xlabel="m", ylabel="κ")
            figure.colorbar(shown, ax=axis)
        figure.tight_layout()
        path = folder / "budget_functions.svg"
        figure.savefig(path, metadata={"Date": None}, dpi=120)
        pyplot.close(figure)
        return [path]


def functions(size: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of (0, 1), and h and WD there (rows κ, columns m); m > ½ by exchanging the two points."""
    from maxmargin.budget.merging import optimal_h, weight_degradation

    m = (np.arange(size) + 0.5) / size
    small, t = np.minimum(m, 1 - m)[None, :], -np.log(m)[:, None]
    h = optimal_h(small, t)
    degradation = weight_degradation(small, t, h)
    return m, np.where(m[None, :] > 0.5, 1 - h, h), np.maximum(degradation, 1e-12)
