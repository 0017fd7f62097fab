"""LIBSVM's text format: `label index:value index:value ...`, one sample per line, indices from 1 (or 0), `#` comments.

The core reads blocks of whole lines (native/data/libsvm_reader.hpp); this side feeds it, says in words what is wrong
with a line, and makes matrices of what comes back.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from maxmargin import _core
from maxmargin.data.atomic import replacing
from maxmargin.data.description import Description
from maxmargin.data.errors import FormatError
from maxmargin.data.matrix import as_matrix
from maxmargin.data.options import Options, Saving, ZeroBased
from maxmargin.data.streams import BLOCK, Source, blocks, expected, fault, name_of, opened, part_of, quoted

KIND = "LIBSVM text"
_HIGHEST = 10**18 - 1  # as many digits as a 64-bit number always holds
_INT32 = np.iinfo(np.int32).max
_VERSION = 3  # of the cache's layout
_PART = "data-"  # folders of arrays inside a cache
_BUSY = "busy"  # is in such a folder until the process that writes it has mapped it
_FILES = ("values.bin", "indices.bin", "indptr.bin", "labels.bin")
_WRITTEN = 1 << 18  # entries per step: some megabytes of text

# In the order of native/data/libsvm_reader.hpp.
_REASONS = (
    "",
    "the label {token} is not a number",
    "the line begins with {token}: its label is missing",
    "{token} are several labels; a line must have one",
    "{token} is not index:value",
    "the index of {token} is not a whole number ≥ 0",
    "the index of {token} is below 1; if indices count from 0, pass zero_based=True or 'auto'",
    "the index of {token} is beyond {highest}",
    "{token} has no value",
    "the value of {token} is not a number",
    "the index of {token} stands on this line already",
    "{token} is not qid: and a whole number",
    "the line of {token} has no qid, which query_id=True wants on each",
    "{token} must stand between the label and the first pair",
)


@dataclass
class Rows:
    """Samples as they stand in a file: indices less one, unless they are known to count from 0."""

    labels: NDArray[np.float64]
    lengths: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]
    queries: NDArray[np.int64]


class _Reading:
    """One pass over a file."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.shift = 0 if options.zero_based is True else 1
        most = _HIGHEST if options.n_features is None else options.n_features - 1 + self.shift
        self.highest = min(most, _HIGHEST)
        lowest = 1 if options.zero_based is False else 0
        make = _core.LibsvmReader32 if options.dtype == np.float32 else _core.LibsvmReader64
        self.reader = make(lowest, self.highest, self.shift, options.query_id, options.threads)

    def steps(self, source: Source, whole: bool = False) -> Iterator[None]:
        """Feed the file to the reader, a block per step; `whole` if nothing is taken before the end."""
        with opened(source) as file:
            fill, begin = file.fill, 0
            if self.options.part is not None:
                fill, begin = part_of(file, self.options.part)
            for block in blocks(fill, BLOCK):
                offset, reason = self.reader.feed(block)
                if offset >= 0:
                    raise fault(file, begin, self.reader.lines, block, offset, self._words(block, offset, reason))
                if whole:
                    self.reader.expect(expected(file, self.options.part, len(block)))
                    whole = False
                yield

    def take(self) -> Rows:
        return Rows(*self.reader.take())

    def first(self) -> int:
        """What to add to indices as taken: 1 if they turned out to count from 0."""
        return 1 if self.options.zero_based == "auto" and self.reader.low == 0 else 0

    def found(self) -> int:
        """The number of features that the indices so far ask for."""
        return int(self.reader.high) + 1 - self.shift + self.first()

    def _words(self, block: NDArray[np.uint8], offset: int, reason: int) -> str:
        token = re.match(rb"[^\s#]*", block[offset:].tobytes())
        shown = quoted(token.group() if token else b"")
        limit = self.options.n_features
        highest = f"{_HIGHEST}" if limit is None or self.highest == _HIGHEST else f"n_features={limit}"
        return _REASONS[reason].format(token=shown, highest=highest)


def load(source: Source, options: Options) -> tuple[Any, Any, Any]:
    """X (CSR), y and query numbers of a file or of a part of it."""
    _check(options)
    reading = _Reading(options)
    for _ in reading.steps(source, whole=True):
        pass
    return _matrix(reading.take(), reading, source)


def pieces(source: Source, options: Options) -> Iterator[tuple[Any, Any, Any]]:
    """The same, a block of the file at a time. Needs n_features and where indices begin: `describe` tells them."""
    _check(options)
    reading = _Reading(options)
    for _ in reading.steps(source):
        yield _matrix(reading.take(), reading, source)


def describe(source: Source, options: Options) -> Description:
    """One pass that keeps nothing."""
    rows = stored = 0
    reading = _Reading(replace(options, zero_based="auto", n_features=None))
    for _ in reading.steps(source):
        seen = reading.take()
        rows, stored = rows + len(seen.labels), stored + len(seen.indices)
    low, high = reading.reader.low, reading.reader.high
    return Description(rows, stored, low if stored else None, high if stored else None)


def settled(source: Source, options: Options) -> Options:
    """The options with n_features and zero_based known, by a pass over the file if they are not."""
    if options.n_features is not None and options.zero_based != "auto":
        return options
    found = describe(source, options)
    zero_based = found.zero_based if options.zero_based == "auto" else options.zero_based
    columns = found.n_features + (zero_based and not found.zero_based)
    return replace(options, zero_based=zero_based, n_features=columns if options.n_features is None else options.n_features)


def _check(options: Options) -> None:
    options.refuse(KIND, "label", "header", "delimiter")
    if options.part is not None and (options.n_features is None or options.zero_based == "auto"):
        raise ValueError(
            f"part={options.part} of {KIND} needs n_features and zero_based=True or False, as one part does not know the "
            "indices of the others: maxmargin.data.describe(path) finds both"
        )


def _matrix(rows: Rows, reading: _Reading, source: Any) -> tuple[Any, Any, Any]:
    """CSR on the memory of what was read."""
    columns = _columns(reading.found(), reading.options.n_features, name_of(source))
    kind = np.dtype(np.int32 if len(rows.indices) <= _INT32 and columns <= _INT32 else np.int64)
    indices = rows.indices.astype(kind, copy=False)
    if reading.first():
        indices += 1
    indptr: NDArray[Any] = np.zeros(len(rows.labels) + 1, kind)
    np.cumsum(rows.lengths, out=indptr[1:])
    x = sp.csr_matrix((len(rows.labels), columns), dtype=rows.values.dtype)
    x.data, x.indices, x.indptr = rows.values, indices, indptr
    x.has_sorted_indices = x.has_canonical_format = True  # as the reader leaves them
    return x, rows.labels, rows.queries if reading.options.query_id else None


def _columns(found: int, n_features: int | None, name: str) -> int:
    if n_features is not None and found > n_features:  # of an index 0 after a line that has index n_features
        raise FormatError(name, f"indices count from 0, and so feature {found - 1} is beyond n_features={n_features}")
    return max(found, 0) if n_features is None else n_features


def write(out: Any, x: Any, y: Any, saving: Saving) -> None:
    """Lines to a binary file. Stored zeros of a sparse X are written, zeros of a dense one are not."""
    saving.refuse(KIND, "header", "delimiter")
    if y is None or y.dtype != np.float64:
        raise ValueError(f"{KIND} needs a number as the label of each row: encode other labels, or write a CSV file")
    for line in saving.comment.splitlines():
        out.write(f"# {line}\n".encode())
    matrix = as_matrix(x)
    for first, last in row_blocks(x):
        out.write(_core.libsvm_text(matrix, y, saving.queries, first, last, 0 if saving.zero_based else 1, saving.threads))


def row_blocks(x: Any, entries: int = _WRITTEN) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of rows of about so many entries."""
    rows = x.shape[0]
    if not sp.issparse(x):
        step = max(1, entries // max(1, x.shape[1]))
        yield from ((first, min(first + step, rows)) for first in range(0, rows, step))
        return
    first = 0
    while first < rows:
        last = int(np.searchsorted(x.indptr, x.indptr[first] + entries, side="right")) - 1
        last = min(max(last, first + 1), first + entries, rows)  # empty rows are lines, too
        yield first, last
        first = last


def cache_libsvm(
    path: str | os.PathLike[str], cache: str | os.PathLike[str] | None = None, *, n_features: int | None = None,
    zero_based: ZeroBased = "auto", dtype: DTypeLike = np.float32,
) -> tuple[Any, NDArray[np.float64]]:
    """(memory-mapped CSR matrix, labels) of a file, by a binary cache `<name>.cache` beside it or in the folder `cache`.

    The file is read once, in chunks; memory holds one chunk and the row lengths. A cache that was made of this file as it
    is now, with the same options, is used as it is; a damaged one is made again.

    Several processes may do so at once: each writes into a folder of its own inside the cache, and the one small file that
    names the folder in use is replaced in one step. What a process has mapped stays whole when another replaces the cache.
    """
    source = Path(path)
    folder = (Path(cache) if cache is not None else source.parent) / (source.name + ".cache")
    wanted = {"version": _VERSION, "path": str(source.resolve()), **_stamp(source),
              "dtype": np.dtype(dtype).name, "n_features": n_features, "zero_based": zero_based}
    about = _about(folder)
    if about is not None and about["source"] == wanted:
        with suppress(FileNotFoundError):  # another process has just replaced it
            return _mapped(folder, about)
    return _write_cache(source, folder, wanted)


def _stamp(source: Path) -> dict[str, int]:
    """What changes with a file's content."""
    found = source.stat()
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}


def _mapped(folder: Path, about: dict[str, Any]) -> tuple[Any, NDArray[np.float64]]:
    """The arrays of a cache."""
    shape, where = (about["rows"], about["columns"]), folder / about["folder"]

    def view(name: str, kind: str, count: int) -> NDArray[Any]:
        return np.memmap(where / name, dtype=kind, mode="r", shape=(count,)) if count else np.empty(0, kind)

    x = sp.csr_matrix(shape, dtype=about["dtype"])
    x.data = view("values.bin", about["dtype"], about["stored"])
    x.indices = view("indices.bin", about["index"], about["stored"])
    x.indptr = view("indptr.bin", about["index"], shape[0] + 1)
    x.has_sorted_indices = x.has_canonical_format = True  # as written: no pass over the file to find out
    return x, np.fromfile(where / "labels.bin", dtype=np.float64)


def _about(folder: Path) -> dict[str, Any] | None:
    """What a cache says of itself, if all of it is there."""
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_text())
        whole = about["bytes"] == [(folder / about["folder"] / name).stat().st_size for name in _FILES]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return about if whole else None


def _write_cache(source: Path, folder: Path, wanted: dict[str, Any]) -> tuple[Any, NDArray[np.float64]]:
    """Stream the text into a folder of its own, map it, and make it the one in use."""
    strange = folder.exists() and not (folder / "about.json").exists() and any(
        not entry.name.startswith(_PART) for entry in folder.iterdir()
    )
    if strange or (folder.exists() and not folder.is_dir()):
        raise ValueError(f"cache: {folder} exists and is not a cache of this library; move it away or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder, prefix=_PART))
    try:
        (part / _BUSY).touch()
        about = {**_stream(source, part, wanted), "folder": part.name}
        if any(wanted[name] != value for name, value in _stamp(source).items()):
            raise ValueError(f"{source} changed while it was read: fit again when it is complete")
        mapped = _mapped(folder, about)
        with replacing(folder / "about.json") as out:
            out.write(json.dumps(about).encode())
        (part / _BUSY).unlink()
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        with suppress(OSError):  # of other processes, or a cache that is still good
            folder.rmdir()
        raise
    for old in folder.glob(_PART + "*"):  # finished, and not in use any more
        if old != part and (old / "indices.bin").exists() and not (old / _BUSY).exists():
            shutil.rmtree(old, ignore_errors=True)
    return mapped


def _stream(source: Path, part: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """The text as arrays in files; what they hold."""
    counts: list[NDArray[np.int64]] = []
    kinds: list[tuple[np.dtype[Any], int]] = []  # of the indices block by block: 32 bits until one needs more
    reading = _Reading(Options.checked(**{name: wanted[name] for name in ("n_features", "zero_based", "dtype")}))
    with open(part / "values.bin", "wb") as values, open(part / "raw.bin", "wb") as raw, \
            open(part / "labels.bin", "wb") as labels:
        for _ in reading.steps(source):
            rows = reading.take()
            rows.values.tofile(values)
            rows.indices.tofile(raw)
            rows.labels.tofile(labels)
            counts.append(rows.lengths)
            kinds.append((rows.indices.dtype, len(rows.indices)))
    columns = _columns(reading.found(), wanted["n_features"], str(source))
    lengths = np.concatenate(counts) if counts else np.empty(0, np.int64)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    kind = np.dtype(np.int32 if indptr[-1] <= _INT32 and columns <= _INT32 else np.int64)
    indptr.astype(kind).tofile(part / "indptr.bin")
    if reading.first() or any(found != kind for found, _ in kinds):
        with open(part / "raw.bin", "rb") as raw, open(part / "indices.bin", "wb") as out:
            for found, count in kinds:
                (np.fromfile(raw, found, count).astype(kind) + reading.first()).tofile(out)
        (part / "raw.bin").unlink()
    else:
        (part / "raw.bin").rename(part / "indices.bin")
    return {"source": wanted, "rows": len(lengths), "columns": columns, "stored": int(indptr[-1]), "dtype": wanted["dtype"],
            "index": kind.name, "bytes": [(part / name).stat().st_size for name in _FILES]}
