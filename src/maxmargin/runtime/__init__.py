"""What every solver runs on: the loop with clock, progress and Ctrl-C; results; threads; communication."""

from maxmargin.runtime.comm import Comm, Serial
from maxmargin.runtime.result import Result, Status, Turn
from maxmargin.runtime.run import Control, run
from maxmargin.runtime.threads import thread_count

__all__ = ["Comm", "Control", "Result", "Serial", "Status", "Turn", "run", "thread_count"]
