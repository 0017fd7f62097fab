"""LinearSVC and LinearSVR whose rows are spread over ranks: cutting planes and Newton steps, whose sums travel."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from maxmargin.estimators import linear as local
from maxmargin.estimators._base import check_choice
from maxmargin.estimators._linear import LinearMachine, Memory, Samples
from maxmargin.linear import LinearProblem
from maxmargin.linear.over_ranks import RankedProblem
from maxmargin.runtime import together
from maxmargin.spmd._machine import OverRanks

Offered = dict[str, tuple[str, ...]]


class LinearOverRanks(OverRanks, LinearMachine):
    """What the two share; `_offered` are choices of which there are fewer over ranks."""

    _offered: ClassVar[Offered] = {"solver": ("auto", "ocas", "cpa", "newton")}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        with together(self._comm):
            for name, choices in self._offered.items():
                check_choice(name, getattr(self, name), choices)

    @property
    def _problem_type(self) -> Any:
        return LinearProblem if self._comm.size == 1 else partial(RankedProblem, comm=self._comm)

    def _recall(self, data: Samples) -> Memory:
        """What all ranks have from their last fit, as rank 0 has it."""
        memory, comm = super()._recall(data), self._comm
        if comm.size == 1:
            return memory
        cuts = [past.cuts is not None for past in memory.values()]
        points, known = comm.allreduce(np.array([len(memory) > 0, len(memory) > 0 and all(cuts)], np.int64), "min")
        if not points:
            return {}
        first: Memory = comm.bcast(memory)
        return first if known else {k: past._replace(cuts=None) for k, past in first.items()}

    def path(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("path() is for one process: over ranks, fit one C after the other with warm_start=True")

    def fit_file(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "fit_file() is for one process: mpiexec -n P python -m maxmargin.spmd train FILE reads a part on each rank"
        )


class LinearSVC(LinearOverRanks, local.LinearSVC):
    r"""`maxmargin.LinearSVC` on the rows of all ranks of an MPI job.

    `objective_`, `dual_gap_`, `lower_bound_` and `status_` mean what they mean on one machine, the same on all ranks.

    Parameters
    ----------
    solver : {"auto", "ocas", "cpa", "newton"}
        Cutting planes, which send some vectors of weights per turn; Newton steps, which send a matrix, or a vector for each
        of their iterations, and take far fewer turns. "auto" takes Newton steps for up to 1024 features.
    multi_class : {"ovr"}
        The joint problem is for one process.
    penalty : {"l2"}
        So is the 1-norm.
    warm_start : bool, default=False
        As in `maxmargin.LinearSVC`; cuts are used again where every rank has the rows that it had.
    loss, dual, tol, C, fit_intercept, intercept_scaling, class_weight, verbose, random_state, max_iter, max_time, n_jobs, \
callback
        As in `maxmargin.LinearSVC`, the same on all ranks but for verbose, n_jobs and callback. Rank 0 shows the progress.
        A true value of any rank's callback stops all.
    checkpoint, checkpoint_every
        As in `maxmargin.LinearSVC`, of rank 0: any number of ranks goes on from there.

    Examples
    --------
    See `maxmargin.spmd`.
    """

    _local = local.LinearSVC
    _offered: ClassVar[Offered] = {"multi_class": ("ovr",), "penalty": ("l2",), **LinearOverRanks._offered}


class LinearSVR(LinearOverRanks, local.LinearSVR):
    r"""`maxmargin.LinearSVR` on the rows of all ranks of an MPI job.

    Parameters
    ----------
    solver : {"auto", "ocas", "cpa", "newton"}
        As for `maxmargin.spmd.LinearSVC`.
    epsilon, tol, C, loss, fit_intercept, intercept_scaling, dual, verbose, random_state, max_iter, warm_start, max_time, \
n_jobs, callback, checkpoint, checkpoint_every
        As in `maxmargin.LinearSVR`; see `maxmargin.spmd.LinearSVC`.

    Examples
    --------
    See `maxmargin.spmd`.
    """

    _local = local.LinearSVR
