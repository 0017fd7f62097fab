"""The formulas of the evaluator, one pair of functions per formulation, on arrays alone: no kernel is computed here.

`*_point` makes a model's coefficients feasible, `*_value` says what primal and dual are once f is known. In between the
caller computes f on the training rows, for one problem (objectives.py) or for all pairs of classes at once (pairs.py).
The formulas are those at the head of objectives.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.base import Problem


@dataclass(frozen=True)
class Point:
    """Coefficients on the formulation's own scale: the solver's, and the feasible ones next to them.

    moved: how far those are apart, relative to the largest coefficient allowed (None where there is no dual point).
    scale: the factor by which the solver's coefficients, and with them its intercept, were multiplied.
    """

    coef: np.ndarray
    feasible: np.ndarray
    moved: float | None
    scale: float = 1.0


class Image(NamedTuple):
    """f without intercept on the training rows, ‖w‖², and ‖w‖² of the feasible coefficients."""

    f: np.ndarray
    norm: float
    norm_feasible: float


class Values(NamedTuple):
    """primal: with the solver's intercept; best: with the best one; dual: of the feasible point."""

    primal: float
    best: float
    dual: float | None


def _moved(coef: np.ndarray, feasible: np.ndarray, upper: float) -> float:
    return float(np.max(np.abs(feasible - coef), initial=0.0)) / upper


# ---- svc. `own` are the labels or targets of the support vectors, None where they are no training rows.


def svc_point(problem: Problem, n: int, own: np.ndarray | None, coef: np.ndarray) -> Point:
    if own is None:
        return Point(coef, coef, None)
    feasible = own * np.clip(own * coef, 0.0, problem.C)
    feasible = balanced(feasible) if problem.fit_intercept else feasible
    return Point(coef, feasible, _moved(coef, feasible, problem.C))


def svc_value(
    problem: Problem, y: np.ndarray, own: np.ndarray | None, point: Point, image: Image, intercept: float
) -> Values:
    f = image.f

    def primal(b: float) -> float:
        return 0.5 * image.norm + problem.C * float(np.maximum(0.0, 1.0 - y * (f + b)).sum())

    # The slope of the sum over b starts at −(number of positives) and rises by one at each point y − f.
    best = kth(y - f, int((y > 0).sum())) if problem.fit_intercept else 0.0
    dual = None if own is None else float(np.abs(point.feasible).sum()) - 0.5 * image.norm_feasible
    return Values(primal(intercept), min(primal(best), primal(intercept)), dual)


# ---- svr


def svr_point(problem: Problem, n: int, own: np.ndarray | None, coef: np.ndarray) -> Point:
    feasible = np.clip(coef, -problem.C, problem.C)
    feasible = balanced(feasible) if problem.fit_intercept else feasible
    return Point(coef, feasible, _moved(coef, feasible, problem.C))


def svr_value(problem: Problem, y: np.ndarray, own: np.ndarray, point: Point, image: Image, intercept: float) -> Values:
    epsilon, error = problem.epsilon, y - image.f

    def primal(b: float) -> float:
        return 0.5 * image.norm + problem.C * float(np.maximum(0.0, np.abs(error - b) - epsilon).sum())

    best = kth(np.concatenate([error - epsilon, error + epsilon]), len(y)) if problem.fit_intercept else 0.0
    dual = float(own @ point.feasible) - epsilon * float(np.abs(point.feasible).sum()) - 0.5 * image.norm_feasible
    return Values(primal(intercept), min(primal(best), primal(intercept)), dual)


# ---- nu_svc


def nu_svc_point(problem: Problem, n: int, own: np.ndarray, coef: np.ndarray) -> Point:
    scale = problem.nu / max(float(np.abs(coef).sum()), 1e-300)  # models are stored with margin 1; here Σα = ν
    coef = coef * scale
    alpha = np.clip(own * coef, 0.0, 1.0 / n)
    for side in (own > 0, own < 0):
        alpha[side] = with_sum(alpha[side], 1.0 / n, problem.nu / 2)
    feasible = own * alpha
    return Point(coef, feasible, _moved(coef, feasible, 1.0 / n), scale)


def nu_svc_value(problem: Problem, y: np.ndarray, own: np.ndarray, point: Point, image: Image, intercept: float) -> Values:
    n, nu, f = len(y), problem.nu, image.f
    # Separable in ρ − b and ρ + b: each side's best margin leaves ν/2 of all rows below it.
    margins = [y[side] * f[side] for side in (y > 0, y < 0)]
    rho_plus, rho_minus = (kth(m, int(np.ceil(nu * n / 2 - 1e-9))) for m in margins)
    hinge = sum(np.maximum(0.0, rho - m).sum() for rho, m in zip((rho_plus, rho_minus), margins))
    best = 0.5 * image.norm - nu * (rho_plus + rho_minus) / 2 + hinge / n
    margin = y * (f + point.scale * intercept)
    rho = kth(margin, int(np.ceil(nu * n - 1e-9)))
    primal = 0.5 * image.norm - nu * rho + np.maximum(0.0, rho - margin).sum() / n
    return Values(float(primal), float(best), -0.5 * image.norm_feasible)


# ---- nu_svr


def nu_svr_point(problem: Problem, n: int, own: np.ndarray | None, coef: np.ndarray) -> Point:
    C, nu = problem.C, problem.nu
    feasible = balanced(np.clip(coef, -C, C))
    feasible = feasible * min(1.0, C * nu * n / max(float(np.abs(feasible).sum()), 1e-300))
    return Point(coef, feasible, _moved(coef, feasible, C))


def nu_svr_value(problem: Problem, y: np.ndarray, own: np.ndarray, point: Point, image: Image, intercept: float) -> Values:
    n, C, nu, error = len(y), problem.C, problem.nu, y - image.f
    k = int(np.ceil(nu * n / 2 - 1e-9))
    high, low = -kth(-error, k), kth(error, k)  # the tube's edges: ν/2 of the rows beyond each
    outside = np.maximum(0.0, error - high).sum() + np.maximum(0.0, low - error).sum()
    best = 0.5 * image.norm + C * (outside + n * nu * (high - low) / 2)
    distance = np.abs(error - intercept)
    epsilon = max(0.0, -kth(-distance, int(np.ceil(nu * n - 1e-9))))
    primal = 0.5 * image.norm + C * (n * nu * epsilon + np.maximum(0.0, distance - epsilon).sum())
    return Values(float(primal), float(best), float(own @ point.feasible) - 0.5 * image.norm_feasible)


# ---- one_class


def one_class_point(problem: Problem, n: int, own: np.ndarray | None, coef: np.ndarray) -> Point:
    scale = problem.nu * n / max(float(coef.sum()), 1e-300)
    coef = coef * scale
    feasible = with_sum(np.clip(coef, 0.0, 1.0), 1.0, problem.nu * n)
    return Point(coef, feasible, _moved(coef, feasible, 1.0), scale)


def one_class_value(
    problem: Problem, y: np.ndarray, own: np.ndarray | None, point: Point, image: Image, intercept: float
) -> Values:
    n, nu, f = len(image.f), problem.nu, image.f

    def primal(rho: float) -> float:
        return 0.5 * image.norm - n * nu * rho + float(np.maximum(0.0, rho - f).sum())

    best = kth(f, int(np.ceil(nu * n - 1e-9)))
    return Values(primal(-intercept * point.scale), primal(best), -0.5 * image.norm_feasible)


FORMULATIONS: dict[str, tuple[Callable[..., Point], Callable[..., Values]]] = {
    "svc": (svc_point, svc_value),
    "svr": (svr_point, svr_value),
    "nu_svc": (nu_svc_point, nu_svc_value),
    "nu_svr": (nu_svr_point, nu_svr_value),
    "one_class": (one_class_point, one_class_value),
}


# ---- small helpers


def kth(values: np.ndarray, k: int) -> float:
    """The k-th smallest value, k counted from 1 and kept inside the range."""
    k = min(max(k, 1), len(values)) - 1
    return float(np.partition(values, k)[k])


def balanced(coef: np.ndarray) -> np.ndarray:
    """Signed coefficients with sum zero: the heavier sign is scaled down."""
    up, down = coef[coef > 0].sum(), -coef[coef < 0].sum()
    if up == down:
        return coef
    heavier = coef > 0 if up > down else coef < 0
    return np.where(heavier, coef * (min(up, down) / max(up, down)), coef)


def with_sum(alpha: np.ndarray, upper: float, target: float) -> np.ndarray:
    """alpha scaled inside [0, upper] to a given sum; entries that reach the bound stay there."""
    for _ in range(50):
        total = alpha.sum()
        if total >= target * (1 - 1e-15) or not ((alpha > 0) & (alpha < upper)).any():
            break
        free = (alpha > 0) & (alpha < upper)
        alpha = np.where(free, np.minimum(upper, alpha * (1 + (target - total) / alpha[free].sum())), alpha)
    return alpha * min(1.0, target / max(float(alpha.sum()), 1e-300))
