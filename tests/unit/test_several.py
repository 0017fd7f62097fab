"""Several problems behind one run: shares of time, limits, order, errors, what a stop leaves."""

from __future__ import annotations

import time

import numpy as np
import pytest

from maxmargin.runtime import Control, Deadline, Result, Several, Status, Turn, run


class Counting:
    """Counts to `length`, one turn each; its result says how far it came."""

    def __init__(self, k: int, deadline: Deadline, length: int, pause: float = 0.0) -> None:
        self.k, self.deadline, self.length, self.pause, self.made = k, deadline, length, pause, 0

    def turns(self):
        for _ in range(self.length):
            time.sleep(self.pause)
            self.made += 1
            yield None
            yield Turn(np.nan, float(self.made), 1.0, self.made)

    def result(self, status: Status) -> Result:
        return Result(status=status, objective=float(self.made), gap=0.5, violation=float(self.k), n_support=self.made)


def lengths(*each: int, **options):
    return Several(lambda k, deadline: Counting(k, deadline, each[k]), len(each), **options)


@pytest.mark.parametrize("options", [{}, {"take_turns": True}, {"workers": 2}, {"workers": 3, "ordered": True}])
def test_all_problems_are_solved_and_their_numbers_add_up(options) -> None:
    result = run(lengths(3, 1, 4, 2, **options), Control())
    assert result.status is Status.CONVERGED
    for name in ("objective", "n_iter"):
        assert [getattr(part, name) for part in result.parts] == [3, 1, 4, 2]
    assert result.objective == 10 and result.gap == 2 and result.violation == 3 and result.n_support == 10
    trace = result.trace
    assert len(trace) == 11 and trace["problem"][-1] == -1 and trace["objective"][-1] == 10
    for k, length in enumerate((3, 1, 4, 2)):
        assert trace["dual"][trace["problem"] == k].tolist() == list(range(1, length + 1))


def test_the_first_may_have_nobody_beside_them() -> None:
    """Whoever is alone ends before another begins; the others overlap."""
    at_work, seen = set(), []

    class Watched(Counting):
        def turns(self):
            at_work.add(self.k)
            for turn in super().turns():
                seen.append(set(at_work))
                yield turn
            at_work.discard(self.k)

    several = Several(lambda k, deadline: Watched(k, deadline, 4, 0.002), 5, workers=2, alone=2)
    assert [part.objective for part in run(several, Control()).parts] == [4] * 5
    assert {0} in seen and {1} in seen and all(len(some) == 1 for some in seen if some & {0, 1})
    assert max(map(len, seen)) == 2


def test_turns_had_before_count_with_the_others() -> None:
    result = run(lengths(3, 3, 0, max_turns=4, before=[0, 2, 6]), Control())
    assert [part.n_iter for part in result.parts] == [3, 4, 6]
    assert [part.status for part in result.parts] == [Status.CONVERGED, Status.MAX_ITER, Status.CONVERGED]


def test_one_after_the_other_or_in_turn() -> None:
    def order(**options):
        return run(lengths(2, 2, 1, **options), Control()).trace["problem"][:-1].tolist()

    assert order() == [0, 0, 1, 1, 2]
    assert order(take_turns=True) == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rows_of_the_trace_call_a_problem_by_its_number(count: int) -> None:
    """The one given, or its place; a single one has a number only if one is given."""
    given = run(lengths(*[1] * count, numbers=[7, 3, 5][:count]), Control()).trace
    assert given["problem"][:count].tolist() == [7, 3, 5][:count]
    plain = run(lengths(*[1] * count), Control()).trace
    assert ("problem" in plain.dtype.names) == (count > 1)
    assert count == 1 or plain["problem"].tolist() == [*range(count), -1]


def test_a_limit_on_the_turns_of_each() -> None:
    result = run(lengths(3, 1, 5, max_turns=2), Control())
    assert [part.status for part in result.parts] == [Status.MAX_ITER, Status.CONVERGED, Status.MAX_ITER]
    assert [part.objective for part in result.parts] == [2, 1, 2] and result.status is Status.MAX_ITER


def test_a_problem_that_wants_all_the_time_gets_its_share() -> None:
    control = Control(max_time=0.4)
    several = Several(
        lambda k, deadline: Counting(k, deadline, 10**6 if k == 0 else 2, 0.001), 4, deadline=control.deadline, at_least=1
    )
    result = run(several, control)
    assert [part.status for part in result.parts] == [Status.MAX_TIME] + 3 * [Status.CONVERGED]


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_shares_are_equal_parts_of_what_is_left_and_after_a_stop_all_of_it(stop: int) -> None:
    """One turn each, which takes nothing of so much time; the run is stopped after some of them."""
    control = Control(max_time=1e9, callback=lambda row: row["iteration"] == stop)
    given: dict[int, float | None] = {}

    def make(k: int, deadline: Deadline) -> Counting:
        given[k] = deadline.left()
        return Counting(k, deadline, 1)

    run(Several(make, 4, deadline=control.deadline), control)
    assert [given[k] for k in range(4)] == pytest.approx([1e9 / (4 - k if k < stop else 1) for k in range(4)], rel=1e-3)


@pytest.mark.parametrize("at_least", [0, 1])
def test_a_stop_keeps_what_there_is_of_every_problem(at_least: int) -> None:
    control = Control(callback=lambda row: row["iteration"] == 4)
    result = run(lengths(3, 3, 3, at_least=at_least), control)
    assert [part.objective for part in result.parts] == [3, 1, at_least]
    assert result.status is Status.CALLBACK and result.parts[0].status is Status.CONVERGED


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_problem_reaches_the_caller(workers: int) -> None:
    class Broken(Counting):
        def turns(self):
            raise ArithmeticError("problem 3 is broken")
            yield

    several = Several(lambda k, d: (Broken if k == 3 else Counting)(k, d, 2), 5, workers=workers)
    with pytest.raises(ArithmeticError, match="problem 3"):
        run(several, Control())


def test_progress_is_in_problems() -> None:
    several = lengths(2, 1)
    before = several.progress()
    run(several, Control())
    after = several.progress()
    assert (before.done, before.total, after.done, after.total) == (0, 2, 2, 2)
