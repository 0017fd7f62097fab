"""Accuracy against time on all of covtype: our four engines, the peers, and the competitors of DC-SVM's paper (its
figure 3e).

464,809 training rows, 116,203 test rows; RBF machines at the paper's C = 32, γ = 32. Engines that can be asked for more
or less have several points: levels of divide and conquer, budgets. A linear machine is on the picture to show what the
kernel is worth. LIBSVM, on all rows and on a fifth of them, is stopped after five minutes, other peers after two and a
half; the picture has a bar for each of those. LLSVM, FastFood, Fourier features and LTPU have 500 features or centres,
which is what memory allows (the paper: 3,000), SpSVM the paper's 200 basis vectors.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Line, Options, Problem, discover
from benchmarks.experiments.dc import METHODS, table_2_pair

Record = dict[str, Any]
EARLY = "maxmargin-dc-early"
OURS = (EARLY, "maxmargin-dc", "maxmargin", "budget", "linear-maxmargin")
PEERS = (
    "libsvm", "sklearnex-float32", "libsvm-fifth", "lasvm", "cascade", "llsvm", "fourier", "fastfood", "ltpu", "spsvm",
    "liblinear-s3",
)  # fmt: skip
NAMES = {
    EARLY: "DCSVC, early", "maxmargin-dc": "DCSVC", "maxmargin": "SVC", "budget": "BudgetSVC",
    "linear-maxmargin": "LinearSVC",
    "libsvm": "LIBSVM", "sklearnex-float32": "scikit-learn-intelex", "libsvm-fifth": "LIBSVM on a fifth", "lasvm": "LaSVM",
    "cascade": "CascadeSVM", "llsvm": "LLSVM", "fourier": "Fourier features", "fastfood": "FastFood", "ltpu": "LTPU",
    "spsvm": "SpSVM", "liblinear-s3": "LIBLINEAR",
}  # fmt: skip
POINTS: dict[str, tuple[dict[str, Any], ...]] = {  # options of a solver's points, the usual one last
    EARLY: ({"stop_level": 4, "early": False}, {"stop_level": 2, "early": False}, {}),
    "budget": tuple({"budget": b, "epochs": 1, "random_state": 0} for b in (100, 500)),
    **dict.fromkeys(("llsvm", "fourier", "fastfood", "ltpu"), ({"features": 500},)),
    "spsvm": ({"basis": 200},),
}
LIMITS = {"libsvm": 300.0, "libsvm-fifth": 300.0}
LIMIT = 150.0  # of the other peers
MARKERS = "s^vDP*X<>dp"


class Front(Experiment):
    title = "All of covtype: accuracy against time"
    shows = ("dcsvm_table2", "dcsvm_figure3")
    sets = ("covtype",)
    solvers = (*OURS, *PEERS)
    baseline = EARLY
    repeat = 1
    time_limit = 600.0
    excess_allowed = float("inf")

    def cells(self, options: Options) -> list[Cell]:
        kernel, cells = discover("datasets")["covtype"].kernel, []
        for solver in self.chosen_solvers(options):
            for point in POINTS.get(solver, ({},)):
                linear = solver in ("linear-maxmargin", "liblinear-s3")
                intercept = solver in ("libsvm", "sklearnex-float32", "libsvm-fifth", "lasvm")
                cache = 200.0 if solver in OURS else 2000.0
                kernel_machine = Problem("svc", **kernel, fit_intercept=intercept, cache_size=cache, options=point)
                problem = Problem("linear", fit_intercept=False) if linear else kernel_machine
                limit = None if solver in OURS else LIMITS.get(solver, LIMIT)
                cells.append(Cell("covtype", solver, problem, limit=limit, score_only=True, label=_label(point)))
        return cells

    def guess(self, cell: Cell) -> float:
        """Peers that will hardly be ready count with their limit."""
        known = {EARLY: 12.0, "maxmargin-dc": 70.0, "maxmargin": 120.0, "budget": 10.0, "linear-maxmargin": 1.0}
        known |= {"liblinear-s3": 4.0, "libsvm-fifth": 200.0, "cascade": 60.0, "spsvm": 100.0}
        return known.get(cell.solver, LIMITS.get(cell.solver, LIMIT))

    def report(self, run: dict[str, Any]) -> str:
        lines = [["program", "setting", "seconds", "accuracy"]]
        for r in sorted(run["records"], key=lambda r: (r["status"] != "ok", -(r.get("score") or 0.0))):
            time = report.seconds(r["best"]) if r["status"] == "ok" else _late(r)
            lines.append([NAMES[r["solver"]], r["label"], time, report.score(r)])
        picture = "![accuracy against seconds](front.svg)"
        return "\n\n".join(part for part in (picture, report.markdown(lines), report.reasons(run["records"])) if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        """Table 2's column of covtype: the competitors (our own machines are compared in `dc`)."""
        lines = []
        for method, solver in METHODS.items():
            mine = [r for r in run["records"] if r["solver"] == solver]
            if mine and not method.startswith("DC-SVM"):
                lines += table_2_pair(method, "covtype", "covtype", mine[-1])
        return lines

    def text_early(self, run: dict[str, Any]) -> str:
        """The abstract's claim."""
        early = next((r for r in run["records"] if r["solver"] == EARLY and r["status"] == "ok" and not r["label"]), None)
        peer = next((r for r in run["records"] if r["solver"] == "libsvm" and r["status"] in ("ok", "timeout")), None)
        if early is None or peer is None:
            return "(not measured yet)"
        late = peer["status"] == "timeout"
        ratio = (report.limit_of(peer) if late else peer["best"]) / early["best"]
        more = "more than " if late else ""
        return f"{report.score(early)} in {report.seconds(early['best'])} s, {more}{ratio:.0f} times faster than LIBSVM"

    def text_picture(self, run: dict[str, Any]) -> str:
        """README's figure, there once it is measured."""
        return "![Accuracy against training time on all of covtype](docs/benchmarks/front.svg)"

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        pyplot = plots._pyplot()
        done = [r for r in run["records"] if r["status"] == "ok" and r.get("score") is not None]
        if pyplot is None or not done:
            return []
        late = {NAMES[r["solver"]]: report.limit_of(r) for r in run["records"] if r["status"] == "timeout"}
        shares = [4.0, 0.2 * len(late)] if late else [4.0]
        figure, axes = pyplot.subplots(
            len(shares), sharex=True, squeeze=False, figsize=(9, 0.6 + sum(shares)), height_ratios=shares
        )
        axis = axes[0, 0]
        for i, solver in enumerate(dict.fromkeys(r["solver"] for r in done)):
            points = sorted((r["best"], 100 * r["score"]) for r in done if r["solver"] == solver)
            mine = solver in OURS
            style = (
                {"marker": "o", "lw": 2, "ms": 8}
                if mine
                else {"marker": MARKERS[i % len(MARKERS)], "lw": 1, "ms": 5, "ls": "--"}
            )
            axis.plot(*zip(*points), color=f"C{i % 10}", label=NAMES[solver] + (" (maxmargin)" if mine else ""), **style)
        axis.set(xscale="log", ylabel="test accuracy, %")
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
        if late:
            _draw_late(axes[1, 0], late)
        axes[-1, 0].set_xlabel("seconds of training (log scale)")
        figure.tight_layout()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "front.svg"
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
        return [path]


def _draw_late(axis: Any, late: dict[str, float]) -> None:
    """Programs that were stopped before they had a model: a bar up to then."""
    axis.barh(list(late), list(late.values()), height=0.6, color="0.8")
    for i, limit in enumerate(late.values()):
        axis.annotate(f"stopped after {limit:g} s", (limit, i), xytext=(-4, 0), textcoords="offset points", fontsize=7,
                      ha="right", va="center")  # fmt: skip
    axis.tick_params(axis="y", labelsize=7, length=0)
    axis.grid(False, axis="y")
    axis.invert_yaxis()


def _late(record: Record) -> str:
    return f"> {report.limit_of(record):g}" if record["status"] == "timeout" else record["status"]


def _label(point: dict[str, Any]) -> str:
    """Such as "budget 500"; the usual point has none."""
    shown = {key: value for key, value in point.items() if key in ("stop_level", "budget", "features", "basis")}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items())
