"""The demo shows every public machine but those that search others' parameters, and its parts work on small data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sklearn.base import BaseEstimator

import maxmargin
from maxmargin import demo
from maxmargin.selection.machine import Selecting


def test_every_public_machine_is_shown() -> None:
    names = [name for name in maxmargin.__all__ if isinstance(getattr(maxmargin, name), type)]
    public = {name for name in names if issubclass(getattr(maxmargin, name), BaseEstimator)}
    public -= {name for name in public if issubclass(getattr(maxmargin, name), Selecting)}
    assert {entry.name for entry in demo.MACHINES} == public


def test_table_and_picture(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    small = {demo.moons: lambda: demo.moons(200), demo.wave: lambda: demo.wave(200), demo.blobs: lambda: demo.blobs(200)}
    fitted = [demo.fit(replace(entry, task=small[entry.task])) for entry in demo.MACHINES]
    table = demo.table(fitted)
    assert all(entry.name in table for entry in demo.MACHINES) and "200" in table
    demo.draw(fitted, tmp_path / "new" / "picture.png")
    assert (tmp_path / "new" / "picture.png").read_bytes()[:4] == b"\x89PNG"
