"""What every solver runs on: the loop with clock, progress and Ctrl-C; results; threads; communication."""

from maxmargin.runtime.checkpoints import Checkpoints
from maxmargin.runtime.comm import Comm, Mpi, RankError, Serial, Threads, as_comm
from maxmargin.runtime.deadline import NEVER, Deadline
from maxmargin.runtime.interrupt import deferred_interrupt
from maxmargin.runtime.result import Progress, Result, Status, Turn
from maxmargin.runtime.run import Control, Solver, run, settled, steps
from maxmargin.runtime.several import Several, Total, total
from maxmargin.runtime.threads import blas_threads, thread_count
from maxmargin.runtime.together import agree, or_all_fail, together

__all__ = [
    "NEVER", "Checkpoints", "Comm", "Control", "Deadline", "Mpi", "Progress", "RankError", "Result", "Serial", "Several",
    "Solver", "Status", "Threads", "Total", "Turn", "agree", "as_comm", "blas_threads", "deferred_interrupt", "or_all_fail",
    "run", "settled", "steps", "thread_count", "together", "total",
]  # fmt: skip
