"""What DCSVC and DCSVR say about themselves: status, certificates of the right problem, trace, progress."""

import re
import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC, DCSVR, SVC
from maxmargin.divide import levels as levels_module
from maxmargin.problem.certificates import certify
from maxmargin.problem.fitted import certify_fit
from maxmargin.problem.formulations import c_svc
from maxmargin.problem.kernels import Kernel

PLAN = {"k": 3, "levels": 2, "sample_size": 100, "random_state": 0}
STAGES = {0: "clustering", 1: "level", 2: "refine", 3: "whole"}


def moons(n=500):
    X, y = make_moons(n, noise=0.25, random_state=0)
    return X, 2 * y - 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("intercept", [False, True])
def test_a_level_certifies_the_problem_that_it_solved_and_no_other(intercept):
    X, y = moons()
    model = DCSVC(C=5.0, gamma=2.0, **PLAN, stop_level=1, fit_intercept=intercept, predict_with="all", tol=1e-5).fit(X, y)
    assert model.status_ == "early" and model.fit_status_ == 0 and model.level_ == 1
    assert np.isnan([model.objective_, model.dual_gap_, model.kkt_violation_]).all()
    label = model._committee.router.cluster(X, 1)
    gram = Kernel("rbf", 2.0)(X, X) * (label[:, None] == label[None, :])  # the kernel without what lies between clusters
    parts = []
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    for c in np.unique(label):
        mine = label == c
        qp = c_svc(y[mine].astype(float), np.full(mine.sum(), 5.0), intercept)
        b = model.cluster_intercept_[c] if intercept else np.empty(0)
        parts.append(certify(qp, gram[np.ix_(mine, mine)], alpha[mine], b))
    assert model.level_objective_ == pytest.approx(sum(part.primal for part in parts), rel=1e-6)
    assert model.level_gap_ == pytest.approx(sum(part.gap for part in parts), abs=1e-6 * model.level_objective_)
    assert model.level_violation_ == pytest.approx(max(part.violation for part in parts), abs=1e-6)
    # The whole problem's can be had from public attributes, and are another matter.
    whole, best = certify_fit(model, X, y), SVC(C=5.0, gamma=2.0, fit_intercept=intercept, tol=1e-5).fit(X, y)
    assert whole.infeasibility <= 1e-9 and whole.dual <= best.objective_ <= whole.primal
    assert whole.gap > 10 * model.level_gap_


def test_early_without_anything_cut_out_knows_the_whole_problem():
    X, y = moons()
    model = DCSVC(C=5.0, gamma=2.0, k=1, levels=1, stop_level=1, random_state=0).fit(X, y)
    assert model.status_ == "early" and model.level_ == 1
    assert (model.objective_, model.dual_gap_) == (model.level_objective_, model.level_gap_)
    assert model.objective_ == pytest.approx(certify_fit(model.set_params(predict_with="all"), X, y).primal, rel=1e-6)


def test_a_level_of_which_a_cluster_did_not_converge_is_not_early():
    X, y = moons(1500)
    hard = {"C": 1e3, "gamma": 20.0, "working_set_size": 8, "max_iter": 2}
    with pytest.warns(ConvergenceWarning, match=r"its kernel is 0 between clusters"):
        model = DCSVC(**hard, **PLAN, stop_level=1).fit(X, y)
    assert model.status_ == "max_iter" and model.fit_status_ == 1 and [*model.levels_["level"]] == [2, 1]
    assert model.level_violation_ > model.tol and np.isnan(model.kkt_violation_)


@pytest.mark.parametrize("early", [False, True])
def test_a_run_that_is_stopped_says_which_levels_were_finished(early):
    X, y = moons()
    first = DCSVC(C=5.0, gamma=2.0, **PLAN, stop_level=2).fit(X, y)
    stop = {"stop_level": 1} if early else {}

    def in_the_second_level(row):
        return row["level"] == 1 and STAGES[row["stage"]] == "level" and row["solved"] > 0

    model = DCSVC(C=5.0, gamma=2.0, **PLAN, **stop, callback=in_the_second_level).fit(X, y)
    assert model.status_ == "callback" and model.level_ == 2
    assert [*zip(model.levels_["stage"], model.levels_["level"])] == [("level", 2)]
    assert model.level_objective_ == first.level_objective_ == model.levels_["objective"][0]
    np.testing.assert_array_equal(model.decision_function(X), first.decision_function(X))
    assert model.timings_["clustering"] > 0 and model.timings_["solving"] > 0 and len(model.trace_) > 1


def test_a_level_whose_last_subproblem_ends_with_the_time_is_finished():
    """Stopped at the safe point after its last subproblem, before its row: reported as what it is."""
    X, y = moons()
    whole = DCSVC(C=5.0, gamma=2.0, **PLAN, stop_level=2)
    whole.fit(X, y)
    count = int(whole.trace_["subproblems"][-1])
    model = DCSVC(C=5.0, gamma=2.0, **PLAN, n_jobs=1, callback=lambda row: row["level"] == 2 and row["solved"] == count)
    model.fit(X, y)
    assert [*model.levels_["level"]] == [2] and model.level_ == 2
    assert model.level_objective_ == whole.level_objective_


def test_nothing_finished_is_said_as_well():
    X, y = moons(1000)
    with pytest.warns(ConvergenceWarning, match="finished: none"):
        hurried = DCSVC(C=10.0, gamma=5.0, random_state=0, max_time=1e-6, stop_level=1, levels=1).fit(X[1:], y[1:])
    assert hurried.status_ == "max_time" and hurried.level_ == 1 and len(hurried.levels_) == 0
    assert (hurried.predict(X) == hurried.predict(X)[0]).all() and (hurried.decision_function(X) != 0).all()
    # alpha = 0, of which all is known
    assert hurried.kkt_violation_ == 1 and hurried.dual_gap_ == hurried.objective_ == 10 * 999


@pytest.mark.parametrize("intercept", [False, True])
def test_time_up_before_anything_is_solved_predicts_the_median(intercept):
    X = np.random.default_rng(0).normal(size=(500, 2))
    y, weight = X[:, 0] + 7, np.where(X[:, 0] > 1, 100.0, 1.0)
    with pytest.warns(ConvergenceWarning, match="finished: none"):
        model = DCSVR(k=2, levels=1, stop_level=1, max_time=1e-9, fit_intercept=intercept).fit(X, y, sample_weight=weight)
    median = np.median(np.repeat(y, weight.astype(int)))
    np.testing.assert_allclose(model.predict(X), median, atol=0.02)
    answer = certify_fit(model.set_params(predict_with="all"), X, y, sample_weight=weight)
    assert model.objective_ == pytest.approx(answer.primal) and model.dual_gap_ == pytest.approx(answer.gap)


# ---- trace and callback --------------------------------------------------------------------------------------------


def fitted(**more):
    X, y = moons()
    rows = []
    machine = DCSVC(C=5.0, gamma=2.0, **PLAN, working_set_size=32, callback=lambda row: rows.append(dict(row)), **more)
    return machine.fit(X, y), rows


def test_the_trace_has_one_meaning_and_ends_with_the_model():
    model, rows = fitted()
    trace, best = model.trace_, model.objective_ - model.dual_gap_
    assert len(trace) == len(rows) and [*trace["iteration"]] == [*range(1, len(rows) + 1)]
    stages = [STAGES[s] for s in trace["stage"]]
    assert [*dict.fromkeys(stages)] == ["clustering", "level", "refine", "whole"]
    for stage in ("clustering", "level"):  # nothing is known of the whole problem
        mine = trace[np.array(stages) == stage]
        assert np.isnan(mine["objective"]).all() and np.isnan(mine["dual"]).all() and np.isnan(mine["violation"]).all()
    dual = trace["dual"][np.isin(stages, ["refine", "whole"])]
    dual = dual[~np.isnan(dual)]
    assert len(dual) > 2 and (np.diff(dual) >= -1e-6 * abs(best)).all() and (dual <= model.objective_ * (1 + 1e-12)).all()
    known = trace["objective"][~np.isnan(trace["objective"])]
    assert len(known) >= 2 and (known >= best * (1 - 1e-9)).all()  # where whole begins, and the end
    last = trace[-1]
    assert (last["objective"], last["gap"], last["violation"]) == (model.objective_, model.dual_gap_, model.kkt_violation_)
    assert last["n_support"] == len(model.support_) and last["level"] == model.level_ == 0
    assert (last["level_objective"], last["level_gap"]) == (model.level_objective_, model.level_gap_)


def test_the_rows_of_a_level_are_those_of_levels_():
    model, rows = fitted(stop_level=1)
    last = model.trace_[-1]
    assert np.isnan(last["objective"]) and np.isnan(last["dual"]) and np.isnan(last["violation"])
    assert last["level_objective"] == model.level_objective_ and last["bound"] == model.levels_["bound"][-1]
    for row in model.levels_:
        found = [r for r in rows if r["level_objective"] == row["objective"] and r["level_gap"] == row["gap"]]
        assert found and found[0]["bound"] == row["bound"] and found[0]["n_support"] == row["n_support"]
        assert found[0]["clusters"] == row["clusters"] and found[0]["solved"] == found[0]["subproblems"]


def test_several_problems_say_which_they_tell_of():
    X, y = make_blobs(300, centers=6, cluster_std=1.5, random_state=0)
    model = DCSVC(C=2.0, gamma=0.5, **PLAN, working_set_size=16).fit(X, y % 3)
    problem, stage = model.trace_["problem"], model.trace_["stage"]
    assert (problem[stage < 2] == -1).all() and {0, 1, 2} <= {*problem[stage == 2]} | {*problem[stage == 3]}
    assert problem[-1] == -1 and model.trace_["objective"][-1] == model.objective_


def test_the_callback_hears_of_every_finished_cluster_and_of_long_stages(monkeypatch):
    _, rows = fitted(stop_level=1, n_jobs=1)
    solved = [row["solved"] for row in rows if STAGES[row["stage"]] == "level" and row["level"] == 2]
    assert [*dict.fromkeys(solved)] == [*range(1, 10)]  # 3² clusters
    few = len(rows)
    monkeypatch.setattr(levels_module, "HEARTBEAT", 0.0)  # as if every step took long
    _, rows = fitted(stop_level=1, n_jobs=1)
    assert len(rows) > 2 * few
    monkeypatch.setattr(levels_module, "ROWS_PER_LEVEL", 2)
    monkeypatch.setattr(levels_module, "HEARTBEAT", np.inf)
    _, rows = fitted(stop_level=1, n_jobs=1)
    assert len(rows) < few


def test_a_callback_is_heard_while_all_threads_are_busy():
    """Two clusters at once that would take for ever: tol=0 is never reached."""
    X, y = moons(400)
    stuck = {"C": 1e6, "gamma": 50.0, "tol": 1e-300, "working_set_size": 2, "k": 2, "levels": 1, "stop_level": 1}
    begun = time.monotonic()
    with joblib.parallel_config("threading", n_jobs=2), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = DCSVC(**stuck, random_state=0, callback=lambda row: time.monotonic() - begun > 0.5).fit(X, y)
    assert model.status_ in ("callback", "stalled")


def test_one_bar_shows_stage_level_and_clusters(capsys, monkeypatch):
    monkeypatch.setattr("maxmargin.runtime.progress.interactive", lambda: True)
    X, y = moons()
    DCSVC(**PLAN, verbose=True).fit(X, y)
    shown = capsys.readouterr().err
    for text in ("clustering for level 2", "DCSVC: level 2", "DCSVC: level 1", "DCSVC: refine", "DCSVC: whole problem"):
        assert text in shown
    assert re.search(r"level 2: .*9/9 .*clusters=9", shown) and shown.count("\n") <= 1  # one bar, redrawn
    DCSVC(**PLAN).fit(X, y)
    assert capsys.readouterr().err == ""
