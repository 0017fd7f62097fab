"""The words of divide and conquer: problems, the plan of levels, and what a level gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.decomposition.options import DualResult
from maxmargin.divide.clustering import Partition
from maxmargin.problem.formulations import QP
from maxmargin.runtime import NEVER, Deadline, Result, Status

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TABLE = np.dtype(
    [("stage", "U8"), ("level", "i8"), ("clusters", "i8"), ("largest", "i8"), ("n_support", "i8"), ("objective", "f8"),
     ("gap", "f8"), ("bound", "f8"), ("time_clustering", "f8"), ("time_solving", "f8")]
)  # fmt: skip

STAGES = ("clustering", "level", "refine", "whole")  # their numbers are the column `stage` of a trace


@dataclass(frozen=True)
class Problem:
    """One QP on the samples `chosen`."""

    qp: QP
    chosen: IntArray


@dataclass(frozen=True)
class Kept:
    """Where an earlier run was, for one that goes on from there: nothing in it need be believed, all is certified anew."""

    seed: int  # of the clusterings, which come out again as they were
    table: NDArray[Any]  # of the stages that were finished
    level: int = 0  # the last level finished; 0: none
    population: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # what its clusters were sampled from
    finished: list[FloatArray] = field(default_factory=list)  # its alphas
    stage: str = ""  # the one under way: "level", "refine", "whole", or ""
    begun: list[FloatArray] = field(default_factory=list)  # its alphas


@dataclass(frozen=True)
class Plan:
    """Levels from `levels` (k^levels clusters) down to `stop_level`; 0 is the whole problem.

    `look` first whether the problem is so easy that it is solved sooner than divided. `order` are all samples in the order
    of their hashes: what is drawn at random is drawn from that, so that it does not depend on how samples are held.
    """

    k: int = 4
    levels: int = 4
    stop_level: int = 0
    sample_size: int = 1000
    seed: int = 0
    adaptive: bool = True
    max_iter: int = -1
    deadline: Deadline = NEVER
    kept: Kept | None = None
    look: bool = False
    order: IntArray | None = None


def regression_targets(qp: QP) -> FloatArray:
    """y of an ε-SVR: the middle of its tube."""
    return np.asarray(0.5 * (qp.center[: qp.n] + qp.center[qp.n :]))


def best_constant(qp: QP) -> float:
    """What to predict without a machine: the sign of the heavier class, or the weighted median of the targets."""
    if qp.n_variables == qp.n:
        return float(np.sign(qp.upper @ qp.sign))
    target = regression_targets(qp)
    order = np.argsort(target)
    weight = np.cumsum(qp.upper[order])
    return float(target[order[np.searchsorted(weight, 0.5 * weight[-1])]])


@dataclass(frozen=True)
class Certificate:
    """How good a solution is, for a kernel that is 0 between clusters: sums and the worst over its QPs."""

    objective: float
    gap: float
    violation: float
    status: Status  # CONVERGED, or the first that is not

    @classmethod
    def of(cls, results: Sequence[DualResult]) -> Certificate:
        return cls(
            float(sum(r.objective for r in results)),
            float(sum(r.gap for r in results)),
            float(np.max([r.violation for r in results], initial=0.0)),  # NaN if one is unknown
            next((r.status for r in results if r.status is not Status.CONVERGED), Status.CONVERGED),
        )


@dataclass(frozen=True)
class LevelModel:
    """A level's solution: alpha of each problem; per cluster and problem the machine's intercept; how good it is.

    `constant` is what a cluster predicts early instead of asking its machine, NaN where it asks: a cluster of one class
    needs no kernel values to name it, and a cluster that was not solved has no machine.
    """

    level: int
    alphas: list[FloatArray]
    intercept: FloatArray  # clusters × problems
    certificate: Certificate
    partition: Partition | None  # None: one cluster, the whole problem
    f: list[FloatArray]  # K·β of each problem's samples, within their clusters
    constant: FloatArray  # clusters × problems

    @property
    def undivided(self) -> bool:
        """Whether nothing was cut out of the kernel, so that the certificate is that of the whole problem."""
        return self.partition is None or self.partition.n_clusters == 1


def support(problems: Sequence[Problem], alphas: Sequence[FloatArray], n: int) -> NDArray[np.bool_]:
    """Which of the n samples have a non-zero alpha in some problem."""
    out = np.zeros(n, bool)
    for problem, alpha in zip(problems, alphas):
        out[problem.chosen[alpha.reshape(-1, problem.qp.n).any(axis=0)]] = True
    return out


@dataclass
class DivideResult(Result):
    """The best level finished, and the table of all levels. Objective, gap and violation are the whole problem's."""

    model: LevelModel = None  # type: ignore[assignment]  # always given
    levels: NDArray[Any] = field(default_factory=lambda: np.zeros(0, TABLE))
    iterations: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # solver turns per problem
    samples: list[IntArray] = field(default_factory=list)  # the points each level's clusters were found on
