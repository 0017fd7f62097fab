"""Many fits: grids, folds, seeding, probabilities."""

from maxmargin.selection.machine import EdgeWarning
from maxmargin.selection.svc import SVCCV

__all__ = ["SVCCV", "EdgeWarning"]
