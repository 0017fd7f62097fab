"""Small changes of the C++ core: drawn at random from its text, or named; each is compiled into a module of its own.

The sources are copied to build/mutants and built there once; a change then compiles what includes the file. What does not
compile is no change that anybody could have made.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from operators import Mutant

# In code that clang-format has laid out, operators stand between spaces and brackets of templates do not.
OPERATORS = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " + ": " - ",
             " - ": " + ", " * ": " + ", " && ": " || ", " || ": " && ", " += ": " -= ", " -= ": " += ",
             "std::min(": "std::max(", "std::max(": "std::min(", "++": "--"}  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
LEFT_ALONE = ("//", "#", "template", "using ", "static_assert", "constexpr", "reserve(")


class Build:
    """A copy of the sources with its own build; `module(change)` compiles one change."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.source, self.build = folder / "source", folder / "build"
        for file in (root / "CMakeLists.txt", *(root / "native").glob("*/*")):
            mine = self.source / file.relative_to(root)
            if not mine.exists() or mine.read_bytes() != file.read_bytes():  # else what was built of it is as it should be
                mine.parent.mkdir(parents=True, exist_ok=True)
                mine.write_bytes(file.read_bytes())
        where = [sys.executable, "-m", "nanobind", "--cmake_dir"]
        nanobind = subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip()
        self._run(
            "cmake", "-S", str(self.source), "-B", str(self.build), "-G", "Ninja", "-DSKBUILD_PROJECT_NAME=maxmargin",
            "-DMAXMARGIN_LEVELS=v3", "-DCMAKE_BUILD_TYPE=Release", f"-Dnanobind_DIR={nanobind}",
            f"-DPython_EXECUTABLE={sys.executable}",
        )  # fmt: skip
        self._run("cmake", "--build", str(self.build))

    def module(self, change: Mutant) -> Path | None:
        """The compiled core with this change, or None if it does not compile."""
        file = self.source / "native" / change.path
        before = file.read_text()
        file.write_text(change.source)
        try:
            self._run("cmake", "--build", str(self.build))
            return next(self.build.glob("_core_v3*.so"))
        except subprocess.CalledProcessError:
            return None
        finally:
            file.write_text(before)

    @staticmethod
    def _run(*command: str) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # cmake and ninja of the environment
        quiet = subprocess.DEVNULL
        subprocess.run(command, check=True, stdout=quiet, stderr=quiet, env={**os.environ, "PATH": path})


def drawn(native: Path, room: str, count: int, seed: int) -> list[Mutant]:
    files = {str(f.relative_to(native)): f.read_text() for f in sorted((native / room).glob("*.hpp"))}
    every = [change for path, source in files.items() for change in changes(path, source)]
    return random.Random(f"native {room} {seed}").sample(every, min(count, len(every)))


def changes(path: str, source: str) -> Iterator[Mutant]:
    """Every change of one operator or whole number in the code of a file."""
    lines = source.splitlines(keepends=True)
    for k, line in enumerate(lines):
        code = line.split("//")[0]
        if code.strip().startswith(LEFT_ALONE) or not code.strip():
            continue
        spots = [(m.start(), old, new) for old, new in OPERATORS.items() for m in re.finditer(re.escape(old), code)]
        spots += [(m.start(), m[1], str(int(m[1]) + 1)) for m in NUMBER.finditer(code)]
        for at, old, new in sorted(spots):
            changed = line[:at] + new + line[at + len(old) :]
            yield Mutant(path, k + 1, line.strip(), changed.strip(), "".join([*lines[:k], changed, *lines[k + 1 :]]))
