"""SVC, NuSVC, SVR, NuSVR and OneClassSVM whose rows are spread over ranks: decomposition by columns (docs/mpi.md)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from maxmargin.estimators import oneclass, svc, svr
from maxmargin.estimators._base import check_choice
from maxmargin.estimators._kernel import KernelMachine
from maxmargin.problem.kernels import NATIVE
from maxmargin.runtime import Result, together
from maxmargin.spmd._machine import OverRanks


class OverColumns(OverRanks, KernelMachine):
    """A kernel machine whose samples, and with them the columns of the kernel matrix, are dealt to the ranks."""

    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, comm: Any = None, *, partition: str = "columns"
    ) -> Any:
        """Fit to the rows of all ranks, as `OverRanks.fit`.

        With partition="rows" every rank holds all rows and computes a share of the kernel rows, as the PSMO paper has it:
        more is sent, and memory does not shrink with the number of ranks. It is there for comparison.
        """
        self._partition = partition
        try:
            return super().fit(X, y, sample_weight, comm)
        finally:
            self.__dict__.pop("_partition", None)

    def _check_parameters(self) -> None:
        with together(self._comm):
            check_choice("partition", self._partition, ["columns", "rows"])
            if getattr(self, "probability", False) is True:
                raise ValueError("probability=True is not available over ranks: calibrate the machine on held-out rows")
            if self._comm.size > 1:
                check_choice("kernel", self.kernel if isinstance(self.kernel, str) else "a function", NATIVE)
        super()._check_parameters()

    def _publish(self, result: Result, **attributes: Any) -> None:
        result.trace = self._comm.bcast(result.trace)  # its times: one model on all ranks
        super()._publish(result, **attributes)


class SVC(OverColumns, svc.SVC):
    """`maxmargin.SVC` fitted to the rows of all ranks of an MPI job, which end with the same model.

    Parameters and attributes are those of `maxmargin.SVC`; kernels are those of the core ("precomputed" and functions are
    not). `support_` counts the rows of all ranks, those of rank 0 first. `timings_` are this rank's. The file of
    `checkpoint`, which rank 0 reads and writes, serves any number of ranks, and `maxmargin.SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.runtime import Threads
    >>> from maxmargin.spmd import SVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> def fit(comm):  # in an MPI job: SVC(C=10).fit(the rows of this rank)
    ...     return SVC(C=10).fit(X[comm.rank :: comm.size], y[comm.rank :: comm.size], comm=comm)
    >>> models = Threads.run(3, fit)
    >>> models[0].status_, all(np.array_equal(model.dual_coef_, models[0].dual_coef_) for model in models)
    ('converged', True)
    """

    _local = svc.SVC


class NuSVC(OverColumns, svc.NuSVC):
    """`maxmargin.NuSVC` fitted to the rows of all ranks of an MPI job; see `maxmargin.spmd.SVC`."""

    _local = svc.NuSVC


class SVR(OverColumns, svr.SVR):
    """`maxmargin.SVR` fitted to the rows of all ranks of an MPI job; see `maxmargin.spmd.SVC`."""

    _local = svr.SVR


class NuSVR(OverColumns, svr.NuSVR):
    """`maxmargin.NuSVR` fitted to the rows of all ranks of an MPI job; see `maxmargin.spmd.SVC`."""

    _local = svr.NuSVR


class OneClassSVM(OverColumns, oneclass.OneClassSVM):
    """`maxmargin.OneClassSVM` fitted to the rows of all ranks of an MPI job; see `maxmargin.spmd.SVC`."""

    _local = oneclass.OneClassSVM
