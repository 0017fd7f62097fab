"""Many fits: grids, folds, seeding, probabilities."""

from maxmargin.selection.linear import LinearSVCCV, LinearSVRCV
from maxmargin.selection.machine import EdgeWarning
from maxmargin.selection.svc import SVCCV, NuSVCCV
from maxmargin.selection.svr import SVRCV

__all__ = ["SVCCV", "SVRCV", "EdgeWarning", "LinearSVCCV", "LinearSVRCV", "NuSVCCV"]
