"""Tables of numbers as the core reads them from text: against a reader by regular expressions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from texts import BLANKS, NUMBER, PIECE, Found, as_bytes

from maxmargin import _core

REALS = [np.float32, np.float64]


def table_line(line: bytes, delimiter: bytes, columns: int, label: int, texts: bool) -> Any:
    """None of an empty line; (column, reason) of a wrong one; else its fields in their order."""
    blank = bytes(b for b in BLANKS if b != delimiter[0])
    some = b"[" + re.escape(blank) + b"]*"
    text = rb'(?:"(?:[^"]|"")*"(?!")|[^"' + re.escape(delimiter) + rb"][^" + re.escape(delimiter) + rb"]*|)"
    at = len(line) - len(line.lstrip(blank))
    if at == len(line):
        return None
    fields: list[Any] = []
    for j in range(columns):
        at += len(line[at:]) - len(line[at:].lstrip(blank))
        if j == label and texts:
            if line[at : at + 1] == b'"' and not re.match(rb'"(?:[^"]|"")*"(?!")', line[at:]):
                return at, 5
            match = re.match(text, line[at:])
            assert match is not None
            word, end = match.group().rstrip(blank), at + match.end()
            if not word:
                return at, 2
            fields.append((at, at + len(word)))
        else:
            quote = line[at : at + 1] == b'"'
            inner = re.match(some, line[at + quote :])
            assert inner is not None
            begin = at + quote + inner.end() * quote
            if line[begin : begin + 1] in (b"", delimiter) or (quote and line[begin : begin + 1] == b'"'):
                return at, 2
            match = NUMBER.match(line, begin)
            if not match:
                return at, 1
            fields.append(float(match.group()))
            end = match.end()
            if quote:
                closed = re.compile(some + b'"').match(line, end)
                if not closed:
                    return at, 1
                end = closed.end()
        begin, at = at, end + len(line[end:]) - len(line[end:].lstrip(blank))
        last, here = j + 1 == columns, line[at : at + 1]
        if here == delimiter and last:
            return at + 1, 4
        if here == b"" and not last:
            return at, 3
        if here != (b"" if last else delimiter):
            return begin, 1
        at += 1
    return fields


def table(text: bytes, *layout: Any) -> Found:
    """Rows as fields in their order, bounds of texts as places in the whole."""
    out, begin = Found(), 0
    for line in text.split(b"\n")[:-1]:
        row = table_line(line, *layout)
        if isinstance(row, tuple):
            return Found(fault=(begin + row[0], row[1]))
        if row is not None:
            out.labels += [row[j] for j in range(len(row)) if j == layout[2]]
            out.rows.append(dict(enumerate(row[j] for j in range(len(row)) if j != layout[2])))
            if layout[3]:
                out.labels[-1] = tuple(begin + b for b in out.labels[-1])
        out.lines += 1
        begin += len(line) + 1
    return out


def assert_csv(reader: Any, wanted: Found, texts: bool, dtype: Any) -> None:
    bounds = reader.bounds()
    labels, values = reader.take()
    if texts:
        assert list(zip(*(b.tolist() for b in bounds))) == wanted.labels and len(labels) == 0
    else:
        np.testing.assert_array_equal(labels, np.array(wanted.labels, np.float64))
        assert len(bounds[0]) == len(bounds[1]) == 0
    np.testing.assert_array_equal(values, np.array([v for row in wanted.rows for v in row.values()], dtype))
    assert values.dtype == dtype


LAYOUTS = [(1, -1, False), (3, -1, False), (3, 0, False), (2, 1, False), (3, 2, True), (3, 0, True), (1, 0, True)]
FIELDS = [b"1", b"-2.5", b"1e3", b"nan", b'"7"', b'" .5 "', b"+inf", b"0"]
TEXTS = [b"cat", b'"a,b;c"', b'"say ""so"""', b"big dog", b"3", b"\xc3\xa9", b'""']
ODD = [b"", b"x", b'"', b'"1', b'"1"2', b'""', b'" "', b"1 2", b"--1", b"1e", b'"1""', b"1,2", b"2;"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " "])
@pytest.mark.parametrize(("columns", "label", "texts"), LAYOUTS)
def test_any_line_is_a_row_of_the_table_or_has_its_fault(delimiter: str, columns: int, label: int, texts: bool) -> None:
    rng, comma = np.random.default_rng(columns), delimiter.encode()
    reader = _core.CsvReader64(delimiter, columns, label, texts, 1)
    lines = 0
    for _ in range(500):
        cells = [(TEXTS if j == label and texts else FIELDS)[rng.integers(7)] for j in range(columns)]
        if rng.random() < 0.3:
            cells[rng.integers(columns)] = ODD[rng.integers(len(ODD))]
        cells = cells[: columns - 1] if rng.random() < 0.1 else [*cells, b"4"] if rng.random() < 0.1 else cells
        blanks = [[b"", b"", b" ", b"\t ", b"\r"][k] for k in rng.integers(0, 5, 2 * len(cells) + 1)]
        blanks = [blank.replace(comma, b"") for blank in blanks]
        text = comma.join(a + cell + b for a, cell, b in zip(blanks, cells, blanks[len(cells) :])) + b"\n"
        wanted = table(text, comma, columns, label, texts)
        assert reader.feed(as_bytes(text)) == wanted.fault, text
        lines += wanted.lines
        assert reader.lines == lines
        assert_csv(reader, wanted, texts, np.float64)


@pytest.mark.parametrize("texts", [True, False])
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
def test_tables_around_whole_pieces(size: int, dtype: Any, texts: bool) -> None:
    """Any number of threads reads the same values; labels that are text have their places in the whole block."""
    rng = np.random.default_rng(size)
    word = [text if texts else b"%d" % k for k, text in enumerate(TEXTS[:6])]
    lines = [b"%s,%d,%.3f\n" % (word[k], i, 3 * k - i) for i, k in enumerate(rng.integers(0, 6, size // 18))]
    while sum(map(len, lines)) > size - 3:
        lines.pop()
    text = b"".join(lines)
    text += b" " * (size - len(text) - 1) + b"\n"
    wanted = table(text, b",", 3, 0, texts)
    make = _core.CsvReader32 if dtype == np.float32 else _core.CsvReader64
    for threads in (1, 2, 3):
        reader = make(",", 3, 0, texts, threads)
        for _ in range(2):
            assert reader.feed(as_bytes(text)) == (-1, 0)
            if texts:
                assert_csv(reader, wanted, texts, dtype)
            reader.expect(2.0)
        assert reader.lines == 2 * wanted.lines
        if not texts:
            twice = Found(2 * wanted.labels, 2 * wanted.rows)
            assert_csv(reader, twice, texts, dtype)
        begin = sum(map(len, lines[:-1]))
        assert reader.feed(as_bytes(text[:begin] + b"1,x,3\n")) == (begin + 2, 1)


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(("columns", "label", "texts"), [*LAYOUTS, (1, 0, False), (2, 0, True), (5, 3, False)])
def test_as_many_rows_and_fields_as_bytes_allow(columns: int, label: int, texts: bool, dtype: Any) -> None:
    """Fields of one letter each, and nothing else; the same reader takes larger and smaller blocks."""
    make = _core.CsvReader32 if dtype == np.float32 else _core.CsvReader64
    again = make(",", columns, label, texts, 1)
    for n in (*range(1, 40), 1000, 7):
        row = b",".join(b"a" if texts and j == label else b"%d" % j for j in range(columns)) + b"\n"
        for text in (row * n, row * n + b"\n"):
            wanted = table(text, b",", columns, label, texts)
            for reader in (again, make(",", columns, label, texts, 1)):
                assert reader.feed(as_bytes(text)) == (-1, 0)
                assert_csv(reader, wanted, texts, dtype)
