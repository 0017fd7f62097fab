"""The inner solvers inside the decomposition: same model, certified, and what fits report agrees with the certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maxmargin
from maxmargin import certify_fit

FITS: dict[str, dict[str, Any]] = {
    "SVC": {"C": 3.0},
    "SVC without intercept": {"C": 3.0, "fit_intercept": False},
    "NuSVC": {"nu": 0.3},
    "SVR": {"C": 3.0},
    "NuSVR": {"C": 3.0, "nu": 0.4},
    "OneClassSVM": {"nu": 0.3},
}


def data(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    label = X[:, 0] + 0.5 * rng.normal(size=150) > 0
    return X, label if "SVC" in name else np.sin(X[:, 0]) + 0.1 * rng.normal(size=150), rng.uniform(0.5, 2, size=150)


@pytest.mark.parametrize("name", FITS)
def test_the_inner_solver_does_not_change_the_model(name: str) -> None:
    X, y, weight = data(name)
    duals = []
    for inner in ("smo", "ipm", "gpm"):
        make = getattr(maxmargin, name.split()[0])
        fit = make(inner_solver=inner, working_set_size=40, tol=1e-5, **FITS[name]).fit(X, y, sample_weight=weight)
        answer = certify_fit(fit, X, y, weight)
        assert fit.status_ == "converged"
        assert fit.timings_["inner_fallbacks"] == 0
        assert np.all(fit.n_iter_ > 1)
        assert answer.infeasibility < 1e-9
        assert answer.violation <= 1.01e-5
        # ν-SVR publishes no tube width: the certificate takes the best one, which may lower the gap a little
        assert answer.gap == pytest.approx(
            fit.dual_gap_, rel=0.2 if name == "NuSVR" else 0.05, abs=1e-8 * abs(answer.primal)
        )
        slack = 0.2 * fit.dual_gap_ if name == "NuSVR" else 0.0
        assert answer.primal == pytest.approx(fit.objective_, rel=1e-6, abs=slack)
        duals.append(answer.dual)
    assert max(duals) - min(duals) <= 1e-6 * abs(duals[0])


def test_what_smo_had_to_finish_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from maxmargin.decomposition import inner_gpm

    whole = inner_gpm.solve_inner
    monkeypatch.setattr(inner_gpm, "solve_inner", lambda *args: whole(*args, max_iter=2))
    X, y, _ = data("SVC")
    fit = maxmargin.SVC(C=3.0, inner_solver="gpm", working_set_size=40).fit(X, y)
    assert fit.timings_["inner_fallbacks"] > 0
    assert fit.status_ == "converged"
    assert certify_fit(fit, X, y).violation <= 1.01e-3
