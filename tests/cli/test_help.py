"""What `--help` shows runs; completion; bench and demo; documentation."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from maxmargin.cli import program

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.fixture
def benchmarks(monkeypatch) -> list[list[str]]:
    """What bench would run, of this checkout, wherever the package is."""
    called: list[list[str]] = []
    monkeypatch.setattr("maxmargin.__file__", str(Path(__file__).parents[2] / "src" / "maxmargin" / "__init__.py"))
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    monkeypatch.setattr("benchmarks.cli.main", lambda words: called.append(words) or 0)
    return called


def test_the_examples_of_help_run(maxmargin, folder, benchmarks, monkeypatch) -> None:
    """One after the other, as they are shown: later ones use what earlier ones wrote."""
    monkeypatch.setattr("maxmargin.demo.main", lambda: 0)
    count = 0
    for module, _ in program.COMMANDS.values():
        for line, _ in module.EXAMPLES:
            words = shlex.split(line)
            cut = min((words.index(word) for word in (">", "|") if word in words), default=len(words))
            assert words[0] == "maxmargin"
            done = maxmargin(*words[1:cut])
            assert done.code == 0, (line, done.err)
            count += 1
    assert count > 20
    assert benchmarks == [["list"], ["run", "exact", "--quick", "--sets", "ijcnn1"]]


@pytest.mark.parametrize("name", [*program.COMMANDS, *program.PROGRAMS])
@pytest.mark.parametrize("word", ["-h", "--help"])
def test_every_command_has_help_with_its_examples(maxmargin, name, word) -> None:
    done = maxmargin(name, word)
    assert done.code == 0
    module = program.COMMANDS[program.PROGRAMS.get(name, name)][0]
    assert all(line in done.out for line, _ in module.EXAMPLES)


def test_the_program_says_what_exit_codes_mean(maxmargin) -> None:
    shown = maxmargin("--help").out
    assert all(re.search(rf"^  {code}  ", shown, flags=re.M) for code in (0, 1, 2, 3, 130))
    assert all(f"    {name} " in shown for name in program.COMMANDS)
    assert maxmargin().code == maxmargin("nonsense").code == 2


def test_the_page_shows_every_command_and_every_option() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert all(f"`maxmargin {name}" in page for name in (*program.COMMANDS, *program.PROGRAMS))
    actions = program.parser()._subparsers._group_actions[0].choices["train"]._actions
    words = {word for action in actions for word in action.option_strings} - {"--help"}
    assert not [word for word in words if f"`{word}" not in page]


def test_lines_of_the_page_are_understood() -> None:
    """Every command line in a block of the page parses."""
    blocks = re.findall(r"^(?:    |\$ )(maxmargin .*)$", DOCS.read_text(encoding="utf-8"), flags=re.M)
    assert len(blocks) > 5
    for line in blocks:
        words = shlex.split(line.split("#")[0])
        cut = min((words.index(word) for word in (">", "|", "&&", ";") if word in words), default=len(words))
        if words[1] != "bench":
            program.parser().parse_args([words[1], *program.translated(words[2:cut])])


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(maxmargin, folder, shell) -> None:
    script = maxmargin("completion", shell).out
    assert "svm-predict" in script
    if shell == "bash":
        (folder / "script").write_text(script + '\nCOMP_WORDS=(maxmargin tr); COMP_CWORD=1; _shtab_maxmargin; '
                                       'echo "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "script"], capture_output=True, text=True, timeout=60)
        assert done.stdout.split() == ["train"]


def test_completion_without_its_library(maxmargin, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = maxmargin("completion", "bash")
    assert done.code == 2 and "pip install 'maxmargin[cli]'" in done.err


def test_bench_without_a_checkout(maxmargin, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("maxmargin.__file__", str(tmp_path / "a" / "b" / "c" / "__init__.py"))
    done = maxmargin("bench", "exact")
    assert done.code == 2 and "get a checkout" in done.err


def test_bench_hands_on_whatever_follows(maxmargin, benchmarks) -> None:
    assert maxmargin("bench", "--help").code == 0
    assert maxmargin("bench", "report", "--check").code == 0
    assert maxmargin("bench", "exact", "linear", "--limit", "5").code == 0
    assert benchmarks == [["report", "--check"], ["run", "exact", "linear", "--limit", "5"]]
