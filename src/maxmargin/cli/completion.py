"""`maxmargin completion`: a script that completes commands, options and files in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from maxmargin.cli.console import DONE, Console

EXAMPLES = (("maxmargin completion bash > maxmargin.bash", "then `source maxmargin.bash` in ~/.bashrc"),)
FILES = {"data", "model", "output", "input", "save", "restore", "report"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def run(args: argparse.Namespace, console: Console) -> int:
    try:
        import shtab
    except ImportError:
        raise ValueError("completion needs shtab: pip install 'maxmargin[cli]'") from None
    from maxmargin.cli.program import parser

    whole = parser()
    for action in _actions(whole):
        if action.dest in FILES:
            action.complete = shtab.FILE
    print(shtab.complete(whole, args.shell))
    return DONE


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from _actions(command)
        else:
            yield action
