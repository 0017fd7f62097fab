"""Steps that go on while somebody looks at what came before."""

from __future__ import annotations

import threading
from itertools import count, islice

import pytest

from maxmargin.runtime.ahead import ahead


@pytest.mark.parametrize("beside", [False, True])
def test_what_steps_return_comes_in_their_order_and_none_is_lost(beside: bool) -> None:
    numbers = count()
    with ahead(lambda: next(numbers), beside) as results:
        assert list(islice(results, 20)) == list(range(20))


def test_the_next_step_goes_on_while_the_caller_looks() -> None:
    calls, second = count(1), threading.Event()

    def step() -> int:
        number = next(calls)
        if number == 2:
            second.set()
        return number

    with ahead(step, True) as results:
        assert next(results) == 1
        assert second.wait(60)  # nobody has asked for it


@pytest.mark.parametrize("beside", [False, True])
def test_an_error_of_a_step_is_the_callers(beside: bool) -> None:
    numbers = iter([1])

    def step() -> int:
        for number in numbers:
            return number
        raise ArithmeticError("no more")

    with ahead(step, beside) as results:
        assert next(results) == 1
        with pytest.raises(ArithmeticError, match="no more"):
            next(results)


def test_after_the_block_nothing_goes_on() -> None:
    under_way: list[int] = []

    def step() -> None:
        under_way.append(1)
        threading.Event().wait(0.01)
        under_way.pop()

    with pytest.raises(KeyboardInterrupt), ahead(step, True) as results:
        next(results)
        raise KeyboardInterrupt
    assert not under_way


def test_without_it_no_thread_is_started() -> None:
    with ahead(threading.get_ident, False) as results:
        assert set(islice(results, 3)) == {threading.get_ident()}
