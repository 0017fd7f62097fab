"""A run as its user sees it: limits, progress, callbacks, Ctrl-C, traces, threads; and what a failure leaves behind."""

from __future__ import annotations

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.runtime import Control, Result, Status, Turn, interrupt, run, settled, thread_count, threads

ALL = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)
COLUMNS = ["iteration", "time", "objective", "dual", "gap", "violation", "n_support"]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=400) > 0.5, 1, 0)


def slow(make, **options):
    """Many turns of two variables each: for runs that are stopped."""
    own = {"nu": 0.3} if make in (NuSVC, NuSVR, OneClassSVM) else {"C": 100.0}
    return make(working_set_size=2, tol=1e-6, **own, **options)


# ---- limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL)
def test_no_time_at_all_still_gives_a_model(data, make) -> None:
    X, y = data
    with pytest.warns(ConvergenceWarning, match=r"status_='max_time'.*duality gap .* raise max_time \(1e-09 s\)") as seen:
        model = slow(make, max_time=1e-9).fit(X, y)
    assert model.status_ == "max_time" and model.fit_status_ == 1
    assert f"{model.dual_gap_:.3g}" in str(seen[0].message)
    assert seen[0].filename == __file__  # the warning points at the user's line
    assert model.dual_gap_ > 0 and model.kkt_violation_ > model.tol
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("make", ALL)
def test_max_iter(data, make) -> None:
    X, y = data
    with pytest.warns(ConvergenceWarning, match=r"status_='max_iter'.*raise max_iter \(3\)"):
        model = slow(make, max_iter=3).fit(X, y)
    assert model.status_ == "max_iter"
    assert np.sum(model.n_iter_) == len(model.trace_) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        longer = slow(make, max_iter=30).fit(X, y)
    # the dual value only rises; so does what is known about the optimum
    assert longer.objective_ - longer.dual_gap_ > model.objective_ - model.dual_gap_


def test_a_limit_that_is_not_reached_does_nothing(data) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(max_iter=10_000, max_time=3600).fit(*data)
    assert model.status_ == "converged"


def test_the_time_of_a_fit_is_shared_by_its_pairs_of_classes(data) -> None:
    X, _ = data
    y = np.arange(400) % 4
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = slow(SVC, max_time=1e-9).fit(X, y)
    assert model.n_iter_.shape == (6,) and (model.n_iter_ <= 1).all()
    assert set(model.predict(X)) <= {0, 1, 2, 3}


# ---- callback, progress, trace ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL)
def test_callback_sees_every_turn_and_can_stop(data, make) -> None:
    X, y = data
    seen: list[dict[str, float]] = []

    def watch(turn: dict[str, float]) -> bool:
        seen.append(dict(turn))
        return len(seen) == 4

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user stopped it: no warning
        model = slow(make, callback=watch).fit(X, y)
    assert model.status_ == "callback" and model.fit_status_ == 1
    assert [turn["iteration"] for turn in seen] == [1, 2, 3, 4]
    assert set(COLUMNS) <= set(seen[0])
    dual = [turn["dual"] for turn in seen]
    assert dual == sorted(dual)
    times = [turn["time"] for turn in seen]
    assert times == sorted(times)


def test_a_callback_that_stops_a_fit_of_many_classes_stops_all_of_it(data) -> None:
    X, _ = data
    calls = []
    model = slow(SVC, callback=lambda turn: calls.append(turn) or True).fit(X, np.arange(400) % 5)
    assert model.status_ == "callback"
    assert len(calls) == 1
    assert model.predict(X).shape == (400,)


def test_a_callback_that_raises_changes_nothing(data) -> None:
    X, y = data
    model = SVC().fit(X, y)
    before = pickle.dumps(model)

    def broken(turn: dict[str, float]) -> None:
        raise LookupError("mine")

    model.callback = broken
    with pytest.raises(LookupError, match="mine"):
        model.fit(X, y)
    model.callback = None
    assert pickle.dumps(model) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_progress_goes_to_stderr_and_only_when_asked(data, capsys) -> None:
    SVC(working_set_size=32, verbose=True).fit(*data)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "SVC" in shown.err and "violation=" in shown.err
    SVC().fit(*data)
    quiet = capsys.readouterr()
    assert quiet.out == quiet.err == ""


@pytest.mark.parametrize("make", ALL)
def test_trace_is_a_table(data, make) -> None:
    model = make(working_set_size=32, **({"nu": 0.3} if make is NuSVC else {})).fit(*data)
    table = pd.DataFrame(model.trace_)
    assert list(table.columns[:7]) == COLUMNS
    assert len(table) == np.sum(model.n_iter_)
    assert (table["iteration"] == np.arange(1, len(table) + 1)).all()
    assert (np.diff(table["dual"]) >= -1e-9 * np.abs(table["dual"].iloc[1:])).all()
    assert table["time"].is_monotonic_increasing
    assert model.timings_["total"] > 0
    assert {"select", "tile", "inner", "update", "shrink"} <= set(model.timings_)


def test_trace_of_many_classes_says_which_problem(data) -> None:
    X, _ = data
    model = SVC(working_set_size=64).fit(X, np.arange(400) % 3)
    table = pd.DataFrame(model.trace_)
    assert set(table["problem"]) == {-1, 0, 1, 2} and table["problem"].iloc[-1] == -1
    last = [table[table["problem"] == k].iloc[-1] for k in range(3)]
    assert table["dual"].iloc[-1] == pytest.approx(sum(row["dual"] for row in last), rel=1e-9)
    assert table["objective"].iloc[-1] == model.objective_ and table["gap"].iloc[-1] == model.dual_gap_
    assert (np.diff(table["time"]) >= 0).all()  # one clock for the whole fit


# ---- Ctrl-C -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ALL)
def test_ctrl_c_keeps_the_model(data, make) -> None:
    X, y = data

    def press(turn: dict[str, float]) -> None:
        if turn["iteration"] == 5:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="status_='interrupted'"):
        model = slow(make, callback=press).fit(X, y)
    assert model.status_ == "interrupted" and model.fit_status_ == 1
    assert np.sum(model.n_iter_) == 5
    assert np.isfinite(model.dual_gap_)
    assert model.predict(X).shape == y.shape
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_all_pairs_of_classes(data) -> None:
    X, _ = data
    calls = []

    def press(turn: dict[str, float]) -> None:
        calls.append(turn)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = slow(SVC, callback=press).fit(X, np.arange(400) % 5)
    assert model.status_ == "interrupted"
    assert len(calls) == 3
    assert model.predict(X).shape == (400,)


def test_a_second_ctrl_c_raises_and_changes_nothing(data) -> None:
    X, y = data
    model = SVC().fit(X, y)
    before = pickle.dumps(model)

    def press(turn: dict[str, float]) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    model.callback = press
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    model.callback = None
    assert pickle.dumps(model) == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_twice_ends_a_program_of_many_short_fits(data) -> None:
    X, y = data
    presses = 0

    def press(turn: dict[str, float]) -> None:
        nonlocal presses
        presses += 1
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), pytest.warns(ConvergenceWarning, match="interrupted"):
        for _ in range(3):  # each press falls into another fit
            slow(SVC, callback=press).fit(X, y)
    assert presses == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals to a process are POSIX")
def test_the_first_ctrl_c_of_a_program_is_no_second() -> None:
    fresh = importlib.util.module_from_spec(interrupt.__spec__)  # as it is after its import, which no other test sees
    interrupt.__spec__.loader.exec_module(fresh)
    with fresh.deferred_interrupt() as pressed:
        signal.raise_signal(signal.SIGINT)
        assert pressed.is_set()


def test_a_real_ctrl_c(data) -> None:
    """SIGINT from outside while a long fit runs: the process ends within a turn, with the model in hand."""
    code = """
        import os, signal, threading
        import numpy as np
        from maxmargin import SVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(4000, 10)); y = rng.integers(2, size=4000)
        started = threading.Event()
        threading.Thread(target=lambda: (started.wait(), os.kill(os.getpid(), signal.SIGINT))).start()
        model = SVC(C=1e3, tol=1e-9, gamma=1.0, callback=lambda turn: started.set()).fit(X, y)
        print("kept", model.status_, model.predict(X[:3]).shape)
    """
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert out.stdout.strip() == "kept interrupted (3,)", out.stderr


# ---- threads ----------------------------------------------------------------------------------------------------


def test_thread_count(monkeypatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_THREAD_LIMIT", raising=False)
    cores = thread_count()
    assert thread_count(None) == thread_count(-1) == cores >= 1
    assert thread_count(3) == 3  # an explicit number is taken as it is
    assert thread_count(-2) == max(1, cores - 1)
    assert thread_count(-1000) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count() == 1 and thread_count(4) == 4
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setenv("OMP_THREAD_LIMIT", "1")
    assert thread_count() == 1 and thread_count(4) == 4
    for junk in ("", "x", "0", "-3"):
        monkeypatch.setenv("OMP_THREAD_LIMIT", junk)
        assert thread_count() == cores
    with pytest.raises(ValueError, match="n_jobs=0 has no meaning"):
        thread_count(0)


@pytest.mark.parametrize("cores", [1, 2, 6, 7])
def test_processes_of_one_fit_share_the_cores_out_and_each_has_one(monkeypatch, cores) -> None:
    for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_available", lambda: cores)
    for processes in range(1, 10):
        share = max(1, cores // processes)
        with threads.sharing(processes):
            assert thread_count() == thread_count(-1) == share
            assert thread_count(-2) == max(1, share - 1) and thread_count(5) == 5
    assert thread_count() == cores


@pytest.mark.parametrize("n_jobs", [1, 2, 3, -1, None])
def test_n_jobs_is_only_about_time(data, n_jobs) -> None:
    assert np.array_equal(SVC(n_jobs=n_jobs).fit(*data).dual_coef_, SVC().fit(*data).dual_coef_)


def test_fits_in_threads_side_by_side(data) -> None:
    X, y = data
    makers = [SVC, SVR, OneClassSVM] * 2
    alone = [make(n_jobs=2).fit(X, y).dual_coef_ for make in makers]
    together: list[np.ndarray | None] = [None] * len(makers)

    def work(k: int) -> None:
        together[k] = makers[k](n_jobs=2).fit(X, y).dual_coef_

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(makers))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for one, other in zip(alone, together):
        assert np.array_equal(one, other)


# ---- the loop itself, driven by a toy solver --------------------------------------------------------------------


class Countdown:
    """`turns` turns, then the given end."""

    def __init__(self, turns: int, end: Status | None = None, error: Exception | None = None) -> None:
        self.left, self.end, self.error, self.closed = turns, end, error, False

    def turns(self):
        try:
            while self.left:
                yield None
                self.left -= 1
                yield Turn(objective=1, dual=-self.left, violation=self.left, n_support=1, extra={"left": self.left})
            if self.error:
                raise self.error
            return self.end
        finally:
            self.closed = True

    def result(self, status: Status) -> Result:
        assert self.closed
        return Result(status=status, objective=7.0, gap=2.0, violation=0.5, n_support=3)


def test_run_reports_what_happened() -> None:
    out = run(Countdown(3), Control())
    assert out.status is Status.CONVERGED and out.n_iter == 3
    assert list(out.trace["left"]) == [2, 1, 0] and out.trace.dtype.names[:7] == tuple(COLUMNS)
    assert [float(out.trace[-1][name]) for name in COLUMNS[2:]] == [7.0, 5.0, 2.0, 0.5, 3]  # the result's own numbers
    assert out.trace[0]["gap"] == 1 + 2
    assert out.timings["total"] >= 0
    assert run(Countdown(3, end=Status.STALLED), Control()).status is Status.STALLED
    assert run(Countdown(3), Control(max_iter=2)).status is Status.MAX_ITER
    stopped = run(Countdown(3), Control(max_time=0))
    assert stopped.status is Status.MAX_TIME and stopped.n_iter == 0  # at the first safe point, before any turn
    assert stopped.trace["iteration"].tolist() == [0] and stopped.trace["objective"].tolist() == [7.0]
    assert run(Countdown(0), Control()).status is Status.CONVERGED


@pytest.mark.parametrize("turns", [0, 2])
def test_what_a_result_does_not_say_is_not_known_in_the_last_row(turns: int) -> None:
    """NaN, and -1 for the number of support vectors."""

    class Silent(Countdown):
        def result(self, status: Status) -> Result:
            return Result(status=status)

    trace = run(Silent(turns), Control()).trace
    assert len(trace) == max(1, turns) and trace["n_support"][-1] == -1
    assert all(np.isnan(trace[name][-1]) for name in ("objective", "dual", "gap", "violation"))


@pytest.mark.parametrize("status", list(Status))
def test_converged_is_what_reaches_tol_and_only_that(status: Status) -> None:
    for tol in (0.0, 1e-3):
        assert settled(status, tol, tol) is (status if status.by_user else Status.CONVERGED)  # tol=0 can be reached, too
        assert settled(status, np.nextafter(tol, 1), tol) is (Status.STALLED if status is Status.CONVERGED else status)


def test_run_lets_an_error_through_and_restores_the_signal() -> None:
    with pytest.raises(ArithmeticError):
        run(Countdown(1, error=ArithmeticError()), Control())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_run_leaves_another_handler_alone() -> None:
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *args: pressed.append(args))
    try:
        out = run(Countdown(3), Control(callback=lambda turn: signal.raise_signal(signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert out.status is Status.CONVERGED and len(pressed) == 3


def test_a_solver_that_fails_leaves_the_estimator_unfitted(data, monkeypatch) -> None:
    def broken(*args, **kwargs):
        raise MemoryError("no room")

    monkeypatch.setattr(sys.modules["maxmargin.runtime.run"], "Log", broken)
    for make in ALL:
        model = make(nu=0.3) if make is NuSVC else make()
        before = dict(vars(model))
        with pytest.raises(MemoryError, match="no room"):
            model.fit(*data)
        assert vars(model) == before
