"""Where the program `maxmargin` begins: the command line, without modules that it does not use.

scikit-learn and SciPy import in their first lines, directly or by way of others, modules that take longer than all else
together and of which the commands here need nothing. They are put off to their first use. Only in a process that is this
program: who imports `maxmargin` or `maxmargin.cli` gets everything as usual.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

PUT_OFF = ("pandas", "scipy.stats", "numpy.f2py", "numpy.testing", "narwhals", "narwhals.stable", "narwhals.stable.v2")


class Later(ModuleType):
    """A module that is imported when something in it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import system looks for
            raise AttributeError(name)
        drop(self)
        real = importlib.import_module(self.__name__)
        self.__dict__.update({key: value for key, value in vars(real).items() if not key.startswith("__")})
        return getattr(real, name)


def drop(module: Later) -> None:
    """The next import is of the real one."""
    if sys.modules.get(module.__name__) is module:
        del sys.modules[module.__name__]


def put_off(name: str) -> Later | None:
    """A stand-in for a module that is there and not imported yet."""
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None:
        return None
    stand_in = Later(name)
    stand_in.__spec__ = spec
    stand_in.__path__ = list(spec.submodule_search_locations or [])
    sys.modules[name] = stand_in
    package, _, last = name.rpartition(".")
    if package:
        setattr(sys.modules[package], last, stand_in)
    return stand_in


def main() -> int:
    """The command line of this process; returns the exit code."""
    stand_ins = [put_off(name) for name in PUT_OFF]
    from maxmargin import cli

    for stand_in in stand_ins:
        if stand_in is not None:
            drop(stand_in)
    return cli.main()
