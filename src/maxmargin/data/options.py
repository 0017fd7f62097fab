"""How a file is to be read, checked once and handed to the reader of its format."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from maxmargin.runtime.threads import thread_count

ZeroBased = bool | Literal["auto"]
Label = int | str | None
Part = tuple[int, int]


@dataclass(frozen=True)
class Options:
    """The keywords of `load`; see there. `given` are the names of those that differ from their default."""

    n_features: int | None
    zero_based: ZeroBased
    dtype: np.dtype[Any]
    query_id: bool
    label: Label
    header: bool | Literal["auto"]
    delimiter: str | None
    part: Part | None
    threads: int
    given: frozenset[str]

    @classmethod
    def checked(
        cls, *, n_features: int | None = None, zero_based: ZeroBased = "auto", dtype: DTypeLike = np.float64,
        query_id: bool = False, label: Label = 0, header: bool | Literal["auto"] = "auto", delimiter: str | None = None,
        part: Part | None = None, n_jobs: int | None = None,
    ) -> Options:
        """Values that mean something, whatever the format."""
        if n_features is not None and (not isinstance(n_features, numbers.Integral) or isinstance(n_features, bool)
                                       or n_features < 0):
            raise ValueError(f"n_features={n_features!r} must be a whole number ≥ 0, or None to take it from the file")
        for name, value in (("zero_based", zero_based), ("header", header)):
            if not (isinstance(value, (bool, np.bool_)) or (isinstance(value, str) and value == "auto")):
                raise ValueError(f"{name}={value!r} must be True, False or 'auto'")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={dtype!r} must be float32 or float64")
        if not isinstance(query_id, (bool, np.bool_)):
            raise ValueError(f"query_id={query_id!r} must be True or False")
        if not (label is None or isinstance(label, (str, numbers.Integral))) or isinstance(label, bool):
            raise ValueError(f"label={label!r} must be the number or the name of a column, or None if there is none")
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1
                                      or delimiter.isalnum() or delimiter in ' "+-.\r\n' or not delimiter.isascii()):
            raise ValueError(f"delimiter={delimiter!r} must be one character that no number has, such as ',' ';' or a tab")
        if part is not None:
            part = _checked_part(part)
        defaults = {"zero_based": "auto", "query_id": False, "label": 0, "header": "auto", "delimiter": None}
        asked = {"zero_based": zero_based, "query_id": query_id, "label": label, "header": header, "delimiter": delimiter}
        given = frozenset(name for name, value in asked.items() if value is not defaults[name] and value != defaults[name])
        return cls(None if n_features is None else int(n_features), zero_based, np.dtype(dtype), bool(query_id), label,
                   header, delimiter, part, thread_count(n_jobs), given)

    def refuse(self, kind: str, *names: str) -> None:
        """Say so if an option was given that this format has no use for."""
        for name in names:
            if name in self.given:
                raise ValueError(f"{name}={getattr(self, name)!r} has no meaning for {kind}: leave it out")

    def columns(self, found: int, path: str) -> int:
        """The number of features of a table, which must be the one asked for."""
        if self.n_features is not None and self.n_features != found:
            raise ValueError(f"{path} has {found} features, not n_features={self.n_features}")
        return found


@dataclass(frozen=True)
class Saving:
    """The keywords of `save`; see there."""

    zero_based: bool = False
    queries: Any = None
    comment: str = ""
    header: list[str] | None = None
    delimiter: str | None = None
    threads: int = 1

    def refuse(self, kind: str, *names: str) -> None:
        """Say so if an option was given that this format has no use for."""
        words = {"queries": "query_id"}
        for name in names:
            value = getattr(self, name)
            if value is not None and value is not False and not (isinstance(value, str) and not value):
                raise ValueError(f"{words.get(name, name)} has no meaning for {kind}: leave it out")


def _checked_part(part: Any) -> Part:
    whole = isinstance(part, (tuple, list)) and len(part) == 2 and all(isinstance(p, numbers.Integral) for p in part)
    if not whole or not 0 <= part[0] < part[1]:
        raise ValueError(f"part={part!r} must be (rank, size) with 0 ≤ rank < size")
    return int(part[0]), int(part[1])


def part_rows(part: Part | None, rows: int) -> tuple[int, int]:
    """The rows [first, last) of a part; together the parts are all rows."""
    rank, size = part or (0, 1)
    return rows * rank // size, rows * (rank + 1) // size


def label_column(label: int | str, names: list[str] | int, path: str) -> int:
    """The place of the label among the columns of a table, which have names or are so many."""
    columns = names if isinstance(names, int) else len(names)
    if isinstance(label, str):
        if isinstance(names, int) or names.count(label) != 1:
            known = "they have none" if isinstance(names, int) else ", ".join(names)
            raise ValueError(f"label={label!r} must be the name of one of the columns of {path}: {known}")
        return names.index(label)
    if not -columns <= label < columns:
        raise ValueError(f"label={label}: {path} has {columns} columns, 0 to {columns - 1} (or -{columns} to -1)")
    return int(label) % columns
