"""The bytes of model files and checkpoints: a fixed head, a JSON header, plain arrays. Byte by byte: docs/models.md.

    head      64 bytes: magic, version, lengths, SHA-256 of everything else
    header    JSON, padded with spaces to a multiple of 64 bytes; its "arrays" lists [dtype, shape] of each array
    arrays    little-endian, C order, one after the other, each at a multiple of 64 bytes

Offsets are not stored: they follow from dtypes and shapes, so they cannot lie. Reading looks at nothing before the
checksum is right, and allocates nothing before the arrays add up to the file's true size.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap as memory_map
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.atomic import replacing

MAGIC = b"\x89MXM\r\n\x1a\n"  # as PNG's: no text, and damaged by anything that changes line ends
VERSION = 1
HEAD = struct.Struct("<8sIIQQ32s")  # magic, version, 0, bytes of the header, bytes of the file, SHA-256
DIGEST_AT = HEAD.size - 32
ALIGN = 64  # bytes: a cache line, and the widest vector registers
MOST_HEADER = 16 << 20  # bytes of JSON, which takes up to 30 times as much as Python objects; 20 KB are usual
_CHUNK = 1 << 20
_MOST_DIMENSIONS = 32  # NumPy 1's limit
_PLAIN = re.compile(r"\|[biu]1|<[iu][248]|<f[248]|<U[1-9][0-9]{0,7}")


class ModelFileError(ValueError):
    """A file that is not a model, or is damaged, or does not make sense."""


def write(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: list[NDArray[Any]], durable: bool = False
) -> None:
    """Write header and arrays; the file appears complete or not at all (`durable`: even if power fails)."""
    stored = [_little(array) for array in arrays]
    table = [[_spelled(array.dtype), list(array.shape)] for array in stored]
    text = json.dumps({**header, "arrays": table}, ensure_ascii=True, allow_nan=False).encode()
    text += b" " * (-len(text) % ALIGN)
    if len(text) > MOST_HEADER:
        raise ValueError(f"the model has {len(text)} bytes besides its arrays, above {MOST_HEADER}: pickle it instead")
    pieces = [text, *(piece for array in stored for piece in _padded(array))]
    size = HEAD.size + sum(len(piece) for piece in pieces)
    head = HEAD.pack(MAGIC, VERSION, 0, len(text), size, bytes(32))[:DIGEST_AT]
    digest = hashlib.sha256(head)
    for piece in pieces:
        digest.update(piece)
    with replacing(path, durable) as file:
        file.write(head + digest.digest())
        for piece in pieces:
            file.write(piece)


def read(path: str | os.PathLike[str], mmap: bool = False) -> tuple[int, dict[str, Any], list[NDArray[Any]]]:
    """(version, header, arrays) of a file; with mmap the arrays are read-only views of the file."""
    name = Path(path)
    with open(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        version, length = _checked_head(file, size, name)
        header = _parsed(file, length, name)
        try:
            specs = [_spec(entry) for entry in header.pop("arrays")]
        except (TypeError, ValueError, KeyError) as error:
            raise ModelFileError(f"{name}: the table of arrays is wrong: {error}") from None
        places = list(_places(HEAD.size + length, specs))
        if places[-1] != size:
            raise ModelFileError(f"{name}: the arrays end at byte {places[-1]}, but the file has {size} bytes")
        if mmap and specs:
            whole = memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_READ)
            arrays = [_view(whole, at, *spec) for at, spec in zip(places, specs)]
        else:
            arrays = [_loaded(file, at, *spec) for at, spec in zip(places, specs)]
    for array in arrays:
        _check_values(array, name)
    return version, header, arrays


# ---- writing -----------------------------------------------------------------------------------------------------


def _little(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(array.shape)


def _spelled(dtype: np.dtype[Any]) -> Any:
    """'<f8', or [[name, '<f8'], …] for a table."""
    if dtype.names is not None:
        return [[name, _spelled(dtype[name])] for name in dtype.names]
    if not _PLAIN.fullmatch(dtype.str):
        raise ValueError(f"arrays of type {dtype} cannot be stored: use bool, integers, float16 to float64 or strings")
    return dtype.str


def _padded(array: NDArray[Any]) -> Iterator[Any]:
    yield array.reshape(-1).view(np.uint8).data if array.size else b""
    yield bytes(-array.nbytes % ALIGN)


# ---- reading -----------------------------------------------------------------------------------------------------


def _checked_head(file: BinaryIO, size: int, name: Path) -> tuple[int, int]:
    """(version, bytes of the header) of a file that has its right length and checksum."""
    head = file.read(HEAD.size)
    if head[: len(MAGIC)] != MAGIC:
        raise ModelFileError(f"{name} is not a model or checkpoint of maxmargin")
    if len(head) < HEAD.size:
        raise ModelFileError(f"{name} is truncated: it has {size} bytes, the head alone {HEAD.size}")
    _, version, zero, length, written, digest = HEAD.unpack(head)
    if version > VERSION:
        raise ModelFileError(
            f"{name} is of format version {version}, this maxmargin reads up to {VERSION}: update maxmargin"
        )
    if written != size:
        trouble = "truncated" if size < written else "followed by something else"
        raise ModelFileError(f"{name} is {trouble}: it was written with {written} bytes and has {size}")
    found = hashlib.sha256(head[:DIGEST_AT])
    while chunk := file.read(_CHUNK):
        found.update(chunk)
    if found.digest() != digest:
        raise ModelFileError(f"{name} is damaged: its SHA-256 is not the one it was written with")
    if version < 1 or zero != 0 or length % ALIGN or length > min(MOST_HEADER, size - HEAD.size):
        raise ModelFileError(f"{name}: the head makes no sense (version {version}, header of {length} bytes)")
    return version, length


def _parsed(file: BinaryIO, length: int, name: Path) -> dict[str, Any]:
    file.seek(HEAD.size)
    try:
        header = json.loads(file.read(length), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested without end
        raise ModelFileError(f"{name}: the header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ModelFileError(f"{name}: the header is not a JSON object")
    return header


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _spec(entry: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """dtype and shape of an array, from [dtype, shape]."""
    spelled, shape = entry
    dtype = _dtype(spelled)
    if len(shape) > _MOST_DIMENSIONS or not all(type(k) is int and k >= 0 for k in shape):
        raise ValueError(f"{shape!r:.60} is not a shape")
    if dtype.itemsize * math.prod(max(k, 1) for k in shape) >= 2**62:  # beyond NumPy, even if there are no entries
        raise ValueError(f"{shape!r:.60} is too large a shape")
    return dtype, tuple(shape)


def _dtype(spelled: Any) -> np.dtype[Any]:
    if isinstance(spelled, list):
        if not all(isinstance(name, str) and isinstance(kind, str) for name, kind in spelled) or not spelled:
            raise ValueError(f"{spelled!r:.60} is not a list of columns")
        return np.dtype([(name, _dtype(kind)) for name, kind in spelled])
    if not isinstance(spelled, str) or not _PLAIN.fullmatch(spelled):
        raise ValueError(f"{spelled!r:.60} is not a type of array")
    return np.dtype(spelled)


def _places(start: int, specs: list[tuple[np.dtype[Any], tuple[int, ...]]]) -> Iterator[int]:
    """Where each array begins, and where the last one ends (in Python's integers, which do not overflow)."""
    for dtype, shape in specs:
        yield start
        start += -(-math.prod(shape) * dtype.itemsize // ALIGN) * ALIGN
    yield start


def _view(whole: memory_map.mmap, at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    count = math.prod(shape)
    return np.frombuffer(whole, dtype, count, at).reshape(shape) if count else np.empty(shape, dtype)


def _loaded(file: BinaryIO, at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(shape, dtype)
    if array.size:
        file.seek(at)
        if file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:  # type: ignore[attr-defined]
            raise ModelFileError("the file was cut short while it was read")
    return array


def _check_values(array: NDArray[Any], name: Path) -> None:
    """Bytes that are no value of their type: a bool of 2, a character beyond Unicode."""
    for column in array.dtype.names or [None]:
        part = array if column is None else array[column]
        if part.dtype.kind == "b" and part.size and part.view(np.uint8).max() > 1:
            raise ModelFileError(f"{name}: an array of truth values has others than 0 and 1")
        if part.dtype.kind == "U" and part.size:
            characters = np.ascontiguousarray(part).reshape(-1).view(np.uint32)
            if characters.max() > 0x10FFFF:
                raise ModelFileError(f"{name}: an array of strings has characters beyond Unicode")
