"""Files and the command line, by ranks that are threads of this process: what one process reads and writes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
from maxmargin import data, spmd
from maxmargin.cli import predict, program, train
from maxmargin.runtime import Threads
from maxmargin.spmd import command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(50, 4)), 3)
    data.save(tmp_path / "x.svm", X, np.where(X[:, 0] + 0.3 * rng.normal(size=50) > 0, 1, -1))
    return tmp_path


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was written, once for each rank that did."""
    seen: list[str] = []
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # ranks that are silent put another one in its place
    for module, name in ((train, "store"), (predict, "opened")):
        plain = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, plain=plain, name=name: seen.append(name) or plain(*a))
    return seen


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("options", [["-t", "0"], ["-t", "2", "-g", "0.5"]], ids=["linear", "exact"])
def test_one_rank_writes_what_one_process_would(folder: Path, writers: list[str], ranks: int, options: list[str]) -> None:
    words = ["train", "-q", *options, "-e", "1e-6", str(folder / "x.svm")]
    assert Threads.run(ranks, lambda comm: command.main([*words, str(folder / "there")], comm)) == [0] * ranks
    assert writers == ["store"]
    assert program.main([*words, str(folder / "here")]) == 0
    there, here = maxmargin.load(folder / "there"), maxmargin.load(folder / "here")
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-4)

    for model in ("there", "here"):
        del writers[:]
        words = ["predict", "-q", "--decision-values", str(folder / "x.svm"), str(folder / model)]
        assert Threads.run(ranks, lambda comm, w=words: command.main([*w, str(folder / "ranks.txt")], comm)) == [0] * ranks
        assert writers == ["opened"]
        assert program.main([*words, str(folder / "alone.txt")]) == 0
        assert (folder / "ranks.txt").read_text() == (folder / "alone.txt").read_text()


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("format", [None, "libsvm"])
@pytest.mark.parametrize("options", [
    {}, {"n_jobs": 1}, {"zero_based": True}, {"n_features": 9}, {"zero_based": False, "n_features": 5, "dtype": np.float32},
], ids=lambda options: " ".join(options) or "none")  # fmt: skip
def test_parts_one_after_the_other_are_the_file(folder: Path, ranks: int, format: str | None, options: Any) -> None:
    """With any options, and also where the name of a file says another format than it has."""
    path = folder / "x.svm"
    if format is not None:
        options, path = {**options, "format": format}, path.rename(folder / "x.csv")
    X, y = data.load(path, **options)
    parts = Threads.run(ranks, lambda comm: spmd.load(path, comm=comm, **options))
    np.testing.assert_array_equal(np.vstack([part.toarray() for part, _ in parts]), X.toarray())
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in parts]), y)
    assert {part.dtype for part, _ in parts} == {X.dtype} and {part.shape[1] for part, _ in parts} == {X.shape[1]}
