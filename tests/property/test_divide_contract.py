"""A level of divide and conquer depends on the samples and their weights, not on how they came.

The whole problem's promises are tested with those of all machines, in tests/contract.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import DCSVC, DCSVR, SVC


@st.composite
def samples(draw: st.DrawFn) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(20, 120))
    X = rng.normal(size=(n, 2)) + 5 * rng.integers(0, 3, size=(n, 1))
    if draw(st.booleans()):
        X = np.round(X)  # rows repeat
    X = X.astype(draw(st.sampled_from([np.float32, np.float64])))
    regression = draw(st.booleans())
    y = X[:, 0] + rng.normal(size=n) if regression else rng.integers(0, draw(st.integers(2, 3)), size=n)
    y[:3] = [0, 1, 1]
    options = {
        "C": 2.0, "gamma": 0.5, "k": draw(st.integers(1, 4)), "levels": draw(st.integers(1, 2)), "stop_level": 1,
        "sample_size": draw(st.sampled_from([5, 30])), "fit_intercept": draw(st.booleans()), "tol": 1e-6,
        "predict_with": draw(st.sampled_from(["early", "all", "bcm"])), "random_state": 0,
    }  # fmt: skip
    machine = DCSVR(**options) if regression else DCSVC(**options, decision_function_shape="ovo")
    return machine, X, y, {"rng": rng}


def values(machine: Any, X: np.ndarray) -> np.ndarray:
    return machine.predict(X) if isinstance(machine, DCSVR) else machine.decision_function(X)


def close(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(a, b, rtol=0, atol=2e-3 * (1 + np.abs(a).max()))


@settings(max_examples=25)
@given(case=samples())
def test_rows_in_any_order(case: Any) -> None:
    machine, X, y, more = case
    expected, clusters = values(machine.fit(X, y), X), machine.levels_["clusters"].tolist()
    order = more["rng"].permutation(len(y))
    close(expected, values(machine.fit(X[order], y[order]), X))
    assert machine.levels_["clusters"].tolist() == clusters


@settings(max_examples=25)
@given(case=samples())
def test_a_weight_is_so_many_rows(case: Any) -> None:
    machine, X, y, more = case
    times = more["rng"].integers(0, 4, len(y))
    times[:3] = 1
    weighted = values(machine.fit(X, y, sample_weight=times), X)
    close(weighted, values(machine.fit(np.repeat(X, times, axis=0), np.repeat(y, times)), X))


@settings(max_examples=25)
@given(case=samples())
def test_one_row_or_a_batch(case: Any) -> None:
    machine, X, y, more = case
    machine.fit(X, y)
    Z = np.concatenate([X, 10 * more["rng"].normal(size=(20, 2))]).astype(X.dtype)
    whole = values(machine, Z)
    for i in range(0, len(Z), 7):
        np.testing.assert_array_equal(values(machine, Z[i : i + 1]), whole[i : i + 1])
    np.testing.assert_array_equal(values(machine, Z[::-1]), whole[::-1])


@pytest.mark.parametrize("weights", [(1e-12, 1e-6), (1e6, 1e12), (1e-6, 1e6)])
@pytest.mark.parametrize("C", [1e-8, 1.0, 1e12])
@pytest.mark.parametrize("stop_level", [0, 1])
def test_bounds_of_any_size(C: float, weights: tuple[float, float], stop_level: int) -> None:
    """Predictions are finite, and what is said of the whole problem agrees with what SVC finds out about it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    weight = np.exp(rng.uniform(*np.log(weights), size=60))
    same = {"C": C, "gamma": 0.5, "tol": 1e-3, "max_time": 5.0}
    for intercept in (False, True):
        dc = DCSVC(**same, k=3, levels=2, stop_level=stop_level, random_state=0, fit_intercept=intercept)
        dc.fit(X, y, sample_weight=weight)
        for rule in ("early", "all", "bcm"):
            assert np.isfinite(dc.set_params(predict_with=rule).decision_function(X)).all()
        if stop_level == 0:
            svc = SVC(**same, fit_intercept=intercept).fit(X, y, sample_weight=weight)
            low, high = svc.objective_ - svc.dual_gap_, dc.objective_
            assert low <= high * (1 + 1e-9) and dc.objective_ - dc.dual_gap_ <= svc.objective_ * (1 + 1e-9)
            assert dc.dual_gap_ >= 0
