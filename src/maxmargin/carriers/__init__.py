"""Where pieces of a fit may run other than in this process: joblib's backends, and the clusters that some stand for."""

from maxmargin.carriers.active import active_carrier
from maxmargin.carriers.by_joblib import by_joblib, workers
from maxmargin.carriers.protocol import ATTEMPTS, GONE, LOOK, Carrier, LostError, never

__all__ = ["ATTEMPTS", "GONE", "LOOK", "Carrier", "LostError", "active_carrier", "by_joblib", "never", "workers"]
