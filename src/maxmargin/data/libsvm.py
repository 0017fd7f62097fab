"""LIBSVM's text format: `label index:value index:value ...`, one sample per line, indices from 1 (or 0), `#` comments.

Reading works in chunks of whole lines and parses each with NumPy; a chunk that does not parse is read again line by
line for an error that names the line. `cache_libsvm` streams a file of any size into plain binary arrays, which are
then memory-mapped: float32 or float64 values, 32-bit indices while they suffice.
"""

from __future__ import annotations

import json
import numbers
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

CHUNK = 1 << 24  # bytes of text per step
_VERSION = 2  # of the cache's layout
_FILES = ("values.bin", "indices.bin", "indptr.bin", "labels.bin")
_PAIR = rb"\d{1,15}:[^\s:_]+"
_LINE = re.compile(rb"\s*[^\s:_]+(?:\s+" + _PAIR + rb")*\s*")


class FormatError(ValueError):
    """A line that is not in LIBSVM's format."""


@dataclass
class _Part:
    labels: NDArray[np.float64]
    counts: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: NDArray[np.float64]


def load_libsvm(
    path: str | os.PathLike[str], *, n_features: int | None = None, zero_based: bool | None = None,
    dtype: DTypeLike = np.float64,
) -> tuple[Any, NDArray[np.float64]]:
    """Read a file into (CSR matrix, labels).

    Parameters
    ----------
    path : file name
    n_features : int, optional
        Number of columns; found from the file when not given.
    zero_based : bool, optional
        Whether indices count from 0. None: from 0 exactly when the file has an index 0.
    dtype : float32 or float64
    """
    parts = list(_parts(path))
    labels = np.concatenate([p.labels for p in parts]) if parts else np.empty(0)
    counts = np.concatenate([p.counts for p in parts]) if parts else np.empty(0, np.int64)
    indices = np.concatenate([p.indices for p in parts]) if parts else np.empty(0, np.int64)
    values = np.concatenate([p.values for p in parts]) if parts else np.empty(0)
    first = _first(int(indices.min(initial=1)), zero_based, path)
    indices -= first
    columns = _columns(int(indices.max(initial=-1)) + 1, n_features, path)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    kind = np.int32 if indptr[-1] < 2**31 else np.int64
    x = sp.csr_matrix((values.astype(dtype), indices.astype(kind), indptr.astype(kind)), shape=(len(labels), columns))
    x.sort_indices()
    return x, labels


def dump_libsvm(
    path: str | os.PathLike[str], X: Any, y: ArrayLike, *, zero_based: bool = False, comment: str = ""
) -> None:
    """Write samples and labels; the file appears complete or not at all."""
    x = sp.csr_matrix(X)
    labels = np.asarray(y, dtype=np.float64)
    if labels.shape != (x.shape[0],):
        raise ValueError(f"y.shape == {labels.shape}, expected ({x.shape[0]},): one label per row of X")
    shift = 0 if zero_based else 1
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "w") as out:
            for line in comment.splitlines():
                out.write(f"# {line}\n")
            for i, label in enumerate(labels):
                row = slice(x.indptr[i], x.indptr[i + 1])
                pairs = (f"{j + shift}:{float(v):.17g}" for j, v in zip(x.indices[row], x.data[row]))
                out.write(" ".join([f"{label:.17g}", *pairs]) + "\n")
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def cache_libsvm(
    path: str | os.PathLike[str], cache: str | os.PathLike[str] | None = None, *, n_features: int | None = None,
    zero_based: bool | None = None, dtype: DTypeLike = np.float32,
) -> tuple[Any, NDArray[np.float64]]:
    """(memory-mapped CSR matrix, labels) of a file, by a binary cache `<name>.cache` beside it or in the folder `cache`.

    The file is read once, in chunks; memory holds one chunk and the row lengths. A cache that was made of this file as it
    is now, with the same options, is used as it is; a damaged one is made again.
    """
    source = Path(path)
    folder = (Path(cache) if cache is not None else source.parent) / (source.name + ".cache")
    size, when = source.stat().st_size, source.stat().st_mtime_ns
    wanted = {"version": _VERSION, "path": str(source.resolve()), "size": size, "mtime_ns": when,
              "dtype": np.dtype(dtype).name, "n_features": n_features, "zero_based": zero_based}
    about = _about(folder)
    if about is None or about["source"] != wanted:
        _write_cache(source, folder, wanted)
        about = json.loads((folder / "about.json").read_text())
    shape = (about["rows"], about["columns"])

    def view(name: str, kind: str, count: int) -> NDArray[Any]:
        return np.memmap(folder / name, dtype=kind, mode="r", shape=(count,)) if count else np.empty(0, kind)

    x = sp.csr_matrix(shape, dtype=about["dtype"])
    x.data = view("values.bin", about["dtype"], about["stored"])
    x.indices = view("indices.bin", about["index"], about["stored"])
    x.indptr = view("indptr.bin", about["index"], shape[0] + 1)
    x.has_sorted_indices = x.has_canonical_format = True  # as written: no pass over the file to find out
    return x, np.fromfile(folder / "labels.bin", dtype=np.float64)


def _about(folder: Path) -> dict[str, Any] | None:
    """What a cache says of itself, if all of it is there."""
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_text())
        whole = about["bytes"] == [(folder / name).stat().st_size for name in _FILES]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return about if whole else None


def _write_cache(source: Path, folder: Path, wanted: dict[str, Any]) -> None:
    """Stream the text into a temporary folder, then put it in place."""
    if folder.exists() and not (folder / "about.json").exists():
        raise ValueError(f"cache: {folder} exists and is not a cache of this library; move it away or name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=folder.name, suffix=".part"))
    try:
        counts: list[NDArray[np.int64]] = []
        low, high = 1, -1
        with open(part / "values.bin", "wb") as values, open(part / "raw.bin", "wb") as raw, \
                open(part / "labels.bin", "wb") as labels:
            for p in _parts(source):
                _sort_rows(p)
                p.values.astype(wanted["dtype"]).tofile(values)
                p.indices.tofile(raw)
                p.labels.tofile(labels)
                counts.append(p.counts)
                low, high = min(low, int(p.indices.min(initial=1))), max(high, int(p.indices.max(initial=-1)))
        first = _first(low, wanted["zero_based"], source)
        columns = _columns(high + 1 - first, wanted["n_features"], source)
        lengths = np.concatenate(counts) if counts else np.empty(0, np.int64)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        kind = "int32" if indptr[-1] < 2**31 and columns < 2**31 else "int64"
        indptr.astype(kind).tofile(part / "indptr.bin")
        with open(part / "raw.bin", "rb") as raw, open(part / "indices.bin", "wb") as out:
            while len(block := np.fromfile(raw, np.int64, CHUNK // 8)):
                (block - first).astype(kind).tofile(out)
        (part / "raw.bin").unlink()
        about = {"source": wanted, "rows": len(lengths), "columns": columns, "stored": int(indptr[-1]),
                 "dtype": wanted["dtype"], "index": kind, "bytes": [(part / name).stat().st_size for name in _FILES]}
        (part / "about.json").write_text(json.dumps(about))
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _sort_rows(p: _Part) -> None:
    """Indices ascending within each row."""
    row = np.repeat(np.arange(len(p.counts)), p.counts)
    if len(p.indices) > 1 and ((np.diff(p.indices) <= 0) & (np.diff(row) == 0)).any():
        order = np.lexsort((p.indices, row))
        p.indices, p.values = p.indices[order], p.values[order]


def _first(low: int, zero_based: bool | None, path: Any) -> int:
    if zero_based is None:
        return 0 if low == 0 else 1
    if not zero_based and low == 0:
        raise FormatError(f"{path}: an index is 0 but zero_based=False; pass zero_based=True or None")
    return 0 if zero_based else 1


def _columns(found: int, n_features: int | None, path: Any) -> int:
    if n_features is None:
        if found >= 2**31:
            raise FormatError(f"{path}: feature {found} is beyond 2**31; if that is meant, say how many by n_features")
        return max(found, 0)
    if not isinstance(n_features, numbers.Integral):
        raise ValueError(f"n_features={n_features!r} must be an integer, or None to take it from the file")
    if found > n_features:
        raise FormatError(f"{path}: feature {found} is beyond n_features={n_features}")
    return int(n_features)


def _parts(path: str | os.PathLike[str]) -> Iterator[_Part]:
    with open(path, "rb") as handle:
        line = 1
        for text in _chunks(handle):
            yield _parse(text, line, path)
            line += text.count(b"\n")


def _chunks(handle: BinaryIO) -> Iterator[bytes]:
    """Whole lines, about CHUNK bytes at a time."""
    rest = b""
    while block := handle.read(CHUNK):
        cut = block.rfind(b"\n")
        if cut < 0:
            rest += block
            continue
        yield rest + block[: cut + 1]
        rest = block[cut + 1 :]
    if rest.strip():
        yield rest


def _parse(text: bytes, line: int, path: Any) -> _Part:
    """All lines of a chunk at once; one by one when there are comments or errors among them."""
    rows = [row for row in text.split(b"\n") if row.strip()]
    if b"#" not in text and b"qid" not in text and all(map(_LINE.fullmatch, rows)):
        counts = np.array([row.count(b":") for row in rows], dtype=np.int64)
        try:
            read = np.array(text.replace(b":", b" ").split(), dtype=np.float64)
        except ValueError:
            return _parse_lines(text, line, path)
        label = np.zeros(len(read), dtype=bool)
        label[np.cumsum(1 + 2 * counts) - 1 - 2 * counts] = True
        pairs = read[~label].reshape(-1, 2)
        part = _Part(read[label], counts, pairs[:, 0].astype(np.int64), np.ascontiguousarray(pairs[:, 1]))
        if not _repeats(part):
            return part
    return _parse_lines(text, line, path)


def _repeats(p: _Part) -> bool:
    q = _Part(p.labels, p.counts, p.indices, p.values)
    _sort_rows(q)
    row = np.repeat(np.arange(len(q.counts)), q.counts)
    return bool(((np.diff(q.indices) == 0) & (np.diff(row) == 0)).any())


def _parse_lines(text: bytes, line: int, path: Any) -> _Part:
    labels: list[float] = []
    counts: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    for number, row in enumerate(text.split(b"\n"), start=line):
        words = row.split(b"#", 1)[0].split()
        if not words:
            continue
        try:
            labels.append(float(words[0]))
        except ValueError:
            shown = words[0].decode(errors="replace")
            raise FormatError(f"{path}, line {number}: the label {shown!r} is not a number") from None
        seen: dict[int, float] = {}
        for word in words[1:]:
            if word.startswith(b"qid:"):
                continue
            try:
                index, value = word.split(b":")
                if not re.fullmatch(_PAIR, word) or int(index) in seen:
                    raise ValueError
                seen[int(index)] = float(value)
            except ValueError:
                shown = word.decode(errors="replace")
                raise FormatError(
                    f"{path}, line {number}: {shown!r} is not index:value with an index ≥ 0 that occurs once"
                ) from None
        counts.append(len(seen))
        indices.extend(seen)
        values.extend(seen.values())
    return _Part(np.array(labels, dtype=np.float64), np.array(counts, dtype=np.int64),
                 np.array(indices, dtype=np.int64), np.array(values, dtype=np.float64))
