"""Rows in blocks on workers, and the clusters of a level solved there, by a carrier that does at once what it is asked."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin import DCSVC, DCSVR
from maxmargin.carriers import ATTEMPTS, GONE, LostError
from maxmargin.divide import level
from maxmargin.divide.remote import AT_ONCE, Afar, Blocks
from maxmargin.runtime import Deadline

sys.path.insert(0, str(Path(__file__).parents[1] / "clusters"))
from subproblems import endless


class Ref:
    def __init__(self, value: Any) -> None:
        self.value = value


class AtOnce:
    """At homes in name only; `log` has the functions, in their order, `gone` what is lost. `deaths` workers die solving."""

    def __init__(self, deaths: int = 0) -> None:
        self.log: list[tuple[str, Any]] = []
        self.gone: set[Ref] = set()
        self.dropped: list[Ref] = []
        self._home: dict[Ref, Any] = {}
        self._deaths = deaths

    def put(self, value: Any, at: Any = None) -> Ref:
        return self.put_all([value], at)[0]

    def put_all(self, values: Any, at: Any = None) -> list[Ref]:
        return [self._kept(value, at) for value in values]

    def _kept(self, value: Any, at: Any) -> Ref:
        ref = Ref(value)
        self._home[ref] = at
        return ref

    def call(self, function: Any, *args: Any, at: Any = None) -> Ref:
        assert not any(isinstance(arg, Ref) and arg in self.gone for arg in args)
        self.log.append((function.__name__, at))
        return self._kept(function(*(arg.value if isinstance(arg, Ref) else arg for arg in args)), at)

    def solve(self, function: Any, *args: Any) -> Ref:
        if self._deaths or args[1] in self.gone:
            if args[1] not in self.gone:
                self._deaths -= 1
                self.log.append(("died", self._home[args[0]]))
            self.gone |= {args[1], lost := Ref(None)}  # the rows were on the same worker
            return lost
        return self.call(function, *args, lambda: False)

    def spread(self, work: Any) -> list[str]:
        return ["a" if i % 2 else "b" for i in range(len(work))]

    def homes(self, refs: Any) -> list[Any]:
        return [GONE if ref in self.gone else self._home[ref] for ref in refs]

    def wait(self, refs: Any, seconds: float) -> Any:
        return refs[:3]

    def get(self, ref: Ref) -> Any:
        if ref in self.gone:
            raise LostError("killed by signal 9")
        return ref.value

    def drop(self, refs: Any) -> None:
        self.dropped += refs


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.integers(1, 5))
def test_blocks_have_the_rows_that_they_were_made_of_and_none_is_kept_without_any(
    seed: int, given_blocks: bool, sparse: bool, rounds: int
) -> None:
    """Rows move any number of times, out of blocks that came with the data or from here; some are lost on the way."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    X: Any = rng.integers(1, 9, (n, 2)).astype(float)
    X = sp.csr_matrix(X) if sparse else X
    plain = lambda rows: rows.toarray() if sparse else rows  # noqa: E731
    carrier, fetched = AtOnce(), []
    place, origin, kept = np.arange(n), None, []
    if given_blocks:
        kept = [carrier.put(X[i::3], f"home {i % 2}") for i in range(min(n, 3))]
        origin = (kept, place % 3, place // 3)
    blocks = Blocks(carrier, n, None if given_blocks else lambda rows: fetched.extend(rows) or X[rows], origin)
    last: dict[int, Ref] = {}  # of each row: the block that it moved into last
    lost = 0
    for _ in range(rounds):
        some = rng.permutation(n)[: int(rng.integers(1, n + 1))]
        lists = [part for part in np.array_split(some, int(rng.integers(1, 12))) if len(part)]
        homes = carrier.spread(lists) if rng.random() < 0.7 else None
        refs = blocks.move(lists, homes)
        for k, (rows, ref) in enumerate(zip(lists, refs, strict=True)):
            np.testing.assert_array_equal(plain(ref.value), plain(X[rows]))
            last.update(dict.fromkeys(rows.tolist(), ref))
            assert given_blocks or homes is None or carrier.homes([ref]) == [homes[k]]
        held = [last[i] for i in range(n) if i in last]
        assert set(blocks.refs.values()) == {*kept, *held}
        for i in last:
            assert blocks.refs[int(blocks.block[i])] is last[i]
            np.testing.assert_array_equal(plain(last[i].value[[int(blocks.place[i])]]), plain(X[[i]]))
        if rng.random() < 0.5:
            rows = lists[0]
            carrier.gone.add(refs[0])
            lost += len(rows)
            if rng.random() < 0.5:  # asked for again at once, or found out when it is moved the next time
                last.update(dict.fromkeys(rows.tolist(), blocks.restore(rows)))
                np.testing.assert_array_equal(plain(last[int(rows[0])].value), plain(X[rows]))
            else:
                for i in rows.tolist():
                    del last[i]
                blocks.move([rows])
                last.update(dict.fromkeys(rows.tolist(), blocks.refs[int(blocks.block[rows[0]])]))
    assert blocks.sent == len(fetched) <= len(set(fetched)) + lost
    assert given_blocks != (blocks.sent > 0)


def test_data_that_are_lost_with_their_blocks_are_an_error() -> None:
    carrier = AtOnce()
    refs = [carrier.put(np.ones((2, 1)), "a"), carrier.put(np.ones((2, 1)), "b")]
    blocks = Blocks(carrier, 4, origin=(refs, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    carrier.gone.add(refs[0])
    blocks.move([np.array([2, 3])])
    with pytest.raises(LostError, match="a partition of the data was lost"):
        blocks.move([np.array([1, 2])])


def test_rows_are_where_they_are_needed_before_anything_is_solved() -> None:
    """A worker of one thread that solves does not hand out rows: whoever waited for them would wait for the QP."""
    tasks, members, data = endless(count=20, deadline=Deadline.after(0.0))
    carrier = AtOnce()
    place = np.arange(len(data.rows))
    origin = ([carrier.put(data.X[i::7], f"home {i % 2}") for i in range(7)], place % 7, place // 7)
    blocks = Blocks(carrier, len(data.rows), origin=origin)
    pieces: list[Any] = []
    list(Afar(tasks, members, blocks, data.known_frame()).solve(pieces))
    names = [name for name, _ in carrier.log]
    assert "solve_order" not in names[: -len(tasks)] and not blocks.sent
    assert names.count("solve_order") == names.count("joined") == len(pieces) == 20 and names.count("picked") <= 8
    assert {home for name, home in carrier.log if name == "joined"} == {"a", "b"}


@pytest.mark.parametrize("deaths", [0, 1, 2, ATTEMPTS - 1])
def test_what_is_lost_with_a_worker_is_solved_again_elsewhere(deaths: int) -> None:
    """As often as it may be; its rows are sent again, and the others' are not."""
    tasks, members, data = endless(count=2, deadline=Deadline.after(0.0))
    carrier, pieces = AtOnce(deaths), []
    blocks = Blocks(carrier, len(data.rows), data.rows_of)
    steps = list(Afar(tasks, members, blocks, data.known_frame()).solve(pieces))
    assert sorted(piece.cluster for piece in pieces) == [0, 1] and not carrier.dropped and len(steps) > 1
    assert blocks.sent == (2 + deaths) * 60
    at = [home for name, home in carrier.log if name == "died"]
    assert at[:2] == ["b", "a"][:deaths] and at[2:] == [None] * (deaths - 2)  # then wherever there is somebody


def test_a_subproblem_that_kills_every_worker_says_what_it_needs() -> None:
    tasks, members, data = endless(1)
    blocks = Blocks(AtOnce(100), len(data.rows), data.rows_of)
    with pytest.raises(RuntimeError, match=r"4 workers died .* 60 samples: killed by signal 9.*cache_size.*more"):
        list(Afar(tasks, members, blocks, None).solve([]))


def test_what_nobody_waits_for_any_more_is_dropped() -> None:
    tasks, members, data = endless(count=5, deadline=Deadline.after(0.0))
    carrier, pieces = AtOnce(), []
    going = Afar(tasks, members, Blocks(carrier, len(data.rows), data.rows_of), None).solve(pieces)
    next(going)  # all are sent
    next(going)  # three are back
    going.close()
    assert len(pieces) == 3 and len(carrier.dropped) == 2
    assert not {id(ref.value) for ref in carrier.dropped} & {id(piece.result) for piece in pieces}


def test_many_subproblems_go_in_portions_with_safe_points_between() -> None:
    tasks, members, data = endless(count=AT_ONCE + 1, n=4, deadline=Deadline.after(0.0))
    carrier, pieces = AtOnce(), []
    going = Afar(tasks, members, Blocks(carrier, len(data.rows), data.rows_of), None).solve(pieces)
    for count in (AT_ONCE, AT_ONCE + 1):
        next(going)
        assert [name for name, _ in carrier.log].count("solve_order") == count
    list(going)
    assert sorted(piece.cluster for piece in pieces) == [*range(AT_ONCE + 1)]


PLAN = {"C": 10.0, "gamma": 0.05, "k": 3, "levels": 2, "sample_size": 100, "random_state": 0, "n_jobs": 1}


@pytest.mark.parametrize("kind", ["two", "three", "regression", "sparse", "precomputed", "whole"])
@pytest.mark.parametrize("deaths", [0, 2])
def test_a_fit_by_a_carrier_has_the_bits_of_one_at_home(kind: str, deaths: int, monkeypatch: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 3)) * np.where(np.arange(240) < 20, 30.0, 5.0)[:, None]
    y: Any = np.digitize(X[:, 0], [-3, 3] if kind == "three" else [0])
    options = {**PLAN, "stop_level": 0 if kind == "whole" else 1}
    rows: Any = X
    if kind == "regression":
        y = np.sin(X[:, 0])
    elif kind == "sparse":
        rows = sp.csr_matrix(X * (np.abs(X) > 3))
    elif kind == "precomputed":
        rows, options = np.exp(-0.05 * np.square(X[:, None] - X).sum(axis=2)), {**options, "kernel": "precomputed"}
    machine = DCSVR if kind == "regression" else DCSVC
    here = machine(**options).fit(rows, y)
    carrier = AtOnce(deaths)

    @contextmanager
    def active() -> Any:
        yield carrier

    monkeypatch.setattr(level, "active_carrier", active)
    there = machine(**options).fit(rows, y)
    assert [name for name, _ in carrier.log].count("solve_order") > 5
    assert [name for name, _ in carrier.log].count("died") == deaths
    np.testing.assert_array_equal(there.support_, here.support_)
    plain = [m.dual_coef_.toarray() if sp.issparse(m.dual_coef_) else m.dual_coef_ for m in (there, here)]
    np.testing.assert_array_equal(*plain)
    np.testing.assert_array_equal(there.predict(rows), here.predict(rows))
    assert there.status_ == here.status_ and there.level_objective_ == here.level_objective_
