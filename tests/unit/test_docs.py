"""Every Python example runs: docstrings of public classes, and the python blocks of README and docs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import maxmargin
import maxmargin.estimators

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [
    name
    for package in (
        "estimators", "models", "problem", "decomposition", "divide", "linear", "budget", "kernel_values", "data", "runtime",
        "plots", "reports", "dask", "spmd", "selection",
    )
    for _, name, _ in pkgutil.iter_modules([str(Path(maxmargin.__file__).parent / package)], f"maxmargin.{package}.")
]


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """(line, source) of the ```python blocks of a page."""
    text = page.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [(text[: block.start()].count("\n") + 2, block.group(1)) for block in found]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", maxmargin.__all__)
def test_public_classes_have_an_example(name: str) -> None:
    doc = getattr(maxmargin, name).__doc__
    assert doc and ">>> " in doc
    assert "Parameters\n" in doc or not inspect.signature(getattr(maxmargin, name)).parameters


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_examples(page: Path, tmp_path, monkeypatch) -> None:
    """The blocks of a page run one after the other in one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    for line, source in python_blocks(page):
        if source.startswith(">>> "):
            example = doctest.DocTestParser().get_doctest(source, namespace, page.name, str(page), line - 1)
            assert doctest.DocTestRunner().run(example, clear_globs=False).failed == 0
            continue
        # compiled with blank lines before it, so that a traceback shows the line of the page
        exec(compile("\n" * (line - 1) + source, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
