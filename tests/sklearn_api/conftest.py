"""scikit-learn's own tests among ours: what does not apply is left out, a deliberate departure must fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from departures import DEPARTURES, PRIVATE

UPSTREAM = "test_upstream_"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thread_unsafe: scikit-learn's mark for tests that must not run beside others")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.stem.startswith(UPSTREAM):
            name = f"test_{item.path.stem.removeprefix(UPSTREAM)}::{item.name.partition('[')[0]}"
            if name in PRIVATE:
                item.add_marker(pytest.mark.skip(reason="tests a private function of scikit-learn"))
            if name in DEPARTURES:
                item.add_marker(pytest.mark.xfail(reason=DEPARTURES[name].reason, strict=DEPARTURES[name].certain))
