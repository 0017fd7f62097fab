"""`maxmargin demo`: every machine on generated data."""

from __future__ import annotations

import argparse

from maxmargin.cli.console import Console

EXAMPLES = (("maxmargin demo", "a table, and a picture in demo/"),)


def add_options(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(args: argparse.Namespace, console: Console) -> int:
    from maxmargin import demo  # here, as other commands need not wait for what it imports

    return demo.main()
