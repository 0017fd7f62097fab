"""A QP of each formulation, by its name, for tests that hold a part of a solver to all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.problem import formulations


def formulated(name: str, y: NDArray[Any], t: NDArray[np.float64], weight: NDArray[np.float64]) -> formulations.QP:
    """For labels, targets and weights."""
    qp: formulations.QP = {
        "c_svc": lambda: formulations.c_svc(y, 3 * weight),
        "no_intercept": lambda: formulations.c_svc(y, 3 * weight, fit_intercept=False),
        "nu_svc": lambda: formulations.nu_svc(y, 0.4, weight),
        "epsilon_svr": lambda: formulations.epsilon_svr(t, 0.1, 3 * weight),
        "svr_no_intercept": lambda: formulations.epsilon_svr(t, 0.1, 3 * weight, fit_intercept=False),
        "nu_svr": lambda: formulations.nu_svr(t, 0.4, 3.0, weight),
        "one_class": lambda: formulations.one_class(0.3, weight),
    }[name]()
    return qp
