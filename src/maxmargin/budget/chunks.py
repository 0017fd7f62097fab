"""Data that come in chunks (X, y) or (X, y, sample_weight), gone through once per pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Chunk = tuple[Any, ...]
Chunks = Iterable[Chunk] | Callable[[], Iterable[Chunk]]


def chunk_source(chunks: Chunks) -> Callable[[], Iterable[Chunk]]:
    """A function that starts a new pass over the chunks."""
    if callable(chunks):
        return chunks
    if isinstance(chunks, Iterator):
        raise ValueError("chunks can be gone through only once: give a list, or a function that returns an iterator")
    return lambda: chunks


def chunk_parts(chunk: Chunk) -> tuple[Any, Any, Any]:
    """X, y and the sample weights or None."""
    if len(chunk) not in (2, 3):
        raise ValueError(f"a chunk must be (X, y) or (X, y, sample_weight), not {len(chunk)} parts")
    return chunk[0], chunk[1], chunk[2] if len(chunk) == 3 else None


def chunk_length(chunk: Chunk) -> int:
    """Rows of a chunk, whatever it is made of."""
    x = chunk[0]
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)
