"""The merging problem in plain NumPy: optimal h, weight degradation, and the lookup tables of both.

Two support vectors x_i, x_j of one label with |alpha_i| = m, |alpha_j| = 1 - m and t = gamma·|x_i - x_j|², so that
kappa = k(x_i, x_j) = exp(-t), become one point z = h·x_i + (1-h)·x_j with coefficient s(h):

    s(h)  = m·kappa^((1-h)²) + (1-m)·kappa^(h²)                 maximise over h
    WD    = m² + (1-m)² + 2·m·(1-m)·kappa - s(h)²               |w' - w|², for a pair with alpha_i + alpha_j = 1

WD of any pair is (alpha_i + alpha_j)² times that. x_i is the smaller one, so m ≤ ½ and the higher mode has h ≤ ½.
s'(h) = 0 reads, with h = 1/(1 + exp(a)) and b = ln((1-m)/m):

    a = b + t·tanh(a/2)                                         largest root: Newton from a = b + t falls onto it

Tables, both read with bilinear interpolation:

    scaled    ours. WD vanishes like (1-kappa)² as kappa → 1 and like m² as m → 0; a table of WD itself is wrong by large
              factors there. Stored is G = WD / (m·(1-kappa))² on a uniform grid in m ∈ [0, ½] and v = t/(4+t) ∈ [0, 1].
              G stays between ½ and 2: G(m, 0) = 2·(1-m)², G(m, 1) = 1. Comparing partners of x_i needs only
              (1-kappa)²·G: alpha_i² is common to all.
    uniform   the paper's: WD and h on a uniform grid in m and kappa over the whole unit square.

Glasmachers and Qaadan, "Speeding Up Budgeted SGD SVM Training with Precomputed Golden Section Search", section 3.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

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


def scaled_grids(size: int, rows: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
    """G and h at these rows of the size × size nodes: rows m from 0 to ½, columns v = t/(4+t) from 0 to 1."""
    m = np.linspace(0, 0.5, size)[rows, None]
    v = np.linspace(0, 1, size)[None, :]
    g, h = np.empty((len(m), size)), np.zeros((len(m), size))
    first = int(m[0, 0] == 0)
    inside_m, inside_v = m[first:], v[:, 1:-1]
    t = 4 * inside_v / (1 - inside_v)
    h[first:, 1:-1] = optimal_h(inside_m, t)
    g[first:, 1:-1] = weight_degradation(inside_m, t, h[first:, 1:-1]) / (inside_m * np.expm1(-t)) ** 2
    if first:  # m → 0: x_i loses what the tangent space of z at x_j cannot hold
        g[0, 1:-1] = (-np.expm1(-2 * t) - 2 * t * np.exp(-2 * t))[0] / np.expm1(-t[0]) ** 2
    # The other edges, by their limits.
    g[:, 0] = 2 * (1 - m[:, 0]) ** 2
    h[:, 0] = m[:, 0]
    g[:, -1] = 1.0
    return g, h


def uniform_grids(size: int, rows: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
    """WD and h at these rows of the size × size nodes: rows m from 0 to 1, columns kappa from 0 to 1, as in the paper."""
    m = np.linspace(0, 1, size)[rows, None]
    kappa = np.linspace(0, 1, size)[None, :]
    small = np.minimum(m, 1 - m)
    degradation, h = np.empty((len(m), size)), np.zeros((len(m), size))
    counts = small[:, 0] > 0  # x_i or x_j is all there is: nothing is lost, and z is that point
    t = -np.log(kappa[:, 1:-1])
    h[counts, 1:-1] = optimal_h(small[counts], t)
    degradation[:, 1:-1] = weight_degradation(small, t, h[:, 1:-1])
    # kappa = 0: the smaller one is lost. kappa = 1: they are one point, and any h will do; the limit is small.
    degradation[:, 0], degradation[:, -1] = small[:, 0] ** 2, 0.0
    h[:, -1] = small[:, 0]
    return degradation, np.where(m > 0.5, 1 - h, h)  # above ½ the two points change their roles


TABLES: Final = {"scaled": scaled_grids, "uniform": uniform_grids}
LARGEST_GRID: Final = 4000  # two tables of 64 MB, some seconds
_ROWS = 64  # of a table computed at a time: the temporaries of a large one would take gigabytes


@lru_cache(maxsize=2)
def merge_table(size: int = 400, kind: str = "scaled") -> Any:
    """A table as the core reads it (float32), computed once per size and kept in memory."""
    degradation, mixing = np.empty((2, size, size), np.float32)
    for begin in range(0, size, _ROWS):
        rows = slice(begin, min(begin + _ROWS, size))
        degradation[rows], mixing[rows] = TABLES[kind](size, rows)
    return _core.MergeTable(degradation, mixing, kind == "uniform")
