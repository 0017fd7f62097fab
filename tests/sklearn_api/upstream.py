"""scikit-learn's own tests of its SVMs, loaded from where it is installed, with our machines in the place of its own.

Nothing of them is in this repository. What they may not find as they expect it is in departures.py.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import maxmargin


def load(name: str) -> ModuleType:
    """A second copy of `sklearn.svm.tests.<name>` that saw our classes while it was imported."""
    spec = importlib.util.find_spec(f"sklearn.svm.tests.{name}")
    if spec is None or spec.origin is None:
        pytest.skip("scikit-learn is installed without its tests", allow_module_level=True)
    private = importlib.util.spec_from_file_location(f"maxmargin_upstream_{name}", spec.origin)
    assert private is not None and private.loader is not None
    module = importlib.util.module_from_spec(private)
    sys.modules[private.name] = module
    with maxmargin.patched():
        private.loader.exec_module(module)
    return module


def contents(module: ModuleType) -> dict[str, Callable[..., Any]]:
    return {name: item for name, item in vars(module).items() if name.startswith("test_") and callable(item)}


@pytest.fixture(autouse=True)
def our_machines() -> Iterator[None]:
    """The modules look `svm.SVC` up when a test runs."""
    with maxmargin.patched():
        yield


@pytest.fixture
def global_random_seed() -> int:
    """scikit-learn's fixture: its suite runs with 42 by default."""
    return 42
