"""Bytes of files, plain or compressed, a block of whole lines at a time.

What a file is compressed with is read from its first bytes, not from its name. A compressed file that ends early is an
error, and so is anything but zeros after its end; output is drawn in pieces, so a small file that unpacks to a huge one
takes no more memory than any other.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxmargin.data.errors import FormatError

Source = str | os.PathLike[str] | BinaryIO
Fill = Callable[[memoryview], int]  # puts bytes there and says how many; 0 at the end

BLOCK = 1 << 22  # bytes of text per step: some milliseconds of work, little beside the data themselves
_STEP = 1 << 16  # bytes that are unpacked, or searched for the end of a line, at a time
_LINE_FEED = 10
_XZ_MEMORY = 1 << 30  # xz needs up to 64 MB by its presets; a damaged header may ask for more than there is
_SHOWN = 40  # bytes of a bad token in a message
_PACKED = (".gz", ".bz2", ".xz", ".zst")


class _Gzip:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)  # 31: gzip's header and checksum

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


def zstd(name: str) -> Any:
    """Python's own module (from 3.14 on) or the same one as a package."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise ImportError(
                f"{name} is compressed with zstd, which Python {'.'.join(map(str, sys.version_info[:2]))} cannot do by "
                "itself: pip install 'maxmargin[files]', or use gzip, bz2 or xz"
            ) from None
    return zstd


# first bytes → name, decompressor
_KINDS: dict[bytes, tuple[str, Callable[[str], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda name: _Gzip()),
    b"BZh": ("bz2", lambda name: bz2.BZ2Decompressor()),
    b"\xfd7zXZ\x00": ("xz", lambda name: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)),
    b"\x28\xb5\x2f\xfd": ("zstd", lambda name: zstd(name).ZstdDecompressor()),
}
_LONGEST = max(map(len, _KINDS))


class _Inflate:
    """A Fill of what compressed bytes unpack to; several members one after the other are one file."""

    def __init__(self, stream: _Behind, name: str, kind: str, make: Callable[[str], Any]) -> None:
        self._stream, self._name, self._kind, self._make = stream, name, kind, make
        self._member = make(name)

    def __call__(self, view: memoryview) -> int:
        try:
            return self._fill(view)
        except Exception as error:
            # bz2 raises OSError without a number; zstd's module may not be there to name its error
            known = isinstance(error, (zlib.error, lzma.LZMAError, EOFError)) or type(error).__name__ == "ZstdError"
            if known or (isinstance(error, OSError) and error.errno is None):
                raise FormatError(self._name, f"the {self._kind} data are damaged ({error})") from None
            raise

    def _fill(self, view: memoryview) -> int:
        while True:
            data: bytes | None = b""
            if self._member.eof:
                rest = self._member.unused_data
                while not (rest := rest.lstrip(b"\0")):  # writers may fill the end up with zeros
                    if not (rest := self._stream.read(_STEP)):
                        return 0
                self._member, data = self._make(self._name), rest
            elif self._member.needs_input:
                data = self._stream.read(_STEP)
            out = self._member.decompress(data, len(view))
            if out:
                view[: len(out)] = out
                return len(out)
            if not data and not self._member.eof and self._member.needs_input:
                raise FormatError(self._name, f"the {self._kind} data end early: the file was cut short")


@dataclass
class Opened:
    """A file being read: its name for messages, its bytes, and the file itself where it is plain and on disk."""

    name: str
    fill: Fill
    plain: BinaryIO | None = None


def name_of(source: Any) -> str:
    """For messages."""
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "the stream"))


@contextmanager
def opened(source: Source) -> Iterator[Opened]:
    """The bytes of a path or of a binary stream, unpacked where they are compressed."""
    name = name_of(source)
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb", buffering=0) as raw:
            yield _opened(raw, name, raw.read(_LONGEST) if raw.seekable() else None)
        return
    yield _opened(source, name, None)


def _opened(stream: Any, name: str, head: bytes | None) -> Opened:
    seekable = head is not None
    if head is None:
        head = stream.read(_LONGEST)
        if not isinstance(head, bytes):
            raise ValueError(f"{name} gives {type(head).__name__}, not bytes: open it in binary mode, 'rb'")
    for magic, (kind, make) in _KINDS.items():
        if head.startswith(magic):
            return Opened(name, _Inflate(_Behind(head, stream), name, kind, make))
    if not head and name.endswith(_PACKED):
        raise FormatError(name, "the file is empty, which no compressed file is: it was cut short")
    if seekable:
        stream.seek(0)
        return Opened(name, stream.readinto, stream)
    return Opened(name, _Behind(head, stream).readinto)


class _Behind(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: Any) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        data = self._head[: len(view)] if self._head else self._stream.read(len(view))
        self._head = self._head[len(view) :]
        view[: len(data)] = data
        return len(data)


def blocks(fill: Fill, size: int = BLOCK) -> Iterator[NDArray[np.uint8]]:
    """Whole lines, about `size` bytes at a time. Each block ends with a line feed, and its memory is used again."""
    buffer, held = np.empty(size + 1, np.uint8), 0  # one byte more, for a line feed that the file may lack
    while True:
        while held < size and (count := fill(buffer.data[held:size])):
            held += count
        if held < size:  # the end
            break
        cut = _last_line(buffer, held)
        if cut:
            yield buffer[:cut]
            buffer[: held - cut] = buffer[cut:held].copy()
            held -= cut
        else:  # a line that is longer than a block
            buffer = np.concatenate([buffer, np.empty(size, np.uint8)])
            size *= 2
    if held:
        if buffer[held - 1] != _LINE_FEED:
            buffer[held] = _LINE_FEED
            held += 1
        yield buffer[:held]


def _last_line(buffer: NDArray[np.uint8], end: int) -> int:
    """The byte after the last line feed before `end`; 0 if there is none."""
    while end > 0:
        begin = max(0, end - _STEP)
        at = buffer[begin:end].tobytes().rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0


def expected(file: Opened, part: tuple[int, int] | None, fed: int) -> float:
    """How many times its first `fed` bytes a file or a part of it is, and a little more as lines differ; 1 if unknown."""
    if file.plain is None:
        return 1.0
    return 1.02 * os.fstat(file.plain.fileno()).st_size / (part[1] if part else 1) / fed


def line_start(file: BinaryIO, position: int, begin: int = 0) -> int:
    """The first byte at or after `position` that begins a line of a file whose first line begins at `begin`."""
    if position <= begin:
        return begin
    file.seek(position - 1)
    while data := file.read(_STEP):
        cut = data.find(b"\n")
        if cut >= 0:
            return file.tell() - len(data) + cut + 1
    return file.tell()


def part_of(opened: Opened, part: tuple[int, int], begin: int = 0) -> tuple[Fill, int]:
    """The lines that begin in one of `size` equal ranges of a file's bytes, and where the first of them begins.

    Every line belongs to one part, whatever their number: the parts one after the other are the file.
    """
    rank, size = part
    file = opened.plain
    if file is None:
        raise ValueError(f"part={part}: {opened.name} is compressed or a stream; parts are read of plain files only")
    end = file.seek(0, os.SEEK_END)
    first = line_start(file, begin + (end - begin) * rank // size, begin)
    last = line_start(file, begin + (end - begin) * (rank + 1) // size, begin)
    file.seek(first)
    left = last - first

    def fill(view: memoryview) -> int:
        nonlocal left
        if not left:
            return 0
        count = int(file.readinto(view[:left]))  # type: ignore[attr-defined]
        if not count:
            raise FormatError(opened.name, "the file became shorter while it was read")
        left -= count
        return count

    return fill, first


def fault(file: Opened, begin: int, lines: int, block: NDArray[np.uint8], offset: int, reason: str) -> FormatError:
    """The error at a place in a block of a file that was read from byte `begin` on, `lines` of it before the block."""
    text = block[:offset].tobytes()
    line = _lines_before(file, begin) + lines + text.count(b"\n") + 1
    return FormatError(file.name, reason, line, offset - text.rfind(b"\n"))


def quoted(token: bytes) -> str:
    """For a message."""
    return repr(token[:_SHOWN].decode(errors="replace")) + ("…" if len(token) > _SHOWN else "")


def _lines_before(file: Opened, begin: int) -> int:
    """Line feeds before a byte of a plain file."""
    count = 0
    if begin and file.plain is not None:
        file.plain.seek(0)
        while begin > 0 and (data := file.plain.read(min(begin, BLOCK))):
            count += data.count(b"\n")
            begin -= len(data)
    return count
