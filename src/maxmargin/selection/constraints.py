"""Which values the parameters of a search may have, as scikit-learn writes it down (see estimators/_constraints.py)."""

from __future__ import annotations

from sklearn.utils._param_validation import StrOptions

from maxmargin.estimators._constraints import Constraints, whole

SEARCH: Constraints = {
    "cv": ["cv_object"],
    "scoring": [str, callable, None],
    "refit": ["boolean"],
    "search": [StrOptions({"grid", "halving"})],
    "extend": ["boolean"],
    "probabilities": ["boolean"],
    "random_state": ["random_state"],
}


def values_of(*axes: str) -> Constraints:
    """A number of values, or the values."""
    return {name: [whole(1), "array-like"] for name in axes}
