"""One thread against two (or as many as `--threads` says): speed-up and efficiency of a fit.

Each process is pinned to as many cores as it has threads. Goal: 1.7 times faster on 2 cores. The peer is left out where
one thread would take it long. Models are judged in the experiment `exact`, not here.

A second table says what bounds a speed-up: the seconds of one thread in what stays on one (steps of the inner solver, the
choice of working sets, preparation in Python); how much more two fits of one thread get done side by side, each on a core of
its own, as that is what the cores give to programs that share nothing; the speed-up if all that is shared gained as much
(Amdahl); and what it gained. Fits of a second are noisy, and so is the bound: where a speed-up is above it, neither is sure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks import report
from benchmarks.base import Cell, Experiment, Options
from benchmarks.experiments.exact import ROWS, problem_of

LEFT_OUT = dict.fromkeys(("a9a", "covtype_first", "mv"), ("sklearnex-float32",))
GOAL = 0.85  # efficiency: 1.7 on 2 cores
TWINS = "beside itself"
SHARED = ("start", "tile", "update", "shrink")  # phases that all threads work in


class ExactThreads(Experiment):
    title = "Exact kernel machines: threads"
    sets = ("ijcnn1", "a9a", "covtype_first", "mnist8", "mv", "cadata")
    solvers = ("maxmargin", "sklearnex-float32")
    repeat = 2

    def cells(self, options: Options) -> list[Cell]:
        counts = [1]
        while counts[-1] < max(2, options.threads):
            counts.append(min(2 * counts[-1], max(2, options.threads)))
        cells = []
        for name in self.chosen_sets(options):
            for solver in self.chosen_solvers(options):
                if solver in LEFT_OUT.get(name, ()) and not options.solvers:
                    continue
                one = Cell(name, solver, problem_of(name), rows=ROWS.get(name), judged=False)
                cells += [replace(one, threads=threads, label=f"{threads} threads") for threads in counts]
                if solver == self.baseline:
                    cells.append(replace(one, threads=1, cores=counts[-1], twins=True, label=TWINS))
        return cells

    def text_speedups(self, run: dict[str, Any], sets: str = "", without: str = "") -> str:
        """ "1.2 to 1.7": how many times faster our fits are with all threads than with one."""
        chosen, out = sets.split(",") if sets else self.sets, without.split(",")
        ours = [r for r in _divided(run) if r["solver"] == self.baseline]
        fastest = max(r["threads"] for r in ours)
        times = {(r["dataset"], r["threads"]): r["best"] for r in ours if r["dataset"] in chosen and r["dataset"] not in out}
        ratios = [time / times[name, fastest] for (name, threads), time in times.items() if threads == 1]
        return report.between(ratios)

    def report(self, run: dict[str, Any]) -> str:
        counts = sorted({r["threads"] for r in run["records"]})
        head = ["set", "solver", *(f"{t} thread{'s' if t > 1 else ''}, s" for t in counts), "speed-up", "efficiency"]
        lines = [[*head, "goal"]]
        efficiencies = []
        for name in report.rows_of(run["records"]):
            for solver in report.columns_of(self, run["records"]):
                times = {
                    r["threads"]: r["best"]
                    for r in _divided(run)
                    if report.row_name(r) == name and r["solver"] == solver
                }
                if set(times) != set(counts):
                    continue
                speedup = times[counts[0]] / times[counts[-1]]
                efficiency = speedup / (counts[-1] / counts[0])
                verdict = ""
                if solver == self.baseline:
                    efficiencies.append(efficiency)
                    verdict = "reached" if efficiency >= GOAL else "LOST"
                shown = [report.seconds(times[t]) for t in counts]
                lines.append([name, solver, *shown, f"{speedup:.2f}×", f"{100 * efficiency:.0f} %", verdict])
        mean = ""
        if efficiencies:
            mean = f"\n\nGeometric mean of our efficiency: {100 * report.geometric_mean(efficiencies):.0f} %."
        parts = report.markdown(lines) + mean, self._bounds(run), report.reasons(run["records"])
        return "\n\n".join(part for part in parts if part)

    def _bounds(self, run: dict[str, Any]) -> str:
        """Per set of ours: what one thread does alone, and what that leaves for the others to gain."""
        head = "set,alone: inner s,alone: other s,shared s,side by side,speed-up at most,speed-up,of what is shared"
        lines = [head.split(",")]
        ours = [r for r in _divided(run) if r["solver"] == self.baseline]
        beside = {report.row_name(r): r for r in run["records"] if r["label"] == TWINS and r["status"] == "ok"}
        many = max((r["threads"] for r in ours), default=1)
        for name in report.rows_of(ours):
            found = {r["threads"]: r for r in ours if report.row_name(r) == name}
            if not {1, many} <= set(found) or "time_total" not in found[1]["extra"]:
                continue
            one, all_threads = (phases(found[t]["extra"]) for t in (1, many))
            twice = many * found[1]["best"] / beside[name]["best"] if name in beside else float(many)
            bound = one["total"] / (one["inner"] + one["other"] + one["shared"] / twice)
            lines.append([
                name, *(report.seconds(one[part]) for part in ("inner", "other", "shared")), f"{twice:.2f}×",
                f"{bound:.2f}×", f"{one['total'] / all_threads['total']:.2f}×",
                f"{one['shared'] / all_threads['shared']:.2f}×",
            ])  # fmt: skip
        return "## What bounds it\n\n" + report.markdown(lines) if len(lines) > 1 else ""


def _divided(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The fits that ended, but for those beside a twin."""
    return [r for r in run["records"] if r["status"] == "ok" and r["label"] != TWINS]


def phases(extra: dict[str, float]) -> dict[str, float]:
    """Seconds of a fit: all, the inner solver's, what all threads share, and what else one thread does."""
    total, inner = extra["time_total"], extra["time_inner"]
    shared = sum(extra[f"time_{phase}"] for phase in SHARED)
    return {"total": total, "inner": inner, "shared": shared, "other": max(0.0, total - inner - shared)}
