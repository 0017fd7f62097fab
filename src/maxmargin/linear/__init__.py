"""Linear machines with a certificate (seed: Franc & Sonnenburg 2008): cutting planes, Newton steps, dual descent."""

from maxmargin.linear.bundle import Cuts
from maxmargin.linear.certified import Known, LinearResult
from maxmargin.linear.multiclass import CrammerSinger
from maxmargin.linear.one_norm import OneNorm
from maxmargin.linear.one_vs_rest import OneVsRest
from maxmargin.linear.problem import Extent, LinearProblem, intercept_of
from maxmargin.linear.scaled import Scaled
from maxmargin.linear.solver import SOLVERS, choose, drive, make, solve

__all__ = [
    "SOLVERS", "CrammerSinger", "Cuts", "Extent", "Known", "LinearProblem", "LinearResult", "OneNorm", "OneVsRest",
    "Scaled", "choose", "drive", "intercept_of", "make", "solve",
]
