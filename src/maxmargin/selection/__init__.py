"""Many fits: grids, folds, seeding, probabilities."""

from maxmargin.selection.linear import LinearSVCCV, LinearSVRCV
from maxmargin.selection.machine import EdgeWarning
from maxmargin.selection.svc import SVCCV

__all__ = ["SVCCV", "EdgeWarning", "LinearSVCCV", "LinearSVRCV"]
