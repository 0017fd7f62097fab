"""Judge a fitted machine from its public attributes: what it says of itself, computed again from X, y and its numbers.

Works on anything with scikit-learn's attributes, scikit-learn's own machines included. A machine of several problems
(pairs of classes, one class against the rest) is judged by their sum.

    dual_coef_   coefficients of support vectors: alpha is read back from them, and `certify` judges it
    coef_        weights of the features, no alpha: the objective is that of the weights, the lower bound that of the best
                 alpha that a plain quasi-Newton method finds near them. Valid whatever it finds, but not always tight
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from maxmargin.problem import formulations
from maxmargin.problem.certificates import Certificate, certify, decision_values, kernel_block, smallest_loss
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel, dense64, resolve_gamma

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
STEPS = 500  # of the search for a lower bound of linear machines


def certify_fit(estimator: Any, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Certificate:
    """Judge a fitted machine, or a pipeline that ends in one, in plain NumPy: no code of the engine that fitted it.

    Parameters
    ----------
    estimator : fitted machine, of ours or of scikit-learn's
        SVC and NuSVC of any number of classes, SVR, NuSVR, OneClassSVM, DCSVC, DCSVR (a level of divide and conquer is
        judged as an answer to the whole problem, with all its support vectors), LinearSVC (one-vs-rest),
        LinearSVR.
    X, y, sample_weight
        Those of its fit. Class weights are factors of the samples in every problem (LIBLINEAR, with several classes,
        weighs a class's samples in its own problem only: that is another objective).

    Returns
    -------
    Certificate
        primal, dual, gap, relative_gap, violation, infeasibility. Of several problems (pairs of classes) the sum, or the
        worst.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.svm import SVC
    >>> from maxmargin import certify_fit
    >>> X, y = make_classification(random_state=0)
    >>> certify_fit(SVC(tol=1e-8).fit(X, y), X, y).relative_gap < 1e-6
    True
    """
    if hasattr(estimator, "steps"):  # a pipeline: judge its last step on what reaches that
        X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
        return certify_fit(estimator[-1], X, y, sample_weight)
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    n = X.shape[0]
    weight = np.ones(n) if sample_weight is None else np.broadcast_to(np.asarray(sample_weight, np.float64), (n,))
    weight = np.maximum(weight, 0)
    if hasattr(estimator, "dual_coef_") and hasattr(estimator, "support_"):
        if np.min(estimator.support_, initial=0) < 0:  # models/libsvm.py
            raise ValueError(
                "certify_fit needs the training rows of the support vectors, which a LIBSVM model file does not name: set "
                "support_ to them and the parameters to those of the training, or fit again"
            )
        return _total([*_kernel_certificates(estimator, X, y, weight)])
    params = _parameters(estimator)
    if hasattr(estimator, "coef_") and "C" in params and (hasattr(estimator, "classes_") or "epsilon" in params):
        return _total([*_linear_certificates(estimator, X, y, weight)])
    name = type(estimator).__name__
    reason = (
        "its support vectors are no samples of X and it has no dual; objective_ is the objective of what it predicts"
        if hasattr(estimator, "dual_coef_")
        else "it has neither support_ and dual_coef_ nor the coef_ and C of a linear machine"
    )
    raise ValueError(f"certify_fit cannot judge {name}: {reason}")


def _parameters(estimator: Any) -> dict[str, Any]:
    """With those that a machine has chosen by itself."""
    return {**estimator.get_params(deep=False), **getattr(estimator, "best_params_", {})}


def _total(parts: Sequence[Certificate]) -> Certificate:
    if len(parts) == 1:
        return parts[0]
    return Certificate(
        bounds=max(p.bounds for p in parts),
        equality=max(p.equality for p in parts),
        primal=sum(p.primal for p in parts),
        dual=sum(p.dual for p in parts),
        gap=sum(p.gap for p in parts),
        violation=max(p.violation for p in parts),
        multipliers=np.concatenate([p.multipliers for p in parts]),
    )


# ---- kernel machines ------------------------------------------------------------------------------------------------


def _kernel_certificates(estimator: Any, X: Any, y: Any, weight: FloatArray) -> Iterator[Certificate]:
    kernel = _kernel_of(estimator, _parameters(estimator), X, weight)
    for k, (rows, sign, coef, intercept) in enumerate(_problems(estimator, X.shape[0], y)):
        some = X[rows] if kernel.name != "precomputed" else X[rows][:, rows]
        margin = float(np.ravel(estimator.margin_)[k]) if hasattr(estimator, "margin_") else None
        yield _judged(estimator, kernel, some, y, weight, rows, sign, coef, intercept, margin)


def _problems(
    estimator: Any, n: int, y: Any
) -> Iterator[tuple[IntArray, FloatArray | None, FloatArray, float]]:
    """(rows of X, their ±1 labels or None, one coefficient per row, intercept) of each problem of the fit."""
    dual_coef, support = dense64(estimator.dual_coef_), np.asarray(estimator.support_)
    intercept = np.ravel(estimator.intercept_)
    every = np.arange(n)
    classes = getattr(estimator, "classes_", None)
    spread = np.zeros((len(dual_coef), n))
    spread[:, support] = dual_coef
    if classes is None:
        yield every, None, spread[0], float(intercept[0])
        return
    label = _class_numbers(estimator, y)
    if len(classes) == 2:
        yield every, np.where(label == 1, 1.0, -1.0), spread[0], float(intercept[0])
    elif len(dual_coef) == len(classes):  # one class against the rest
        for c in range(len(classes)):
            yield every, np.where(label == c, 1.0, -1.0), spread[c], float(intercept[c])
    else:  # scikit-learn's layout: class i's coefficients against j stand in row j − 1, class j's against i in row i
        for k, (i, j) in enumerate(combinations(range(len(classes)), 2)):
            rows = np.flatnonzero((label == i) | (label == j))
            first = label[rows] == i
            coef = np.where(first, spread[j - 1, rows], spread[i, rows])
            yield rows, np.where(first, 1.0, -1.0), coef, float(intercept[k])


def _class_numbers(estimator: Any, y: Any) -> IntArray:
    """The number of each row's class; of a row whose class has no weight, and is not in classes_, any: its bound is 0."""
    classes = estimator.classes_
    return np.asarray(np.minimum(np.searchsorted(classes, np.asarray(y).ravel()), len(classes) - 1))


def _judged(
    estimator: Any, kernel: Kernel, X: Any, y: Any, weight: FloatArray, rows: IntArray, sign: FloatArray | None,
    coef: FloatArray, intercept: float, margin: float | None,
) -> Certificate:  # fmt: skip
    """One problem. `margin` is ν-SVC's, where the machine publishes it, as ours do with ν-SVR's tube."""
    params, some = _parameters(estimator), weight[rows]
    if sign is not None:
        label = _class_numbers(estimator, y)[rows]
        factors = np.asarray(getattr(estimator, "class_weight_", np.ones(len(estimator.classes_))), dtype=np.float64)
        if "nu" in params and len(set(factors[label])) > 1:
            if margin is None:
                raise ValueError(
                    "certify_fit cannot judge a ν-SVC with class weights whose attributes do not tell the margin at which "
                    "they were weighed (margin_); judge the SVC(C=1/margin) that it stands for"
                )
            del params["nu"]
            params["C"] = 1.0 / margin
        some = some * factors[label]
    target = None if sign is not None or y is None else np.asarray(y, dtype=np.float64).ravel()[rows]
    qp, alpha, multipliers = _as_qp(params, sign, target, some, coef, intercept, margin)
    gram = kernel_block(kernel, X)
    if multipliers is None:
        if hasattr(estimator, "epsilon_"):
            tube = float(estimator.epsilon_)
        else:  # kept to itself: the best one for the published intercept
            sample = np.arange(2 * qp.n) % qp.n
            error = qp.sign * (qp.center - decision_values(gram, coef)[sample] - intercept)
            tube = smallest_loss(np.ones(2 * qp.n), error, qp.upper, float(qp.targets[0] - qp.targets[1]))
        multipliers = np.array([intercept + tube, intercept - tube])
    return certify(qp, gram, alpha, multipliers)


def _as_qp(
    params: dict[str, Any], sign: FloatArray | None, target: FloatArray | None, weight: FloatArray, coef: FloatArray,
    intercept: float, margin: float | None,
) -> tuple[QP, FloatArray, FloatArray | None]:  # fmt: skip
    """QP, alpha and multipliers (None: ν-SVR's, of which the tube is missing) behind coefficients and an intercept."""
    with_intercept = params.get("fit_intercept", True)
    published = np.array([intercept] if with_intercept else [])
    if sign is not None:
        if "nu" not in params:
            upper = formulations.hard_margin(params["C"]) * weight
            return formulations.c_svc(sign, upper, with_intercept), sign * coef, published
        qp = formulations.nu_svc(sign, params["nu"], weight)
        if margin is None:
            margin = params["nu"] * weight.sum() / max(np.abs(coef).sum(), np.finfo(float).tiny)
        rho = margin if margin > 0 else 1.0  # fits divide by it
        return qp, sign * coef * rho, rho * intercept + margin * np.array([-1.0, 1.0])
    if "C" not in params:
        return formulations.one_class(params["nu"], weight), coef, published
    assert target is not None
    split = np.maximum(np.concatenate([coef, -coef]), 0)
    if "nu" not in params:
        upper = formulations.hard_margin(params["C"]) * weight
        return formulations.epsilon_svr(target, params["epsilon"], upper, with_intercept), split, published
    qp = formulations.nu_svr(target, params["nu"], formulations.hard_margin(params["C"]), weight)
    # When the tube closes (ε = 0), a and a* are both non-zero, which their difference does not show: what is missing
    # from Σ(a + a*) is spread over the room that is left, equally on both sides.
    room = qp.upper[: qp.n] - np.abs(coef)
    missing = 0.5 * (qp.targets[0] - qp.targets[1] - split.sum())
    share = np.clip(missing / room.sum(), 0, 1) if room.sum() > 0 else 0.0
    return qp, split + np.tile(share * room, 2), None


def _kernel_of(estimator: Any, params: dict[str, Any], X: Any, weight: FloatArray) -> Kernel:
    kernel = params.get("kernel", "linear")
    if callable(kernel):
        return Kernel("callable", function=kernel)
    gamma = getattr(estimator, "gamma_", getattr(estimator, "_gamma", None))  # resolved by the fit, or by our rule
    if gamma is None:
        every = np.arange(X.shape[0])
        gamma = 1.0 if kernel == "precomputed" else resolve_gamma(params.get("gamma", "scale"), X, every, weight)
    return Kernel(kernel, float(gamma), float(params.get("coef0", 0.0)), params.get("degree", 3))


# ---- linear machines ------------------------------------------------------------------------------------------------


def _linear_certificates(estimator: Any, X: Any, y: Any, weight: FloatArray) -> Iterator[Certificate]:
    """One problem per class (two classes: one), ½‖w‖² + Σ upper·loss(t − s(⟨x, w⟩ + b)), t = 1.

    Regression: each sample twice, s = ±1 and t = ±y − ε.
    """
    params = _parameters(estimator)
    scaling = params.get("intercept_scaling", 1.0) if params.get("fit_intercept", True) else 0.0
    x = X.astype(np.float64)
    if scaling:
        constant = np.full((x.shape[0], 1), scaling)
        x = sp.hstack([x, constant], format="csr") if sp.issparse(x) else np.hstack([x, constant])
    weights = np.atleast_2d(estimator.coef_)
    squared = str(params["loss"]).startswith("squared")
    if hasattr(estimator, "classes_"):
        problems = _one_against_rest(estimator, params, y, weight)
    else:
        t, one = np.asarray(y, np.float64).ravel(), np.ones(len(weight))
        x = sp.vstack([x, x], format="csr") if sp.issparse(x) else np.vstack([x, x])
        target = np.concatenate([t, -t]) - params["epsilon"]
        problems = iter([(np.concatenate([one, -one]), np.tile(params["C"] * weight, 2), target)])
    for w, b, (sign, upper, target) in zip(weights, np.broadcast_to(estimator.intercept_, len(weights)), problems):
        point = np.append(w, b / scaling) if scaling else np.asarray(w, np.float64)
        if params.get("penalty", "l2") == "l1":
            yield _judged_one_norm(x, sign, upper, point, float(b), free=scaling is None)
        else:
            yield _judged_weights(x, sign, upper, target, point, float(b), squared, free=scaling is None)


def _judged_one_norm(x: Any, sign: FloatArray, upper: FloatArray, point: FloatArray, b: float, free: bool) -> Certificate:
    """‖w‖₁ and the squared hinge, against the duals of the point itself, scaled until no |Σ alpha_i s_i x_ij| exceeds 1."""
    short = np.maximum(1 - sign * (np.asarray(x @ point).ravel() + (b if free else 0.0)), 0)
    primal = float(np.abs(point).sum() + upper @ short**2)
    alpha = 2 * upper * short
    if free:
        up, down = float(alpha[sign > 0].sum()), float(alpha[sign < 0].sum())
        alpha = np.where(sign > 0, alpha * min(1.0, down / max(up, 1e-300)), alpha * min(1.0, up / max(down, 1e-300)))
    most = float(np.abs(np.asarray(x.T @ (sign * alpha)).ravel()).max(initial=0.0))
    mass, bend = float(alpha.sum()), float((alpha[upper > 0] ** 2 / (4 * upper[upper > 0])).sum())
    scale = min(1 / most if most > 0 else np.inf, mass / (2 * bend) if bend > 0 else 0.0)
    dual = scale * mass - scale**2 * bend
    return Certificate(
        bounds=0.0, equality=abs(float(sign @ alpha)) if free else 0.0, primal=primal, dual=dual, gap=primal - dual,
        violation=(primal - dual) / max(primal, np.finfo(float).tiny), multipliers=np.array([b] if free else []),
    )  # fmt: skip


def _one_against_rest(
    estimator: Any, params: dict[str, Any], y: Any, weight: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """(signs, upper bounds, targets) of each problem of LinearSVC."""
    classes = estimator.classes_
    if params.get("multi_class", "ovr") != "ovr" and len(classes) > 2:
        raise ValueError("certify_fit judges LinearSVC's multi_class='ovr', not the joint problem of 'crammer_singer'")
    label = _class_numbers(estimator, y)
    upper = params["C"] * weight * _class_factors(params.get("class_weight"), classes, label, weight)[label]
    for positive in [1] if len(classes) == 2 else range(len(classes)):
        yield np.where(label == positive, 1.0, -1.0), upper, np.ones(len(weight))


def _class_factors(class_weight: Any, classes: NDArray[Any], label: IntArray, weight: FloatArray) -> FloatArray:
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, dict):
        return np.array([float(class_weight.get(c, 1.0)) for c in classes.tolist()])
    mass = np.bincount(label, weights=weight, minlength=len(classes))
    return np.asarray(mass.sum() / (len(classes) * mass))


def _judged_weights(
    x: Any, sign: FloatArray, upper: FloatArray, target: FloatArray, point: FloatArray, b: float, squared: bool, free: bool
) -> Certificate:
    """Weights against the best alpha found; `x` has the constant feature of a penalised intercept."""
    short = np.maximum(target - sign * (np.asarray(x @ point).ravel() + (b if free else 0.0)), 0)
    primal = float(0.5 * point @ point + upper @ (short**2 if squared else short))
    counted = upper > 0
    z, top = x[counted], (np.full(int(counted.sum()), np.inf) if squared else upper[counted])
    s, ridge = sign[counted], (0.5 / upper[counted] if squared else np.zeros(int(counted.sum())))
    start = 2 * upper[counted] * short[counted] if squared else np.where(short[counted] > 0, top, 0.0)
    repair: Callable[[FloatArray], FloatArray] = lambda a: a  # noqa: E731
    if free:
        most = np.where(np.isfinite(top), top, 1e3 * float(start.max(initial=1.0)))
        repair = formulations.c_svc(s, most).repaired
    alpha, dual = _lower_bound(z, s, target[counted], top, ridge, start, repair, free)
    return Certificate(
        bounds=float(np.maximum(np.maximum(-alpha, alpha - top), 0).max(initial=0)),
        equality=abs(float(s @ alpha)) if free else 0.0,
        primal=primal, dual=dual, gap=primal - dual, violation=(primal - dual) / max(primal, np.finfo(float).tiny),
        multipliers=np.array([b] if free else []),
    )  # fmt: skip


def _lower_bound(
    z: Any, s: FloatArray, t: FloatArray, top: FloatArray, ridge: FloatArray, start: FloatArray,
    repair: Callable[[FloatArray], FloatArray], free: bool,
) -> tuple[FloatArray, float]:  # fmt: skip
    """max Σta − ½‖zᵀ(s∘a)‖² − ½ Σ ridge a² over 0 ≤ a ≤ top, with Σ s a = 0 if free, by L-BFGS-B from `start`."""
    from scipy.optimize import minimize

    def value(a: FloatArray, pull: float = 0.0) -> tuple[float, FloatArray]:
        w = np.asarray(z.T @ (s * a)).ravel()
        off = float(s @ a)
        loss = 0.5 * float(w @ w) + 0.5 * float(ridge @ a**2) - float(t @ a) + 0.5 * pull * off**2
        return loss, s * np.asarray(z @ w).ravel() + ridge * a - t + pull * off * s

    norms = np.asarray(z.multiply(z).sum(axis=1)).ravel() if sp.issparse(z) else np.square(z).sum(axis=1)
    pull = 10 * float(norms.mean()) if free else 0.0
    found = minimize(
        value, start, args=(pull,), jac=True, method="L-BFGS-B", bounds=np.stack([np.zeros_like(top), top], axis=1),
        options={"maxiter": STEPS, "ftol": 1e-14, "gtol": 1e-10},
    )  # fmt: skip
    points = [repair(np.asarray(p)) for p in (start, found.x)]
    values = [-value(p)[0] for p in points]
    best = int(np.argmax(values))
    return points[best], values[best]
