"""A run that was killed goes on where it was, and never mixes what was measured under other conditions."""

import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import harness
from benchmarks.base import Cell, Experiment, Options, Problem
from benchmarks.progress import ALIKE, Progress

HEADER = dict.fromkeys(ALIKE, "same")


class Killed(Exception):
    pass


class Toy(Experiment):
    name = "toy"
    title = "Toy"
    baseline = "scikit-learn"
    repeat = 2

    def cells(self, options):
        problems = [Problem("svc", C=C, gamma=0.25) for C in (1.0, 2.0)]
        return [Cell(name, "scikit-learn", problem) for name in ("iris_binary", "iris") for problem in problems]


@pytest.fixture
def fits(monkeypatch):
    """Jobs that cost nothing: (set's folder, C) of each as it is asked for, and what `die` says happens to them."""
    asked = []

    def job(folder, threads, limit):
        said = json.loads((folder / "job.json").read_text())
        if len(asked) == job.dies_at:
            raise Killed
        asked.append(said["problem"]["C"])
        return {"status": "ok", "times": [job.seconds], "others": [0.0]}

    job.dies_at, job.seconds, job.asked = None, 1.0, asked
    monkeypatch.setattr(harness, "run_job", job)
    monkeypatch.setattr(harness, "_judged", lambda *args: {"primal": None, "gap": None})
    monkeypatch.setattr(harness.storage, "load_model", lambda path: None)
    return job


@pytest.mark.parametrize("dies_at", range(9))
def test_no_fit_is_run_twice_and_none_is_left_out(fits, tmp_path, dies_at):
    path = tmp_path / "toy.partial.json"
    fits.dies_at = dies_at
    if dies_at < 8:
        with pytest.raises(Killed):
            harness.run(Toy(), Options(), progress=False, kept=Progress(path))
        fits.dies_at = None
    kept = Progress(path)
    run = harness.run(Toy(), Options(), progress=False, kept=kept)
    assert fits.asked == [1.0, 2.0] * 4  # set by set, turn by turn, as if nothing had happened
    assert [(r["turns"], len(r["times"]), r["status"]) for r in run["records"]] == [(2, 2, "ok")] * 4
    assert [r["dataset"] for r in run["records"]] == ["iris_binary"] * 2 + ["iris"] * 2
    kept.close()
    assert not path.exists()


def test_turns_are_equal_for_all_and_end_when_they_take_long(fits):
    fits.seconds = harness.TURNS_SECONDS / 2  # two cells fill the time: no second turn
    run = harness.run(Toy(), Options(), progress=False)
    assert [len(r["times"]) for r in run["records"]] == [1] * 4


def test_a_turn_that_was_begun_is_finished(fits, tmp_path):
    fits.seconds, fits.dies_at = 0.4 * harness.TURNS_SECONDS, 3  # killed after one cell of the second turn
    path = tmp_path / "toy.partial.json"
    with pytest.raises(Killed):
        harness.run(Toy(), Options(), progress=False, kept=Progress(path))
    fits.dies_at = None
    run = harness.run(Toy(), Options(), progress=False, kept=Progress(path))
    assert [len(r["times"]) for r in run["records"]] == [2] * 4


def test_a_late_second_turn_keeps_the_time_of_the_first(fits, monkeypatch):
    outcomes = iter([{"status": "ok", "times": [590.0]}, {"status": "timeout", "reason": "more than 600 s"}])
    monkeypatch.setattr(harness, "run_job", lambda *args: next(outcomes))
    cell = Cell("iris", "scikit-learn", Problem("svc"))
    record = harness._record(cell, harness.discover("datasets")["iris"]().load(), {"commit": "", "date": ""}, Options())
    for _ in range(2):
        harness._run_once(cell, record, None, pathlib.Path(), 600.0)
    assert record["status"] == "ok" and record["best"] == 590.0 and record["turns"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's death")
def test_a_killed_harness_leaves_no_worker_behind():
    worker = "import time; from benchmarks import worker; worker.die_with_parent(); print('ready', flush=True)"
    worker += "; time.sleep(20); print('survived')"
    harness = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}])"
    root = pathlib.Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", harness], stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout.readline() == "ready\n"
        process.kill()
        assert process.stdout.read() == ""  # the pipe closes when the last process that holds it has ended


@pytest.mark.parametrize("name", ALIKE)
def test_other_conditions_are_refused_unless_thrown_away(tmp_path, name):
    path = tmp_path / "toy.partial.json"
    first = Progress(path)
    first.open(HEADER)
    first.keep("cell", {"turns": 1})
    with pytest.raises(SystemExit, match=f"1 cells measured under other conditions \\({name}\\).*--fresh"):
        Progress(path).open(HEADER | {name: "other"})
    fresh = Progress(path)
    fresh.open(HEADER | {name: "other"}, fresh=True)
    assert fresh.find("cell") is None
    again = Progress(path)
    again.open(HEADER)
    assert again.find("cell") == {"turns": 1}


def test_cells_of_another_run_stay_until_it_is_finished(tmp_path):
    path = tmp_path / "toy.partial.json"
    kept = Progress(path)
    kept.open(HEADER)
    kept.keep("other set", {"turns": 1})
    kept.find("mine")
    kept.keep("mine", {"turns": 2})
    kept.close()
    left = Progress(path)
    left.open(HEADER)
    assert left.find("other set") == {"turns": 1} and left.find("mine") is None
