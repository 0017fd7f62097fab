"""What every machine promises, over all of them: true at every end, unchanged by errors, equal where data are equal."""

from __future__ import annotations

import pickle
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from maxmargin.selection import EdgeWarning

sys.path.insert(0, str(Path(__file__).parent))
from machines import CASES, SEARCHES, Case, data, decisions, equally_good, judged, last_row_is_the_model, time_is_up

every = pytest.mark.parametrize("case", CASES, ids=str)
with_searches = pytest.mark.parametrize("case", CASES + SEARCHES, ids=str)  # what only these promise: test_searches.py


def fit(model: Any, X: Any, y: Any, weight: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", EdgeWarning)
        return model.fit(X, y, sample_weight=weight)


def unchanged(model: Any, before: bytes) -> None:
    assert pickle.dumps(model) == before


# ---- the truth, at every end ----------------------------------------------------------------------------------------


@every
def test_a_finished_fit_says_the_truth(case: Case) -> None:
    X, y = data(case.task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = case.build().fit(X, y)
    expected = "completed" if "Budget" in case.name else "early" if "early" in case.name else "converged"
    assert model.status_ == expected
    judged(model, X, y)
    last_row_is_the_model(model)


@every
@pytest.mark.parametrize("turns", [1, 3])
def test_a_fit_stopped_by_its_limit_says_the_truth(case: Case, turns: int) -> None:
    if case.limit is None:
        pytest.skip("max_iter limits each of its subproblems: see test_dc.py")
    X, y = data(case.task)
    model = fit(case.build(**case.slow | {case.limit: turns}), X, y)
    assert model.status_ in ("max_iter", "converged", "completed")
    judged(model, X, y)
    last_row_is_the_model(model)


@every
@pytest.mark.parametrize("turns", [1, 5, 20])
def test_a_fit_stopped_by_a_callback_says_the_truth(case: Case, turns: int) -> None:
    X, y = data(case.task)
    seen: list[dict[str, float]] = []
    model = fit(case.build(**case.slow, callback=lambda row: seen.append(row) or len(seen) == turns), X, y)
    assert (model.status_ == "callback") == (len(seen) == turns)
    assert len(seen) <= turns  # not called again
    judged(model, X, y)
    last_row_is_the_model(model)


@every
@pytest.mark.parametrize("looks", [0, 1, 3, 8, 21, 55])
def test_a_fit_stopped_by_the_clock_says_the_truth(case: Case, looks: int, monkeypatch) -> None:
    """At many moments: time is up at the n-th look at the clock."""
    X, y = data(case.task)
    made = time_is_up(monkeypatch, looks)
    model = fit(case.build(**case.slow, max_time=3600.0), X, y)
    assert model.status_ == "max_time" or len(made) <= looks or model.status_ in ("converged", "completed", "early")
    judged(model, X, y)
    last_row_is_the_model(model)
    assert np.isfinite(decisions(model, X)).all()


@every
@pytest.mark.parametrize("turns", [1, 6])
def test_a_fit_stopped_by_ctrl_c_returns_the_model_and_says_the_truth(case: Case, turns: int) -> None:
    X, y = data(case.task)
    seen = []

    def press(row: dict[str, float]) -> None:
        seen.append(row)
        if len(seen) == turns:
            signal.raise_signal(signal.SIGINT)

    model = fit(case.build(**case.slow, callback=press), X, y)
    assert model.status_ == "interrupted" or len(seen) < turns
    judged(model, X, y)
    last_row_is_the_model(model)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@every
def test_a_tolerance_beyond_reach_is_never_called_converged(case: Case) -> None:
    model = case.build()
    if "tol" not in model.get_params():
        pytest.skip("has no tolerance")
    X, y = data(case.task)
    fit(model.set_params(tol=1e-15, max_iter=100), X, y)
    if "early" not in case.name:
        judged(model, X, y)
        assert model.status_ != "converged" or model.trace_[-1]["violation"] <= 1e-15


# ---- warm starts ------------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("change", ["C up", "C down", "labels", "samples", "weights", "one weight", "gamma", "loss"])
def test_a_warm_start_never_leads_to_untruth(case: Case, change: str) -> None:
    if not case.warm:
        pytest.skip("has no warm_start")
    X, y = data(case.task)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = case.build(warm_start=True, tol=1e-5).fit(X, y, sample_weight=weight)
    params = model.get_params()
    if change.startswith("C"):
        if "C" not in params:
            pytest.skip("has no C")
        model.set_params(C=params["C"] * (1e3 if change == "C up" else 1e-4))
    elif change == "gamma":
        if "gamma" not in params:
            pytest.skip("has no gamma")
        model.set_params(gamma=3.0)
    elif change == "loss":
        if "loss" not in params or params.get("penalty") == "l1":
            pytest.skip("has no other loss")
        loss = params["loss"]
        model.set_params(loss=loss.removeprefix("squared_") if loss.startswith("squared_") else f"squared_{loss}")
    elif change == "labels":
        y = y[::-1].copy()
    elif change == "samples":
        X = X[::-1].copy()
    elif change == "weights":
        weight = weight[::-1].copy()
    else:
        weight = weight.copy()
        weight[3] *= 100.0
    warm = pickle.loads(pickle.dumps(model)).fit(X, y, sample_weight=weight)
    judged(warm, X, y, weight)
    cold = case.build(**{**warm.get_params(), "warm_start": False}).fit(X, y, sample_weight=weight)
    assert abs(warm.objective_ - cold.objective_) <= warm.dual_gap_ + cold.dual_gap_ + 1e-9 * abs(cold.objective_)


# ---- errors ---------------------------------------------------------------------------------------------------------


@with_searches
@pytest.mark.parametrize("fitted", [False, True])
def test_an_error_leaves_the_machine_as_it_was(case: Case, fitted: bool) -> None:
    X, y = data(case.task)
    model = case.build()
    if fitted:
        fit(model, X, y)
    hole, short = X.copy(), y[:-1]
    hole[3, 1] = np.nan

    def broken(row: dict[str, float]) -> None:
        raise LookupError("mine")

    before = pickle.dumps(model)
    no_number = np.full(len(y), np.nan)
    tries: list[tuple[Any, Any, Any]] = [(hole, y, None), (X[:0], y[:0], None), (X, y, no_number), (X, y, -1.0)]
    if case.task != "none":
        tries += [(X, short, None), (X, None, None)]
    for x, target, weight in tries:
        with pytest.raises((ValueError, TypeError)):
            model.fit(x, target, sample_weight=weight)
        unchanged(model, before)
    model.callback = broken
    state = dict(vars(model))
    with pytest.raises(LookupError, match="mine"):
        model.fit(X, y)
    assert vars(model).keys() == state.keys() and all(vars(model)[name] is state[name] for name in state)


# ---- equal data, equal models ---------------------------------------------------------------------------------------


@every
def test_a_weight_of_two_is_the_row_twice(case: Case) -> None:
    X, y = data(case.task, 80)
    times = np.random.default_rng(2).integers(0, 4, len(y))
    times[:3] = 1
    weighted = fit(case.tight(), X, y, times.astype(float))
    judged(weighted, X, y, times.astype(float))
    if not case.rough:
        equally_good(weighted, fit(case.tight(), np.repeat(X, times, axis=0), np.repeat(y, times)), X)


@with_searches
@pytest.mark.parametrize("whole_class", [False, True])
def test_rows_of_no_weight_are_absent(case: Case, whole_class: bool) -> None:
    X, y = data(case.task, 80)
    weight = np.random.default_rng(4).choice([-1.5, 0.0, 0.5, 2.0], len(y))
    if whole_class:
        if case.task in ("numbers", "none"):
            pytest.skip("has no classes")
        X, y, weight = np.vstack([X, X[:5] + 4.0]), np.r_[y, ["aa"] * 5], np.r_[weight, [0, -1.0, 0, -2.0, 0]]
    counts = weight > 0
    weighted, without = fit(case.tight(), X, y, weight), fit(case.tight(), X[counts], y[counts], weight[counts])
    judged(weighted, X, y, np.maximum(weight, 0))
    assert list(getattr(weighted, "classes_", [])) == list(getattr(without, "classes_", []))
    assert list(np.ravel(weighted.predict(X))) == list(np.ravel(without.predict(X))) or case.task in ("numbers", "none")
    if case.rough:  # has no gap to compare by, but goes the same way
        np.testing.assert_allclose(decisions(weighted, X), decisions(without, X), rtol=1e-9, atol=1e-9)
    else:
        equally_good(weighted, without, X)


@with_searches
def test_labels_of_which_one_class_counts(case: Case) -> None:
    if case.task in ("numbers", "none"):
        pytest.skip("has no classes")
    X, y = data(case.task, 80)
    model = fit(case.build(), X, y)
    before = pickle.dumps(model)
    for labels, weight, message in [
        (np.full(80, "a"), None, "number of classes has to be greater than one; got 1 class"),
        (y, np.where(y == "a", 1.0, -1.0), r"all samples with positive weights belong to the same class, \['a'\]"),
        (y, np.where(y == "a", 0.0, -1.0), "all samples have zero or negative weights"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, labels, sample_weight=weight)
    assert pickle.dumps(model) == before


@every
def test_the_order_of_rows_does_not_matter(case: Case) -> None:
    if case.rough:
        pytest.skip("a stream has an order, and clusters are drawn in it")
    X, y = data(case.task, 80)
    order = np.random.default_rng(3).permutation(len(y))
    equally_good(fit(case.tight(), X, y), fit(case.tight(), X[order], y[order]), X)


@with_searches
def test_the_number_of_threads_does_not_matter(case: Case) -> None:
    X, y = data(case.task, 400)
    one, two = (fit(case.build(n_jobs=n), X, y) for n in (1, 2))
    np.testing.assert_array_equal(decisions(one, X), decisions(two, X))
    np.testing.assert_equal(one.objective_, two.objective_)


@with_searches
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_form_of_the_data_does_not_matter(case: Case, dtype: Any) -> None:
    X, y = data(case.task)
    X = np.where(np.abs(X) < 0.3, 0, X).astype(dtype)
    dense, sparse = fit(case.tight(), X, y), fit(case.tight(), sp.csr_matrix(X), y)
    judged(dense, X, y)
    judged(sparse, sp.csr_matrix(X), y)
    if not case.rough:
        equally_good(dense, sparse, X)


@with_searches
@pytest.mark.parametrize("sparse", [False, True])
def test_one_row_or_a_batch(case: Case, sparse: bool) -> None:
    X, y = data(case.task)
    Z = data(case.task, 300, seed=9)[0]
    X, Z = (sp.csr_matrix(X), sp.csr_matrix(Z)) if sparse else (X, Z)
    model = fit(case.build(), X, y)
    single = np.concatenate([decisions(model, Z[i : i + 1]) for i in range(0, 300, 7)])
    np.testing.assert_array_equal(single, decisions(model, Z)[::7])


@with_searches
def test_a_pickle_is_the_machine(case: Case) -> None:
    X, y = data(case.task)
    model = fit(case.build(), X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(decisions(model, X), decisions(again, X))
    settled = pickle.loads(pickle.dumps(again))  # by then strings that a table of a search shares are told apart
    assert pickle.dumps(settled) == pickle.dumps(pickle.loads(pickle.dumps(settled)))
    judged(again, X, y)


@with_searches
def test_a_prediction_is_what_the_decisions_say(case: Case) -> None:
    """The class of the largest value, and with the sign of the labels: most training rows are told right."""
    X, y = data(case.task)
    model = fit(case.build(), X, y)
    values, predicted = decisions(model, X), model.predict(X)
    if case.task == "numbers":
        assert np.corrcoef(predicted, y)[0, 1] > 0.5
        return
    if case.task == "none":
        np.testing.assert_array_equal(predicted, np.where(values > 0, 1, -1))
        return
    assert (predicted == y).mean() > 0.6
    if case.task == "two":
        np.testing.assert_array_equal(predicted, model.classes_[(values > 0).astype(int)])
        return
    by_pairs = "dual_coef_" in vars(model) and len(model.dual_coef_) == len(model.classes_) - 1
    behind = values.max(axis=1) - values[np.arange(len(y)), np.searchsorted(model.classes_, predicted)]
    assert (behind < 2 / 3 if by_pairs else behind == 0).all()  # of as many votes the first class; else a vote is 1 more
