"""Model files of every version of the format are read, and answer as they did when they were written."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import maxmargin
from maxmargin.data.container import VERSION
from maxmargin.models.schema import MACHINES

FILES = sorted((Path(__file__).parents[1] / "data" / "models").glob("v*/*.mxm"))


def test_every_version_and_machine_is_there() -> None:
    for version in range(1, VERSION + 1):
        names = {path.stem.partition("-")[0] for path in FILES if path.parent.name == f"v{version}"}
        assert names == set(MACHINES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name} {path.stem}")
def test_an_old_file_answers_as_it_did(path, tmp_path) -> None:
    assert path.stat().st_size < 10_000
    expected = json.loads((path.parent / "expected.json").read_text())
    points, answers = np.array(expected["points"]), np.array(expected["answers"][path.stem])
    model = maxmargin.load(path)
    ask = getattr(model, "decision_function", model.predict)
    # to rounding: another processor adds up in another order, and BudgetSVC does so in float32
    tol = 1e-5 if path.stem == "BudgetSVC" else 1e-9
    assert np.abs(ask(points).reshape(answers.shape) - answers).max() <= tol * np.abs(answers).max()
    report = [model.status_, repr(float(model.objective_)), repr(float(model.dual_gap_)), len(model.trace_)]
    assert report == expected["report"][path.stem]
    maxmargin.save(model, tmp_path / "again")
    assert np.array_equal(maxmargin.load(tmp_path / "again").predict(points), model.predict(points))
    if hasattr(model, "classes_"):
        assert model.classes_.tolist() == ["a", "b", "ç"]
    y = np.resize(["a", "b", "ç"], len(points)) if hasattr(model, "classes_") else np.arange(len(points))
    if hasattr(model, "partial_fit"):
        model.partial_fit(points, y)
    model.fit(points, y)
    assert model.status_ in ("converged", "completed", "early")
