"""Runs the cells of an experiment: interleaved, timed alone, threads pinned, each fit in a process of its own.

For every data set the solvers take turns (A B C A B C …), so that a slow minute of the machine hits all of them, and
the best of k counts. Between the timed jobs, and never beside one, objectives.py judges each model once. A job past its
time limit is killed; tighter tolerances of the same solver are then not tried. Only cells that say so (`alone=False`:
their time is shown nowhere) run side by side.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tqdm.auto import tqdm

from benchmarks import machine, objectives, storage
from benchmarks.base import Cell, Data, Experiment, Model, Options, Problem, discover

QUICK_ROWS = 2000
SETUP_LIMIT = 900.0  # seconds for imports, loading and warm-up before the clock starts; generous, it is not measured


def run(experiment: Experiment, options: Options, progress: bool = True) -> dict[str, Any]:
    """Run every cell of the experiment; returns what goes into benchmarks/results/<name>.json."""
    cells = experiment.cells(options)
    repeat = options.repeat or (1 if options.quick else experiment.repeat)
    limit = options.time_limit or (60.0 if options.quick else experiment.time_limit)
    rounds = [min(repeat, cell.repeat or repeat) for cell in cells]
    records: list[dict[str, Any]] = []
    complete = True
    interval = 0.1 if sys.stderr.isatty() else 20  # a log file gets a line now and then
    with (
        tempfile.TemporaryDirectory(prefix="maxmargin-bench-") as scratch,
        tqdm(total=sum(rounds), disable=not progress, unit="fit", mininterval=interval) as bar,
    ):
        try:
            for number, ((name, rows, test_rows), group) in enumerate(_by_data(cells, rounds, options).items()):
                data = discover("datasets")[name]().load()
                data = data.head(rows, test_rows)
                folder = pathlib.Path(scratch) / f"data{number}"
                storage.save(data, folder)
                records += [_record(cell, data, options) for cell, _ in group]
                _run_group(group, records[-len(group) :], data, folder, limit, bar)
                shutil.rmtree(folder)
        except KeyboardInterrupt:  # keep what was measured
            complete = False
            records = [record for record in records if record["status"] != "new"]
    judge(records, experiment)
    counts = sorted({record["threads"] for record in records}) if experiment.bandwidth else []
    return {
        "experiment": experiment.name,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "hardware": machine.hardware(),
        "versions": machine.versions(),
        "read_gb_per_s": {str(count): machine.read_bandwidth(count) for count in counts},
        "commit": machine.commit(),
        "threads": options.threads,
        "repeat": repeat,
        "time_limit": limit,
        "quick": options.quick,
        "complete": complete,
        "records": records,
    }


Group = list[tuple[Cell, int]]  # cells with their number of rounds


def _by_data(
    cells: list[Cell], rounds: list[int], options: Options
) -> dict[tuple[str, int | None, int | None], Group]:
    """Cells in groups that share their rows, in the order of their first appearance: {(set, rows, test rows): group}."""
    quick = QUICK_ROWS if options.quick else None
    groups: dict[tuple[str, int | None, int | None], Group] = {}
    for cell, turns in zip(cells, rounds):
        rows, test_rows = _least(cell.rows, options.rows, quick), _least(cell.test_rows, quick)
        groups.setdefault((cell.dataset, rows, test_rows), []).append((cell, turns))
    return groups


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap), default=None)


def _run_group(
    group: Group, records: list[dict[str, Any]], data: Data, folder: pathlib.Path, limit: float, bar: Any
) -> None:
    """Run cells that share their rows, turn by turn, and fill their records."""
    solvers = discover("solvers")
    for turn in range(max(turns for _, turns in group)):
        untimed: list[tuple[Cell, dict[str, Any], bool]] = []
        for (cell, turns), record in zip(group, records):
            if turn >= turns:
                continue
            bar.set_description(f"{cell.dataset} {cell.solver} tol {cell.problem.tol:g}", refresh=False)
            if turn == 0:
                reason = _why_not(cell, data, solvers, records)
                if reason:
                    record |= {"status": "skipped", "reason": reason}
            if record["status"] not in ("new", "ok"):
                bar.update()
            elif cell.alone:
                _run_once(cell, record, data, folder, limit, first=turn == 0)
                bar.update()
            else:
                untimed.append((cell, record, turn == 0))
        _side_by_side(untimed, data, folder, limit, bar)


def _side_by_side(
    cells: list[tuple[Cell, dict[str, Any], bool]], data: Data, folder: pathlib.Path, limit: float, bar: Any
) -> None:
    """Run cells whose time is of no interest, as many at once as there are cores for them."""
    if not cells:
        return
    width = max(record["threads"] for _, record, _ in cells)
    places: queue.Queue[list[int]] = queue.Queue()
    cores = _cores()
    for first in range(0, max(1, len(cores) - width + 1), width):
        places.put(cores[first : first + width])

    def run_one(cell: Cell, record: dict[str, Any], first: bool) -> None:
        place = places.get()
        try:
            _run_once(cell, record, data, folder, limit, first, place)
        finally:
            places.put(place)
            bar.update()

    pool = ThreadPoolExecutor(places.qsize())
    try:
        for future in [pool.submit(run_one, *job) for job in cells]:
            future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C those that wait do not start


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _record(cell: Cell, data: Data, options: Options) -> dict[str, Any]:
    return {
        "dataset": cell.dataset,
        "source": data.source,
        "rows": int(data.X_train.shape[0]),
        "features": int(data.X_train.shape[1]),
        "test_rows": int(data.X_test.shape[0]),
        "sparse": data.sparse,
        "solver": cell.solver,
        "problem": dataclasses.asdict(cell.problem),
        "threads": cell.threads or options.threads,
        "measure": cell.measure,
        "label": cell.label,
        "status": "new",
        "times": [],
    }


def _why_not(cell: Cell, data: Data, solvers: dict[str, Any], records: list[dict[str, Any]]) -> str | None:
    if cell.solver not in solvers:
        return "no such solver"
    reason: str | None = solvers[cell.solver]().skip(cell.problem, data)
    if reason:
        return reason
    for other in records:
        looser = other["solver"] == cell.solver and other["problem"]["tol"] > cell.problem.tol
        if looser and other["status"] == "timeout" and other["measure"] == cell.measure:
            return f"tol {other['problem']['tol']:g} already took longer than the limit"
    return None


def _run_once(
    cell: Cell,
    record: dict[str, Any],
    data: Data,
    folder: pathlib.Path,
    limit: float,
    first: bool,
    cores: list[int] | None = None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="maxmargin-job-") as scratch:
        job_folder = pathlib.Path(scratch)
        job = {
            "solver": cell.solver,
            "problem": record["problem"],
            "threads": record["threads"],
            "cores": cores or _cores()[: record["threads"]],
            "measure": cell.measure,
            "number": cell.number,
            "timed": cell.alone,
            "kernel_pass": cell.kernel_pass and first,
            "curves": cell.curves and first,
            "data": str(folder),
        }
        (job_folder / "job.json").write_text(json.dumps(job))
        outcome = run_job(job_folder, record["threads"], min(limit, cell.limit or limit))
        record["status"] = outcome.pop("status")
        record["times"] += outcome.pop("times", [])
        keep_first = {"extra", "curves", "kernel_pass", "fit_times", "reason", "memory"}
        record |= {key: value for key, value in outcome.items() if key in keep_first and key not in record}
        if record["status"] == "ok":
            record["best"] = min(record["times"])
            if first and cell.judged:
                record |= _judged(cell, data, storage.load_model(job_folder / "model.npz"), record["threads"])
        elif record["status"] == "timeout":
            record["best"] = None


def _judged(cell: Cell, data: Data, model: Model, threads: int) -> dict[str, Any]:
    """The evaluator's numbers; a model that it cannot read spoils its own cell, not a run of hours."""
    try:
        judged = objectives.evaluate(cell.problem, data, model, threads, cell.score_only)
    except (ValueError, IndexError, TypeError) as error:
        return {"status": "error", "reason": f"the evaluator cannot judge this model: {error}"}
    return dataclasses.asdict(judged) | {"gap": judged.gap}


def run_job(folder: pathlib.Path, threads: int, limit: float) -> dict[str, Any]:
    """Start a worker, follow its events, kill it past the limit. Returns {"status": ok | timeout | error, …}."""
    root = pathlib.Path(__file__).resolve().parent.parent
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]))
    for name in ("OMP", "MKL", "OPENBLAS", "BLIS", "NUMEXPR"):
        env[f"{name}_NUM_THREADS"] = str(threads)
    command = [sys.executable, "-m", "benchmarks.worker", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=root
    ) as process:
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_pump, args=(process.stdout, lines.put), daemon=True).start()
        timed = False
        try:
            while True:
                line = lines.get(timeout=limit if timed else SETUP_LIMIT)
                if not line:
                    return {"status": "error", "reason": f"the process ended with code {process.wait()}"}
                event = json.loads(line)
                kind = event.pop("event")
                if kind in ("start", "stop"):
                    timed = kind == "start"
                else:
                    return {"status": "ok" if kind == "done" else "error", **event}
        except queue.Empty:
            if timed:
                return {"status": "timeout", "reason": f"more than {limit:g} s"}
            return {"status": "error", "reason": f"no answer in {SETUP_LIMIT:g} s outside the timed part"}
        finally:
            process.kill()


def _pump(stream: Any, put: Callable[[str], None]) -> None:
    for line in stream:
        put(line)
    put("")


def judge(records: list[dict[str, Any]], experiment: Experiment) -> None:
    """Compare objectives among the records that share an optimum; mark those that end above it."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        record["mark"] = None
        if record["status"] == "ok" and record.get("primal") is not None:
            problem = Problem(**record["problem"]).same_optimum()
            key = (record["dataset"], record["rows"], problem, record.get("penalised"))
            groups.setdefault(key, []).append(record)
    for group in groups.values():
        primal = min(record["primal_best"] for record in group)
        dual = max((record["dual"] for record in group if record["dual"] is not None), default=None)
        for record in group:
            record["primal_excess"] = _relative(record["primal"] - primal, primal)
            if record["dual"] is not None:
                record["dual_excess"] = _relative(dual - record["dual"], dual)
        yardsticks = {r["problem"]["tol"]: _excess(r) for r in group if r["solver"] == experiment.yardstick}
        for record in group:
            allowed = max(experiment.excess_allowed, 2 * yardsticks.get(record["problem"]["tol"], 0.0))
            record["mark"] = _mark(record, allowed, experiment)


def _excess(record: dict[str, Any]) -> float:
    """The dual value decides, as the primal one at the same accuracy grows with C and n; without a dual, the primal."""
    return float(record.get("dual_excess", record["primal_excess"]))


def _mark(record: dict[str, Any], allowed: float, experiment: Experiment) -> str | None:
    """What is wrong with a model, or None. (A good dual point may still have a wrong intercept, or be infeasible.)"""
    excess = _excess(record)
    if not excess <= allowed:
        return f"objective +{100 * excess:.2g} %"
    by_intercept = _relative(record["primal"] - record["primal_best"], record["primal_best"])
    if not by_intercept <= experiment.intercept_allowed:
        return f"intercept: objective +{100 * by_intercept:.2g} %"
    if record.get("infeasible") is not None and not record["infeasible"] <= experiment.infeasible_allowed:
        return f"infeasible by {100 * record['infeasible']:.2g} % of the bound"
    return None


def _relative(difference: float, scale: float) -> float:
    return difference / max(abs(scale), 1e-300)
