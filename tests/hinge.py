"""The SVM's own linear problem, for tests that were written for it: scikit-learn's defaults are another."""

from __future__ import annotations

from typing import Any

from maxmargin import LinearSVC


def hinge_svc(C: float = 1.0, **options: Any) -> LinearSVC:
    """Hinge, free intercept, a gap of 1e-4, any number of turns, unless the options say otherwise."""
    return LinearSVC(**{"C": C, "loss": "hinge", "intercept_scaling": None, "tol": 1e-4, "max_iter": -1, **options})
