"""Whether f is what it seems: before a run counts as converged, and for what it reports.

On its way f gathers rounding, and the sums of β miss their targets; float32 kernel values may be too coarse for tol; and
with numbers of many orders of magnitude even float64 does not tell (decomposition/ending.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.ending import EPSILON, Point, cancels
from maxmargin.decomposition.state import Overflow, State

FloatArray = NDArray[np.float64]

DRIFT = 1e-4  # of tol: rounding that f may have gathered on its way
PATH = 8.0  # times Σ|β|: rounding of a longer way is worth a fresh sum, of a shorter one a fresh sum has as much
AUDITED = 256  # samples, at most a sixteenth, whose f is computed again in float64 where float32 may be too coarse


def require_finite(state: State) -> None:
    """The largest kernel value must be a number in the precision at hand."""
    largest = float(np.max(state.kernel.magnitude))
    if not largest * largest <= float(np.finfo(state.kernel.dtype).max):  # not its dtype: a comparison would round to it
        raise Overflow


def renewed(state: State) -> bool:
    """Where β misses its sums or f has drifted, begin again from β: whether that was so."""
    point, m = state.point(), state.kernel.magnitude
    size = float(np.sum(np.abs(state.coef) * m))
    drift = EPSILON * float(np.max(m)) * state.path
    missed = point.missed().any()
    if not missed and (state.path <= PATH * size or drift <= DRIFT * state.options.tol):
        return False
    beta = (state.qp.sign * state.qp.repaired(point.alpha)).reshape(state.beta.shape) if missed else state.beta
    state.stand_at(beta)
    return True


def sure(state: State) -> bool:
    """Whether kernel values are fine enough to tell that the violation is below tol."""
    tol, kernel = state.options.tol, state.kernel
    point = state.point()
    if kernel.dtype == np.float64:
        return known_violation(state, point) <= tol
    coef = state.coef
    spread = float(np.sqrt(np.sum(np.square(coef * kernel.magnitude))))
    if cancels(kernel.noise * float(np.max(kernel.magnitude)) * spread, tol):
        return True
    ids = np.unique(np.linspace(0, state.qp.n - 1, max(1, min(AUDITED, state.qp.n // 16))).astype(np.int64))
    support = np.flatnonzero(coef)
    wider = kernel.wider()
    assert wider is not None
    error = np.abs(wider.sum(ids, support, coef[support]) - state.f[ids]).max(initial=0.0)
    return bool(2 * error <= 0.5 * tol)


def known_violation(state: State, point: Point) -> float:
    """Of all samples; with the rounding of f where float64 does not tell whether it is below tol."""
    rounding: FloatArray | None = None
    if state.kernel.dtype == np.float64:
        m = state.kernel.magnitude
        each = state.kernel.noise * m * float(np.sum(np.abs(state.coef) * m))
        if 2 * np.max(each) > state.options.tol:
            rounding = np.tile(np.broadcast_to(each, state.qp.n), state.halves)
    return state.violation_at(state.reduced(point.extremes(rounding)[0]))
