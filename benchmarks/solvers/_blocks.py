"""Kernel blocks for the competitors that are written here, in the rows' own precision, by scikit-learn's pairwise kernels.

scikit-learn is imported when it is needed: every worker of every solver imports these files before it is timed.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.base import Problem

ROWS = 8192  # rows of X per block: with some thousand columns tens of MB


def block(problem: Problem, A: Any, B: Any) -> np.ndarray:
    """K between a few rows."""
    pairwise = importlib.import_module("sklearn.metrics.pairwise")
    if problem.kernel == "rbf":
        return np.asarray(pairwise.rbf_kernel(A, B, gamma=problem.gamma))
    if problem.kernel == "poly":
        return np.asarray(pairwise.polynomial_kernel(A, B, degree=problem.degree, gamma=problem.gamma, coef0=problem.coef0))
    if problem.kernel == "linear":
        return np.asarray(pairwise.linear_kernel(A, B))
    raise ValueError(f"kernel={problem.kernel!r} is not one of the competitors': add it to _blocks.block")


def times(problem: Problem, X: Any, vectors: Any, coef: np.ndarray) -> np.ndarray:
    """K(X, vectors) @ coef, a block of rows at a time."""
    parts = [block(problem, X[i : i + ROWS], vectors) @ coef for i in range(0, X.shape[0], ROWS)]
    return np.concatenate(parts)


def mapped(problem: Problem, X: Any, vectors: Any, out: np.ndarray) -> np.ndarray:
    """K(X, vectors) into `out`, a block of rows at a time."""
    for i in range(0, X.shape[0], ROWS):
        out[i : i + ROWS] = block(problem, X[i : i + ROWS], vectors)
    return out
