"""A fit that was killed goes on from its checkpoint and ends where it would have; a file of anything else is refused."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import DCSVC, SVC, SVR, LinearSVC, LinearSVR, NuSVC
from maxmargin.data import atomic
from maxmargin.data.container import ModelFileError, read, write
from maxmargin.runtime import Checkpoints, Control, Result, Status, Turn, run

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from killed import CASES, MOMENTS, data, machine
from machines import equally_good, judged

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch) -> None:
    """Power does not fail here."""
    monkeypatch.setattr(atomic.os, "fsync", lambda handle: None)


def fit(model: Any, X: Any, y: Any, weight: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight=weight)


def stopped(model: Any, turns: int, X: Any, y: Any, weight: Any = None) -> Any:
    """A fit that its callback ends after so many turns: its last state is in the file."""
    model.set_params(callback=lambda row: row["iteration"] >= turns, checkpoint_every=0)
    fitted = fit(model, X, y, weight)
    assert fitted.status_ == "callback"
    return fitted


def as_good(one: Any, other: Any, X: Any) -> None:
    if isinstance(one, NuSVC) and one.class_weight:  # its C is 1/ρ of a first stage, known to tol
        assert one.objective_ == pytest.approx(other.objective_, rel=10 * one.tol / np.min(one.margin_))
    else:
        equally_good(one, other, X)


def turns_of(model: Any) -> int:
    return int(np.sum(model.n_iter_))


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


def test_linear_points_serve_in_any_order_and_cuts_only_in_theirs(tmp_path) -> None:
    X, y = data("two", 2000)
    path, order = tmp_path / "a.ckpt", np.random.default_rng(2).permutation(2000)
    whole = LinearSVC(loss="hinge", solver="ocas", tol=1e-6).fit(X, y)
    stopped(LinearSVC(loss="hinge", solver="ocas", tol=1e-6, checkpoint=path), whole.n_iter_ - 2, X, y)
    raw = path.read_bytes()
    other = fit(LinearSVC(loss="hinge", solver="ocas", tol=1e-6, checkpoint=path), X[order], y[order])
    path.write_bytes(raw)
    same = fit(LinearSVC(loss="hinge", solver="ocas", tol=1e-6, checkpoint=path), X, y)
    assert same.n_iter_ <= 3 < other.n_iter_
    for model, rows in ((same, slice(None)), (other, order)):
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


# ---- the end --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["SVC", "SVC-3-small", "DCSVC", "LinearSVC"])
def test_a_fit_that_is_done_is_certified_again_at_once(case: str, tmp_path) -> None:
    X, y = data(CASES[case][1])
    path = tmp_path / "a.ckpt"
    first = fit(machine(case, checkpoint=path), X, y)
    assert read(path)[1]["done"] is True and first.timings_["checkpoints"] > 0
    again = fit(machine(case, checkpoint=path), X, y)
    assert again.status_ == "converged" and turns_of(again) <= max(1, turns_of(first) // 3)
    judged(again, X, y)


def test_a_fit_that_is_done_stands_in_no_other_fits_way(tmp_path) -> None:
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    SVC(C=5.0, checkpoint=path).fit(X, y)
    other = LinearSVC(checkpoint=path).fit(X, y)
    assert other.status_ == "converged" and read(path)[1]["of"]["machine"] == "LinearSVC"


def test_limits_leave_a_file_to_go_on_from(tmp_path) -> None:
    """Hours on a cluster come in slices: max_time and a checkpoint make one fit of them."""
    X, y = data("two")
    path, dual = tmp_path / "a.ckpt", []
    for _ in range(50):
        model = fit(machine("SVC", checkpoint=path, max_iter=7), X, y)
        dual.append(model.objective_ - model.dual_gap_)
        if model.status_ == "converged":
            break
        assert model.status_ == "max_iter" and read(path)[1]["done"] is False
    assert model.status_ == "converged" and len(dual) > 2
    assert (np.diff(dual) >= -1e-9 * abs(dual[-1])).all()
    judged(model, X, y)


def test_without_a_checkpoint_nothing_is_written(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = data("two")
    SVC().fit(X, y)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_does_not_end_the_fit(tmp_path, monkeypatch) -> None:
    X, y = data("two")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "replace", full)
    with pytest.warns(RuntimeWarning, match="checkpoint not written: .*No space left"):
        model = SVC(C=5.0, checkpoint=tmp_path / "a.ckpt").fit(X, y)
    assert model.status_ == "converged" and not list(tmp_path.iterdir())


# ---- refused --------------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "C": ("SVC", {"C": 6.0}, "C was 5.0 and is 6.0"),
    "gamma": ("SVC", {"gamma": 2.0}, r"gamma was 0\.\d+ and is 2.0"),
    "kernel": ("SVC", {"kernel": "poly"}, "kernel was 'rbf' and is 'poly'"),
    "intercept": ("SVC", {"fit_intercept": False}, "fit_intercept was True and is False"),
    "class weights": ("SVC", {"class_weight": {1: 2.0}}, r"class_weight was \[1.0, 1.0\] and is \[1.0, 2.0\]"),
    "nu": ("OneClassSVM", {"nu": 0.4}, "nu was 0.3 and is 0.4"),
    "epsilon": ("SVR", {"epsilon": 0.2}, "epsilon was 0.1 and is 0.2"),
    "k": ("DCSVC", {"k": 3}, "k was 2 and is 3"),
    "seed": ("DCSVC", {"random_state": 3}, "random_state was 0 and is 3"),
    "loss": ("LinearSVC", {"loss": "squared_hinge", "solver": "auto"}, "loss was 'hinge' and is 'squared_hinge'"),
    "linear C": ("LinearSVC", {"C": 1.0}, "C was 5.0 and is 1.0"),
    "linear intercept": ("LinearSVC", {"intercept_scaling": None}, "intercept_scaling was 1.0 and is None"),
    "joint": ("LinearSVC-3", {"multi_class": "crammer_singer"}, "multi_class was 'ovr' and is 'crammer_singer'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_parameters_of_another_fit_are_refused_by_name(name: str, tmp_path) -> None:
    case, change, words = CHANGES[name]
    X, y = data(CASES[case][1])
    path = tmp_path / "a.ckpt"
    stopped(machine(case, checkpoint=path), 3, X, y)
    before = path.read_bytes()
    model = machine(case, checkpoint=path).set_params(**change)
    with pytest.raises(ValueError, match=f"^checkpoint='.*' is of another fit, which is not done: {words}[.;].*"):
        model.fit(X, y)
    assert path.read_bytes() == before and not hasattr(model, "status_")


@pytest.mark.parametrize("case", ["SVC", "SVC-3", "SVR", "OneClassSVM", "DCSVC", "LinearSVC", "LinearSVR"])
@pytest.mark.parametrize("change", ["rows", "fewer", "wider", "labels", "weights"])
def test_samples_of_another_fit_are_refused_by_name(case: str, change: str, tmp_path) -> None:
    if case == "OneClassSVM" and change == "labels":
        pytest.skip("has none")
    X, y = data(CASES[case][1])
    path, weight = tmp_path / "a.ckpt", np.random.default_rng(0).choice([1.0, 2.0], len(X))
    stopped(machine(case, checkpoint=path), 3, X, y, weight)
    words = {"rows": "X is another", "fewer": "n_samples was 240 and is 239; X is another",
             "wider": "n_features was 3 and is 4; X is another", "labels": "y is another",
             "weights": "sample_weight is another"}[change]  # fmt: skip
    X, y, weight = X.copy(), y.copy(), weight.copy()
    if change == "rows":
        X[17, 1] = np.nextafter(X[17, 1], 9.0)
    elif change == "fewer":
        X, y, weight = X[1:], y[1:], weight[1:]
    elif change == "wider":
        X = np.hstack([X, np.ones((len(X), 1))])
    elif change == "labels":
        y[17] = y[17] + 1 if y.dtype.kind == "f" else y[np.flatnonzero(y != y[17])[0]]
    else:
        weight[17] = 3.0
    with pytest.raises(ValueError, match=f"is of another fit, which is not done: {words}"):
        fit(machine(case, checkpoint=path), X, y, weight)


def test_another_machine_is_refused(tmp_path) -> None:
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    stopped(machine("SVC", checkpoint=path), 3, X, y)
    with pytest.raises(ValueError, match="it is of 'SVC', this is DCSVC"):
        DCSVC(C=5.0, checkpoint=path).fit(X, y)


def test_a_model_is_no_checkpoint_and_a_checkpoint_no_model(tmp_path) -> None:
    X, y = data("two")
    path, model = tmp_path / "a.ckpt", tmp_path / "a.mxm"
    stopped(machine("SVC", checkpoint=path), 3, X, y)
    with pytest.raises(ModelFileError, match="a checkpoint of a fit, not a model"):
        maxmargin.load(path)
    maxmargin.save(machine("SVC", checkpoint=path).fit(X, y), model)
    assert maxmargin.load(model).checkpoint == str(path)
    with pytest.raises(ValueError, match=r"^checkpoint=.*is a model, not a checkpoint.*delete the file to begin anew"):
        SVC(checkpoint=model).fit(X, y)


@pytest.mark.parametrize("case", ["SVC", "DCSVC", "LinearSVC"])
def test_damaged_files_are_refused(case: str, tmp_path) -> None:
    X, y = data(CASES[case][1])
    path = tmp_path / "a.ckpt"
    stopped(machine(case, checkpoint=path), 3, X, y)
    raw, rng = path.read_bytes(), np.random.default_rng(0)
    wrong = [b"", b"text", raw[: len(raw) // 2], raw[:-1], raw + b"\0"]
    for at in rng.integers(0, len(raw), 30):
        wrong.append(raw[:at] + bytes([raw[at] ^ 1 << int(rng.integers(8))]) + raw[at + 1 :])
    for bad in wrong:
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=r"^checkpoint=.*cannot be used"):
            machine(case, checkpoint=path).fit(X, y)


@pytest.mark.parametrize("case", ["SVC", "SVC-3", "NuSVC-weighted", "SVR", "DCSVC", "DCSVC-3", "LinearSVC", "LinearSVC-3"])
def test_forged_files_are_refused_or_lead_to_the_truth(case: str, tmp_path) -> None:
    """Right checksums, wrong contents: arrays of other shapes, types and values, keys that are missing."""
    X, y = data(CASES[case][1], 60)
    path, rng = tmp_path / "a.ckpt", np.random.default_rng(0)
    stopped(machine(case, checkpoint=path), 5, X, y)
    _, header, arrays = read(path)
    refused = 0
    for trial in range(12):
        forged, others = dict(header), [array.copy() for array in arrays]
        if trial == 0:
            forged["layout"] = 99
        elif trial == 1:
            forged.pop("state")
        elif trial == 2:
            forged["state"] = {"dict": {}}
        else:
            k = int(rng.integers(len(others)))
            others[k] = [others[k][:-1], others[k].astype(np.float32) if others[k].dtype.names is None else others[k][:0],
                         others[k] * np.nan if others[k].dtype == np.float64 else others[k][:0]][trial % 3]  # fmt: skip
        write(path, forged, others)
        model = machine(case, checkpoint=path)
        try:
            fit(model, X, y)
        except ValueError as error:
            assert str(error).startswith("checkpoint=") and "cannot be used" in str(error), error
            refused += 1
        else:
            judged(model, X, y)
    assert refused >= 3


@pytest.mark.parametrize(("name", "value"), [("checkpoint", 3), ("checkpoint", b"x"), ("checkpoint_every", -1.0),
                                             ("checkpoint_every", "often"), ("checkpoint_every", None)])  # fmt: skip
@pytest.mark.parametrize("make", [SVC, SVR, DCSVC, LinearSVC, LinearSVR])
def test_bad_parameters_are_named(make: Any, name: str, value: Any) -> None:
    X, y = data("two")
    with pytest.raises(ValueError, match=f"^{name}="):
        make(**{name: value}).fit(X, y)


def test_a_place_where_nothing_can_be_written_is_told_before_the_work(tmp_path) -> None:
    X, y = data("two")
    for path in (tmp_path, tmp_path / "no" / "a.ckpt"):
        with pytest.raises(ValueError, match=r"^checkpoint=.*is a folder, or its folder is not there or not writable"):
            SVC(checkpoint=path).fit(X, y)


def test_fits_inside_a_fit_have_none(tmp_path) -> None:
    X, y = data("two")
    path = tmp_path / "a.ckpt"
    with pytest.warns(FutureWarning, match="probability"):
        NuSVC(nu=0.2, probability=True, checkpoint=path, random_state=0).fit(X, y)
    assert read(path)[1]["of"]["n_samples"] == len(X)
    with pytest.raises(ValueError, match=r"^checkpoint=.*a path has many"):
        LinearSVC(checkpoint=path).path(X, y, [1.0, 2.0])


# ---- when -----------------------------------------------------------------------------------------------------------


class Counting:
    def __init__(self, turns: int) -> None:
        self.made, self._turns = 0, turns

    def turns(self) -> Any:
        while self.made < self._turns:
            self.made += 1
            yield Turn(1.0, 0.0, 1.0, 0)

    def snapshot(self) -> int:
        return self.made

    def result(self, status: Status) -> Result:
        return Result(status=status)


def test_a_state_is_put_away_every_so_many_seconds_and_at_the_end(monkeypatch) -> None:
    now = 0.0

    def tick() -> float:
        nonlocal now
        now += 0.25
        return now

    seen: list[tuple[int, bool]] = []
    monkeypatch.setattr(time, "perf_counter", tick)
    control = Control(checkpoints=Checkpoints(lambda state, done: seen.append((state, done)), 10.0))
    run(Counting(100), control)
    assert seen[-1] == (100, True) and 3 <= len(seen) <= 20
    assert all(not done for _, done in seen[:-1]) and np.diff([made for made, _ in seen[:-1]]).min() > 1
