"""One-vs-rest classes side by side: the same numbers as one after the other, and one run for clock, callback, errors."""

import signal
import threading

import numpy as np
import pytest
from hinge import hinge_svc

from maxmargin.estimators import linear
from maxmargin.linear import LinearProblem, OneVsRest, drive, make
from maxmargin.runtime import Control, Status


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    return X, np.argmax(X[:, :5] + rng.normal(size=(600, 5)), axis=1)


def solver(samples, **options):
    X, y = samples
    return OneVsRest(
        lambda k: make(LinearProblem(X, np.where(y == k, 1.0, -1.0), np.ones(len(y)), 1.0, bias=1.0), 1e-4), 5, **options
    )


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_side_by_side_equals_one_by_one(samples, workers, ordered):
    alone = drive(solver(samples), Control())
    together = drive(solver(samples, workers=workers, ordered=ordered), Control())
    assert together.status is Status.CONVERGED and together.n_iter == alone.n_iter
    np.testing.assert_array_equal(together.w, alone.w)
    assert together.objective == alone.objective and together.gap == alone.gap
    assert set(together.trace["problem"]) == {-1, 0, 1, 2, 3, 4}


def test_ordered_turns_are_cut_at_the_same_place(samples):
    runs = [drive(solver(samples, workers=2, ordered=True), Control(max_iter=9)) for _ in range(3)]
    assert all(run.status is Status.MAX_ITER and run.n_iter == 9 for run in runs)
    for run in runs[1:]:
        np.testing.assert_array_equal(run.trace["problem"], runs[0].trace["problem"])


def test_a_stop_keeps_what_every_class_has(samples):
    before = threading.active_count()
    seen = []
    run = drive(solver(samples, workers=2), Control(callback=lambda row: seen.append(row["problem"]) or len(seen) == 4))
    assert run.status is Status.CALLBACK and len(seen) == 4 and run.w.shape == (5, 9)
    assert run.w[[int(k) for k in seen]].any() and not run.w[4].any() and run.objective >= run.lower
    assert drive(solver(samples, workers=2), Control(max_time=0.0)).status is Status.MAX_TIME
    press = Control(callback=lambda row: signal.raise_signal(signal.SIGINT))
    assert drive(solver(samples, workers=2), press).status is Status.INTERRUPTED
    assert threading.active_count() == before


def test_the_estimator_gives_the_same_model_for_any_number_of_threads(samples, monkeypatch):
    monkeypatch.setattr(linear, "SIDE_BY_SIDE", 0)
    X, y = samples
    one, many = (hinge_svc(n_jobs=n, random_state=3).fit(X, y) for n in (1, 4))
    np.testing.assert_array_equal(one.coef_, many.coef_)
    np.testing.assert_array_equal(one.intercept_, many.intercept_)
    assert one.objective_ == many.objective_ and many.timings_["passes"] == one.timings_["passes"] > 5


@pytest.mark.parametrize("workers", [1, 2])
def test_a_limit_leaves_every_class_a_model(samples, workers):
    limited = drive(solver(samples, workers=workers, ordered=True, fair=True), Control(max_iter=15))
    assert limited.status is Status.MAX_ITER and limited.w.any(axis=1).all()
    whole, fair = (drive(solver(samples, workers=workers, fair=fair), Control()) for fair in (False, True))
    np.testing.assert_array_equal(fair.w, whole.w)


def test_classes_take_turns_while_a_limit_is_set(samples):
    turns = []
    hinge_svc(max_time=30.0, callback=lambda row: turns.append(row["problem"]) or len(turns) == 5).fit(*samples)
    assert sorted(turns) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("jobs", [1, 2])
def test_max_iter_limits_the_turns_of_each_class(samples, jobs, monkeypatch):
    monkeypatch.setattr(linear, "SIDE_BY_SIDE", 0)
    with pytest.warns(Warning, match="max_iter"):
        model = hinge_svc(solver="ocas", max_iter=4, n_jobs=jobs).fit(*samples)
    assert model.status_ == "max_iter" and model.coef_.any(axis=1).all()
    assert sorted(model.trace_["problem"][:-1]) == sorted(4 * [0, 1, 2, 3, 4])


def test_seconds_after_a_change_of_solver_add_up(samples):
    X, y = samples
    first = make(LinearProblem(X, np.where(y == 0, 1.0, -1.0), np.ones(len(y)), 1.0, bias=1.0), 1e-4)
    first.clock.seconds["outputs"] = 1000.0
    for _ in first.fall_back():
        pass
    assert first.clock.seconds["outputs"] > 1000.0 and first.clock.seconds["reduced problem"] > 0
