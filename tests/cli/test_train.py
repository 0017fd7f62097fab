"""`maxmargin train` and `cv` as a user runs them: models, engines, limits, exit codes, and LIBSVM's spelling."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin import data
from maxmargin.cli import larger
from maxmargin.cli.libsvm_words import translated


def test_a_model_is_what_the_library_fits(maxmargin, folder) -> None:
    done = maxmargin("train", "-c", 10, "-g", 0.5, "train.svm", "model.mxm")
    assert done.code == 0
    model = mm.load(folder / "model.mxm")
    X, y = data.load(folder / "train.svm")
    same = mm.SVC(C=10, gamma=0.5).fit(X, y.astype(int))
    assert (model.decision_function(X) == same.decision_function(X)).all()
    assert model.status_ == "converged" and model.dual_gap_ == same.dual_gap_ and model.verbose is False
    assert f"Total nSV = {len(model.support_)}" in done.out and "SVC: converged" in done.out


def test_defaults_are_those_of_svm_train(maxmargin, folder) -> None:
    for words in (["-s", 3], ["-s", 3, "-t", 0]):
        assert maxmargin("train", *words, "train.svm", "svr").code == 0
        assert mm.load("svr").epsilon == 0.1
    assert maxmargin("train", "train.svm").code == 0
    model = mm.load(folder / "train.svm.model")
    assert (model.C, model._gamma, model.kernel, model.tol) == (1.0, 1 / 4, "rbf", 1e-3)


@pytest.mark.parametrize(("number", "name", "kind"), [
    (0, "svc", "SVC"), (1, "nu-svc", "NuSVC"), (2, "one-class", "OneClassSVM"), (3, "svr", "SVR"), (4, "nu-svr", "NuSVR"),
])  # fmt: skip
def test_machines_by_number_and_by_name(maxmargin, folder, number, name, kind) -> None:
    assert maxmargin("train", "-s", number, "-n", 0.3, "-p", 0.2, "train.svm", "a").code == 0
    assert maxmargin("train", "--machine", name, "--nu", 0.3, "--epsilon", 0.2, "train.svm", "b").code == 0
    assert type(mm.load("a")).__name__ == kind
    # but for the times that it took
    X, _ = data.load("test.svm", n_features=4)
    assert (mm.load("a").predict(X) == mm.load("b").predict(X)).all() and mm.load("a").objective_ == mm.load("b").objective_


def test_every_option_of_libsvm_reaches_the_machine(maxmargin, folder) -> None:
    words = "-s 0 -t 1 -d 2 -g 0.7 -r -1e-1 -c 3 -m 50 -e 0.01 -h 0 -w1 2 -w-1 0.5 -b 0 -q"
    done = maxmargin("train", *words.split(), "train.svm", "m.mxm")
    assert (done.code, done.err) == (0, "")
    model = mm.load("m.mxm")
    given = {"kernel": "poly", "degree": 2, "gamma": 0.7, "coef0": -0.1, "C": 3, "cache_size": 50, "tol": 0.01,
             "shrinking": False, "class_weight": {1: 2.0, -1: 0.5}}  # fmt: skip
    assert {name: model.get_params()[name] for name in given} == given


@pytest.mark.parametrize(("number", "kernel"), [(0, "linear"), (1, "poly"), (2, "rbf"), (3, "sigmoid")])
def test_kernels_by_number(maxmargin, folder, number, kernel) -> None:
    assert maxmargin("train", "--engine", "exact", "-t", number, "train.svm", "m").code == 0
    assert mm.load("m").kernel == kernel


def test_a_kernel_matrix_in_libsvm_text(maxmargin, folder) -> None:
    X, y = data.load("train.svm")
    T, z = data.load("test.svm", n_features=4)
    K, L = (np.exp(-0.25 * ((A.toarray()[:, None] - X.toarray()) ** 2).sum(-1)) for A in (X, T))
    for name, gram, labels in (("gram.svm", K, y), ("test-gram.svm", L, z)):
        data.save(name, np.c_[np.arange(1, len(gram) + 1), gram], labels, zero_based=True)
    assert maxmargin("train", "-t", 4, "--report", "page.html", "gram.svm", "m").code == 0
    assert "Judged once more" in (folder / "page.html").read_text(encoding="utf-8")
    assert maxmargin("cv", "-t", 4, "gram.svm").code == 0
    plain = mm.SVC(gamma=0.25).fit(X, y.astype(int))
    assert mm.load("m").objective_ == pytest.approx(plain.objective_, rel=1e-3)
    done = maxmargin("predict", "test-gram.svm", "m", "out")
    assert done.code == 0 and (np.loadtxt("out") == plain.predict(T)).mean() > 0.98
    data.save("gram.svm", np.c_[np.arange(len(K), 0, -1), K], y, zero_based=True)
    wrong = maxmargin("train", "-t", 4, "gram.svm", "m")
    assert wrong.code == 2 and "row i must begin with 0:i" in wrong.err


# ---- engines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "kind", "why"), [
    ("train.svm", "SVC", "250 rows × 4 features, 81% not zero"),
    ("-t 0 train.svm", "LinearSVC", "linear kernel"),
    ("-t 0 three.svm", "LinearSVC", "3 classes, one against the rest"),
    ("-t 0 --format libsvm train.svm", "SVC", "LIBSVM's format"),
    ("-t 0 -s 3 --label price prices.csv", "LinearSVR", "linear kernel"),
    ("-t 0 -s 1 train.svm", "NuSVC", "nu-svc with kernel linear"),
    ("-t 0 --format liblinear train.svm", "LinearSVC", "linear kernel"),
    ("--engine dc --early --seed 1 train.svm", "DCSVC", "asked for"),
    ("--engine dc -s 3 train.svm", "DCSVR", "asked for"),
    ("--engine budget --budget 20 --epochs 2 train.svm", "BudgetSVC", "asked for"),
])  # fmt: skip
def test_engines_are_chosen_and_say_why(maxmargin, folder, words, kind, why) -> None:
    done = maxmargin("train", *words.split(), "m")
    assert done.code == 0
    assert re.search(rf"^engine \w+ \({kind}\): .*{re.escape(why)}", done.err, flags=re.M)
    assert type(mm.load("m")).__name__ == kind


@pytest.mark.parametrize("options", ["-t 0 -c 3", "-t 0 -s 3 -c 3", "-g 0.5 -c 3", "-g 0.5 -s 3"])
def test_engines_solve_the_same_problem(maxmargin, folder, options) -> None:
    """What one proves of the optimum holds for the other's objective."""
    other = "linear" if "-t 0" in options else "dc"
    for engine in ("exact", other):
        assert maxmargin("train", "--engine", engine, *options.split(), "train.svm", engine).code == 0
    one, two = mm.load("exact"), mm.load(other)
    assert one.objective_ - one.dual_gap_ <= two.objective_ * (1 + 1e-9)
    assert two.objective_ - two.dual_gap_ <= one.objective_ * (1 + 1e-9)


def test_many_rows_go_to_divide_and_conquer_and_wide_sparse_ones_get_a_hint(maxmargin, folder, monkeypatch) -> None:
    monkeypatch.setattr("maxmargin.cli.engines.MANY_ROWS", 249)
    assert "engine dc (DCSVC)" in maxmargin("train", "train.svm").err
    assert "engine exact (NuSVC)" in maxmargin("train", "-s", 1, "train.svm").err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    (folder / "text.svm").write_text("1 1:1 20000:1\n-1 2:1\n" * 5)
    assert "try -t 0" in maxmargin("train", "text.svm").err


@pytest.mark.parametrize(("words", "trouble"), [
    ("--engine linear train.svm m", "--engine linear has no rbf kernel: say -t 0"),
    ("--engine dc -s 1 train.svm m", "--engine dc has no nu-svc"),
    ("--engine budget -t 0 train.svm m", "rbf kernel only"),
    ("--engine budget --early train.svm m", "--early has no meaning for BudgetSVC"),
    ("--engine dc --format libsvm train.svm m", "no place for models of --engine dc"),
    ("--format liblinear train.svm m", "with a linear kernel (-t 0)"),
    ("-c -1 train.svm m", "C=-1.0 must be a number"),
    ("-g x train.svm m", "'x' is no number"),
    ("-t 7 train.svm m", "'7' is no kernel"),
    ("-s 5 train.svm m", "'5' is no machine"),
    ("-b 1 -s 3 train.svm m", "-b 1: SVR has no probabilities"),
    ("-b 1 -t 0 train.svm m", "-b 1: LinearSVC has no probabilities"),
    ("nothing.svm m", "nothing.svm: No such file or directory"),
    ("train.svm nowhere/m", "the model cannot be written to nowhere/m"),
    ("prices.csv m", "which are no classes: say -s 3"),
    ("--label nobody prices.csv m", "label='nobody'"),
    ("broken.svm m", "broken.svm, line 2, column 4"),
    ("empty.svm m", "empty.svm has no samples"),
    ("- ", "MODEL must be named"),
    ("--format libsvm --kernel laplacian train.svm m", "no laplacian kernel"),
    ("-v 1 train.svm", "-v 1: the number of folds"),
])  # fmt: skip
def test_bad_input_is_told_and_leaves_nothing(maxmargin, folder, words, trouble) -> None:
    (folder / "broken.svm").write_text("1 1:2\n-1 1:x\n")
    (folder / "empty.svm").write_text("")
    before = sorted(folder.rglob("*"))
    done = maxmargin("train", *words.split())
    assert (done.code, done.out) == (2, "")
    assert trouble in done.err and "Traceback" not in done.err
    assert sorted(folder.rglob("*")) == before


def test_options_that_a_machine_has_not_are_ignored_with_a_note(maxmargin, folder) -> None:
    done = maxmargin("train", "-s", 2, "-c", 10, "train.svm", "m")
    assert done.code == 0 and "note: -c has no meaning for OneClassSVM" in done.err
    done = maxmargin("train", "-w7", 2, "train.svm", "m")
    assert done.code == 0 and "warning: class 7 of -w7 is not in the data" in done.err


# ---- how a run ends ---------------------------------------------------------------------------------------------


def test_not_converged_is_1_and_the_model_has_its_gap(maxmargin, folder) -> None:
    done = maxmargin("train", "-t", 0, "--max-time", 1e-9, "train.svm", "m.mxm")
    assert done.code == 1
    assert "NOT CONVERGED (max_time)" in done.out and "warning: LinearSVC stopped before" in done.err
    model = mm.load("m.mxm")
    assert model.status_ == "max_time" and model.dual_gap_ > 0
    shown = maxmargin("info", "m.mxm")
    assert shown.code == 0 and "NOT CONVERGED (max_time)" in shown.out and f"at most {model.dual_gap_:.3g}" in shown.out


def test_ctrl_c_is_130_and_the_best_model_is_written(folder) -> None:
    rng = np.random.default_rng(0)
    data.save("hard.svm", rng.normal(size=(3000, 3)), rng.choice([-1, 1], 3000))  # nothing to learn: it takes minutes
    command = [sys.executable, "-m", "maxmargin", "train", "-c", "1e6", "-e", "1e-9", "hard.svm", "m.mxm"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("engine exact")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "NOT CONVERGED (interrupted)" in out and "Traceback" not in err
    assert mm.load("m.mxm").status_ == "interrupted" and not list(folder.glob("*.part"))


def test_ctrl_c_before_there_is_a_model(maxmargin, folder, monkeypatch) -> None:
    def pressed(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("maxmargin.data.load", pressed)
    before = sorted(folder.iterdir())
    done = maxmargin("train", "train.svm", "m")
    assert (done.code, done.out) == (130, "") and "nothing was written" in done.err and sorted(folder.iterdir()) == before


def test_ctrl_c_ends_all_folds(maxmargin, folder, monkeypatch) -> None:
    fit, fits = mm.SVC.fit, []

    def pressed(self: mm.SVC, *given: object) -> mm.SVC:
        fits.append(self)
        signal.raise_signal(signal.SIGINT)
        return fit(self, *given)

    monkeypatch.setattr("maxmargin.SVC.fit", pressed)
    done = maxmargin("cv", "train.svm")
    assert (done.code, done.out, len(fits)) == (130, "", 1) and "interrupted in fold 1 of 5" in done.err


def test_quiet_says_nothing_on_stderr_and_a_pipe_gets_whole_lines(maxmargin, folder) -> None:
    assert maxmargin("train", "--quiet", "train.svm").err == ""
    shown = maxmargin("train", "train.svm").err
    assert shown.count("\n") == 2 and "\r" not in shown


def test_json(maxmargin, folder) -> None:
    done = maxmargin("train", "--json", "train.svm", "m")
    told, model = json.loads(done.out), mm.load("m")
    assert told["status"] == "converged" and told["gap"] == model.dual_gap_ and told["objective"] == model.objective_
    assert told["engine"] == "exact" and told["data"]["rows"] == 250 and told["support_vectors"] == len(model.support_)
    budgeted = json.loads(maxmargin("train", "--json", "--engine", "budget", "train.svm", "m").out)
    assert budgeted["gap"] is None  # NaN is no JSON


def test_a_failure_keeps_the_model_that_was_there(maxmargin, folder, monkeypatch) -> None:
    assert maxmargin("train", "train.svm", "m").code == 0
    before = (folder / "m").read_bytes()

    def fail(*given: object) -> None:
        raise OSError(28, "No space left on device", "m")

    monkeypatch.setattr("maxmargin.data.atomic.os.replace", fail)
    done = maxmargin("train", "-c", 100, "train.svm", "m")
    assert done.code == 2 and "No space left" in done.err
    assert (folder / "m").read_bytes() == before and not list(folder.glob("*.part"))


def test_an_error_of_ours_is_3_with_its_traceback(maxmargin, folder, monkeypatch) -> None:
    def broken(*given: object, **more: object) -> None:
        raise RuntimeError("a bound above the objective")

    monkeypatch.setattr("maxmargin.SVC.fit", broken)
    done = maxmargin("train", "train.svm", "m")
    assert done.code == 3 and "a bound above the objective" in done.err and "bug" in done.err
    assert not (folder / "m").exists()


# ---- cross-validation -------------------------------------------------------------------------------------------


def test_cross_validation(maxmargin, folder) -> None:
    done = maxmargin("cv", "-v", 4, "-c", 10, "train.svm")
    percent = float(re.fullmatch(r"Cross Validation Accuracy = ([\d.]+)%\n", done.out)[1])
    assert done.code == 0 and 75 < percent <= 100
    told = json.loads(maxmargin("cv", "-v", 4, "-c", 10, "--json", "train.svm").out)
    assert 100 * told["accuracy"] == pytest.approx(percent) and len(told["folds"]) == 4
    assert sum(fold["correct"] for fold in told["folds"]) == told["correct"]
    assert maxmargin("train", "-v", 4, "-c", 10, "train.svm").out == done.out  # svm-train's way to say it
    assert not (folder / "train.svm.model").exists()


def test_cross_validation_of_numbers(maxmargin, folder) -> None:
    done = maxmargin("cv", "-s", 3, "-c", 10, "--label", "price", "prices.csv")
    error, squared = re.fullmatch(
        r"Cross Validation Mean squared error = (\S+)\nCross Validation Squared correlation coefficient = (\S+)\n", done.out
    ).groups()
    assert float(error) < 0.5 and 0.9 < float(squared) <= 1


def test_cross_validation_that_did_not_converge(maxmargin, folder) -> None:
    assert maxmargin("cv", "-t", 0, "--max-time", 1e-9, "train.svm").code == 1


# ---- LIBSVM's spelling ------------------------------------------------------------------------------------------

LETTERS = st.sampled_from(["-c", "-g", "-r", "-e", "-m", "-n", "-p", "-d"])


@given(st.lists(st.tuples(LETTERS, st.floats(allow_nan=False, allow_infinity=False)), max_size=6))
def test_numbers_of_any_sign_and_spelling_stay_with_their_letter(pairs) -> None:
    words = [word for letter, value in pairs for word in (letter, repr(value))]
    out = translated([*words, "data", "model"])
    joined = "".join(out)
    assert joined == "".join([*words, "data", "model"])  # nothing is lost or moved
    assert all(not word.startswith("-") or word[:2] in dict(pairs) for word in out)


def test_words_of_libsvm() -> None:
    assert translated(["-w-1", "5", "-h", "0", "-h"]) == ["--weight=-1:5", "--shrinking=0", "--help"]
    assert translated(["--", "-w1", "5"]) == ["--", "-w1", "5"]


def test_a_reader_that_has_enough_is_no_error(maxmargin, folder) -> None:
    assert maxmargin("train", "train.svm", "m").code == 0
    line = f"{sys.executable} -m maxmargin predict -q train.svm m - | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, env=os.environ)
    assert "Traceback" not in done.stderr and done.stdout.strip() in ("0", "141")


# ---- reports ----------------------------------------------------------------------------------------------------


def test_a_report(maxmargin, folder) -> None:
    done = maxmargin("train", "-c", 10, "--report", "page.html", "train.svm", "m")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert done.code == 0 and "<title>SVC on train.svm</title>" in page
    assert "maxmargin train -c 10 --report page.html train.svm m" in page and "Judged once more" in page
    refused = maxmargin("train", "--report", "nowhere/page.html", "train.svm", "n")
    assert refused.code == 2 and "--report cannot be written" in refused.err and not (folder / "n").exists()


@pytest.mark.parametrize("options", ["-s 1 -n 0.3", "-s 2", "-s 3", "-s 4", "-t 0", "--engine dc", "--engine budget"])
def test_reports_of_all_engines(maxmargin, folder, options) -> None:
    assert maxmargin("train", *options.split(), "--report", "page.html", "train.svm", "m").code == 0
    assert "What is proven" in (folder / "page.html").read_text(encoding="utf-8")


# ---- checkpoints, and files larger than memory ----------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_a_killed_command_goes_on_where_it_was(maxmargin, folder) -> None:
    kept = ["--checkpoint", "run.ckpt", "--checkpoint-every", "0"]
    words = ["train", "-c", "1000", "-e", "1e-7", *kept, "train.svm", "m.mxm"]
    code = (
        "import os, signal, sys, maxmargin.cli\n"
        "from maxmargin.runtime import checkpoints\n"
        "put = checkpoints.Checkpoints.put\n"
        "def killed(self, solver, done):\n"
        "    put(self, solver, False)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "checkpoints.Checkpoints.put = killed\n"
        "sys.exit(maxmargin.cli.main(sys.argv[1:]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=300)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert (folder / "run.ckpt").exists() and not (folder / "m.mxm").exists()
    refused = maxmargin(*["2" if word == "1000" else word for word in words])
    assert refused.code == 2 and "is of another fit" in refused.err and "C was 1000.0 and is 2.0" in refused.err
    done = maxmargin(*words)
    assert done.code == 0 and not (folder / "run.ckpt").exists()
    model, whole = mm.load("m.mxm"), mm.SVC(C=1000, gamma=0.25, tol=1e-7)
    X, y = data.load("train.svm")
    assert model.checkpoint is None
    assert model.objective_ == pytest.approx(whole.fit(X, y.astype(int)).objective_, rel=1e-7)


def test_a_fit_that_time_ended_leaves_its_checkpoint(maxmargin, folder) -> None:
    words = ["-c", "1000", "--engine", "linear", "-t", "0", "--checkpoint", "a.ckpt", "train.svm"]
    done = maxmargin("train", "--max-iter", 1, *words)
    assert done.code == 1 and (folder / "a.ckpt").exists()
    assert maxmargin("train", *words).code == 0
    assert not (folder / "a.ckpt").exists()


def test_checkpoints_where_there_are_none(maxmargin) -> None:
    done = maxmargin("train", "--engine", "budget", "--checkpoint", "a.ckpt", "train.svm")
    assert done.code == 2 and "--checkpoint has no meaning for BudgetSVC" in done.err
    done = maxmargin("train", "--checkpoint-every", 3, "train.svm")
    assert done.code == 2 and "give both" in done.err


@pytest.mark.parametrize("options", ["-t 0", "-t 0 -s 3", "--engine linear -t 0 -c 3"])
def test_a_file_larger_than_memory_gives_the_same_linear_model(maxmargin, folder, options) -> None:
    words = options.split()
    assert maxmargin("train", *words, "train.svm", "memory.mxm").code == 0
    done = maxmargin("train", *words, "--memory", 0.001, "--cache", ".", "train.svm", "disk.mxm")
    assert done.code == 0 and "read from a cache on disk" in done.err
    assert (folder / "train.svm.cache").is_dir()
    one, other = mm.load("memory.mxm"), mm.load("disk.mxm")
    assert (one.coef_ == other.coef_).all() and one.objective_ == other.objective_


def test_a_file_larger_than_memory_streams_through_the_budget(maxmargin, folder) -> None:
    done = maxmargin("train", "--engine", "budget", "--memory", 0.001, "--cache", ".", "--seed", 0, "train.svm", "b.mxm")
    assert done.code == 0 and "read from a cache on disk" in done.err
    X, y = data.load("test.svm", n_features=4)
    assert (mm.load("b.mxm").predict(X) == y).mean() > 0.8


def test_files_that_fit_stay_in_memory(maxmargin, folder) -> None:
    for words in (["-t", "0"], ["--memory", "100"], ["-t", "0", "--memory", "100"]):
        done = maxmargin("train", *words, "train.svm", "m.mxm")
        assert done.code == 0 and "cache on disk" not in done.err
    assert not (folder / "train.svm.cache").exists()


@pytest.mark.parametrize("words", [["--engine", "exact"], ["--engine", "dc"], ["-s", 2], ["-v", 3], ["-t", 0, "-v", 3], []])
def test_a_file_that_cannot_fit_is_refused_before_the_work(maxmargin, folder, words) -> None:
    refused = maxmargin("train", *words, "--memory", 0.001, "train.svm", *([] if "-v" in words else ["m.mxm"]))
    assert refused.code == 2 and refused.out == "" and not (folder / "m.mxm").exists()
    for word in ("train.svm needs about", "MB of --memory", "--engine linear", "--engine budget", "cache on disk"):
        assert word in refused.err


def test_what_is_available_counts_where_nobody_says_how_much(maxmargin, folder, monkeypatch) -> None:
    size = (folder / "train.svm").stat().st_size
    needed = size + 200 * larger.MB  # and the cache of kernel rows
    for room, said, code in ((0.9 * needed, "needs about", 2), (1.5 * needed, "warning: train.svm needs about", 0)):
        monkeypatch.setattr(larger, "available", lambda room=room: room)
        done = maxmargin("train", "train.svm", "m.mxm")
        assert done.code == code and said in done.err and "200 MB for kernel rows (-m)" in done.err
    assert "warning" not in maxmargin("train", "-m", 1, "train.svm", "m.mxm").err
    monkeypatch.setattr(larger, "available", lambda: 0.5 * needed)
    assert maxmargin("train", "--memory", needed / larger.MB, "train.svm", "m.mxm").code == 0  # who knows better
    refused = maxmargin("train", "-s", 3, "--label", "price", "prices.csv", "m.mxm")
    assert refused.code == 2 and "maxmargin convert" in refused.err


def test_a_search_prints_the_table_and_the_choice_and_writes_the_model(maxmargin, folder) -> None:
    done = maxmargin("cv", "-t", 0, "--Cs", "0.01,0.1,1", "--folds", 3, "--model", "best.mxm", "train.svm")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split()[:2] == ["C", "mean"] and len(lines) == 6 and lines[4].startswith("Best C = ")
    model = mm.load(folder / "best.mxm")
    assert type(model) is mm.LinearSVC and f"C = {model.C:.6g}:" in lines[4] and model.verbose is False
    X, y = data.load(folder / "train.svm")
    same = mm.LinearSVC(C=model.C, loss="hinge", intercept_scaling=None, tol=1e-4).fit(X, y.astype(int))
    np.testing.assert_allclose(model.coef_, same.coef_, atol=0.05)


@pytest.mark.parametrize(("words", "name"), [
    (["--engine", "exact"], "SVCCV"), (["--engine", "dc"], "DCSVCCV"), (["-t", 0], "LinearSVCCV"),
    (["-s", 3, "-t", 0, "--label", "price"], "LinearSVRCV"), (["-s", 3, "--label", "price"], "SVRCV"),
])  # fmt: skip
def test_every_engine_has_a_search(maxmargin, folder, words, name) -> None:
    grid = ["--Cs", 2] if "-t" in words else ["--Cs", "0.1,10", "--gammas", "0.1,1"]
    file = "prices.csv" if "price" in words else "train.svm"
    done = maxmargin("cv", *words, *grid, "--folds", 3, "--json", "-q", file)
    assert done.code == 0, done.err
    values = json.loads(done.out)
    assert values["machine"] == name and values["settings"] == len(values["cells"]) == (2 if "-t" in words else 4)
    scores = [cell["mean_test_score"] for cell in values["cells"] if cell["mean_test_score"] is not None]
    assert values["best_score"] == max(scores) and values["search_status"] == "converged" and values["model"] is None


def test_searches_that_make_no_sense(maxmargin, folder) -> None:
    for words, text in (
        (["--Cs", "a,b"], "neither a number"), (["-t", 0, "--gammas", 3], "--gammas has no meaning"),
        (["-s", 1, "--Cs", 3], "there is no search for nu-svc"), (["--model", "m"], "--model is for a search"),
        (["--Cs", 2, "--model", "none/m"], "its folder is not there"), (["--Cs", "0,1"], "C="),
    ):  # fmt: skip
        done = maxmargin("cv", *words, "train.svm")
        assert done.code == 2 and text in done.err, (words, done.err)
