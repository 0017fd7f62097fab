"""The same suite everywhere: property tests draw the same examples in every run, and Ctrl-C can be tested.

A red suite then means a change and not luck. To search for new examples: HYPOTHESIS_PROFILE=explore make unit, or make
fuzz, which draws MAXMARGIN_FUZZ of them.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from maxmargin.runtime import interrupt

sys.path.insert(0, str(Path(__file__).parent))  # for helpers of several folders
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.register_profile("fuzz", settings.get_profile("explore"), max_examples=int(os.environ.get("MAXMARGIN_FUZZ", "100")))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fuzz" if "MAXMARGIN_FUZZ" in os.environ else "same"))


@pytest.fixture(autouse=True)
def nobody_pressed_ctrl_c_before() -> None:
    """Two tests in a row that press Ctrl-C are not one user who presses twice."""
    interrupt._last = -float("inf")  # not by monkeypatch, which keeps a test from being run in several threads at once


@pytest.fixture
def fuzz_rounds() -> Callable[[int], int]:
    """How many inputs a fuzz test tries: the few it asks for in the suite, MAXMARGIN_FUZZ of them by `make fuzz`."""
    return lambda few: int(os.environ.get("MAXMARGIN_FUZZ", few))


# A suite started in the background of a shell script inherits "ignore SIGINT", and so would the programs it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
