"""NumPy's files. npy: one array, a column of it the label. npz: arrays X and y, or the parts of a CSR matrix and y.

A sparse npz has `data, indices, indptr, shape, format` as SciPy's `save_npz` writes them (its `load_npz` reads ours), or
the same with `X_` before each name. Python objects are never loaded. Sizes are checked against the file's own before
memory is taken for them, and CSR parts before they are used.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from maxmargin.data.errors import FormatError
from maxmargin.data.options import Label, Options, Saving, label_column
from maxmargin.data.row_files import VALUES, RowFile, RowFormat
from maxmargin.data.streams import BLOCK, Source, name_of

_DEFLATE = 1032  # bytes that a byte can unpack to, at most
_CSR = ("data", "indices", "indptr", "shape")


class _Array:
    """An array inside a file: its header at once, its rows in order."""

    def __init__(self, stream: Any, size: int, name: str) -> None:
        self._stream, self._name = stream, name
        try:
            read = {1: npy.read_array_header_1_0, 2: npy.read_array_header_2_0}[npy.read_magic(stream)[0]]
            self.shape, fortran, self.dtype = read(stream)
        except Exception as error:  # whatever NumPy's parser meets in bytes that are no header
            raise FormatError(name, f"this is no array of NumPy's ({error})") from None
        if self.dtype.kind not in "fiubU" or not self.dtype.itemsize:
            raise FormatError(name, f"the array has dtype {self.dtype}: numbers are needed, and Python objects never loaded")
        if len(self.shape) not in (1, 2) or min(self.shape) < 0:
            raise FormatError(name, f"the array has shape {self.shape}: one or two dimensions are needed")
        self._width = self.shape[1] if len(self.shape) == 2 else 1
        left = size - stream.tell()
        if self.shape[0] * self._width * self.dtype.itemsize != left:
            raise FormatError(name, f"{left} bytes are no {self.dtype} array of shape {self.shape}: the file is damaged")
        self._at = 0
        self._columns = self._read(self.shape[0]).reshape(self.shape[::-1]).T if fortran else None

    def skip(self, rows: int) -> None:
        """Pass over so many rows."""
        step = max(1, VALUES // max(1, self._width))
        for first in range(0, rows, step):
            self.take(min(step, rows - first))

    def take(self, rows: int) -> NDArray[Any]:
        """The next so many rows."""
        self._at += rows
        if self._columns is not None:
            return np.asarray(self._columns[self._at - rows : self._at])
        return self._read(rows).reshape(rows, *self.shape[1:])

    def _read(self, rows: int) -> NDArray[Any]:
        out: NDArray[Any] = np.empty(rows * self._width, self.dtype)
        view = out.view(np.uint8).data
        done = 0
        while done < len(view):
            count = self._stream.readinto(view[done : done + BLOCK])
            if not count:
                raise FormatError(self._name, "the file was cut short")
            done += count
        return out


class _Dense:
    """Arrays X and y, or one array with the label in a column."""

    def __init__(self, x: _Array, y: _Array | None, label: Label, options: Options, name: str) -> None:
        self.rows, columns = _numbers(x, 2, name).shape
        self._label = None if label is None else label_column(label, columns, name)
        self.columns = options.columns(columns - (label is not None), name)
        self._x, self._y, self._dtype = x, y, options.dtype

    def skip(self, rows: int) -> None:
        self._x.skip(rows)
        if self._y is not None:
            self._y.skip(rows)

    def take(self, rows: int) -> tuple[Any, Any]:
        y = None if self._y is None else _labels(self._y.take(rows))
        if self._label is None and self._x.dtype == self._dtype:
            return np.ascontiguousarray(self._x.take(rows)), y
        x: NDArray[Any] = np.empty((rows, self.columns), self._dtype)
        step = max(1, VALUES // max(1, self.columns))
        for first in range(0, rows, step):
            last = min(first + step, rows)
            block = self._x.take(last - first)
            if self._label is None:
                x[first:last] = block
                continue
            y = np.empty(rows) if y is None else y
            y[first:last] = block[:, self._label]
            x[first:last, : self._label] = block[:, : self._label]
            x[first:last, self._label :] = block[:, self._label + 1 :]
        return x, np.empty(0) if y is None and self._label is not None else y

    def stored(self, first: int, last: int) -> int:
        return (last - first) * self.columns


class _Sparse:
    """The parts of a CSR matrix, and y."""

    def __init__(self, parts: dict[str, _Array], y: _Array | None, options: Options, name: str) -> None:
        shape = _numbers(parts["shape"], 1, name).take(parts["shape"].shape[0]).tolist()
        if len(shape) != 2 or any(n < 0 or n != int(n) for n in shape):
            raise FormatError(name, f"{shape} is no shape of a matrix")
        self.rows, self.columns = int(shape[0]), options.columns(int(shape[1]), name)
        self._indptr = _whole(parts["indptr"], parts["indptr"].shape[0], name)
        stored = self._indptr[-1] if len(self._indptr) else -1
        for part in ("data", "indices"):
            if _numbers(parts[part], 1, name).shape[0] != stored:
                raise FormatError(name, f"indptr ends with {stored}, and {part} has {parts[part].shape[0]} elements")
        if len(self._indptr) != self.rows + 1 or self._indptr[0] != 0 or (np.diff(self._indptr) < 0).any():
            raise FormatError(name, f"indptr does not lay out {self.rows} rows")
        self._parts, self._y, self._name, self._dtype, self._at = parts, y, name, options.dtype, 0

    def skip(self, rows: int) -> None:
        first, last = self._indptr[self._at], self._indptr[self._at + rows]
        for part in ("data", "indices"):
            self._parts[part].skip(int(last - first))
        if self._y is not None:
            self._y.skip(rows)
        self._at += rows

    def take(self, rows: int) -> tuple[Any, Any]:
        indptr = self._indptr[self._at : self._at + rows + 1] - self._indptr[self._at]
        self._at += rows
        indices = _whole(self._parts["indices"], int(indptr[-1]), self._name)
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.columns:
            raise FormatError(self._name, f"column {indices.min()} or {indices.max()} is not among the {self.columns}")
        data = self._parts["data"].take(int(indptr[-1])).astype(self._dtype, copy=False)
        kind = np.int32 if max(len(data), self.columns) <= np.iinfo(np.int32).max else np.int64
        x = sp.csr_matrix((data, indices.astype(kind), indptr.astype(kind)), shape=(rows, self.columns))
        x.sort_indices()
        if not x.has_canonical_format:
            raise FormatError(self._name, "a column stands twice in one row")
        return x, None if self._y is None else _labels(self._y.take(rows))

    def stored(self, first: int, last: int) -> int:
        return int(self._indptr[last] - self._indptr[first])


def _numbers(array: _Array, dimensions: int, name: str) -> _Array:
    if len(array.shape) != dimensions or array.dtype.kind == "U":
        raise FormatError(name, f"an array of {array.dtype} and shape {array.shape} is not {dimensions}-dimensional numbers")
    return array


def _whole(array: _Array, count: int, name: str) -> NDArray[np.int64]:
    """Elements that must be whole numbers."""
    if _numbers(array, 1, name).dtype.kind not in "iu":
        raise FormatError(name, f"an array of {array.dtype} cannot be indices")
    return array.take(count).astype(np.int64)


def _labels(y: NDArray[Any]) -> NDArray[Any]:
    return y if y.dtype.kind == "U" else y.astype(np.float64)


@contextmanager
def _npy(source: Source, options: Options) -> Iterator[RowFile]:
    options.refuse("an npy file", "zero_based", "query_id", "header", "delimiter")
    with ExitStack() as stack:
        file: Any = stack.enter_context(open(source, "rb")) if isinstance(source, (str, os.PathLike)) else source
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        name = name_of(source)
        yield _Dense(_Array(file, size, name), None, options.label, options, name)


@contextmanager
def _npz(source: Source, options: Options) -> Iterator[RowFile]:
    options.refuse("an npz file", "zero_based", "query_id", "header", "delimiter")
    name = name_of(source)
    try:
        with zipfile.ZipFile(source) as archive, ExitStack() as stack:
            yield _members(archive, stack, options, name)
    except (ValueError, OSError, MemoryError):
        raise
    except Exception as error:  # zipfile and zlib have many for bytes that are no archive
        raise FormatError(name, f"the npz file is damaged ({type(error).__name__}: {error})") from None


def _members(archive: zipfile.ZipFile, stack: ExitStack, options: Options, name: str) -> RowFile:
    infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    def array(key: str) -> _Array:
        info = infos[key]
        stored, deflated = info.compress_type == zipfile.ZIP_STORED, info.compress_type == zipfile.ZIP_DEFLATED
        if not (stored or deflated) or info.file_size > info.compress_size * (_DEFLATE if deflated else 1):
            raise FormatError(name, f"{key} is damaged, or not packed as NumPy does")
        return _Array(stack.enter_context(archive.open(info)), info.file_size, f"{name}, {key}")

    y = None
    if options.label is not None:
        label = "y" if options.label == 0 else options.label
        if label not in infos:
            raise ValueError(f"{name} has no array {label!r}, but {', '.join(infos)}: name the labels', or pass label=None")
        y = array(str(label))
        if len(y.shape) != 1:
            raise FormatError(name, f"{label} has shape {y.shape}: one label per row is needed")
    if "X" in infos:
        found: RowFile = _Dense(array("X"), y, None, options, name)
    else:
        prefix = next((p for p in ("", "X_") if all(p + part in infos for part in _CSR)), None)
        if prefix is None:
            raise FormatError(name, f"there is neither X nor the parts of a CSR matrix, but {', '.join(infos)}")
        if prefix + "format" in infos:
            _check_format(archive, infos[prefix + "format"], name)
        found = _Sparse({part: array(prefix + part) for part in _CSR}, y, options, name)
    if y is not None and y.shape[0] != found.rows:
        raise FormatError(name, f"{found.rows} rows have {y.shape[0]} labels")
    return found


def _check_format(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> None:
    """SciPy keeps matrices of other kinds under the same names."""
    text = archive.read(info) if info.file_size < 1000 else b""  # three letters and a header
    if not text.replace(b"\0", b"").endswith(b"csr"):
        raise FormatError(name, "the matrix is sparse, but not CSR: save it with .tocsr()")


def _write_npy(out: Any, x: Any, y: Any, saving: Saving) -> None:
    saving.refuse("an npy file", "zero_based", "queries", "comment", "header", "delimiter")
    if y is not None and y.dtype != np.float64:
        raise ValueError("an npy file needs a number as the label of each row: encode other labels, or use npz or CSV")
    if y is not None:
        with np.errstate(over="ignore"):
            narrow = y.astype(x.dtype)
        x = np.column_stack([narrow if np.array_equal(narrow, y, equal_nan=True) else y, x])
    np.save(out, x, allow_pickle=False)


def _write_npz(out: Any, x: Any, y: Any, saving: Saving) -> None:
    saving.refuse("an npz file", "zero_based", "queries", "comment", "header", "delimiter")
    arrays = {} if y is None else {"y": y}
    if sp.issparse(x):
        arrays |= {part: getattr(x, part) for part in _CSR[:3]} | {"shape": np.array(x.shape), "format": np.array("csr")}
    else:
        arrays["X"] = x
    np.savez(out, **arrays)


NPY = RowFormat(_npy, _write_npy)
NPZ = RowFormat(_npz, _write_npz)
