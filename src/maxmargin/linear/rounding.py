"""How far float64 can have moved a lower bound: allowances that are proven, not guessed.

A sum of k rounded terms, in any order, is off by at most gamma(k) ≈ k·2⁻⁵³ of the sum of their sizes (Higham, Accuracy and
Stability of Numerical Algorithms, section 3.1). A cut is such a sum: a = −Σ alpha_i sign_i x_i. With largest_j = max |x_ij|
and length = max ‖x_i‖ over the samples, what the computed one says of the true one is

    |a_j − true a_j| ≤ drift·largest_j      and      ‖a − true a‖ ≤ drift·length,      drift = gamma·Σ |alpha's moves|

so drift, one number in units of alpha, is kept with every cut and every sum of cuts. No true cut behind (a, b) has a lower
minimum of ½‖w‖² + C(⟨a, w⟩ + b) than

    s·C·b − ½ s²C² (‖a‖² + 2·drift·min(⟨|a|, largest⟩, ‖a‖·length) + drift²·min(‖largest‖², length²)),   any 0 ≤ s ≤ 1

where s mixes in the cut R ≥ 0. It grows with ‖w‖·‖x‖, w = −C·a: margins that are small differences of large products are
not known better than that.

A free intercept has no minimum unless the true cut's component there is 0. What may be left of it (`astray`, in units of
alpha) is made up for by a share of the samples of one class, each taken to its bound: at most astray more dual, and a
mixture that is too heavy by astray / (weight of the lightest class), for which s makes room. For K classes with an
intercept each a chain of classes does it, with at most K·astray. (In regression the hinges of one sign are a class; what
its cut takes from b is at most astray·depth.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

UNIT = 2.0**-53
NONE = slice(0, 0)  # of the coordinates


def gamma(k: float) -> float:
    """The most that k roundings in a row change, relative to the terms. A hundredth more pays for its own arithmetic."""
    return 1.01 * k * UNIT / (1 - k * UNIT)


# What no count below includes: weights of equal samples added up (at most 500) and multiplied with class weights, Σβ ≤ 1
# of a mixture, duals that were multiplied with C and divided by it. All relative to the bound.
SLOP = gamma(1000)


def dot(u: FloatArray, v: FloatArray) -> float:
    """⟨u, v⟩ with the same bits on every processor, which BLAS does not promise: ranks decide by such numbers."""
    return float(np.add.reduce(u * v))


def without(u: FloatArray, part: slice) -> FloatArray:
    """u with zeros at `part`."""
    if part == NONE:
        return u
    seen: FloatArray = u.copy()
    seen[part] = 0.0
    return seen


@dataclass(frozen=True)
class Cut:
    """R(w) ≥ ⟨a, w⟩ + b for every w, but for `drift` in a. `mass` is its Σ alpha; b is already less what it is unsure of."""

    a: FloatArray
    b: float
    mass: float
    drift: float

    @classmethod
    def of(cls, a: FloatArray, b: float, mass: float, drift: float, terms: int, size: float) -> Cut:
        """From a sum b over `terms` hinges whose terms have sizes that add up to `size`."""
        return cls(a, b - gamma(terms + 8) * size, mass, drift)


@dataclass(frozen=True)
class Bounds:
    """What a lower bound needs to know of a problem. Numbers only: a bundle may outlive the samples."""

    C: float
    largest: FloatArray  # per coordinate of w; 0 at free ones
    length: float
    free: slice = field(default_factory=lambda: NONE)
    intercepts: int = 0  # how many coordinates are free
    bias: float = 1.0
    lightest: float = np.inf  # weight of the lightest class
    depth: float = 0.0  # of the class cut's offset below 0, per unit of dual

    def lower(self, a: FloatArray, b: float, drift: float) -> float:
        """No w has an objective below this. At least 0."""
        error, over = drift, SLOP
        if self.intercepts:
            astray = self.intercepts * (float(np.abs(a[self.free]).sum()) / self.bias + self.intercepts * drift)
            error, over = error + astray, over + astray / self.lightest
            b -= astray * self.depth
        seen = without(a, self.free)
        square = dot(seen, seen) + 2 * error * self.across(seen)
        square += error * error * min(dot(self.largest, self.largest), self.length**2)
        square *= 1 + gamma(len(a) + 8)
        most = 1 / (1 + over)
        share = min(most, max(0.0, b / (self.C * square))) if square > 0 else most
        line, bend = share * self.C * b, 0.5 * (share * self.C) ** 2 * square
        value = line - bend - 8 * UNIT * (abs(line) + bend)
        return value if value > 0 else 0.0  # also where it overflowed to NaN

    def across(self, a: FloatArray) -> float:
        """The most that ⟨a, e⟩ can be for an error e of drift 1."""
        return min(dot(np.abs(a), self.largest), float(np.sqrt(dot(a, a))) * self.length)

    def allowance(self, cut: Cut) -> float:
        """What the drift of a cut takes from a bound that rests on it."""
        return self.C**2 * cut.drift * (1 + self.intercepts**2) * self.across(without(cut.a, self.free))
