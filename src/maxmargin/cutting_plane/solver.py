"""Which method for which data, and one call that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

from maxmargin.cutting_plane.bundle import Bundle
from maxmargin.cutting_plane.certified import Certified, LinearResult
from maxmargin.cutting_plane.descent import Descent
from maxmargin.cutting_plane.newton import Newton
from maxmargin.cutting_plane.ocas import Ocas
from maxmargin.cutting_plane.problem import FloatArray, LinearProblem
from maxmargin.runtime import Control, run

SOLVERS = ("auto", "ocas", "cpa", "newton", "descent")
WIDE = 4000  # features beyond which coordinate descent beats a Newton matrix


def choose(problem: LinearProblem) -> str:
    """Coordinate descent for wide data (text) and for fewer rows than features, Newton steps for the rest."""
    return "descent" if problem.size > WIDE or problem.n < problem.size else "newton"


def make(
    problem: LinearProblem, tol: float, solver: str = "auto", *, seed: int = 0, bundle: Bundle | None = None,
    start: FloatArray | None = None,
) -> Any:
    """The solver object; `bundle` holds cuts of an earlier fit on the same rows, `start` a point to start from."""
    name = choose(problem) if solver == "auto" else solver
    if bundle is not None:
        bundle.adopt(problem)
    kinds: dict[str, Callable[[], Certified]] = {
        "ocas": lambda: Ocas(problem, tol, bundle=bundle),
        "cpa": lambda: Ocas(problem, tol, optimised=False, bundle=bundle),
        "newton": lambda: Newton(problem, tol, seed=seed, bundle=bundle, start=start),
        "descent": lambda: Descent(problem, tol, seed=seed, bundle=bundle),
    }
    return kinds[name]()


def solve(
    problem: LinearProblem, tol: float, solver: str, control: Control, *, seed: int = 0, bundle: Bundle | None = None,
    start: FloatArray | None = None,
) -> LinearResult:
    """Run to a relative gap of tol. BLAS works on small matrices only and stays on one thread."""
    with threadpool_limits(limits=1, user_api="blas"):
        result: LinearResult = run(make(problem, tol, solver, seed=seed, bundle=bundle, start=start), control)
    return result
