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


def without(given: Constraints, *names: str) -> Constraints:
    """But for what the search chooses, or has not."""
    return {name: value for name, value in given.items() if name not in names}


def values_of(*axes: str) -> Constraints:
    """A number of values, or the values."""
    return {name: [whole(1), "array-like"] for name in axes}
