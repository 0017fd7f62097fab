"""Many fits: grids, folds, seeding, probabilities."""

from maxmargin.selection.calibration import Calibrated, calibrated
from maxmargin.selection.dc import DCSVCCV
from maxmargin.selection.decisions import cross_val_decisions
from maxmargin.selection.linear import LinearSVCCV, LinearSVRCV
from maxmargin.selection.machine import EdgeWarning
from maxmargin.selection.svc import SVCCV, NuSVCCV
from maxmargin.selection.svr import SVRCV

__all__ = [
    "DCSVCCV", "SVCCV", "SVRCV", "Calibrated", "EdgeWarning", "LinearSVCCV", "LinearSVRCV", "NuSVCCV", "calibrated",
    "cross_val_decisions",
]  # fmt: skip
