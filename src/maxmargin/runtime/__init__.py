"""What every solver runs on: the loop with clock, progress and Ctrl-C; results; threads; communication."""

from maxmargin.runtime.blas import one_blas_thread
from maxmargin.runtime.checkpoints import Checkpoints
from maxmargin.runtime.comm import ALONE, Comm, Mpi, RankError, Serial, as_comm
from maxmargin.runtime.deadline import NEVER, Deadline
from maxmargin.runtime.interrupt import deferred_interrupt
from maxmargin.runtime.rank_sums import RankSums
from maxmargin.runtime.rank_threads import Threads
from maxmargin.runtime.result import Progress, Result, Status, Turn
from maxmargin.runtime.run import Control, Solver, drained, run, settled, steps
from maxmargin.runtime.several import Several, Total, total
from maxmargin.runtime.threads import thread_count
from maxmargin.runtime.together import agree, known_to_all, or_all_fail, raised_by_all, together

__all__ = [
    "ALONE", "NEVER", "Checkpoints", "Comm", "Control", "Deadline", "Mpi", "Progress", "RankError", "RankSums", "Result",
    "Serial", "Several", "Solver", "Status", "Threads", "Total", "Turn", "agree", "as_comm", "deferred_interrupt", "drained",
    "known_to_all", "one_blas_thread", "or_all_fail", "raised_by_all", "run", "settled", "steps", "thread_count",
    "together", "total",
]  # fmt: skip
