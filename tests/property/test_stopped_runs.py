"""A run may be stopped at any yield, also inside a turn; what it then reports must be true of the whole problem."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.decomposition.options import Options
from maxmargin.decomposition.solver import Decomposition
from maxmargin.kernel_values import NativeValues, Samples
from maxmargin.problem import formulations
from maxmargin.problem.certificates import certify
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Status


class FewRowsAtATime(NativeValues):
    """Kernel sums in many small calls, so that a run can be stopped between any two of them."""

    @staticmethod
    def pieces(n: int, m: int):
        return (slice(i, i + 50) for i in range(0, n, 50))


@pytest.mark.parametrize("warm", [False, True])
def test_a_run_stopped_anywhere_reports_the_truth(warm) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(500, 8))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=500) > 0, 1.0, -1.0)
    kernel, rows = Kernel("rbf", gamma=0.2), np.arange(500)
    qp = formulations.c_svc(y, np.full(500, 10.0))
    gram = kernel(X, X)
    options = Options(working_set_size=8, tol=1e-3)
    samples = Samples(X, kernel, rows, np.float64, 1)
    start = np.where(np.arange(500) % 7 == 0, 3.0, 0.0) if warm else None
    start = None if start is None else qp.repaired(start)

    def stopped_after(steps: int):
        solver = Decomposition(qp, FewRowsAtATime(samples, rows), options, alpha=start)
        turns = solver.turns()
        kinds = [kind for _, kind in zip(range(steps), turns)]
        turns.close()
        return solver.result(Status.MAX_TIME), kinds

    _, kinds = stopped_after(10**6)
    quiet = [i + 1 for i, kind in enumerate(kinds) if kind is None]
    assert quiet  # there were safe points inside turns
    for steps in sorted({1, 2, *quiet[:3], *quiet[len(quiet) // 2 :][:3], *quiet[-3:], len(kinds)}):
        result, _ = stopped_after(steps)
        answer = certify(qp, gram, result.alpha, result.multipliers)
        assert result.violation == pytest.approx(answer.violation, abs=1e-9)
        assert result.gap == pytest.approx(answer.gap, rel=1e-9, abs=1e-9)
        assert result.objective == pytest.approx(answer.primal, rel=1e-9)
