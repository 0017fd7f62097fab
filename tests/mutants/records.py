"""Which test runs which line, and how long it takes: so a change is tried on the tests that can notice it, quick ones first.

Each file of tests is run once, without any change, under Python's own tracing; what it says is kept in build/mutants and
holds as long as that file and those to be changed stay as they were.
"""

from __future__ import annotations

import ast
import hashlib
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Run:
    """One test: seconds of CPU (traced), and the lines that it runs as the bits of a number for each file."""

    seconds: float
    lines: dict[str, int]
    programs: bool = False  # whether it starts any, of which nobody knows what they run


@dataclass
class Record:
    """One file of tests, as it was when it was recorded."""

    digest: str
    sources: dict[str, str]  # digests of the package's files
    runs: dict[str, Run] = field(default_factory=dict)


def digests(package: Path) -> dict[str, str]:
    return {str(f.relative_to(package)): digest(f) for f in sorted(package.rglob("*.py"))}


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Recorder:
    """A plugin of pytest that fills `runs`."""

    def __init__(self, package: Path) -> None:
        self.package, self.runs = str(package) + os.sep, dict[str, Run]()
        self._lines: dict[str, set[int]] = {}
        self._tracers: dict[str, Callable[..., Any] | None] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for lines in self._lines.values():
            lines.clear()
        begun = os.times()
        sys.settrace(self._called)
        threading.settrace(self._called)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        ran = {path: sum(1 << k for k in lines) for path, lines in self._lines.items() if lines}
        spent = [now - then for now, then in zip(os.times()[:4], begun)]  # of CPU: whatever others do on the machine
        self.runs[item.nodeid] = Run(sum(spent), ran, programs=sum(spent[2:]) > 0)

    def _called(self, frame: Any, event: str, arg: Any) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        if name not in self._tracers:
            self._tracers[name] = self._tracer(name[len(self.package) :]) if name.startswith(self.package) else None
        return self._tracers[name]

    def _tracer(self, path: str) -> Callable[..., Any]:
        lines = self._lines.setdefault(path, set())

        def ran(frame: Any, event: str, arg: Any) -> Callable[..., Any]:
            lines.add(frame.f_lineno)
            return ran

        return ran


class Chosen:
    """A plugin of pytest that keeps these tests, in this order."""

    def __init__(self, order: list[str]) -> None:
        self.place = {name: k for k, name in enumerate(order)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.place), key=lambda i: self.place[i.nodeid])


class Records:
    """What is known of the files of tests; `record` runs one that is not known well enough."""

    def __init__(self, root: Path, record: Callable[[Path], dict[str, Run]]) -> None:
        self.root, self.record = root, record
        self.kept = root / "build" / "mutants"
        self.kept.mkdir(parents=True, exist_ok=True)
        self.sources = digests(root / "src" / "maxmargin")

    def runs(self, tests: list[str], changed: set[str]) -> dict[str, Run]:
        """Of the tests of these files and folders; what lines they run of the files to be changed is as these are now."""
        places = [self.root / "tests" / name for name in tests]
        files = [f for p in places for f in (sorted(p.glob("**/test_*.py")) if p.is_dir() else [p])]
        return {name: run for file in files for name, run in self._of(file, changed).items()}

    def _of(self, file: Path, changed: set[str]) -> dict[str, Run]:
        kept = self.kept / f"{file.parent.name}-{file.stem}.pickle"
        if kept.exists():
            known: Record = pickle.loads(kept.read_bytes())
            if known.digest == digest(file) and all(known.sources.get(f) == self.sources.get(f) for f in changed):
                return known.runs
        made = Record(digest(file), self.sources, self.record(file))
        kept.write_bytes(pickle.dumps(made))
        return made.runs


def telling(runs: dict[str, Run], path: str, line: int, source: str, seconds: float) -> list[str]:
    """The tests that run the statement at a line of a file, the quickest first, as many as take so many seconds.

    Then those that start programs, which may run it too.
    """
    asked = _places(ast.parse(source), line) if path.endswith(".py") else 0
    here = {name for name, run in runs.items() if run.lines.get(path, 0) & asked}
    if not asked:
        here = {name for name, run in runs.items() if path in run.lines} or set(runs)
    there = {name for name, run in runs.items() if run.programs} - here
    out: list[str] = []
    for name in sorted(here | there, key=lambda n: (n in there, runs[n].seconds)):
        seconds -= runs[name].seconds
        if out and seconds < 0:
            break
        out.append(name)
    return out


def _places(tree: ast.Module, line: int) -> int:
    """The lines one of which a test must run to notice a change at a line, as bits.

    Those of the statement; of the function if it is its head, as its defaults are. None if it is outside of functions, as a
    constant is, which any test of the file can notice.
    """
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = [f for f in functions if f.lineno <= line <= (f.end_lineno or 0)]
    if not inside:
        return 0
    function = max(inside, key=lambda f: f.lineno)
    body = range(function.body[0].lineno, (function.end_lineno or 0) + 1)
    if line not in body:
        return sum(1 << k for k in body)
    statements = [n for n in ast.walk(function) if isinstance(n, ast.stmt) and n.lineno <= line <= (n.end_lineno or 0)]
    smallest = max(statements, key=lambda n: (n.lineno, -(n.end_lineno or 0)))
    inner = [n.lineno for n in ast.walk(smallest) if isinstance(n, ast.stmt) and n is not smallest]
    return sum(1 << k for k in range(smallest.lineno, min([(smallest.end_lineno or 0) + 1, *inner])))
