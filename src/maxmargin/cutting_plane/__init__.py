"""Linear machines with a certificate (seed: Franc & Sonnenburg 2008): cutting planes, Newton steps, dual descent."""

from maxmargin.cutting_plane.certified import LinearResult
from maxmargin.cutting_plane.multiclass import CrammerSinger, TwoClasses
from maxmargin.cutting_plane.one_vs_rest import OneVsRest
from maxmargin.cutting_plane.problem import Extent, LinearProblem, intercept_of
from maxmargin.cutting_plane.solver import SOLVERS, choose, drive, make, solve

__all__ = [
    "SOLVERS", "CrammerSinger", "Extent", "LinearProblem", "LinearResult", "OneVsRest", "TwoClasses", "choose", "drive",
    "intercept_of", "make", "solve",
]
