"""Pictures of fitted machines, in scikit-learn's Display convention. They need matplotlib: pip install 'maxmargin[plot]'.

    ConvergenceDisplay       gap, objective or violation against time; several fits in one picture
    DecisionRegionsDisplay   regions, margins and support vectors of a machine of two features
    LevelsDisplay            support vectors and time per level of divide and conquer
    ScoreGridDisplay         score over two parameters, from any cv_results_
    CostDisplay              where the time of a fit went
    CalibrationDisplay       scikit-learn's own, for a machine inside CalibratedClassifierCV
"""

from typing import Any

from maxmargin.plots.convergence import ConvergenceDisplay
from maxmargin.plots.cost import CostDisplay
from maxmargin.plots.levels import LevelsDisplay
from maxmargin.plots.regions import DecisionRegionsDisplay
from maxmargin.plots.score_grid import ScoreGridDisplay

__all__ = [
    "CalibrationDisplay", "ConvergenceDisplay", "CostDisplay", "DecisionRegionsDisplay", "LevelsDisplay", "ScoreGridDisplay",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "CalibrationDisplay":  # imports most of scikit-learn, for which whoever trains need not wait
        from sklearn.calibration import CalibrationDisplay

        return CalibrationDisplay
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
