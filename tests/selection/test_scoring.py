"""A machine's own score, computed without scikit-learn, is scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, r2_score

from maxmargin import SVC, SVR
from maxmargin.selection.scoring import Scoring


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", [["no", "yes"], [3, 1, 7]])
def test_accuracy(labels: list[Any], weighted: bool) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.array(labels)[rng.integers(0, len(labels), 60)]
    weight = rng.uniform(0, 2, 60) if weighted else None
    machine = SVC().fit(X[:40], y[:40])
    expected = accuracy_score(y, machine.predict(X), sample_weight=weight)
    assert Scoring(machine, None)(machine, X, y, weight) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("target", ["numbers", "constant", "missed"])
def test_r2(target: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = {"numbers": X[:, 0], "constant": np.full(60, 2.0), "missed": np.full(60, 2.0)}[target]
    machine = SVR().fit(X[:40], y[:40])
    judged = np.full(60, 3.0) if target == "missed" else y
    for weight in (None, rng.uniform(0, 2, 60)):
        expected = r2_score(judged, machine.predict(X), sample_weight=weight)
        assert Scoring(machine, None)(machine, X, judged, weight) == pytest.approx(expected, rel=1e-12)


def test_a_score_of_its_own_is_asked() -> None:
    class Own(SVC):
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            return 0.25

    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    machine = Own().fit(X, y)
    assert Scoring(machine, None)(machine, X, y, None) == 0.25
