"""The merging problem in plain NumPy: optimal h, weight degradation, and the lookup tables of both.

Two support vectors x_i, x_j of one label with |alpha_i| = m, |alpha_j| = 1 - m and t = gamma·|x_i - x_j|², so that
kappa = k(x_i, x_j) = exp(-t), become one point z = h·x_i + (1-h)·x_j with coefficient s(h):

    s(h)  = m·kappa^((1-h)²) + (1-m)·kappa^(h²)                 maximise over h
    WD    = m² + (1-m)² + 2·m·(1-m)·kappa - s(h)²               |w' - w|², for a pair with alpha_i + alpha_j = 1

WD of any pair is (alpha_i + alpha_j)² times that. x_i is the smaller one, so m ≤ ½ and the higher mode has h ≤ ½.
s'(h) = 0 reads, with h = 1/(1 + exp(a)) and b = ln((1-m)/m):

    a = b + t·tanh(a/2)                                         largest root: Newton from a = b + t falls onto it

Tables. WD vanishes like (1-kappa)² as kappa → 1 and like m² as m → 0; a table of WD itself is wrong by large factors
there. Stored is G = WD / (m·(1-kappa))² on a uniform grid in m ∈ [0, ½] and v = t/(4+t) ∈ [0, 1]. G stays between ½
and 2: G(m, 0) = 2·(1-m)², G(m, 1) = 1. Comparing partners of x_i needs only (1-kappa)²·G: alpha_i² is common to all.

Glasmachers and Qaadan, "Speeding Up Budgeted SGD SVM Training with Precomputed Golden Section Search", section 3.
Its table is uniform in (m, kappa) on the whole square.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from maxmargin import _core

FloatArray = NDArray[np.float64]


def optimal_h(m: ArrayLike, t: ArrayLike) -> FloatArray:
    """Argmax of s over h for m in (0, ½] and t = -ln(kappa) ≥ 0, to machine precision."""
    m, t = np.broadcast_arrays(np.asarray(m, dtype=np.float64), np.asarray(t, dtype=np.float64))
    shape, m, t = m.shape, m.ravel(), t.ravel()
    b = np.log1p(-m) - np.log(m)
    a = b + t
    active = np.arange(a.size)
    for _ in range(100):  # quadratic convergence, except near m = ½, kappa = exp(-2), where it is linear
        at, bt, tt = a[active], b[active], t[active]
        tanh = np.tanh(0.5 * at)
        slope = np.maximum(1 - 0.5 * tt * (1 - tanh**2), 1e-300)
        step = np.minimum((at - bt - tt * tanh) / slope, at)
        a[active] = at - step
        active = active[np.abs(step) > 1e-14 * (1 + at)]
        if not active.size:
            break
    return np.asarray(expit(-a)).reshape(shape)


def merged_size(m: ArrayLike, t: ArrayLike, h: ArrayLike) -> FloatArray:
    """s(h): the coefficient of z when alpha_i + alpha_j = 1."""
    m, t, h = (np.asarray(v, dtype=np.float64) for v in (m, t, h))
    return np.asarray(m * np.exp(-t * (1 - h) ** 2) + (1 - m) * np.exp(-t * h**2))


def weight_degradation(m: ArrayLike, t: ArrayLike, h: ArrayLike) -> FloatArray:
    """WD at a given h when alpha_i + alpha_j = 1. Differences go through expm1: nothing cancels as kappa → 1."""
    m, t, h = (np.asarray(v, dtype=np.float64) for v in (m, t, h))
    far, near = t * (1 - h) ** 2, t * h**2
    cross = np.exp(-far - near) * np.expm1(-2 * t * h * (1 - h))
    return np.asarray(-(m**2) * np.expm1(-2 * far) - (1 - m) ** 2 * np.expm1(-2 * near) + 2 * m * (1 - m) * cross)


def grids(size: int) -> tuple[FloatArray, FloatArray]:
    """G and h at the size × size nodes: rows m from 0 to ½, columns v = t/(4+t) from 0 to 1."""
    m = np.linspace(0, 0.5, size)[:, None]
    v = np.linspace(0, 1, size)[None, :]
    g, h = np.empty((size, size)), np.zeros((size, size))
    inside_m, inside_v = m[1:], v[:, 1:-1]
    t = 4 * inside_v / (1 - inside_v)
    h[1:, 1:-1] = optimal_h(inside_m, t)
    g[1:, 1:-1] = weight_degradation(inside_m, t, h[1:, 1:-1]) / (inside_m * np.expm1(-t)) ** 2
    # The edges, by their limits. m → 0: x_i loses what the tangent space of z at x_j cannot hold.
    g[0, 1:-1] = (-np.expm1(-2 * t) - 2 * t * np.exp(-2 * t))[0] / np.expm1(-t[0]) ** 2
    g[:, 0] = 2 * (1 - m[:, 0]) ** 2
    h[:, 0] = m[:, 0]
    g[:, -1] = 1.0
    return g, h


@lru_cache(maxsize=4)
def merge_table(size: int = 400) -> Any:
    """The tables as the core reads them (float32), computed once per size and kept in memory."""
    g, h = grids(size)
    return _core.MergeTable(g.astype(np.float32), h.astype(np.float32))
