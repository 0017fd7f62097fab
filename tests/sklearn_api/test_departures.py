"""The list of departures from scikit-learn's own tests is short, true and told to users."""

from __future__ import annotations

from pathlib import Path

import pytest
from departures import AT_MOST, DEPARTURES, PRIVATE
from upstream import contents, load

MODULES = {name: contents(load(name)) for name in ("test_svm", "test_sparse")}


def cases(name: str) -> int:
    """How many tests a name stands for: the product of its parameters."""
    module, _, test = name.partition("::")
    marks = getattr(MODULES[module][test], "pytestmark", [])
    count = 1
    for mark in (mark for mark in marks if mark.name == "parametrize"):
        count *= len(list(mark.args[1]))
    return count


def test_departures_are_few() -> None:
    every = {f"{module}::{test}" for module, tests in MODULES.items() for test in tests}
    applies = every - PRIVATE
    assert len(applies) > 60
    here = [name for name in DEPARTURES if name in every]  # not all versions of scikit-learn have all of them
    assert sum(map(cases, here)) <= AT_MOST * sum(map(cases, applies))


@pytest.mark.parametrize("name", DEPARTURES)
def test_departures_are_documented(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "migration.md"
    assert DEPARTURES[name].documented in page.read_text(encoding="utf-8")
