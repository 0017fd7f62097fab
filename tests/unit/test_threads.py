"""Nothing depends on how many threads are asked for, nor on how many come: every machine, every environment, bit for bit."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmargin import SVC, _core

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NATIVE = HERE.parent / "native"

# The BLAS has threads of its own, and they do move last bits; here they are not what is looked at.
QUIET = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def answers(*arguments: object, limit: Callable[[], None] | None = None, **environment: str) -> dict[tuple[str, Any], Any]:
    """What every machine answers, by its name and n_jobs, in another process."""
    out = subprocess.run(
        [sys.executable, str(NATIVE / "every_machine.py"), *map(str, arguments)],
        env={**os.environ, **QUIET, **environment}, preexec_fn=limit, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    records = [json.loads(line) for line in out.stdout.splitlines()]
    return {(r.pop("name"), r.pop("n_jobs")): r for r in records}


@pytest.fixture(scope="module")
def usual() -> dict[tuple[str, Any], Any]:
    return answers(1, 2, 3)


def test_results_have_the_same_bits_for_any_number_of_threads(usual: dict[tuple[str, Any], Any]) -> None:
    names = {name for name, _ in usual}
    assert len(names) > 20
    for name in names:
        assert usual[name, 1]["status"] in ("converged", "completed"), name
        assert usual[name, 1] == usual[name, 2] == usual[name, 3], name


def no_more_threads() -> None:
    """Stacks of threads (as large as the limit of the main one) do not fit into the address space: none can start."""
    resource.setrlimit(resource.RLIMIT_STACK, (256 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (64 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))


def test_settings_of_a_scheduler_change_nothing(usual: dict[tuple[str, Any], Any]) -> None:
    """Teams of OpenMP would come as one thread here; what was split for two was lost."""
    settings = {"OMP_THREAD_LIMIT": "1", "OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "1"}
    for (name, _), found in answers(2, "--each-once", **settings).items():
        assert found == usual[name, 1], name


def test_no_thread_comes(usual: dict[tuple[str, Any], Any]) -> None:
    if sys.platform != "linux":
        pytest.skip("limits on the address space are not kept on this system")
    probe = "import threading; t = threading.Thread(target=print); t.start()"
    out = subprocess.run([sys.executable, "-c", probe], preexec_fn=no_more_threads, capture_output=True, text=True)
    assert "can't start new thread" in out.stderr, "the limits do not keep threads from starting: this test shows nothing"
    # divide and conquer solves its subproblems on threads of Python, which raises when it can have none
    for (name, _), found in answers(4, "--each-once", "--not", "DC", limit=no_more_threads).items():
        assert found == usual[name, 1], name


# ---- native/base/threads.hpp on its own ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler: the package came as a wheel")
    made: dict[tuple[str, ...], Path] = {}

    def build(*flags: str) -> Path:
        if flags not in made:
            path = tmp_path_factory.mktemp("threads") / "threads"
            command = [compiler, "-std=c++17", "-O1", "-g", *flags, f"-I{ROOT / 'native'}", "-pthread"]
            out = subprocess.run([*command, str(NATIVE / "threads.cpp"), "-o", str(path)], capture_output=True, text=True)
            if out.returncode and flags:
                pytest.skip(f"this compiler has no {' '.join(flags)}")
            assert out.returncode == 0, out.stderr
            made[flags] = path
        return made[flags]

    return build


@pytest.mark.parametrize("mode", ["many", "fork", "alone"])
def test_loops_are_shared_out(program: Callable[..., Path], mode: str) -> None:
    out = subprocess.run([str(program()), mode], capture_output=True, text=True, timeout=100)
    assert out.returncode == 0, out.stdout + out.stderr


def test_loops_do_not_race(program: Callable[..., Path]) -> None:
    """Under ThreadSanitizer, without random addresses where it cannot cope with them."""
    path = str(program("-fsanitize=thread"))
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    out = subprocess.run([*fixed, path, "many"], capture_output=True, text=True, timeout=200)
    assert out.returncode == 0 and "WARNING" not in out.stderr, out.stdout + out.stderr


def test_a_fork_after_a_fit_can_fit() -> None:
    """Helpers stay behind in the parent; a child that waited for them would wait for ever."""
    code = """
import os, signal
import numpy as np
from maxmargin import LinearSVC
X = np.random.default_rng(0).normal(size=(60_000, 3)); y = np.where(X[:, 0] > 0, 1, -1)
here = LinearSVC(n_jobs=3).fit(X, y).coef_
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if np.array_equal(LinearSVC(n_jobs=3).fit(X, y).coef_, here) else 1)
print(os.waitpid(child, 0)[1])
"""
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=120)
    assert out.stdout.strip() == "0", out.stdout + out.stderr


# ---- what only many samples show --------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("at", [0, 70_000, 149_999])
def test_a_score_that_is_no_number_is_seen_in_every_slice(at: int, threads: int) -> None:
    n = 150_000
    f = np.zeros((1, n))
    f[0, at] = np.nan
    state = np.zeros((1, n)), np.zeros((1, n)), np.ones((1, n)), np.zeros((1, n))
    part = _core.Part64(None, np.arange(n), *state, np.zeros((1, n), np.int8), f[0], 0, threads)
    assert np.isnan(part.extremes()).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("k", [1, 500, 200_000])
def test_candidates_are_the_worst_of_all(k: int, threads: int) -> None:
    """Against a full sort, ties by number; most of the worst sit in one place, where one slice alone finds them."""
    n = 150_000
    rng = np.random.default_rng(k)
    f = np.round(rng.normal(size=n), 2)
    f[60_000:61_000] -= 10
    beta = rng.integers(0, 3, n) / 2.0
    part = _core.Part64(
        None, np.arange(n), np.zeros((1, n)), np.zeros((1, n)), np.ones((1, n)), beta[None], np.zeros((1, n), np.int8), f, 0,
        threads,
    )  # fmt: skip
    up, up_score, low, low_score = part.candidates(0, k, -0.5, 0.5)
    for found, score, can, beyond, sign in (
        (up, up_score, beta < 1, -f > -0.5, 1), (low, low_score, beta > 0, -f < 0.5, -1)
    ):  # fmt: skip
        allowed = np.flatnonzero(can & beyond)
        expected = allowed[np.lexsort((allowed, sign * f[allowed]))][:k]
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(score, -f[expected])


def test_a_model_of_many_threads_predicts_as_one() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    model = SVC(n_jobs=1).fit(X[:500], y[:500])
    one = model.decision_function(X)
    for n in (2, 3, 8):
        np.testing.assert_array_equal(model.set_params(n_jobs=n).decision_function(X), one)
