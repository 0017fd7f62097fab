"""Every fold of every cell against fits of its own: scikit-learn's and ours, at tight tolerance; and certificates."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit, StratifiedKFold

from maxmargin import SVC, SVCCV, SVR, SVRCV, NuSVC, NuSVCCV, certify_fit
from maxmargin.selection import cross_val_decisions
from maxmargin.selection.judged import precision
from maxmargin.selection.kernel import KernelFolds

TIGHT = {"tol": 1e-6, "n_jobs": 1}
CS, GAMMAS = [0.07, 0.9, 30.0], [0.05, 1.0]


def data(kind: str, n: int = 90, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[5:10] = X[:5]  # copies, some of which will be in other folds, or have other labels
    signal = X[:, 0] + 0.7 * X[:, 1] ** 2 + 0.6 * rng.normal(size=n)
    if kind == "numbers":
        return X, signal
    if kind == "two":
        return X, np.array(["no", "yes"])[(signal > 0.5).astype(int)]
    return X, np.digitize(signal, [0.0, 1.0, 2.0])


def fitted(search: Any, X: Any, y: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(X, y, **more)


def params_of(search: Any, cell: int) -> dict[str, Any]:
    return search.cv_results_["params"][cell]


def check_cells(search: Any, machine: Any, X: Any, y: Any, folds: Any, weight: Any = None, score: Any = None) -> None:
    """Scores and objectives of all folds are those of `machine` fitted to the fold alone; gaps hold what they promise."""
    table = search.cv_results_
    assert (table["status"] == "certified").all(), table["status"]
    for cell in range(len(table["params"])):
        for k, (train, test) in enumerate(folds):
            alone = clone(machine).set_params(**params_of(search, cell))
            alone.fit(X[train], y[train], sample_weight=None if weight is None else weight[train])
            truth = certify_fit(alone, X[train], y[train], None if weight is None else weight[train])
            objective, gap = table[f"split{k}_objective"][cell], table[f"split{k}_gap"][cell]
            scale = 1e-9 * max(1.0, abs(truth.primal))
            assert gap >= 0
            assert objective - gap <= truth.primal + scale, "a lower bound above an objective"
            assert truth.dual <= objective + scale, "an objective below a lower bound"
            assert objective - truth.primal <= gap + scale
            expected = score(alone, X[test], y[test]) if score else alone.score(
                X[test], y[test], None if weight is None else weight[test]
            )  # fmt: skip
            assert table[f"split{k}_test_score"][cell] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", ["two", "four"])
@pytest.mark.parametrize("form", ["dense64", "dense32", "csr"])
def test_classifiers_as_ours(kind: str, form: str) -> None:
    X, y = data(kind)
    X = sp.csr_matrix(X) if form == "csr" else X.astype(np.float32 if form == "dense32" else np.float64)
    search = fitted(SVCCV(Cs=CS, gammas=GAMMAS, cv=3, scoring=_plain, **TIGHT), X, y)
    folds = list(StratifiedKFold(3).split(np.zeros(len(y)), y))
    check_cells(search, SVC(**TIGHT), X, y, folds)


def _plain(machine: Any, X: Any, y: Any) -> float:
    """Accuracy, of which the search knows no largest value: so nothing is dropped."""
    return float(np.mean(machine.predict(X) == y))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", "laplacian"])
def test_kernels(kernel: str) -> None:
    X, y = data("two")
    X = 0.5 * X
    options = {"kernel": kernel, "degree": 2, "coef0": 0.1, **TIGHT}
    gammas = [0.2] if kernel == "sigmoid" else [0.2, 1.0]
    search = fitted(SVCCV(Cs=[0.1, 1.0], gammas=gammas, cv=3, scoring=_plain, **options), X, y)
    check_cells(search, SVC(**options), X, y, list(StratifiedKFold(3).split(X, y)))


def test_against_scikit_learn() -> None:
    X, y = data("four", 120)
    search = fitted(SVCCV(Cs=CS, gammas=GAMMAS, cv=3, scoring=_plain, decision_function_shape="ovo", **TIGHT), X, y)
    table = search.cv_results_
    for cell, params in enumerate(table["params"]):
        for k, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            other = svm.SVC(**params, tol=1e-8).fit(X[train], y[train])
            assert table[f"split{k}_test_score"][cell] == pytest.approx(other.score(X[test], y[test]), abs=1e-9)


def test_weights_and_groups() -> None:
    X, y = data("two", 80)
    rng = np.random.default_rng(1)
    weight, groups = rng.integers(0, 4, len(y)).astype(float), rng.integers(0, 4, len(y))
    search = SVCCV(Cs=CS, gammas=GAMMAS, cv=LeaveOneGroupOut(), scoring=None, class_weight={"yes": 1.7}, **TIGHT)
    fitted(search, X, y, sample_weight=weight, groups=groups)
    counts = np.flatnonzero(weight > 0)
    folds = [(counts[a], counts[b]) for a, b in LeaveOneGroupOut().split(X[counts], y[counts], groups[counts])]
    table = search.cv_results_
    whole = [c for c in range(len(table["params"])) if table["status"][c] == "certified"]
    for cell in whole:
        for k, (train, test) in enumerate(folds):
            alone = SVC(class_weight={"yes": 1.7}, **TIGHT, **params_of(search, cell)).fit(X[train], y[train], weight[train])
            expected = alone.score(X[test], y[test], weight[test])
            assert table[f"split{k}_test_score"][cell] == pytest.approx(expected, abs=1e-9)
            assert table[f"split{k}_objective"][cell] == pytest.approx(alone.objective_, rel=1e-5)


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), ShuffleSplit(4, test_size=0.3, random_state=0)])
def test_regression(cv: Any) -> None:
    X, y = data("numbers")
    search = fitted(SVRCV(Cs=[1.0, 3.0, 40.0], gammas=[0.1, 1.0], epsilons=[0.0, 0.2], cv=cv, scoring=_r2, **TIGHT), X, y)
    check_cells(search, SVR(**TIGHT), X, y, list(cv.split(X, y)))


def _r2(machine: Any, X: Any, y: Any) -> float:
    return float(machine.score(X, y))


@pytest.mark.parametrize("kind", ["two", "four"])
def test_nu(kind: str) -> None:
    X, y = data(kind)
    search = fitted(NuSVCCV(nus=[0.2, 0.3, 0.4], gammas=[1.0, 3.0], cv=3, scoring=_plain, **TIGHT), X, y)
    table = search.cv_results_
    for cell, params in enumerate(table["params"]):
        for k, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            alone = NuSVC(**params, **TIGHT).fit(X[train], y[train])
            assert table[f"split{k}_test_score"][cell] == pytest.approx(alone.score(X[test], y[test]), abs=0.04)
            assert table[f"split{k}_objective"][cell] == pytest.approx(alone.objective_, rel=1e-4, abs=1e-4)


def test_infeasible_folds_are_told() -> None:
    X, y = data("two")
    y = np.where(np.arange(len(y)) < 12, "yes", "no")
    search = fitted(NuSVCCV(nus=[0.1, 0.9], gammas=[0.5], cv=3), X, y)
    status = search.cv_results_["status"]
    assert status[0] == "certified" and "infeasible" in status[1] and search.nu_ == 0.1


def test_precomputed() -> None:
    X, y = data("two")
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    given = fitted(SVCCV(Cs=CS, kernel="precomputed", cv=3, scoring=_plain, **TIGHT), K, y)
    plain = fitted(SVCCV(Cs=CS, gammas=[0.5], cv=3, scoring=_plain, **TIGHT), X, y)
    for k in range(3):
        np.testing.assert_allclose(given.cv_results_[f"split{k}_test_score"], plain.cv_results_[f"split{k}_test_score"])
        one, other = (s.cv_results_[f"split{k}_objective"] for s in (given, plain))
        np.testing.assert_allclose(one, other, rtol=1e-4)
    assert (given.predict(K) == plain.predict(X)).mean() > 0.97


def test_a_fold_without_a_class() -> None:
    X, y = data("four")
    folds = [(np.flatnonzero(y != 3), np.flatnonzero(y == 3)), (np.flatnonzero(y < 2), np.flatnonzero(y >= 2))]
    folds += [(np.arange(30, len(y)), np.arange(30))]
    search = fitted(SVCCV(Cs=CS, gammas=GAMMAS, cv=folds, scoring=_plain, **TIGHT), X, y)
    check_cells(search, SVC(**TIGHT), X, y, folds)


def test_the_model_is_the_machine() -> None:
    X, y = data("four")
    search = fitted(SVCCV(Cs=CS, gammas=GAMMAS, cv=3, **TIGHT), X, y)
    alone = SVC(C=search.C_, gamma=search.gamma_, **TIGHT).fit(X, y)
    assert isinstance(search, SVC) and search.status_ == "converged"
    assert search.objective_ == pytest.approx(alone.objective_, rel=1e-6)
    np.testing.assert_allclose(search.decision_function(X), alone.decision_function(X), atol=1e-3)
    assert {k for k in vars(alone) if k.endswith("_")} <= set(dir(search))
    assert certify_fit(search, X, y).relative_gap < 1e-5


def test_balanced_weights_are_those_of_the_fold() -> None:
    X, y = data("two", 80)
    search = fitted(SVCCV(Cs=[0.9, 30.0], gammas=[1.0], cv=KFold(3), class_weight="balanced", scoring=_plain, **TIGHT), X, y)
    check_cells(search, SVC(class_weight="balanced", **TIGHT), X, y, list(KFold(3).split(X)))


def test_groups_stay_together() -> None:
    X, y = data("two")
    groups = np.arange(len(y)) // 10
    search = fitted(SVCCV(Cs=[0.9, 30.0], gammas=GAMMAS, cv=GroupKFold(3), scoring=_plain, **TIGHT), X, y, groups=groups)
    check_cells(search, SVC(**TIGHT), X, y, list(GroupKFold(3).split(X, y, groups)))
    with pytest.raises(ValueError, match="groups"):
        SVCCV(cv=GroupKFold(3)).fit(X, y)


@pytest.mark.parametrize("search", [
    SVCCV(Cs=[0.07, 0.9, 30.0], gammas=[0.05, 1.0, 20.0], cv=3, n_jobs=2),
    SVCCV(Cs=[0.07, 0.9, 30.0], gammas=[1.0], cv=3, fit_intercept=False, n_jobs=1),
    NuSVCCV(nus=[0.2, 0.3, 0.4], gammas=[1.0, 3.0], cv=3, n_jobs=1),
    SVRCV(Cs=[0.07, 0.9, 30.0], gammas=[0.05, 1.0], epsilons=[0.2], cv=3, n_jobs=1),
])  # fmt: skip
def test_larger_than_a_working_set_and_nothing_falls_back(search: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is solved on the matrix, whatever class comes first, and what is not dropped is right."""
    X, y = data("numbers" if isinstance(search, SVRCV) else "two", 1300)
    monkeypatch.setattr(KernelFolds, "again", _never)
    fitted(search, X, y)
    table = search.cv_results_
    assert set(table["status"]) <= {"certified", "dropped"}
    folds = (KFold if isinstance(search, SVRCV) else StratifiedKFold)(3).split(X, y)
    train, test = next(iter(folds))
    for cell in np.flatnonzero(table["status"] == "certified")[::3]:
        alone = clone(search)._single(params_of(search, cell)).fit(X[train], y[train])
        objective, gap = table["split0_objective"][cell], table["split0_gap"][cell]
        rounding = 1e-6 * abs(objective)
        assert objective - gap <= alone.objective_ + rounding and alone.objective_ - alone.dual_gap_ <= objective + rounding
        assert 0 <= gap <= 2 * alone.dual_gap_ + 1e-3 * abs(objective)
        assert table["split0_test_score"][cell] == pytest.approx(alone.score(X[test], y[test]), abs=0.02)


def _never(*args: Any) -> None:
    raise AssertionError("a fold was not solved on the matrix")


@pytest.mark.parametrize("apart", [0.3, 30.0], ids=["all are support vectors", "few are"])
def test_decision_values_of_rows_of_other_classes(apart: float) -> None:
    """Whether they are summed over the rows of the coefficients or over their own."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(12), 25)
    X = apart * rng.normal(size=(12, 4))[y] + rng.normal(size=(300, 4))
    machine = SVC(kernel="linear", C=1e-2 if apart < 1 else 1e2, tol=1e-6, fit_intercept=False)
    found = cross_val_decisions(machine.set_params(decision_function_shape="ovo"), X, y, cv=3)
    for train, test in StratifiedKFold(3).split(X, y):
        alone = clone(machine).fit(X[train], y[train])
        np.testing.assert_allclose(found[test], alone.decision_function(X[test]), rtol=1e-3, atol=1e-4)


def test_threads_change_nothing() -> None:
    """A problem waits for all that it begins from: what it is given does not depend on who was quicker."""
    X, y = data("two", 700)
    tables = [
        fitted(SVCCV(Cs=CS, gammas=[1.0], cv=5, scoring=_plain, n_jobs=n_jobs, refit=False), X, y).cv_results_
        for n_jobs in (1, 2, 2, 3)
    ]
    for k in range(5):
        for table in tables[1:]:
            np.testing.assert_array_equal(table[f"split{k}_objective"], tables[0][f"split{k}_objective"])


@pytest.mark.parametrize("magnitude", [0.01, 1.0, 40.0])
def test_a_point_that_was_mended_is_proven_where_that_cannot_have_moved_its_conditions(magnitude: float) -> None:
    """Δβ moves f by at most m² Σ |Δβ|, the difference of two of them by twice that: a millionth of tol is allowed."""
    matrices = SimpleNamespace(fits=True, magnitude=lambda gamma: magnitude, noise=lambda gamma: 0.0)
    machine, allowed = SVC(gamma=1.0, tol=1e-3), 1e-9 / (2 * magnitude**2)
    moved = np.array([0.0, 0.999 * allowed, 1.001 * allowed])
    assert precision(machine, matrices, np.zeros(3), moved)[1].tolist() == [True, True, False]
    matrices.fits = False  # its runs judge by f as they left it
    assert precision(machine, matrices, np.zeros(2), np.array([0.0, 1e-99]))[1].tolist() == [True, False]
