"""The one neutral judge: primal and dual objective and test score of any model, in float64, from its coefficients.

Nothing a solver says about itself is used. With f = Σ_j coef_j K(·, x_j) + b and w its part in the feature space:

    svc        P = ½‖w‖² + C Σ max(0, 1 − y f)          D = Σ α − ½‖w‖²             0 ≤ α ≤ C, Σ yα = 0 (if b)
    svr        P = ½‖w‖² + C Σ max(0, |y − f| − ε)      D = yᵀβ − ε Σ|β| − ½‖w‖²    |β| ≤ C,   Σ β = 0
    nu_svc     P = ½‖w‖² − νρ + 1/n Σ max(0, ρ − y f)   D = −½‖w‖²                  0 ≤ α ≤ 1/n, Σ_{±} α = ν/2
    nu_svr     P = ½‖w‖² + C (nνε + Σ max(0, |y−f|−ε))  D = yᵀβ − ½‖w‖²             |β| ≤ C, Σβ = 0, Σ|β| ≤ Cνn
    one_class  P = ½‖w‖² − nνρ + Σ max(0, ρ − f)        D = −½‖w‖²                  0 ≤ α ≤ 1, Σ α = νn
    linear     P = ½‖w‖² (+ ½b² where the solver penalises b) + C Σ loss(1 − y f)
    linear_l1  P = ‖w‖₁ (+ |b| where the solver penalises b) + C Σ loss(1 − y f)
    linear_svr P = ½‖w‖² (+ ½b² where the solver penalises b) + C Σ loss(|y − f| − ε)

Machines of several classes are sums of such problems: over all pairs (pairs.py; svc and nu_svc), or over each class
against the rest (linear).

P is minimised and D is at most the optimum for every feasible point. Float32 solvers leave their box or equality by
rounding, and an infeasible point could show a D above the optimum; so a dual point is first made feasible (clipped to
its box, then its heavier side scaled down) and `infeasible` says how much that moved it. P is given twice: with the
solver's own intercept, and with the best intercept for its w, which no rule for b can beat. ρ, and ε of nu_svr, are not
part of a model: P uses the best ones.

Cost: one pass over the n × |SV| kernel block in tiles of a few MB per thread; nothing of size n × |SV| is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from benchmarks import pairs
from benchmarks.base import Data, KernelModel, LinearModel, Model, PairsModel, Predictions, Problem
from benchmarks.formulations import FORMULATIONS, Image, kth
from benchmarks.kernels import expansion, times


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
    mse: float | None = None  # mean squared error on the test rows, of regression

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
    if problem.task not in FORMULATIONS:
        raise ValueError(f"no objective is known for a kernel model of task={problem.task!r}")
    if isinstance(model, PairsModel):
        return _evaluate_pairs(problem, data, model, threads, score_only)
    return _evaluate_kernel(problem, data, model, threads, score_only)


def _evaluate_kernel(problem: Problem, data: Data, model: KernelModel, threads: int, score_only: bool) -> Evaluation:
    coef = np.asarray(model.coef, dtype=np.float64).ravel()
    vectors = model.vectors if model.support is None else data.X_train[model.support]
    decision = expansion(problem, data.X_test, vectors, coef, threads)[:, 0] + model.intercept
    score = None if problem.task == "one_class" else _score(problem, data.y_test, decision)
    regression = problem.task in ("svr", "nu_svr") and len(data.y_test) > 0
    mse = float(np.mean((data.y_test - decision) ** 2)) if regression else None
    if score_only:
        return Evaluation(score=score, n_support=int(np.count_nonzero(coef)), mse=mse)
    y = np.asarray(data.y_train, dtype=np.float64)
    make_point, make_values = FORMULATIONS[problem.task]
    own = None if model.support is None else y[model.support]
    point = make_point(problem, data.X_train.shape[0], own, coef)
    both = np.column_stack([point.coef, point.feasible])
    f = expansion(problem, data.X_train, vectors, both, threads)
    at = f[model.support] if model.support is not None else expansion(problem, vectors, vectors, both, threads)
    image = Image(f[:, 0], float(point.coef @ at[:, 0]), float(point.feasible @ at[:, 1]))
    values = make_values(problem, y, own, point, image, model.intercept)
    auc = _auc(data.y_test, decision) if problem.task in ("svc", "nu_svc") else None
    return Evaluation(*values, point.moved, score, auc, int(np.count_nonzero(coef)), mse=mse)


def _evaluate_pairs(problem: Problem, data: Data, model: PairsModel, threads: int, score_only: bool) -> Evaluation:
    said = pairs.predictions(problem, data, model, data.X_test, threads)
    count = int(np.count_nonzero(np.any(np.asarray(model.coef) != 0, axis=0)))
    score = _score(problem, data.y_test, said)
    if score_only:
        return Evaluation(score=score, n_support=count)
    return Evaluation(*pairs.totals(problem, data, model, threads), score=score, n_support=count)


def _evaluate_linear(problem: Problem, data: Data, model: LinearModel) -> Evaluation:
    """Of two classes, or (w has a row per class) the sum over all classes of that class against the rest."""
    w = np.atleast_2d(np.asarray(model.w, dtype=np.float64))
    b = np.broadcast_to(np.asarray(model.intercept, dtype=np.float64), len(w))
    f, decision = times(data.X_train, w.T), times(data.X_test, w.T) + b
    classes = np.unique(data.y_train)
    if len(w) == 1:
        signs, said = [np.asarray(data.y_train, dtype=np.float64)], decision[:, 0]
    elif len(w) == len(classes):
        signs, said = [np.where(data.y_train == label, 1.0, -1.0) for label in classes], classes[decision.argmax(axis=1)]
    else:
        raise ValueError(f"{len(w)} vectors w for {len(classes)} classes")
    both = [_linear(problem, model.penalised, y, f[:, i], w[i], float(b[i])) for i, y in enumerate(signs)]
    own, best = (float(sum(values)) for values in zip(*both))
    auc = _auc(data.y_test, said) if len(w) == 1 and problem.task != "linear_svr" else None
    score = _score(problem, data.y_test, said)
    return Evaluation(own, best, None, None, score, auc, int(np.count_nonzero(w)), model.penalised)


def _linear(problem: Problem, penalised: bool, y: np.ndarray, f: np.ndarray, w: np.ndarray, b: float) -> tuple[float, float]:
    """Primal with the intercept b and with the best one (where finding it is no problem of its own)."""
    power = 2 if problem.loss.startswith("squared_") else 1
    regression, one_norm = problem.task == "linear_svr", problem.task == "linear_l1"

    def primal(b: float) -> float:
        norms = [abs(w).sum(), abs(b)] if one_norm else [0.5 * float(w @ w), 0.5 * b * b]
        short = abs(y - f - b) - problem.epsilon if regression else 1.0 - y * (f + b)
        return float(norms[0] + (norms[1] if penalised else 0.0) + problem.C * (np.maximum(0.0, short) ** power).sum())

    own = primal(b)
    free_hinge = problem.fit_intercept and not penalised and problem.loss == "hinge"
    return own, min(own, primal(kth(y - f, int((y > 0).sum())))) if free_hinge else own


def _score(problem: Problem, y: np.ndarray, values: np.ndarray) -> float | None:
    """Accuracy of labels or decision values for classes, R² for regression."""
    if len(y) == 0:
        return None
    if problem.task in ("svr", "nu_svr", "linear_svr"):
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
