"""Several ranks: as threads of this process, and as processes under a real mpiexec."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from maxmargin import _core, _cpu

Ranks = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def launcher() -> str:
    """Where mpiexec is."""
    beside = Path(sys.executable).parent / "mpiexec"
    program = str(beside.resolve()) if beside.exists() else shutil.which("mpiexec")
    assert program is not None, "mpiexec is missing: pip install mpich, which the extra `test` names"
    return program


@pytest.fixture(scope="session")
def mpiexec(launcher: str) -> Ranks:
    """mpiexec(ranks, *arguments of Python): ends after five minutes, whatever the ranks do."""

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
            [launcher, *words], capture_output=True, text=True, timeout=timeout, env=environment, check=False
        )

    return start


@pytest.fixture(scope="session")
def other_level() -> str:
    """An instruction-set level of the core that is not the one here; `mpiexec(…, other={"MAXMARGIN_ISA": …})` has it."""
    if "MAXMARGIN_CORE" in os.environ:
        pytest.skip("MAXMARGIN_CORE names the core of all ranks")
    built = [level for level in ("v2", "v3", "v4") if importlib.util.find_spec(f"maxmargin._core_{level}")]
    other = next((level for level in built if level != _core.ISA and level <= _cpu.level()), None)
    if other is None:
        pytest.skip(f"one level of the core is built that runs here, {_core.ISA}: build another one (LEVELS='v2;v3')")
    return other
