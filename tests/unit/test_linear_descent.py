"""Coordinate descent: what it says of the violations it has met, and an end where nothing moves any more."""

import numpy as np
import pytest

from maxmargin.linear import LinearProblem, drive
from maxmargin.linear.descent import Coordinates, Descent
from maxmargin.runtime import Control, Status


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["between", "at 0", "high", "any"])
def test_the_range_of_violations_includes_none_at_all(loss, kind):
    """From the least below 0 to the largest above, and 0 belongs to it, whichever side they are all on."""
    rng = np.random.default_rng(len(kind))
    for _ in range(20):
        size = rng.uniform(0.2, 2, 6)  # each sample has a feature of its own: no step changes what the others see
        sign = np.where(rng.random(6) < 0.5, 1.0, -1.0)
        problem = LinearProblem(np.diag(size), sign, rng.uniform(1, 3, 6), 2.0, loss=loss)
        dual = Coordinates(problem, 0)
        most = np.minimum(dual.upper, 4.0)
        part = {"between": rng.uniform(0.1, 0.9, 6), "at 0": 0.0, "high": 1.0, "any": rng.integers(0, 3, 6) / 2}
        dual.alpha = most * part[kind]
        dual.v = dual.alpha * problem.sign * size
        grad = size * size * dual.alpha - 1 + dual.diag * dual.alpha
        held = ((dual.alpha <= 0) & (grad > 0)) | ((dual.alpha >= dual.upper) & (grad < 0))
        violation = np.where(held, 0.0, grad)
        for active in (np.arange(6), *np.arange(6).reshape(6, 1)):
            there = violation[active]
            kept = dual.alpha.copy(), dual.v.copy()
            steps = dual.descend(active.copy(), 0.0, 0.0)
            with pytest.raises(StopIteration) as end:
                next(steps)
            dual.alpha, dual.v = kept
            assert end.value.value == pytest.approx(max(there.max(), 0.0) - min(there.min(), 0.0), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("seed", range(4))
def test_more_than_float64_has_is_not_waited_for(loss, seed):
    """Asked for no gap at all it ends by itself, where its duals rest: at the optimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    sign = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1.0, -1.0)
    result = drive(Descent(LinearProblem(X, sign, np.ones(40), 1.0, loss=loss), 1e-300), Control(max_iter=2000))
    assert result.status is Status.STALLED
    assert result.violation <= 1e-9
