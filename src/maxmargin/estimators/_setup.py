"""What a kernel machine's fit begins with: samples in their order, the kernel, where its values come from; on all ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.exchange import home_rank, rows_to_all, rows_to_homes
from maxmargin.data.rows import DistinctRows, Hashes, distinct_rows, row_hashes
from maxmargin.decomposition.ending import EPSILON
from maxmargin.decomposition.many import Problem
from maxmargin.decomposition.options import DualResult, Options
from maxmargin.decomposition.state import over
from maxmargin.decomposition.together import Together
from maxmargin.decomposition.working_set import MB
from maxmargin.estimators._checkpoints import HashOrder
from maxmargin.estimators._labelled import Labelled
from maxmargin.estimators._prediction import WORTH_THREADS, dense_if_small
from maxmargin.kernel_values import (
    DealtValues,
    GivenValues,
    KernelData,
    NativeValues,
    Samples,
    SharedValues,
    Values,
    shared_samples,
)  # fmt: skip
from maxmargin.problem.formulations import QP
from maxmargin.problem.kernels import Kernel, resolve_gamma
from maxmargin.runtime import ALONE, Comm, Control, raised_by_all, run, thread_count

if TYPE_CHECKING:
    from maxmargin.estimators._kernel import KernelMachine

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Below this many samples kernel values are float64: it costs milliseconds, and tiny problems end at full accuracy.
_ALWAYS_DOUBLE = 1000
# γ|x|² from which on float32 distances are too rough (1 part in 2000 of the kernel value): data far from the origin in CSR,
# or clusters far from each other.
FAR_OUT = 2000.0


@dataclass(frozen=True)
class Begin:
    """A solution to begin a fit from, by row of X: alphas in units of their bounds, and f where it is known as well.

    `path` is what that f has gone through (State.path), with kernel values of `dtype`.
    """

    shares: FloatArray  # halves × rows
    f: FloatArray | None = None
    path: float = 0.0
    dtype: Any = None

    def known(self, rows: IntArray, alpha: FloatArray, before: FloatArray, dtype: Any) -> tuple[FloatArray, float] | None:
        """f of these rows at `alpha`, which was `before` until its sums were restored: that and rounding are in the path."""
        if self.f is None or self.dtype != dtype:
            return None
        return self.f[rows], self.path + float(np.abs(alpha - before).sum()) / EPSILON + 2 * float(alpha.sum())


class Setup:
    """Samples, kernel and options of one fit, shared by its QPs (one per pair of classes)."""

    def __init__(self, machine: KernelMachine, data: Labelled) -> None:
        self.team = machine._comm  # the ranks that share the fit
        self.comm = self.team if machine._partition == "columns" else ALONE  # those among which the samples are divided
        self.over = over(self.comm)
        self.n_rows = int(over(self.team).of(data.X.shape[0]))
        self.origin: IntArray | None = None  # where samples are divided, the number of each row among those of all ranks
        hashes = None
        if self.comm.size > 1:
            data, self.origin, hashes = dealt(data, self.comm, thread_count(machine.n_jobs))
        elif self.team.size > 1:
            data = gathered(data, self.team)
        X = data.X if callable(machine.kernel) else dense_if_small(data.X, self.n_rows)
        self.machine, self.data, self.X = machine, data, X
        largest = machine._unit() * float(self.over.most(data.effective.max(initial=0.0)))
        # Waking threads costs more than it gains while all kernel values take about a millisecond.
        small = X.shape[0] ** 2 * X.shape[1] < WORTH_THREADS
        self.threads = 1 if small else thread_count(machine.n_jobs)
        mergeable = not (machine.kernel == "precomputed" or machine._objects is not None)
        self.rows: DistinctRows = distinct_rows(
            X, data.target, data.weight, merge=mergeable, threads=self.threads, hashes=hashes
        )
        function = machine.kernel if callable(machine.kernel) and mergeable else None
        gamma = 1.0
        if mergeable and not function:
            with raised_by_all():
                gamma = resolve_gamma(machine.gamma, X, self.rows.index, self.rows.weight, self.over)
        self.kernel = Kernel(
            "precomputed" if not mergeable else "callable" if function else machine.kernel,
            gamma,
            float(machine.coef0),
            int(machine.degree),
            function,
        )
        n = int(self.over.of(len(self.rows.index)))
        self.hash_order = HashOrder(np.arange(len(self.rows.index)), self.comm)  # for checkpoints
        exact = needs_double(n, machine.tol, largest)
        self.dtype: Any = np.float64 if exact else np.float32
        self.options = Options(
            tol=machine.tol,
            working_set_size=machine.working_set_size,
            cache_size=-float(over(self.team).most(-float(machine.cache_size))),  # the least of all ranks
            shrinking=machine.shrinking,
            threads=self.threads,
            inner_solver=machine.inner_solver,
        )
        self._samples: Samples | None = None
        if self.kernel.native:
            if self.dtype == np.float32 and self._prepared().points.largest_norm > FAR_OUT:
                self.dtype, self._samples = np.float64, None
            order = self._prepared().neighbour_order(self.rows.index)
            if order is not None:
                self.rows, self.hash_order = self.rows.reordered(order), HashOrder(order, self.comm)

    def _prepared(self) -> Samples:
        if self._samples is None:
            room = self.options.cache_size * MB / 2
            index, dtype = self.rows.index, self.dtype

            def make(room: float) -> Samples:
                return Samples(self.X, self.kernel, index, dtype, self.threads, room)

            self._samples = make(room) if self.comm.size == 1 else shared_samples(make, room, self.comm)
        return self._samples

    def source(self, chosen: IntArray | None = None) -> Values:
        """Kernel values between the distinct samples (or the chosen ones of them)."""
        rows = self.rows.index if chosen is None else self.rows.index[chosen]
        if not self.kernel.native:
            return GivenValues(self.X, self.kernel, rows, self.dtype, self.threads)
        if self.comm.size > 1:
            return SharedValues(self._prepared(), rows, self.comm)
        if self.team.size > 1:
            return DealtValues(self._prepared(), rows, self.team)
        return NativeValues(self._prepared(), rows)

    def kernel_data(self) -> KernelData:
        """The distinct samples, of which parts are taken, here or by other processes."""
        frame = self._prepared().frame if self.kernel.native else None
        return KernelData(self.X, self.kernel, self.rows.index, self.dtype, self.threads, frame)

    def same_rows(self, last: dict[str, Any] | None) -> bool:
        """Whether the last fit, of which `last` tells, was to the same samples: on all ranks."""
        return self.over.all(last is not None and np.array_equal(last["index"], self.rows.index))

    def expansion(self, coef: FloatArray, code: IntArray) -> tuple[IntArray, Any, FloatArray, IntArray]:
        """Rows of all ranks that have a coefficient, by class and then by number: numbers, features, coefficients, classes.

        `coef` has a column, and `code` an entry, per row held here.
        """
        used = np.flatnonzero(coef.any(axis=0))
        number, code, coef = used if self.origin is None else self.origin[used], code[used], coef[:, used]
        order = np.lexsort((number, code))
        if self.comm.size == 1:
            return number[order], self.machine._support(self.data.X, number[order]), coef[:, order], code[order]
        said = np.concatenate([number[None].view(np.float64), code[None].astype(np.float64), coef]).T
        each = self.comm.allgather(np.ascontiguousarray(said))
        vectors = rows_to_all(self.data.X[used], np.array([len(part) for part in each]), self.comm)
        every = np.ascontiguousarray(np.concatenate(each).T)
        number, code, coef = every[0].view(np.int64), every[1].astype(np.int64), every[2:]
        order = np.lexsort((number, code))
        return number[order], vectors[order], coef[:, order], code[order]

    def solve(self, qp: QP, control: Control, alpha: FloatArray | None = None) -> DualResult:
        """Solve one QP of all samples, from a checkpoint if there is one, else from `alpha`."""
        everyone, halves = np.arange(qp.n), int(self.over.most(qp.n_variables // max(1, qp.n)))
        order, checkpoint = self.hash_order.of([everyone], halves), self.machine._checkpoint(self)
        kept = checkpoint.recalled(order.restored)
        begin = alpha if kept is None else qp.repaired(kept[0]["alpha"], self.over)
        problem = Problem(qp, everyone, (0, 0 if halves == 2 else -1), begin)
        together = Together([problem], self.source, [everyone], self.options, control, self.team)
        whole = run(together, replace(checkpoint.watched(control, order.stored), max_iter=-1))
        result = replace(whole.parts[0], status=whole.status, trace=whole.trace, timings=whole.timings)
        self.widen(result.dtype)
        return result

    def widen(self, dtype: Any) -> None:
        if self.dtype != dtype:
            self.dtype = dtype
            self._samples = None if self._samples is None else self._samples.wider()


def dealt(data: Labelled, comm: Comm, threads: int) -> tuple[Labelled, IntArray, Hashes]:
    """The rows that count, each on the rank where it belongs (data/exchange.py), their numbers among all, their hashes."""
    counts = np.cumsum([0, *(int(n[0]) for n in comm.allgather(np.array([data.X.shape[0]])))])
    number = counts[comm.rank] + np.arange(data.X.shape[0])
    hashes = row_hashes(dense_if_small(data.X, int(counts[-1])), data.target, threads)  # in the form that is put in order
    home = np.where(data.weight > 0, home_rank(hashes, comm.size), -1)
    parts = [np.flatnonzero(home == rank) for rank in range(comm.size)]
    said = np.stack([number.view(np.float64), data.target, data.weight, hashes.view(np.float64)], axis=1)
    each = comm.alltoall([np.ascontiguousarray(said[rows]) for rows in parts])
    X = rows_to_homes(data.X, parts, np.array([len(part) for part in each]), comm)
    numbers, target, weight, hashes = np.ascontiguousarray(np.concatenate(each).T)
    return replace(data, X=X, target=target, weight=weight), numbers.view(np.int64), hashes.view(np.uint64)


def gathered(data: Labelled, team: Comm) -> Labelled:
    """The rows of all ranks on each of them."""
    each = team.allgather(np.stack([data.target, data.weight], axis=1))
    X = rows_to_all(data.X, np.array([len(part) for part in each]), team)
    target, weight = np.ascontiguousarray(np.concatenate(each).T)
    return replace(data, X=X, target=target, weight=weight)


def needs_double(n: int, tol: float, largest: float) -> bool:
    """Whether float32 kernel values would not do for n samples, of whom one has this `largest` bound, or save nothing."""
    return n <= _ALWAYS_DOUBLE or tol <= 1e-5 or largest >= 1e4


def row_numbers(n: int) -> Any:
    """The type of support_: scikit-learn's, unless the rows of all ranks are too many for it."""
    return np.int32 if n < 2**31 else np.int64
