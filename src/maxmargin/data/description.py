"""What a file holds, found without keeping it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Description:
    """Rows and entries of a file or of a part of it. The descriptions of all parts add up to that of the file.

    Attributes
    ----------
    rows : int
    stored : int
        Entries: index:value pairs of a sparse file, all values of a dense one.
    low, high : int or None
        The smallest and the largest index of an entry, as written in the file; None if there is no entry.
    """

    rows: int
    stored: int
    low: int | None
    high: int | None

    @property
    def zero_based(self) -> bool:
        """Whether indices count from 0: whether one of them is 0."""
        return self.low == 0

    @property
    def n_features(self) -> int:
        """The number of columns that the indices ask for."""
        return 0 if self.high is None else self.high + self.zero_based

    def __add__(self, other: Description) -> Description:
        lows = [d.low for d in (self, other) if d.low is not None]
        highs = [d.high for d in (self, other) if d.high is not None]
        rows, stored = self.rows + other.rows, self.stored + other.stored
        return Description(rows, stored, min(lows, default=None), max(highs, default=None))
