"""Subproblems for the tests of carriers."""

from __future__ import annotations

import numpy as np

from maxmargin.decomposition.options import Options
from maxmargin.divide.subproblem import Subproblem
from maxmargin.kernel_values import KernelData
from maxmargin.problem.formulations import c_svc
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import NEVER


def endless(count=3, n=60, deadline=NEVER):
    """Subproblems that would go on for ever: tol=0 is never reached."""
    rng = np.random.default_rng(0)
    X, every = rng.normal(size=(count * n, 2)), np.arange(n)
    data = KernelData(X, Kernel("rbf", 5.0), np.arange(count * n), np.float64, 1)
    qp = c_svc(np.where(rng.random(n) < 0.5, 1.0, -1.0), np.full(n, 1e3), False)
    options = Options(tol=0.0, working_set_size=2)
    tasks = [Subproblem(0, c, every, c * n + every, qp, data, None, options, deadline=deadline) for c in range(count)]
    return tasks, [c * n + every for c in range(count)], data
