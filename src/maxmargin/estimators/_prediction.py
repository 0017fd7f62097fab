"""Σ_i coef_i K(sv_i, x) of a fitted kernel machine: support vectors prepared once, class by class, or through w.

    two classes, regression, one-class    one sum over all support vectors
    several classes     pair (i, j) has the support vectors of its two classes only, so that all pairs together need
                        S_c[r] = Σ_{sv in class c} dual_coef[r, sv] K(sv, x), classes × (classes − 1) sums:
                        pair (i, j) = S_i[j − 1] + S_j[i]
    linear kernel       ⟨w, x⟩ with a w for each pair, where that is less work

All sums are in float64, and those of a row do not depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import is_
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.matrix import as_matrix
from maxmargin.estimators.multiclass import pairs_of_classes
from maxmargin.kernel_values import Samples
from maxmargin.problem.kernels import Kernel, checked_block, weighted_sums
from maxmargin.runtime import thread_count

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

WORTH_THREADS = 10**7  # multiplications in all kernel values from which on threads are used
MOST_WEIGHTS = 1 << 25  # entries of w of all pairs, 256 MB: of more features and classes kernel sums are used
AT_A_TIME = 1 << 22  # values of pairs, 32 MB
FEW = 16  # rows that are decided by the shortest way, one after the other
# Sparse samples are computed with as dense ones, which is no slower, up to so many values of X (1 MB), and where they have
# few features: dense rows are read by whole vectors, and can be put in an order in which kernel values are zero by blocks.
SMALL = 1 << 17
NARROW = 64


@dataclass(eq=False)
class Expansion:
    """The support vectors of a machine, class after class (`counts` of each), and their coefficients."""

    kernel: Kernel
    vectors: Any
    support: IntArray
    counts: IntArray
    coef: FloatArray
    precision: str
    n_jobs: int | None

    def sums(self, x: Any, coef: FloatArray, which: slice = slice(None)) -> FloatArray:
        """Σ_i coef[c, i] K(sv_i, x) over some support vectors, for validated rows x: outputs × rows."""
        count = len(self.support[which])
        out = np.zeros((len(coef), x.shape[0]))
        if not count:  # a run that was stopped before its first turn, or a constant target
            return out
        if self.kernel.native:
            every = np.arange(len(self.support))[which]
            for at, some in row_blocks(x, sp.issparse(self.vectors), self.vectors.dtype):
                out[:, at] = self._native(some, np.ascontiguousarray(coef), every)
            return out
        for at in value_blocks(x.shape[0], count):
            if self.kernel.name == "precomputed":
                values = x[at][:, self.support[which]]
            else:
                assert self.kernel.function is not None
                some = x[at]
                values = checked_block(self.kernel.function(some, self.vectors[which]), (some.shape[0], count))
            out[:, at] = weighted_sums(values, coef).T
        return out

    def finite(self, x: Any, of: Callable[[Expansion, Any], FloatArray], first: int = 0) -> FloatArray:
        """`of` this expansion and x, a row for each of x. Rows that overflow in float32 are computed in float64.

        Where that overflows too, that is an error; `first` is the number of the first row of x.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            values = of(self, x)
            bad = ~np.isfinite(values).all(axis=1)
            if bad.any() and self.precision == "float32" and self.kernel.native:
                values[bad] = of(self._wide, x[bad])
                bad = ~np.isfinite(values).all(axis=1)
        if bad.any():
            raise ValueError(
                f"the decision values of {bad.sum()} rows of X, the first of them row {first + np.argmax(bad)}, are too "
                f"large for float64, with {self.kernel}: scale the features as those of the fit, or lower degree or gamma"
            )
        return values

    @cached_property
    def _wide(self) -> Expansion:
        return replace(self, precision="float64", vectors=self.vectors.astype(np.float64))

    def _native(self, some: Any, coef: FloatArray, which: IntArray) -> FloatArray:
        threads = self.threads(some.shape[0] * len(which) * self.vectors.shape[1])
        out = np.zeros((len(coef), some.shape[0]))
        self._samples.with_threads(threads).sum_at(some, np.arange(some.shape[0]), which, coef, out)
        return out

    def threads(self, work: float) -> int:
        return 1 if work < WORTH_THREADS else thread_count(self.n_jobs)

    @cached_property
    def _samples(self) -> Samples:
        every = np.arange(len(self.support))
        threads = self.threads(float(self.vectors.shape[0]) * self.vectors.shape[1])
        return Samples(self.vectors, self.kernel, every, self.precision, threads, room=np.inf)

    # ---- few rows -------------------------------------------------------------------------------------------------

    def few(self, x: Any, intercept: FloatArray) -> FloatArray | None:
        """The decisions of a few validated rows by the shortest way, the same bits; None where the long way must look."""
        if type(x) is not np.ndarray or len(x) > FEW or self._at_hand is None or np.shape(intercept) != self._at_hand.shape:
            return None
        if x.dtype is not self.vectors.dtype:
            with np.errstate(over="ignore"):
                x = x.astype(self.vectors.dtype, copy=False)
        out = np.empty((len(x), len(intercept)))
        return out if self._at_hand.decide(_core.Matrix.dense(x), intercept, out) else None

    @cached_property
    def _at_hand(self) -> Any:
        """The support vectors packed by the core, if they are few and dense; else None."""
        dense_rows = self.kernel.native and not sp.issparse(self.vectors)
        small = dense_rows and 0 < FEW * self.vectors.size < WORTH_THREADS
        plain = small and self.coef.flags.c_contiguous and self._weights is None
        if not plain or self._samples.held_bytes:
            return None
        several = len(self.counts) > 2
        ends = np.r_[0, np.cumsum(self.counts)] if several else np.array([0, len(self.support)])
        Sums: Any = _core.RowSums32 if self._samples.dtype == np.float32 else _core.RowSums64
        return Sums(self._samples.points, self.coef, ends.astype(np.int64))

    # ---- decisions -----------------------------------------------------------------------------------------------

    def decisions(self, x: Any, intercept: FloatArray) -> FloatArray:
        """The decision value of every pair of classes, or the one output, for validated rows: rows × outputs."""
        if self._weights is not None:
            out = np.empty((x.shape[0], len(self._weights)))
            threads = self.threads(float(x.shape[0]) * self._weights.size)
            for at, some in row_blocks(x, sp.issparse(self.vectors), x.dtype):
                _core.joint_outputs(as_matrix(some), self._weights, intercept, 0, some.shape[0], out[at], threads)
            return out
        if len(self.counts) <= 2:
            return np.asarray(self.sums(x, self.coef).T + intercept)
        i, j = pairs_of_classes(len(self.counts))
        sums = self._class_sums(x)
        return np.asarray((sums[i, j - 1] + sums[j, i]).T + intercept)

    def _class_sums(self, x: Any) -> FloatArray:
        """S of the module's text: class × row of coef × row of x."""
        if not (self.kernel.native and len(self.support)):
            return np.array([self.sums(x, self.coef[:, at], at) for at in self._classes])
        out = np.zeros((len(self.counts) * len(self.coef), x.shape[0]))
        ends = np.r_[0, np.cumsum(self.counts)].astype(np.int64)
        coef = np.ascontiguousarray(self.coef)
        for at, some in row_blocks(x, sp.issparse(self.vectors), self.vectors.dtype):
            threads = self.threads(some.shape[0] * float(self.vectors.shape[0]) * self.vectors.shape[1])
            whole = out if some.shape[0] == x.shape[0] else np.zeros((len(out), some.shape[0]))
            self._samples.with_threads(threads).sum_by_block(some, ends, coef, whole)
            if whole is not out:
                out[:, at] = whole
        return out.reshape(len(self.counts), len(self.coef), x.shape[0])

    def pieces(self, n: int) -> list[slice]:
        """Slices of n rows whose decisions take a moderate amount of memory."""
        step = max(1, AT_A_TIME // max(1, len(self.counts) ** 2))
        return [slice(i, i + step) for i in range(0, n, step)]

    @cached_property
    def _classes(self) -> list[slice]:
        return [slice(a, b) for a, b in pairwise(np.r_[0, np.cumsum(self.counts)])]

    @cached_property
    def _weights(self) -> FloatArray | None:
        """w of every output, if the kernel is linear and these are less work than the kernel values."""
        if self.kernel.name != "linear" or not len(self.support):
            return None
        classes, features = len(self.counts), self.vectors.shape[1]
        pairs = max(1, classes * (classes - 1) // 2)
        if pairs * features > min(MOST_WEIGHTS, len(self.support) * (features + classes - 1)):
            return None
        if classes <= 2:
            return dense(self.coef @ self.vectors)
        each = np.array([dense(self.coef[:, at] @ self.vectors[at]) for at in self._classes])
        i, j = pairs_of_classes(classes)
        return np.ascontiguousarray(each[i, j - 1] + each[j, i])


def dense(matrix: Any) -> FloatArray:
    return np.ascontiguousarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)


_PREPARED: WeakKeyDictionary[Any, tuple[tuple[Any, ...], Any]] = WeakKeyDictionary()  # never pickled or copied with it
R = TypeVar("R")


def remembered(machine: Any, parts: tuple[Any, ...], make: Callable[[], R]) -> R:
    """What `make` made of a machine's parts, as long as each of them is the object it was. Threads may ask at once."""
    found = _PREPARED.get(machine)
    if found is None or len(found[0]) != len(parts) or not all(map(is_, found[0], parts)):
        found = _PREPARED[machine] = parts, make()
    made: R = found[1]
    return made


def prepared(machine: Any) -> Expansion:
    """A machine's expansion, made anew when one of its parts is another object than at the last time."""
    parts = (machine._fitted_kernel, machine.support_vectors_, machine.support_, machine.n_support_,
             machine._coefficients(), machine._precision, machine.n_jobs)  # fmt: skip

    def made() -> Expansion:
        kernel, vectors, support, counts, coef, precision, jobs = parts
        return Expansion(kernel, vectors if kernel.function is not None else dense_if_small(vectors), support, counts, coef,
                         precision, jobs)  # fmt: skip

    return remembered(machine, parts, made)


def dense_if_small(X: Any, rows: int | None = None) -> Any:
    """Few samples, or those of few features, as dense rows: their kernel values have the same bits in whatever form they
    came. `rows`: of all ranks, which must decide alike."""
    count = X.shape[0] if rows is None else rows
    return X.toarray() if sp.issparse(X) and (X.shape[1] <= NARROW or count * X.shape[1] <= SMALL) else X


def value_blocks(n: int, count: int) -> list[slice]:
    """Pieces of n rows, of which kernel values with so many support vectors take 128 MB at most."""
    step = max(1, 2**24 // max(1, count))
    return [slice(i, i + step) for i in range(0, n, step)]


def row_blocks(x: Any, sparse: bool, dtype: Any) -> Iterator[tuple[slice, Any]]:
    """Blocks of rows in the form that the support vectors have; a mismatch is converted block by block."""
    size = max(1024, min(1 << 16, (1 << 24) // x.shape[1]))  # a converted block takes tens of MB at most
    for i in range(0, x.shape[0], size):
        at = slice(i, min(i + size, x.shape[0]))
        some = x[at]
        if sparse and not sp.issparse(some):
            some = sp.csr_matrix(some)
        elif not sparse and sp.issparse(some):
            some = some.toarray()
        with np.errstate(over="ignore"):  # infinity there is no finite sum
            some = some.astype(dtype, copy=False)
        yield at, some
