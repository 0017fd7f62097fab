"""Which settings are tried: the user's lists as they are, or for a number of values a grid fitted to the data.

    gamma     m values 2^t · s with t evenly from −3 to 6; s is gamma="scale", so that γ times the mean squared distance of
              two rows goes from ¼ to 128: from nearly linear to nearly the nearest neighbour. Ten values: a ratio of 2
    C         m values from √(10 / n) · u, four decades wide; n is the sum of the weights. (For 1,000 rows from 0.1 to 1,000;
              the best regularisation C falls at most like 1/√n.) u is 1, of regression the standard deviation of y;
              of the linear kernel that times gamma="scale"
    epsilon   m values from half the standard deviation of y down, each a third of the one before
    nu        m values from 2 % to 80 % of the largest feasible one, evenly in the logarithm

One value: of gamma "scale", of C √1000 times the lowest, of epsilon a tenth of the deviation, of nu half of the largest.
All of it depends on rows and weights only: a row of weight 2 is two rows.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators._labelled import Labelled
from maxmargin.problem.kernels import resolve_gamma

FloatArray = NDArray[np.float64]
Params = dict[str, Any]

DECADES = 4.0  # of C
LONGEST = 40  # values that an axis may grow to with extend=True


@dataclass(frozen=True)
class Facts:
    """What the rules above look at; each is computed when it is first asked for."""

    data: Labelled
    kernel: Any = "rbf"

    @property
    def total(self) -> float:
        return float(self.data.weight.sum())

    @property
    def unit(self) -> float:
        """Of C."""
        unit = 1.0 if len(self.data.classes) else self.deviation
        return unit * self.scale if self.kernel == "linear" else unit

    @property
    def scale(self) -> float:
        rows = np.flatnonzero(self.data.weight > 0)
        return resolve_gamma("scale", self.data.X, rows, self.data.weight[rows])

    @property
    def deviation(self) -> float:
        """Of the targets; 1 where they are all the same."""
        t, w = self.data.target, self.data.weight
        mean = np.average(t, weights=w)
        return float(np.sqrt(np.average(np.square(t - mean), weights=w))) or 1.0

    @property
    def largest_nu(self) -> float:
        """That is feasible for every two classes."""
        mass = np.sort(np.bincount(self.data.code[self.data.weight > 0], self.data.weight[self.data.weight > 0]))
        return float(2 * mass[0] / (mass[0] + mass[-1]))


def _gamma(m: int, facts: Facts) -> FloatArray:
    return np.asarray(facts.scale * (2.0 ** np.linspace(-3.0, 6.0, m) if m > 1 else np.ones(1)))


def _C(m: int, facts: Facts) -> FloatArray:
    low = np.sqrt(10 / facts.total) * facts.unit
    return np.asarray(low * 10.0 ** (np.linspace(0, DECADES, m) if m > 1 else np.array([1.5])))


def _epsilon(m: int, facts: Facts) -> FloatArray:
    return np.asarray(facts.deviation * (0.5 * 3.0 ** -np.arange(m)[::-1] if m > 1 else np.array([0.1])))


def _nu(m: int, facts: Facts) -> FloatArray:
    return np.asarray(facts.largest_nu * (np.geomspace(0.02, 0.8, m) if m > 1 else np.array([0.5])))


RULES: dict[str, Callable[[int, Facts], FloatArray]] = {"C": _C, "gamma": _gamma, "epsilon": _epsilon, "nu": _nu}


def check_axis(plural: str, given: Any) -> None:
    """Raise unless `given` is a number of values, or a list of them."""
    if isinstance(given, numbers.Integral) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"{plural}={given!r} must be at least 1, the number of values, or a list of them")
        return
    if isinstance(given, (str, bytes, numbers.Number)) or not hasattr(given, "__iter__"):
        raise ValueError(f"{plural}={given!r} must be a whole number of values, or a list of them")
    if len(list(given)) == 0:
        raise ValueError(f"{plural}={given!r} has no values: give at least one, or how many")


def axis(name: str, given: Any, facts: Facts) -> list[Any]:
    """The values of a parameter: `given` is a number of them, or the values. "scale" and "auto" are those of all rows."""
    if isinstance(given, numbers.Integral):
        return [float(v) for v in RULES[name](int(given), facts)]
    rows = np.flatnonzero(facts.data.weight > 0)
    return [
        resolve_gamma(v, facts.data.X, rows, facts.data.weight[rows]) if name == "gamma" and isinstance(v, str) else v
        for v in given
    ]


@dataclass(frozen=True)
class Grid:
    """Values of each parameter, in the order in which its cells are listed: the last one runs fastest."""

    axes: dict[str, list[Any]]

    def cells(self) -> Iterator[Params]:
        for values in product(*self.axes.values()):
            yield dict(zip(self.axes, values))

    def edges(self, best: Params) -> list[tuple[str, bool]]:
        """The ends of the grid that a cell lies on: the parameter, and whether it is the upper end.

        Not of a parameter with one value, nor of epsilon = 0 and other values that nothing lies beyond.
        """
        ends = []
        for name, values in self.axes.items():
            if len(set(values)) < 2:
                continue
            for upper, end in ((False, min(values)), (True, max(values))):
                if best[name] == end and end > 0 and not (name == "nu" and upper):
                    ends.append((name, upper))
        return ends

    def beyond(self, name: str, upper: bool) -> Grid | None:
        """With one more value past an end of an axis, as far as the last two are apart; None if it is long enough."""
        values = sorted(set(self.axes[name]))
        if len(values) >= LONGEST or values[0] <= 0:
            return None
        end, inner = (values[-1], values[-2]) if upper else (values[0], values[1])
        more = float(end * (end / inner))
        if not np.finfo(float).tiny * 1e20 < more < 1e20:
            return None
        return Grid({**self.axes, name: [*self.axes[name], more] if upper else [more, *self.axes[name]]})
