"""The program around the commands: what goes wrong and its exit code, help, completion, the way to the benchmarks."""

from __future__ import annotations

import io
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import maxmargin as package
from maxmargin.cli import bench, completion, program, train
from maxmargin.cli.console import Console


@pytest.fixture
def ending(monkeypatch):
    """A command that ends so."""

    def how(end: object) -> list[object]:
        given: list[object] = []

        def run(args: object, console: Console) -> object:
            given.extend([args, console])
            if isinstance(end, BaseException):
                raise end
            return end

        monkeypatch.setattr(train, "run", run)
        return given

    return how


@pytest.mark.parametrize(("end", "code", "said"), [
    (0, 0, ""), (1, 1, ""), (True, 1, ""), (130, 130, ""), (KeyboardInterrupt(), 130, "interrupted: nothing was written\n"),
    (MemoryError(), 2, "maxmargin train: error: not enough memory; --engine linear and --engine budget need the least\n"),
    (OSError(2, "No such file", "name"), 2, "maxmargin train: error: name: No such file\n"),
    (OSError("broken"), 2, "maxmargin train: error: broken\n"), (ValueError("one"), 2, "maxmargin train: error: one\n"),
    (ValueError("one\ntwo\n    three"), 2, "maxmargin train: error: one\n    two\n        three\n"),
    (ImportError("pip"), 2, "maxmargin train: error: pip\n"),
])  # fmt: skip
def test_how_a_command_ends_is_its_exit_code(ending, capsys, end, code, said) -> None:
    ending(end)
    told = program.main(["train", "d"])
    assert (told, type(told)) == (code, int) and capsys.readouterr() == ("", said)


def test_what_nobody_foresaw_is_a_bug_with_its_traceback(ending, capsys) -> None:
    ending(RuntimeError("unforeseen"))
    assert program.main(["train", "d"]) == 3
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Traceback (most recent call last):\n") and "RuntimeError: unforeseen" in err
    assert err.endswith("This is a bug of maxmargin's: please report it, with the lines above.\n")


def test_a_reader_that_went_is_a_signal_and_all_else_goes_nowhere(ending, monkeypatch, tmp_path) -> None:
    ending(BrokenPipeError(32, "Broken pipe"))
    with open(tmp_path / "out", "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert program.main(["train", "d"]) == 128 + 13
        assert stat.S_ISCHR(os.fstat(out.fileno()).st_mode)
        print("more", file=out, flush=True)
    assert (tmp_path / "out").read_text() == ""


def test_what_was_said_is_written_when_the_command_ends(ending, monkeypatch, tmp_path) -> None:
    ending(0)
    flushed: list[str] = []
    out = io.StringIO()
    out.flush = lambda: flushed.append(out.getvalue())  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", out)
    assert program.main(["train", "d"]) == 0 and flushed


@pytest.mark.parametrize(("words", "said"), [
    (["train", "d"], (False, False)), (["train", "-q", "d"], (True, False)), (["train", "--json", "d"], (False, True)),
    (["train", "-w-1", "5", "-h", "0", "d"], (False, False)),
])  # fmt: skip
def test_a_command_gets_its_words_and_a_console(ending, monkeypatch, words, said) -> None:
    for argv in (words, None):
        monkeypatch.setattr(sys, "argv", ["maxmargin", *words] if argv is None else ["other", "info", "x"])
        given = ending(0)
        assert program.main(argv) == 0
        args, console = given
        assert args.line == words and args.data == "d" and (console.quiet, console._json) == said
        assert (args.weight, args.shrinking) == (([("-1", 5.0)], 0) if "-h" in words else (None, None))


def test_commands_without_a_console_of_their_own(monkeypatch) -> None:
    said: list[tuple[bool, bool]] = []
    monkeypatch.setattr(program.demo, "run", lambda args, console: said.append((console.quiet, console._json)) or 0)
    assert program.main(["demo"]) == 0 and said == [(False, False)]


@pytest.mark.parametrize("words", [["bench", "-h"], ["bench", "--help"], ["train", "-h"], ["-h"], ["--help"], ["--version"]])
def test_help_ends_well(words, capsys) -> None:
    with pytest.raises(SystemExit) as end:
        program.main(words)
    shown = capsys.readouterr().out
    assert end.value.code == 0
    assert shown == f"maxmargin {package.__version__}\n" if words == ["--version"] else shown.startswith("usage: maxmargin")


@pytest.mark.parametrize("name", [*program.COMMANDS, *program.PROGRAMS])
def test_help_begins_with_a_sentence_and_ends_with_examples(name, capsys) -> None:
    with pytest.raises(SystemExit):
        program.main([name, "--help"])
    shown = capsys.readouterr().out
    ours = program.PROGRAMS.get(name, name)
    module, text = program.COMMANDS[ours]
    sentence = text if name == ours else f"{ours}, as LIBSVM's {name}"
    assert f"\n\n{sentence[:1].upper()}{sentence[1:]}.\n\n" in shown
    assert shown.endswith("examples:\n" + "\n".join(f"  {line}\n      {what}" for line, what in module.EXAMPLES) + "\n")
    assert ("--quiet" in shown) == ("--json" in shown) == (ours not in ("bench", "demo", "completion"))


def test_words_of_a_command_alone_are_libsvm_s(capsys) -> None:
    """-h of a command is help; of what is no command, and of the program itself, argparse says what there is."""
    for words in ([], ["nothing", "-h", "0"], ["Train"]):
        with pytest.raises(SystemExit) as end:
            program.main(words)
        assert end.value.code == 2
    assert "usage:" in capsys.readouterr().err


# ---- completion -----------------------------------------------------------------------------------------------------


def test_files_are_completed_where_a_file_is_meant(monkeypatch, capsys) -> None:
    completed: dict[str, list[str]] = {}

    def complete(parser: object, shell: str) -> str:
        for name, command in parser._subparsers._group_actions[0].choices.items():  # type: ignore[attr-defined]
            completed[name] = sorted(a.dest for a in command._actions if getattr(a, "complete", None) == "files")
        return f"script for {shell}"

    monkeypatch.setitem(sys.modules, "shtab", SimpleNamespace(FILE="files", complete=complete))
    assert completion.run(SimpleNamespace(shell="zsh"), Console()) == 0  # type: ignore[arg-type]
    assert capsys.readouterr().out == "script for zsh\n"
    fit, predicting = ["data", "model", "report"], ["data", "model", "output"]
    scaling = ["data", "output", "restore", "save"]
    assert completed == {
        "train": fit, "svm-train": fit, "predict": predicting, "svm-predict": predicting,
        "scale": scaling, "svm-scale": scaling,
        "cv": ["data", "model"], "info": ["model"], "convert": ["input", "output"],
        "bench": [], "demo": [], "completion": [],
    }  # fmt: skip


# ---- the way to the benchmarks -------------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Two folders: where one is, and where the package is."""
    here, there = tmp_path / "here", tmp_path / "there"
    (there / "src" / "maxmargin").mkdir(parents=True)
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("maxmargin.__file__", str(there / "src" / "maxmargin" / "__init__.py"))
    return here, there


def checkout(root: Path, *without: str) -> None:
    (root / "benchmarks").mkdir(exist_ok=True)
    for name in {"benchmarks/cli.py", "pyproject.toml"} - {*without}:
        (root / name).write_text("")


def test_a_checkout_has_both_files_and_the_one_here_comes_first(places) -> None:
    here, there = places
    for root in places:
        for without in ("pyproject.toml", "benchmarks/cli.py"):
            checkout(root, without)
            assert bench._checkout() is None
            (root / ({"benchmarks/cli.py", "pyproject.toml"} - {without}).pop()).unlink()
    checkout(there)
    assert bench._checkout() == there
    checkout(here)
    assert bench._checkout() == here


@pytest.mark.parametrize(("words", "handed"), [
    (["list"], ["list"]), (["due", "--x"], ["due", "--x"]), (["report"], ["report"]), (["run", "a"], ["run", "a"]),
    (["exact", "--quick"], ["run", "exact", "--quick"]), (["--", "exact"], ["run", "exact"]), (["--", "list"], ["list"]),
    (["-q"], ["run", "-q"]), (["exact", "--", "list"], ["run", "exact", "--", "list"]),
])  # fmt: skip
def test_what_the_benchmarks_are_given(places, monkeypatch, words, handed) -> None:
    here, _ = places
    checkout(here)
    called: list[list[str]] = []
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = SimpleNamespace(main=lambda words: called.append(words) or 7)
    monkeypatch.setattr(bench, "importlib", SimpleNamespace(import_module=lambda name: {"benchmarks.cli": module}[name]))
    assert bench.run(SimpleNamespace(words=words), Console()) == 7  # type: ignore[arg-type]
    assert called == [handed] and sys.path[0] == str(here)
    if words[0] != "--":
        assert program.main(["bench", *words]) == 7 and called == [handed] * 2


@pytest.mark.parametrize("words", [[], ["--"]])
def test_no_experiment_is_told(places, words) -> None:
    checkout(places[0])
    with pytest.raises(ValueError, match="which experiment"):
        bench.run(SimpleNamespace(words=words), Console())  # type: ignore[arg-type]


def test_no_checkout_is_told(places) -> None:
    with pytest.raises(ValueError, match="get a checkout"):
        bench.run(SimpleNamespace(words=["list"]), Console())  # type: ignore[arg-type]
