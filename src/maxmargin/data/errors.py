"""What is said of a file that is not what it should be."""

from __future__ import annotations

from typing import Any


class FormatError(ValueError):
    """A file that does not keep to its format: damaged, cut short, or with a line that cannot be read.

    Attributes
    ----------
    path : str
        The file's name.
    reason : str
    line, column : int or None
        Where it is wrong, both from 1 and the column in bytes; None where the format has no lines.
    """

    def __init__(self, path: str, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.path, self.reason, self.line, self.column = path, reason, line, column
        where = "" if line is None else f", line {line}" + ("" if column is None else f", column {column}")
        super().__init__(f"{path}{where}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.reason, self.line, self.column)
