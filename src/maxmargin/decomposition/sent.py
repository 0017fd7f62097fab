"""What goes along with rows that are solved in another process, and how that ends in order."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.options import Options
from maxmargin.kernel_values import Frame, KernelData
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Deadline, deferred_interrupt, drained

T = TypeVar("T")
Stopped = Callable[[], bool]


@dataclass(frozen=True)
class Sent:
    """The same for all: kernel and precision of the rows, and the limits of a run."""

    kernel: Kernel
    dtype: Any
    frame: Frame | None
    options: Options
    max_iter: int
    deadline: Deadline

    def data(self, rows: Any, index: NDArray[np.int64]) -> KernelData:
        """The samples rows[index]."""
        return KernelData(rows, self.kernel, index, self.dtype, self.options.threads, self.frame)


def to_its_end(run: Callable[[Stopped], Generator[Any, None, T]], stopped: Stopped) -> T:
    """What a run returns that asks whether it shall stop: Ctrl-C, and a carrier that says so, end it in order."""
    with deferred_interrupt() as interrupted:
        return drained(run(lambda: interrupted.is_set() or stopped()))
