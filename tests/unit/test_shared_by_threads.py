"""Threads of Python side by side: fits and predictions have the bits they have alone, and leave the process as it was.

On Python without its lock these run at once in earnest; on the ordinary one threads take turns very often here.
"""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

import maxmargin.data
from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.runtime import one_blas_thread, thread_count
from maxmargin.runtime.blas import _set
from maxmargin.runtime.threads import sharing
from maxmargin.selection.scoring import known

TOGETHER = 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
SIDE = np.where(X[:, 0] + 0.3 * X[:, 1] ** 2 > 0.2, 1, -1)
THIRD = np.digitize(X[:, 0], [-0.5, 0.5])
HEIGHT = np.sin(X[:, 0])
WORDS = sp.random(300, 400, 0.05, "csr", random_state=0)

DIVIDED = {"levels": 1, "sample_size": 60, "random_state": 0, "gamma": 0.5}
MACHINES: dict[str, tuple[Any, Any, Any]] = {
    "SVC": (SVC(gamma=0.5), X, SIDE),
    "SVC float32": (SVC(gamma=0.5), X.astype(np.float32), SIDE),
    "SVC linear": (SVC(kernel="linear", C=0.1), X, THIRD),
    "SVC sparse": (SVC(gamma=0.5), WORDS, SIDE),
    "SVC classes": (SVC(gamma=0.5, n_jobs=2), X, THIRD),
    "SVC ipm": (SVC(gamma=0.5, inner_solver="ipm", working_set_size=64), X, SIDE),
    "SVC callable": (SVC(kernel=lambda a, b: a @ b.T), X, SIDE),
    "NuSVC": (NuSVC(nu=0.2, gamma=0.5), X, SIDE),
    "SVR": (SVR(gamma=0.5), X, HEIGHT),
    "NuSVR": (NuSVR(nu=0.2, gamma=0.5), X, HEIGHT),
    "OneClassSVM": (OneClassSVM(nu=0.1, gamma=0.5), X, None),
    "DCSVC": (DCSVC(**DIVIDED), X, SIDE),
    "DCSVC early": (DCSVC(predict_with="early", stop_level=1, **DIVIDED), X, SIDE),
    "DCSVR": (DCSVR(**DIVIDED), X, HEIGHT),
    "LinearSVC": (LinearSVC(random_state=0), X, THIRD),
    "LinearSVC sparse": (LinearSVC(loss="hinge", random_state=0), WORDS, SIDE),
    "LinearSVR": (LinearSVR(random_state=0), X, HEIGHT),
    "BudgetSVC": (BudgetSVC(budget=20, gamma=0.5, random_state=0), X, THIRD),
}


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Where Python has its lock, threads change after some instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """What the jobs return, each in a thread of its own; all begin together."""
    barrier = threading.Barrier(len(jobs))

    def begin(job: Callable[[], Any]) -> Any:
        barrier.wait(60)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(begin, jobs))


def values(model: Any, rows: Any) -> Any:
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


def told(model: Any, rows: Any) -> tuple[Any, ...]:
    return model.status_, model.objective_, model.dual_gap_, model.intercept_, values(model, rows)


def assert_same(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert_array_equal(a, b)


@pytest.mark.parametrize("name", MACHINES)
def test_fits_side_by_side_have_the_bits_of_one_alone(name: str) -> None:
    machine, rows, y = MACHINES[name]
    alone = told(clone(machine).fit(rows, y), rows)
    for found in at_once([lambda: told(clone(machine).fit(rows, y), rows)] * TOGETHER):
        assert_same(found, alone)


@pytest.mark.parametrize("name", MACHINES)
def test_threads_share_a_fitted_machine(name: str) -> None:
    """The first predictions prepare what later ones use: here all are the first."""
    machine, rows, y = MACHINES[name]
    fitted = clone(machine).fit(rows, y)
    asked = [rows, rows[:1], rows[5:9], rows if sp.issparse(rows) else sp.csr_matrix(rows)]
    expected = [values(copy.copy(fitted), some) for some in asked]

    for _ in range(10):
        shared = copy.copy(fitted)  # which has prepared nothing

        def job(first: int, shared: Any = shared) -> list[Any]:
            found = {i % 4: values(shared, asked[i % 4]) for i in range(first, first + 4)}
            return [found[i] for i in range(4)]

        for found in at_once([lambda k=k: job(k) for k in range(TOGETHER)]):
            assert_same(found, expected)


def test_threads_share_a_machine_whose_sums_overflow_in_single_precision() -> None:
    fitted = SVC(kernel="poly", degree=3, gamma=1.0).fit(np.float32(X), SIDE)
    far = np.float32(X * 1e14)
    fitted._precision = "float32"  # as a fit to many rows has it
    expected = fitted.decision_function(far)
    assert np.isfinite(expected).all()
    for _ in range(10):
        shared = copy.copy(fitted)
        assert_same(at_once([lambda s=shared: s.decision_function(far)] * TOGETHER), [expected] * TOGETHER)


# ---- what belongs to the process -----------------------------------------------------------------------------------


@pytest.fixture
def two_blas_threads() -> Iterator[Callable[[], set[int]]]:
    """Linear algebra on two threads, as the process has it; a function that says on how many it is."""
    libraries = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    if not libraries or any(getattr(lib, "threading_layer", "") == "openmp" for lib in libraries):
        pytest.skip("there is no number of threads that is the whole process's")
    before = [lib.num_threads for lib in libraries]
    for lib in libraries:
        _set(lib, 2)
    if {lib.num_threads for lib in libraries} != {2}:
        pytest.skip("it does not take two threads here")
    yield lambda: {lib.num_threads for lib in libraries}
    for lib, count in zip(libraries, before):
        _set(lib, count)


def test_the_last_fit_that_leaves_gives_linear_algebra_its_threads_back(two_blas_threads: Callable[[], set[int]]) -> None:
    """Two that overlap, neither within the other; each in a thread of its own."""
    came, may_leave, gone = ([threading.Event(), threading.Event()] for _ in range(3))

    def fit(k: int) -> None:
        with one_blas_thread():
            came[k].set()
            assert may_leave[k].wait(60)
        gone[k].set()
        assert gone[1].wait(60)  # a thread that has ended gives up what threadpoolctl lets it alone do

    threads = [threading.Thread(target=fit, args=(k,), daemon=True) for k in range(2)]
    for thread, here in zip(threads, came):
        thread.start()
        assert here.wait(60)
    assert two_blas_threads() == {1}
    may_leave[0].set()
    assert gone[0].wait(60)
    assert two_blas_threads() == {1}, "the second is still at work"
    may_leave[1].set()
    for thread in threads:
        thread.join(60)
    assert two_blas_threads() == {2}


def test_a_limit_that_somebody_set_meanwhile_is_kept(two_blas_threads: Callable[[], set[int]]) -> None:
    with one_blas_thread():
        for library in [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]:
            _set(library, 3)
    assert two_blas_threads() == {3}


def test_fits_of_several_processes_may_end_in_any_order() -> None:
    before = thread_count()
    first, second = sharing(1000), sharing(500)
    for enter in (first, second):
        enter.__enter__()
    assert thread_count() == 1
    first.__exit__(None, None, None)
    assert thread_count() == 1
    second.__exit__(None, None, None)
    assert thread_count() == before


def test_reading_an_array_leaves_the_filters_of_warnings_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the process's: two threads that each put back what they found can switch all warnings off for good."""
    np.save(tmp_path / "x.npy", np.column_stack([SIDE, X]))

    touched = []

    class Watched(warnings.catch_warnings):  # type: ignore[type-arg]
        def __enter__(self) -> Any:
            touched.append(sys._getframe(1).f_code.co_name)
            return super().__enter__()

    monkeypatch.setattr(warnings, "catch_warnings", Watched)
    read, labels = maxmargin.data.load(tmp_path / "x.npy")
    monkeypatch.undo()
    assert_array_equal(read, X)
    assert_array_equal(labels, SIDE)
    assert not touched


def test_threads_complete_a_machine_that_is_made_when_it_is_wanted() -> None:
    fitted = SVC(gamma=0.5).fit(X, SIDE)
    expected = [fitted.support_, fitted.dual_coef_, fitted.decision_function(X[:50])]
    for _ in range(20):
        half = known(SVC(gamma=0.5), X, np.zeros(len(X)), lambda: fitted, classes_=fitted.classes_)

        def job(k: int, half: Any = half) -> list[Any]:
            wanted = [lambda: half.support_, lambda: half.dual_coef_, lambda: half.decision_function(X[:50])]
            found = {i % 3: wanted[i % 3]() for i in range(k, k + 3)}
            return [found[i] for i in range(3)]

        for found in at_once([lambda k=k: job(k) for k in range(TOGETHER)]):
            assert_same(found, expected)
        with pytest.raises(AttributeError, match="no attribute 'nothing_of_the_kind'"):
            _ = half.nothing_of_the_kind


ASK = """
import threading, maxmargin
wanted, barrier, failed = list(maxmargin.__all__), threading.Barrier(8), []
def ask(names):
    barrier.wait()
    for name in names:
        try:
            getattr(maxmargin, name)
        except BaseException as error:
            failed.append((name, repr(error)))
threads = [threading.Thread(target=ask, args=(wanted[k::8],)) for k in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert not failed, failed
"""


def test_threads_ask_for_names_of_the_package_at_once() -> None:
    """Names are imported when they are first asked for, and Python gives up where imports wait for each other."""
    out = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=200, env={**os.environ})
    assert out.returncode == 0, out.stderr


def test_one_thread_at_a_time_imports_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law behind it, wherever imports happen not to meet."""
    inside, met = threading.Lock(), []

    def slow(module: str) -> Any:
        if not inside.acquire(blocking=False):
            met.append(module)
            return real(module)
        try:
            time.sleep(0.01)  # for others to come
            return real(module)
        finally:
            inside.release()

    real = maxmargin.import_module
    monkeypatch.setattr(maxmargin, "import_module", slow)
    names = ["SVC", "DCSVC", "load", "LinearSVCCV"]
    assert_same(at_once([lambda name=name: maxmargin.__getattr__(name).__name__ for name in names]), names)
    assert not met
