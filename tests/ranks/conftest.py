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
    """mpiexec(ranks, *arguments of Python): ends after a minute, whatever the ranks do."""
    beside = Path(sys.executable).parent / "mpiexec"
    program = str(beside.resolve()) if beside.exists() else shutil.which("mpiexec")
    assert program is not None, "mpiexec is missing: pip install mpich, which the extra `test` names"

    def start(ranks: int, *arguments: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
        return subprocess.run(
            [program, "-n", str(ranks), sys.executable, *arguments],
            capture_output=True, text=True, timeout=timeout, env=environment, check=False,
        )  # fmt: skip

    return start
