"""Exact kernel machines by decomposition: the QP is solved on working sets of a few hundred variables (PSMO paper)."""

from maxmargin.decomposition.qp import QPResult, solve_qp

__all__ = ["QPResult", "solve_qp"]
