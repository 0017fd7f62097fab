"""Divide and conquer stopped at any moment, in any way: the model is the best level finished, or the whole problem's state.

Never something in between, and what is said about it is true against code that shares nothing with the solver.
"""

from __future__ import annotations

import itertools
import signal
import warnings
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from maxmargin import DCSVC, DCSVR
from maxmargin.decomposition.options import Options
from maxmargin.divide.levels import DivideAndConquer
from maxmargin.divide.model import DivideResult, Kept, Plan, Problem
from maxmargin.divide.subproblem import restricted, variables
from maxmargin.kernel_values import KernelData
from maxmargin.problem.certificates import Certificate, certify
from maxmargin.problem.fitted import certify_fit
from maxmargin.problem.formulations import c_svc, epsilon_svr
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Status

RBF = Kernel("rbf", 2.0)


def rows(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2)) * np.where(np.arange(n) < n // 10, 8.0, 1.0)[:, None]
    return X, np.where(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


# ---- the solver, stopped after any number of steps ----------------------------------------------------------------


def problems_of(task: str, intercept: bool) -> tuple[np.ndarray, list[Problem]]:
    X, y = rows()
    if task == "svr":
        return X, [Problem(epsilon_svr(X[:, 0] * y, 0.1, np.full(120, 2.0), intercept), np.arange(120))]
    if task == "svc":
        return X, [Problem(c_svc(y, np.full(120, 5.0), intercept), np.arange(120))]
    first, second = np.arange(80), np.arange(40, 120)  # two problems that share samples
    return X, [Problem(c_svc(y[some], np.full(len(some), 5.0), intercept), some) for some in (first, second)]


def certificates(X: np.ndarray, problems: list[Problem], result: DivideResult) -> list[Certificate]:
    """Of each problem, or of each cluster of each problem at a level ≥ 1."""
    model, out = result.model, []
    for p, problem in enumerate(problems):
        whole = np.zeros(len(X), np.int64) if model.partition is None else model.partition.label
        for c in np.unique(whole[problem.chosen]):
            mine = np.flatnonzero(whole[problem.chosen] == c)
            qp, rows = restricted(problem.qp, mine), X[problem.chosen[mine]]
            alpha = model.alphas[p][variables(problem.qp, mine)]
            out.append(certify(qp, RBF(rows, rows), alpha, model.intercept[c, p : p + len(qp.targets)]))
    return out


def total(answers: list[Certificate]) -> tuple[float, float, float]:
    return sum(a.primal for a in answers), sum(a.gap for a in answers), max(a.violation for a in answers)


def some_of_each(stages: list[str]) -> list[int]:
    """Step counts: the first two, the last two and some in between of each stage."""
    chosen: set[int] = set()
    for stage in dict.fromkeys(stages):
        mine = np.flatnonzero(np.array(stages) == stage) + 1
        chosen |= {*mine[:2], *mine[-2:], *mine[:: max(1, len(mine) // 5)]}
    return sorted(map(int, chosen))


def same(a: DivideResult, b: DivideResult) -> bool:
    assert a.model.partition is not None and b.model.partition is not None
    equal = np.array_equal(a.model.partition.label, b.model.partition.label)
    return equal and all(np.array_equal(x, y) for x, y in zip(a.model.alphas, b.model.alphas))


@pytest.mark.parametrize(
    ("task", "intercept", "workers"),
    [("svc", False, 1), ("svc", True, 1), ("svr", True, 1), ("two problems", False, 1), ("two problems", True, 2)],
)
def test_stopped_after_any_step_the_model_is_a_finished_level_or_certified(task: str, intercept: bool, workers: int) -> None:
    X, problems = problems_of(task, intercept)
    data = KernelData(X, RBF, np.arange(120), np.float64, 1)
    options = Options(tol=1e-3, working_set_size=24 if task == "svr" else 12)

    def stopped_after(steps: int | None, stop_level: int = 0) -> tuple[DivideResult, list[str]]:
        """The result, and the stage at each step before it."""
        solver = DivideAndConquer(problems, data, options, Plan(k=3, levels=2, stop_level=stop_level, sample_size=40))
        with joblib.parallel_config("threading", n_jobs=workers), closing(solver.turns()) as turns:
            stages = [f"{solver.stage} {solver.at}" for _ in itertools.islice(turns, steps)]
        return solver.result(Status.MAX_TIME), stages

    finished = {level: stopped_after(None, level)[0] for level in (2, 1)}
    assert all(result.status is Status.EARLY for result in finished.values())
    last, at = stopped_after(None)
    assert last.status is Status.CONVERGED  # what reached the tolerance has converged, though time is up
    seen, before = set(), 3
    for count in some_of_each(at):
        result, _ = stopped_after(count)
        level, stages = result.model.level, tuple(result.levels["stage"])
        seen.add((f"model {level}", *stages))
        assert level <= before or workers > 1, "a later stop never goes back"  # threads differ from run to run
        before = level
        own = result.model.certificate
        assert (own.objective, own.gap, own.violation) == pytest.approx(total(certificates(X, problems, result)), abs=1e-6)
        if level > 0 and stages:
            assert same(result, finished[level]) and [*result.levels["level"]][:2] == [2, 1][: 3 - level]
            assert np.isnan([result.objective, result.gap, result.violation]).all()
        elif level == 0:
            assert (result.objective, result.gap, result.violation) == (own.objective, own.gap, own.violation)
            assert (result.status is Status.CONVERGED) == (own.violation <= 1e-3)
        spent = result.timings
        assert (spent["clustering"] > 0) == (count > 1) and (spent["solving"] > 0) == (len(result.samples) > 0)
    two = ("level", "level")
    expected = {("model 2",), ("model 2", "level"), ("model 1", *two), ("model 0", *two, "refine")}
    assert expected <= seen or workers > 1


@pytest.mark.parametrize(("task", "intercept"), [("svc", False), ("two problems", True)])
def test_gone_on_from_any_step_it_ends_where_it_would_have(task: str, intercept: bool) -> None:
    """The levels that were finished keep their rows and seconds; the others come out as they would have."""
    X, problems = problems_of(task, intercept)
    data = KernelData(X, RBF, np.arange(120), np.float64, 1)
    options, plan = Options(tol=1e-3, working_set_size=12), Plan(k=3, levels=2, sample_size=40, seed=5)

    def of(kept: Kept | None = None) -> DivideAndConquer:
        return DivideAndConquer(problems, data, options, replace(plan, kept=kept))

    def far(kept: Kept) -> tuple[int, int]:
        return -kept.level, ["", "level", "refine", "whole"].index(kept.stage)

    with closing((first := of()).turns()) as turns:
        at = [f"{first.stage} {first.at}" for _ in turns]
    whole = first.result(Status.MAX_TIME)
    seen = set()
    for count in some_of_each(at):
        stopped = of()
        with closing(stopped.turns()) as turns:
            for _ in itertools.islice(turns, count):
                pass
            kept = stopped.snapshot()
        assert (kept.level == 0) == (not kept.finished) and (kept.stage == "") == (not kept.begun) and kept.seed == 5
        seen.add((kept.level, kept.stage))
        solver = of(kept)
        with closing(solver.turns()) as turns:
            next(turns)  # ended again at once, nothing of it is lost
            again = solver.snapshot() if kept.level else kept
            assert (again.level, again.stage) == (kept.level, kept.stage)
            for a, b in zip([*again.finished, *again.begun], [*kept.finished, *kept.begun], strict=True):
                np.testing.assert_array_equal(a, b)
            for _ in turns:  # nor at any later moment
                assert not kept.level or far(solver.snapshot()) >= far(kept)
        result = solver.result(Status.MAX_TIME)
        assert result.status is Status.CONVERGED
        own = result.objective, result.gap, result.violation
        assert own == pytest.approx(total(certificates(X, problems, result)), abs=1e-6)
        assert abs(result.objective - whole.objective) <= result.gap + whole.gap + 1e-9
        what = ["stage", "level", "clusters", "largest"]
        done = len(kept.table) if kept.stage != "whole" else 3
        finished = [*result.levels[what][:done].tolist(), *result.levels[what][-1:].tolist()]
        assert finished == [*whole.levels[what][:done].tolist(), *whole.levels[what][-1:].tolist()]
        assert result.levels["stage"].tolist() == whole.levels["stage"].tolist()
        for name in ("time_clustering", "time_solving"):
            np.testing.assert_array_equal(result.levels[name][: len(kept.table)], kept.table[name])
        assert result.iterations.sum() <= whole.iterations.sum() or kept.level == 0
        if kept.level:  # its clusters come out again
            place = 2 - kept.level
            np.testing.assert_array_equal(result.samples[0], whole.samples[place])
    assert {(2, "level"), (1, "refine"), (1, "whole"), (0, "level")} <= seen


# ---- the machines, stopped by whatever can stop them ---------------------------------------------------------------


def judged(model: DCSVC | DCSVR, X: np.ndarray, y: np.ndarray, levels: dict[int, DCSVC | DCSVR]) -> str:
    """Checks a stopped model; returns what it is."""
    decide = (lambda m: m.decision_function(X)) if isinstance(model, DCSVC) else (lambda m: m.predict(X))
    assert np.isfinite(decide(model)).all()
    last = model.trace_[-1]
    for name, value in [("objective", model.objective_), ("gap", model.dual_gap_), ("violation", model.kkt_violation_),
                        ("level", model.level_), ("level_objective", model.level_objective_)]:  # fmt: skip
        assert last[name] == value or (np.isnan(last[name]) and np.isnan(value))
    if model.level_ > 0:
        assert np.isnan([model.objective_, model.dual_gap_, model.kkt_violation_]).all() or len(model.levels_) == 0
        if model.level_ not in model.levels_["level"]:
            return "unfinished"
        np.testing.assert_array_equal(decide(model), decide(levels[model.level_]))
        assert model.level_objective_ == levels[model.level_].level_objective_
        return f"level {model.level_}"
    assert model.level_objective_ == model.objective_ and model.level_gap_ == model.dual_gap_
    answer = certify_fit(model, X, y)
    assert model.objective_ == pytest.approx(answer.primal, rel=1e-6)
    assert model.dual_gap_ == pytest.approx(answer.gap, rel=1e-6, abs=1e-6 * answer.primal)
    assert model.kkt_violation_ == pytest.approx(answer.violation, abs=1e-6)
    return "whole"


MACHINES = {
    "binary": lambda **kw: DCSVC(C=5.0, gamma=2.0, **kw),
    "intercept": lambda **kw: DCSVC(C=5.0, gamma=2.0, fit_intercept=True, **kw),
    "regression": lambda **kw: DCSVR(C=5.0, gamma=2.0, **kw),
    "ovr": lambda **kw: DCSVC(C=2.0, gamma=0.5, multi_class="ovr", **kw),
    "ovo": lambda **kw: DCSVC(C=5.0, gamma=0.5, **kw),
}
PLAN = {"k": 3, "levels": 2, "sample_size": 40, "working_set_size": 16, "random_state": 0}


def case(kind: str) -> tuple[np.ndarray, np.ndarray, dict[int, DCSVC | DCSVR]]:
    if kind in ("ovr", "ovo"):
        X, y = make_blobs(120, centers=6, cluster_std=1.5, random_state=0)
        y = y % 3
    else:
        X, y = rows()
        y = X[:, 0] * y if kind == "regression" else y
    levels = {level: MACHINES[kind](**PLAN, stop_level=level).fit(X, y) for level in (2, 1)}
    assert all(model.status_ == "early" for model in levels.values())
    return X, y, levels


@pytest.mark.parametrize("kind", ["binary", "ovr"])
def test_a_callback_that_stops_at_any_row(kind: str) -> None:
    X, y, levels = case(kind)
    whole = MACHINES[kind](**PLAN, n_jobs=1).fit(X, y)
    assert whole.status_ == "converged" and judged(whole, X, y, levels) == "whole"
    found = set()
    for stop in some_of_each([f"{row['stage']} {row['level']}" for row in whole.trace_]):
        model = MACHINES[kind](**PLAN, n_jobs=1, callback=lambda row, stop=stop: row["iteration"] == stop).fit(X, y)
        assert model.status_ == "callback" and len(model.trace_) == stop
        found.add(judged(model, X, y, levels))
    assert found == {"unfinished", "level 2", "level 1", "whole"}


@pytest.mark.parametrize("kind", ["binary", "intercept", "ovo", "regression"])
def test_time_that_is_up_at_any_moment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that ticks whenever it is asked, so that the same moments come in every run."""
    X, y, levels = case(kind)
    tick = itertools.count()
    monkeypatch.setattr("maxmargin.runtime.deadline.time", SimpleNamespace(perf_counter=lambda: next(tick)))
    machine = MACHINES[kind](**PLAN, max_time=10**9)
    judged(machine.fit(X, y), X, y, levels)
    total, found, statuses = next(tick), set(), set()
    for limit in sorted({1, 2, 3, *range(4, total, max(1, total // 24)), total - 3}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.set_params(max_time=limit).fit(X, y)
        found.add(judged(machine, X, y, levels))
        statuses.add(machine.status_)
    assert found == {"unfinished", "level 2", "level 1", "whole"} and "max_time" in statuses


def test_ctrl_c_at_any_kernel_call(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    calls, press_at = 0, 0

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == press_at:
            signal.raise_signal(signal.SIGINT)
        return RBF(a, b)

    def machine(**kw: int) -> DCSVC:
        return DCSVC(kernel=kernel, C=5.0, **PLAN, n_jobs=1, **kw)

    levels = {level: machine(stop_level=level).fit(X, y) for level in (2, 1)}
    calls = 0
    machine().fit(X, y)
    total, found = calls, set()
    for press in sorted({1, 2, *range(3, total, max(1, total // 12)), total}):
        calls, press_at = 0, press
        monkeypatch.setattr("maxmargin.runtime.interrupt._last", -float("inf"))
        with pytest.warns(ConvergenceWarning, match="interrupted|complete"):
            model = machine().fit(X, y)
        press_at = 0  # prediction is not interrupted
        assert model.status_ == "interrupted"
        found.add(judged(model, X, y, levels))
        assert press > 2 or model.level_violation_ >= 1  # nothing was solved, and that is what it says
    assert found == {"unfinished", "level 2", "level 1", "whole"}


def test_a_second_ctrl_c_raises_and_leaves_the_machine_as_it_was() -> None:
    X, y = rows()
    machine = DCSVC(C=5.0, **PLAN).fit(X, y)
    before = dict(vars(machine))

    def press(row: dict[str, float]) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    machine.callback = press
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y)
    assert {**vars(machine), "callback": None} == before
