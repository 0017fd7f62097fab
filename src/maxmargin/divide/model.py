"""The words of divide and conquer: problems, the plan of levels, and what a level gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.divide.clustering import Partition
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel
from maxmargin.runtime import Result

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TABLE = np.dtype(
    [("stage", "U8"), ("level", "i8"), ("clusters", "i8"), ("largest", "i8"), ("n_support", "i8"), ("objective", "f8"),
     ("bound", "f8"), ("time_clustering", "f8"), ("time_solving", "f8")]
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """One QP on the samples `chosen`."""

    qp: QP
    chosen: IntArray


@dataclass(frozen=True)
class Plan:
    """Levels from `levels` (k^levels clusters) down to `stop_level`; 0 is the whole problem."""

    k: int = 4
    levels: int = 4
    stop_level: int = 0
    sample_size: int = 1000
    seed: int = 0
    adaptive: bool = True
    max_iter: int = -1
    deadline: float | None = None  # time.time()
    verbose: bool = False


@dataclass
class LevelModel:
    """A level's solution: alpha of each problem; per cluster and problem the intercept (or the constant of one class)."""

    level: int
    alphas: list[FloatArray]
    intercept: FloatArray  # clusters × problems
    partition: Partition | None = None  # None: one cluster, the whole problem
    f: list[FloatArray] = field(default_factory=list)  # K·β of each problem's samples, within their clusters


@dataclass
class DivideResult(Result):
    """The best level finished, and the table of all levels."""

    model: LevelModel = field(default_factory=lambda: LevelModel(0, [], np.empty((1, 0))))
    levels: NDArray[Any] = field(default_factory=lambda: np.zeros(0, TABLE))
    iterations: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # solver turns per problem
    kernel: Kernel | None = None  # what the clusters of the last level were made with
    samples: list[IntArray] = field(default_factory=list)  # the points each level's clusters were found on
