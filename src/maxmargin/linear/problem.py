"""The linear problem that every solver of this folder shares, and its passes over the samples.

    minimise over w, b   ½‖w‖² + C · R(w, b),    R(w, b) = Σ_i weight_i · loss(m_i),    m_i = sign_i (⟨x_i, w⟩ + b) + shift_i

    hinge           loss(m) = max(0, 1 − m)
    squared_hinge   loss(m) = max(0, 1 − m)²

Classification has one hinge per sample and no shift. Regression has two: max(0, |y − f| − ε) is the sum of the hinges with
signs ±1 and shifts 1 + ε ∓ y (of the squares too: one of the two is 0). The second hinges of all samples follow the first,
so what is kept per hinge (margins, duals, sign, weight, shift) has 2n entries and samples are read once for both.

The intercept is coordinate d of one vector w of length `size`: a constant feature `bias` (0: there is none), either
penalised like the rest or, by default, free. A cut (a, b) says R(w) ≥ ⟨a, w⟩ + b for every w; it does not depend on C.

The samples may be spread over several processes (`over_ranks.py`): what is kept per hinge is then kept where its sample
is, and every sum over samples goes through `total` or `highest`, the same for all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix
from maxmargin.linear.rounding import NONE, UNIT, Bounds, Cut, FloatArray, dot, gamma, without

Pause = Generator[None, None, None]
AnyFloats = NDArray[Any]

BLOCK = 1 << 25  # stored values per native call: some 10 ms from memory, under a second from a disk
NOTHING = np.empty(0)
HUGE = 150  # decimal digits of products whose squares are finite, with room for sums of them


@dataclass
class Duals:
    """The dual point that belongs to margins: what changed since the last one, and its sums."""

    rows: NDArray[np.int64]
    delta: FloatArray
    band: NDArray[np.int64]
    slope: FloatArray
    offset: float
    risk: float
    mass: float
    size: float = 0.0  # Σ of the sizes of what `offset` adds up


@dataclass(frozen=True)
class Extent:
    """The largest size per feature and the largest norm of a sample."""

    columns: FloatArray
    norm: float

    @classmethod
    def of(cls, matrix: _core.Matrix, d: int, threads: int) -> Extent:
        columns = np.empty(d)
        square = _core.linear_extents(matrix, columns, threads)
        return cls(columns, float(np.sqrt(square)) * (1 + gamma(d + 2)))


@dataclass
class LinearProblem:
    """Samples, and per hinge its sign, weight and shift: one binary problem, or one of regression."""

    X: Any
    sign: FloatArray
    weight: FloatArray
    C: float
    loss: str = "hinge"
    bias: float = 0.0
    penalised: bool = False
    threads: int = 1
    centre: FloatArray | None = None  # X holds the user's samples less this; only with a free intercept
    shift: FloatArray | None = None
    level: float = 0.0  # the shifts are those of the user's targets less this; only with a free intercept
    extent: Extent | None = field(default=None, repr=False)  # measured when not given
    matrix: _core.Matrix = field(init=False, repr=False)
    passes: float = field(init=False, default=0.0)  # over X by `outputs`, and the seconds they took
    pass_seconds: float = field(init=False, default=0.0)
    at_hand: ClassVar[bool] = True  # whether the rows are in this process; if not, `outputs` and `add` know where
    alone: ClassVar[bool] = True  # whether no other process has rows of this problem and works on them at the same time

    def __post_init__(self) -> None:
        if self.at_hand:
            self.matrix = as_matrix(self.X)
        self.sign = np.ascontiguousarray(self.sign, dtype=np.float64)
        self.weight = np.ascontiguousarray(self.weight, dtype=np.float64)
        if self.extent is None:
            self.extent = Extent.of(self.matrix, self.d, self.threads)
        farthest = 0.0 if self.shift is None else float(np.abs(self.shift).max(initial=0.0))
        self._farthest, self.heaviest = self.highest(farthest, float(self.weight.max(initial=0.0)))
        (self.mass,) = self.total(float(self.weight.sum()))
        strength, size = self.C * self.mass, max(self.extent.norm, self.bias)
        # The largest sums are C·Σ alpha_i x_i; duals of the squared loss grow with the margins, up to √(2C Σ weight)·‖x‖.
        powers = (1.5, 2.0) if self.loss == "squared_hinge" else (1.0, 1.0)
        if not powers[0] * np.log10(max(strength * (1 + self._farthest), 1.0)) + powers[1] * np.log10(max(size, 1.0)) < HUGE:
            raise ValueError(
                f"X has values up to {self.extent.columns.max(initial=0.0):g} and C times the sum of the weights is "
                f"{strength:g}: their products overflow float64. Scale the features (StandardScaler), or lower C"
            )

    def total(self, *sums: float) -> tuple[float, ...]:
        """Sums over the samples at hand, as sums over all."""
        return sums

    def sum_of(self, array: AnyFloats) -> AnyFloats:
        """The same for an array of such sums."""
        return array

    def highest(self, *values: float) -> tuple[float, ...]:
        """The same for maxima."""
        return values

    def first(self, values: FloatArray) -> FloatArray:
        """What the process that leads has computed: another one may round differently."""
        return values

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def hinges(self) -> int:
        """n, or 2n."""
        return len(self.sign)

    @property
    def count(self) -> int:
        """Samples of all processes."""
        return self.n

    @property
    def terms(self) -> int:
        """The most additions that a sum over all hinges takes."""
        return self.hinges

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @property
    def size(self) -> int:
        return self.d + (self.bias != 0)

    @property
    def free_intercept(self) -> bool:
        return self.bias != 0 and not self.penalised

    @property
    def free(self) -> slice:
        """Coordinates of w that are not penalised."""
        return slice(self.d, None) if self.free_intercept else NONE

    @property
    def bounds(self) -> Bounds:
        """What a lower bound needs to know."""
        largest, length = self._reach()
        if not self.free_intercept:
            return Bounds(self.C, largest, length)
        return Bounds(self.C, largest, length, self.free, self._intercepts(), self.bias, self._lightest(), self._depth())

    def _reach(self) -> tuple[FloatArray, float]:
        """How far one unit of dual moves a cut: per coordinate (free ones: 0), and in norm."""
        assert self.extent is not None
        if not self.bias:
            return self.extent.columns, self.extent.norm
        feature = self.bias if self.penalised else 0.0
        return np.append(self.extent.columns, feature), float(np.hypot(self.extent.norm, feature))

    def _intercepts(self) -> int:
        return 1

    def _lightest(self) -> float:
        return min(self.total(float(self.weight[self.sign > 0].sum()), float(self.weight[self.sign < 0].sum())))

    def _depth(self) -> float:
        """How far below 0 the offset of a cut that takes all hinges of one sign to their weights lies, per unit of dual."""
        if self.shift is None:
            return 0.0
        (most,) = self.highest(float(self.shift.max(initial=0.0)))
        return max(0.0, most - 1 + (0.25 if self.loss == "squared_hinge" else 0.0))

    @property
    def stored(self) -> int:
        """Values that one pass reads."""
        return int(self.X.nnz) if hasattr(self.X, "nnz") else self.n * self.d

    @property
    def entries(self) -> float:
        """Values per sample, on average over all processes."""
        return self.stored / self.n

    def subset(self, rows: NDArray[np.int64]) -> LinearProblem:
        """The same problem on some samples, C raised so that the risk keeps its scale."""
        some = rows if self.hinges == self.n else np.concatenate([rows, rows + self.n])
        weight = self.weight[some]
        (taken,) = self.total(float(weight.sum()))
        scale = self.mass / taken
        shift = None if self.shift is None else self.shift[some]
        return replace(self, X=self.X[rows], sign=self.sign[some], weight=weight, shift=shift, C=self.C * scale)

    def weighty(self) -> NDArray[np.int64]:
        """The samples that count: the dual of any other is 0, whatever its margin says."""
        return np.flatnonzero(self.weight[: self.n])

    def samples(self, hinges: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sample of each of these hinges."""
        return hinges if self.hinges == self.n else np.where(hinges >= self.n, hinges - self.n, hinges)

    def per_sample(self, hinges: NDArray[np.int64], slope: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
        """The samples of these hinges, each once, with the sum of what belongs to its hinges."""
        if self.hinges == self.n:
            return hinges, slope
        total: FloatArray = np.bincount(self.samples(hinges), slope, self.n).astype(np.float64)
        rows = np.flatnonzero(total)
        return rows, total[rows]

    def inner(self, u: FloatArray, v: FloatArray) -> float:
        """The regulariser's inner product: a free intercept does not count."""
        return dot(without(u, self.free), v)

    def zeros(self) -> FloatArray:
        """The margins of w = 0."""
        return np.zeros(self.hinges) if self.shift is None else self.shift.copy()

    def rows_per_call(self) -> int:
        return max(1, BLOCK * self.n // max(self.stored, 1))

    def outputs(self, w: FloatArray, out: FloatArray, *, shifted: bool = True) -> Pause:
        """Margins of w into `out`, or (not `shifted`) by how much a step w changes them: the one full pass of an iteration.

        Pauses between blocks of rows.
        """
        step = self.rows_per_call()
        for begin in range(0, self.n, step):
            end = min(self.n, begin + step)
            start = time.perf_counter()
            self.fill(w, begin, end, out, shifted)
            self.pass_seconds += time.perf_counter() - start
            self.passes += (end - begin) / self.n
            if end < self.n:
                yield

    def fill(self, w: FloatArray, begin: int, end: int, out: FloatArray, shifted: bool = True) -> None:
        """Margins of the rows from begin to end."""
        intercept = float(self.bias * w[-1]) if self.bias else 0.0
        weights = np.ascontiguousarray(w[: self.d])
        shift = NOTHING if self.shift is None or not shifted else self.shift
        _core.linear_outputs(self.matrix, weights, intercept, self.sign, shift, begin, end, out, self.threads)

    def duals(self, alpha: FloatArray, m: FloatArray, other: FloatArray | None = None, mix: float = 0.0,
              h: float = 0.0, lazy: float = 0.0, path: FloatArray | None = None) -> Duals:
        """Set alpha to the duals at margins (1 − mix)·m + mix·other, of the hinge rounded over h; skip small moves."""
        second = m if other is None else other
        guess = NOTHING if path is None else path
        found = Duals(
            *_core.linear_duals(self.loss, h, lazy, m, second, mix, self.weight, self.sign, guess, alpha, self.threads)
        )
        offset, size = self.offset(alpha, found.mass, found.mass - found.offset)
        found.offset, found.size, found.risk, found.mass = self.total(offset, size, found.risk, found.mass)
        return found

    def slope(self, h: float, m: FloatArray, q: FloatArray, k: float) -> tuple[float, ...]:
        """First and second derivative of the risk (of the hinge rounded over h) at margins m + k·q."""
        return self.total(*_core.linear_slope(self.loss, h, m, q, self.weight, k, self.threads))

    def crossing(self, m: FloatArray, q: FloatArray, quad: float, lin: float) -> float:
        """The k ≥ 0 that is best for ½·quad·k² + lin·k + the hinges' risk at margins m + k·q."""
        return float(_core.hinge_search(m, q, self.weight, quad, lin, self.threads))

    def offset(self, alpha: FloatArray, mass: float, curve: float) -> tuple[float, float]:
        """b = Σ alpha_i (1 − shift_i) − curve of the cut of alpha, and the sum of the sizes of its terms; at hand."""
        if self.shift is None:
            return mass - curve, mass + abs(curve)
        # A shift is two sums of numbers up to 3 + |shift|, rounded (the estimator measures targets in units of their size).
        return mass - float(alpha @ self.shift) - curve, float(alpha @ (4 + 2 * np.abs(self.shift))) + abs(curve)

    def feasible(self, duals: FloatArray) -> FloatArray:
        """Duals of other weights as they are allowed here: at most the weight (squared hinge: any, but none without)."""
        most = self.weight if self.loss == "hinge" else np.where(self.weight > 0, np.inf, 0.0)
        return np.clip(duals, 0.0, most)

    def curve(self, alpha: FloatArray) -> float:
        """Σ alpha_i² / (4 weight_i), what the squared hinge takes from the offset of a cut; 0 for the hinge."""
        if self.loss == "hinge":
            return 0.0
        some = np.flatnonzero(alpha)
        return float((alpha[some] ** 2 / (4 * self.weight[some])).sum())

    def add(self, a: FloatArray, rows: NDArray[np.int64], delta: FloatArray) -> Generator[None, None, tuple[int, float]]:
        """a ← a − Σ delta_i x̃_i: move a cut by the duals that changed.

        Returns the additions that a term may go through, and Σ |delta_i|.
        """
        step, depth = self.rows_per_call(), 0
        total = np.zeros(self.d)
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            depth += _core.linear_add_rows(self.matrix, self.samples(rows[part]), delta[part], total, self.threads)
            if begin + step < len(rows):
                yield
        a[: self.d] -= total
        return max(depth, self.add_bias(a, delta)), float(np.abs(delta).sum())

    def add_bias(self, a: FloatArray, delta: FloatArray) -> int:
        """The intercept's part of `add`: the additions that a term goes through."""
        if not self.bias:
            return 0
        a[-1] -= self.bias * float(delta.sum())
        return len(delta) if len(delta) < 128 else 24 + len(delta).bit_length()  # NumPy adds in pairs

    def risk(self, m: FloatArray) -> float:
        return self.advance(m, m, 0.0)

    def advance(self, m: FloatArray, q: FloatArray, k: float) -> float:
        """m ← m + k·q; the risk there."""
        return self.total(_core.linear_advance(self.loss, m, q, k, self.weight, self.threads))[0]

    def value(self, w: FloatArray, risk: float) -> float:
        return 0.5 * self.inner(w, w) + self.C * risk

    def support(self, m: FloatArray, width: float) -> int:
        """Samples with a positive loss or within `width` of the margin."""
        near = (m <= 1 + width) & (self.weight > 0)
        samples = near.reshape(self.hinges // max(self.n, 1), self.n).any(axis=0)
        return int(self.total(float(np.count_nonzero(samples)))[0])

    def published(self, w: FloatArray) -> FloatArray:
        """w with the intercept that the user gets: for samples less no `centre`, targets less no `level`, rounded once."""
        if self.centre is None and not self.level:
            return w
        out: FloatArray = w.copy()
        published = intercept_of(w, self.centre, self.bias, self.level)
        out[-1] = exact_dot(w[:-1], self.centre, published, -self.level) / self.bias
        return out

    def off(self, w: FloatArray) -> float:
        """How far rounding can take a margin of w: a sum of d products is off by gamma(d) of the sum of their sizes."""
        largest, length = self._reach()
        seen = without(w, self.free)
        reach = min(dot(np.abs(seen), largest), float(np.sqrt(dot(seen, seen))) * length)
        intercept = float(np.abs(w[self.free]).max(initial=0.0)) * self.bias
        return gamma(self.d + 8) * (1 + reach + intercept + 2 * self._farthest)

    def doubt(self, w: FloatArray, m: FloatArray, risk: float) -> float:
        """How far rounding can have taken the objective of w from its true value, m and risk being freshly computed."""
        risks = self.total(self._risk_doubt(m, self.off(w)))[0] + gamma(self.terms + 8) * risk
        return self.C * risks + gamma(self.size + 8) * self.inner(w, w)

    def _risk_doubt(self, m: FloatArray, off: float) -> float:
        """How far the risk can be when every margin is off by at most `off`."""
        u = 1 - m
        near = u > -off
        if self.loss == "hinge":
            return off * float(self.weight[near].sum())
        return off * float(self.weight[near] @ (2 * np.maximum(u[near], 0.0) + off))


def intercept_of(w: FloatArray, centre: FloatArray | None, bias: float, level: float = 0.0) -> float:
    """The intercept for samples that `centre` and targets that `level` has not been taken from."""
    return -exact_dot(w[:-1], centre, -bias * float(w[-1]), -level)


def exact_dot(u: FloatArray, v: FloatArray | None, *plus: float) -> float:
    """Σ u_j v_j (v None: 0) + Σ plus, rounded once: a product is split into two floats that add up to it (Dekker 1971)."""
    if v is None:
        return math.fsum(plus)
    high = 134217729.0  # 2²⁷ + 1: splits 53 bits in two halves
    product = u * v
    u_high, v_high = (high * x - (high * x - x) for x in (u, v))
    u_low, v_low = u - u_high, v - v_high
    rest = ((u_high * v_high - product) + u_high * v_low + u_low * v_high) + u_low * v_low
    return math.fsum([*product, *rest, *plus])


class Sum:
    """a = −Σ alpha_i sign_i x̃_i, kept up to date as alpha moves, and how far rounding can have taken it (`rounding`)."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        self.a = np.zeros(problem.size)
        self.drift = self._fresh = 0.0  # the last: of a new sum, per unit of dual

    def move(self, rows: NDArray[np.int64], delta: FloatArray, mass: float) -> Pause:
        """By the duals that changed, to a Σ alpha of `mass`."""
        depth, moved = yield from self.problem.add(self.a, rows, delta)
        self.drift += gamma(depth + 4) * moved + 2 * UNIT * mass
        if not self._fresh:
            self._fresh = gamma(depth + 6)

    def renew(self, alpha: FloatArray) -> Pause:
        """Sum up anew."""
        rows = np.flatnonzero(alpha)
        self.a[:], self.drift, self._fresh = 0.0, 0.0, 0.0
        (mass,) = self.problem.total(float(alpha.sum()))
        yield from self.move(rows, self.problem.sign[rows] * alpha[rows], mass)

    def worn(self, mass: float) -> bool:
        """Whether a new sum of these duals would be much nearer to the truth."""
        return self.drift > 4 * self._fresh * mass

    def cut(self, offset: float, mass: float, size: float) -> Cut:
        return Cut.of(self.a, offset, mass, self.drift, self.problem.terms, size)
