"""The exact engine over real MPI processes: every formulation and several classes on 1, 2 and 3 ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ranks.exact_cases import MACHINES

JOB = str(Path(__file__).parent / "exact_job.py")


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_kernel_machine_over_mpi(mpiexec: Any, ranks: int) -> None:
    judged(mpiexec(ranks, JOB))


def test_every_kernel_machine_on_ranks_of_different_instruction_sets(mpiexec: Any, other_level: str) -> None:
    """Whose kernel values differ in their last bits: the model is one all the same."""
    judged(mpiexec(2, JOB, other={"MAXMARGIN_ISA": other_level}))


def judged(out: Any) -> None:
    assert out.returncode == 0, out.stdout + out.stderr
    lines = out.stdout.split("\n")
    assert sum("converged" in line for line in lines) == len(MACHINES) + 1
    assert "done" in lines
