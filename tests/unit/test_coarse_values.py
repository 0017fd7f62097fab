"""Where float32 kernel values do not tell whether a run is done, f is computed in float64 for the samples that matter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.decomposition import solver, verified
from maxmargin.kernel_values.native import NativeValues

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from machines import data, judged, last_row_is_the_model

MACHINES = [
    (SVC(C=100.0, gamma=0.5), "two"),
    (SVC(C=10.0, gamma=0.2, kernel="poly", coef0=1.0), "two"),
    (SVC(C=10.0, gamma=0.5, class_weight={"a": 3.0, "b": 0.2}), "two"),
    (NuSVC(nu=0.3, gamma=0.5), "two"),
    (SVR(C=10.0, gamma=0.5, epsilon=0.3), "numbers"),
    (NuSVR(C=10.0, gamma=0.5, nu=0.2), "numbers"),
    (OneClassSVM(nu=0.1, gamma=0.5), "none"),
]
N = 2000  # more than are always in float64


@pytest.fixture
def sums(monkeypatch) -> list[tuple[Any, int]]:
    """Precision and samples of every sum that a fit asks for; float32 values never seem fine enough."""
    asked: list[tuple[Any, int]] = []
    plain = NativeValues.sum

    def noted(self: Any, samples: Any, others: Any, coef: Any) -> Any:
        asked.append((self.dtype, len(samples)))
        return plain(self, samples, others, coef)

    monkeypatch.setattr(NativeValues, "sum", noted)
    fine = verified.sure
    monkeypatch.setattr(solver, "sure", lambda state: state.kernel.dtype == np.float64 and fine(state))
    return asked


def rows(task: str) -> tuple[Any, Any]:
    X, y = data(task, N)
    return X.astype(np.float32), y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("machine, task", MACHINES, ids=lambda m: type(m).__name__)
def test_what_is_said_is_as_exact_as_if_all_were_in_float64(machine, task, form, sums) -> None:
    X, y = rows(task)
    model = machine.set_params(cache_size=200).fit(form(X), y)
    assert model.status_ == "converged" and model._precision == "float64"
    assert any(dtype == np.float64 for dtype, _ in sums)
    judged(model, form(X), y)
    last_row_is_the_model(model)


def test_samples_that_do_not_matter_are_left_alone(sums) -> None:
    """Two classes far apart with few samples in between: most are neither support vectors nor near the margin."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)).astype(np.float32)
    X[:, 0] += np.where(np.arange(4000) % 2, 3.0, -3.0)
    y = np.arange(4000) % 2
    model = SVC(C=10.0, gamma=0.1).fit(X, y)
    assert model.status_ == "converged" and model._precision == "float64"
    assert len(model.support_) <= sum(count for dtype, count in sums if dtype == np.float64) < 1000
    judged(model, X, y)


@pytest.mark.parametrize("sign", [1.0, -1.0, 0.0], ids=["above", "below", "either"])
@pytest.mark.parametrize("machine, task", MACHINES, ids=lambda m: type(m).__name__)
def test_no_error_within_the_bound_is_left(machine, task, sign, sums, monkeypatch) -> None:
    """f is put off by as much as coarse values would be allowed to: what is said stays exact."""
    monkeypatch.setattr(NativeValues, "noise", property(lambda self: 1e-4 if self.dtype == np.float32 else 1e-14))
    plain, rng, spoilt = verified.refine, np.random.default_rng(0), []

    def refine(state: Any) -> Any:
        if not spoilt:  # once: an error that stays is what the bound is for
            m = np.broadcast_to(state.kernel.magnitude, state.qp.n)
            off = 0.99e-4 * m * (state.path + np.sum(np.abs(state.coef) * m))
            off = off * (sign or rng.choice([-1.0, 1.0], len(off)))
            state.part.add(np.arange(state.qp.n), off)
            spoilt.append(float(np.max(np.abs(off))))
        yield from plain(state)

    monkeypatch.setattr(solver, "refine", refine)
    X, y = rows(task)
    model = machine.set_params(cache_size=200).fit(X, y)
    assert spoilt and spoilt[0] > 10 * model.tol  # it would have been seen
    assert model.status_ == "converged"
    judged(model, X, y)


def test_who_was_left_out_comes_back_when_its_exact_value_says_so(sums, monkeypatch) -> None:
    """A run that had left out violators, by values that were off, does not end without them."""
    X, y = rows("two")
    plain, spoilt = verified.refine, []
    monkeypatch.setattr(NativeValues, "noise", property(lambda self: 1e-2 if self.dtype == np.float32 else 1e-14))

    def refine(state: Any) -> Any:
        if not spoilt:
            keep = np.flatnonzero(state.coef[np.asarray(state.part.active)])  # all others seem to be done
            state.left.append((np.delete(np.asarray(state.part.active), keep), state.coef))
            state.part.restrict(keep)
            state.active = len(keep)
            off = np.where(state.coef == 0, 0.5, 0.0) * np.sign(state.qp.sign)
            state.part.add(np.arange(state.qp.n), -off)
            spoilt.append(True)
        yield from plain(state)

    monkeypatch.setattr(solver, "refine", refine)
    model = SVC(C=10.0, gamma=0.5).fit(X, y)
    assert spoilt and model.status_ == "converged"
    judged(model, X, y)
