"""The command line: `maxmargin train`, `predict`, `scale`, `cv`, `info`, `convert`, `bench`, `demo`."""

from maxmargin.cli.program import main

__all__ = ["main"]
