"""The numbers behind pictures, from what a fit reports; no matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

FloatArray = NDArray[np.float64]
QUANTITIES = ("gap", "violation", "objective")
# What timings_ holds beside the phases: their sum, counts, and a part of others.
NO_PHASES = {"total", "inner_steps", "rows", "cache_hits", "unshrinks", "inner_fallbacks", "passes", "pass_seconds"}


def machine_of(estimator: Any, attribute: str) -> Any:
    """The fitted machine, which may be the last step of a pipeline or the best of a search; it must have `attribute`."""
    check_is_fitted(estimator)
    inner = getattr(estimator, "best_estimator_", estimator)
    inner = inner.steps[-1][1] if hasattr(inner, "steps") else inner
    if not hasattr(inner, attribute):
        raise ValueError(f"{type(inner).__name__} has no {attribute}, which this picture shows")
    return inner


@dataclass(frozen=True)
class Curve:
    """One quantity of one problem of a fit, turn by turn. `lower`: the lower bounds that go with objectives."""

    x: FloatArray
    values: FloatArray
    lower: FloatArray | None = None


def curves(trace: NDArray[Any], quantity: str, x: str) -> list[Curve]:
    """One curve per problem of a fit (pairs of classes, classes); those without two known values are left out.

    Where an engine does not know the gap of every turn, the curve is the distance of the lower bound from the objective
    that the problem reached in the end: what was known of that model at the time.
    """
    if not len(trace):
        return []
    problem = trace["problem"] if "problem" in (trace.dtype.names or ()) else np.zeros(len(trace), np.int64)
    out = []
    for k in np.unique(problem[problem >= 0]):
        rows = trace[problem == k]
        values, lower = np.array(rows[quantity], np.float64), None
        if quantity == "gap":
            known = rows["objective"][np.isfinite(rows["objective"])]
            if len(known) and not np.isfinite(values[np.isfinite(rows["dual"])]).all():
                values = known[-1] - rows["dual"]
        if quantity == "objective":
            lower = np.array(rows["dual"], np.float64)
            shown = np.isfinite(values) | np.isfinite(lower)
        else:
            shown = np.isfinite(values) & (values > 0)  # the axis is logarithmic
        if shown.sum() >= 2:
            out.append(Curve(np.array(rows[x], np.float64)[shown], values[shown], None if lower is None else lower[shown]))
    return out


def shown_quantity(trace: NDArray[Any], quantity: str, x: str) -> str:
    """The quantity asked for; "auto" is the first of gap, violation and objective that has a curve."""
    if quantity != "auto":
        return quantity
    return next((name for name in QUANTITIES if curves(trace, name, x)), "gap")


def phases(timings: dict[str, float]) -> dict[str, float]:
    """Seconds per phase of a fit, the largest first, then what is in none of them; of threads side by side, more in all."""
    parts = {name: float(value) for name, value in timings.items() if name not in NO_PHASES and value > 0}
    rest = float(timings.get("total", 0.0)) - sum(parts.values())
    if rest > 0:
        parts["other"] = rest
    return dict(sorted(parts.items(), key=lambda item: -item[1]))
