"""`predict`, `scale`, `info`, `convert`: files in, files out, and what is said of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import data


@pytest.fixture
def model(maxmargin):
    """train.svm.model, by three-class data if asked."""
    assert maxmargin("train", "-q", "train.svm", "m.mxm").code == 0
    return mm.load("m.mxm")


# ---- predict ----------------------------------------------------------------------------------------------------


def test_predictions_and_their_score(maxmargin, model) -> None:
    X, y = data.load("test.svm", n_features=4)
    done = maxmargin("predict", "test.svm", "m.mxm", "out")
    correct = int((model.predict(X) == y).sum())
    assert (done.code, done.err) == (0, "")
    assert done.out == f"Accuracy = {100 * correct / 150:g}% ({correct}/150) (classification)\n"
    assert [int(word) for word in Path("out").read_text().split()] == model.predict(X).tolist()
    told = json.loads(maxmargin("predict", "--json", "test.svm", "m.mxm").out)
    assert told["correct"] == correct and told["accuracy"] == correct / 150


def test_chunks_do_not_matter(maxmargin, model, monkeypatch) -> None:
    whole = maxmargin("predict", "--decision-values", "test.svm", "m.mxm", "-").out
    monkeypatch.setattr("maxmargin.cli.samples.ROWS", 7)
    assert maxmargin("predict", "--decision-values", "test.svm", "m.mxm", "-").out == whole
    X, _ = data.load("test.svm", n_features=4)
    table = np.array([line.split("\t") for line in whole.splitlines()], float)
    assert (table[:, 0] == model.predict(X)).all() and (table[:, 1] == model.decision_function(X)).all()


@pytest.mark.parametrize("name", ["train.svm", "three.svm"])
def test_probabilities(maxmargin, folder, name) -> None:
    assert maxmargin("train", "-b", 1, "-q", name, "m.mxm").err == ""
    model = mm.load("m.mxm")
    done = maxmargin("predict", "-b", 1, name, "m.mxm", "out")
    head, *lines = Path("out").read_text().splitlines()
    table = np.array([line.split() for line in lines], float)
    assert done.code == 0 and head == f"labels {' '.join(map(str, model.classes_))}"
    assert np.array_equal(table[:, 1:], model.predict_proba(data.load(name, n_features=4)[0]))
    assert np.array_equal(table[:, 0], model.classes_[table[:, 1:].argmax(axis=1)])
    assert maxmargin("train", "-q", name, "m.mxm").code == 0
    refused = maxmargin("predict", "-b", 1, name, "m.mxm")
    assert refused.code == 2 and "trained without probabilities" in refused.err


def test_stdout_has_predictions_alone_if_asked_for_them(maxmargin, model) -> None:
    done = maxmargin("predict", "test.svm", "m.mxm", "-")
    assert set(done.out.split()) == {"1", "-1"} and "Accuracy" in done.err


def test_numbers(maxmargin, folder) -> None:
    assert maxmargin("train", "-s", 3, "-c", 10, "--label", "price", "prices.csv", "m").code == 0
    X, y = data.load("prices.csv", label="price")
    predicted = mm.load("m").predict(X)
    done = maxmargin("predict", "--label", "price", "prices.csv", "m", "out")
    error, squared = re.fullmatch(
        r"Mean squared error = (\S+) \(regression\)\nSquared correlation coefficient = (\S+) \(regression\)\n", done.out
    ).groups()
    assert float(error) == pytest.approx(np.mean((y - predicted) ** 2), rel=1e-5)
    assert float(squared) == pytest.approx(np.corrcoef(y, predicted)[0, 1] ** 2, rel=1e-5)
    assert np.array_equal(np.loadtxt("out"), predicted)  # to the last bit
    refused = maxmargin("predict", "--decision-values", "--label", "price", "prices.csv", "m")
    assert refused.code == 2 and "has no decision values" in refused.err


def test_data_with_fewer_and_with_more_features_than_the_model(maxmargin, model, folder) -> None:
    (folder / "few.svm").write_text("1 1:2\n-1 2:-3\n")
    assert maxmargin("predict", "few.svm", "m.mxm").code == 0
    (folder / "many.svm").write_text("1 1:2 9:5\n-1 2:-3\n")
    done = maxmargin("predict", "many.svm", "m.mxm", "-")
    assert done.code == 0 and "features above 4, which the model was trained on, are left out" in done.err
    assert done.out == maxmargin("predict", "few.svm", "m.mxm", "-").out
    data.save("many.csv", np.ones((3, 6)), [1, 1, -1])
    refused = maxmargin("predict", "many.csv", "m.mxm", "out")
    assert refused.code == 2 and "6 features" in refused.err and not (folder / "out").exists()


def test_tables_without_labels_and_with_words(maxmargin, folder) -> None:
    X, y = data.load("train.svm")
    data.save("words.csv", X.toarray(), np.where(y > 0, "cat", "dog"))
    assert maxmargin("train", "-wcat", 2, "words.csv", "m.mxm").code == 0
    assert mm.load("m.mxm").class_weight == {"cat": 2.0}
    assert "Accuracy" in maxmargin("predict", "words.csv", "m.mxm").out
    data.save("bare.csv", X.toarray(), None)
    done = maxmargin("predict", "--label", "none", "bare.csv", "m.mxm", "out")
    assert done.code == 0 and "no labels" in done.out and set(Path("out").read_text().split()) == {"cat", "dog"}
    assert maxmargin("predict", "train.svm", "m.mxm").code == 2  # labels of two kinds
    refused = maxmargin("train", "--format", "libsvm", "words.csv", "m")
    assert refused.code == 2 and "whole numbers only" in refused.err


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x89MXM\r\n\x1a\n" + bytes(100), b"svm_type c_svc\n"])
def test_a_file_that_is_no_model(maxmargin, folder, content) -> None:
    (folder / "bad").write_bytes(content)
    for words in (["predict", "test.svm", "bad", "out"], ["info", "bad"]):
        done = maxmargin(*words)
        assert (done.code, done.out) == (2, "") and "bad" in done.err and "Traceback" not in done.err
    assert not (folder / "out").exists()


# ---- scale ------------------------------------------------------------------------------------------------------


def reference(X, low, high, lower, upper):
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(high > low, lower + (upper - lower) * (X - low) / (high - low), 0)


@pytest.mark.parametrize(("lower", "upper"), [(-1, 1), (0, 1), (0.25, 3)])
@pytest.mark.parametrize("cells", [1, 1 << 22])
def test_scaling(maxmargin, folder, monkeypatch, lower, upper, cells) -> None:
    monkeypatch.setattr("maxmargin.cli.scale.CELLS", cells)
    X, _ = data.load("train.svm")
    X = sp.csr_matrix(np.c_[np.abs(X.toarray()), np.full(250, 3.0)])  # ≥ 0, with zeros; the last is constant
    data.save("some.svm", X, np.ones(250))
    assert maxmargin("scale", "-l", lower, "-u", upper, "-s", "ranges", "some.svm", "out.svm").code == 0
    A, low, high = X.toarray(), X.toarray().min(axis=0), X.toarray().max(axis=0)
    scaled = data.load("out.svm", n_features=5)[0].toarray()
    np.testing.assert_allclose(scaled, reference(A, low, high, lower, upper), atol=1e-15)
    T, _ = data.load("test.svm", n_features=5)
    assert maxmargin("scale", "-r", "ranges", "test.svm", "test.out").code == 0
    np.testing.assert_allclose(
        data.load("test.out", n_features=5)[0].toarray(), reference(T.toarray(), low, high, lower, upper), atol=1e-14
    )


def test_scaling_to_stdout_and_of_labels(maxmargin, folder) -> None:
    done = maxmargin("scale", "-y", 0, 10, "-s", "ranges", "train.svm")
    assert done.code == 0 and {line.split()[0] for line in done.out.splitlines()} == {"0", "10"}
    again = maxmargin("scale", "-r", "ranges", "train.svm")
    assert again.out == done.out


@pytest.mark.parametrize("text", ["", "x\n", "y\n1 2\n", "x\n-1 1\n1 0\n", "x\n-1 1\n0 1 2\n", "x\n-1 1\n1 0 inf\n"])
def test_ranges_that_are_none(maxmargin, folder, text) -> None:
    (folder / "ranges").write_text(text)
    done = maxmargin("scale", "-r", "ranges", "train.svm", "out")
    assert done.code == 2 and "no file of ranges" in done.err and not (folder / "out").exists()


def test_features_without_a_range_are_left_out(maxmargin, folder) -> None:
    (folder / "ranges").write_text("x\n0 1\n1 0 2\n")
    (folder / "data.svm").write_text("1 1:1 3:7\n")
    done = maxmargin("scale", "-r", "ranges", "data.svm")
    assert (done.out, done.code) == ("1 1:0.5\n", 0) and "1 features, such as 3" in done.err


@pytest.mark.parametrize("words", ["-l 1 -u 0 train.svm", "-s a -r b train.svm", "-r nowhere train.svm", "-y 2 1 train.svm"])
def test_scaling_that_makes_no_sense(maxmargin, words) -> None:
    assert maxmargin("scale", *words.split(), "out").code == 2


# ---- info, convert ----------------------------------------------------------------------------------------------


def test_info(maxmargin, model) -> None:
    told = json.loads(maxmargin("info", "--json", "m.mxm").out)
    assert (told["format"], told["machine"], told["features"], told["classes"]) == ("maxmargin", "SVC", 4, [-1, 1])
    assert told["gap"] == model.dual_gap_ and told["parameters"]["gamma"] == "auto"
    shown = maxmargin("info", "m.mxm").out
    assert "parameters: gamma=auto\n" in shown and "classes: -1 1\n" in shown


@pytest.mark.parametrize(("words", "format"), [
    ("out --to libsvm", "libsvm"), ("out.mxm", "maxmargin"), ("out.onnx", ""), ("out --to maxmargin", "maxmargin"),
])  # fmt: skip
def test_models_convert(maxmargin, model, folder, words, format) -> None:
    assert maxmargin("convert", "m.mxm", *words.split()).code == 0
    path = words.split()[0]
    if format:
        assert json.loads(maxmargin("info", "--json", path).out)["format"] == format
        X, _ = data.load("test.svm", n_features=4)
        np.testing.assert_allclose(mm.load(path).decision_function(X), model.decision_function(X), rtol=1e-12)
    else:
        import onnx

        onnx.checker.check_model(path)


def test_linear_models_convert_to_liblinear(maxmargin, folder) -> None:
    assert maxmargin("train", "-t", 0, "train.svm", "m").code == 0
    assert maxmargin("convert", "m", "theirs", "--to", "liblinear").code == 0
    assert json.loads(maxmargin("info", "--json", "theirs").out)["format"] == "liblinear"
    assert maxmargin("predict", "test.svm", "theirs").out == maxmargin("predict", "test.svm", "m").out
    assert maxmargin("convert", "m", "theirs", "--to", "libsvm").code == 2


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.npy", "a.svm.gz", "a.parquet"])
def test_samples_convert_and_come_back(maxmargin, folder, name) -> None:
    assert maxmargin("convert", "train.svm", name).code == 0
    assert maxmargin("convert", name, "back.svm").code == 0
    assert Path("back.svm").read_text() == Path("train.svm").read_text()


def test_conversions_that_make_no_sense(maxmargin, model) -> None:
    assert "is a model: say --to" in maxmargin("convert", "m.mxm", "out").err
    assert maxmargin("convert", "m.mxm", "out", "--to", "csv").code == 2
    assert maxmargin("convert", "train.svm", "out", "--to", "onnx").code == 2
