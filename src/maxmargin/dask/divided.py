"""DCSVC and DCSVR on dask collections: rows move to the worker of their cluster once, and are solved there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin.dask.machine import DecidesOnDask, OnDask, no_checkpoint
from maxmargin.dask.partitions import check_memory
from maxmargin.dask.values import PartitionedData, distinct_of, frame_of, gamma_of
from maxmargin.dask.whole import PartitionedWhole
from maxmargin.decomposition.options import Options
from maxmargin.divide.levels import DivideAndConquer
from maxmargin.divide.model import Plan, Problem
from maxmargin.estimators import dc as local
from maxmargin.estimators._checkpoints import HashOrder
from maxmargin.estimators._divided import Divided
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._setup import FAR_OUT, Setup, needs_double
from maxmargin.problem.kernels import Kernel
from maxmargin.problem.sums import HERE
from maxmargin.runtime import ALONE, thread_count


class PartitionedSetup(Setup):
    """As Setup, of facts that the partitions tell."""

    def __init__(self, machine: Any, data: Labelled) -> None:
        X = data.X
        self.team = self.comm = ALONE
        self.over, self.n_rows, self.origin = HERE, X.shape[0], None
        self.machine, self.data, self.X, self._samples = machine, data, X, None
        check_memory(X.client, X.nbytes, copies=2.0)  # the partitions and their clusters
        self.threads = thread_count(machine.n_jobs)
        self.rows = distinct_of(X, data.target, data.weight)
        self.hash_order = HashOrder(np.arange(len(self.rows.index)))
        function = machine.kernel if callable(machine.kernel) else None
        gamma = machine.gamma
        if function is not None:
            gamma = 1.0
        elif isinstance(gamma, str):
            gamma = 1.0 / X.shape[1] if gamma == "auto" else gamma_of(X, data.weight)
        name = "callable" if function else machine.kernel
        self.kernel = Kernel(name, float(gamma), float(machine.coef0), int(machine.degree), function)
        largest = machine._unit() * float(data.effective.max())
        exact = needs_double(len(self.rows.index), machine.tol, largest)
        self.dtype = np.float64 if exact else np.float32
        self.frame = frame_of(X, self.kernel, self.rows.index, self.dtype)
        if not exact and self.frame is not None and self.frame[1] > FAR_OUT:
            self.dtype = np.float64
        self.options = Options(
            tol=machine.tol, working_set_size=machine.working_set_size, cache_size=machine.cache_size,
            shrinking=machine.shrinking, threads=self.threads, inner_solver=machine.inner_solver,
        )  # fmt: skip


class PartitionedDivide(DivideAndConquer):
    """Divide and conquer whose last stage needs no row here."""

    whole_type = PartitionedWhole


class DividedOnDask(Divided):
    """What DCSVC and DCSVR do in another way than on one machine."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        no_checkpoint(self)
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel='precomputed' has no rows that could move to workers: fit maxmargin's own machine, with "
                "joblib.parallel_config('dask') if its clusters are to go there"
            )

    def _setup(self, data: Labelled) -> Setup:
        return PartitionedSetup(self, data)

    def _run(self, setup: Setup, problems: Sequence[Problem], plan: Plan) -> DivideAndConquer:
        assert isinstance(setup, PartitionedSetup)
        data = PartitionedData(setup.X, setup.kernel, setup.rows.index, setup.dtype, setup.threads, setup.frame)
        return PartitionedDivide(problems, data, setup.options, plan)


class DCSVC(DecidesOnDask, DividedOnDask, local.DCSVC):
    """`maxmargin.DCSVC` on dask arrays and frames that live on workers.

    Kernel k-means runs on a sample, here; every row moves to the worker of its cluster; the clusters are solved there, and
    what comes back is alpha and, in the end, the support vectors. The client keeps numbers per row (label, weight, alpha,
    cluster), never X. Workers need memory for two copies of X.

    The levels are those of `maxmargin.DCSVC`. The whole problem (stop_level=0) is solved on a working set that grows, on
    one worker, and judged on all rows: see docs/scaling.md.

    Parameters
    ----------
    client : distributed.Client, optional
        By default the one that was made last.
    C, kernel, gamma, k, levels, stop_level, early, …
        As in `maxmargin.DCSVC`, but for kernel="precomputed". n_jobs are threads of the client; clusters are solved with
        one thread each, as many at a time as the workers have threads.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from maxmargin.dask import DCSVC
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     X = da.random.default_rng(0).normal(size=(2000, 2), chunks=(500, 2))
    ...     y = (X[:, 0] * X[:, 1] > 0).astype(int)
    ...     model = DCSVC(C=10, gamma=1.0, stop_level=1, random_state=0, client=client).fit(X, y)
    ...     model.status_, bool(model.score(X, y) > 0.95)
    ('early', True)
    """

    _local = local.DCSVC


class DCSVR(OnDask, DividedOnDask, local.DCSVR):
    """`maxmargin.DCSVR` on dask arrays and frames that live on workers. Parameters are its own, and `client`.

    Examples
    --------
    As for `maxmargin.dask.DCSVC`.
    """

    _local = local.DCSVR
