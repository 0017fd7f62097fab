"""All machines, for tools that go through estimators as `sklearn.utils.discovery` lists scikit-learn's."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin

KINDS = {"classifier": ClassifierMixin, "regressor": RegressorMixin, "outlier_detector": OutlierMixin}


def all_estimators(type_filter: str | list[str] | None = None) -> list[tuple[str, Any]]:
    """The public machines, by name.

    Parameters
    ----------
    type_filter : {"classifier", "regressor", "outlier_detector"}, list of them, or None
        Only machines of these kinds.

    Returns
    -------
    list of (name, class)

    Examples
    --------
    >>> import maxmargin
    >>> [name for name, make in maxmargin.all_estimators("outlier_detector")]
    ['OneClassSVM']
    """
    import maxmargin

    wanted = [type_filter] if isinstance(type_filter, str) else list(KINDS) if type_filter is None else list(type_filter)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise ValueError(f"type_filter={type_filter!r}: there is no {unknown[0]!r} here; choose from {', '.join(KINDS)}")
    public = [(name, getattr(maxmargin, name)) for name in sorted(maxmargin.__all__)]
    machines = [(name, make) for name, make in public if isinstance(make, type) and issubclass(make, BaseEstimator)]
    return [(name, make) for name, make in machines if issubclass(make, tuple(KINDS[kind] for kind in wanted))]
