"""Progress in a log file: plain lines, few of them, each whole; a bar where it can be redrawn."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin.runtime import Control, Progress, Result, Status, progress, run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, to be set by the test."""
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(progress, "_shown", (-1.0, 0.0))
    return now


def test_lines_get_rarer_as_a_fit_goes_on(clock, capsys) -> None:
    with progress.bar("fit", "it", 10**6) as shown:
        for turn in range(36_000):
            clock[0] += 0.1
            shown.set_postfix({"gap": f"{turn}"})
            shown.update(1)
    lines = capsys.readouterr().err.splitlines()
    assert 20 <= len(lines) <= 45  # of an hour
    assert lines[0] == "fit: 1.1 s, 11/1,000,000 it, gap=10"  # 0.1 · 10 < 1
    assert all(line.startswith("fit: ") and "\r" not in line for line in lines)


def test_many_problems_of_one_fit_share_its_lines(clock, capsys) -> None:
    for _ in range(3000):
        with progress.bar("pair", "it", begun=100.0) as shown:
            clock[0] += 0.2
            shown.update(1)
    assert 10 <= len(capsys.readouterr().err.splitlines()) <= 40


def test_a_short_fit_has_its_one_line(capsys) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    for _ in range(2):
        SVC(verbose=True).fit(X, X[:, 0] > 0)
        assert capsys.readouterr().err.count("\n") == 1


def test_a_terminal_gets_a_bar(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress.bar("fit", "it", 4) as shown:
        shown.update(4)
    err = capsys.readouterr().err
    assert "\r" in err and "4/4" in err


def test_many_pairs_are_one_line_without_what_is_not_known(capsys) -> None:
    X = np.random.default_rng(0).normal(size=(90, 2))
    SVC(verbose=True).fit(X, np.arange(90) % 5)
    (line,) = capsys.readouterr().err.splitlines()
    assert "10/10 problem" in line and "-1" not in line and "nan" not in line


class Parts:
    """The last of its parts is done after the last step."""

    def __init__(self, count: int) -> None:
        self.count, self.done = count, 0

    def turns(self):
        for done in range(self.count):
            self.done = done
            yield None
        self.done = self.count

    def progress(self) -> Progress:
        return Progress(self.done, self.count, "part")

    def result(self, status: Status) -> Result:
        return Result(status=status)


@pytest.mark.parametrize("count", [1, 4])
def test_the_last_line_is_about_the_end(clock, capsys, count) -> None:
    """Also of what was done after the last step."""
    run(Parts(count), Control(verbose=True, begun=100.0))
    assert capsys.readouterr().err.splitlines()[-1] == f"fit: 0.0 s, {count}/{count} part"


def test_a_line_is_in_the_file_when_it_is_written(clock, monkeypatch, tmp_path) -> None:
    """Not when a buffer is full: whoever looks at the log of a fit wants to know where it stands now."""
    with open(tmp_path / "log", "w", buffering=1 << 16) as log:
        monkeypatch.setattr("sys.stderr", log)
        with progress.bar("fit", "it", 4) as shown:
            clock[0] += 2.0
            shown.update(3)
            assert (tmp_path / "log").read_text() == "fit: 2.0 s, 3/4 it\n"
