"""The grid for a number of values is the documented one (docs/selection.md), for weights as for repeated rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from maxmargin.estimators._labelled import Labelled
from maxmargin.selection.grid import LONGEST, Facts, Grid, axis

RNG = np.random.default_rng(0)
N = 90
X = RNG.normal(size=(N, 4)) * [1.0, 5.0, 0.2, 2.0] + 3.0
Y = RNG.normal(size=N) * 7.0 - 40.0
CODE = np.repeat([0, 1, 2], [50, 10, 30])
WEIGHT = RNG.integers(0, 4, N)


def facts(kernel: str, regression: bool, rows: np.ndarray, weight: np.ndarray) -> Facts:
    target = Y[rows] if regression else CODE[rows].astype(float)
    classes = np.empty(0) if regression else np.array(["a", "b", "c"])
    return Facts(Labelled(X[rows], target, weight.astype(float), classes, np.ones(len(classes))), kernel)


def documented(name: str, m: int, kernel: str, regression: bool, rows: np.ndarray) -> list[float]:
    """By the words of the page, from rows that all count once."""
    scale, deviation = 1 / (4 * X[rows].var()), Y[rows].std()
    if name == "gamma":
        return [scale * 2.0 ** (-3 + 9 * k / (m - 1)) for k in range(m)] if m > 1 else [scale]
    if name == "C":
        low = (10 / len(rows)) ** 0.5 * (deviation if regression else 1.0) * (scale if kernel == "linear" else 1.0)
        return [low * 10.0 ** (4 * k / (m - 1)) for k in range(m)] if m > 1 else [low * 1000**0.5]
    if name == "epsilon":
        return sorted(deviation / 2 / 3.0**k for k in range(m)) if m > 1 else [deviation / 10]
    counts = np.unique(CODE[rows], return_counts=True)[1]
    largest = min(2 * min(a, b) / (a + b) for a, b in product(counts, counts))
    return [largest * 0.02 * 40.0 ** (k / (m - 1)) for k in range(m)] if m > 1 else [largest / 2]


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize(
    ("name", "regression"), [("gamma", False), ("C", False), ("C", True), ("epsilon", True), ("nu", False)]
)
def test_values_are_the_documented_ones(name: str, regression: bool, kernel: str) -> None:
    whole, repeated = np.arange(N), np.repeat(np.arange(N), WEIGHT)
    for m in (1, 2, 3, 10):
        for rows, weight, counted in ((whole, np.ones(N), whole), (whole, WEIGHT, repeated)):
            found = axis(name, m, facts(kernel, regression, rows, weight))
            np.testing.assert_allclose(found, documented(name, m, kernel, regression, counted), rtol=1e-12)


def test_targets_that_are_all_the_same_have_a_grid() -> None:
    same = Facts(Labelled(X, np.full(N, 3.0), np.ones(N), np.empty(0), np.empty(0)))
    for name in ("C", "epsilon"):
        assert all(0 < value < np.inf for value in axis(name, 4, same))


def test_lists_are_taken_as_they_are() -> None:
    given = facts("rbf", False, np.arange(N), WEIGHT)
    counted = X[np.repeat(np.arange(N), WEIGHT)]
    assert axis("C", [3.0, 1.0, 1.0], given) == [3.0, 1.0, 1.0]
    found = axis("gamma", ["scale", 0.5, "auto"], given)
    np.testing.assert_allclose(found, [1 / (4 * counted.var()), 0.5, 0.25], rtol=1e-12)
    for name, values in product(("C", "gamma", "nu"), ([1, 2], [np.float32(0.1)], (0.5, 3), np.array([1.0, 2.0]))):
        found = axis(name, values, given)
        assert found == list(values) and [type(v) for v in found] == [type(v) for v in values]  # a table shows them so


@pytest.mark.parametrize("values", [[1.0, 2.0, 8.0], [8.0, 1.0, 2.0], [0.0, 1.0, 4.0], [5.0], [5.0, 5.0]], ids=str)
@pytest.mark.parametrize("name", ["C", "nu"])
def test_an_edge_is_an_end_of_several_values_with_something_beyond(name: str, values: list[float]) -> None:
    grid = Grid({"gamma": [0.5], name: values})
    cells = list(grid.cells())
    assert [cell[name] for cell in cells] == values
    for cell in cells:
        lowest = cell[name] == min(values) > 0
        highest = cell[name] == max(values) and name != "nu"  # as much as is feasible
        ends = [(name, False)] * lowest + [(name, True)] * highest
        assert grid.edges(cell) == (ends if len(set(values)) > 1 else [])


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("values", [[1.0, 2.0, 8.0], [8.0, 2.0, 1.0]], ids=str)
def test_beyond_an_end_steps_go_on_as_they_were(values: list[float], upper: bool) -> None:
    other: dict[str, Any] = {"gamma": [0.5, 1.0]}
    grid = Grid({"C": values} | other)
    for _ in range(3):
        wider = grid.beyond("C", upper)
        assert wider is not None and wider.axes["gamma"] == other["gamma"]
        inside, outside = sorted(grid.axes["C"]), sorted(wider.axes["C"])
        assert outside[:-1] == inside if upper else outside[1:] == inside
        ends = outside[-3:] if upper else outside[2::-1]
        assert ends[2] / ends[1] == ends[1] / ends[0]
        grid = wider
    assert Grid({"C": [2.0**k for k in range(LONGEST - 1)]}).beyond("C", upper) is not None
    for full in ([2.0**k for k in range(LONGEST)], [0.0, 1.0, 2.0], [1e-250, 1e-100, 1.0, 1e19]):
        assert Grid({"C": full}).beyond("C", upper) is None  # too many, nothing below 0, numbers that nobody computes with
