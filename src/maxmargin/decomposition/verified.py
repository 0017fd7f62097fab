"""Whether f is what it seems: before a run counts as converged, and for what it reports.

On its way f gathers rounding, and the sums of β miss their targets; float32 kernel values may be too coarse for tol; and
with numbers of many orders of magnitude even float64 does not tell (decomposition/ending.py).
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.ending import EPSILON, Point, cancels
from maxmargin.decomposition.state import Overflow, State

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

DRIFT = 1e-4  # of tol: rounding that f may have gathered on its way
PATH = 8.0  # times Σ|β|: rounding of a longer way is worth a fresh sum, of a shorter one a fresh sum has as much
AUDITED = 256  # samples, at most a sixteenth, whose f is computed again in float64 where float32 may be too coarse
BEYOND = 16.0  # times the largest error that these had, in units of m: what no other sample's is taken to exceed


def require_finite(state: State) -> None:
    """The largest kernel value must be a number in the precision at hand."""
    largest = _largest(state)
    if not largest * largest <= float(np.finfo(state.kernel.dtype).max):  # not its dtype: a comparison would round to it
        raise Overflow


def renewed(state: State) -> bool:
    """Where β misses its sums or f has drifted, begin again from β: whether that was so."""
    point, path = state.point(), state.path
    size = state.over.of(np.abs(state.coef) * state.kernel.magnitude)
    drift = EPSILON * _largest(state) * path
    missed = point.missed().any()
    if not missed and (path <= PATH * size or drift <= DRIFT * state.options.tol):
        return False
    alpha = state.qp.repaired(point.alpha, state.over) if missed else point.alpha
    state.stand_at((state.qp.sign * alpha).reshape(state.shape))
    return True


def sure(state: State) -> bool:
    """Whether kernel values are fine enough to tell that the violation is below tol."""
    if state.kernel.dtype == np.float64:
        return known_violation(state, state.point()) <= state.options.tol
    return told_apart(state, state.options.tol, np.arange(state.qp.n))


def told_apart(state: State, violation: float, samples: IntArray) -> bool:
    """Whether float32 values leave f of these samples, which is up to date, an error well below such a violation."""
    kernel = state.kernel
    spread = float(np.sqrt(state.over.of(np.square(state.coef * kernel.magnitude))))
    if cancels(kernel.noise * _largest(state) * spread, violation):
        return True
    return 2 * _largest(state) * _audited(state, samples) <= 0.5 * violation


def _audited(state: State, samples: IntArray) -> float:
    """The largest error of f, in units of m, that some samples are found to have, or had before theirs was made exact."""
    n, wider = len(samples), state.kernel.wider()
    assert wider is not None
    some = samples[np.linspace(0, n - 1, max(1, min(AUDITED, n // 16))).astype(np.int64)] if n else samples
    error = np.abs(wider.sum(some, *state.gathered(state.coef)) - state.f[some])
    m = np.broadcast_to(state.kernel.magnitude, state.qp.n)[some]
    found = float(state.over.most(np.max(np.divide(error, m, out=error, where=m > 0), initial=0.0)))
    state.error = max(state.error, found)
    return state.error


def refine(state: State) -> Generator[None, None, None]:
    """f in float64 where it matters. That leaves nothing to doubt: violation, gap and objective are those of float64.

    f from float32 values is off by noise · m · path at most; with many support vectors chance comes nowhere near that, and
    many times the largest error that some samples have will do. Where a sample has no coefficient, and its score is
    further than that from where it would violate or cost anything, no exact value changes what is reported.
    """
    kernel, wider = state.kernel, state.kernel.wider()
    assert wider is not None
    now, n = state.coef, state.qp.n
    found = state.error or _audited(state, np.arange(n))  # `sure` has looked for it a moment ago
    error = min(kernel.noise * state.summed, BEYOND * found) * kernel.magnitude
    f, then = state.exact or (np.full(n, np.nan), np.zeros(n))
    exact = np.full(n, np.nan)
    # Who was looked at before is known but for what has moved since; the others need a sum over all.
    for begin, (others, change) in ((f, state.gathered(now - then)), (np.zeros(n), state.gathered(now))):
        step = next(iter(kernel.pieces(state.longest, len(others)))).stop
        while True:
            left = np.flatnonzero(_matters(state, error) & np.isnan(exact) & ~np.isnan(begin))
            if not state.over.any(len(left) > 0):
                break
            some = left[:step]
            with state.costs.clock("start"):
                exact[some] = begin[some] + (wider.sum(some, others, change) if len(others) else 0.0)
                state.part.add(kernel.first + some, exact[some] - state.f[some])
            yield None
    state.exact = exact, now


def too_coarse(state: State) -> bool:
    """Whether these kernel values would put decision values off by more than half of tol, to which the solution is known."""
    return _largest(state) * state.error > 0.5 * state.options.tol


def _matters(state: State, error: FloatArray | float) -> BoolArray:
    """Of each sample held here: whether another f, at most `error` away, could change the violation or the gap."""
    point = state.point()
    e = point.extremes()[0]
    least, most = np.minimum(e[:2], e[2:]), np.maximum(e[:2], e[2:])
    if not len(state.qp.targets):  # a score of 0 is the other side
        least, most = np.minimum(least, 0.0), np.maximum(most, 0.0)
    (up, low), off = point.movable, np.tile(np.broadcast_to(error, state.qp.n), state.halves)
    may_rise = up & (point.score + off >= least[point.group])
    may_fall = low & (point.score - off <= most[point.group])
    return np.asarray(((point.beta != 0) | may_rise | may_fall).reshape(state.shape).any(axis=0))


def known_violation(state: State, point: Point) -> float:
    """Of all samples; with the rounding of f where float64 does not tell whether it is below tol."""
    rounding: FloatArray | None = None
    if state.kernel.dtype == np.float64:
        m = state.kernel.magnitude
        each = state.kernel.noise * m * state.over.of(np.abs(state.coef) * m)
        if 2 * float(state.over.most(np.max(each, initial=0.0))) > state.options.tol:
            rounding = np.tile(np.broadcast_to(each, state.qp.n), state.halves)
    return state.violation_at(point.extremes(rounding)[0])


def _largest(state: State) -> float:
    """m, of any sample."""
    return float(state.over.most(np.max(state.kernel.magnitude, initial=0.0)))
