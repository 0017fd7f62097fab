"""Data that come in chunks (X, y) or (X, y, sample_weight), gone through once per pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

Chunk = tuple[Any, Any, Any]  # X, y and the sample weights or None
Chunks = Iterable[Any] | Callable[[], Iterable[Any]]


def chunk_source(chunks: Chunks, passes: int) -> Callable[[], Iterator[Chunk]]:
    """A function that starts a new pass over the chunks that count; `passes` will be made in all."""
    if isinstance(chunks, Iterator) and passes > 1:
        raise ValueError(
            f"chunks can be gone through only once, and {passes} passes are needed (epochs, and one to count the rows if "
            "stream_size is None): give a list or a function that returns a new iterator, or epochs=1 and stream_size"
        )

    def one_pass() -> Iterator[Chunk]:
        empty = True
        for chunk in _iterator(chunks() if callable(chunks) else chunks):
            parts = _parts(chunk)
            if chunk_visits(parts):
                empty = False
                yield parts
        if empty:
            raise ValueError(
                "chunks is empty: every pass needs a row of positive weight. A function must return a new iterator each "
                "time it is called, not one that has been gone through"
            )

    return one_pass


def chunk_visits(chunk: Chunk) -> int:
    """Rows of a chunk that count, whatever it is made of: weights of 0 and below need no visit.

    What is not well formed counts as if it were, so that it is not skipped but judged.
    """
    x, y, weight = chunk
    rows = _rows(x)
    if rows == 0:
        return 0 if _rows(y) == 0 else 1
    try:
        given = np.asarray(1.0 if weight is None else weight, dtype=np.float64)
    except (TypeError, ValueError):
        return rows
    counts = ~(given <= 0)  # NaN counts: it is to be judged
    if not given.ndim:
        return rows * bool(counts)
    return int(np.count_nonzero(counts)) if given.shape == (rows,) else rows


def _rows(x: Any) -> int:
    """Rows of an array, a sparse matrix, a frame or a list; 1 of what is none of these."""
    shape = getattr(x, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 1
    return len(x) if hasattr(x, "__len__") else 1


def _iterator(chunks: Any) -> Iterator[Any]:
    try:
        return iter(chunks)
    except TypeError:
        raise ValueError(
            f"chunks must be an iterable of (X, y), or a function that returns one, not {type(chunks).__name__}"
        ) from None


def _parts(chunk: Any) -> Chunk:
    several = isinstance(chunk, (tuple, list)) and len(chunk) in (2, 3)
    if not (several and all(hasattr(part, "shape") or hasattr(part, "__len__") for part in chunk[:2])):
        raise ValueError(
            "every chunk must be a tuple (X, y) or (X, y, sample_weight): a single one is given as chunks=[(X, y)]; "
            f"found {type(chunk).__name__}"
        )
    return chunk[0], chunk[1], chunk[2] if len(chunk) == 3 else None
