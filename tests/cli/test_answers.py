"""`predict`, `info`, `convert` and what a fit says of itself, by their definitions."""

from __future__ import annotations

import io
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import data
from maxmargin.cli import predict, samples, train
from maxmargin.cli.console import Console
from maxmargin.cli.info import format_of

ROWS = [[0.0, 1, 0], [2, 0, 0], [0, 3, 1], [1, 1, 1], [5, 0, 2]]


# ---- columns ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expected", [1, 2, 3, 4, 7])
def test_text_gets_as_many_columns_as_the_model_has(expected, capsys) -> None:
    X = np.array(ROWS)
    told = predict.fitting(sp.csr_matrix(X), expected, True, Console())
    assert told.shape == (5, expected) and told.format == "csr"
    assert (told.toarray() == np.pad(X, [(0, 0), (0, 4)])[:, :expected]).all()
    warned = f"warning: features above {expected}, which the model was trained on, are left out\n" if expected < 3 else ""
    assert capsys.readouterr().err == warned
    predict.fitting(sp.csr_matrix(X), expected, True, None)
    predict.fitting(sp.csr_matrix(X * [1, 0, 0]), expected, True, Console())  # nothing that is left out has a value
    assert capsys.readouterr().err == ""
    table = predict.fitting(X, expected, False, Console())
    assert table is X


def test_features_that_are_left_out_are_told_once_for_the_first_rows_that_have_them(maxmargin, folder, monkeypatch) -> None:
    monkeypatch.setattr(samples, "ROWS", 2)
    assert maxmargin("train", "-q", "train.svm", "m").code == 0
    for rows in ("1 1:2 9:5\n-1 2:-3\n1 9:2\n-1 2:1 8:3\n1 1:1\n", "1 1:2\n-1 2:-3\n1 1:2\n-1 2:1\n1 9:1\n"):
        (folder / "many").write_text(rows)
        done = maxmargin("predict", "many", "m")
        assert done.code == 0 and done.err.count("features above 4") == 1 and "/5) (classification)" in done.out


# ---- lines ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("predicted", "values", "between", "lines"), [
    (np.array([1, -1]), None, " ", ["1\n", "-1\n"]), (np.array([0.1, 2.0]), None, " ", ["0.10000000000000001\n", "2\n"]),
    (np.array(["a", "b"]), None, " ", ["a\n", "b\n"]), (np.array([1, 2]), np.array([0.5, 0.1]), "\t",
                                                       ["1\t0.5\n", "2\t0.10000000000000001\n"]),
    (np.array([1, 2]), np.array([[0.5, 1], [2, 3]]), " ", ["1 0.5 1\n", "2 2 3\n"]),
    (np.array([7]), np.array([[1.0, 2, 3]]), "\t", ["7\t1\t2\t3\n"]),
])  # fmt: skip
def test_a_line_per_prediction(predicted, values, between, lines) -> None:
    assert list(predict._lines(predicted, values, between)) == lines


class Machine:
    """Predicts the sign of the first feature, with probabilities of its size."""

    classes_ = np.array(["no", "yes"])
    n_features_in_ = 2

    def predict(self, X: Any) -> Any:
        return self.classes_[(X[:, 0] > 0).astype(int)]

    def decision_function(self, X: Any) -> Any:
        return X[:, 0]

    def predict_proba(self, X: Any) -> Any:
        return np.c_[1 - X[:, 1], X[:, 1]]


@pytest.mark.parametrize(("asked", "text"), [
    ({}, "yes\nno\n"), ({"decision_values": True}, "yes\t3\nno\t-2\n"),
    ({"probabilities": 1}, "no 0.75 0.25\nyes 0.25 0.75\n"),
])  # fmt: skip
def test_predictions_and_what_is_written_of_them(asked, text) -> None:
    args = SimpleNamespace(**{"decision_values": False, "probabilities": 0} | asked)
    predicted, told = predict.answered(args, Machine(), np.array([[3.0, 0.25], [-2.0, 0.75]]))
    assert told.decode() == text and [line.split()[0] for line in text.splitlines()] == predicted.tolist()


@pytest.mark.parametrize(("probabilities", "head"), [(0, b""), (1, b"labels no yes\n")])
def test_where_predictions_go(tmp_path, monkeypatch, probabilities, head) -> None:
    args = SimpleNamespace(output=None, probabilities=probabilities)
    with predict.opened(args, Machine()) as out:
        assert out is None
    args.output = str(tmp_path / "out")
    with predict.opened(args, Machine()) as out:
        out.write(b"x\n")
    assert (tmp_path / "out").read_bytes() == head + b"x\n"
    args.output = "-"
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stdout)
    with predict.opened(args, Machine()) as out:
        out.write(b"x\n")
    assert not stdout.closed and stdout.buffer.getvalue() == head + b"x\n"  # type: ignore[attr-defined]
    assert not Path("-").exists()


@pytest.mark.parametrize(("kind", "asked", "trouble"), [
    ("svc", {"decision_values": True, "probabilities": 1}, "one of them at a time"), ("svr", {"decision_values": True},
                                                                                      "SVR has no decision values"),
    ("svr", {"probabilities": 1}, "trained without probabilities"), ("svc", {"probabilities": 1}, "trained without"),
    ("svc", {"decision_values": True}, ""), ("svc", {}, ""), ("svr", {}, ""), ("svc", {"jobs": 3}, ""),
    ("likely", {"probabilities": 1}, ""), ("likely", {"decision_values": True}, ""),
])  # fmt: skip
def test_what_a_model_cannot_do_is_told_before_the_work(kind, asked, trouble) -> None:
    args = SimpleNamespace(**{"decision_values": False, "probabilities": 0, "jobs": None, "model": "m"} | asked)
    model = {"svc": mm.SVC(n_jobs=2), "svr": mm.SVR(n_jobs=2), "likely": mm.SVC(probability=True, n_jobs=2)}[kind]
    if kind == "likely":
        model._probA = np.zeros(1)
    if trouble:
        with pytest.raises(ValueError, match=trouble):
            predict.prepare(args, model)
        return
    predict.prepare(args, model)
    assert model.n_jobs == (3 if "jobs" in asked else 2)


def test_json_of_predictions(maxmargin, folder) -> None:
    assert maxmargin("train", "-q", "train.svm", "m").code == 0
    told = json.loads(maxmargin("predict", "--json", "test.svm", "m", "out").out)
    assert {k: told[k] for k in ("command", "machine", "model", "data", "output", "rows")} == {
        "command": "predict", "machine": "SVC", "model": "m", "data": "test.svm", "output": "out", "rows": 150}  # fmt: skip
    assert len(Path("out").read_text().splitlines()) == 150
    X, _ = data.load("test.svm", n_features=4)
    data.save("bare.csv", X.toarray(), None)
    done = maxmargin("predict", "--label", "none", "bare.csv", "m")
    assert (done.code, done.out) == (0, "150 predictions, and no labels to compare with\n")


@pytest.mark.parametrize("format", ["maxmargin", "libsvm"])
def test_text_on_standard_input_is_predicted_like_a_file(maxmargin, folder, monkeypatch, format) -> None:
    assert maxmargin("train", "-q", "--format", format, "train.svm", "m").code == 0
    for text in ("1 1:2 2:1\n-1 2:-3\n1 4:1\n", "1 1:2 9:5\n-1 1:1\n", "1 1:2\n", ""):
        (folder / "d").write_text(text)
        told = maxmargin("predict", "--decision-values", "d", "m", "-")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        done = maxmargin("predict", "--decision-values", "-", "m", "-")
        assert done.code == told.code == (0 if text else 2)
        assert text or ("has no samples" in done.err and "has no samples" in told.err)
        if "9:" in text and format == "libsvm":  # nobody can know before it is read
            assert "features above 4" in done.err and not told.err.count("features above 4")
        else:
            assert done.out == told.out and done.err == told.err.replace("error: d has", "error: - has")


@pytest.mark.parametrize("format", ["maxmargin", "libsvm"])
@pytest.mark.parametrize("rows", [2, 20_000])
def test_kernel_values_with_training_samples_are_predicted_by_file_and_by_standard_input(
    maxmargin, folder, monkeypatch, format, rows
) -> None:
    """LIBSVM text of kernel values: column 0 is the row's number, and is no feature."""
    monkeypatch.setattr(samples, "ROWS", rows)
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(20, 2)), rng.normal(size=(5, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    for name, A, labels in (("train.gram", X, y), ("test.gram", T, np.ones(5))):
        data.save(folder / name, np.c_[np.arange(1, len(A) + 1), A @ X.T], labels, format="libsvm", zero_based=True)
    assert maxmargin("train", "-q", "-t", 4, "--format", format, "train.gram", "m").code == 0
    expected = mm.SVC(kernel="precomputed").fit(X @ X.T, y).predict(T @ X.T)
    done = maxmargin("predict", "test.gram", "m", "-")
    assert done.code == 0 and [int(word) for word in done.out.split()] == expected.tolist()
    assert f"({int((expected == 1).sum())}/5)" in done.err and "left out" not in done.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "test.gram").read_bytes())))
    assert maxmargin("predict", "-", "m", "-").out == done.out


def test_a_model_of_another_program_gets_the_features_of_the_data(maxmargin, folder) -> None:
    (folder / "d").write_text("1 1:1 2:1\n-1 1:-1\n1 1:2 2:3\n-1 2:-1\n")
    (folder / "wide").write_text("1 1:1 5:2\n-1 1:-1 3:4\n")
    (folder / "narrow").write_text("1 1:1\n-1 1:-1\n")
    for words in (["-g", 0.5], ["-t", 0]):
        assert maxmargin("train", "-q", "--format", "libsvm", *words, "d", "m").code == 0
        model = mm.load("m")
        for name, features in (("d", 2), ("narrow", 2), ("wide", 5)):
            told = predict._model(SimpleNamespace(model="m", data=name, data_format=None))
            assert told.n_features_in_ == features
            done = maxmargin("predict", "--decision-values", name, "m", "-")
            X = data.load(name, n_features=features)[0]
            values = [float(line.split("\t")[1]) for line in done.out.splitlines()]
            np.testing.assert_allclose(values, mm.load("m", n_features=features).decision_function(X), rtol=1e-12)
            assert done.err.count("left out") == 0
        assert predict._model(SimpleNamespace(model="m", data="-", data_format=None)).n_features_in_ == model.n_features_in_
    assert maxmargin("train", "-q", "d", "ours").code == 0
    assert predict._model(SimpleNamespace(model="ours", data="wide", data_format=None)).n_features_in_ == 2


# ---- info, convert ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content", "format"), [
    (b"\x89MXM...", "maxmargin"), (b"svm_type c_svc", "libsvm"), (b"solver_type L2R", "liblinear"), (b"svm_typec", ""),
    (b" svm_type c", ""), (b"", ""), (b"1 1:2", ""), (b"\x89MX", ""),
])  # fmt: skip
def test_the_format_of_a_model_is_in_its_first_bytes(tmp_path, content, format) -> None:
    (tmp_path / "m").write_bytes(content)
    assert format_of(str(tmp_path / "m")) == format


def test_info_of_machines_with_and_without_classes(maxmargin, folder) -> None:
    X, y = data.load("train.svm")
    for model, classes, changed in (
        (mm.SVC(), [-1, 1], "defaults"), (mm.SVR(C=2.0, epsilon=0.5), None, "C=2.0, epsilon=0.5"),
        (mm.OneClassSVM(nu=0.25), None, "nu=0.25"), (mm.LinearSVC(C=0.5), [-1, 1], "C=0.5"),
    ):  # fmt: skip
        mm.save(model.fit(X, y.astype(int)), "m")
        shown = maxmargin("info", "m").out.splitlines()
        assert shown[0] == "m: maxmargin format" and shown[1].startswith(f"{type(model).__name__}: converged")
        assert "features: 4" in shown and shown[-1] == f"parameters: {changed}"
        assert [line for line in shown if line.startswith("classes")] == (["classes: -1 1"] if classes else [])
        told = json.loads(maxmargin("info", "--json", "m").out)
        assert (told["command"], told["model"], told["features"], told["classes"]) == ("info", "m", 4, classes)
        assert told["parameters"].keys() == model.get_params(deep=False).keys() - {"callback"}


@pytest.mark.parametrize(("name", "words", "sparse"), [
    ("a.npz", [], True), ("a", [], True), ("a.csv", [], False), ("a.npy", [], False), ("a.x", ["--to", "npz"], True),
    ("a.y", ["--to", "csv"], False),
])  # fmt: skip
def test_samples_stay_sparse_where_the_format_can(maxmargin, folder, monkeypatch, name, words, sparse) -> None:
    saved: list[tuple[bool, str]] = []
    save = data.save
    monkeypatch.setattr("maxmargin.data.save", lambda path, X, y, format: saved.append((sp.issparse(X), format))
                        or save(path, X, y, format=format))  # fmt: skip
    done = maxmargin("convert", "train.svm", name, *words)
    format = words[-1] if words else {"a": "libsvm"}.get(name, name[2:])
    assert done.code == 0 and saved == [(sparse, format)]
    assert done.err == f"250 rows × 4 features → {format}\n"
    dense = maxmargin("convert", "prices.csv", "p.npz", "--label", "price")
    assert dense.code == 0 and saved[-1] == (False, "npz")


def test_samples_from_standard_input_are_never_a_model(maxmargin, folder, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 1:2\n-1 2:3\n")))
    assert maxmargin("convert", "-", "out.csv").code == 0
    X, y = data.load("out.csv")
    assert X.tolist() == [[2, 0], [0, 3]] and y.tolist() == [1, -1]


@pytest.mark.parametrize(("words", "to"), [("o.mxm", "maxmargin"), ("o.onnx", "onnx"), ("o.mxm --to libsvm", "libsvm"),
                                           ("o --to maxmargin", "maxmargin")])  # fmt: skip
def test_a_model_goes_by_what_was_said_and_else_by_the_name(maxmargin, folder, words, to) -> None:
    assert maxmargin("train", "-q", "train.svm", "m").code == 0
    done = maxmargin("convert", "m", *words.split())
    assert done.code == 0 and done.err.splitlines()[-1] == f"SVC: maxmargin → {to}"
    assert format_of(words.split()[0]) == ("" if to == "onnx" else to)


# ---- what a fit says of itself ------------------------------------------------------------------------------------


class Fitted:
    """What is asked of a fitted machine."""

    def __init__(self, **more: Any) -> None:
        usual = {"status_": "converged", "objective_": 2.0, "dual_gap_": 0.5, "timings_": {"total": 1.25, "solve": 1.0}}
        self.__dict__.update(usual | more)

    def get_params(self, deep: bool) -> dict[str, Any]:
        assert not deep
        return {"C": 1.0, "callback": print}


@pytest.mark.parametrize(("more", "lines"), [
    ({}, ["Fitted: converged, 1.25 s", "objective 2, at most 0.5 above the optimum, 0.25 of it"]),
    ({"status_": "completed", "dual_gap_": math.nan}, ["Fitted: all passes made, 1.25 s",
                                                       "objective 2, without a bound on the optimum"]),
    ({"status_": "early", "dual_gap_": math.nan, "objective_": math.nan},
     ["Fitted: stopped at a level, as asked, 1.25 s"]),
    ({"status_": "max_iter", "timings_": {}}, ["Fitted: NOT CONVERGED (max_iter)",
                                               "objective 2, at most 0.5 above the optimum, 0.25 of it"]),
    ({"status_": "unknown", "dual_gap_": math.inf, "timings_": {}, "support_vectors_": np.zeros((7, 2))},
     ["Fitted: of another program, how it ended is not known", "objective 2, without a bound on the optimum",
      "Total nSV = 7"]),
    ({"support_vectors_": np.zeros((7, 2)), "support_": np.arange(5)},
     ["Fitted: converged, 1.25 s", "objective 2, at most 0.5 above the optimum, 0.25 of it", "Total nSV = 5"]),
])  # fmt: skip
def test_a_fit_in_words(more, lines) -> None:
    assert train.lines(Fitted(**more)) == lines


def test_a_fit_in_values() -> None:
    told = train.outcome(Fitted())
    assert math.isnan(told.pop("violation"))
    assert told == {"machine": "Fitted", "status": "converged", "objective": 2.0, "gap": 0.5, "relative_gap": 0.25,
                    "support_vectors": None, "turns": None, "seconds": 1.25, "timings": {"total": 1.25, "solve": 1.0},
                    "parameters": {"C": 1.0}, "version": mm.__version__}  # fmt: skip
    more = {"support_vectors_": np.zeros((7, 2)), "support_": np.arange(5), "n_iter_": np.array([2, 3]), "timings_": {},
            "kkt_violation_": 0.125}  # fmt: skip
    told = train.outcome(Fitted(**more))
    assert (told["support_vectors"], told["turns"], told["violation"]) == (5, 5, 0.125) and math.isnan(told["seconds"])
    assert train.outcome(Fitted(support_vectors_=np.zeros((7, 2)), n_iter_=4))["support_vectors"] == 7
    assert train.outcome(Fitted(n_iter_=4))["turns"] == 4
