"""Cross-validation, searches and the ends of `train` by their definitions."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.model_selection import KFold, StratifiedKFold

import maxmargin as mm
from maxmargin import data
from maxmargin.cli import cv, engines, libsvm_words, program, search, train
from maxmargin.cli.console import Console
from maxmargin.cli.samples import Samples


def asked(line: str) -> Any:
    name, *words = line.split()
    return program.parser().parse_args([name, *libsvm_words.translated(words)])


# ---- folds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "folds", "seed"), [("", 5, 0), ("-v 3", 3, 0), ("-v 2 --seed 7", 2, 7)])
@pytest.mark.parametrize(("kind", "file"), [("svc", "three.svm"), ("svr", "three.svm"), ("one-class", "train.svm"),
                                            ("linear", "train.svm"), ("gram", "train.svm")])  # fmt: skip
def test_every_fold_is_judged_by_the_others(maxmargin, folder, words, folds, seed, kind, file) -> None:
    X, y = data.load(file)
    X, y = X.toarray()[:120], y[:120].astype(int)
    options = {"svr": "-s 3", "one-class": "-s 2 -n 0.2", "linear": "-t 0 --engine exact", "gram": "-t 4"}.get(kind, "")
    form: Any = X
    if kind == "gram":
        form = X @ X.T
        data.save("d.svm", np.c_[np.arange(1, 121), form], y, zero_based=True)
    else:
        data.save("d.svm", X, y)
    machine = {"svc": mm.SVC(gamma="auto"), "svr": mm.SVR(gamma="auto", epsilon=0.1), "linear": mm.SVC(kernel="linear"),
               "one-class": mm.OneClassSVM(gamma="auto", nu=0.2), "gram": mm.SVC(kernel="precomputed")}[kind]  # fmt: skip
    kinds = KFold if kind in ("svr", "one-class") else StratifiedKFold
    predicted = np.empty(120, float if kind == "svr" else int)
    parts = []
    for rest, test in kinds(folds, shuffle=True, random_state=seed).split(X, y):
        fitted = machine.fit(form[np.ix_(rest, rest)] if kind == "gram" else form[rest], y[rest])
        predicted[test] = fitted.predict(form[np.ix_(test, rest)] if kind == "gram" else form[test])
        parts.append((len(test), int((predicted[test] == y[test]).sum()), np.mean((predicted[test] - y[test]) ** 2)))
    done = maxmargin("cv", "--json", *options.split(), *words.split(), "d.svm")
    told = json.loads(done.out)
    assert done.code == 0 and [fold["rows"] for fold in told["folds"]] == [rows for rows, _, _ in parts]
    assert {fold["status"] for fold in told["folds"]} == {"converged"} and told["rows"] == 120
    assert (told["command"], told["machine"], told["engine"]) == ("cv", type(machine).__name__, "exact")
    assert told["data"]["path"] == "d.svm" and told["data"]["rows"] == 120
    if kind == "svr":
        errors = [fold["mean_squared_error"] for fold in told["folds"]]
        assert errors == pytest.approx([error for _, _, error in parts], rel=1e-6)
        assert told["mean_squared_error"] == pytest.approx(np.mean((predicted - y) ** 2), rel=1e-6)
    else:
        assert [fold["correct"] for fold in told["folds"]] == [correct for _, correct, _ in parts]
        assert told["correct"] == sum(correct for _, correct, _ in parts)
    notes = [line.partition(",")[0] for line in done.err.splitlines() if line.startswith("fold ")]
    assert notes == [f"fold {k + 1} of {folds}: converged" for k in range(folds)]


def test_words_are_classes_of_a_cross_validation(maxmargin, folder) -> None:
    X, y = data.load("three.svm")
    data.save("words.csv", X.toarray(), np.array(["ape", "a longer name", "cat"])[y.astype(int)])
    told = json.loads(maxmargin("cv", "--json", "-q", "words.csv").out)
    assert told["correct"] == json.loads(maxmargin("cv", "--json", "-q", "three.svm").out)["correct"]


@pytest.mark.parametrize(("words", "trouble"), [
    ("-v 1", "-v 1: the number of folds must be from 2 to the number of samples, 4"), ("-v 5", "-v 5: the number"),
    ("-v 0", "-v 0"), ("-v -3", "-v -3"), ("-v 4 -s 3", None), ("-v 2", None),
    ("-v 2 --scoring x", "--scoring is for a search"),
    ("-v 2 --search grid", "--search is for a search"), ("-v 2 --model m", "--model is for a search"),
    ("-v 2 -s 2 --label none --data-format csv", "needs labels to compare"),
])  # fmt: skip
def test_folds_that_make_sense(maxmargin, folder, words, trouble) -> None:
    (folder / "d").write_text("1,2,3\n2,1,4\n1,3,1\n2,0,0\n" if "csv" in words else "1 1:2\n2 2:1\n1 1:3\n2 2:4\n")
    done = maxmargin("cv", *words.split(), "d")
    assert done.code == (0 if trouble is None else 2) and (trouble or "Cross") in done.err + done.out
    assert not (folder / "m").exists()


def test_the_worst_fold_is_the_exit_code(maxmargin, folder, monkeypatch) -> None:
    fit, ends = mm.SVC.fit, iter(["converged", "max_iter", "converged"])

    def ended(self: mm.SVC, *given: Any) -> mm.SVC:
        fit(self, *given)
        self.status_ = next(ends)
        return self

    monkeypatch.setattr("maxmargin.SVC.fit", ended)
    done = maxmargin("cv", "-v", 3, "--json", "train.svm")
    assert done.code == 1 and [f["status"] for f in json.loads(done.out)["folds"]] == ["converged", "max_iter", "converged"]


def test_words_of_train_that_are_no_words_of_a_search(maxmargin, folder) -> None:
    """`train -v` has no --scoring or --search, and its MODEL is not asked for."""
    done = maxmargin("train", "-q", "-v", 2, "train.svm", "m")
    assert done.code == 0 and "Cross Validation Accuracy" in done.out and not (folder / "m").exists()


# ---- searches -----------------------------------------------------------------------------------------------------------


SAMPLES = Samples("d", np.eye(4), np.array([0, 1, 0, 1]))
GRID = {"cv": 5, "scoring": None, "extend": False, "refit": False}


@pytest.mark.parametrize(("words", "name", "told"), [
    ("--Cs 3", "SVCCV", {"Cs": 3, "gammas": ["auto"]}), ("--gammas 0.5,2", "SVCCV", {"Cs": [1.0], "gammas": [0.5, 2.0]}),
    ("-c 7 --gammas 4", "SVCCV", {"Cs": [7.0], "gammas": 4}),
    ("-g 0.5 --Cs 1,2", "SVCCV", {"Cs": [1.0, 2.0], "gammas": [0.5]}),
    ("-v 3 --scoring f1 --extend --Cs 2 --model m", "SVCCV", {"cv": 3, "scoring": "f1", "extend": True, "Cs": 2,
                                                              "refit": True, "gammas": ["auto"]}),
    ("--engine dc --Cs 2 --seed 3", "DCSVCCV", {"Cs": 2, "gammas": ["auto"], "random_state": 3}),
    ("-t 0 --Cs 2 -e 0.5", "LinearSVCCV", {"Cs": 2, "tol": 0.5, "loss": "hinge"}),
    ("-s 3 --Cs 2", "SVRCV", {"Cs": 2, "gammas": ["auto"], "epsilons": [0.1]}),
    ("-s 3 -p 0.5 --Cs 2", "SVRCV", {"Cs": 2, "gammas": ["auto"], "epsilons": [0.5]}),
    ("-s 3 -t 0 -p 0.5 --Cs 2", "LinearSVRCV", {"Cs": 2, "epsilons": [0.5]}),
    ("--Cs 2 --search halving", "SVCCV", {"Cs": 2, "gammas": ["auto"], "search": "halving"}),
    ("--Cs 2 --search grid -w1 4", "SVCCV", {"Cs": 2, "gammas": ["auto"], "search": "grid", "class_weight": {1: 4.0}}),
])  # fmt: skip
def test_a_search_has_the_grid_and_the_options_of_its_machine(words, name, told) -> None:
    args = asked(f"cv {words} d")
    engine = engines.chosen(args, SAMPLES)[0]
    assert search.SEARCHES[engine, args.machine] == name
    params = search._built(args, engine, name, SAMPLES, Console(quiet=True)).get_params(deep=False)
    expected = {k: v for k, v in GRID.items() if k in params} | told
    assert {key: params[key] for key in expected} == expected
    single = engines.built(args, engine, SAMPLES, Console(quiet=True)).get_params(deep=False)
    both = (set(single) & set(params)) - set(expected)
    assert len(both) > 3 and {key: params[key] for key in both} == {key: single[key] for key in both}
    if "search" not in told and "search" in params:
        assert params["search"] == getattr(mm, name)().search


class Searched:
    """A search that has ended."""

    cv_results_: ClassVar[dict[str, Any]] = {
        "params": [{"C": 0.5, "gamma": 1e-7}, {"C": 1234567.0, "gamma": 2.0}, {"C": 1.0, "gamma": 3.0}],
        "mean_test_score": np.array([0.5, 0.75, np.nan]), "std_test_score": np.array([0.125, 0.25, np.nan]),
        "status": np.array(["certified", "a long status", "dropped"]), "seconds": np.array([1.23456, 0.5, 0.0]),
        "mean_objective": np.array([1.0, 2.0, np.nan]), "mean_gap": np.array([0.5, 0.25, np.nan]),
    }  # fmt: skip
    best_params_: ClassVar[dict[str, float]] = {"C": 1234567.0, "gamma": 2.0}
    best_score_, n_splits_ = 0.75, 4

    def __init__(self, search_status: str = "converged", status: str = "converged") -> None:
        self.search_status_, self.status_ = search_status, status

    def fit(self, X: Any, y: Any) -> None:
        self.given = X, y

    def chosen(self) -> mm.SVC:
        return mm.SVC(verbose=True).fit(np.eye(2), [0, 1])


def test_the_table_has_a_line_per_setting_and_the_best_last() -> None:
    lines, values = search._table(Searched())
    assert [line.split("  ") for line in lines[:1]] and len({len(line) for line in lines[:4]}) == 1
    assert [line.split() for line in lines] == [
        ["C", "gamma", "mean", "score", "std", "status", "seconds"],
        ["0.5", "1e-07", "0.5", "0.125", "certified", "1.23"],
        ["1.23457e+06", "2", "0.75", "0.25", "a", "long", "status", "0.5"],
        ["1", "3", "nan", "nan", "dropped", "0"],
        ["Best", "C", "=", "1.23457e+06,", "gamma", "=", "2:", "mean", "score", "0.75", "over", "4", "folds"],
    ]  # fmt: skip
    assert lines[0] == "          C  gamma  mean score    std         status  seconds"
    assert (values["best"], values["best_score"], values["folds"]) == (Searched.best_params_, 0.75, 4)
    assert (values["settings"], values["judged"]) == (3, 2)
    assert values["cells"][1] == {"C": 1234567.0, "gamma": 2.0, "mean_test_score": 0.75, "std_test_score": 0.25,
                                  "status": "a long status", "seconds": 0.5, "mean_objective": 2.0,
                                  "mean_gap": 0.25}  # fmt: skip


@pytest.mark.parametrize("model", [None, "m.mxm"])
@pytest.mark.parametrize(("search_status", "status", "code"), [
    ("converged", "converged", (0, 0)), ("max_time", "converged", (1, 1)), ("converged", "max_iter", (0, 1)),
    ("interrupted", "converged", (130, 130)), ("max_time", "interrupted", (1, 130)),
])  # fmt: skip
def test_a_search_ends_as_the_search_and_the_model_it_writes(tmp_path, monkeypatch, capsys, model, search_status, status,
                                                            code) -> None:
    monkeypatch.chdir(tmp_path)
    made = Searched(search_status, status)
    monkeypatch.setattr(search, "_built", lambda *given: made)
    args = asked(f"cv --Cs 2 {'' if model is None else f'--model {model}'} d")
    for as_json in (False, True):
        assert search.run(args, Console(as_json=as_json), SAMPLES) == code[model is not None]
        out, err = capsys.readouterr()
        assert made.given[0] is SAMPLES.X and made.given[1] is SAMPLES.y
        assert err.startswith("engine exact (SVCCV): 4 rows")
        if as_json:
            told = json.loads(out)
            assert (told["command"], told["machine"], told["model"]) == ("cv", "SVCCV", model)
            assert (told["engine"], told["search_status"], told["data"]["rows"]) == ("exact", search_status, 4)
            assert told["settings"] == 3 and told["reason"].startswith("4 rows")
        else:
            assert out.splitlines()[-1] == (f"model: {model}" if model else search._table(made)[0][-1])
            assert out.splitlines()[:4] == search._table(made)[0][:4]
    assert (tmp_path / "m.mxm").exists() == (model is not None)
    if model:
        assert mm.load(model).verbose is False


@pytest.mark.parametrize(("model", "able"), [("m", True), ("folder/m", True), ("nowhere/m", False)])
def test_where_a_search_cannot_write_is_found_out_before_it(tmp_path, monkeypatch, model, able) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(search, "_built", lambda *given: Searched())
    if able:
        assert search.run(asked(f"cv --Cs 2 --model {model} d"), Console(quiet=True), SAMPLES) == 0
        return
    with pytest.raises(ValueError, match="its folder is not there"):
        search.run(asked(f"cv --Cs 2 --model {model} d"), Console(quiet=True), SAMPLES)


@pytest.mark.parametrize("words", ["-s 1", "-s 2", "-s 4", "--engine dc -s 3", "--engine budget"])
def test_machines_without_a_search(words) -> None:
    with pytest.raises(ValueError, match=r"there is no search for .* only for --engine exact svc, --engine exact svr, "):
        search.run(asked(f"cv --Cs 2 {words} d"), Console(quiet=True), SAMPLES)


# ---- train ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "path"), [("a/b.svm", "b.svm.model"), ("d m", "m"), ("a/d sub/m", "sub/m"), ("- m", "m"),
                                             ("-", None), ("d sub", None), ("d nowhere/m", None)])  # fmt: skip
def test_where_a_model_goes(tmp_path, monkeypatch, words, path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    if path is not None:
        assert train.target(asked(f"train {words}")) == Path(path)
        return
    with pytest.raises(ValueError, match="MODEL must be named" if words == "-" else "the model cannot be written to"):
        train.target(asked(f"train {words}"))


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, how: (Path(path), how) != (tmp_path, os.W_OK))
    with pytest.raises(ValueError, match=r"--report cannot be written to .*page.html"):
        train._check_target(tmp_path / "page.html", "--report")
    monkeypatch.undo()
    train._check_target(tmp_path / "page.html", "--report")


@pytest.mark.parametrize(("words", "trouble"), [
    ("", None), ("--checkpoint a", None), ("--checkpoint a --checkpoint-every 7", None),
    ("--checkpoint-every 7", "give both"),
])  # fmt: skip
def test_checkpoints_are_those_that_were_asked_for(words, trouble) -> None:
    for machine, args in ((mm.SVC(), asked(f"train {words} d")), (mm.LinearSVC(), asked(f"train {words} d"))):
        before = machine.get_params(deep=False)
        if trouble:
            with pytest.raises(ValueError, match=trouble):
                train.set_checkpoint(args, machine, "exact")
            continue
        train.set_checkpoint(args, machine, "exact")
        told = {"checkpoint": args.checkpoint, "checkpoint_every": args.checkpoint_every}
        told = {name: value for name, value in told.items() if value is not None}
        assert machine.get_params(deep=False) == before | told
    if "--checkpoint a" in words:
        with pytest.raises(ValueError, match="no meaning for BudgetSVC"):
            train.set_checkpoint(args, mm.BudgetSVC(), "budget")
    elif not words:
        train.set_checkpoint(args, mm.BudgetSVC(), "budget")


@pytest.mark.parametrize(("status", "stays"), [("converged", False), ("completed", False), ("max_time", True),
                                               ("interrupted", True)])  # fmt: skip
@pytest.mark.parametrize("there", [False, True])
def test_the_checkpoint_of_a_fit_that_is_done_goes(tmp_path, monkeypatch, status, stays, there) -> None:
    monkeypatch.chdir(tmp_path)
    for words in ("", "--checkpoint a"):
        Path("a").unlink(missing_ok=True)
        machine = mm.SVC(verbose=True).fit(np.eye(2), [0, 1]).set_params(checkpoint="a" if words else None)
        machine.status_ = status
        if there:
            Path("a").write_text("state")
        train.store(asked(f"train {words} d"), machine, Path("m"))
        assert Path("a").exists() == (there and (stays or not words))
        model = mm.load("m")
        assert (model.verbose, model.checkpoint, model.status_) == (False, None, status)


@pytest.mark.parametrize(("format", "machine", "y", "trouble"), [
    ("maxmargin", mm.SVC(kernel="laplacian"), ["a"], None), ("libsvm", mm.SVC(kernel="laplacian"), [1], "laplacian"),
    ("libsvm", mm.SVC(), [1], None), ("libsvm", mm.SVC(), ["a"], "whole numbers only"),
    ("libsvm", mm.SVC(), [0.5], "whole numbers only"), ("libsvm", mm.SVR(), [0.5], None), ("libsvm", mm.SVC(), None, None),
    ("libsvm", mm.OneClassSVM(), None, None), ("liblinear", mm.LinearSVC(), [1], None),
    ("liblinear", mm.LinearSVC(), ["a"], "liblinear's format knows classes"), ("liblinear", mm.LinearSVR(), [0.5], None),
    ("maxmargin", mm.LinearSVC(), ["a"], None),
])  # fmt: skip
def test_what_a_format_cannot_hold_is_found_out_before_the_work(format, machine, y, trouble) -> None:
    found = Samples("d", np.eye(1), None if y is None else np.array(y))
    if trouble is None:
        train._check_format(machine, format, found)
        return
    with pytest.raises(ValueError, match=trouble):
        train._check_format(machine, format, found)


@pytest.mark.parametrize(("rows", "status", "certify"), [(2000, "converged", True), (2001, "converged", False),
                                                         (5, "max_time", True), (5, "unknown", False)])  # fmt: skip
def test_a_report_is_judged_once_more_where_that_takes_seconds(monkeypatch, rows, status, certify) -> None:
    told: dict[str, Any] = {}
    monkeypatch.setattr(mm, "report", lambda *given, **more: told.update(more, given=given))
    machine, found = SimpleNamespace(status_=status), Samples("a/d.svm", np.zeros((rows, 3)), np.zeros(rows))
    train.page(SimpleNamespace(report="r", line=["train", "a b", "c"]), machine, found)
    assert told.pop("given") == (machine, found.X, found.y)
    assert told == {"path": "r", "title": "SimpleNamespace on d.svm", "certify": certify,
                    "command": "maxmargin train 'a b' c"}  # fmt: skip


def test_json_of_a_fit(maxmargin, folder) -> None:
    done = maxmargin("train", "--json", "--report", "r.html", "train.svm", "m")
    told, model = json.loads(done.out), mm.load("m")
    expected = {"command": "train", "model": "m", "machine": "SVC", "status": "converged", "objective": model.objective_,
                "format": "maxmargin", "violation": model.kkt_violation_, "engine": "exact",
                "version": mm.__version__}  # fmt: skip
    assert {key: told[key] for key in expected} == expected and told["turns"] == int(np.sum(model.n_iter_))
    assert told["data"] == {"path": "train.svm", "rows": 250, "features": 4, "stored": data.load("train.svm")[0].nnz}
    assert told["reason"] in done.err and math.isfinite(told["seconds"]) and (folder / "r.html").exists()
    lines = maxmargin("train", "train.svm", "m").out.splitlines()
    assert lines[0].startswith("SVC: converged, ") and lines[-1] == "model: m" and len(lines) == 4


def test_nothing_is_done_where_the_report_cannot_go(maxmargin, folder, monkeypatch) -> None:
    monkeypatch.setattr(cv, "read", lambda *given: pytest.fail("read"))
    for path in ("nowhere/r.html", "."):
        done = maxmargin("train", "--report", path, "train.svm", "m")
        assert done.code == 2 and "--report cannot be written" in done.err
