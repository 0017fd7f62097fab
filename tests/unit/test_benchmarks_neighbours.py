"""Busy processes: they run while they are asked for, and none outlives its cell, however that ends."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from benchmarks import neighbours

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes cannot be pinned here")


def alive(pid):
    """Whether a process runs (one that has ended and waits to be collected does not)."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pids):
    """A spinner looks for its parent every few milliseconds of its own time; on a crowded machine that may take a while."""
    end = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_they_run_inside_and_are_gone_afterwards(error):
    core = min(os.sched_getaffinity(0))
    try:
        with neighbours.busy([core], 2) as pids:
            assert len(pids) == 2 and all(alive(pid) for pid in pids)
            assert all(os.sched_getaffinity(pid) == {core} for pid in pids)
            if error is not None:
                raise error
    except (ValueError, KeyboardInterrupt):
        assert error is not None
    assert not any(alive(pid) for pid in pids)


def test_they_end_with_a_worker_that_is_killed():
    script = "from benchmarks.neighbours import busy\nwith busy([%d]) as pids:\n  print(*pids, flush=True)\n  input()"
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen(
        [sys.executable, "-c", script % core], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 1 and alive(pids[0])
        parent.kill()
        parent.wait()
        assert ends(pids)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_twins_fit_on_the_other_cores_until_the_block_ends(error):
    cores = sorted(os.sched_getaffinity(0))[:2]
    read, write = os.pipe()
    try:
        with neighbours.twins(lambda: os.write(write, b"%d " % os.getpid()), cores, lambda: None) as pids:
            assert len(pids) == 1 and os.sched_getaffinity(0) == {cores[0]} and os.sched_getaffinity(pids[0]) == {cores[1]}
            assert {int(pid) for pid in os.read(read, 256).rpartition(b" ")[0].split()} == set(pids)
            if error is not None:
                raise error
    except (ValueError, KeyboardInterrupt):
        assert error is not None
    finally:
        os.close(read), os.close(write)
    assert not any(alive(pid) for pid in pids) and os.sched_getaffinity(0) >= set(cores)


def test_a_twin_that_fails_is_an_error():
    cores = sorted(os.sched_getaffinity(0))[:1] * 2
    with pytest.raises(RuntimeError, match="twin"), neighbours.twins(lambda: 1 / 0, cores, lambda: None):
        pass  # pragma: no cover


def test_none_are_asked_for():
    with neighbours.busy([0], 0) as pids:
        assert pids == []


OWN = """
import subprocess, sys
from benchmarks import worker
spin = "import time\\nwhile time.process_time() < 0.5: pass\\nprint('spent', flush=True)\\ninput()"
nested = f"import subprocess, sys\\nsubprocess.run([sys.executable, '-S', '-c', {spin!r}])"
print(worker._of_living_children())
child = subprocess.Popen([sys.executable, "-S", "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert child.stdout.readline() == b"spent\\n"
at_work = worker._cpu_seconds()
print(worker._of_living_children())
child.communicate(b"\\n")
print(worker._of_living_children())
print(worker._cpu_seconds()[2] - at_work[2])
"""


@pytest.mark.skipif(not pathlib.Path("/proc/stat").exists(), reason="the system does not say")
def test_processes_of_its_own_that_still_run_are_not_among_the_others() -> None:
    """A cluster that a solver has started works for it: its children's children, too.

    In a process of its own: this one may have children of other tests, which end when they like.
    """
    run = subprocess.run([sys.executable, "-c", OWN], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    before, at_work, after, later = map(float, run.stdout.split())
    assert before == after == 0
    assert at_work >= 0.45
    assert later >= -0.1  # waited for, it is counted once, elsewhere: the system counts in hundredths, each number by itself
