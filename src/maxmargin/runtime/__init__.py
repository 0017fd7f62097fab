"""What every solver runs on: the loop with clock, progress and Ctrl-C; results; threads; communication."""

from maxmargin.runtime.comm import Comm, Mpi, RankError, Serial, Threads, as_comm
from maxmargin.runtime.deadline import NEVER, Deadline
from maxmargin.runtime.interrupt import deferred_interrupt
from maxmargin.runtime.result import Progress, Result, Status, Turn
from maxmargin.runtime.run import Control, Solver, run, settled, steps
from maxmargin.runtime.several import Several, Total, total
from maxmargin.runtime.threads import blas_threads, thread_count

__all__ = [
    "NEVER", "Comm", "Control", "Deadline", "Mpi", "Progress", "RankError", "Result", "Serial", "Several", "Solver",
    "Status", "Threads", "Total", "Turn", "as_comm", "blas_threads", "deferred_interrupt", "run", "settled", "steps",
    "thread_count", "total",
]  # fmt: skip
