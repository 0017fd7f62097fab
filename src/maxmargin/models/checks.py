"""Judging arrays and numbers that were read: types, ranges, and shapes that agree with each other.

Shapes are letters, and a letter is the same number everywhere in a model.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.data.container import ModelFileError

FLOATS = ("<f8", "<f4")
INTEGERS = ("<i8", "<i4")
PRECISIONS = ("float32", "float64")


class Check:
    """The fitted attributes of one machine, with the sizes found so far."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.size: dict[str, int] = {}

    def require(self, condition: Any, name: str, trouble: str) -> None:
        if not condition:
            raise ModelFileError(f"{name} {trouble}")

    def array(self, name: str, value: Any, types: tuple[str, ...], *shape: str | int, finite: bool = True) -> NDArray[Any]:
        """`value` as an array of one of these types, of a shape that agrees with the others; real numbers finite."""
        self.require(isinstance(value, np.ndarray), name, "is not an array")
        self.require(value.dtype.str in types, name, f"has type {value.dtype}, not {' or '.join(types)}")
        self._shape(name, value.shape, shape)
        if finite and value.dtype.kind == "f":
            self.require(np.isfinite(value).all(), name, "has numbers that are not finite")
        return value  # type: ignore[no-any-return]

    def indices(self, name: str, value: Any, shape: str, below: int, low: int = 0) -> NDArray[Any]:
        array = self.array(name, value, INTEGERS, shape)
        inside = not len(array) or (array.min() >= low and array.max() < below)
        self.require(inside, name, f"has entries outside {low} … {below - 1}")
        return array

    def samples(self, name: str, value: Any, rows: str) -> None:
        """Dense rows or CSR (which the decoder has judged), of d features."""
        if not sp.issparse(value):
            self.array(name, value, FLOATS, rows, "d")
            return
        self.array(f"{name}.data", value.data, FLOATS, f"entries of {name}")
        self._shape(name, value.shape, (rows, "d"))

    def whole(self, name: str, value: Any, low: int, high: int = 2**62) -> int:
        integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        self.require(integer and low <= value <= high, name, f"is {value!r:.40}, not a whole number from {low} on")
        return int(value)

    def number(self, name: str, value: Any, positive: bool = False) -> None:
        real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if real and isinstance(value, numbers.Integral):  # of any length in Python, which no array holds
            real = -(2**63) <= int(value) < 2**63
        self.require(real, name, f"is {value!r:.40}, not a number")
        if positive:
            self.require(0 < value < np.inf, name, f"is {value!r:.40}, not a positive number")

    def choice(self, name: str, value: Any, choices: Iterable[str]) -> None:
        self.require(isinstance(value, str) and value in choices, name, f"is {value!r:.40}, not one of {', '.join(choices)}")

    def same(self, name: str, found: int, wanted: int) -> None:
        self.require(found == wanted, name, f"has {found} entries where {wanted} belong")

    def _shape(self, name: str, found: tuple[int, ...], wanted: tuple[str | int, ...]) -> None:
        fits = len(found) == len(wanted) and all(
            size == (want if isinstance(want, int) else self.size.setdefault(want, size))
            for size, want in zip(found, wanted)
        )
        sizes = ", ".join(f"{want}={self.size.get(str(want), want)}" for want in wanted)
        self.require(fits, name, f"has shape {found}, which does not agree with ({sizes})")
