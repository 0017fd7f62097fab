"""The exact engine over real MPI processes: every formulation and several classes on 1, 2 and 3 ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ranks.exact_cases import MACHINES


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_kernel_machine_over_mpi(mpiexec: Any, ranks: int) -> None:
    out = mpiexec(ranks, str(Path(__file__).parent / "exact_job.py"))
    assert out.returncode == 0, out.stdout + out.stderr
    lines = out.stdout.split("\n")
    assert sum("converged" in line for line in lines) == len(MACHINES) + 1
    assert "done" in lines
