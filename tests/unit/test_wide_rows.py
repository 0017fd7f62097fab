"""Samples of many features: kernel rows are put together from each other's values, tiles from rows. Answers stay true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from maxmargin import SVC, SVR, NuSVC, OneClassSVM, certify_fit
from maxmargin.selection import cross_val_decisions

N, WIDE = 1600, 600  # too many samples for SMO over all of them; native/decomposition/looked_up.hpp: kWide


def data(n: int = N, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 12))
    X = hidden @ rng.normal(size=(12, WIDE)) + 0.3 * rng.normal(size=(n, WIDE))
    X[n // 2 : n // 2 + 20] = X[:20]  # copies
    return X, hidden[:, 0] + 0.5 * hidden[:, 1] ** 2 + 0.3 * rng.normal(size=n)


def judged(model: Any, X: Any, y: Any) -> None:
    found = certify_fit(model, X, y)
    assert model.status_ == "converged" and found.violation <= 1.001 * model.tol
    assert found.primal == pytest.approx(model.objective_, rel=3e-6) and found.gap >= -1e-9  # as float32 tells


@pytest.mark.parametrize("cache_size", [200.0, 6.0, 1.0], ids=["all rows", "some", "few"])
@pytest.mark.parametrize("form", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_machines_are_what_they_say(kernel: str, form: Any, cache_size: float) -> None:
    X, t = data()
    X, y = X.astype(form), t > 0.3
    gamma = {"rbf": 1e-4, "laplacian": 1e-3, "poly": 1e-3, "linear": 1.0}[kernel]
    C = {"linear": 1e-3, "poly": 0.1}.get(kernel, 5.0)
    models = [SVC(kernel=kernel, gamma=gamma, C=C, cache_size=cache_size, n_jobs=n).fit(X, y) for n in (1, 2, 3)]
    judged(models[0], X, y)
    assert models[0].n_iter_[0] > 1 or kernel == "linear"
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].dual_coef_, other.dual_coef_)
        assert models[0].objective_ == other.objective_ and models[0].intercept_ == other.intercept_


@pytest.mark.parametrize("make", [
    lambda: SVR(C=2.0, epsilon=0.1, gamma=1e-4), lambda: NuSVC(nu=0.2, gamma=1e-4), lambda: OneClassSVM(nu=0.3, gamma=1e-4),
    lambda: SVC(C=20.0, gamma=1e-4, fit_intercept=False), lambda: SVC(C=5.0, gamma=1e-4, working_set_size=60),
    lambda: SVC(C=5.0, gamma=1e-4, inner_solver="gpm", working_set_size=200),
    lambda: SVC(C=5.0, gamma=1e-4, shrinking=False),
])  # fmt: skip
def test_every_formulation(make: Any) -> None:
    X, t = data(seed=1)
    model = make()
    y = t if isinstance(model, SVR) else (t > 0.3).astype(int)
    judged(model.fit(X, y), X, None if isinstance(model, OneClassSVM) else y)


def test_more_samples_than_come_before_the_tile() -> None:
    X, t = data(4400, seed=2)
    X, y = X.astype(np.float32), t > 0.3
    one, two = (SVC(C=5.0, gamma=1e-4, n_jobs=n).fit(X, y) for n in (1, 2))
    judged(one, X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_runs_that_follow_one_another_on_kept_rows() -> None:
    X, t = data(seed=3)
    y = t > 0.3
    machine, cv = SVC(C=5.0, gamma=1e-4, tol=1e-5), StratifiedKFold(3)
    values = cross_val_decisions(machine, X, y, cv)
    for train, test in cv.split(X, y):
        plain = SVC(C=5.0, gamma=1e-4, tol=1e-5).fit(X[train], y[train]).decision_function(X[test])
        np.testing.assert_allclose(values[test], plain, atol=1e-3)
