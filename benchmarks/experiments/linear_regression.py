"""Linear regression with a tube: ½‖w‖² + C Σ loss(|y − ⟨x, w⟩| − ε), against LIBLINEAR -s 11, 12 and 13, on one thread.

-s 13 solves the dual of the ε-insensitive loss, -s 12 that of its square, -s 11 the primal of the square. The intercept is
the weight of a constant feature, as LIBLINEAR has it. Tolerances mean different things, so each runs at several, and a run
of LIBLINEAR is compared with our quickest one that is at least as good.
"""

from __future__ import annotations

from benchmarks.base import Cell, Options, Problem, discover
from benchmarks.experiments._equal import EqualObjective

OURS = "linear-maxmargin-svr"
OTHERS = {"liblinear-s13": "epsilon_insensitive", "liblinear-s12": "squared_epsilon_insensitive",
          "liblinear-s11": "squared_epsilon_insensitive"}  # fmt: skip


class LinearRegression(EqualObjective):
    title = "Linear regression with a tube"
    baseline = OURS
    sets = ("abalone", "space_ga", "cadata", "mv")
    solvers = (OURS, *OTHERS)
    ladders = {OURS: (1e-1, 1e-2, 1e-3, 1e-6), **dict.fromkeys(OTHERS, (1e-1, 1e-2, 1e-4))}

    def problems(self, name: str, options: Options) -> list[Problem]:
        own = discover("datasets")[name].kernel
        same = {"C": float(own["C"]), "epsilon": float(own["epsilon"]), "fit_intercept": True}
        return [Problem("linear_svr", loss=loss, **same) for loss in dict.fromkeys(OTHERS.values())]

    def cells(self, options: Options) -> list[Cell]:
        return [cell for cell in super().cells(options) if OTHERS.get(cell.solver, cell.problem.loss) == cell.problem.loss]
