"""Files that know their number of rows and give them in order: what arrays and columns have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from maxmargin.data.description import Description
from maxmargin.data.options import Options, Saving, part_rows
from maxmargin.data.streams import Source

VALUES = 1 << 20  # per piece: some megabytes


class RowFile(Protocol):
    """Samples inside an open file."""

    rows: int
    columns: int  # features

    def skip(self, rows: int) -> None:
        """Pass over so many rows."""

    def take(self, rows: int) -> tuple[Any, Any]:
        """X and y of the next so many rows."""

    def stored(self, first: int, last: int) -> int:
        """Entries in rows [first, last)."""


@dataclass(frozen=True)
class RowFormat:
    """A format of such files."""

    open: Callable[[Source, Options], AbstractContextManager[RowFile]]
    write: Callable[[Any, Any, Any, Saving], None]

    def load(self, source: Source, options: Options) -> tuple[Any, Any, Any]:
        """X and y of a file or of a part of it; there are no query numbers."""
        with self.open(source, options) as file:
            first, last = part_rows(options.part, file.rows)
            file.skip(first)
            return *file.take(last - first), None

    def pieces(self, source: Source, options: Options) -> Iterator[tuple[Any, Any, Any]]:
        """The same, some rows at a time."""
        with self.open(source, options) as file:
            first, last = part_rows(options.part, file.rows)
            file.skip(first)
            step = max(1, VALUES * file.rows // max(1, file.stored(0, file.rows)))
            for at in range(first, last, step):
                yield *file.take(min(step, last - at)), None

    def settled(self, source: Source, options: Options) -> Options:
        """All that a piece needs to know is in the file's header."""
        return options

    def describe(self, source: Source, options: Options) -> Description:
        with self.open(source, options) as file:
            first, last = part_rows(options.part, file.rows)
            ends = (0, file.columns - 1) if file.columns else (None, None)
            return Description(last - first, file.stored(first, last), *ends)
