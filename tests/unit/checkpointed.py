"""What the tests of checkpoints share: fits that are stopped, and what must hold of those that went on."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import NuSVC
from maxmargin.data import atomic

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from machines import equally_good


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch) -> None:
    """Power does not fail here."""
    monkeypatch.setattr(atomic.os, "fsync", lambda handle: None)


def fit(model: Any, X: Any, y: Any, weight: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weight)


def stopped(model: Any, turns: int, X: Any, y: Any, weight: Any = None) -> Any:
    """A fit that its callback ends after so many turns: its last state is in the file."""
    model.set_params(callback=lambda row: row["iteration"] >= turns, checkpoint_every=0)
    fitted = fit(model, X, y, weight)
    assert fitted.status_ == "callback"
    return fitted


def as_good(one: Any, other: Any, X: Any) -> None:
    if isinstance(one, NuSVC) and one.class_weight:  # its C is 1/ρ of a first stage, known to tol
        assert one.objective_ == pytest.approx(other.objective_, rel=10 * one.tol / np.min(one.margin_))
    else:
        equally_good(one, other, X)


def turns_of(model: Any) -> int:
    return int(np.sum(model.n_iter_))
