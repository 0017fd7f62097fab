"""Side by side with LIBSVM's and LIBLINEAR's own programs (Debian's libsvm-tools and liblinear-tools), where installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from maxmargin import data

needs_libsvm = pytest.mark.skipif(not shutil.which("svm-train"), reason="LIBSVM's programs are not installed (libsvm-tools)")
needs_liblinear = pytest.mark.skipif(
    not shutil.which("liblinear-train"), reason="LIBLINEAR's programs are not installed (liblinear-tools)"
)


def theirs(*words: object) -> str:
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, timeout=60).stdout


SETTINGS = [
    "-s 0 -c 10", "-s 0 -t 0 -c 2", "-s 0 -t 1 -d 2 -r 1 -g 0.5", "-s 0 -w1 3 -w-1 0.5", "-s 1 -n 0.3", "-s 2 -n 0.2",
    "-s 3 -p 0.05", "-s 4 -n 0.4 -c 2", "-s 0 -h 0 -m 10",
]  # fmt: skip


@needs_libsvm
@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("name", ["train.svm", "three.svm"])
def test_a_script_of_libsvm_with_the_names_changed(maxmargin, folder, options, name) -> None:
    """The same lines of results; their model and ours predict alike, whichever of the two programs asks them."""
    theirs("svm-train", "-q", "-e", 1e-5, *options.split(), name, "their.model")
    assert maxmargin("svm-train", "-q", "-e", 1e-5, *options.split(), name, "our.model").code == 0
    said = theirs("svm-predict", "test.svm", "their.model", "their.out")
    answers = {"their.out": np.loadtxt("their.out")}
    for k, (program, model) in enumerate([("theirs", "our.model"), ("ours", "our.model"), ("ours", "their.model")]):
        if program == "theirs":
            out = theirs("svm-predict", "test.svm", model, f"{k}.out")
        else:
            out = maxmargin("svm-predict", "test.svm", model, f"{k}.out").out
        answers[str(k)] = np.loadtxt(f"{k}.out")
        assert re.sub(r"[-\d.e]+", "#", out) == re.sub(r"[-\d.e]+", "#", said)
        if "-s 3" in options or "-s 4" in options:
            assert np.allclose(answers[str(k)], answers["their.out"], atol=1e-3)
        else:
            same = (answers[str(k)] == answers["their.out"]).mean()
            assert same > 0.97  # two solutions within the tolerance may differ on points at the boundary
            assert out == said or same < 1
    # one model, two programs: not one answer differs, to the last digits
    assert np.allclose(answers["0"], answers["1"], rtol=1e-12, atol=1e-12)
    assert np.allclose(answers["2"], answers["their.out"], rtol=1e-9, atol=1e-9)


@needs_libsvm
def test_the_accuracy_line_is_the_same(maxmargin, folder) -> None:
    theirs("svm-train", "-q", "-c", 10, "train.svm", "a")
    maxmargin("svm-train", "-q", "-c", 10, "train.svm", "b")
    assert maxmargin("svm-predict", "test.svm", "b", "c").out == theirs("svm-predict", "test.svm", "a", "d")


@needs_libsvm
def test_cross_validation_says_the_same_words(maxmargin, folder) -> None:
    for options in ("-s 0", "-s 3"):
        ours = maxmargin("svm-train", "-q", "-v", 5, *options.split(), "train.svm").out
        words = theirs("svm-train", "-q", "-v", 5, *options.split(), "train.svm")
        assert re.sub(r"[\d.]+", "#", ours) == re.sub(r"[\d.]+", "#", words)


@needs_libsvm
@pytest.mark.parametrize("name", ["train.svm", "three.svm"])
def test_probabilities(maxmargin, folder, name) -> None:
    """One model, two programs: the same labels in front, the same probabilities."""
    for train in (lambda *words: theirs("svm-train", *words), lambda *words: maxmargin("svm-train", *words)):
        train("-q", "-b", 1, name, "m")
        theirs("svm-predict", "-b", 1, "test.svm", "m", "a")
        assert maxmargin("svm-predict", "-b", 1, "test.svm", "m", "b").code == 0
        tables = []
        for path in (folder / "a", folder / "b"):
            head, *lines = path.read_text().splitlines()
            order = np.argsort([int(label) for label in head.split()[1:]])
            table = np.array([line.split() for line in lines], float)
            tables.append(np.c_[table[:, 0], table[:, 1:][:, order]])
        near = 1e-5 if name == "train.svm" else 0.01  # of several classes svm-predict iterates until it is this near
        assert np.abs(tables[0] - tables[1])[:, 1:].max() < near and (tables[0][:, 0] == tables[1][:, 0]).mean() > 0.98


@needs_libsvm
@pytest.mark.parametrize("options", ["", "-l 0", "-l -2 -u 3", "-y 0 1"])
def test_scaling(maxmargin, folder, options) -> None:
    scaled = theirs("svm-scale", "-s", "their.ranges", *options.split(), "train.svm")
    ours = maxmargin("svm-scale", "-s", "our.ranges", *options.split(), "train.svm").out
    assert (folder / "our.ranges").read_text() == (folder / "their.ranges").read_text()
    (folder / "a").write_text(scaled)
    (folder / "b").write_text(ours)
    (X, y), (Z, z) = data.load("a", n_features=4), data.load("b", n_features=4)
    assert np.allclose(X.toarray(), Z.toarray(), rtol=1e-5, atol=1e-6) and np.allclose(y, z)
    again = theirs("svm-scale", "-r", "our.ranges", "test.svm")
    (folder / "a").write_text(again)
    (folder / "b").write_text(maxmargin("svm-scale", "-r", "their.ranges", "test.svm").out)
    assert np.allclose(data.load("a", n_features=4)[0].toarray(), data.load("b", n_features=4)[0].toarray(), atol=1e-5)


@needs_libsvm
def test_a_model_of_theirs_with_features_that_only_the_test_data_have(maxmargin, folder) -> None:
    (folder / "wide.svm").write_text("1 1:2 9:1.5\n-1 2:-3\n1 9:4\n")
    theirs("svm-train", "-q", "-s", 3, "train.svm", "m")
    theirs("svm-predict", "wide.svm", "m", "a")
    assert maxmargin("svm-predict", "wide.svm", "m", "b").code == 0
    assert np.allclose(np.loadtxt("a"), np.loadtxt("b"), rtol=1e-9)


@needs_liblinear
@pytest.mark.parametrize("name", ["train.svm", "three.svm"])
def test_liblinear(maxmargin, folder, name) -> None:
    assert maxmargin("train", "-q", "-t", 0, "--format", "liblinear", name, "our.model").code == 0
    theirs("liblinear-predict", "test.svm", "our.model", "a")
    said = maxmargin("predict", "test.svm", "our.model", "b").out
    assert (np.loadtxt("a") == np.loadtxt("b")).all()
    assert said.startswith(theirs("liblinear-predict", "test.svm", "our.model", "a").strip())
    theirs("liblinear-train", "-q", "-s", 3, "-B", 1, name, "their.model")
    theirs("liblinear-predict", "test.svm", "their.model", "c")
    assert maxmargin("predict", "test.svm", "their.model", "d").code == 0
    assert (np.loadtxt("c") == np.loadtxt("d")).all()
