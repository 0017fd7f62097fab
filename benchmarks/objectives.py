"""The one neutral judge: primal and dual objective and test score of any model, in float64, from its coefficients.

Nothing a solver says about itself is used. With f = Σ_j coef_j K(·, x_j) + b and w its part in the feature space:

    svc        P = ½‖w‖² + C Σ max(0, 1 − y f)          D = Σ α − ½‖w‖²             0 ≤ α ≤ C, Σ yα = 0 (if b)
    svr        P = ½‖w‖² + C Σ max(0, |y − f| − ε)      D = yᵀβ − ε Σ|β| − ½‖w‖²    |β| ≤ C,   Σ β = 0
    nu_svc     P = ½‖w‖² − νρ + 1/n Σ max(0, ρ − y f)   D = −½‖w‖²                  0 ≤ α ≤ 1/n, Σ_{±} α = ν/2
    nu_svr     P = ½‖w‖² + C (nνε + Σ max(0, |y−f|−ε))  D = yᵀβ − ½‖w‖²             |β| ≤ C, Σβ = 0, Σ|β| ≤ Cνn
    one_class  P = ½‖w‖² − nνρ + Σ max(0, ρ − f)        D = −½‖w‖²                  0 ≤ α ≤ 1, Σ α = νn
    linear     P = ½‖w‖² (+ ½b² where the solver penalises b) + C Σ loss

P is minimised and D is at most the optimum for every feasible point. Float32 solvers leave their box or equality by
rounding, and an infeasible point could show a D above the optimum; so a dual point is first made feasible (clipped to
its box, then its heavier side scaled down) and `infeasible` says how much that moved it. P is given twice: with the
solver's own intercept, and with the best intercept for its w, which no rule for b can beat. ρ, and ε of nu_svr, are not
part of a model: P uses the best ones.

Cost: one pass over the n × |SV| kernel block in tiles of a few MB per thread; nothing of size n × |SV| is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from benchmarks.base import Data, KernelModel, LinearModel, Model, Predictions, Problem

TILE_ROWS, TILE_COLUMNS = 256, 512  # a tile of 1 MB of float64 per thread stays near the L2 cache
DENSE_WIDTH = 2000  # sparse rows up to this many features are unpacked per tile, so that the product is a GEMM


@dataclass(frozen=True)
class Evaluation:
    """primal: with the solver's intercept; primal_best: with the best one; dual: of the feasible point next to the
    solver's; infeasible: how far that was, relative to the largest coefficient allowed. None where undefined."""

    primal: float | None = None
    primal_best: float | None = None
    dual: float | None = None
    infeasible: float | None = None
    score: float | None = None
    auc: float | None = None  # area under the ROC curve, where there are two classes and decision values
    n_support: int | None = None
    penalised: bool = False  # the intercept is part of the norm: another problem, with another optimum

    @property
    def gap(self) -> float | None:
        """Relative duality gap: a bound on how far primal_best is above the optimum."""
        if self.dual is None or self.primal_best is None:
            return None
        return (self.primal_best - self.dual) / max(abs(self.primal_best), abs(self.dual), 1e-300)


def evaluate(problem: Problem, data: Data, model: Model, threads: int = 2, score_only: bool = False) -> Evaluation:
    """Judge `model` on the problem's training rows (objective, unless `score_only`) and on the test rows (score)."""
    if isinstance(model, Predictions):
        return Evaluation(score=_score(problem, data.y_test, model.values))
    if isinstance(model, LinearModel):
        return _evaluate_linear(problem, data, model)
    if problem.task not in _FORMULATIONS:
        raise ValueError(f"no objective is known for a kernel model of task={problem.task!r}")
    coef = np.asarray(model.coef, dtype=np.float64).ravel()
    vectors = model.vectors if model.support is None else data.X_train[model.support]
    decision = expansion(problem, data.X_test, vectors, coef, threads)[:, 0] + model.intercept
    score = None if problem.task == "one_class" else _score(problem, data.y_test, decision)
    if score_only:
        return Evaluation(score=score, n_support=int(np.count_nonzero(coef)))
    y = np.asarray(data.y_train, dtype=np.float64)
    primal, primal_best, dual, infeasible = _FORMULATIONS[problem.task](problem, data, model, y, coef, vectors, threads)
    auc = _auc(data.y_test, decision) if problem.task in ("svc", "nu_svc") else None
    return Evaluation(primal, primal_best, dual, infeasible, score, auc, int(np.count_nonzero(coef)))


# ---- kernels, in tiles


def expansion(problem: Problem, X: Any, vectors: Any, coef: np.ndarray, threads: int = 2) -> np.ndarray:
    """K(X, vectors) @ coef for one or several columns of coef, in tiles."""
    columns = np.asarray(coef, dtype=np.float64)
    columns = columns[:, None] if columns.ndim == 1 else columns
    n = X.shape[0]
    out = np.zeros((n, columns.shape[1]))
    if n == 0 or len(columns) == 0:
        return out
    starts = range(0, vectors.shape[0], TILE_COLUMNS)
    blocks = [(j, _embedded(problem, vectors[j : j + TILE_COLUMNS], left=False)) for j in starts]

    def rows(i: int) -> None:
        tile = _embedded(problem, X[i : i + TILE_ROWS], left=True)
        for j, block in blocks:
            out[i : i + TILE_ROWS] += _kernel(problem, tile, block) @ columns[j : j + TILE_COLUMNS]

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:  # our threads, not also those of the BLAS
        list(pool.map(rows, range(0, n, TILE_ROWS)))
    return out


def _embedded(problem: Problem, X: Any, left: bool) -> Any:
    """Rows in float64. For rbf with two more columns, so that one product gives the exponent −γ‖a − b‖²:

    (2γa, −γ‖a‖², 1)·(b, 1, −γ‖b‖²)
    """
    X = X.astype(np.float64)
    sparse = sp.issparse(X) and X.shape[1] > DENSE_WIDTH and problem.kernel != "laplacian"
    if sp.issparse(X) and not sparse:
        X = X.toarray()
    if problem.kernel != "rbf":
        return X
    squares = X.multiply(X).sum(axis=1) if sparse else np.einsum("ij,ij->i", X, X)
    norm = -problem.gamma * np.asarray(squares).reshape(-1, 1)
    one = np.ones_like(norm)
    columns = [2.0 * problem.gamma * X, norm, one] if left else [X, one, norm]
    return sp.hstack(columns, format="csr") if sparse else np.hstack(columns)


def _kernel(problem: Problem, A: Any, B: Any) -> np.ndarray:
    if problem.kernel == "laplacian":
        return np.exp(-problem.gamma * cdist(A, B, "cityblock"))
    product = A @ B.T
    K = product.toarray() if sp.issparse(product) else product
    if problem.kernel == "rbf":
        return np.exp(np.minimum(K, 0.0, out=K), out=K)
    if problem.kernel == "linear":
        return K
    K = problem.gamma * K + problem.coef0
    if problem.kernel == "poly":
        return K**problem.degree
    if problem.kernel == "sigmoid":
        return np.tanh(K)
    raise ValueError(f"kernel={problem.kernel!r} is unknown to the evaluator: add it to objectives._kernel")


# ---- one function per formulation: (problem, …) → primal, primal with the best intercept, dual, infeasible


def _values(
    problem: Problem, data: Data, model: KernelModel, vectors: Any, coef: np.ndarray, feasible: np.ndarray, threads: int
) -> tuple[np.ndarray, float, float]:
    """f without intercept on the training rows, ‖w‖², and ‖w‖² of the feasible coefficients."""
    both = np.column_stack([coef, feasible])
    f = expansion(problem, data.X_train, vectors, both, threads)
    at_support = f[model.support] if model.support is not None else expansion(problem, vectors, vectors, both, threads)
    return f[:, 0], float(coef @ at_support[:, 0]), float(feasible @ at_support[:, 1])


def _svc(problem: Problem, data: Data, model: KernelModel, y: Any, coef: Any, vectors: Any, threads: int) -> Any:
    C = problem.C
    feasible, moved = coef, None
    if model.support is not None:
        sign = y[model.support]
        feasible = sign * np.clip(sign * coef, 0.0, C)
        if problem.fit_intercept:
            feasible = _balanced(feasible)
        moved = float(np.max(np.abs(feasible - coef), initial=0.0)) / C
    f, norm, norm_feasible = _values(problem, data, model, vectors, coef, feasible, threads)

    def primal(b: float) -> float:
        return 0.5 * norm + C * float(np.maximum(0.0, 1.0 - y * (f + b)).sum())

    # The slope of the sum over b starts at −(number of positives) and rises by one at each point y − f.
    best = _kth(y - f, int((y > 0).sum())) if problem.fit_intercept else 0.0
    dual = None if moved is None else float(np.abs(feasible).sum()) - 0.5 * norm_feasible
    return primal(model.intercept), min(primal(best), primal(model.intercept)), dual, moved


def _svr(problem: Problem, data: Data, model: KernelModel, y: Any, coef: Any, vectors: Any, threads: int) -> Any:
    C, epsilon = problem.C, problem.epsilon
    feasible = np.clip(coef, -C, C)
    if problem.fit_intercept:
        feasible = _balanced(feasible)
    moved = float(np.max(np.abs(feasible - coef), initial=0.0)) / C
    f, norm, norm_feasible = _values(problem, data, model, vectors, coef, feasible, threads)
    error = y - f

    def primal(b: float) -> float:
        return 0.5 * norm + C * float(np.maximum(0.0, np.abs(error - b) - epsilon).sum())

    best = _kth(np.concatenate([error - epsilon, error + epsilon]), len(y)) if problem.fit_intercept else 0.0
    dual = float(y[model.support] @ feasible) - epsilon * float(np.abs(feasible).sum()) - 0.5 * norm_feasible
    return primal(model.intercept), min(primal(best), primal(model.intercept)), dual, moved


def _nu_svc(problem: Problem, data: Data, model: KernelModel, y: Any, coef: Any, vectors: Any, threads: int) -> Any:
    n, nu = len(y), problem.nu
    scale = nu / max(float(np.abs(coef).sum()), 1e-300)  # models are stored with margin 1; here Σα = ν
    coef = coef * scale
    sign = y[model.support]
    alpha = np.clip(sign * coef, 0.0, 1.0 / n)
    for side in (sign > 0, sign < 0):
        alpha[side] = _with_sum(alpha[side], 1.0 / n, nu / 2)
    feasible = sign * alpha
    moved = float(np.max(np.abs(feasible - coef), initial=0.0)) * n
    f, norm, norm_feasible = _values(problem, data, model, vectors, coef, feasible, threads)
    # Separable in ρ − b and ρ + b: each side's best margin leaves ν/2 of all rows below it.
    margins = [y[side] * f[side] for side in (y > 0, y < 0)]
    rho_plus, rho_minus = (_kth(m, int(np.ceil(nu * n / 2 - 1e-9))) for m in margins)
    hinge = sum(np.maximum(0.0, rho - m).sum() for rho, m in zip((rho_plus, rho_minus), margins))
    best = 0.5 * norm - nu * (rho_plus + rho_minus) / 2 + hinge / n
    own = y * (f + scale * model.intercept)
    rho = _kth(own, int(np.ceil(nu * n - 1e-9)))
    primal = 0.5 * norm - nu * rho + np.maximum(0.0, rho - own).sum() / n
    return float(primal), float(best), -0.5 * norm_feasible, moved


def _nu_svr(problem: Problem, data: Data, model: KernelModel, y: Any, coef: Any, vectors: Any, threads: int) -> Any:
    n, C, nu = len(y), problem.C, problem.nu
    feasible = _balanced(np.clip(coef, -C, C))
    feasible = feasible * min(1.0, C * nu * n / max(float(np.abs(feasible).sum()), 1e-300))
    moved = float(np.max(np.abs(feasible - coef), initial=0.0)) / C
    f, norm, norm_feasible = _values(problem, data, model, vectors, coef, feasible, threads)
    error = y - f
    k = int(np.ceil(nu * n / 2 - 1e-9))
    high, low = -_kth(-error, k), _kth(error, k)  # the tube's edges: ν/2 of the rows beyond each
    outside = np.maximum(0.0, error - high).sum() + np.maximum(0.0, low - error).sum()
    best = 0.5 * norm + C * (outside + n * nu * (high - low) / 2)
    distance = np.abs(error - model.intercept)
    epsilon = max(0.0, -_kth(-distance, int(np.ceil(nu * n - 1e-9))))
    primal = 0.5 * norm + C * (n * nu * epsilon + np.maximum(0.0, distance - epsilon).sum())
    return float(primal), float(best), float(y[model.support] @ feasible) - 0.5 * norm_feasible, moved


def _one_class(problem: Problem, data: Data, model: KernelModel, y: Any, coef: Any, vectors: Any, threads: int) -> Any:
    n, nu = data.X_train.shape[0], problem.nu
    scale = nu * n / max(float(coef.sum()), 1e-300)
    coef = coef * scale
    feasible = _with_sum(np.clip(coef, 0.0, 1.0), 1.0, nu * n)
    moved = float(np.max(np.abs(feasible - coef), initial=0.0))
    f, norm, norm_feasible = _values(problem, data, model, vectors, coef, feasible, threads)

    def primal(rho: float) -> float:
        return 0.5 * norm - n * nu * rho + float(np.maximum(0.0, rho - f).sum())

    best = _kth(f, int(np.ceil(nu * n - 1e-9)))
    return primal(-model.intercept * scale), primal(best), -0.5 * norm_feasible, moved


_FORMULATIONS: dict[str, Callable[..., Any]] = {
    "svc": _svc,
    "svr": _svr,
    "nu_svc": _nu_svc,
    "nu_svr": _nu_svr,
    "one_class": _one_class,
}


def _evaluate_linear(problem: Problem, data: Data, model: LinearModel) -> Evaluation:
    w = np.asarray(model.w, dtype=np.float64).ravel()
    y = np.asarray(data.y_train, dtype=np.float64)
    f = _times(data.X_train, w)
    power = {"hinge": 1, "squared_hinge": 2}[problem.loss]

    def primal(b: float) -> float:
        penalty = 0.5 * b * b if model.penalised else 0.0
        return 0.5 * float(w @ w) + penalty + problem.C * float((np.maximum(0.0, 1.0 - y * (f + b)) ** power).sum())

    own = primal(model.intercept)
    free_hinge = problem.fit_intercept and not model.penalised and problem.loss == "hinge"
    best = min(own, primal(_kth(y - f, int((y > 0).sum())))) if free_hinge else own
    decision = _times(data.X_test, w) + model.intercept
    score, auc = _score(problem, data.y_test, decision), _auc(data.y_test, decision)
    return Evaluation(own, best, None, None, score, auc, int(np.count_nonzero(w)), model.penalised)


def _times(X: Any, w: np.ndarray) -> np.ndarray:
    """X·w with float64 products, a block of rows at a time (float32 X is not copied as a whole)."""
    return np.concatenate([_product(X[i : i + 65536], w) for i in range(0, X.shape[0], 65536)])


def _product(block: Any, w: np.ndarray) -> np.ndarray:
    return np.asarray((block.astype(np.float64) if block.dtype != np.float64 else block) @ w)


# ---- small helpers


def _kth(values: np.ndarray, k: int) -> float:
    """The k-th smallest value, k counted from 1 and kept inside the range."""
    k = min(max(k, 1), len(values)) - 1
    return float(np.partition(values, k)[k])


def _balanced(coef: np.ndarray) -> np.ndarray:
    """Signed coefficients with sum zero: the heavier sign is scaled down."""
    up, down = coef[coef > 0].sum(), -coef[coef < 0].sum()
    if up == down:
        return coef
    heavier = coef > 0 if up > down else coef < 0
    return np.where(heavier, coef * (min(up, down) / max(up, down)), coef)


def _with_sum(alpha: np.ndarray, upper: float, target: float) -> np.ndarray:
    """alpha scaled inside [0, upper] to a given sum; entries that reach the bound stay there."""
    for _ in range(50):
        total = alpha.sum()
        if total >= target * (1 - 1e-15) or not ((alpha > 0) & (alpha < upper)).any():
            break
        free = (alpha > 0) & (alpha < upper)
        alpha = np.where(free, np.minimum(upper, alpha * (1 + (target - total) / alpha[free].sum())), alpha)
    return alpha * min(1.0, target / max(float(alpha.sum()), 1e-300))


def _score(problem: Problem, y: np.ndarray, values: np.ndarray) -> float | None:
    """Accuracy of labels or decision values for classes, R² for regression."""
    if len(y) == 0:
        return None
    if problem.task in ("svr", "nu_svr"):
        residual, total = ((y - values) ** 2).sum(), ((y - np.mean(y)) ** 2).sum()
        return float(1.0 - residual / max(float(total), 1e-300))
    if set(np.unique(y)) <= {-1, 1}:
        return float(np.mean((values > 0) == (y > 0)))
    return float(np.mean(values == y))


def _auc(y: np.ndarray, values: np.ndarray) -> float | None:
    """Area under the ROC curve: how often a positive row has the larger value than a negative one, ties half."""
    positive = y > 0
    count = int(positive.sum())
    if not set(np.unique(y)) <= {-1, 1} or count in (0, len(y)):
        return None
    ranks = rankdata(values)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(y) - count)))
