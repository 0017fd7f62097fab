"""Samples in files: `load`, `save`, `chunks` and `describe`, for every format that is known."""

from __future__ import annotations

import bz2
import gzip
import lzma
import numbers
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import PurePath
from typing import Any, Literal, Protocol, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from maxmargin.data import arrays, arrow, csv_text, libsvm
from maxmargin.data.atomic import replacing
from maxmargin.data.description import Description
from maxmargin.data.options import Label, Options, Part, Saving, ZeroBased
from maxmargin.data.streams import Source, zstd
from maxmargin.runtime.threads import thread_count

Format = Literal["libsvm", "csv", "npy", "npz", "parquet", "arrow"]


class _Format(Protocol):
    """What a module of this folder offers for its format."""

    def load(self, source: Source, options: Options, /) -> tuple[Any, Any, Any]: ...

    def pieces(self, source: Source, options: Options, /) -> Iterator[tuple[Any, Any, Any]]: ...

    def settled(self, source: Source, options: Options, /) -> Options: ...

    def describe(self, source: Source, options: Options, /) -> Description: ...

    def write(self, out: Any, x: Any, y: Any, saving: Saving, /) -> None: ...


_FORMATS: dict[str, Any] = {
    "libsvm": libsvm, "csv": csv_text, "npy": arrays.NPY, "npz": arrays.NPZ, "parquet": arrow.PARQUET, "arrow": arrow.ARROW,
}
_TEXT = ("libsvm", "csv")
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".npy": "npy", ".npz": "npz", ".parquet": "parquet", ".pq": "parquet",
             ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
_PACKERS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda out: gzip.GzipFile("", "wb", 6, out, 0),  # no name and no time inside: equal data, equal files
    ".bz2": lambda out: bz2.BZ2File(out, "wb"),
    ".xz": lambda out: lzma.LZMAFile(out, "wb"),  # noqa: SIM115 (save enters it)
    ".zst": lambda out: zstd("the file").ZstdFile(out, "wb"),
}


def load(
    path: Source, *, format: Format | None = None, n_features: int | None = None, zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64, query_id: bool = False, label: Label = 0, header: bool | Literal["auto"] = "auto",
    delimiter: str | None = None, part: Part | None = None, n_jobs: int | None = None,
) -> tuple[Any, ...]:
    """Samples and labels of a file: (X, y), or (X, y, query numbers) with `query_id`.

    X is CSR from LIBSVM text and sparse npz files, else dense. y is float64, or text where labels are text (CSV, npz,
    Parquet, Arrow), or None with `label=None`. Values may be NaN or infinite: `fit` says so.

    Parameters
    ----------
    path : file name or binary stream
        Text may be compressed with gzip, bz2, xz or zstd.
    format : {"libsvm", "csv", "npy", "npz", "parquet", "arrow"}, optional
        By default, by the name: `.csv .tsv .npy .npz .parquet .pq .arrow .feather .ipc`, and LIBSVM text for all others.
    n_features : int, optional
        Number of features. LIBSVM text may have fewer; a file with more is refused.
    zero_based : {"auto", True, False}
        LIBSVM text: whether indices count from 0. "auto": from 0 exactly when the file has an index 0.
    dtype : float32 or float64
        Of X. Text is rounded to it once.
    query_id : bool
        LIBSVM text: also return the numbers after `qid:`.
    label : int, str or None
        Tables: the column of the labels by number or name, npz: the name of their array (0: `y`). None: there are none.
    header : {"auto", True, False}
        CSV: whether the first line has names. "auto": if it has a field, beside the label, that is no number.
    delimiter : str, optional
        CSV: what separates fields; by default a comma, or a tab in a `.tsv` file.
    part : (rank, size), optional
        Read only one of `size` parts. The parts one after the other are the whole, whatever their number. LIBSVM text
        and CSV are cut by bytes (and must not be compressed), other formats by rows. LIBSVM text then needs `n_features`
        and `zero_based`, which `describe` finds.
    n_jobs : int, optional
        Threads that read text; None: all cores.

    Raises
    ------
    FormatError
        A ValueError with `path`, `line`, `column` and `reason`: the file is damaged, cut short or not in this format.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import load
    >>> X, y = load(io.BytesIO(b"+1 1:0.5 3:2\\n-1 2:1.5 # a comment\\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1.5, 0. ]])
    >>> y
    array([ 1., -1.])
    """
    options = Options.checked(n_features=n_features, zero_based=zero_based, dtype=dtype, query_id=query_id, label=label,
                              header=header, delimiter=delimiter, part=part, n_jobs=n_jobs)
    loaded: tuple[Any, ...] = _format(path, format)[1].load(path, options)
    return loaded if query_id else loaded[:2]


class Chunks:
    """Consecutive rows of a file as (X, y), or (X, y, query numbers); may be gone through any number of times."""

    def __init__(self, path: Source, rows: int, format: _Format, options: Options) -> None:
        self._path, self._rows, self._format, self._options = path, rows, format, options

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._options = self._format.settled(self._path, self._options)
        kept = 3 if self._options.query_id else 2
        waiting: list[tuple[Any, ...]] = []
        count = 0
        for piece in self._format.pieces(self._path, self._options):
            waiting.append(piece[:kept])
            count += piece[0].shape[0]
            while count >= self._rows:
                *whole, last = waiting
                cut = last[0].shape[0] - (count - self._rows)
                yield _joined([*whole, _sliced(last, 0, cut)])
                waiting, count = [_sliced(last, cut, last[0].shape[0])], count - self._rows
        if count:
            yield _joined(waiting)


def chunks(path: Source, rows: int, *, format: Format | None = None, **options: Any) -> Chunks:
    """The samples of a file of any size, `rows` at a time (the last may be fewer), in bounded memory.

    LIBSVM text of which `n_features` or `zero_based` is not given is gone through once before, to find them.

    Parameters
    ----------
    path, format
        As for `load`.
    rows : int
    **options
        The other keywords of `load`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from maxmargin.data import chunks, save
    >>> path = os.path.join(tempfile.mkdtemp(), "data.svm")
    >>> save(path, np.eye(5), [1, -1, 1, -1, 1])
    >>> [X.shape for X, y in chunks(path, 2)]
    [(2, 5), (2, 5), (1, 5)]
    """
    if not isinstance(rows, numbers.Integral) or isinstance(rows, bool) or rows < 1:
        raise ValueError(f"rows={rows!r} must be a whole number ≥ 1")
    return Chunks(path, int(rows), _format(path, format)[1], Options.checked(**options))


def describe(path: Source, *, format: Format | None = None, **options: Any) -> Description:
    """Rows, entries and features of a file, or of a part of it, without keeping it. Options as for `load`.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import describe
    >>> describe(io.BytesIO(b"1 1:2 7:1\\n-1\\n"))
    Description(rows=2, stored=2, low=1, high=7)
    """
    return cast(Description, _format(path, format)[1].describe(path, Options.checked(**options)))


def save(
    path: Source, X: Any, y: ArrayLike | None, *, format: Format | None = None, zero_based: bool = False,
    query_id: ArrayLike | None = None, comment: str = "", header: Sequence[str] | None = None,
    delimiter: str | None = None, n_jobs: int | None = None,
) -> None:
    """Write samples and labels; the file appears complete or not at all.

    Numbers in text are the shortest that read back the same (in the precision of X: float32 stays, all else is float64).

    Parameters
    ----------
    path : file name or binary stream
        Text is compressed if the name ends in `.gz`, `.bz2`, `.xz` or `.zst`.
    X : dense or sparse of shape (n_samples, n_features)
        Sparse: for LIBSVM text and npz. Dense: for every format; LIBSVM text leaves zeros out.
    y : labels, one per row, or None for tables without labels
        Text is for CSV, npz, Parquet and Arrow.
    format
        As for `load`.
    zero_based : bool
        LIBSVM text: count indices from 0. The default is 1, as LIBSVM wants it.
    query_id : array of int, optional
        LIBSVM text: numbers to write after `qid:`.
    comment : str
        LIBSVM text: lines to begin with, after `# `.
    header : list of str, optional
        CSV, Parquet and Arrow: names of the columns, the label's first.
    delimiter : str, optional
        CSV: what separates fields; by default a comma, or a tab in a `.tsv` file.
    n_jobs : int, optional
        Threads that format text; None: all cores.

    Examples
    --------
    >>> import io
    >>> from maxmargin.data import save
    >>> out = io.BytesIO()
    >>> save(out, [[0.1, 0, 3], [0, 1e-7, 0]], [1, -1])
    >>> print(out.getvalue().decode(), end="")
    1 1:0.1 3:3
    -1 2:1e-07
    """
    name, kind = _format(path, format)
    x, labels, queries = _checked(X, y, query_id, name)
    Options.checked(delimiter=delimiter)
    if name == "csv" and delimiter is None and ".tsv" in PurePath(_name(path)).suffixes:
        delimiter = "\t"
    saving = Saving(zero_based, queries, comment, None if header is None else list(header), delimiter, thread_count(n_jobs))
    with ExitStack() as stack:
        if isinstance(path, (str, os.PathLike)):
            out: Any = stack.enter_context(replacing(path))
            pack = _PACKERS.get(PurePath(path).suffix) if name in _TEXT else None
            out = out if pack is None else stack.enter_context(pack(out))
        else:
            out = path
        kind.write(out, x, labels, saving)


def _name(source: Source) -> str:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", ""))


def format_of(source: Source, format: str | None = None) -> str:
    """The name of the format in which a file is read or written: the one given, or by the file's name."""
    if format is None:
        suffixes = PurePath(_name(source)).suffixes
        if suffixes and suffixes[-1] in _PACKERS:
            suffixes.pop()
        format = _SUFFIXES.get(suffixes[-1] if suffixes else "", "libsvm")
    if format not in _FORMATS:
        raise ValueError(f"format={format!r} must be one of {', '.join(_FORMATS)}, or None to go by the name")
    return format


def _format(source: Source, format: str | None) -> tuple[str, Any]:
    """Name and module of a format."""
    name = format_of(source, format)
    return name, _FORMATS[name]


def _checked(X: Any, y: Any, query_id: Any, format: str) -> tuple[Any, Any, Any]:
    """X as the core reads it, labels as float64 or text, and query numbers as int64."""
    sparse = sp.issparse(X)
    if sparse and format not in ("libsvm", "npz"):
        raise ValueError(f"X is sparse, and {format} files are not: use LIBSVM text or npz, or X.toarray()")
    x: Any = sp.csr_matrix(X) if sparse else np.asarray(X)
    if x.ndim != 2:
        raise ValueError(f"X has shape {x.shape}: two dimensions are needed")
    kind = x.dtype if x.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    if sparse:
        x = x.astype(kind, copy=False)
        x.check_format(full_check=True)
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
    else:
        x = np.ascontiguousarray(x, kind)
    labels = None
    if y is not None:
        labels = np.asarray(y)
        if labels.shape != (x.shape[0],):
            raise ValueError(f"y has shape {labels.shape}, expected ({x.shape[0]},): one label per row of X")
        labels = labels.astype(str) if labels.dtype.kind in "OUS" else np.ascontiguousarray(labels, np.float64)
    queries = None
    if query_id is not None:
        queries = np.asarray(query_id)
        if queries.shape != (x.shape[0],) or queries.dtype.kind not in "iu":
            raise ValueError(f"query_id has shape {queries.shape} and dtype {queries.dtype}: one whole number per row of X")
        queries = np.ascontiguousarray(queries, np.int64)
    return x, labels, queries


def _sliced(piece: tuple[Any, ...], first: int, last: int) -> tuple[Any, ...]:
    return tuple(None if part is None else part[first:last] for part in piece)


def _joined(several: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    several = [piece for piece in several if piece[0].shape[0]]
    if len(several) == 1:
        return several[0]
    rows = [piece[0] for piece in several]
    x = sp.vstack(rows, format="csr") if sp.issparse(rows[0]) else np.concatenate(rows)
    rest = (None if column[0] is None else np.concatenate(column) for column in list(zip(*several))[1:])
    return (x, *rest)
