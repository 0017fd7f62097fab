"""A folder with small data files, and the program as a function."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from maxmargin import data
from maxmargin.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """train.svm and test.svm (two classes), three.svm (three), prices.csv (numbers to learn)."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)) * (rng.random((400, 4)) < 0.8)
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=400) > 0.7, 1, -1)
    data.save(folder / "train.svm", X[:250], y[:250])
    data.save(folder / "test.svm", X[250:], y[250:])
    data.save(folder / "three.svm", X, np.digitize(X[:, 0], [-0.5, 0.5]))
    price = X @ [1.0, 2.0, 0.0, 1.0] + 0.1 * rng.normal(size=400)
    data.save(folder / "prices.csv", X[:200], price[:200], header=["price", "a", "b", "c", "d"])
    return folder


@pytest.fixture
def folder(files, tmp_path, monkeypatch) -> Path:
    """The current folder, with links to the data files."""
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def maxmargin(folder, capfd):
    """Run a command in the folder, in this process."""

    def run(*words: object) -> Outcome:
        capfd.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as end:  # argparse
            code = end.code
        return Outcome(code, *capfd.readouterr())

    return run
