"""Tables of numbers as text: CSV and its kin, one sample per line, one column of labels.

All fields but the label must be numbers; they and the label may stand in double quotes. The first line is a header if it
has a field that is no number, the label's aside. Labels are numbers, or text if the first of them is no number. An empty
field is an error: what is missing must be filled in, or dropped, by someone who knows what it means.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.data.description import Description
from maxmargin.data.errors import FormatError
from maxmargin.data.libsvm import row_blocks
from maxmargin.data.matrix import as_matrix
from maxmargin.data.options import Options, Saving, label_column
from maxmargin.data.streams import BLOCK, Source, blocks, expected, fault, opened, part_of, quoted

KIND = "CSV"
_MARK = b"\xef\xbb\xbf"  # how some programs begin files of UTF-8
_NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*", re.ASCII | re.IGNORECASE)

# In the order of native/data/csv_reader.hpp.
_REASONS = (
    "",
    "{field} is not a number",
    "the field is empty: fill missing values in, or drop their rows",
    "the line ends after fewer than {columns} fields",
    "the line has more than {columns} fields",
    "a quote is not closed on its line",
)


@dataclass(frozen=True)
class _Layout:
    delimiter: str
    columns: int
    label: int  # -1: none
    text_labels: bool
    begin: int  # bytes before the first row


class _Reading:
    """One pass over a file."""

    def __init__(self, source: Source, options: Options) -> None:
        options.refuse(KIND, "zero_based", "query_id")
        self.source, self.options = source, options
        self.texts: list[str] = []
        self.reader: Any = None

    def steps(self, whole: bool = False) -> Iterator[None]:
        """Feed the file to the reader, a block per step; `whole` if nothing is taken before the end."""
        with opened(self.source) as file:
            text = blocks(file.fill, BLOCK)
            head = _head(text)
            layout = _layout(head, file.name, self.options)
            self.layout = layout
            make = _core.CsvReader32 if self.options.dtype == np.float32 else _core.CsvReader64
            self.reader = make(layout.delimiter, layout.columns, layout.label, layout.text_labels, self.options.threads)
            begin, lines = 0, head[: layout.begin].count(b"\n")
            if self.options.part is None:
                rest = np.frombuffer(head, np.uint8)[layout.begin :]
                text = chain([rest] if len(rest) else [], text)
            else:
                fill, begin = part_of(file, self.options.part, layout.begin)
                text, lines = blocks(fill, BLOCK), 0
            for block in text:
                offset, reason = self.reader.feed(block)
                if offset >= 0:
                    words = _words(block, offset, reason, layout)
                    raise fault(file, begin, lines + self.reader.lines, block, offset, words)
                if whole:
                    self.reader.expect(expected(file, self.options.part, len(block)))
                    whole = False
                if layout.text_labels:
                    self._decode(block, file.name)
                yield

    def take(self) -> tuple[Any, Any]:
        """X and y so far."""
        labels, values = self.reader.take()
        layout = self.layout
        features = layout.columns - (layout.label >= 0)
        rows = len(values) // features if features else max(len(labels), len(self.texts))
        x = values.reshape(rows, features)
        if layout.text_labels:
            texts, self.texts = self.texts, []
            return x, np.array(texts, dtype=str)
        return x, labels if layout.label >= 0 else None

    def _decode(self, block: NDArray[np.uint8], name: str) -> None:
        text = block.tobytes()
        for begin, end in zip(*(bounds.tolist() for bounds in self.reader.bounds())):
            try:
                word = text[begin:end].decode()
            except UnicodeDecodeError:
                raise FormatError(name, f"the label {quoted(text[begin:end])} is not UTF-8") from None
            self.texts.append(word[1:-1].replace('""', '"') if word.startswith('"') else word)


def load(source: Source, options: Options) -> tuple[Any, Any, Any]:
    """X (dense) and y of a file or of a part of it."""
    reading = _Reading(source, options)
    for _ in reading.steps(whole=True):
        pass
    return *reading.take(), None


def pieces(source: Source, options: Options) -> Iterator[tuple[Any, Any, Any]]:
    """The same, a block of the file at a time."""
    reading = _Reading(source, options)
    for _ in reading.steps():
        yield *reading.take(), None


def settled(source: Source, options: Options) -> Options:
    """All that a piece needs to know is in the first lines."""
    return options


def describe(source: Source, options: Options) -> Description:
    """One pass that keeps nothing."""
    reading, rows = _Reading(source, options), 0
    for _ in reading.steps():
        rows += len(reading.take()[0])
    features = reading.layout.columns - (reading.layout.label >= 0)
    return Description(rows, rows * features, 0 if features else None, features - 1 if features else None)


def _head(text: Iterator[NDArray[np.uint8]]) -> bytes:
    """Whole lines from the first on, among them two that are not blank if there are."""
    head = b""
    for block in text:
        head += block.tobytes()
        if head.strip().count(b"\n"):
            break
    return head


def _layout(head: bytes, name: str, options: Options) -> _Layout:
    delimiter = options.delimiter or ("\t" if ".tsv" in name else ",")
    start = len(_MARK) if head.startswith(_MARK) else 0
    first, after = _fields(head, start, delimiter, name)
    if not first:
        raise FormatError(name, "the file is empty: not even its number of columns can be known")
    columns = len(first)
    by_name = isinstance(options.label, str)
    named = options.header
    if named == "auto":
        at = None if options.label is None or by_name else int(options.label) % columns
        named = by_name or any(not _NUMBER.fullmatch(field) for j, field in enumerate(first) if j != at)
    names = [field.strip() for field in first] if named else columns
    label = -1 if options.label is None else label_column(options.label, names, name)
    row = _fields(head, after, delimiter, name)[0] if named else first
    text_labels = 0 <= label < len(row) and not _NUMBER.fullmatch(row[label])
    options.columns(columns - (label >= 0), name)
    return _Layout(delimiter, columns, label, text_labels, after if named else start)


def _fields(head: bytes, start: int, delimiter: str, name: str) -> tuple[list[str], int]:
    """The fields of the first line from `start` on that is not blank, and where the line after it begins."""
    blank = bytes(set(b" \t\v\f\r") - set(delimiter.encode()))
    while start < len(head):
        end = head.index(b"\n", start)
        line, start = head[start:end], end + 1
        if line.strip(blank):
            try:
                return next(csv.reader([line.decode()], delimiter=delimiter, skipinitialspace=True)), start
            except (UnicodeDecodeError, csv.Error) as error:
                raise FormatError(name, f"this is no line of a table ({error})", head.count(b"\n", 0, end) + 1) from None
    return [], start


def _words(block: NDArray[np.uint8], offset: int, reason: int, layout: _Layout) -> str:
    field = re.split(rb"[\r\n]|" + re.escape(layout.delimiter.encode()), block[offset:].tobytes(), maxsplit=1)[0]
    return _REASONS[reason].format(field=quoted(field.strip()), columns=layout.columns)


def write(out: Any, x: Any, y: Any, saving: Saving) -> None:
    """Lines to a binary file, the label first."""
    saving.refuse(KIND, "zero_based", "queries", "comment")
    delimiter = saving.delimiter or ","
    if saving.header is not None:
        expected = x.shape[1] + (y is not None)
        if len(saving.header) != expected:
            raise ValueError(f"header has {len(saving.header)} names, and the table {expected} columns")
        out.write(delimiter.join(_quoted(str(name)) for name in saving.header).encode() + b"\n")
    numbers = y if y is not None and y.dtype == np.float64 else None
    words = [] if y is None or numbers is not None else [_quoted(str(label)).encode() for label in y]
    letters = np.frombuffer(b"".join(words), np.uint8)
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    for first, last in row_blocks(x):
        out.write(_core.csv_text(as_matrix(x), numbers, letters, ends, delimiter, first, last, saving.threads))


def _quoted(word: str) -> str:
    """Text in quotes, unless it needs none."""
    if not word:
        raise ValueError("an empty name or label cannot be told from a missing one in a CSV file")
    if re.search(r"[\r\n]", word):
        raise ValueError(f"{word!r} has a line break, which a field must not have")
    return word if re.fullmatch(r"[\w.-]+( [\w.-]+)*", word) else '"' + word.replace('"', '""') + '"'
