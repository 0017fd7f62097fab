"""Several ranks: as threads of this process, and as processes under a real mpiexec."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Ranks = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def mpiexec() -> Ranks:
    """mpiexec(ranks, *arguments of Python): ends after five minutes, whatever the ranks do."""
    beside = Path(sys.executable).parent / "mpiexec"
    program = str(beside.resolve()) if beside.exists() else shutil.which("mpiexec")
    assert program is not None, "mpiexec is missing: pip install mpich, which the extra `test` names"

    def start(
        ranks: int, *arguments: str, timeout: float = 300.0, other: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """`other`: environment of the last rank alone."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
        command = [sys.executable, *arguments]
        words = ["-n", str(ranks), *command]
        if other is not None:
            settings = [word for name, value in other.items() for word in ("-env", name, value)]
            words = ["-n", str(ranks - 1), *command, ":", "-n", "1", *settings, *command]
        return subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=timeout, env=environment, check=False
        )

    return start
