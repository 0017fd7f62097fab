"""What a fitted kernel machine says of itself, computed again in extended precision from X, y and its public attributes.

Nothing here is the product's: kernels, losses, duals and optimality conditions are written from their definitions.

    C-SVC       ½|w|² + Σ C_i max(0, 1 − y (f + b))
    ν-SVC       ½|w|² − ρ ν Σ w_i + Σ w_i max(0, ρ − y (f + b)),   published divided by ρ = margin_ where that is positive
    ε-SVR       ½|w|² + Σ C_i max(0, |t − f − b| − ε)
    ν-SVR       the same + C ν ε Σ w_i with ε = epsilon_
    one-class   ½|w|² + b ν Σ w_i + Σ w_i max(0, −f − b)

With u the rounding of float64, a fit cannot know Σ β_i K(i, j) better than to about u m_j Σ |β_i| m_i, |K(i, j)| ≤ m_i m_j.
Each number is judged with the share of that which enters it, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

Wide = np.longdouble
U = float(np.finfo(np.float64).eps)
AT_BOUND = 16 * U  # relative: what dividing by a margin and multiplying again may lose
NEAR_ONE = 1e-13  # error of an rbf or laplacian value from rounded norms, beyond which the core computes it otherwise


@dataclass(frozen=True)
class Truth:
    """The truth about one problem of a fit; `…_unsure` says how well float64 can know it."""

    primal: float
    dual: float
    violation: float  # NaN where the attributes do not tell (ν-SVR with both halves of a sample positive)
    strict: float  # the same with alphas that are at their upper bound but for rounding counted as below it
    equality: float  # |Σ s a − target|, the largest of the groups
    outside: float  # largest distance of an alpha from [0, upper], relative to upper
    total: float  # Σ a
    primal_unsure: float
    dual_unsure: float
    violation_unsure: float


@dataclass(frozen=True)
class Problem:
    """One problem of a fit in terms of its variables: s (c − f − m) is how much a variable's sample falls short."""

    sign: Any  # s
    alpha: Any
    beta: Any  # per sample: Σ of s·alpha
    upper: Any
    center: Any  # c
    multiplier: Any  # m
    sums: list[tuple[Any, Any]]  # equality constraints: (which variables, Σ s a)
    constant: Any = 0.0  # what the primal has beside ½|w|² and the losses
    known: bool = True  # alpha, and not only beta


def gram(model: Any, X: Any, gamma: float) -> tuple[Any, Any]:
    """Kernel values, and of each sample m with |K(i, j)| ≤ m_i m_j: the rounding of a value is relative to that."""
    name = model.kernel
    if callable(name) or name == "precomputed":
        K = np.asarray(name(X, X) if callable(name) else X, dtype=Wide)
        most = np.abs(K).max(axis=1) if name == "precomputed" else np.full(len(K), np.abs(K).max(initial=0))
        return K, np.sqrt(most)
    x = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=Wide)
    g, c, degree = Wide(gamma), Wide(model.coef0), int(model.degree)
    if name in ("rbf", "laplacian"):
        difference = x[:, None, :] - x[None, :, :]
        K = np.exp(-g * (np.abs(difference) if name == "laplacian" else difference**2).sum(axis=2))
        return K, np.full(len(K), np.sqrt(1 + NEAR_ONE / U))
    dot, square = x @ x.T, (x**2).sum(axis=1)
    if name == "linear":
        return dot, np.sqrt(square)
    if name == "poly":
        return (g * dot + c) ** degree, np.sqrt(max(1, degree) * (g * square + abs(c)) ** degree)
    # tanh of a number that is itself only known to its rounding, where that is not yet flat
    size = np.minimum(g * np.sqrt(np.outer(square, square)) + abs(c), 1 / U)
    slope = size / np.cosh(np.clip(g * dot + c, -5000, 5000)) ** 2
    return np.tanh(g * dot + c), np.full(len(x), np.sqrt(1 + slope.max(initial=0)))


def judge(model: Any, X: Any, y: Any, weight: Any, gamma: float = 1.0) -> list[Truth]:
    """Each problem of the fit (one per pair of classes)."""
    K, m = gram(model, X, gamma)
    noise = U * (X.shape[1] + 16) * np.outer(m, m)
    return [truth(problem, K[np.ix_(rows, rows)], noise[np.ix_(rows, rows)])
            for rows, problem in problems(model, X.shape[0], y, weight)]  # fmt: skip


def truth(p: Problem, K: Any, noise: Any) -> Truth:
    halves = len(p.sign) // len(p.beta)
    f, f_unsure = (np.tile(matrix @ vector, halves) for matrix, vector in ((K, p.beta), (noise, np.abs(p.beta))))
    score = p.center - f
    short = p.sign * (score - p.multiplier)
    short_unsure = f_unsure + 2 * U * (np.abs(f) + np.abs(p.multiplier) + np.abs(p.center))
    losses = p.upper @ np.maximum(short, 0)
    norm, norm_unsure = p.beta @ f[: len(p.beta)], np.abs(p.beta) @ f_unsure[: len(p.beta)]
    linear = p.center * p.sign * p.alpha
    # a loss near its corner is known no better than its margin; elsewhere a bound at which alpha is exact helps nobody
    primal_unsure = norm_unsure + p.upper @ np.where(short > -short_unsure, short_unsure, 0)
    outside = np.maximum(-p.alpha, p.alpha - p.upper) / np.maximum(p.upper, np.finfo(float).tiny)
    return Truth(
        primal=float(norm / 2 + losses + p.constant),
        dual=float(linear.sum() - norm / 2),
        violation=violation(p, score, AT_BOUND) if p.known else np.nan,
        strict=violation(p, score, -AT_BOUND) if p.known else np.nan,
        equality=float(max((abs((p.sign * p.alpha)[mine].sum() - target) for mine, target in p.sums), default=0.0)),
        outside=float(outside.max(initial=0)),
        total=float(p.alpha.sum()),
        primal_unsure=float(primal_unsure + 8 * U * (abs(p.constant) + losses + abs(norm))),
        dual_unsure=float(norm_unsure + 8 * U * (np.abs(linear).sum() + abs(norm))),
        violation_unsure=float(2 * (f_unsure + U * np.abs(p.center)).max(initial=0)),
    )


def violation(p: Problem, score: Any, at_bound: float) -> float:
    """How much the best pair of variables of one sum could still gain per step; without sums the best variable."""
    grows, shrinks = p.alpha < p.upper * (1 - at_bound), p.alpha > 0
    up, low = np.where(p.sign > 0, grows, shrinks), np.where(p.sign > 0, shrinks, grows)
    if not p.sums:
        return float(max(score[up].max(initial=0), -score[low].min(initial=0)))
    worst = [score[up & mine].max(initial=-np.inf) - score[low & mine].min(initial=np.inf) for mine, _ in p.sums]
    return float(max(0, *worst))


# ---- from attributes to problems ------------------------------------------------------------------------------------


def problems(model: Any, n: int, y: Any, weight: Any) -> Iterator[tuple[Any, Problem]]:
    """(rows of X, problem) of each problem of the fit."""
    coef = np.zeros((len(model.dual_coef_), n))
    coef[:, model.support_] = model.dual_coef_
    counted = weight > 0
    rows = np.flatnonzero(counted)
    kind = type(model).__name__
    if kind == "OneClassSVM":
        yield rows, one_class(coef[0, rows], model.intercept_[0], weight[rows], model.nu)
    elif not hasattr(model, "classes_"):
        yield rows, regression(model, coef[0, rows], model.intercept_[0], np.asarray(y, float)[rows], weight[rows])
    else:
        label = np.searchsorted(model.classes_, np.asarray(y))
        for k, (i, j) in enumerate(combinations(range(len(model.classes_)), 2)):
            rows = np.flatnonzero(((label == i) | (label == j)) & counted)
            first = label[rows] == i
            mine = np.where(first, coef[j - 1, rows], coef[i, rows])
            s = np.where(first == (len(model.classes_) > 2), 1.0, -1.0)
            factor = np.asarray(model.class_weight_)[label[rows]]
            yield rows, classification(model, k, mine, model.intercept_[k], s, weight[rows], factor)


def classification(model: Any, k: int, coef: Any, b: float, s: Any, weight: Any, factor: Any) -> Problem:
    everyone = np.ones(len(s), bool)
    if "nu" in model.get_params() and (factor == factor[0]).all():
        margin = Wide(model.margin_[k])
        scale = margin if margin > 0 else Wide(1)
        half = Wide(model.nu) * weight.astype(Wide).sum() / 2
        return Problem(
            s, s * coef * scale, coef * scale, weight.astype(Wide), np.zeros(len(s)), b * scale - s * margin,
            [(s > 0, half), (s < 0, -half)], -2 * half * margin,
        )  # fmt: skip
    C = 1 / Wide(model.margin_[k]) if "nu" in model.get_params() else Wide(model.C)
    sums = [(everyone, Wide(0))] if model.get_params().get("fit_intercept", True) else []
    return Problem(s, s * coef.astype(Wide), coef.astype(Wide), C * factor * weight, s, np.full(len(s), Wide(b)), sums)


def regression(model: Any, coef: Any, b: float, t: Any, weight: Any) -> Problem:
    n = len(t)
    s = np.repeat([1.0, -1.0], n)
    beta, upper = coef.astype(Wide), np.tile(Wide(model.C) * weight, 2)
    alpha = np.maximum(np.concatenate([beta, -beta]), 0)
    if "nu" not in model.get_params():
        sums = [(np.ones(2 * n, bool), Wide(0))] if model.fit_intercept else []
        return Problem(s, alpha, beta, upper, np.tile(t, 2) - s * Wide(model.epsilon), np.full(2 * n, Wide(b)), sums)
    # a and a* may both be positive where the tube is closed, which a − a* does not show: what their sums lack, on both
    half, tube = Wide(model.C) * model.nu * weight.astype(Wide).sum() / 2, Wide(model.epsilon_)
    room = upper[:n] - np.abs(beta)
    missing = half - alpha[:n].sum()
    known = missing <= 64 * U * half
    if not known and room.sum() > 0:
        alpha = alpha + np.tile(room * min(Wide(1), missing / room.sum()), 2)
    return Problem(
        s, alpha, beta, upper, np.tile(t, 2).astype(Wide), b + s * tube, [(s > 0, half), (s < 0, -half)], 2 * half * tube,
        known,
    )  # fmt: skip


def one_class(coef: Any, b: float, weight: Any, nu: float) -> Problem:
    n, target = len(coef), Wide(nu) * weight.astype(Wide).sum()
    return Problem(
        np.ones(n), coef.astype(Wide), coef.astype(Wide), weight.astype(Wide), np.zeros(n), np.full(n, Wide(b)),
        [(np.ones(n, bool), target)], b * target,
    )  # fmt: skip
