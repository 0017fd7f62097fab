"""The exact engine with ranks that are threads: any formulation, kernel, storage and division of the rows.

A mistake in who says what to whom shows as a wrong answer, as another model on another rank, or as a timeout.
"""

from __future__ import annotations

import pickle
import warnings
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ranks.exact_cases import MACHINES, Case, check, fit_shard, in_form, problem, same_model
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import certify_fit, spmd
from maxmargin.kernel_values import shared
from maxmargin.kernel_values.dealt import dealt_out
from maxmargin.problem.kernels import NATIVE
from maxmargin.runtime import Threads


def over_ranks(ranks: int, case: Case, X: Any, y: Any, weight: Any = None, cuts: Any = None, **more: Any) -> list[Any]:
    cuts = np.linspace(0, X.shape[0], ranks + 1).astype(int) if cuts is None else cuts
    return Threads.run(ranks, lambda comm: fit_shard(case, comm, X, y, weight, cuts, **more), timeout=60)


@given(
    case=st.sampled_from(MACHINES), seed=st.integers(0, 2**32 - 1), n=st.integers(9, 60), ranks=st.integers(2, 4),
    kernel=st.sampled_from(NATIVE), form=st.sampled_from(["dense64", "dense32", "csr64", "csr32"]), copies=st.booleans(),
    weighted=st.booleans(), small_sets=st.booleans(), shrinking=st.booleans(), dealt=st.booleans(), data=st.data(),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_any_problem_divided_anyhow(
    case: Case, seed: int, n: int, ranks: int, kernel: str, form: str, copies: bool, weighted: bool, small_sets: bool,
    shrinking: bool, dealt: bool, data: st.DataObject,
) -> None:  # fmt: skip
    # ν-SVC: a sigmoid kernel, which is not positive definite, leads to other ends in another order of the steps; with class
    # weights and few features there may be no margin, and then no solution: one process stalls there as well.
    if case.machine == "NuSVC":
        assume(kernel != "sigmoid" and ("class_weight" not in case.options or kernel in ("rbf", "laplacian")))
    X, y = problem(case.task, seed, n, copies=copies)
    X = in_form(0.3 * X if kernel in ("linear", "poly") else X, form)
    weight = np.random.default_rng(seed).integers(1, 4, n).astype(float) if weighted else None
    cuts = np.array([0, *sorted(data.draw(st.lists(st.integers(0, n), min_size=ranks - 1, max_size=ranks - 1))), n])
    more = {"kernel": kernel, "coef0": 0.5, "shrinking": shrinking, "working_set_size": 6 if small_sets else None}
    if kernel == "sigmoid":  # not positive definite: ends of runs differ
        more |= {"gamma": 0.1, "coef0": -0.1}
    with mock.patch.object(shared, "_WORTH_DEALING", 0 if dealt else 1 << 60):  # rows of tiles from all ranks, or from one
        models = over_ranks(ranks, case, X, y, weight, cuts, **more)
    check(models[0], case, X, y, weight, **more)
    assert all(same_model(models[0], model) for model in models[1:])


@pytest.mark.parametrize("case", MACHINES, ids=lambda case: f"{case.machine}-{case.task}")
def test_float32_kernel_values_shrinking_and_cached_rows(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough samples for float32 values, many turns, samples left out and taken back; a cache of few rows."""
    monkeypatch.setattr(shared, "_WORTH_DEALING", 0)
    X, y = problem(case.task, 5, 1300)
    more: dict[str, Any] = {"tol": 1e-3, "working_set_size": 60, "cache_size": 1.0}
    models = over_ranks(3, case, X, y, None, np.array([0, 100, 100, 1300]), **more)
    check(models[0], case, X, y, None, **more)
    assert all(same_model(models[0], model) for model in models[1:])
    if case.machine == "SVC":
        assert models[0].timings_["unshrinks"] > 0


def test_more_ranks_than_rows_and_a_class_on_one_rank() -> None:
    X, y = problem("two", 3, 9)
    order = np.argsort(y, kind="stable")
    case = MACHINES[0]
    for cuts in (np.array([0, *range(1, 10), 9, 9]), np.array([0, 0, 0, 9]), np.array([0, 9, 9, 9])):
        models = over_ranks(len(cuts) - 1, case, X[order], y[order], None, cuts)
        check(models[0], case, X[order], y[order], None)


def test_rows_that_do_not_count_and_support_of_all_ranks() -> None:
    case = MACHINES[0]
    X, y = problem("two", 8, 50)
    X = np.concatenate([X, X[::2]])  # copies on another rank
    y = np.concatenate([y, y[::2]])
    weight = np.where(np.arange(75) % 5 == 0, 0.0, 1.5)
    models = over_ranks(3, case, X, y, weight)
    check(models[0], case, X, y, weight)
    assert not (weight[models[0].support_] == 0).any()


@pytest.mark.parametrize("case", MACHINES, ids=lambda case: f"{case.machine}-{case.task}")
def test_by_rows_as_in_the_paper(case: Case) -> None:
    """All ranks hold all samples, and compute a share of the kernel rows: float64 and float32 values, dense and CSR."""
    for n, more in ((80, {"working_set_size": 10}), (1100, {"tol": 1e-3, "working_set_size": 100})):
        X, y = problem(case.task, 9, n)
        X = in_form(X, "csr32" if n == 80 else "dense64")
        cuts = np.array([0, 30, 30, n])
        models = Threads.run(3, lambda comm: fit_shard(case, comm, X, y, None, cuts, "rows", **more), timeout=60)  # noqa: B023
        check(models[0], case, X, y, None, **more)
        assert all(same_model(models[0], model) for model in models[1:])


def test_rows_go_to_who_has_them_and_else_to_who_has_least() -> None:
    held = np.zeros((3, 7), bool)
    held[1, [0, 2]] = True
    held[2, [2, 5]] = True
    who = dealt_out(held)
    assert who[[0, 2, 5]].tolist() == [1, 1, 2]
    assert np.bincount(who, minlength=3).tolist() == [3, 2, 2]


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_gamma_of_the_data_and_mostly_zero_rows(kind: str) -> None:
    """gamma="scale" is that of all rows; dense rows that are mostly zero are held by their entries, on all ranks or none."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1200, 80)) + 3.0
    X[rng.random(X.shape) < 0.8] = 0
    y = (X.sum(axis=1) > X.sum(axis=1).mean()).astype(int)
    X = sp.csr_matrix(X) if kind == "csr" else X
    case = Case("SVC", "two", {"C": 5.0, "tol": 1e-4})
    for cuts in (np.array([0, 600, 1200]), np.array([0, 30, 1200])):
        models = over_ranks(2, case, X, y, None, cuts)
        alone = maxmargin.SVC(C=5.0, tol=1e-4).fit(X, y)
        assert models[0]._gamma == pytest.approx(alone._gamma, rel=1e-12)
        check(models[0], case, X, y, None)


@pytest.mark.parametrize("stop", ["max_iter", "max_time", "callback"])
@pytest.mark.parametrize("case", [MACHINES[0], MACHINES[2], MACHINES[6], MACHINES[7], MACHINES[9]], ids=str)
def test_a_run_that_is_stopped_tells_the_truth_on_all_ranks(case: Case, stop: str) -> None:
    X, y = problem(case.task, 1, 400)
    calls: list[int] = []
    more: dict[str, Any] = {"working_set_size": 8}
    if stop == "callback":
        more["callback"] = lambda row: calls.append(1) or len(calls) > 12
    else:
        more[stop] = 4 if stop == "max_iter" else 1e-6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = over_ranks(3, case, X, y, None, **more)
    assert all(model.status_ == stop for model in models)
    assert all(same_model(models[0], model) for model in models)
    assert sum(issubclass(w.category, ConvergenceWarning) for w in caught) == (stop != "callback")  # of one rank
    if case.machine == "NuSVC" or np.isnan(models[0].objective_):
        return
    judged = certify_fit(models[0], X, y)
    assert judged.infeasibility <= 1e-9
    assert models[0].objective_ == pytest.approx(judged.primal, rel=1e-6, abs=1e-6)
    assert models[0].dual_gap_ == pytest.approx(judged.gap, rel=1e-6, abs=1e-6)


def test_an_error_of_one_rank_ends_all() -> None:
    X, y = problem("two", 1, 60)
    bad = X.copy()
    bad[50] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        over_ranks(3, MACHINES[0], bad, y)

    def fail(row: dict[str, float]) -> None:
        raise OSError("the disc is full")

    with pytest.raises(OSError, match="the disc is full"):
        over_ranks(2, MACHINES[0], X, y, callback=fail)
    with pytest.raises(ValueError, match=r"nu is infeasible.*largest feasible value"):
        over_ranks(2, Case("NuSVC", "two", {"nu": 1.0}), X[:, :], np.arange(60) % 20 == 0)
    with pytest.raises(ValueError, match=r"kernel=.*choose one of"):
        over_ranks(2, MACHINES[0], X, y, kernel="precomputed")
    with pytest.raises(ValueError, match="cache_size"):
        over_ranks(2, MACHINES[0], X, y, cache_size=1e-5)
    with pytest.raises(ValueError, match="greater than one"):
        over_ranks(2, MACHINES[0], X, np.zeros(60))


def test_a_warm_start_goes_on_from_the_last_fit() -> None:
    X, y = problem("two", 4, 300)
    cuts = np.array([0, 100, 300])

    def twice(comm: Any) -> Any:
        model = spmd.SVC(C=2.0, tol=1e-6, warm_start=True, working_set_size=20)
        rows = slice(cuts[comm.rank], cuts[comm.rank + 1])
        first = model.fit(X[rows], y[rows], comm=comm).n_iter_.sum()
        return first, model.fit(X[rows], y[rows], comm=comm)

    results = Threads.run(2, twice)
    first, model = results[0]
    assert model.n_iter_.sum() < first
    check(model, Case("SVC", "two", {"C": 2.0, "tol": 1e-6}), X, y, None)


def test_the_model_is_a_plain_one() -> None:
    X, y = problem("three", 6, 120)
    model = over_ranks(2, MACHINES[2], X, y)[1]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    local = model.to_local()
    assert type(local) is maxmargin.SVC
    np.testing.assert_array_equal(local.decision_function(X), model.decision_function(X))
