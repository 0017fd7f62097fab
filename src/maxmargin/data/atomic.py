"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write; it takes the place of `path` when the block ends, and vanishes when the block raises.

    It is made beside its target, so that the last step is a rename on one file system. A link stays a link, a file
    keeps its permissions, and what is no plain file (a terminal, a pipe) is written to directly.
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
        if there:
            os.chmod(part, stat.S_IMODE(target.stat().st_mode))
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
