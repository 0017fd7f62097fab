"""Which method for which data, and one call that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import scipy.sparse as sp

from maxmargin.linear.bundle import Cuts
from maxmargin.linear.certified import Certified, LinearResult
from maxmargin.linear.descent import Descent
from maxmargin.linear.newton import Newton
from maxmargin.linear.ocas import Ocas
from maxmargin.linear.problem import LinearProblem
from maxmargin.linear.rounding import FloatArray
from maxmargin.runtime import Control, one_blas_thread, run

SOLVERS = ("auto", "ocas", "cpa", "newton", "descent")
PATIENCE = 60  # turns after which "auto" calls in the cutting planes; the sets it was tuned on need 5 to 30
NARROW = 128  # features below which a Newton matrix is factorised in no time
SENT = 1024  # features up to which ranks send each other Newton matrices, or the products that take their place
WIDE = 4000  # features beyond which coordinate descent beats a Newton matrix


def choose(problem: LinearProblem) -> str:
    """Coordinate descent for wide data (text) and for fewer rows than features, Newton steps for the rest.

    Sparse rows count by their entries: where factorising the Newton matrix (d³) costs more than the pass over the rows
    that fills it (Σ entries²), coordinate descent is ahead too. Rows that are elsewhere: cutting planes, which need
    nothing but passes over them. Rows on several ranks: Newton steps, or cutting planes for wide ones.
    """
    if not problem.at_hand:
        return "ocas"
    if not problem.alone:
        return "newton" if problem.size <= min(SENT, problem.count) else "ocas"
    if problem.size > WIDE or problem.n < problem.size:
        return "descent"
    entries = problem.X.nnz / problem.n if sp.issparse(problem.X) else problem.d
    return "descent" if problem.d >= NARROW and problem.d**3 > problem.n * entries**2 else "newton"


def make(
    problem: LinearProblem, tol: float, solver: str = "auto", *, seed: int = 0, known: Cuts | None = None,
    start: FloatArray | None = None, duals: FloatArray | None = None, rounding: float | None = None,
) -> Any:
    """The solver object.

    `known`: cuts of an earlier fit on the same rows; `start`: a point to start from; `duals`: of an earlier fit to some
    of the rows, which "descent" begins with and cutting planes have as a cut ("newton" makes its own of the point);
    `rounding`: the h at which "newton" was there.
    """
    name, patience = (choose(problem), PATIENCE) if solver == "auto" else (solver, float("inf"))
    kinds: dict[str, Callable[[], Certified]] = {
        "ocas": lambda: Ocas(problem, tol, known=known, start=start, duals=duals),
        "cpa": lambda: Ocas(problem, tol, optimised=False, known=known, start=start, duals=duals),
        "newton": lambda: Newton(
            problem, tol, seed=seed, known=known, start=start, patience=patience, rounding=rounding
        ),
        "descent": lambda: Descent(problem, tol, seed=seed, known=known, start=start, patience=patience, duals=duals),
    }
    return kinds[name]()


def solve(
    problem: LinearProblem, tol: float, solver: str, control: Control, *, seed: int = 0, known: Cuts | None = None,
    start: FloatArray | None = None,
) -> LinearResult:
    """One binary problem to a relative gap of tol."""
    return drive(make(problem, tol, solver, seed=seed, known=known, start=start), control)


def drive(solver: Any, control: Control) -> LinearResult:
    """Run a solver object. BLAS sees small matrices only and stays on one thread; the core has its own."""
    with one_blas_thread():
        result: LinearResult = run(solver, control)
    return result
