"""Problems that begin from one another, where no whole kernel matrix fits: each is a run of the decomposition method.

As native/decomposition/family.hpp, and much of its interface: the solution at the last C, or on all rows, is where a problem
begins, and for a fold there is added what the fold did at the last C. f = Kβ is known there, and follows by one pass over
the samples whose coefficient has changed:

    f = s · f(parent) + f(like) − f(unlike) + K Δ        Δ: what β is more than that;  s: 1, or the ratio of the C's

It is not computed from nothing, as a fit of its own must, and the run begins near its end. f has a value for each sample,
in the fold or not: what a fold is judged by needs no prediction. What f has gone through since it was last summed (`path`)
is handed on as well, so that its rounding is counted as in one long run; a run that goes on in float64 sums its f anew, and
so does one whose parents had another precision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.solver import Decomposition
from maxmargin.decomposition.state import State
from maxmargin.decomposition.working_set import MB, row_bytes
from maxmargin.estimators._setup import Setup
from maxmargin.kernel_values import NativeValues, Source
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import TooLargeError
from maxmargin.runtime import Control, Status
from maxmargin.runtime.run import steps
from maxmargin.selection.samples import Samples

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KEPT = 0.3  # of all rows must fit for rows to be kept from run to run, about as many as are often support vectors
GIVES = 0.5  # of its distance from the nearer bound a variable gives for the sums, before others have to
Steps = Generator[Any, None, None]
_END = object()
WAITING, RUNNING, CONVERGED, STALLED, DROPPED = 0, 1, 2, 3, 5  # native/decomposition/family_state.hpp, Stage


@dataclass(frozen=True)
class Link:
    """A problem, and which ones it begins from (−1: none).

    `source()` is kernel values between its samples, `order` says where in the problem each of them stands, and `extra(coef)`
    is f of samples of other classes that it is judged by.
    """

    qp: QP
    source: Callable[[], Source]
    order: IntArray
    extra: Callable[[FloatArray], FloatArray]
    parent: int = -1
    like: int = -1
    unlike: int = -1
    ratio: float = 1.0
    fold: bool = False


@dataclass(frozen=True)
class Ended:
    """A solution in the problem's own order."""

    alpha: FloatArray
    coef: FloatArray  # β by sample
    f: FloatArray
    path: float
    dtype: Any
    upper: FloatArray


@dataclass(frozen=True)
class Known:
    """f of coefficients, how these must still change, and what f has gone through."""

    f: FloatArray
    change: FloatArray
    path: float


class Chain:
    """The problems in their order, one after the other; each on all threads.

    Those that begin from another one at the same C, which are the folds, may be solved to `loose` of the spread of f there,
    if that is more than tol.
    """

    def __init__(self, links: Sequence[Link], options: Options, loose: float = 0.0) -> None:
        self.links, self.options, self.loose = links, options, loose
        self.tol = np.full(len(links), options.tol)  # to which each is solved
        self.stage = np.zeros(len(links), np.int8)
        self.seconds = np.zeros(len(links))
        self._ended: dict[int, Ended] = {}
        self._steps: Steps | None = None
        self._last_use = np.arange(len(links))
        for p, link in enumerate(links):
            for other in (link.parent, link.like, link.unlike):
                if other >= 0:
                    self._last_use[other] = p

    def run(self, seconds: float) -> int:
        """Go on for about so many seconds; how many problems are done."""
        end = time.perf_counter() + seconds
        self._forget()
        while True:
            if self._steps is None:
                waiting = np.flatnonzero(self.stage == WAITING)
                if not len(waiting):
                    break
                self._problem = int(waiting[0])
                self._steps = self._solved(self._problem)
            begun = time.perf_counter()
            if next(self._steps, _END) is _END:
                self._steps = None
            now = time.perf_counter()
            self.seconds[self._problem] += now - begun
            if now >= end:
                break
        return int((self.stage >= CONVERGED).sum())

    def drop(self, p: int) -> None:
        """Leave out a problem that has not begun."""
        if self.stage[p] == WAITING:
            self.stage[p] = DROPPED

    def solution(self, p: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """β, f of its samples, f of the extra ones."""
        ended, link = self._ended[p], self.links[p]
        return link.qp.sign * ended.alpha, ended.f, link.extra(ended.coef)

    def precision(self, p: int) -> tuple[float, Any]:
        """What f of the solution has gone through, and in which precision."""
        return self._ended[p].path, self._ended[p].dtype

    def _forget(self) -> None:
        """Solutions from which nothing more begins. Whoever wanted them had them after the last call."""
        open_ = self.stage < CONVERGED
        first = int(open_.argmax()) if open_.any() else len(open_)
        for p in [p for p in self._ended if self._last_use[p] < first]:
            del self._ended[p]

    # ---- one problem -------------------------------------------------------------------------------------------------

    def _solved(self, p: int) -> Steps:
        link = self.links[p]
        self.stage[p] = RUNNING
        qp, order = link.qp, link.order
        halves = qp.n_variables // max(1, qp.n)
        every = np.concatenate([h * qp.n + order for h in range(halves)])
        mine = QP(qp.n, qp.sign[every], qp.center[every], qp.upper[every], qp.group[every], qp.targets)
        source = link.source()
        alpha = self._begun(link)
        known = self._known(link, alpha, source.dtype)
        self.tol[p] = self._tol(link)
        yield None
        try:
            solver = Decomposition(
                mine, source, replace(self.options, tol=float(self.tol[p])),
                alpha=None if alpha is None else alpha[every], f=None if known is None else known.f[order],
            )  # fmt: skip
            if known is not None:
                yield from _follow(solver.state, known.change[order], known.path)
            result: DualResult = yield from steps(solver, Control())
        except TooLargeError:  # the fold's own fit will say so
            self.stage[p] = STALLED
            self._ended[p] = self._nothing(qp)
            return
        alpha, f = np.empty(qp.n_variables), np.empty(qp.n)
        alpha[every], f[order] = result.alpha, result.f
        coef = (qp.sign * alpha).reshape(halves, -1).sum(axis=0)
        self._ended[p] = Ended(alpha, coef, f, solver.state.path, result.dtype, qp.upper)
        self.stage[p] = CONVERGED if result.status is Status.CONVERGED else STALLED

    def _tol(self, link: Link) -> float:
        parent = self._of(link.parent)
        if parent is None or not link.fold:
            return self.options.tol
        return max(self.options.tol, self.loose * min(1.0, float(np.std(parent.f))))

    @staticmethod
    def _nothing(qp: QP) -> Ended:
        return Ended(np.zeros(qp.n_variables), np.zeros(qp.n), np.full(qp.n, np.nan), 0.0, None, qp.upper)

    def _of(self, p: int) -> Ended | None:
        found = self._ended.get(p)
        return found if found is not None and found.dtype is not None else None

    def _beside(self, link: Link) -> tuple[Ended, Ended] | None:
        """What a fold did at the last C, and the solution on all rows there."""
        like, unlike = self._of(link.like), self._of(link.unlike)
        return None if like is None or unlike is None else (like, unlike)

    def _begun(self, link: Link) -> FloatArray | None:
        """A feasible point: bounds to bounds, what is between them as it is."""
        parent, beside, upper = self._of(link.parent), self._beside(link), link.qp.upper
        if parent is None:
            return None
        alpha = np.where(parent.alpha >= parent.upper, upper, parent.alpha)
        alpha[parent.alpha == 0] = 0.0
        if beside is not None:
            alpha += beside[0].alpha - beside[1].alpha
        return link.qp.repaired(_mended(link.qp, np.clip(alpha, 0.0, upper)))

    def _known(self, link: Link, alpha: FloatArray | None, dtype: Any) -> Known | None:
        """Of f at alpha; None where what is missing is as much as there is to sum up."""
        parent, beside = self._of(link.parent), self._beside(link)
        if alpha is None or parent is None or any(e.dtype != dtype for e in (parent, *(beside or ()))):
            return None
        coef = (link.qp.sign * alpha).reshape(-1, link.qp.n).sum(axis=0)
        best, least = None, np.count_nonzero(coef)
        for s in dict.fromkeys((1.0, link.ratio)):
            base, f, path = s * parent.coef, s * parent.f, s * parent.path
            if beside is not None:
                base += beside[0].coef - beside[1].coef
                f += beside[0].f - beside[1].f
                path += beside[0].path + beside[1].path
            change = coef - base
            change[np.abs(change) <= 1e-15 * np.abs(coef)] = 0.0
            if (count := np.count_nonzero(change)) < least:
                best, least = Known(f, change, path), count
        return best


def _mended(qp: QP, alpha: FloatArray) -> FloatArray:
    """`alpha` with its sums restored by few variables, where few can: f follows by a row for each that moves.

    Those that are farthest from their bounds give, as many of them as need not come nearer than by `GIVES` of it.
    """
    for g, target in enumerate(qp.targets):
        mine = np.flatnonzero((qp.group == g) & (alpha > 0) & (alpha < qp.upper))
        excess = float(np.sum((qp.sign * alpha)[qp.group == g])) - float(target)
        shy = np.minimum(alpha, qp.upper - alpha)[mine]
        order = np.argsort(-shy, kind="stable")
        room = GIVES * np.cumsum(shy[order])
        if not len(room) or room[-1] < abs(excess):
            continue
        some = mine[order[: np.searchsorted(room, abs(excess)) + 1]]
        near = np.minimum(alpha, qp.upper - alpha)[some]
        alpha[some] -= qp.sign[some] * near * (excess / near.sum())
    return alpha


def _follow(state: State, change: FloatArray, path: float) -> Steps:
    """f of a run that is about to begin follows the change of its coefficients."""
    moved = np.flatnonzero(change)
    source: Any = state.kernel
    if isinstance(source, KeptValues):
        source.update(state.part, moved, change[moved])
    elif len(moved):
        every = np.arange(state.qp.n)
        for piece in source.pieces(state.qp.n, len(moved)):
            state.part.add(every[piece], source.sum(every[piece], moved, change[moved]))
            yield None
    state.came(path + float(np.sum(np.abs(change) * source.magnitude)))


class KeptValues(NativeValues):
    """Kernel values for one run after the other, which find the rows that the runs before have computed.

    Nobody is left out of a run (no shrinking), so that all rows have all columns.
    """

    _part: Any = None

    def part(self, center: Any, lo: Any, hi: Any, beta: Any, group: Any, f: Any, cache_bytes: float) -> Any:
        if self._part is None:
            self._part = super().part(center, lo, hi, beta, group, f, cache_bytes)
        else:
            self._part.restart(center, lo, hi, beta, group, f)
        return self._part

    @classmethod
    def of(cls, values: Source, room: float) -> Source:
        """`values`, with rows that are kept where many of them fit into `room` bytes."""
        if type(values) is not NativeValues or values.samples.cheap(values.rows):
            return values
        most = room / row_bytes(values.total, values.dtype.itemsize)
        return cls(values.samples, values.rows) if most >= KEPT * values.total else values

    def wider(self) -> NativeValues | None:
        return None if self.dtype == np.float64 else NativeValues(self.samples.wider(), self.rows)


def chain(problems: Sequence[Any], samples: Samples, setup: Setup, loose: float = 0.0) -> Chain:
    """Of problems as selection/kernel.py lists them; `setup` has kernel values of the same samples, in its own order."""
    number = samples.sample_of(setup.rows.index)  # of each of the setup's samples
    where = np.argsort(number)
    whole = cache(setup.source)
    pairs: dict[tuple[int, int], tuple[IntArray, IntArray, Callable[[], Source]]] = {}
    for pair in dict.fromkeys(problem.pair for problem in problems):
        a, b, c, d = samples.ranges(pair)
        here = np.flatnonzero(((number >= a) & (number < b)) | ((number >= c) & (number < d)))
        place = np.where(number[here] < b, number[here] - a, number[here] - c + b - a) if c >= b else number[here] - a
        pairs[pair] = here, place, cache(partial(_kept, setup, here))

    def link(problem: Any) -> Link:
        here, order, source = pairs[problem.pair]

        def extra(coef: FloatArray) -> FloatArray:
            some = np.flatnonzero(coef[order])
            if not len(problem.extra):
                return np.empty(0)
            return whole().sum(where[problem.extra], here[some], coef[order][some])

        return Link(
            problem.qp, source, order, extra, problem.parent, problem.like, problem.unlike, problem.ratio, problem.fold >= 0
        )  # fmt: skip

    kept = all(isinstance(source(), KeptValues) for *_, source in pairs.values())
    options = replace(setup.options, shrinking=setup.options.shrinking and not kept)
    return Chain([link(problem) for problem in problems], options, loose)


def _kept(setup: Setup, chosen: IntArray) -> Source:
    return KeptValues.of(setup.source(chosen), setup.options.cache_size * MB)
