"""Files of another fit, damaged and forged ones, and bad parameters of a checkpoint are refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
from maxmargin import DCSVC, SVC, SVR, LinearSVC, LinearSVR, NuSVC
from maxmargin.data.container import ModelFileError, read, write

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from checkpointed import fit, no_fsync, stopped  # noqa: F401
from killed import CASES, data, machine
from machines import judged

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
