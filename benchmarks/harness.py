"""Runs the cells of an experiment: interleaved, timed alone, threads pinned, each fit in a process of its own.

For every data set the solvers take turns (A B C A B C …), so that a slow minute of the machine hits all of them, and
the best of k counts. k is the same for all solvers of a set: another turn begins only while those before took less than
TURNS_SECONDS. Between the timed jobs, and never beside one, objectives.py judges each model once. A job past its time
limit is killed; tighter tolerances of the same solver are then not tried. Only cells that say so (`alone=False`: their
time is shown nowhere) run side by side. progress.py keeps each fit, so that a run that was killed goes on where it was.
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
from dataclasses import dataclass, replace
from typing import Any

from tqdm.auto import tqdm

from benchmarks import machine, objectives, provenance, storage
from benchmarks.base import Cell, Data, Experiment, Model, Options, discover
from benchmarks.marks import judge
from benchmarks.progress import Progress

QUICK_ROWS = 2000
SETUP_LIMIT = 900.0  # seconds for imports, loading and warm-up before the clock starts; generous, it is not measured
TURNS_SECONDS = 120.0  # of fits on one data set; after that no further turn: long fits even out noise by themselves

Record = dict[str, Any]
Group = list[tuple[Cell, int]]  # cells with the number of turns asked for
Rows = tuple[str, int | None, int | None]  # set, training rows, test rows


def run(
    experiment: Experiment, options: Options, progress: bool = True, kept: Progress | None = None, fresh: bool = False
) -> dict[str, Any]:
    """Run every cell that `kept` does not hold yet; returns what goes into benchmarks/results/<name>.json."""
    cells = experiment.cells(options)
    repeat = options.repeat or (1 if options.quick else experiment.repeat)
    turns = [min(repeat, cell.repeat or repeat) for cell in cells]
    header = conditions(experiment, options, repeat)
    kept = kept or Progress()
    kept.open(header, fresh)
    records: list[Record] = []
    interval = 0.1 if sys.stderr.isatty() else 20  # a log file gets a line now and then
    with (
        tempfile.TemporaryDirectory(prefix="maxmargin-bench-") as scratch,
        tqdm(total=sum(turns), disable=not progress, unit="fit", mininterval=interval) as bar,
    ):
        for rows, group in by_data(cells, turns, options).items():
            names = [_identity(cell, rows, options) for cell, _ in group]
            known = [kept.find(name) for name in names]
            begun = [record or {"status": "new", "turns": 0, "times": []} for record in known]
            bar.update(sum(record["turns"] for record in begun))
            if next_turn(group, begun):
                data = discover("datasets")[rows[0]]().load().head(*rows[1:]).scaled(options.scale)
                folder = pathlib.Path(scratch) / "data"
                storage.save(data, folder)
                begun = [record or _record(cell, data, header, options) for record, (cell, _) in zip(known, group)]

                def keep(i: int, names: list[str] = names, begun: list[Record] = begun) -> None:
                    kept.keep(names[i], begun[i])
                    bar.update()

                _run_group(_Sitting(group, begun, data, folder, header["time_limit"], keep), bar)
                shutil.rmtree(folder)
            records += begun
    judge(records, experiment)
    counts = sorted({record["threads"] for record in records}) if experiment.bandwidth else []
    bandwidth = {str(count): machine.read_bandwidth(count) for count in counts}
    return header | {"read_gb_per_s": bandwidth, "records": records}


def conditions(experiment: Experiment, options: Options, repeat: int) -> dict[str, Any]:
    """What all fits of a run share."""
    return {
        "experiment": experiment.name,
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "hardware": machine.hardware(),
        "versions": machine.versions(),
        "commit": provenance.commit(),
        "code": provenance.code(),
        "threads": options.threads,
        "repeat": repeat,
        "time_limit": options.time_limit or (60.0 if options.quick else experiment.time_limit),
        "quick": options.quick,
        "scale": options.scale,
    }


def by_data(cells: list[Cell], turns: list[int], options: Options) -> dict[Rows, Group]:
    """Cells in groups that share their rows, in the order of their first appearance."""
    quick = QUICK_ROWS if options.quick else None
    groups: dict[Rows, Group] = {}
    for cell, asked in zip(cells, turns):
        rows, test_rows = _least(cell.rows, options.rows, quick), _least(cell.test_rows, quick)
        groups.setdefault((cell.dataset, rows, test_rows), []).append((cell, asked))
    return groups


def _least(*caps: int | None) -> int | None:
    return min((cap for cap in caps if cap), default=None)


def _identity(cell: Cell, rows: Rows, options: Options) -> str:
    """Equal for two cells when a fit of one is a fit of the other."""
    what = dataclasses.asdict(cell) | {"rows": rows[1], "test_rows": rows[2], "threads": cell.threads or options.threads}
    what |= {"scale": options.scale} if options.scale < 1.0 else {}
    return json.dumps({key: value for key, value in what.items() if key not in ("repeat", "limit")}, sort_keys=True)


def next_turn(group: Group, records: list[Record]) -> list[int]:
    """Which cells run next, side by side or one after the other; none when the group is done."""
    for turn in range(max(asked for _, asked in group)):
        todo = [
            i
            for i, ((_, asked), record) in enumerate(zip(group, records))
            if record["status"] in ("new", "ok") and record["turns"] == turn < asked
        ]
        if todo:
            begun = any(record["turns"] > turn for record in records)
            spent = sum(sum(record["times"]) for record in records)
            return todo if turn == 0 or begun or spent < TURNS_SECONDS else []
    return []


@dataclass
class _Sitting:
    """The cells that share their rows, and what their fits need."""

    group: Group
    records: list[Record]
    data: Data
    folder: pathlib.Path  # where workers find the data
    limit: float
    keep: Callable[[int], None]  # called after each fit of cell i


def _run_group(sitting: _Sitting, bar: Any) -> None:
    """Run the cells turn by turn and fill their records."""
    solvers, records = discover("solvers"), sitting.records
    while todo := next_turn(sitting.group, records):
        untimed = []
        for i in todo:
            cell, record = sitting.group[i][0], records[i]
            bar.set_description(f"{cell.dataset} {cell.solver} tol {cell.problem.tol:g}", refresh=False)
            reason = _why_not(cell, sitting.data, solvers, records) if record["turns"] == 0 else None
            if reason:
                record |= {"status": "skipped", "reason": reason}
                sitting.keep(i)
            elif cell.alone:
                _run_once(cell, record, sitting.data, sitting.folder, sitting.limit)
                sitting.keep(i)
            else:
                untimed.append(i)
        _side_by_side(sitting, untimed)


def _side_by_side(sitting: _Sitting, todo: list[int]) -> None:
    """Run cells whose time is of no interest, as many at once as there are cores for them."""
    if not todo:
        return
    width = max(sitting.records[i]["threads"] for i in todo)
    places: queue.Queue[list[int]] = queue.Queue()
    cores = _cores()
    for first in range(0, max(1, len(cores) - width + 1), width):
        places.put(cores[first : first + width])

    def run_one(i: int) -> None:
        place = places.get()
        try:
            _run_once(sitting.group[i][0], sitting.records[i], sitting.data, sitting.folder, sitting.limit, place)
        finally:
            places.put(place)
        sitting.keep(i)

    pool = ThreadPoolExecutor(places.qsize())
    try:
        for future in [pool.submit(run_one, i) for i in todo]:
            future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # after Ctrl-C those that wait do not start


def _cores() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def _record(cell: Cell, data: Data, header: dict[str, Any], options: Options) -> Record:
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
        "commit": header["commit"],
        "date": header["date"],
        "status": "new",
        "turns": 0,
        "times": [],
        "others": [],
    }


def _why_not(cell: Cell, data: Data, solvers: dict[str, Any], records: list[Record]) -> str | None:
    if cell.solver not in solvers:
        return "no such solver"
    reason: str | None = solvers[cell.solver]().skip(cell.problem, data)
    if reason:
        return reason
    mine = (cell.solver, cell.measure, dataclasses.asdict(replace(cell.problem, tol=0.0)))
    for other in (record for record in records if record["status"] == "timeout"):
        same = (other["solver"], other["measure"], other["problem"] | {"tol": 0.0}) == mine
        if same and other["problem"]["tol"] > cell.problem.tol:
            return f"tol {other['problem']['tol']:g} already took longer than the limit"
    return None


def _run_once(
    cell: Cell, record: Record, data: Data, folder: pathlib.Path, limit: float, cores: list[int] | None = None
) -> None:
    """One more fit of a cell: its time, and after the first one the evaluator's numbers."""
    first = record["turns"] == 0
    with tempfile.TemporaryDirectory(prefix="maxmargin-job-") as scratch:
        job_folder = pathlib.Path(scratch)
        job = {
            "solver": cell.solver,
            "problem": record["problem"],
            "threads": record["threads"],
            "cores": cores or _cores()[: cell.cores or record["threads"]],
            "neighbours": cell.neighbours,
            "twins": cell.twins,
            "measure": cell.measure,
            "predict": cell.predict,
            "number": cell.number,
            "timed": cell.alone,
            "kernel_pass": cell.kernel_pass and first,
            "curves": cell.curves and first,
            "data": str(folder),
        }
        (job_folder / "job.json").write_text(json.dumps(job))
        outcome = run_job(job_folder, record["threads"], min(limit, cell.limit or limit))
        status = outcome.pop("status")
        record["turns"] += 1
        record["times"] += outcome.pop("times", [])
        record["others"] += outcome.pop("others", [])
        if "predict_times" in outcome:
            record["predict_times"] = record.get("predict_times", []) + outcome["predict_times"]
            record["predict"] = min(record["predict_times"])
        if status == "timeout" and record["times"]:  # an earlier turn was in time, and the best one counts
            return
        record["status"] = status
        keep_first = {"extra", "curves", "kernel_pass", "fit_times", "reason", "memory"}
        record |= {key: value for key, value in outcome.items() if key in keep_first and key not in record}
        if status == "ok":
            record["best"] = min(record["times"])
            if first and cell.judged:
                record |= _judged(cell, data, storage.load_model(job_folder / "model.npz"), record["threads"])
        elif status == "timeout":
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
    tuned = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "NUMEXPR_")  # no favours from the caller's shell
    env = {name: value for name, value in os.environ.items() if not name.startswith(tuned)}
    env["PYTHONPATH"] = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
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
