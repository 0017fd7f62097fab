"""How runs of the exact machines end that are not the usual ones: numbers too large, two stages, too many steps."""

from __future__ import annotations

import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM, certify_fit
from maxmargin.decomposition import solver
from maxmargin.decomposition.costs import Costs
from maxmargin.decomposition.ending import Point, Progress
from maxmargin.runtime import Deadline

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from machines import data, judged, last_row_is_the_model

EXACT = [SVC, NuSVC, SVR, NuSVR, OneClassSVM]


def quietly(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def dense(a: Any) -> Any:
    return a.toarray() if sp.issparse(a) else np.asarray(a)


# ---- no progress ----------------------------------------------------------------------------------------------------


@given(
    gains=st.lists(st.sampled_from([0.0, 0.0, 1e-13, 1e-13, 1e-3]), min_size=1, max_size=350),
    start=st.sampled_from([1.0, -4.0]),
)
def test_a_run_is_stalled_by_three_turns_that_change_nothing_or_a_hundred_that_hardly_do(gains, start) -> None:
    progress, duals = Progress(start), start + np.concatenate([[0.0], np.cumsum(gains)])
    for turn in range(1, len(gains) + 1):
        nothing = turn >= 3 and not any(gains[turn - 3 : turn])
        hardly = turn % 100 == 0 and duals[turn] - duals[turn - 100] <= 1e-11 * abs(duals[turn])
        assert progress.stalled(gains[turn - 1], duals[turn]) == (nothing or hardly)
        if nothing:  # the run ends there
            return


@given(seed=st.integers(0, 999), problems=st.integers(1, 4), groups=st.integers(0, 2), off=st.sampled_from([1e-9, -1.0]))
def test_sums_are_missed_by_those_that_are_off_and_by_no_other(seed, problems, groups, off) -> None:
    """Nor by coefficients that are all zero, whose sum has no rounding at all."""
    rng = np.random.default_rng(seed)
    beta, group = rng.integers(-9, 9, (problems, 12)) / 8, np.tile(np.arange(12) % max(groups, 1), (problems, 1))
    beta[rng.random(problems) < 0.5] = 0.0
    targets = np.array([[b[g == k].sum() for k in range(groups)] for b, g in zip(beta, group)]).reshape(problems, groups)
    wrong = rng.random((problems, groups)) < 0.3
    one, zero, begin = np.ones(beta.size), np.zeros(beta.size), 12 * np.arange(problems)
    said = targets + off * wrong
    point = Point(one, zero, one, group.ravel().astype(np.int8), said, begin, beta.ravel(), zero, one > 0)
    assert point.missed().tolist() == wrong.any(axis=1).tolist()


# ---- what the report may still take --------------------------------------------------------------------------------


@given(seconds=st.floats(1e-6, 1e3), rows=st.integers(1, 1000), samples=st.integers(1, 10**6), times=st.floats(0.01, 100))
def test_a_pass_is_expected_to_take_what_as_many_values_have_taken(seconds, rows, samples, times) -> None:
    """Those of the sums at the start until there are updates; rows that were in the cache say that others take longer."""
    costs, values = Costs(), float(rows * samples)
    assert costs.expected(values) == 0.0  # nobody knows
    costs.seconds["start"] = seconds
    costs.summed(values)
    assert costs.expected(times * values) == pytest.approx(times * seconds)
    costs.seconds["update"] = 3 * seconds
    costs.updated(rows, 0, samples)
    assert costs.expected(times * values) == pytest.approx(3 * times * seconds)
    costs.updated(rows, rows, samples)
    assert 1.5 * times * seconds < costs.expected(times * values) < 3 * times * seconds


# ---- numbers too large ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pixels() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(1300, 40)).astype(np.float32)  # more rows than are always in float64
    return X, (X[:, 0] > 128).astype(float)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("make", EXACT)
@pytest.mark.parametrize("degree", [3, 7, 12, 30, 60])
def test_no_fit_has_numbers_that_are_none(pixels, make, degree, form) -> None:
    """Kernel values up to (2.6e6)^degree: beyond float32 from 6 on, beyond float64 from 49 on, sums of them earlier."""
    X, y = pixels
    model = make(kernel="poly", degree=degree, gamma=1.0, coef0=1.0, max_iter=2, working_set_size=64)
    error = None
    try:
        quietly(model, form(X), y)
    except ValueError as refused:
        error = str(refused)
    if error is not None:
        assert degree >= 30
        for part in ("kernel='poly'", "gamma=1", "coef0=1", f"degree={degree}", "255", "scale the features"):
            assert part in error
        assert not hasattr(model, "status_")
        return
    assert degree <= 30
    assert degree < 6 or model._precision == "float64"
    numbers = [model.objective_, model.dual_gap_, model.kkt_violation_, *model.intercept_, *dense(model.dual_coef_).ravel()]
    assert np.isfinite(numbers).all() and model.status_ != "converged"
    assert np.isfinite(model.predict(X[:5])).all()


def test_a_prediction_too_large_for_its_precision_is_made_in_float64_or_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3)).astype(np.float32)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=1200) > 0, 1, 0)
    model = SVC(kernel="poly", degree=3, gamma=0.1, coef0=1.0)
    quietly(model, X, y)
    assert model._precision == "float32"
    far = np.vstack([X[:4], 1e15 * X[4:6]]).astype(np.float32)
    for form in (np.asarray, sp.csr_matrix):
        values = model.decision_function(form(far))
        np.testing.assert_array_equal(values[:4], model.decision_function(form(far[:4])))  # the others are as they were
        K = (0.1 * far[4:].astype(float) @ dense(model.support_vectors_).T.astype(float) + 1) ** 3
        np.testing.assert_allclose(values[4:], (K @ dense(model.dual_coef_).T).ravel() + model.intercept_, rtol=1e-9)
    further = far.astype(float)
    further[5] *= 1e200
    for ask in (model.decision_function, model.predict):
        with pytest.raises(ValueError, match=r"1 rows of X, the first of them row 5.*degree=3.*scale the features"):
            ask(further)


# ---- two stages -----------------------------------------------------------------------------------------------------

WEIGHTED = {"nu": 0.2, "class_weight": {"a": 3.0, "b": 0.5}, "working_set_size": 32}


def test_limits_count_once_over_both_stages() -> None:
    X, y = data("two")
    whole = NuSVC(**WEIGHTED).fit(X, y)
    stage = whole.trace_["stage"]
    first = int((stage == 1).sum())
    assert whole.status_ == "converged" and 0 < first < len(stage) == whole.n_iter_.sum()
    assert (np.diff(stage) >= 0).all() and set(stage) == {1.0, 2.0}
    for turns in (1, first - 1, first, first + 1, len(stage) - 1, len(stage), len(stage) + 5):
        model = quietly(NuSVC(**WEIGHTED, max_iter=turns), X, y)
        assert model.n_iter_.sum() == len(model.trace_) == min(turns, len(stage))
        assert (model.status_ == "converged") == (turns >= len(stage))
        assert model.status_ in ("converged", "max_iter")
        judged(model, X, y)
        last_row_is_the_model(model)
        np.testing.assert_array_equal(model.trace_["violation"][:-1], whole.trace_["violation"][: len(model.trace_) - 1])


@pytest.mark.parametrize("how", ["callback", "ctrl-c", "clock"])
def test_both_stages_say_the_truth_wherever_they_are_stopped(how, monkeypatch) -> None:
    X, y = data("two")
    whole = NuSVC(**WEIGHTED).fit(X, y)
    first = int((whole.trace_["stage"] == 1).sum())
    for turns in {1, first, first + 1, len(whole.trace_) - 1}:
        seen: list[Any] = []

        def watch(row: Any, seen: Any = seen, turns: int = turns) -> bool:
            seen.append(row)
            if how == "ctrl-c" and len(seen) == turns:
                signal.raise_signal(signal.SIGINT)
            return how == "callback" and len(seen) == turns

        with monkeypatch.context() as patch:
            patch.setattr("maxmargin.runtime.interrupt._last", -float("inf"))  # a press long after the last one
            if how == "clock":
                over = lambda self, margin=0.0, seen=seen, turns=turns: self.end is not None and len(seen) >= turns  # noqa: E731
                patch.setattr(Deadline, "passed", over)
            model = quietly(NuSVC(**WEIGHTED, callback=watch, max_time=1e6), X, y)
        assert model.status_ == {"callback": "callback", "ctrl-c": "interrupted", "clock": "max_time"}[how]
        assert turns <= len(seen) == model.n_iter_.sum() <= turns + (how == "clock")  # which ends stage 1 alone at first
        judged(model, X, y)
        last_row_is_the_model(model)


def test_a_first_stage_out_of_time_is_told_though_the_second_converged(monkeypatch) -> None:
    """Stage 1 may take half of the time. What it was stopped at is not the margin of nu, whatever stage 2 does with it."""
    X, y = data("two")
    between = time.perf_counter() + 7.5e5
    monkeypatch.setattr(Deadline, "passed", lambda self, margin=0.0: self.end is not None and self.end < between)
    model = quietly(NuSVC(**WEIGHTED, max_time=1e6), X, y)
    assert model.kkt_violation_ <= model.tol  # of stage 2
    assert model.status_ == "max_time" and model.fit_status_ == 1
    assert (model.trace_["stage"] == 1).sum() <= 1
    answer = certify_fit(model, X, y)
    assert answer.primal == pytest.approx(model.objective_, rel=1e-9)
    free = NuSVC(**WEIGHTED).fit(X, y)
    assert abs(model.margin_[0] / free.margin_[0] - 1) > 0.01


def test_a_first_stage_that_stalls_is_told(monkeypatch) -> None:
    X, y = data("two")
    whole = NuSVC(**WEIGHTED).fit(X, y)
    turns = solver.Decomposition._turn
    count = 0

    def stuck(self: Any, extremes: Any) -> float:
        nonlocal count
        count += 1
        return 0.0 if 3 <= count <= 5 else turns(self, extremes)  # three turns that gain nothing

    monkeypatch.setattr(solver.Decomposition, "_turn", stuck)
    with pytest.warns(ConvergenceWarning, match="stalled"):
        model = NuSVC(**WEIGHTED).fit(X, y)
    assert model.status_ == "stalled" and model.kkt_violation_ <= model.tol
    assert model.margin_[0] != pytest.approx(whole.margin_[0], rel=1e-3)


# ---- too many steps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", EXACT)
def test_the_limit_on_inner_steps_is_a_stall_that_says_so(make, monkeypatch) -> None:
    X, y = data("two")
    if make not in (SVC, NuSVC):
        y = X[:, 0]
    options = {"working_set_size": 4, "tol": 1e-6} | ({"nu": 0.2} if make is NuSVC else {})
    monkeypatch.setattr(solver, "MOST_STEPS", 10 - 1000 * len(y))
    with pytest.warns(ConvergenceWarning, match=r"or at .* \+ 1000 n inner steps \(made: [1-9]"):
        model = make(**options).fit(X, y)
    assert model.status_ == "stalled" and model.timings_["inner_steps"] > 10
    judged(model, X, y)
    last_row_is_the_model(model)


# ---- weights --------------------------------------------------------------------------------------------------------


def test_balanced_counts_rows_by_their_weight() -> None:
    X, y = data("two", 80)
    times = np.random.default_rng(2).integers(1, 6, len(y)) * (1 + 3 * (y == y[0]))
    weighted = SVC(class_weight="balanced").fit(X, y, sample_weight=times.astype(float))
    repeated = SVC(class_weight="balanced").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    plain = SVC(class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(weighted.class_weight_, repeated.class_weight_, rtol=1e-12)
    assert np.abs(weighted.class_weight_ / plain.class_weight_ - 1).max() > 0.1
