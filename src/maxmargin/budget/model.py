"""A budgeted kernel model as arrays: its options, coefficients, decision values and norms.

    f_c(x) = Σ_j coef[c, j]·exp(-gamma·|x - centres[j]|²) + intercept[c]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

FloatArray = NDArray[np.float64]
NORM_BLOCK = 1 << 21  # kernel values at a time where only their sum is wanted: 16 MB


@dataclass(frozen=True)
class Options:
    """What training must know. `visits` is N; `outputs` is 1 for two classes, else their number."""

    budget: int
    features: int
    outputs: int
    gamma: float
    C: float
    visits: int
    maintenance: str = "merge"
    merge_search: str = "lookup-wd"
    merge_table: str = "scaled"
    grid_size: int = 400
    drop_useless: bool = True
    intercept: bool = False
    averaging: bool = True
    audit: bool = False
    double: bool = False

    @property
    def lam(self) -> float:
        """lambda = 1/(N·C)"""
        return 1.0 / (self.visits * self.C)


def model_coefficients(state: dict[str, Any], lam: float, averaging: bool) -> tuple[FloatArray, FloatArray]:
    """alpha (outputs × support vectors) and intercepts: of the last iterate, or of the average of the recent ones."""
    time, start = state["clock"][0], state["clock"][1]
    beta, bias = state["beta"], state["bias"]
    if time == 0:
        return np.zeros_like(beta), np.zeros_like(bias)
    if not averaging:
        return beta / (lam * time), bias / (lam * time)
    scale = 2 / (lam * (time * (time + 1) - start * (start + 1)))
    window = state["windows"][: len(beta)]
    return (window[:, :-1] + beta * time) * scale, (window[:, -1] + bias * time) * scale


def refitted_state(state: dict[str, Any], coef: FloatArray, intercept: FloatArray, lam: float) -> dict[str, Any]:
    """The state as if all recent iterates, the last one and those in the averages, had been this model."""
    time, *starts = state["clock"][:3]
    model = np.column_stack([coef, intercept])
    last = model * (lam * time)
    sums = [model * (lam * (time * (time + 1) - start * (start + 1)) / 2) for start in starts]
    beta, bias = last[:, :-1].copy(), last[:, -1].copy()
    # With two classes partners are of one sign, and a refit may turn a sign; with more, their angle is looked at anyway.
    label = (beta[0] > 0).astype(np.int32) if len(beta) == 1 else state["label"]
    windows = np.vstack([total - last * time for total in sums])
    return {**state, "beta": beta, "bias": bias, "label": label, "windows": windows}


def averaged_state(states: list[dict[str, Any]], lam: float, averaging: bool) -> dict[str, Any]:
    """One model of all their support vectors: the mean of their functions, each counted by the steps that it took."""
    steps = np.array([state["clock"][0] for state in states])
    share, total = steps / steps.sum(), float(steps.sum())
    models = [model_coefficients(state, lam, averaging) for state in states]
    together = {name: np.concatenate([state[name] for state in states]) for name in ("centres", "label", "born")}
    together["clock"] = np.array([total, 0.0, 0.0, np.floor(1.05 * total) + 1, 0.0])
    coef = np.hstack([part * model[0] for part, model in zip(share, models)])
    intercept = np.sum([part * model[1] for part, model in zip(share, models)], axis=0)
    return refitted_state(together, coef, intercept, lam)


def decision_values(
    x: Any,
    rows: NDArray[np.int64],
    centres: NDArray[Any],
    coef: FloatArray,
    intercept: FloatArray,
    gamma: float,
    threads: int,
) -> FloatArray:
    """f (len(rows) × outputs) for these rows of x, a NumPy array or CSR matrix, in the precision of the centres."""
    out = np.zeros((len(rows), coef.shape[0]))
    if coef.shape[1] and len(rows):
        _core.budget_decide(as_matrix(x), rows, centres, np.ascontiguousarray(coef), gamma, out, threads)
    out += intercept
    return out


def fill_kernel(
    out: NDArray[Any], x: Any, rows: NDArray[np.int64], centres: NDArray[Any], gamma: float, threads: int
) -> None:
    """out[i, j] = k(x_rows[i], centres_j), in the precision of the centres; out may be some columns of a matrix."""
    if out.size:
        _core.budget_kernel(as_matrix(x), rows, centres, gamma, out, threads)


def squared_norms(centres: NDArray[Any], coef: FloatArray, gamma: float, threads: int) -> FloatArray:
    """|Σ_j coef[c, j]·phi(centres[j])|² of every row c of coef, in float64 whatever the centres are.

    By blocks of the upper triangle of the kernel matrix, so that it never exists as a whole.
    """
    points = centres.astype(np.float64)
    step = max(64, NORM_BLOCK // max(len(points), 1))
    total = np.zeros(len(coef))
    for begin in range(0, len(points), step):
        rows = np.arange(begin, min(begin + step, len(points)))
        gram = np.empty((len(rows), len(points) - begin))
        fill_kernel(gram, points, rows, points[begin:], gamma, threads)
        gram[:, len(rows) :] *= 2  # and what is below the diagonal
        total += np.einsum("ij,ij->i", coef[:, rows] @ gram, coef[:, begin:])
    return total
