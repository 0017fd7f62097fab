"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str], durable: bool = False) -> Iterator[BinaryIO]:
    """A binary file to write; it takes the place of `path` when the block ends, and vanishes when the block raises.

    It is made beside its target, so that the last step is a rename on one file system. A link stays a link, a file
    keeps its permissions, and what is no plain file (a terminal, a pipe) is written to directly. `durable`: its bytes are
    on the disk before it takes its place, so that a loss of power leaves the old file or the new one.
    """
    target = Path(os.path.realpath(path))
    there = target.exists()
    if there and not target.is_file():
        with open(target, "wb") as out:
            yield out
        return
    part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
            if durable:
                out.flush()
                os.fsync(out.fileno())
        if there:
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove what processes left beside `path` that were killed while they wrote it; for whoever alone writes it."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        return
    for part in target.parent.iterdir():
        if re.fullmatch(re.escape(target.name) + r"\.[0-9a-f]{8}\.part", part.name):
            with suppress(OSError):
                part.unlink()
