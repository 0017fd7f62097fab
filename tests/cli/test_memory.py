"""What fits into memory: how much a file needs, how much there is, and what becomes of a file that is larger."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.cli import larger, samples
from maxmargin.cli.console import Console
from maxmargin.cli.samples import Samples

MB = 2**20


def args(data: str = "d.svm", **more: Any) -> Any:
    usual = {"engine": "auto", "kernel": "rbf", "machine": "svc", "memory": None, "cache_size": None, "cache": None,
             "data_format": None, "label": "0", "features": None, "first_index": "auto", "delimiter": None}  # fmt: skip
    return SimpleNamespace(**usual | {"data": data} | more)


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Files of a million bytes, and so much memory."""
    monkeypatch.chdir(tmp_path)
    for name in ("d.svm", "d.csv", "d.svm.gz", "d.svm.bz2", "d.svm.xz", "d.svm.zst"):
        with open(name, "wb") as file:
            file.truncate(1_000_000)
    (tmp_path / "folder.svm").mkdir()

    def there(size: float) -> None:
        monkeypatch.setattr(larger, "available", lambda: size)

    return there


@pytest.mark.parametrize("engine", ["auto", "exact", "dc", "linear", "budget"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("machine", ["svc", "nu-svc", "one-class", "svr", "nu-svr"])
@pytest.mark.parametrize("data", ["d.svm", "d.csv", "folder.svm", "nothing.svm", "-"])
def test_samples_stay_on_disk_for_engines_that_make_passes_over_text(room, engine, kernel, machine, data) -> None:
    room(1e5)
    able = engine in ("linear", "budget") or (engine == "auto" and kernel == "linear")
    able &= machine in ("svc", "svr") and data == "d.svm"
    told = larger.on_disk(args(data, engine=engine, kernel=kernel, machine=machine))
    assert (told is not None) == able


@pytest.mark.parametrize(("data", "size"), [("d.svm", 1e6), ("d.svm.gz", 4e6), ("d.svm.bz2", 4e6), ("d.svm.xz", 4e6),
                                            ("d.svm.zst", 4e6)])  # fmt: skip
def test_a_file_stays_on_disk_if_it_is_larger_than_half_of_what_there_is_or_than_was_said(room, data, size) -> None:
    for memory, share in ((None, 0.5), (size / MB, 1.0)):
        given = args(data, engine="linear", memory=memory)
        room(size / share if memory is None else 1.0)
        assert larger.on_disk(given) is None
        if memory is None:
            room((size - 4) / share)
        else:
            given.memory = (size - 4) / MB
        told = larger.on_disk(given)
        assert told == f"about {size / MB:,.0f} MB of text, above {(size - 4) / MB:,.0f} MB: read from a cache on disk"


@pytest.mark.parametrize("engine", ["auto", "exact", "dc", "linear", "budget"])
@pytest.mark.parametrize("cache", [None, 1.0, 3.0])
@pytest.mark.parametrize("data", ["d.svm", "d.csv"])
def test_what_needs_more_than_there_is_is_refused_and_what_needs_half_is_told(room, engine, cache, data, capsys) -> None:
    rows = 0 if engine in ("linear", "budget") else (cache or 200) * MB
    need, given = 1e6 + rows, args(data, engine=engine, cache_size=cache)
    room(2 * need)
    larger.check(given, Console())
    assert capsys.readouterr() == ("", "")
    kept = f" and {rows / MB:,.0f} MB for kernel rows (-m)" if rows else ""
    way = "--engine linear (-t 0) and --engine budget (svc) read LIBSVM text from a cache on disk"
    way += "" if data == "d.svm" else ", which maxmargin convert makes of this file"
    for much in (2 * need - 16, need):
        room(much)
        larger.check(given, Console())
        facts = f"{data} needs about 1 MB for its samples{kept}, of {much / MB:,.0f} MB that are available"
        assert capsys.readouterr() == ("", f"warning: {facts}; if that is too little, {way}\n")
    room(need - 8)
    facts = f"{data} needs about 1 MB for its samples{kept}, of {(need - 8) / MB:,.0f} MB that are available"
    told = f"{facts}, and this engine must have them all in memory: {way}; --memory {need / MB:.0f} tries all the same"
    with pytest.raises(ValueError, match=re.escape(told)):
        larger.check(given, Console())


def test_the_memory_that_was_said_is_for_samples_alone(room, capsys) -> None:
    room(1.0)  # nobody asks how much there is
    larger.check(args(memory=1e6 / MB), Console())
    assert capsys.readouterr() == ("", "")
    facts = "d.svm needs about 1 MB for its samples, of 1 MB of --memory, and this engine must have them all in memory"
    with pytest.raises(ValueError, match=re.escape(facts)) as refused:
        larger.check(args(memory=(1e6 - 4) / MB), Console())
    assert "tries all the same" not in str(refused.value)


@pytest.mark.parametrize("data", ["-", "nothing.svm", "folder.svm"])
def test_what_has_no_length_is_not_judged(room, data) -> None:
    room(1.0)
    larger.check(args(data), Console())


def test_samples_from_the_cache_are_those_of_the_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.svm").write_text("1 0:2 3:4\n-1 1:5\n")
    (tmp_path / "empty.svm").write_text("")
    for more, shift, features in (({}, 0, 4), ({"first_index": "0", "features": 6}, 0, 6)):
        told = larger.load(args(cache=str(tmp_path), **more), "d.svm")
        expected = np.zeros((2, features))
        expected[0, shift], expected[0, 3 + shift], expected[1, 1 + shift] = 2, 4, 5
        assert (np.asarray(told.X[:].todense()) == expected).all() and told.path == "d.svm"
        assert told.y.tolist() == [1, -1] and told.y.dtype == np.int64
    (tmp_path / "one.svm").write_text("1 1:2\n")
    assert larger.load(args(), "one.svm").X.shape == (1, 1)
    with pytest.raises(ValueError, match=r"empty.svm has no samples"):
        larger.load(args(), "empty.svm")


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 6, 7])
def test_a_stream_has_every_row_once_and_in_order(rows, monkeypatch) -> None:
    monkeypatch.setattr(samples, "ROWS", 3)
    X, y = sp.csr_matrix(np.arange(2.0 * rows).reshape(rows, 2)), np.arange(rows) % 2
    seen: dict[str, Any] = {}

    class Streaming:
        def set_params(self, **params: Any) -> None:
            seen.update(params)

        def fit_stream(self, chunks: Any, classes: Any) -> None:
            seen["classes"] = classes.tolist()
            for _ in range(2):  # passes
                seen["parts"] = list(chunks())

    class Fitting:
        def fit(self, *given: Any) -> None:
            seen["fit"] = given

    larger.fit(Streaming(), Samples("d", X, y))
    assert seen["stream_size"] == rows and seen["classes"] == sorted(set(y.tolist()))
    assert [len(part) for _, part in seen["parts"]] == [min(3, rows - k) for k in range(0, rows, 3)]
    assert (sp.vstack([part for part, _ in seen["parts"]]) != X).nnz == 0
    assert np.concatenate([part for _, part in seen["parts"]]).tolist() == y.tolist() and "fit" not in seen
    larger.fit(Fitting(), Samples("d", X, y))
    assert seen["fit"][0] is X and seen["fit"][1] is y


@pytest.mark.parametrize(("machine", "container", "told"), [
    ("MemTotal: 9 kB\nMemAvailable:   100 kB\n", "50000\n", 50_000.0), ("MemAvailable: 100 kB\n", "500000", 102_400.0),
    ("MemAvailable: 100 kB\n", "max\n", 102_400.0), ("MemAvailable: 100 kB\n", None, 102_400.0), (None, "7\n", 7.0),
    ("MemTotal: 9 kB\n", "7\n", 7.0), (None, None, float("inf")), ("MemAvailable: x kB", None, float("inf")),
])  # fmt: skip
def test_what_is_available_is_the_least_of_what_the_system_says(monkeypatch, machine, container, told) -> None:
    texts = {"/proc/meminfo": machine, "/sys/fs/cgroup/memory.max": container}

    class Fake:
        def __init__(self, name: str) -> None:
            self.name = name

        def read_text(self) -> str:
            if texts[self.name] is None:
                raise FileNotFoundError(self.name)
            return str(texts[self.name])

    monkeypatch.setattr(larger, "Path", Fake)
    assert larger.available() == told


def test_what_is_assumed_where_nobody_says() -> None:
    assert (larger.SHARE, larger.PACKED, larger.MB, larger.CACHE) == (0.5, 4.0, 2**20, 200.0)
