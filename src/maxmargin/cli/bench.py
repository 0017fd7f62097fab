"""`maxmargin bench`: the benchmarks, from a checkout of the source."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import maxmargin
from maxmargin.cli.console import Console

ACTIONS = ("run", "list", "due", "report")

EXAMPLES = (
    ("maxmargin bench list", "experiments, data sets, solvers"),
    ("maxmargin bench exact --quick --sets ijcnn1", "one experiment on 2,000 rows"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", metavar="EXPERIMENT ...", nargs=argparse.REMAINDER,
                        help="an experiment and its options; or list, due, report (see benchmarks/README.md)")


def run(args: argparse.Namespace, console: Console) -> int:
    words = args.words[args.words[:1] == ["--"] :]
    if not words:
        raise ValueError("which experiment? `maxmargin bench list` shows them")
    root = _checkout()
    if root is None:
        raise ValueError(
            "the benchmarks are part of the source and not of an installed package: get a checkout, and in it "
            "`pip install -e '.[bench]'`, then `maxmargin bench list`"
        )
    sys.path.insert(0, str(root))
    main = importlib.import_module("benchmarks.cli").main
    return int(main(words if words[0] in ACTIONS else ["run", *words]))


def _checkout() -> Path | None:
    """The folder that holds `benchmarks`: this one, or the one that the package is installed from."""
    for root in (Path.cwd(), Path(maxmargin.__file__).parents[2]):
        if (root / "benchmarks" / "cli.py").is_file() and (root / "pyproject.toml").is_file():
            return root
    return None
