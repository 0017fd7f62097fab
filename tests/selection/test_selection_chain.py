"""Searches where no whole kernel matrix fits: every fold against a fit of its own, and what is handed from run to run."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from maxmargin import SVC, SVCCV, SVR, SVRCV, NuSVCCV, certify_fit
from maxmargin.problem.formulations import c_svc
from maxmargin.selection import chain as chains
from maxmargin.selection import cross_val_decisions
from maxmargin.selection.kernel import KernelFolds

CS, GAMMAS = [0.07, 0.9, 30.0], [0.05, 1.0]


def data(kind: str, n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    X[5:10] = X[:5]
    signal = X[:, 0] + 0.7 * X[:, 1] ** 2 + 0.6 * rng.normal(size=n)
    if kind == "numbers":
        return X, signal
    return X, (signal > 0.5).astype(int) if kind == "two" else np.digitize(signal, [0.0, 1.0])


def plain(machine: Any, X: Any, y: Any) -> float:
    """A scorer of which no largest value is known: nothing is dropped."""
    return float(machine.score(X, y))


def small_room(n: int, rows: float) -> float:
    """A cache_size in MB for some rows of float64, too few for the matrix."""
    return rows * n * 8 / 2**20


def searched(search: Any, X: Any, y: Any, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Any:
    """The search, all by chains: no fold is fitted by itself and no matrix is made."""
    made: list[int] = []
    init = chains.Chain.__init__

    def counted(self: Any, links: Any, *more: Any) -> None:
        made.append(len(links))
        init(self, links, *more)

    monkeypatch.setattr(chains.Chain, "__init__", counted)
    monkeypatch.setattr(KernelFolds, "again", _never)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y, **more)
    assert made
    return search


def _never(*args: Any) -> None:
    raise AssertionError("a fold was fitted by itself")


def check(search: Any, machine: Any, X: Any, y: Any, folds: Any, weight: Any = None) -> None:
    table = search.cv_results_
    assert (table["status"] == "certified").all(), table["status"]
    for cell, params in enumerate(table["params"]):
        for k, (train, test) in enumerate(folds):
            own = None if weight is None else weight[train]
            alone = clone(machine).set_params(**params).fit(X[train], y[train], sample_weight=own)
            truth = certify_fit(alone, X[train], y[train], own)
            objective, gap = table[f"split{k}_objective"][cell], table[f"split{k}_gap"][cell]
            slack = 1e-9 * max(1.0, abs(truth.primal))
            assert gap >= 0
            assert objective - gap <= truth.primal + slack, "a lower bound above an objective"
            assert truth.dual <= objective + slack, "an objective below a lower bound"
            assert table[f"split{k}_test_score"][cell] == pytest.approx(alone.score(X[test], y[test]), abs=1e-4)


@pytest.mark.parametrize(("kind", "form"), [("two", "dense64"), ("two", "dense32"), ("three", "dense64"), ("three", "csr")])
@pytest.mark.parametrize("rows", [15, 70], ids=["few rows fit", "many rows fit"])
def test_as_fits_of_their_own(kind: str, form: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(kind, 150)
    X = sp.csr_matrix(X) if form == "csr" else X.astype(np.float32 if form == "dense32" else np.float64)
    options = {"tol": 1e-6, "n_jobs": 1}
    search = SVCCV(Cs=CS, gammas=GAMMAS, cv=3, scoring=plain, cache_size=small_room(150, rows), **options)
    searched(search, X, y, monkeypatch)
    check(search, SVC(**options), X, y, list(StratifiedKFold(3).split(np.zeros(len(y)), y)))


def test_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data("two", 150)
    weight = np.random.default_rng(1).uniform(0.5, 3.0, len(y))
    options = {"tol": 1e-6, "n_jobs": 1, "class_weight": {1: 1.7}}
    search = SVCCV(Cs=CS, gammas=GAMMAS, cv=3, scoring=plain, cache_size=small_room(150, 30), **options)
    searched(search, X, y, monkeypatch, sample_weight=weight)
    check(search, SVC(**options), X, y, list(StratifiedKFold(3).split(X, y)), weight)


def test_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data("numbers", 150)
    options = {"tol": 1e-6, "n_jobs": 1}
    axes: dict[str, Any] = {"Cs": [0.5, 5.0], "gammas": [0.05], "epsilons": [0.0, 0.2]}
    search = SVRCV(**axes, cv=KFold(3), scoring=plain, cache_size=small_room(150, 30), **options)
    searched(search, X, y, monkeypatch)
    check(search, SVR(**options), X, y, list(KFold(3).split(X)))


def test_nu(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data("two", 150)
    axes: dict[str, Any] = {"nus": [0.2, 0.3, 0.4], "gammas": [0.05], "cv": 3, "scoring": plain, "tol": 1e-6, "n_jobs": 1}
    here = searched(NuSVCCV(**axes, cache_size=small_room(150, 30)), X, y, monkeypatch).cv_results_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = NuSVCCV(**axes).fit(X, y).cv_results_
    for k in range(3):
        np.testing.assert_allclose(here[f"split{k}_objective"], there[f"split{k}_objective"], rtol=1e-4)


@pytest.mark.parametrize("rows", [150, 900], ids=["few rows fit", "many rows fit"])
def test_larger_in_float32_with_the_choice_of_the_matrix(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets of a part, rows that are kept or samples that are left out, dropped cells: and the same is chosen."""
    n = 2200
    X, y = data("two", n)
    axes: dict[str, Any] = {"Cs": [0.3, 3.0, 30.0], "gammas": [0.02, 0.3], "cv": 3, "n_jobs": 2}
    here = searched(SVCCV(**axes, cache_size=small_room(n, rows / 2)), X, y, monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = SVCCV(**axes).fit(X, y)
    assert set(here.cv_results_["status"]) <= {"certified", "dropped"}
    assert here.best_params_ == there.best_params_ and here.status_ == "converged"
    assert here.objective_ == pytest.approx(there.objective_, rel=1e-3)
    for k in range(3):
        (high, gap), (other, its_gap) = (
            (s.cv_results_[f"split{k}_objective"], s.cv_results_[f"split{k}_gap"]) for s in (here, there)
        )
        known = np.isfinite(high) & np.isfinite(other)
        assert known.any()
        assert ((high - gap)[known] <= other[known] * (1 + 1e-6)).all()
        assert ((other - its_gap)[known] <= high[known] * (1 + 1e-6)).all()


def test_f_is_never_handed_to_another_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that went on in float64 is no start of f for one in float32, nor the other way round."""
    X, y = data("two", 150)
    seen: list[bool] = []
    known = chains.Chain._known

    def spied(self: Any, link: Any, alpha: Any, dtype: Any) -> Any:
        for p in list(self._ended)[::2]:
            object.__setattr__(self._ended[p], "dtype", np.dtype(np.float32))
        out = known(self, link, alpha, dtype)
        parents = [self._ended[p] for p in (link.parent, link.like, link.unlike) if p >= 0]
        if any(e.dtype != dtype for e in parents):
            seen.append(out is None)
        return out

    monkeypatch.setattr(chains.Chain, "_known", spied)
    search = SVCCV(Cs=CS, gammas=[1.0], cv=3, scoring=plain, cache_size=small_room(150, 30), tol=1e-6, n_jobs=1)
    searched(search, X, y, monkeypatch)
    assert seen and all(seen)


def test_decisions_are_those_of_machines_of_their_own() -> None:
    X, y = data("three", 400)
    machine = SVC(C=3.0, gamma=0.05, tol=1e-6, decision_function_shape="ovo")
    values = cross_val_decisions(machine, X, y, cv=4)
    for train, test in StratifiedKFold(4).split(X, y):
        alone = clone(machine).fit(X[train], y[train])
        np.testing.assert_allclose(values[test], alone.decision_function(X[test]), atol=1e-4)


@given(st.integers(0, 10_000), st.integers(2, 60), st.floats(-3.0, 3.0))
@settings(max_examples=60, deadline=None)
def test_sums_are_mended_by_few(seed: int, n: int, off: float) -> None:
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1.0, 1.0], n)
    qp = c_svc(sign, rng.uniform(0.5, 2.0, n))
    alpha = np.where(rng.random(n) < 0.3, 0.0, rng.random(n)) * qp.upper
    alpha = np.where(rng.random(n) < 0.2, qp.upper, alpha)
    qp = replace(qp, targets=np.array([float(sign @ alpha) + off]))  # so far off is what a fold has taken out
    mended = chains._mended(qp, alpha.copy())
    assert (mended >= 0).all() and (mended <= qp.upper).all()
    moved = np.abs(mended - alpha)
    near = np.minimum(alpha, qp.upper - alpha)
    if not moved.any():  # nobody, where all together cannot; the general rule is for that
        assert abs(off) < 1e-12 or chains.GIVES * near.sum() < abs(off)
        return
    assert abs(sign @ mended - qp.targets[0]) <= 1e-12 * n
    assert (moved <= chains.GIVES * near + 1e-12).all()
    assert chains.GIVES * np.sort(near[moved > 0])[1:].sum() < abs(off) + 1e-12  # one fewer would not have done
