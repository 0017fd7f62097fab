"""One fit over MPI ranks of one thread each: 1 and 2 ranks, beside 1 and 2 threads; what is sent; memory per rank.

Ranks are started, and have read their rows, before the clock runs; a fit is timed from the word to rank 0 to its answer.
Each job has as many cores as ranks, and the ranks together as much cache as one process. Goals: 2 ranks 1.7 times as fast as
one and at most 15 % slower than 2 threads, with the same objective. `rows` is the PSMO paper's own scheme (section 5):
all rows on each rank, kernel rows dealt out. The cost model (benchmarks/costs.py) is fitted to jobs of as many ranks
as there are cores; for the paper's figures of speed-ups, to the two fits that each of them shows.
"""

from __future__ import annotations

import pathlib
from typing import Any

from benchmarks import plots, report
from benchmarks.base import Cell, Experiment, Line, Options, Problem, discover
from benchmarks.costs import CLUSTER, Job, Model, error
from benchmarks.papers import psmo

GOAL, SLOWER = 1.7, 1.15
RANKS, HERE, LINEAR = "maxmargin-mpi", "maxmargin", "linear-maxmargin"
ROWS = {"covtype": 100_000, "mnist8": 20_000}
TASKS = {
    "a9a": ("svc",),
    "ijcnn1": ("svc",),
    "w8a": ("svc",),
    "covtype": ("svc", "nu_svc"),
    "mv": ("svr", "nu_svr"),
    "cadata": ("svr", "nu_svr"),
    "mnist8": ("svc", "nu_svc"),
}
NU = {
    "covtype": psmo.SETTINGS["nu_svc"]["covtype_raw"]["nu"], "mv": psmo.SETTINGS["nu_svr"]["mv_split"]["nu"],
    "mnist8": 0.01, "cadata": 0.3,
}  # fmt: skip
FIGURE = {  # of the PSMO paper
    ("mnist8", "svc"): 7, ("covtype", "svc"): 8, ("mnist8", "nu_svc"): 9, ("covtype", "nu_svc"): 10, ("mv", "svr"): 11,
    ("mv", "nu_svr"): 12,
}  # fmt: skip
FIGURE_RANKS = (4, 8)  # by the cost model
MODELLED = ("ijcnn1", "covtype")  # measured at two sizes and 1 to 4 ranks for the model
PISVM = {"ijcnn1": 9.0, "a9a": 9.9}  # seconds of piSVM 1.3 on 2 ranks of the same kind of machine
PISVM_GOAL = 8.0
SIZES = (1e5, 1e6, 1e7, 1e8)
POWERS = [2**k for k in range(11)]


class Mpi(Experiment):
    title = "MPI: one fit over ranks"
    shows = tuple(f"psmo_figure{number}" for number in FIGURE.values())
    sets = tuple(TASKS)
    solvers = (RANKS, HERE, LINEAR)
    baseline = RANKS
    repeat = 2

    def cells(self, options: Options) -> list[Cell]:
        cells = [cell for name in self.chosen_sets(options) for cell in _speed_cells(name)]
        for name in self.chosen_sets(options):
            cells += _model_cells(name, options.quick) + _memory_cells(name)
        return [cell for cell in cells if cell.solver in self.chosen_solvers(options)]

    def report(self, run: dict[str, Any]) -> str:
        parts = [self._speed(run), self._sent(run), self._memory(run), self._model(run), report.reasons(run["records"])]
        return "\n\n".join(part for part in parts if part)

    def compare(self, run: dict[str, Any]) -> list[Line]:
        lines = []
        for one, two, _ in _pairs(run):
            key = one["dataset"], one["problem"]["task"]
            if two is None or key not in FIGURE:
                continue
            model, turns = Model.fitted([_job(one), _job(two)]), two["extra"]["turns"]
            beyond = {ranks: turns * model.seconds(ranks, two["rows"]) for ranks in FIGURE_RANKS}
            lines += psmo.speedup_lines(FIGURE[key], key[0], {1: one["best"], 2: two["best"]}, beyond)
        return lines

    def text_speedups(self, run: dict[str, Any]) -> str:
        """ "1.6 to 1.9": how many times faster 2 ranks are than one."""
        ratios = [one["best"] / two["best"] for one, two, _ in _pairs(run) if two is not None]
        return report.between(ratios) if ratios else "(not measured yet)"

    def text_model(self, run: dict[str, Any]) -> str:
        """For docs/scaling.md: pictures are in the folder of the benchmarks."""
        told = self._model(run).partition("\n\n")[2].replace("(mpi_model.svg)", "(benchmarks/mpi_model.svg)")
        return told or "(not measured yet)"

    def plots(self, run: dict[str, Any], folder: pathlib.Path) -> list[pathlib.Path]:
        panels = {}
        for (name, _), (model, _) in _models(run).items():
            there = model.on(CLUSTER)
            panels[f"{name}: strong"] = {f"{n:,.0f} rows": [(p, there.speedup(p, n)) for p in POWERS] for n in SIZES}
            panels[f"{name}: weak"] = {
                f"{n:,.0f} rows per rank": [(p, there.efficiency(p, n, weak=True)) for p in POWERS] for n in (1e4, 1e5, 1e6)
            }
        labels = [("ranks", "speed-up"), ("ranks", "efficiency")] * (len(panels) // 2)
        scales = [("log", "log"), ("log", "linear")] * (len(panels) // 2)
        return plots.lines(folder / "mpi_model.svg", panels, labels, scales)

    def _speed(self, run: dict[str, Any]) -> str:
        head = ["set", "1 rank, s", "2 ranks, s", "speed-up", f"goal {GOAL:g}×", "2 threads, s", "ranks / threads"]
        lines = [[*head, "goal", "piSVM, 2 ranks, s", "published (PSMO)"]]
        for one, two, threads in _pairs(run):
            if two is None:
                continue
            ratio = one["best"] / two["best"]
            beside = two["best"] / threads["best"] if threads else None
            task, name = one["problem"]["task"], one["dataset"]
            pisvm = PISVM.get(name) if task == "svc" else None
            lines.append([
                report.row_name(one), report.seconds(one["best"]), report.seconds(two["best"]), f"{ratio:.2f}×",
                "reached" if ratio >= GOAL else "LOST", report.seconds(threads["best"]) if threads else "",
                report.number(beside, 3), "" if beside is None else "reached" if beside <= SLOWER else "LOST",
                "" if pisvm is None else f"{pisvm:g}: {pisvm / two['best']:.1f}×, "
                + ("reached" if pisvm / two["best"] >= PISVM_GOAL else "LOST"),
                psmo.FIGURES[FIGURE[name, task]][2] if (name, task) in FIGURE else "",
            ])  # fmt: skip
        return "## Speed\n\n" + report.markdown(lines) if len(lines) > 1 else ""

    def _sent(self, run: dict[str, Any]) -> str:
        lines = [["set", "scheme", "ranks", "turns", "messages per turn", "KB per turn and rank", "MB dealt at the start"]]
        for r in run["records"]:
            if r["status"] != "ok" or r["solver"] != RANKS or r["problem"]["options"]["ranks"] < 2 or r["label"] == "memory":
                continue
            extra, options = r["extra"], r["problem"]["options"]
            sent = sum(extra[f"{kind}_bytes"] for kind in ("reduced", "gathered", "cast")) / extra["turns"] / 1024
            lines.append([
                report.row_name(r), options.get("partition", "columns"), str(options["ranks"]), f"{extra['turns']:.0f}",
                f"{extra['messages'] / extra['turns']:.1f}", f"{sent:.3g}", f"{extra['dealt_bytes'] / 2**20:.3g}",
            ])  # fmt: skip
        return "## What is sent\n\n" + report.markdown(lines) if len(lines) > 1 else ""

    def _memory(self, run: dict[str, Any]) -> str:
        done = [r for r in run["records"] if r["status"] == "ok" and r["label"] == "memory"]
        one = next((r["extra"]["used_mb"] for r in done if r["problem"]["options"]["ranks"] == 1), None)
        if one is None:
            return ""
        lines = [["set", "ranks", "rows of X on a rank, MB", "used by a rank, MB", "of one rank's", "1 / ranks"]]
        for r in done:
            ranks, extra = r["problem"]["options"]["ranks"], r["extra"]
            shares = [f"{extra['used_mb'] / one:.2f}", f"{1 / ranks:.2f}"]
            sizes = [f"{extra['rank_data_mb']:.0f}", f"{extra['used_mb']:.0f}"]
            lines.append([report.row_name(r), str(ranks), *sizes, *shares])
        return "## Memory\n\n" + report.markdown(lines)

    def _model(self, run: dict[str, Any]) -> str:
        found = _models(run)
        if not found:
            return ""
        lines = [["problem", "jobs", "largest error", "work, ns per row", "not shared, µs", "latency, µs", "GB/s",
                  *(f"{n:.0e} rows" for n in SIZES), "10⁵ rows per rank"]]  # fmt: skip
        for (name, task), (model, jobs) in found.items():
            there = model.on(CLUSTER)
            limits = [there.limit(n) for n in SIZES] + [there.limit(1e5, weak=True)]
            rate = f"{1e-9 / model.per_byte:.2g}" if model.per_byte else "not seen"
            lines.append([
                f"{name} {task}", f"{len(jobs)}, 1 to {max(job.ranks for job in jobs)} ranks",
                f"{100 * error(model, jobs):.0f} %", f"{1e9 * model.work:.3g}", f"{1e6 * model.fixed:.3g}",
                f"{1e6 * model.latency:.2g}", rate, *(f"{ranks} ({why})" for ranks, why in limits),
            ])  # fmt: skip
        says = report.wrapped(
            f"A turn by the cost model, fitted to jobs here, on a network of {1e6 * CLUSTER.latency:g} µs per hop and "
            f"{1e-9 * CLUSTER.bandwidth:g} GB/s: the largest number of ranks (powers of two up to {POWERS[-1]}) that are "
            "used to at least half, for so many rows in all and, last, on each rank; in brackets what takes the most beside "
            "the work at twice as many. Turns grow with the rows too: this is what ranks add to that, or do not."
        )
        picture = "![speed-up and efficiency by the cost model](mpi_model.svg)"
        return "\n\n".join(["## Past this machine", says, report.markdown(lines), picture])


def _problem(name: str, task: str, **options: Any) -> Problem:
    kernel = dict(discover("datasets")[name].kernel)
    if task.startswith("nu_"):
        kernel.pop("C" if task == "nu_svc" else "epsilon", None)
        kernel["nu"] = NU[name]
    return Problem(task, **kernel, options=options)


def _speed_cells(name: str) -> list[Cell]:
    size = {"rows": ROWS.get(name), "test_rows": 5000}
    cells = []
    for task in TASKS[name]:
        for ranks in (1, 2):
            cells.append(Cell(name, RANKS, _problem(name, task, ranks=ranks), threads=1, cores=ranks, **size))
        cells.append(Cell(name, HERE, _problem(name, task), threads=2, **size))
        rows = _problem(name, task, ranks=2, partition="rows")
        cells.append(Cell(name, RANKS, rows, threads=1, cores=2, **size, label="rows"))
    if name == "covtype":
        linear = {"C": 1.0, "tol": 1e-4}
        for ranks in (1, 2):
            problem = Problem("linear", **linear, options={"ranks": ranks})
            cells.append(Cell(name, RANKS, problem, threads=1, cores=ranks, test_rows=5000))
        cells.append(Cell(name, LINEAR, Problem("linear", **linear), threads=2, test_rows=5000))
    return cells


def _model_cells(name: str, quick: bool) -> list[Cell]:
    """1 to 4 ranks at two sizes; more ranks than cores take turns, so their times are not used beyond the cores."""
    sizes = (20_000, 40_000) if not quick else (1000,)
    return [
        Cell(name, RANKS, problem, rows=rows, threads=1, cores=min(ranks, 2), judged=False, label="model")
        for rows in (sizes if name in MODELLED else ())
        for ranks in (1, 2, 3, 4)
        for problem in (_problem(name, "svc", ranks=ranks), Problem("linear", tol=1e-4, options={"ranks": ranks}))
    ]


def _memory_cells(name: str) -> list[Cell]:
    """All rows of covtype for some minutes: what a rank holds is there from the start, and its cache fills."""
    if name != "covtype":
        return []
    return [
        Cell(name, RANKS, _problem(name, "svc", ranks=ranks, max_time=60.0), threads=1, cores=min(ranks, 2), judged=False,
             label="memory")
        for ranks in (1, 2, 3, 4)
    ]  # fmt: skip


def _pairs(run: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]]:
    """(1 rank, 2 ranks, 2 threads) of each problem."""
    done = [r for r in run["records"] if r["status"] == "ok" and r["label"] == ""]
    out = []
    for one in done:
        if one["solver"] != RANKS or one["problem"]["options"]["ranks"] != 1:
            continue
        same = [r for r in done if (r["dataset"], r["problem"]["task"]) == (one["dataset"], one["problem"]["task"])]
        two = [r for r in same if r["solver"] == RANKS and r["problem"]["options"]["ranks"] == 2]
        threads = [r for r in same if r["solver"] != RANKS]
        out.append((one, two[0] if two else None, threads[0] if threads else None))
    return out


def _models(run: dict[str, Any]) -> dict[tuple[str, str], tuple[Model, list[Job]]]:
    """By data set and task, with the jobs that they were fitted to: those that had a core for each rank."""
    jobs: dict[tuple[str, str], list[Job]] = {}
    for r in run["records"]:
        ranks = r["problem"]["options"].get("ranks", 0)
        if r["status"] == "ok" and r["label"] == "model" and ranks <= max(2, run.get("cores", 2)):
            jobs.setdefault((r["dataset"], r["problem"]["task"]), []).append(_job(r))
    return {key: (Model.fitted(some), some) for key, some in jobs.items() if any(job.ranks > 1 for job in some)}


def _job(record: dict[str, Any]) -> Job:
    extra = record["extra"]
    sent = (extra["messages"], *(extra[f"{kind}_bytes"] for kind in ("reduced", "gathered", "cast")))
    return Job(record["problem"]["options"]["ranks"], record["rows"], extra["turns"], record["best"], *sent)
