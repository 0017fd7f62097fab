"""What else runs while the clock does, for the cells that ask for it: foreign busy processes, or twins of the fit itself.

All are children of the worker and end with it, however that ends: the blocks kill them; and as a worker that is past its
limit is killed without a chance to tidy up, busy processes look many times a second whether their parent is still there, and
twins are killed with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

# Says that it runs, then computes until its parent is another one. A few milliseconds between two looks.
SPIN = """
import os, sys
parent, core = int(sys.argv[1]), int(sys.argv[2])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {core})
print("running", flush=True)
while os.getppid() == parent:
    sum(range(100_000))
"""


@contextlib.contextmanager
def busy(cores: list[int], each: int = 1) -> Iterator[list[int]]:
    """`each` busy processes pinned to each of `cores`; all run when the block begins, none is left when it ends."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for core in [core for core in cores for _ in range(each)]:
            command = [sys.executable, "-S", "-c", SPIN, str(os.getpid()), str(core)]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline().strip() != b"running":
                raise RuntimeError(f"a busy process ended with code {process.wait()} before it was needed")
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextlib.contextmanager
def twins(fit: Callable[[], object], cores: list[int], die_with_parent: Callable[[], None]) -> Iterator[list[int]]:
    """This process on the first of `cores`, and a fork of it on each of the others that does `fit()` again and again.

    What a fit takes then, beside what it takes alone, says what the cores give to programs that share nothing: no division
    of one fit between them gains more.
    """
    before, processes = os.sched_getaffinity(0), []
    try:
        for core in cores[1:]:
            ready, tell = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    die_with_parent()
                    os.sched_setaffinity(0, {core})
                    fit()  # its memory is its own by then
                    os.write(tell, b"!")
                    while True:
                        fit()
                finally:
                    os._exit(1)
            processes.append(pid)
            os.close(tell)
            with os.fdopen(ready, "rb") as said:
                if said.read(1) != b"!":
                    raise RuntimeError("a twin of the fit ended before it was needed")
        os.sched_setaffinity(0, cores[:1])
        yield processes
    finally:
        os.sched_setaffinity(0, before)
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
