"""What a fitted kernel machine says of itself, computed again in extended precision from X, y and its public attributes.

Nothing here is the product's: kernels, losses, duals and optimality conditions are written from their definitions.

    C-SVC       ½|w|² + Σ C_i max(0, 1 − y (f + b))
    ν-SVC       ½|w|² − ρ ν Σ w_i + Σ w_i max(0, ρ − y (f + b)),   published divided by ρ = margin_ where that is positive
    ε-SVR       ½|w|² + Σ C_i max(0, |t − f − b| − ε)
    ν-SVR       the same + C ν ε Σ w_i with ε = epsilon_
    one-class   ½|w|² + b ν Σ w_i + Σ w_i max(0, −f − b)

What is allowed for, and why it must be. u = 2⁻⁵³ is the rounding of one operation in float64; products of (1 + u) are
counted to the first order, k operations as k u. A judge of more digits than the fit has can ask for no less than this:

    kernel values  `gram` counts the operations behind one value. Precomputed values and a function's are exact
    f = Kβ         adds n products: (n + COEF) u Σ |β_i| |K(i, j)| beside the values' own errors. A run adds up changes of β,
                   whose rounding a fresh sum has once; it may have it WAY times, or DRIFT tol, before f is summed afresh
    coefficients   published after a division by the margin and a sum over equal rows: COEF roundings
    at the bound   alpha and C × weight × factor are two products of the same numbers: equal to AT_BOUND. Whether such an
                   alpha can grow is not to be known, so a violation is judged between the two readings
    equality       the solver mends sums that are off by 16 eps Σ a; targets, ν Σ w, are themselves sums: EQUALITY
    objective_     as f enters it: ½ |β|ᵀ|δf| and, where a sample falls short or may, C_i |δf|; and the sums' own rounding,
                   by the size of what is added: in regression Σ |t β| is far above Σ t β
    violation      two scores, each known as f is. Where that rounding may matter (2 noise m_j Σ |β_i| m_i > tol) a fit adds
                   it to what it reports, as documented, with |K(i, j)| ≤ m_i m_j: it may say so much more, never less
    converged      violation ≤ tol as reported, so tol + rounding in truth, and the rounding is at most tol: else it was
                   added

Nothing else is allowed for; no number is judged relative to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

Wide = np.longdouble
U = float(np.finfo(np.float64).eps) / 2
AT_BOUND = 8 * U  # C·factor, ·weight; for a copy of a row its share, its cap; ν-SVC 1/margin, ·margin: two to spare
COEF = 6  # the same but for C, and the sum over copies
EQUALITY = 64 * U  # 32: mended beyond 16 eps; 32: Σ w of 50 rows, one by one, less the half that cannot all go one way
WAY = 8
DRIFT = 1e-4  # of tol
NEAR_ONE = 4e-13  # rbf and laplacian: a value from rounded norms that is expected to be off by 1e-13 comes from differences
NOISE = 4 * U  # what a fit takes for the error of a kernel value in units of m_i m_j; NEAR_ONE for those two


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
    decision: Any  # f + b per sample, as published
    primal_unsure: float
    dual_unsure: float
    violation_unsure: float
    violation_added: float  # to what is reported, at most
    decision_unsure: Any


@dataclass(frozen=True)
class Gram:
    """Kernel values, how far each may be off in float64, and m with |K(i, j)| ≤ m_i m_j times a fit's idea of that."""

    values: Any
    error: Any
    size: Any

    def of(self, rows: Any) -> Gram:
        return Gram(self.values[np.ix_(rows, rows)], self.error[np.ix_(rows, rows)], self.size[rows])


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
    intercept: Any = 0.0
    scale: Any = 1.0  # coefficients and intercept are published divided by it


def dense(a: Any) -> Any:
    return a.toarray() if sp.issparse(a) else np.asarray(a)


def gram(model: Any, X: Any, gamma: float) -> Gram:
    name = model.kernel
    if callable(name) or name == "precomputed":
        K = np.asarray(name(X, X) if callable(name) else X, dtype=Wide)
        most = np.abs(K).max(axis=1) if name == "precomputed" else np.full(len(K), np.abs(K).max(initial=0))
        return Gram(K, np.zeros_like(K), np.sqrt(most * Wide(NOISE)))
    x = dense(X).astype(Wide)
    g, c, degree = Wide(gamma), Wide(model.coef0), int(model.degree)
    if name in ("rbf", "laplacian"):
        difference = x[:, None, :] - x[None, :, :]
        K = np.exp(-g * (np.abs(difference) if name == "laplacian" else difference**2).sum(axis=2))
        return Gram(K, np.full_like(K, NEAR_ONE), np.full(len(K), np.sqrt(Wide(NEAR_ONE))))
    dot, square = x @ x.T, (x**2).sum(axis=1)
    norms = np.sqrt(np.outer(square, square))
    steps = (x.shape[1] + 6) * U  # both factors scaled and rounded, d products and sums, coef0
    if name == "linear":
        return Gram(dot, steps * norms, np.sqrt(square * NOISE))
    most = g * norms + abs(c)
    if name == "poly":
        size = np.sqrt((g * square + abs(c)) ** degree * NOISE)
        return Gram((g * dot + c) ** degree, degree * (steps + 2 * U) * most**degree, size)
    # tanh of a number that is itself only known to its rounding, where that is not yet flat
    argument = g * dot + c
    flattest = np.cosh(np.minimum(np.maximum(np.abs(argument) - steps * most, 0), 5000))
    error = 4 * U + np.minimum(2, steps * most / flattest**2)
    return Gram(np.tanh(argument), error, np.full(len(x), np.sqrt(Wide(NOISE))))


def judge(model: Any, X: Any, y: Any, weight: Any, gamma: float = 1.0) -> list[Truth]:
    """Each problem of the fit (one per pair of classes)."""
    K = gram(model, X, gamma)
    return [truth(problem, K.of(rows), model.tol) for rows, problem in problems(model, X.shape[0], y, weight)]


def truth(p: Problem, K: Gram, tol: float) -> Truth:
    n, halves = len(p.beta), len(p.sign) // len(p.beta)
    f, size = K.values @ p.beta, np.abs(p.beta)
    once = K.error @ size + (n + COEF) * U * (np.abs(K.values) @ size)
    f_unsure = once + np.maximum(WAY * once, DRIFT * tol)
    norm, norm_unsure = p.beta @ f, size @ f_unsure
    every, every_unsure = np.tile(f, halves), np.tile(f_unsure, halves)
    score, score_unsure = p.center - every, every_unsure + 2 * U * (np.abs(p.center) + np.abs(every))
    short, short_unsure = p.sign * (score - p.multiplier), score_unsure + 4 * U * np.abs(p.multiplier)
    losses, linear = p.upper * np.maximum(short, 0), p.center * p.sign * p.alpha
    gaps = np.where(short > 0, (p.upper - p.alpha) * short, -p.alpha * short)
    equality = max((abs((p.sign * p.alpha)[mine].sum() - target) for mine, target in p.sums), default=Wide(0))
    missed = equality * np.abs(p.multiplier).max(initial=0)
    added = (len(p.sign) + COEF) * U  # sums over all variables
    terms = np.abs(linear).sum() if p.known else np.abs(p.center).max() * p.alpha.sum()
    dual_unsure = norm_unsure / 2 + added * (terms + size @ np.abs(f))
    at_corner = p.upper @ np.where(short > -short_unsure, short_unsure, 0)
    outside = np.maximum(-p.alpha, p.alpha - p.upper) / np.maximum(p.upper, np.finfo(float).tiny)
    return Truth(
        primal=float(norm / 2 + losses.sum() + p.constant),
        dual=float(linear.sum() - norm / 2),
        violation=violation(p, score, AT_BOUND) if p.known else np.nan,
        strict=violation(p, score, -AT_BOUND) if p.known else np.nan,
        equality=float(equality),
        outside=float(outside.max(initial=0)),
        total=float(p.alpha.sum()),
        decision=(f + p.intercept) / p.scale,
        primal_unsure=float(dual_unsure + at_corner + missed + added * (gaps.sum() + losses.sum() + abs(p.constant))),
        dual_unsure=float(dual_unsure),
        violation_unsure=float(2 * score_unsure.max(initial=0)),
        violation_added=float(2 * K.size.max(initial=0) * (K.size @ size)),
        decision_unsure=(once + 4 * U * (np.abs(f) + abs(p.intercept))) / p.scale,
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
    published = dense(model.dual_coef_)
    coef = np.zeros((len(published), n))
    coef[:, model.support_] = published
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
            [(s > 0, half), (s < 0, -half)], -2 * half * margin, intercept=b * scale, scale=scale,
        )  # fmt: skip
    C = 1 / Wide(model.margin_[k]) if "nu" in model.get_params() else Wide(model.C)
    sums = [(everyone, Wide(0))] if model.get_params().get("fit_intercept", True) else []
    beta, b = coef.astype(Wide), Wide(b)
    return Problem(s, s * beta, beta, C * factor * weight, s, np.full(len(s), b), sums, intercept=b)


def regression(model: Any, coef: Any, b: float, t: Any, weight: Any) -> Problem:
    n = len(t)
    s = np.repeat([1.0, -1.0], n)
    beta, upper = coef.astype(Wide), np.tile(Wide(model.C) * weight, 2)
    alpha = np.maximum(np.concatenate([beta, -beta]), 0)
    if "nu" not in model.get_params():
        sums = [(np.ones(2 * n, bool), Wide(0))] if model.fit_intercept else []
        center = np.tile(t, 2) - s * Wide(model.epsilon)
        return Problem(s, alpha, beta, upper, center, np.full(2 * n, Wide(b)), sums, intercept=b)
    # a and a* may both be positive where the tube is closed, which a − a* does not show: what their sums lack, on both
    half, tube = Wide(model.C) * model.nu * weight.astype(Wide).sum() / 2, Wide(model.epsilon_)
    room = upper[:n] - np.abs(beta)
    missing = half - alpha[:n].sum()
    known = missing <= EQUALITY * half
    if not known and room.sum() > 0:
        alpha = alpha + np.tile(room * min(Wide(1), missing / room.sum()), 2)
    return Problem(
        s, alpha, beta, upper, np.tile(t, 2).astype(Wide), b + s * tube, [(s > 0, half), (s < 0, -half)], 2 * half * tube,
        known, intercept=b,
    )  # fmt: skip


def one_class(coef: Any, b: float, weight: Any, nu: float) -> Problem:
    n, target = len(coef), Wide(nu) * weight.astype(Wide).sum()
    return Problem(
        np.ones(n), coef.astype(Wide), coef.astype(Wide), weight.astype(Wide), np.zeros(n), np.full(n, Wide(b)),
        [(np.ones(n, bool), target)], b * target, intercept=b,
    )  # fmt: skip
