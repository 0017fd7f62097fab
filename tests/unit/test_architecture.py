"""Imports go one way: estimators → solvers → problem, data → runtime → the core. Checked by reading the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import maxmargin

PACKAGE = Path(maxmargin.__file__).parent
SOLVERS = {"decomposition", "divide", "linear", "budget"}
BASE = {"kernel_values", "problem", "runtime", "data", "carriers", "_core"}

# What the modules of each folder may import from maxmargin, besides their own folder.
MAY_IMPORT = {
    "dask": SOLVERS | BASE | {"estimators"},
    "models": SOLVERS | BASE | {"estimators", "selection"},
    "selection": SOLVERS | BASE | {"estimators"},
    "spmd": SOLVERS | BASE | {"estimators", "cli", "models"},
    "estimators": SOLVERS | BASE,
    "decomposition": BASE,
    "divide": BASE | {"decomposition"},
    "linear": BASE,
    "budget": BASE,
    "kernel_values": {"problem", "data", "runtime", "_core"},
    "problem": set(),
    "runtime": {"_core"},
    "carriers": {"runtime"},
    "data": {"_core", "runtime"},
    "_core.py": {"_cpu"},
}
# At the top: the public names and what is built on them, as a user would.
ABOVE = {"__init__.py", "__main__.py", "start.py", "demo.py", "discovery.py", "patching.py", "cli", "plots", "reports"}


def imported_rooms(source: str, package: tuple[str, ...]) -> set[str]:
    """First names under maxmargin that a module imports; `package` is its own, for relative imports.

    `from maxmargin import _core` → {"_core"};  `from maxmargin.data.rows import x` → {"data"};
    `import maxmargin` → {"maxmargin"}, which is everything.
    """
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = ".".join([*base, node.module] if node.module else base)
            names = [f"{stem}.{alias.name}" if stem == "maxmargin" else stem for alias in node.names]
        for name in names:
            first, _, rest = name.partition(".")
            if first == "maxmargin":
                rooms.add(rest.split(".")[0] if rest else "maxmargin")
    return rooms


def modules() -> list[tuple[str, Path]]:
    """(room, file) of every module; the room is a folder of the package or a file at its top."""
    return [(path.relative_to(PACKAGE).parts[0], path) for path in sorted(PACKAGE.rglob("*.py"))]


def test_there_is_something_to_check() -> None:
    rooms = {room for room, _ in modules()}
    assert {"estimators", "decomposition", "problem", "runtime", "data"} <= rooms


@pytest.mark.parametrize(("room", "path"), modules(), ids=lambda v: v if isinstance(v, str) else v.stem)
def test_imports_go_one_way(room: str, path: Path) -> None:
    if room in ABOVE:
        return
    assert room in MAY_IMPORT, f"{room} is a new room: say in docs/architecture.md and here what it may import"
    package = ("maxmargin", *path.relative_to(PACKAGE).parts[:-1])
    rooms = imported_rooms(path.read_text(encoding="utf-8"), package) - {room}
    assert rooms <= MAY_IMPORT[room], f"{path.name} imports {sorted(rooms - MAY_IMPORT[room])}"


def test_certificates_share_no_code_with_the_core() -> None:
    seen, todo = set(), [PACKAGE / "problem" / "certificates.py"]
    while todo:
        path = todo.pop()
        seen.add(path.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxmargin"):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                files = [PACKAGE.parent / Path(*name.split(".")).with_suffix(".py") for name in names]
                assert not any("_core" in name for name in names), path.name
                todo += [file for file in files if file.exists() and file.name not in seen]
    assert {"certificates.py", "formulations.py", "kernels.py"} <= seen


def test_native_code_is_quiet_and_knows_no_python() -> None:
    native = PACKAGE.parents[1] / "native"
    if not native.is_dir():
        pytest.skip("installed without its source")
    for header in set(native.rglob("*.hpp")) - set((native / "bindings").iterdir()):
        text = header.read_text(encoding="utf-8")
        for word in ("printf", "std::cout", "std::cerr", "nanobind", "Python.h"):
            assert word not in text, f"{header.name} contains {word}"


def test_relative_imports_are_understood() -> None:
    assert imported_rooms("from . import run", ("maxmargin", "runtime")) == {"runtime"}
    assert imported_rooms("from ..estimators import svc", ("maxmargin", "runtime")) == {"estimators"}
    assert imported_rooms("from maxmargin import _core\nimport maxmargin.data.rows", ()) == {"_core", "data"}
