"""
Native core of maxmargin: loops over samples and features. No globals, no prints, no calls back.
"""

from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


class Matrix:
    """
    A view of samples: dense rows or CSR, float32 or float64. Copies nothing.
    """

    @overload
    @staticmethod
    def dense(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu', writable=False)]) -> Matrix: ...

    @overload
    @staticmethod
    def dense(x: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)]) -> Matrix: ...

    @overload
    @staticmethod
    def csr(data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cols: int) -> Matrix: ...

    @overload
    @staticmethod
    def csr(data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cols: int) -> Matrix: ...

    @overload
    @staticmethod
    def csr(data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cols: int) -> Matrix: ...

    @overload
    @staticmethod
    def csr(data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], cols: int) -> Matrix: ...

    @property
    def shape(self) -> tuple[int, int]: ...

def nonzeros(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
    """How many entries of each of these rows of a dense matrix are not zero."""

@overload
def entries(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None: ...

@overload
def entries(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None: ...

@overload
def entries(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None: ...

@overload
def entries(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """
    Write the nonzeros of these rows of a dense matrix into CSR arrays laid out by indptr.
    """

class Points32:
    """Samples prepared for kernel evaluation in one precision."""

    @overload
    def __init__(self, x: Matrix, kernel: str, gamma: float, coef0: float, degree: int, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> None: ...

    @overload
    def __init__(self, x: Matrix, kernel: str, gamma: float, coef0: float, degree: int, shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], largest_norm: float, threads: int) -> None: ...

    @property
    def shift(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """What is taken off every sample; empty: nothing."""

    @property
    def largest_norm(self) -> float:
        """RBF: the largest γ|x|², after the shift."""

    @property
    def farthest(self) -> float:
        """The largest norm of all rows of the matrix."""

    def like(self, x: Matrix, threads: int) -> Points32:
        """Other samples, scaled and shifted as these."""

    def sum(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points32, other_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
        """sum[c, j] += Σ_i coef[c, i] K(other_rows[i], rows[j])."""

    def sum_by_block(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points32, end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
        """
        sum[b * outputs + c, j] += Σ_i coef[c, i] K(i, rows[j]) over the rows i of block b of `other`.
        """

    def block(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points32, other_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
        """
        out[i, j] = K(other_rows[i], rows[j]); out may have more columns, up to a multiple of 32, of no meaning.
        """

    def neighbour_order(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Places of `rows` in an order where neighbours are close (dense only)."""

    def far_share(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
        """
        About the share of kernel values that are zero by blocks of this order.
        """

class Points64:
    """Samples prepared for kernel evaluation in one precision."""

    @overload
    def __init__(self, x: Matrix, kernel: str, gamma: float, coef0: float, degree: int, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> None: ...

    @overload
    def __init__(self, x: Matrix, kernel: str, gamma: float, coef0: float, degree: int, shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], largest_norm: float, threads: int) -> None: ...

    @property
    def shift(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """What is taken off every sample; empty: nothing."""

    @property
    def largest_norm(self) -> float:
        """RBF: the largest γ|x|², after the shift."""

    @property
    def farthest(self) -> float:
        """The largest norm of all rows of the matrix."""

    def like(self, x: Matrix, threads: int) -> Points64:
        """Other samples, scaled and shifted as these."""

    def sum(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points64, other_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
        """sum[c, j] += Σ_i coef[c, i] K(other_rows[i], rows[j])."""

    def sum_by_block(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points64, end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
        """
        sum[b * outputs + c, j] += Σ_i coef[c, i] K(i, rows[j]) over the rows i of block b of `other`.
        """

    def block(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points64, other_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
        """
        out[i, j] = K(other_rows[i], rows[j]); out may have more columns, up to a multiple of 32, of no meaning.
        """

    def neighbour_order(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Places of `rows` in an order where neighbours are close (dense only)."""

    def far_share(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
        """
        About the share of kernel values that are zero by blocks of this order.
        """

class RowSums32:
    """Kernel sums over rows that are packed once, for single dense samples."""

    def __init__(self, points: Points32, coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def shape(self) -> tuple[int]:
        """That of the intercepts."""

    def decide(self, x: Matrix, intercept: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
        """
        out[j, v] = the sum of output v (of several blocks, of pair v) + intercept[v]; whether all are finite.
        """

class RowSums64:
    """Kernel sums over rows that are packed once, for single dense samples."""

    def __init__(self, points: Points64, coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def shape(self) -> tuple[int]:
        """That of the intercepts."""

    def decide(self, x: Matrix, intercept: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
        """
        out[j, v] = the sum of output v (of several blocks, of pair v) + intercept[v]; whether all are finite.
        """

def row_hashes(x: Matrix, label: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.uint64], dict(shape=(None,))]:
    """
    A 64-bit hash of each row with its label; equal rows have equal hashes.
    """

def spread(alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], unit: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], member: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], owner: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], member_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
    """
    out[r, row] = its share of alpha[r, sample]: a sample's copies take up to unit·weight each, the first ones first.
    """

def rows_equal(x: Matrix, first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.bool_], dict(shape=(None,))]:
    """Whether row first[t] equals row second[t], value by value."""

class Part32:
    """
    A part of the samples of one QP: gradient, variables, and a slice of the kernel rows.
    """

    def __init__(self, points: Points32 | None, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], lo: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], hi: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cache_bytes: int, threads: int, first: int = 0, total: int = -1) -> None: ...

    def restart(self, center: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], lo: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], hi: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Another problem of the same samples: cached rows are kept."""

    @property
    def active(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Ids of the active samples."""

    @property
    def f(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """K·beta by sample; of those left out as it was then."""

    @property
    def beta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """By half and sample, in one dimension."""

    @property
    def support(self) -> int:
        """Samples whose halves do not cancel."""

    @property
    def size(self) -> int: ...

    @property
    def cache_slots(self) -> int: ...

    def extremes(self, everyone: bool = False) -> tuple[float, float, float, float]:
        """
        (max_up of group 0, of group 1, min_low of group 0, of group 1) over the active variables, or all.
        """

    def candidates(self, group: int, k: int, above: float, below: float) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Up to k variables of a group on either side, worst first: (up, up_score, low, low_score).
        """

    def read(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int8], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        (beta, lo, hi, center, group) of samples of this part by half and sample, and their f.
        """

    def write(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """beta of those of the samples that this part holds."""

    def add(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """To f of samples of this part."""

    def add_active(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """To f of the active samples, in the order of `active`."""

    def are_active(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.bool_], dict(shape=(None,))]:
        """Of samples of this part."""

    def tile(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points32, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], awaited: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None), writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        K between distinct samples, padded, valid until the next call; and where each one stands in it. The rows of newcomers that are awaited, numbers among the samples, follow by take_rows.
        """

    def take_rows(self, awaited: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """
        The awaited rows of the last tile, the samples in the order in which they were given to it.
        """

    def missing(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Those of the samples whose kernel row is not cached."""

    def put(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Kernel rows from outside, over the active samples."""

    def update(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points32 | None, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """
        f += Σ coef_i K(·, id_i), the samples being these rows of `points`; returns the number of cache hits.
        """

    def update_into(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points32 | None, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
        """The same into `sum`, by active sample, instead of f."""

    def movable(self, arg0: float, arg1: float, arg2: float, arg3: float, /) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Positions of the samples that could still move, given the extremes."""

    def restrict(self, keep: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Keep the samples at these ascending positions; cached rows lose the other columns.
        """

    def take_back(self, arg0: float, arg1: float, arg2: float, arg3: float, /) -> None:
        """
        Samples left out that could move, given the extremes, are active again, behind the others; then fill().
        """

    @property
    def cached(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Ids of the rows in the cache."""

    def fill(self, begin: int, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points32, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Cached rows of samples, the rows of `points`, at the active positions from `begin` on.
        """

class Part64:
    """
    A part of the samples of one QP: gradient, variables, and a slice of the kernel rows.
    """

    def __init__(self, points: Points64 | None, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], lo: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], hi: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cache_bytes: int, threads: int, first: int = 0, total: int = -1) -> None: ...

    def restart(self, center: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], lo: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], hi: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Another problem of the same samples: cached rows are kept."""

    @property
    def active(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Ids of the active samples."""

    @property
    def f(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """K·beta by sample; of those left out as it was then."""

    @property
    def beta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """By half and sample, in one dimension."""

    @property
    def support(self) -> int:
        """Samples whose halves do not cancel."""

    @property
    def size(self) -> int: ...

    @property
    def cache_slots(self) -> int: ...

    def extremes(self, everyone: bool = False) -> tuple[float, float, float, float]:
        """
        (max_up of group 0, of group 1, min_low of group 0, of group 1) over the active variables, or all.
        """

    def candidates(self, group: int, k: int, above: float, below: float) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        Up to k variables of a group on either side, worst first: (up, up_score, low, low_score).
        """

    def read(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int8], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        (beta, lo, hi, center, group) of samples of this part by half and sample, and their f.
        """

    def write(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """beta of those of the samples that this part holds."""

    def add(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """To f of samples of this part."""

    def add_active(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """To f of the active samples, in the order of `active`."""

    def are_active(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.bool_], dict(shape=(None,))]:
        """Of samples of this part."""

    def tile(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points64, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], awaited: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        K between distinct samples, padded, valid until the next call; and where each one stands in it. The rows of newcomers that are awaited, numbers among the samples, follow by take_rows.
        """

    def take_rows(self, awaited: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """
        The awaited rows of the last tile, the samples in the order in which they were given to it.
        """

    def missing(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Those of the samples whose kernel row is not cached."""

    def put(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], block: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Kernel rows from outside, over the active samples."""

    def update(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points64 | None, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """
        f += Σ coef_i K(·, id_i), the samples being these rows of `points`; returns the number of cache hits.
        """

    def update_into(self, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points64 | None, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
        """The same into `sum`, by active sample, instead of f."""

    def movable(self, arg0: float, arg1: float, arg2: float, arg3: float, /) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Positions of the samples that could still move, given the extremes."""

    def restrict(self, keep: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Keep the samples at these ascending positions; cached rows lose the other columns.
        """

    def take_back(self, arg0: float, arg1: float, arg2: float, arg3: float, /) -> None:
        """
        Samples left out that could move, given the extremes, are active again, behind the others; then fill().
        """

    @property
    def cached(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Ids of the rows in the cache."""

    def fill(self, begin: int, id: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], points: Points64, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Cached rows of samples, the rows of `points`, at the active positions from `begin` on.
        """

class FreeStep:
    """
    Steps on all free variables: what pairs of the same problem have cost since the last.
    """

    def __init__(self) -> None: ...

@overload
def inner_smo(tile: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], lo: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], hi: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], group: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int, tol: float, max_steps: int, all: FreeStep | None = None) -> tuple[int, float]: ...

@overload
def inner_smo(tile: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], lo: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], hi: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], score: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], group: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int, tol: float, max_steps: int, all: FreeStep | None = None) -> tuple[int, float]:
    """
    SMO on a q × q kernel tile (row length padded with finite numbers to a multiple of 16). beta and score are changed in place; `all` goes from one working set of a problem to the next. Returns (steps, violation).
    """

def linear_outputs(x: Matrix, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], begin: int, end: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """
    out_i = sign_i * (<x_i, w> + bias) + shift_i (empty: 0) for begin <= i < end and their second hinges, if there are.
    """

def linear_add_rows(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> int:
    """
    sum += sum over k of coef_k * x[rows_k]; returns the most additions that a term goes through.
    """

def linear_sum_rows(x: Matrix, coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """sum += sum over i of coef_i * x_i; rows whose coef is 0 are not read."""

@overload
def linear_gram(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, precise: bool, gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None: ...

@overload
def linear_gram(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, precise: bool, gram: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Upper triangle of gram += sum of weight * x x', x with the constant feature `bias` unless 0.
    """

def linear_product(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, p: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """
    out = sum of weight * x <x, p> over the rows, x with the constant feature `bias` unless 0.
    """

def linear_norms(x: Matrix, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """out_i = <x_i, x_i>."""

def linear_extents(x: Matrix, largest: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> float:
    """largest_j = max over i of |x_ij|; returns the largest <x_i, x_i>."""

def linear_duals(loss: str, h: float, lazy: float, m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mix: float, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], path: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], float, float, float]:
    """
    Duals at margins (1-mix)*m + mix*other: (changed rows, sign*delta, band, slopes, offset, loss, sum of duals).
    """

def linear_predict(h: float, m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], path: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """
    path = the duals of the rounded hinge that its linearisation promises after the step q from margins m.
    """

def linear_slope(loss: str, h: float, m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: float, threads: int) -> tuple[float, float]:
    """First and second derivative of the smooth risk at margins m + k*q."""

def linear_advance(loss: str, m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: float, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> float:
    """m += k*q; the risk there."""

def hinge_search(m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], quad: float, lin: float, threads: int) -> float:
    """
    argmin over k >= 0 of quad/2 k^2 + lin k + sum of weight * max(0, 1 - m - k q), exactly.
    """

def hinge_slope(m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> float:
    """
    Minus the derivative of that sum just right of k = 0. With the next two: hinge_search over many processes.
    """

def hinge_rises(m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float, threads: int) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    By how much the derivative rises in each of 512 parts of [low, high), beyond them, and elsewhere.
    """

def hinge_bucket(m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], low: float, high: float, bucket: int, threads: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
    """
    Where the hinges of one of those parts are, and by how much the derivative rises at each.
    """

def joint_outputs(x: Matrix, w: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], begin: int, end: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """out[i, c] = <x_i, w_c> + shift_c for begin <= i < end."""

def joint_add(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sum: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """sum[c] += sum of coef_k * x[rows_k] over starts_c <= k < starts_{c+1}."""

def joint_worst(s: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], other: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], mix: float, label: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], threads: int) -> None:
    """
    out_i = the class with the largest joint loss at scores (1-mix)*s + mix*other.
    """

def joint_advance(s: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], k: float, label: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> float:
    """s += k*q; the joint risk there."""

def joint_search(s: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], quad: float, lin: float, far: float, threads: int) -> float:
    """
    argmin over 0 <= k <= far of quad/2 k^2 + lin k + joint risk at s + k q, exactly.
    """

def joint_epoch(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], label: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], v: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], seed: int) -> tuple[float, int]:
    """
    Dual descent for the joint problem, once over the rows: beta (n x K) and the sums v = beta' x. Shuffles rows. (sum of |steps|, samples that moved)
    """

def reduced_problem(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], C: float, balance: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], size: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], level: float, beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    beta = argmax of C b'beta - C^2/2 beta'G beta, beta >= 0, sum <= 1, balance beta = 0, from a feasible beta; returns the intercepts. Cuts have the sizes given, the value that of level.
    """

def descent_epoch(x: Matrix, active: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], count: int, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diag: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, offset: float, above: float, below: float, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], seed: int) -> tuple[int, float, float, float, int]:
    """
    One epoch of dual coordinate descent over the samples active[:count], with one hinge each, or two; targets: empty for 1. (samples left, largest and smallest projected gradient, sum of |steps|, their number).
    """

def linear_chosen_gram(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, place: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Upper triangle of gram += sum of weight * x x' for the features that have a place in it, not -1; places ascend, that of the constant feature `bias` (unless 0) last.
    """

def one_norm_epoch(z: Matrix, features: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], count: int, fresh: bool, curve: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], penalty: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], most_bend: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], seed: int) -> tuple[int, float, int]:
    """
    One epoch of coordinate descent under the 1-norm over features[:count] (rows of z): shuffled if fresh, else those that rest at 0 leave. (features left, largest violation, entries read).
    """

def one_norm_sweeps(H: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], penalty: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], grad: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], calm: float, most: int) -> tuple[int, float]:
    """
    Coordinate descent on the model of Hessian H under the 1-norm, until the violation seen is at most calm; w and the model's gradient move. (sweeps, largest violation of the last).
    """

def linear_mirror(H: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """The lower triangle of H from its upper one."""

@overload
def linear_by_feature(x: Matrix, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], curve: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, value: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def linear_by_feature(x: Matrix, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], curve: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, value: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], index: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def linear_by_feature(x: Matrix, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], curve: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], index: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

@overload
def linear_by_feature(x: Matrix, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], curve: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: float, value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], index: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], start: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    A CSR matrix by features: rows of sign_i * x_ij, the constant feature last unless 0, and their sums of curve * x^2.
    """

class MergeTable:
    """
    Degradation and h of the merging problem on a square grid: the scaled layout, or the uniform one of the paper.
    """

    def __init__(self, degradation: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], mixing: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], uniform: bool) -> None: ...

class BudgetSgd32:
    """Budgeted stochastic gradient descent: model, counters and steps."""

    def __init__(self, budget: int, slots: int, features: int, outputs: int, gamma: float, lam: float, intercept: bool, maintenance: int, search: int, table: MergeTable | None, drop: bool, audit: bool) -> None:
        """
        The table may be None where nothing is looked up. `slots` of the budget will do for the rows to come.
        """

    def run(self, x: Matrix, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        One step per entry of order, a row of x; labels and weights are indexed by row.
        """

    def reduce(self, steps: int) -> None:
        """
        Of a model restored with more than its budget: so many support vectors less, down to the budget.
        """

    def state(self) -> dict[str, Any]:
        """The model as arrays."""

    def restore(self, centres: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], windows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], born: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Take up the state of an earlier run."""

    def take_counters(self) -> dict[str, float]:
        """What happened since they were taken last."""

    @property
    def count(self) -> int: ...

@overload
def budget_decide(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], centres: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gamma: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None: ...

@overload
def budget_decide(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], centres: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gamma: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """out[i, c] = sum_j coef[c, j] exp(-gamma |x_rows[i] - centre_j|^2)."""

@overload
def budget_kernel(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], centres: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], gamma: float, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), device='cpu')], threads: int) -> None: ...

@overload
def budget_kernel(x: Matrix, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], centres: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gamma: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], threads: int) -> None:
    """
    out[i, j] = exp(-gamma |x_rows[i] - centre_j|^2); the entries of a row of out must be neighbours.
    """

class BudgetSgd64:
    """Budgeted stochastic gradient descent: model, counters and steps."""

    def __init__(self, budget: int, slots: int, features: int, outputs: int, gamma: float, lam: float, intercept: bool, maintenance: int, search: int, table: MergeTable | None, drop: bool, audit: bool) -> None:
        """
        The table may be None where nothing is looked up. `slots` of the budget will do for the rows to come.
        """

    def run(self, x: Matrix, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        One step per entry of order, a row of x; labels and weights are indexed by row.
        """

    def reduce(self, steps: int) -> None:
        """
        Of a model restored with more than its budget: so many support vectors less, down to the budget.
        """

    def state(self) -> dict[str, Any]:
        """The model as arrays."""

    def restore(self, centres: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], windows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], born: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], clock: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Take up the state of an earlier run."""

    def take_counters(self) -> dict[str, float]:
        """What happened since they were taken last."""

    @property
    def count(self) -> int: ...

@overload
def nearest_cluster(points: Points32, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points32, other_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]: ...

@overload
def nearest_cluster(points: Points64, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Points64, other_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))]:
    """
    For each of `rows` the cluster c with the smallest offset[c] − 2/|c| Σ K(·, s) over its sampled points s, other_rows[end[c − 1]:end[c]].
    """

class LibsvmReader32:
    """Rows of LIBSVM text, block by block."""

    def __init__(self, lowest: int, highest: int, shift: int, queries: bool, threads: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
        """
        Append a block of whole lines; (offset, reason) of its first fault, (-1, 0) if there is none.
        """

    def expect(self, times: float) -> None:
        """Room for so many times as much as was fed and not taken."""

    def take(self) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], object, Annotated[NDArray[numpy.float32], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        labels, row lengths, indices, values and query numbers so far, and begin again.
        """

    @property
    def lines(self) -> int: ...

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...

class LibsvmReader64:
    """Rows of LIBSVM text, block by block."""

    def __init__(self, lowest: int, highest: int, shift: int, queries: bool, threads: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
        """
        Append a block of whole lines; (offset, reason) of its first fault, (-1, 0) if there is none.
        """

    def expect(self, times: float) -> None:
        """Room for so many times as much as was fed and not taken."""

    def take(self) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))], object, Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        labels, row lengths, indices, values and query numbers so far, and begin again.
        """

    @property
    def lines(self) -> int: ...

    @property
    def low(self) -> int: ...

    @property
    def high(self) -> int: ...

class CsvReader32:
    """Rows of a table of numbers as text, block by block."""

    def __init__(self, delimiter: str, columns: int, label: int, text_labels: bool, threads: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
        """
        Append a block of whole lines; (offset, reason) of its first fault, (-1, 0) if there is none.
        """

    def expect(self, times: float) -> None:
        """Room for so many times as much as was fed and not taken."""

    def take(self) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float32], dict(shape=(None,))]]:
        """labels that are numbers and values so far, and begin again."""

    def bounds(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """Where in the block just fed labels that are text begin and end."""

    @property
    def lines(self) -> int: ...

class CsvReader64:
    """Rows of a table of numbers as text, block by block."""

    def __init__(self, delimiter: str, columns: int, label: int, text_labels: bool, threads: int) -> None: ...

    def feed(self, text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
        """
        Append a block of whole lines; (offset, reason) of its first fault, (-1, 0) if there is none.
        """

    def expect(self, times: float) -> None:
        """Room for so many times as much as was fed and not taken."""

    def take(self) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """labels that are numbers and values so far, and begin again."""

    def bounds(self) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """Where in the block just fed labels that are text begin and end."""

    @property
    def lines(self) -> int: ...

def libsvm_text(x: Matrix, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], queries: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, first: int, last: int, shift: int, threads: int) -> bytes:
    """Rows [first, last) as lines of LIBSVM's format."""

def csv_text(x: Matrix, numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, bytes: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], delimiter: str, first: int, last: int, threads: int) -> bytes:
    """
    Rows [first, last) of a dense matrix as lines, after labels that are numbers or bytes (or none).
    """

class Many32:
    """
    Many small QPs, each of two blocks of samples, one per thread at a time.
    """

    def __init__(self, points: Points32, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int, tol: float, max_rounds: int, max_steps: int, shrinking: bool, cache_bytes: int, whole: bool, threads: int) -> None: ...

    def run(self, seconds: float, left: float) -> int:
        """
        Go on for about so many seconds, of `left` that there are for all; how many problems are done.
        """

    def finish(self, steps: int) -> None:
        """End what is left with at most so many steps each."""

    def judged(self, targets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], magnitude: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Per problem: how it stands (0 waiting, 1 running, 2 converged, 3 stalled, 4 out of rounds, 5 out of steps), rounds, steps, kernel rows; dual, gap, violation, variables that are not 0, largest magnitude m, Σ|β|m, Σ(βm)²; and by group its multiplier, what its sum misses its target by, Σ|β|. One after the other.
        """

    @property
    def whole(self) -> bool:
        """Whether all kernel values are computed beforehand."""

    @property
    def beta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def f(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

class Many64:
    """
    Many small QPs, each of two blocks of samples, one per thread at a time.
    """

    def __init__(self, points: Points64, row: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], end: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int, tol: float, max_rounds: int, max_steps: int, shrinking: bool, cache_bytes: int, whole: bool, threads: int) -> None: ...

    def run(self, seconds: float, left: float) -> int:
        """
        Go on for about so many seconds, of `left` that there are for all; how many problems are done.
        """

    def finish(self, steps: int) -> None:
        """End what is left with at most so many steps each."""

    def judged(self, targets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], magnitude: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Per problem: how it stands (0 waiting, 1 running, 2 converged, 3 stalled, 4 out of rounds, 5 out of steps), rounds, steps, kernel rows; dual, gap, violation, variables that are not 0, largest magnitude m, Σ|β|m, Σ(βm)²; and by group its multiplier, what its sum misses its target by, Σ|β|. One after the other.
        """

    @property
    def whole(self) -> bool:
        """Whether all kernel values are computed beforehand."""

    @property
    def beta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def f(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

class Gram:
    """
    A whole matrix of kernel values, or of what they are made from, in fixed point.
    """

    def __init__(self, n: int, largest: float) -> None: ...

    @property
    def unit(self) -> float:
        """What one step of the fixed point is."""

    def put(self, first: int, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int) -> None:
        """Rows from the first on."""

    def put_distances(self, first: int, dots: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], norm: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], threads: int) -> None:
        """Rows of |x − z| from dot products and squared norms."""

    def fill(self, base: Gram, kernel: str, gamma: float, coef0: float, degree: int, threads: int) -> None:
        """Kernel values from what all gammas have in common."""

    def rows(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Values of some rows."""

class FamilyState:
    """Problems that begin from one another, whatever the kernel."""

    def __init__(self, range: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], parent: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], like: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], unlike: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ratio: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lo: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], hi: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], extra_at: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], extra: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], groups: int, halves: int) -> None: ...

class Family:
    """QPs on one kernel matrix that begin from one another."""

    def __init__(self, gram: Gram, state: FamilyState, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], tol: float, max_steps: int, threads: int) -> None: ...

    def run(self, seconds: float) -> int:
        """Go on for about so many seconds; how many problems are done."""

    def drop(self, problem: int) -> None:
        """Leave out a problem that has not begun and that no other begins from."""

    @property
    def stage(self) -> Annotated[NDArray[numpy.int8], dict(shape=(None,))]:
        """
        0 waiting, 1 running, 2 converged, 3 stalled, 4 out of steps, 5 dropped.
        """

    def solutions(self, first: int, last: int) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.float64], dict(shape=(None,))]]:
        """
        β, f of the samples and f of the extra ones of problems first … last − 1, one after the other.
        """

    @property
    def judged(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        Per problem that is solved: dual, gap, violation, Σ|β|, Σβ²; and by group its multiplier, what its sum misses its target by, Σ|β|. One after the other.
        """

    @property
    def steps(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def turns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def moved(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def begun_moved(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def seconds(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...
ISA: str
