"""Parquet and Arrow (IPC, Feather) files, by pyarrow: columns of numbers, one of them the label, which may be text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.errors import FormatError
from maxmargin.data.options import Options, Saving, label_column
from maxmargin.data.row_files import VALUES, RowFormat
from maxmargin.data.streams import Source, name_of

Batches = Callable[[int], Iterator[tuple[int, Any]]]


def _pyarrow(name: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{name}: Parquet and Arrow files need pyarrow: pip install 'maxmargin[files]'") from None
    return pyarrow


class _Columns:
    """A file of columns. `batches(row)` gives record batches and the number of the first row of each, up from that row."""

    def __init__(self, schema: Any, rows: int, batches: Batches, options: Options, name: str) -> None:
        self.rows, self._batches, self._name, self._dtype = rows, batches, name, options.dtype
        self._names: list[str] = schema.names
        self._label = None if options.label is None else label_column(options.label, self._names, name)
        self._features = [j for j in range(len(self._names)) if j != self._label]
        self.columns = options.columns(len(self._features), name)
        self._at = self._start = self._end = 0  # the next row; the rows of the batch at hand
        self._batch: Any = None
        self._left: Iterator[tuple[int, Any]] | None = None

    def skip(self, rows: int) -> None:
        self._at += rows

    def take(self, rows: int) -> tuple[Any, Any]:
        x: NDArray[Any] = np.empty((rows, self.columns), self._dtype)
        labels: list[NDArray[Any]] = []
        done = 0
        while done < rows:
            batch = self._next(rows - done)
            count = batch.num_rows
            for k, j in enumerate(self._features):
                x[done : done + count, k] = self._numbers(batch.column(j), j)
            if self._label is not None:
                labels.append(self._texts(batch.column(self._label), self._label))
            done += count
            self._at += count
        if self._label is None:
            return x, None
        return x, np.concatenate(labels) if labels else np.empty(0)

    def stored(self, first: int, last: int) -> int:
        return (last - first) * self.columns

    def _next(self, most: int) -> Any:
        """At most so many rows from the next one on."""
        if self._left is None:
            self._left = self._batches(self._at)
        while self._at >= self._end:
            self._start, self._batch = next(self._left, (0, None))
            if self._batch is None:
                raise FormatError(self._name, "the file has fewer rows than it says")
            self._end = self._start + self._batch.num_rows
        return self._batch.slice(self._at - self._start, most)

    def _numbers(self, column: Any, j: int) -> NDArray[Any]:
        types = _pyarrow(self._name).types
        if not (types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)):
            raise FormatError(self._name, f"column {self._names[j]!r} is of type {column.type}, not of numbers")
        self._complete(column, j)
        return np.asarray(column.to_numpy(zero_copy_only=False))

    def _texts(self, column: Any, j: int) -> NDArray[Any]:
        """Labels: text where the column is text, else numbers."""
        types = _pyarrow(self._name).types
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not (types.is_string(column.type) or types.is_large_string(column.type)):
            return self._numbers(column, j).astype(np.float64)
        self._complete(column, j)
        return np.array(column.to_pylist(), dtype=str)

    def _complete(self, column: Any, j: int) -> None:
        if column.null_count:
            row = self._at + column.is_null().to_pylist().index(True)
            reason = f"column {self._names[j]!r} has no value in row {row} (from 0): fill such values in, or drop their rows"
            raise FormatError(self._name, reason)


def _parquet(pa: Any, file: Any, options: Options, name: str) -> _Columns:
    from pyarrow import parquet

    reader = parquet.ParquetFile(file)
    sizes = [reader.metadata.row_group(k).num_rows for k in range(reader.metadata.num_row_groups)]
    starts = np.cumsum([0, *sizes])

    def batches(row: int) -> Iterator[tuple[int, Any]]:
        group = max(0, int(np.searchsorted(starts, row, side="right")) - 1)
        start = int(starts[group])
        step = max(1, VALUES // max(1, len(reader.schema_arrow.names)))
        for batch in reader.iter_batches(batch_size=step, row_groups=list(range(group, len(sizes)))):
            yield start, batch
            start += batch.num_rows

    return _Columns(reader.schema_arrow, int(starts[-1]), batches, options, name)


def _ipc(pa: Any, file: Any, options: Options, name: str) -> _Columns:
    reader = pa.ipc.open_file(file)
    starts = np.cumsum([0, *(reader.get_batch(k).num_rows for k in range(reader.num_record_batches))])

    def batches(row: int) -> Iterator[tuple[int, Any]]:
        for k in range(reader.num_record_batches):
            if starts[k + 1] > row:
                yield int(starts[k]), reader.get_batch(k)

    return _Columns(reader.schema, int(starts[-1]), batches, options, name)


def _opener(kind: str, columns: Callable[[Any, Any, Options, str], _Columns]) -> Callable[[Source, Options], Any]:
    @contextmanager
    def open_file(source: Source, options: Options) -> Iterator[_Columns]:
        options.refuse(f"{kind} files", "zero_based", "query_id", "header", "delimiter")
        name = name_of(source)
        pa = _pyarrow(name)
        try:
            with ExitStack() as stack:
                file: Any = source
                if isinstance(source, (str, os.PathLike)):
                    file = stack.enter_context(open(source, "rb"))
                yield columns(pa, file, options, name)
        except pa.ArrowException as error:
            raise FormatError(name, f"the {kind} file is damaged or of a kind that is not read ({error})") from None

    return open_file


def _table(pa: Any, x: Any, y: Any, saving: Saving, kind: str) -> Any:
    saving.refuse(f"{kind} files", "zero_based", "queries", "comment", "delimiter")
    columns = [*([] if y is None else [pa.array(y)]), *(pa.array(x[:, j]) for j in range(x.shape[1]))]
    names = saving.header or [*([] if y is None else ["label"]), *(f"x{j}" for j in range(x.shape[1]))]
    if len(names) != len(columns):
        raise ValueError(f"header has {len(names)} names, and the table {len(columns)} columns")
    return pa.table(columns, names=[str(name) for name in names])


def _write_parquet(out: Any, x: Any, y: Any, saving: Saving) -> None:
    pa = _pyarrow("save")
    from pyarrow import parquet

    parquet.write_table(_table(pa, x, y, saving, "Parquet"), out)


def _write_ipc(out: Any, x: Any, y: Any, saving: Saving) -> None:
    pa = _pyarrow("save")
    table = _table(pa, x, y, saving, "Arrow")
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, VALUES // max(1, len(table.schema.names))))


PARQUET = RowFormat(_opener("Parquet", _parquet), _write_parquet)
ARROW = RowFormat(_opener("Arrow", _ipc), _write_ipc)
