"""A fit that was killed goes on from its checkpoint and ends where it would have."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC, LinearSVC
from maxmargin.data.container import read, write

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from checkpointed import as_good, fit, no_fsync, stopped, turns_of  # noqa: F401
from killed import CASES, MOMENTS, data, machine
from machines import judged

HERE = Path(__file__).parent


# ---- kill -9 --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graves(tmp_path_factory) -> tuple[Path, set[str]]:
    """The checkpoints of fits that were killed, and the names of those that ended before."""
    folder = tmp_path_factory.mktemp("killed")
    ran = subprocess.run([sys.executable, str(HERE / "killed.py"), str(folder)], capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    survivors = dict(line.split() for line in ran.stdout.splitlines())
    assert set(survivors.values()) <= {"0"}, ran.stderr
    return folder, set(survivors)


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """The same fits, never stopped."""
    return {case: fit(machine(case), *data(CASES[case][1])) for case in CASES}


@pytest.mark.skipif(sys.platform == "win32", reason="has no fork")
@pytest.mark.parametrize(("how", "number"), MOMENTS)
@pytest.mark.parametrize("case", CASES)
def test_a_killed_fit_goes_on_and_ends_where_it_would_have(case: str, how: str, number: int, graves, whole) -> None:
    folder, survivors = graves
    path = folder / f"{case}-{how}-{number}"
    X, y = data(CASES[case][1])
    if path.name in survivors:
        assert number > 10, "it should have been killed"
        return
    known = read(path)[1]
    assert known["done"] is False
    model = fit(machine(case, checkpoint=path), X, y)
    assert model.status_ == whole[case].status_ in ("converged", "early")
    if number == 12 and case != "LinearSVC-joint":  # which certify_fit does not know
        judged(model, X, y)
    if model.status_ == "converged":
        as_good(model, whole[case], X)
    else:
        assert model.level_objective_ == pytest.approx(whole[case].level_objective_, rel=1e-6)
    assert read(path)[1]["done"] is True
    assert not list(folder.glob(f"{path.name}.*.part")), "what was half written is left"


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_a_process_killed_from_outside(tmp_path) -> None:
    """At whatever moment that is: three times in a row, each run a little further than the last."""
    path = tmp_path / "run.ckpt"
    code = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
from killed import data, machine
X, y = data("two", 1000)
model = machine("SVC", checkpoint={str(path)!r}, checkpoint_every=0, tol=1e-7)
model.set_params(callback=lambda row: print("turn", flush=True)).fit(X, y)
"""
    left = []
    for turns in (3, 6, 12):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(turns):
                assert process.stdout.readline() == "turn\n"
            process.kill()
        assert process.returncode == -signal.SIGKILL
        left.append(read(path)[2])
    dual = [float(np.count_nonzero(arrays[1])) for arrays in left]
    assert dual[0] < dual[2], "later runs went on"
    X, y = data("two", 1000)
    model = machine("SVC", checkpoint=path, tol=1e-3).fit(X, y)
    judged(model, X, y)
    assert model.status_ == "converged"


# ---- going on -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("SVC-3-small", "DCSVC-3", "LinearSVC-l1")])
def test_going_on_takes_fewer_turns_than_beginning_anew(case: str, whole, tmp_path) -> None:
    X, y = data(CASES[case][1])
    all_ = len(whole[case].trace_)
    path = tmp_path / "a.ckpt"
    stopped(machine(case, checkpoint=path), all_ - max(1, all_ // 4), X, y)
    model = fit(machine(case, checkpoint=path), X, y)
    assert model.status_ in ("converged", "early")
    assert turns_of(model) < turns_of(whole[case])


@pytest.mark.parametrize("case", ["SVC", "SVC-3", "NuSVC-weighted", "SVR", "OneClassSVM", "DCSVC", "LinearSVC", "LinearSVR"])
@pytest.mark.parametrize("kind", ["csr", "float32"])
def test_every_kind_of_samples(case: str, kind: str, tmp_path) -> None:
    X, y = data(CASES[case][1])
    X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)) if kind == "csr" else X.astype(np.float32)
    path = tmp_path / "a.ckpt"
    stopped(machine(case, checkpoint=path), 10, X, y)
    model = fit(machine(case, checkpoint=path), X, y)
    assert model.status_ == "converged"
    judged(model, X, y)
    as_good(model, fit(machine(case), X, y), X)


@pytest.mark.parametrize("case", ["SVC", "SVC-3", "SVR", "DCSVC"])
def test_the_file_does_not_know_the_order_of_the_rows(case: str, tmp_path) -> None:
    """So that it serves another number of processes, which share them out otherwise."""
    X, y = data(CASES[case][1])
    weight = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 2.5], len(X))
    X[1], y[1] = X[0], y[0]  # a sample that is there twice
    order = np.random.default_rng(2).permutation(len(X))
    paths = [tmp_path / "a.ckpt", tmp_path / "b.ckpt"]
    stopped(machine(case, checkpoint=paths[0]), 9, X, y, weight)
    stopped(machine(case, checkpoint=paths[1]), 9, X[order], y[order], weight[order])
    (_, one, arrays), (_, other, others) = map(read, paths)
    assert one["of"] | {"gamma": 0} == other["of"] | {"gamma": 0}
    assert one["of"]["gamma"] == pytest.approx(other["of"]["gamma"], rel=1e-14)
    for a, b in zip(arrays, others) if "DC" not in case else ():  # whose turns also count quarters of seconds
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    model = fit(machine(case, checkpoint=paths[0]), X[order], y[order], weight[order])
    assert model.status_ == "converged"
    judged(model, X[order], y[order], weight[order])


def test_linear_points_and_cuts_serve_in_any_order_of_the_rows_but_cuts_only_in_their_frame(tmp_path) -> None:
    X, y = data("two", 2000)
    path, order = tmp_path / "a.ckpt", np.random.default_rng(2).permutation(2000)
    whole = LinearSVC(loss="hinge", solver="ocas", tol=1e-6).fit(X, y)
    stopped(LinearSVC(loss="hinge", solver="ocas", tol=1e-6, checkpoint=path), whole.n_iter_ - 2, X, y)
    raw = path.read_bytes()
    other = fit(LinearSVC(loss="hinge", solver="ocas", tol=1e-6, checkpoint=path), X[order], y[order])
    path.write_bytes(raw)
    same = fit(LinearSVC(loss="hinge", solver="ocas", tol=1e-6, checkpoint=path), X, y)
    path.write_bytes(raw)
    header, arrays = read(path)[1:]
    header["state"]["dict"]["frame"] = "another"
    write(path, header, arrays)
    moved = fit(LinearSVC(loss="hinge", solver="ocas", tol=1e-6, checkpoint=path), X, y)
    assert max(same.n_iter_, other.n_iter_) <= 3 < moved.n_iter_
    for model, rows in ((same, slice(None)), (other, order), (moved, slice(None))):
        judged(model, X[rows], y[rows])
        as_good(model, whole, X)


@pytest.mark.parametrize(
    "change",
    [{"n_jobs": 2}, {"max_time": 60.0}, {"tol": 1e-6}, {"cache_size": 1}, {"shrinking": False}, {"inner_solver": "ipm"},
     {"max_iter": 10_000}, {"verbose": 0}, {"warm_start": True}, {"working_set_size": None}],
    ids=str,
)  # fmt: skip
def test_how_a_solution_is_found_may_change(change: dict[str, Any], tmp_path) -> None:
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    stopped(machine("SVC", checkpoint=path), 8, X, y)
    model = machine("SVC", checkpoint=path, **change).fit(X, y)
    assert model.status_ == "converged" and model.kkt_violation_ <= model.tol
    judged(model, X, y)


def test_gram_matrices_and_kernel_functions(tmp_path) -> None:
    X, y = data("two")
    gram = X @ X.T

    def linear(a: Any, b: Any) -> Any:
        return a @ b.T

    best = SVC(kernel="linear", C=5.0, tol=1e-6).fit(X, y).objective_
    for kernel, given in (("precomputed", gram), (linear, X)):
        path = tmp_path / f"{callable(kernel)}.ckpt"
        make = {"kernel": kernel, "C": 5.0, "tol": 1e-6, "working_set_size": 4, "checkpoint": path}
        stopped(SVC(**make), 8, given, y)
        assert SVC(**make).fit(given, y).objective_ == pytest.approx(best, rel=1e-6)


def test_a_run_that_goes_on_writes_before_it_is_where_it_was(tmp_path, monkeypatch) -> None:
    """Killed again right after it began, it has lost nothing: DC certifies its last level first."""
    X, y = data("three")
    path = tmp_path / "a.ckpt"
    whole = fit(machine("DCSVC-3", random_state=0), X, y)
    stopped(machine("DCSVC-3", random_state=0, checkpoint=path), len(whole.trace_) - 4, X, y)
    before = read(path)
    assert before[1]["state"]["dict"]["stage"] == "whole"
    for turns in (1, 2, 3, 1):
        stopped(machine("DCSVC-3", random_state=0, checkpoint=path), turns, X, y)
        after = read(path)
        assert after[1]["state"]["dict"]["stage"] == "whole"
        for a, b in zip(before[2], after[2]):
            if a.dtype == np.float64:
                np.testing.assert_array_equal(a, b)
    as_good(fit(machine("DCSVC-3", random_state=0, checkpoint=path), X, y), whole, X)


def test_levels_that_were_finished_stay_in_the_table(tmp_path) -> None:
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    whole = fit(machine("DCSVC"), X, y)
    stages = whole.trace_["stage"]
    stopped(machine("DCSVC", checkpoint=path), int(np.flatnonzero(stages == 3)[0]) + 2, X, y)
    model = fit(machine("DCSVC", checkpoint=path), X, y)
    assert model.levels_["stage"].tolist() == whole.levels_["stage"].tolist() == ["level", "level", "refine", "whole"]
    np.testing.assert_allclose(model.levels_["objective"][:3], whole.levels_["objective"][:3], rtol=1e-6)


def test_a_run_that_ends_again_has_the_level_that_was_finished(tmp_path) -> None:
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    whole = fit(machine("DCSVC"), X, y)
    at = int(np.flatnonzero((whole.trace_["stage"] == 1) & (whole.trace_["level"] == 1))[0])
    stopped(machine("DCSVC", checkpoint=path), at, X, y)
    before = path.read_bytes()
    none = fit(machine("DCSVC", checkpoint=path, max_time=1e-6), X, y)  # no time to find the clusters again
    assert none.status_ == "max_time"
    np.testing.assert_array_equal([len(a) for a in read(path)[2]], [len(a) for a in _read(before, tmp_path)])
    seen: list[float] = []
    model = fit(machine("DCSVC", checkpoint=path, callback=lambda row: seen.append(row["level"]) or row["level"] == 1), X, y)
    assert seen[0] == 2 and model.status_ == "callback" and model.level_ == 2 and model.n_support_.sum() > 0
    judged(model, X, y)
    assert fit(machine("DCSVC", checkpoint=path), X, y).status_ == "converged"


def _read(raw: bytes, folder: Path) -> list[Any]:
    (folder / "before").write_bytes(raw)
    return read(folder / "before")[2]
