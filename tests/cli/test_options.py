"""What each option is, what it is where nobody says, and what becomes of it: names, numbers, engines, machines."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.cli import convert, cv, engines, info, libsvm_words, predict, program, samples, scale, search, train
from maxmargin.cli.console import BAD_INPUT, BUG, DONE, INTERRUPTED, NOT_CONVERGED, Console, code_of, plain
from maxmargin.cli.samples import Samples


def asked(line: str) -> argparse.Namespace:
    """The options of a command line."""
    name, *words = line.split()
    return program.parser().parse_args([name, *libsvm_words.translated(words)])


def found(rows: int = 3, features: int = 2, y: Any = (0, 1, 1)) -> Samples:
    return Samples("data", np.ones((rows, features)), None if y is None else np.asarray(y))


READING = {"data_format": None, "label": "0", "features": None, "first_index": "auto", "delimiter": None}
READ = "--data-format csv --label 3 --features 7 --first-index 1 --delimiter ;"
READ_SO = {"data_format": "csv", "label": "3", "features": 7, "first_index": "1", "delimiter": ";"}
ENGINE = {"machine": "svc", "kernel": "rbf", "C": None, "gamma": "auto", "degree": None, "coef0": None, "nu": None,
          "epsilon": None, "_wi": None, "weight": None, "engine": "auto", "tol": None, "cache_size": None, "shrinking": None,
          "probability": None, "max_time": None, "max_iter": None, "early": None, "budget": None, "epochs": None,
          "random_state": None, "jobs": None}  # fmt: skip
SOLVE = ("-s 1 -t 3 -c 2.5 -g 0.5 -d 4 -r -1.5 -n 0.25 -p 0.75 -w1 2 --weight x:y:3 --engine dc -e 0.01 -m 50 -h 0 -b 1 "
         "--max-time 9.5 --max-iter 8 --early --budget 7 --epochs 6 --seed 5 --jobs 4")  # fmt: skip
SOLVED = {"machine": "nu-svc", "kernel": "sigmoid", "C": 2.5, "gamma": 0.5, "degree": 4, "coef0": -1.5, "nu": 0.25,
          "epsilon": 0.75, "_wi": None, "weight": [("1", 2.0), ("x:y", 3.0)], "engine": "dc", "tol": 0.01,
          "cache_size": 50.0, "shrinking": 0, "probability": 1, "max_time": 9.5, "max_iter": 8, "early": True, "budget": 7,
          "epochs": 6, "random_state": 5, "jobs": 4}  # fmt: skip
SAID = {"quiet": False, "json": False}
FIT = {"format": "maxmargin", "checkpoint": None, "checkpoint_every": None, "report": None, "memory": None, "cache": None}
SEARCH = {"Cs": None, "gammas": None, "scoring": None, "search": None, "extend": False, "model": None}


@pytest.mark.parametrize(("line", "told"), [
    ("train d", {"data": "d", "model": None, "folds": None, **ENGINE, **READING, **FIT}),
    (f"train {SOLVE} {READ} -v 3 --format liblinear --checkpoint a --checkpoint-every 2.5 --report r --memory 1.5 "
     "--cache c d m",
     {"data": "d", "model": "m", "folds": 3, **SOLVED, **READ_SO, "format": "liblinear", "checkpoint": "a",
      "checkpoint_every": 2.5, "report": "r", "memory": 1.5, "cache": "c"}),
    ("svm-train d", {"data": "d", "model": None, "folds": None, **ENGINE, **READING, **FIT, "engine": "exact",
                     "format": "libsvm"}),
    ("cv d", {"data": "d", "folds": 5, **ENGINE, **READING, **SEARCH}),
    (f"cv {SOLVE} {READ} -v 3 --Cs 1,2 --gammas 4 --scoring s --search halving --extend --model m d",
     {"data": "d", "folds": 3, **SOLVED, **READ_SO, "Cs": [1.0, 2.0], "gammas": 4, "scoring": "s", "search": "halving",
      "extend": True, "model": "m"}),
    ("predict d m", {"data": "d", "model": "m", "output": None, "decision_values": False, "jobs": None, "probabilities": 0,
                     **READING}),
    (f"predict {READ} --decision-values --jobs 3 -b 1 d m o",
     {"data": "d", "model": "m", "output": "o", "decision_values": True, "jobs": 3, "probabilities": 1, **READ_SO}),
    ("svm-predict -b 0 d m o", {"data": "d", "model": "m", "output": "o", "decision_values": False, "jobs": None,
                                "probabilities": 0, **READING}),
    ("scale d", {"data": "d", "output": "-", "lower": -1.0, "upper": 1.0, "y": None, "save": None, "restore": None,
                 **READING}),
    (f"svm-scale {READ} -l -2 -u 0.5 -y 3 4 -s a -r b d o",
     {"data": "d", "output": "o", "lower": -2.0, "upper": 0.5, "y": [3.0, 4.0], "save": "a", "restore": "b", **READ_SO}),
    ("info m", {"model": "m"}),
    ("convert i o", {"input": "i", "output": "o", "to": None, **READING}),
    (f"convert {READ} --to onnx i o", {"input": "i", "output": "o", "to": "onnx", **READ_SO}),
])  # fmt: skip
@pytest.mark.parametrize("said", ["", "-q", "--json"])
def test_every_option_is_known_and_has_its_default(line, told, said) -> None:
    name, _, rest = line.partition(" ")
    command = program.COMMANDS[program.PROGRAMS.get(name, name)][0]
    more = SAID | {"-q": {"quiet": True}, "--json": {"json": True}, "": {}}[said]
    assert vars(asked(f"{name} {said} {rest}")) == {**told, **more, "run": command.run, "name": name}


def test_options_of_commands_without_results() -> None:
    assert vars(asked("completion zsh")) == {"shell": "zsh", "run": program.completion.run, "name": "completion"}
    assert vars(asked("demo")) == {"run": program.demo.run, "name": "demo"}
    assert vars(asked("bench -- --quick")) | {"words": 0} == {"words": 0, "run": program.bench.run, "name": "bench"}


@pytest.mark.parametrize("line", [
    "train", "train -s 5 d", "train -t 5 d", "train -s -1 d", "train -s svd d", "train -t x d", "train -g x d",
    "train -w1 x d",
    "train -b 2 d", "train --shrinking 2 d", "train --engine best d", "train --format csv d", "train --cost", "train --tol",
    "predict d", "predict -b 2 d m", "info", "convert i", "convert --to xls i o", "completion fish", "cv --Cs a,1 d",
    "cv --Cs a d",
    "cv --search best d", "train --first-index 2 d", "train --data-format xls d", "train --ver d m", "", "--nothing",
    "--vers", "train --quie d", "--version=1",
])  # fmt: skip
def test_what_is_no_command_line(line, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        program.main(line.split())
    assert end.value.code == BAD_INPUT == 2 and "usage: maxmargin" in capsys.readouterr().err


@pytest.mark.parametrize("k", range(5))
def test_libsvm_numbers_and_names(k) -> None:
    assert asked(f"train -s {k} d").machine == asked(f"train -s {engines.TYPES[k]} d").machine == engines.TYPES[k]
    assert asked(f"train -t {k} d").kernel == asked(f"train -t {engines.KERNELS[k]} d").kernel == engines.KERNELS[k]


def test_kernels_and_widths_that_libsvm_has_not() -> None:
    assert asked("train -t laplacian d").kernel == "laplacian"
    assert [asked(f"train -g {word} d").gamma for word in ("scale", "auto", "2", "1e-3")] == ["scale", "auto", 2.0, 1e-3]


@pytest.mark.parametrize(("word", "values"), [
    ("3", 3), ("1,2", [1.0, 2.0]), ("0.5", [0.5]), ("0.5,", [0.5]), ("7,", [7.0]), ("1e2", [100.0]), ("1,,2", [1.0, 2.0]),
])  # fmt: skip
def test_values_of_a_grid(word, values) -> None:
    told = search._values(word)
    assert told == values and type(told) is type(values)


@pytest.mark.parametrize(("line", "wanted"), [("cv d", False), ("cv --Cs 1 d", True), ("cv --gammas 1 d", True),
                                              ("cv --Cs 1 --gammas 1 d", True), ("train -v 3 d", False)])  # fmt: skip
def test_a_grid_is_what_makes_a_search(line, wanted) -> None:
    assert search.wanted(asked(line)) is wanted


# ---- LIBSVM's spelling --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "out"), [
    ("-w1 5 d", "--weight=1:5 d"), ("-w-1 5", "--weight=-1:5"), ("-w 5", "-w 5"), ("-w1", "-w1"), ("-w", "-w"),
    ("-h 0 d", "--shrinking=0 d"), ("-h 1", "--shrinking=1"), ("-h 2", "--help 2"), ("-h", "--help"), ("d -h", "d --help"),
    ("-r -1e-3 d", "-r-1e-3 d"), ("-r -x d", "-r -x d"), ("-r -inf", "-r -inf"), ("-r -nan", "-r -nan"),
    ("-r 1 d", "-r 1 d"),
    ("-1 -2", "-1 -2"), ("--r -2", "--r -2"), ("xr -2", "xr -2"), ("-r", "-r"), ("-- -h -r -1", "-- -h -r -1"),
    ("-r - -1", "-r - -1"), ("-c 1 -- -h", "-c 1 -- -h"),
])  # fmt: skip
def test_spellings(words, out) -> None:
    assert libsvm_words.translated(words.split()) == out.split()


def test_an_empty_word_stays() -> None:
    assert libsvm_words.translated(["-r", "", "-2"]) == ["-r", "", "-2"]


# ---- engines --------------------------------------------------------------------------------------------------------


def sized(rows: int, features: int, density: float = 1.0, classes: int = 2) -> Any:
    """Samples of which only this is asked."""
    return SimpleNamespace(X=SimpleNamespace(shape=(rows, features)), density=density, y=np.arange(classes))


@pytest.mark.parametrize("kind", engines.TYPES)
@pytest.mark.parametrize("kernel", [*engines.KERNELS, "laplacian"])
@pytest.mark.parametrize("rows", [100_000, 100_001])
def test_the_engine_goes_by_machine_kernel_and_rows(kind, kernel, rows) -> None:
    args = SimpleNamespace(engine="auto", machine=kind, kernel=kernel)
    engine, why = engines.chosen(args, sized(rows, 10))
    if kernel == "linear" and kind in ("svc", "svr"):
        assert engine == "linear" and why.endswith("a linear kernel, so the weights are found directly")
    elif kernel in ("rbf", "laplacian") and kind in ("svc", "svr") and rows > 100_000:
        assert engine == "dc" and "above 100,000 rows" in why
    else:
        assert engine == "exact" and f"{kind} with kernel {kernel}" in why
        assert ("at most 100,000 rows" in why) == (rows <= 100_000)
    assert why.startswith(f"{rows:,} rows × 10 features, 100% not zero; ")
    engine, why = engines.chosen(args, sized(rows, 10), "libsvm")
    assert engine == "exact" and "only it has models in LIBSVM's format" in why
    if kernel == "linear" and kind in ("svc", "svr"):
        assert engines.chosen(args, sized(rows, 10), "liblinear")[0] == "linear"
    else:
        with pytest.raises(ValueError, match="LIBLINEAR's format is for svc and svr"):
            engines.chosen(args, sized(rows, 10), "liblinear")


@pytest.mark.parametrize(("features", "density", "kernel", "hint"), [
    (10_001, 0.0099, "rbf", True), (10_000, 0.0099, "rbf", False), (10_001, 0.01, "rbf", False),
    (10_001, 0.0099, "poly", False),
    (10_001, 0.015, "rbf", False), (10, 0.0099, "rbf", False),
])  # fmt: skip
def test_text_gets_a_hint(features, density, kernel, hint) -> None:
    _, why = engines.chosen(asked(f"train -t {kernel} d"), sized(10, features, density))
    assert ("try -t 0" in why) == hint


@pytest.mark.parametrize(("kind", "classes", "said"), [
    ("svc", 2, False), ("svc", 3, True), ("svc", 4, True), ("svr", 9, False),
])  # fmt: skip
def test_one_against_the_rest_is_said_of_several_classes(kind, classes, said) -> None:
    _, why = engines.chosen(asked(f"train -t 0 -s {kind} d"), sized(10, 3, classes=classes))
    assert (f"{classes} classes, one against the rest" in why) == said


@pytest.mark.parametrize("engine", list(engines.MACHINES))
@pytest.mark.parametrize("kind", engines.TYPES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("format", ["maxmargin", "libsvm", "liblinear"])
def test_an_engine_asked_for_is_checked(engine, kind, kernel, format) -> None:
    args = SimpleNamespace(engine=engine, machine=kind, kernel=kernel)
    able = kind in engines.MACHINES[engine]
    able &= kernel in {"linear": ("linear",), "budget": ("rbf",)}.get(engine, ("linear", "rbf", "poly"))
    able &= format in ("maxmargin", {"exact": "libsvm", "linear": "liblinear"}.get(engine, "maxmargin"))
    if able:
        assert engines.chosen(args, sized(9, 9), format) == (engine, "asked for")
        return
    with pytest.raises(ValueError, match=f"--engine {engine}"):
        engines.chosen(args, sized(9, 9), format)


MADE = {
    ("exact", "svc"): mm.SVC, ("exact", "nu-svc"): mm.NuSVC, ("exact", "one-class"): mm.OneClassSVM,
    ("exact", "svr"): mm.SVR,
    ("exact", "nu-svr"): mm.NuSVR, ("dc", "svc"): mm.DCSVC, ("dc", "svr"): mm.DCSVR, ("linear", "svc"): mm.LinearSVC,
    ("linear", "svr"): mm.LinearSVR, ("budget", "svc"): mm.BudgetSVC,
}  # fmt: skip


@pytest.mark.parametrize(("engine", "kind"), list(MADE))
@pytest.mark.parametrize("quiet", [False, True])
def test_a_machine_has_what_was_said_and_its_defaults_else(engine, kind, quiet, capsys) -> None:
    kernel = "linear" if engine == "linear" else "rbf"
    told = engines.built(asked(f"train -s {kind} -t {kernel} d"), engine, found(), Console(quiet))
    assert type(told) is MADE[engine, kind]
    params, defaults = told.get_params(deep=False), MADE[engine, kind]().get_params(deep=False)
    ours: dict[str, Any] = {"kernel": kernel, "gamma": "auto", "verbose": not quiet}
    if engine in ("dc", "budget"):
        ours["fit_intercept"] = True
    if engine == "linear":
        ours |= {"loss": "hinge" if kind == "svc" else "epsilon_insensitive", "intercept_scaling": None, "tol": 1e-4,
                 "max_iter": -1}  # fmt: skip
    if kind == "svr":
        ours["epsilon"] = 0.1
    expected = defaults | {name: value for name, value in ours.items() if name in defaults}
    assert params == expected
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("engine", "kind"), list(MADE))
def test_a_machine_gets_every_option_that_it_has(engine, kind, capsys) -> None:
    """LIBSVM's that it has not are ignored with a note, except for the width of a kernel that has none."""
    words = {"-c": ("C", 3.0), "-g": ("gamma", 0.5), "-d": ("degree", 2), "-r": ("coef0", 0.5), "-n": ("nu", 0.25),
             "-p": ("epsilon", 0.5), "-e": ("tol", 0.01), "-m": ("cache_size", 50.0), "--max-time": ("max_time", 7.0),
             "--jobs": ("n_jobs", 2), "--seed": ("random_state", 4)}  # fmt: skip
    line = " ".join(f"{word} {value}" for word, (_, value) in words.items())
    kernel = "linear" if engine == "linear" else "rbf"
    args = asked(f"train -s {kind} -t {kernel} {line} -h 0 -w1 5 d")
    told = engines.built(args, engine, found(), Console())
    params, said = told.get_params(deep=False), capsys.readouterr().err
    expected = {**dict(words.values()), "shrinking": False, "class_weight": {1: 5.0}}
    for name, value in expected.items():
        if name in params:
            assert params[name] == value and type(params[name]) is type(value)
    letters = {**{name: word for word, (name, _) in words.items()}, "shrinking": "-h", "class_weight": "-wi"}
    elsewhere = ("gamma", "random_state", "max_time", "n_jobs")
    ignored = [letters[n] for n in sorted(expected) if n not in params and n not in elsewhere]
    assert said == "".join(f"note: {word} has no meaning for {type(told).__name__}: ignored\n" for word in ignored)
    assert engines.built(asked(f"train -s {kind} -t {kernel} -h 1 d"), engine, found(), Console()).get_params().get(
        "shrinking", True
    )


@pytest.mark.parametrize(("engine", "kind"), list(MADE))
@pytest.mark.parametrize(("words", "name", "value"), [
    ("--early", "early", True), ("--budget 7", "budget", 7), ("--epochs 3", "epochs", 3), ("--max-iter 9", "max_iter", 9),
    ("-b 1", "probability", True), ("-b 0", "probability", None),
])  # fmt: skip
def test_options_of_our_own_are_refused_where_they_have_no_meaning(engine, kind, words, name, value) -> None:
    args = asked(f"train -s {kind} {words} d")
    if name in MADE[engine, kind]._get_param_names() or words == "-b 0":
        params = engines.built(args, engine, found(), Console()).get_params()
        assert params.get(name) == (MADE[engine, kind]().get_params().get(name) if value is None else value)
        return
    with pytest.raises(ValueError, match=f"{words.split()[0]}( 1: | has no meaning for ){MADE[engine, kind].__name__}"):
        engines.built(args, engine, found(), Console())


def test_weights_go_by_the_labels_of_the_data(capsys) -> None:
    told = engines.class_weight([("1", 2.0), ("+2", 3.0), ("-1", 4.0), ("3", 5.0)], np.array([1, 2, -1]), Console())
    assert told == {1: 2.0, 2: 3.0, -1: 4.0} and all(type(key) is int for key in told)
    assert capsys.readouterr().err == "warning: class 3 of -w3 is not in the data\n"
    assert engines.class_weight([("a:b", 2.0)], np.array(["a:b", "c"]), Console()) == {"a:b": 2.0}
    assert engines.built(asked("train -w1 5 d"), "exact", found(y=(0, 0, 2)), Console()).class_weight == {}


# ---- labels that a machine learns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", engines.TYPES)
@pytest.mark.parametrize("y", [None, (1, 2, 3), (1.5, 2.0, 3.0), ("a", "b", "c")])
def test_labels_must_be_what_the_machine_learns(kind, y) -> None:
    args = asked(f"train -s {kind} d")
    numbers, classes = kind in ("svr", "nu-svr"), kind in ("svc", "nu-svc")
    wrong = y is None and kind != "one-class"
    wrong |= (numbers and y == ("a", "b", "c")) or (classes and y == (1.5, 2.0, 3.0))
    if not wrong:
        cv.check_labels(args, found(y=y))
        assert cv.read(args, lambda *given: found(y=y)).X.shape == (3, 2)
        return
    what = "needs labels" if y is None else "'a'" if numbers else r"\[1.5\], which are no classes"
    for tell in (lambda: cv.check_labels(args, found(y=y)), lambda: cv.read(args, lambda *given: found(y=y))):
        with pytest.raises(ValueError, match=what):
            tell()


# ---- reading data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "change"), [
    ("", {}), ("--label none", {"label": None}), ("--label NONE", {"label": None}), ("--label 2", {"label": 2}),
    ("--label=-1", {"label": -1}), ("--label price", {"label": "price"}), ("--features 9", {"n_features": 9}),
    ("--first-index 0", {"zero_based": True}), ("--first-index 1", {"zero_based": False}),
    ("--delimiter ;", {"delimiter": ";"}),
    ("--data-format npy", {"format": "npy"}), ("--jobs 3", {"n_jobs": 3}),
])  # fmt: skip
def test_how_data_are_read(words, change) -> None:
    usual = {"format": None, "label": 0, "n_features": None, "delimiter": None, "zero_based": "auto", "n_jobs": None}
    assert samples.reading(asked(f"train {words} d")) == usual | change
    assert samples.reading(asked(f"train {words} d"), label=7, more=1) == usual | change | {"label": 7, "more": 1}
    if "--jobs" not in words:
        assert samples.reading(asked(f"convert {words} i o")) == usual | change


@pytest.mark.parametrize(("y", "out"), [
    ([1.0, 2.0], [1, 2]), ([-1.0, 0.0], [-1, 0]), ([1.5, 2.0], None), ([np.nan, 1.0], None), ([np.inf, 1.0], None),
    ([2.0**53, 1.0], None), ([2.0**53 - 1, 1.0], [2**53 - 1, 1]), ([-(2.0**53), 1.0], None), ([], None),
])  # fmt: skip
def test_labels_are_whole_if_all_of_them_are(y, out) -> None:
    y = np.array(y, float)
    told = samples.whole(y)
    assert told.dtype == (np.float64 if out is None else np.int64)
    assert np.array_equal(told, y if out is None else out, equal_nan=True)
    assert samples.whole(None) is None
    for other in (np.array([3, 4], np.int32), np.array(["a"]), np.array([True])):
        assert samples.whole(other) is other


def test_what_samples_say_of_themselves() -> None:
    X = np.array([[0.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    for form in (X, sp.csr_matrix(X)):
        told = Samples("name", form, None)
        assert told.stored == 3 and told.density == 0.5
        assert told.summary() == {"path": "name", "rows": 2, "features": 3, "stored": 3}
    assert Samples("", np.zeros((0, 5)), None).density == 0


# ---- what is said -----------------------------------------------------------------------------------------------------


def test_values_as_json_knows_them() -> None:
    given = {1: np.float32(0.5), "a": [np.int64(2), (True, None)], "b": np.array([[1.0, np.nan], [-np.inf, 2.0]]), "c": "x",
             "d": np.bool_(True), "e": math_nan(), "f": {"g": np.str_("y")}, "h": mm.SVC, "i": 3, "j": 1.25}  # fmt: skip
    told = plain(given)
    assert told == {"1": 0.5, "a": [2, [True, None]], "b": [[1.0, None], [None, 2.0]], "c": "x", "d": True, "e": None,
                    "f": {"g": "y"}, "h": str(mm.SVC), "i": 3, "j": 1.25}  # fmt: skip
    assert json.loads(json.dumps(told, allow_nan=False)) == told and told["a"][1][0] is True


def math_nan() -> float:
    return float("nan")


def test_results_are_lines_or_json_and_notes_are_for_people(capsys) -> None:
    Console().results(["a", "b"], {"c": np.nan})
    Console(as_json=True).results(["a", "b"], {"c": np.nan})
    assert capsys.readouterr() == ('a\nb\n{"c": null}\n', "")
    Console().note("x")
    Console(quiet=True).note("y")
    assert capsys.readouterr() == ("", "x\n")


@pytest.mark.parametrize(("status", "code"), [
    ("converged", 0), ("completed", 0), ("early", 0), ("max_time", 1), ("max_iter", 1), ("stalled", 1), ("callback", 1),
    ("interrupted", 130),
])  # fmt: skip
def test_exit_codes_are_those_of_the_help(status, code) -> None:
    assert (DONE, NOT_CONVERGED, BAD_INPUT, BUG, INTERRUPTED) == (0, 1, 2, 3, 130)
    assert code_of(status) == code and code_of(status, interrupted=True) == 130


def test_commands_are_modules_of_the_room() -> None:
    rooms = {"train": train, "predict": predict, "scale": scale, "cv": cv, "info": info, "convert": convert}
    assert {name: program.COMMANDS[name][0] for name in rooms} == rooms
