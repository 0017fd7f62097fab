"""Foreign busy processes, one per core, for the cells that ask for them.

They are children of the worker and end with it, however that ends: `with busy(…)` kills them, and each looks many times a
second whether its parent is still there, as a worker that is past its limit is killed without a chance to tidy up.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

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
