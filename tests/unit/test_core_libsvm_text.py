"""Rows of LIBSVM's format as the core reads them: against a reader by regular expressions."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from texts import BLANKS, NUMBER, PIECE, Found, as_bytes

from maxmargin import _core

REALS = [np.float32, np.float64]
MOST = 10**18 - 1


@cache
def libsvm_line(line: bytes, lowest: int, highest: int, queries: bool) -> Any:
    """None of an empty line; (column, reason) of a wrong one; else label, query number and pairs in their order."""
    tokens = [(m.start(), m.group()) for m in re.finditer(rb"[^ \t\r\v\f#]+", line.split(b"#")[0])]
    if not tokens:
        return None
    at, label = tokens.pop(0)
    if not NUMBER.fullmatch(label):
        return at, 2 if b":" in label else 3 if b"," in label else 1
    query = 0
    if tokens and tokens[0][1].startswith(b"qid:"):
        place, token = tokens.pop(0)
        if not re.fullmatch(rb"-?\d+", token[4:]) or not -(2**63) <= int(token[4:]) < 2**63:
            return place, 11
        query = int(token[4:])
    elif queries:
        return at, 12
    pairs: list[tuple[int, float]] = []
    for place, token in tokens:
        name, colon, value = token.partition(b":")
        if not colon:
            return place, 4
        if token.startswith(b"qid:"):
            return place, 13
        if not re.fullmatch(rb"\d+", name):
            return place, 5
        if len(name) > 18 or not lowest <= int(name) <= highest:
            return place, 6 if len(name) <= 18 and int(name) < lowest else 7
        if not NUMBER.fullmatch(value):
            return place, 9 if value else 8
        pairs.append((int(name), float(value)))
    names = [name for name, _ in pairs]
    twice = sorted(name for name in set(names) if names.count(name) > 1)
    if twice:
        return [place for (place, _), name in zip(tokens, names) if name == twice[0]][1], 10
    return float(label), query, dict(sorted(pairs))


def libsvm_text(text: bytes, *limits: Any) -> Found:
    out, begin = Found(), 0
    for line in text.split(b"\n")[:-1]:
        row = libsvm_line(line, *limits)
        if row is not None and len(row) == 2:
            return Found(fault=(begin + row[0], row[1]))
        if row is not None:
            out.labels.append(row[0])
            out.queries.append(row[1])
            out.rows.append(row[2])
        out.lines += 1
        begin += len(line) + 1
    return out


def assert_libsvm(taken: Any, wanted: Found, shift: int, dtype: Any, queries: bool) -> None:
    labels, lengths, indices, values, numbers = taken
    np.testing.assert_array_equal(labels, np.array(wanted.labels, np.float64))
    np.testing.assert_array_equal(lengths, np.array([len(row) for row in wanted.rows], np.int64))
    np.testing.assert_array_equal(indices, np.array([i - shift for row in wanted.rows for i in row], np.int64))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(values, np.array([v for row in wanted.rows for v in row.values()], dtype))
    assert values.dtype == dtype
    np.testing.assert_array_equal(numbers, np.array(wanted.queries if queries else [], np.int64))


GOOD = [b"1", b"-1", b"+3.5e2", b"nan", b"-Infinity", b".5", b"7."]
PAIRS = [b"1:2", b"3:4.5", b"2:-1", b"9:1e3", b"20:0", b"0:7", b"100:nan", b"999:+.25"]
BAD = [b"x", b"1,2", b"1:", b":1", b"a:1", b"1x:2", b"1:2:3", b"1:x", b"5", b"qid:4", b"qid:", b"qid:x", b"qi:1", b"1e5",
       b"qid:9223372036854775808", b"-1:2", b"1000000000000000000:1", b"4:--1", b"4:1e", b"1:infinit"]  # fmt: skip


def random_line(rng: np.random.Generator, wrong: float) -> bytes:
    """A label, perhaps a query number, pairs in any order; or something wrong; comments and blanks of all kinds."""
    kind = rng.random()
    if kind < 0.1:
        return [b"", b"  ", b"# 1 2:3", b"\t#", b"\r"][rng.integers(5)]
    tokens = [GOOD[rng.integers(len(GOOD))]]
    if rng.random() < 0.6:
        tokens.append(b"qid:%d" % rng.integers(-5, 10**9))
    tokens += [PAIRS[k] for k in rng.permutation(len(PAIRS))[: rng.integers(0, 6)]]
    if rng.random() < wrong:
        pool = BAD + PAIRS
        tokens.insert(rng.integers(len(tokens) + 1), pool[rng.integers(len(pool))])
    blanks = [BLANKS[k : k + 1] * rng.integers(1, 3) for k in rng.integers(0, len(BLANKS), len(tokens) + 1)]
    line = b"".join(part for pair in zip(tokens, blanks) for part in pair)
    return (blanks[-1] if rng.random() < 0.2 else b"") + line.rstrip(BLANKS if rng.random() < 0.5 else b"") + (
        b"# 4:5 qid:1" if rng.random() < 0.1 else b"")  # fmt: skip


@pytest.mark.parametrize("queries", [True, False])
@pytest.mark.parametrize(("lowest", "highest"), [(0, MOST), (1, 999), (1, 99), (0, 998)])
def test_any_line_is_a_row_or_has_its_fault(lowest: int, highest: int, queries: bool) -> None:
    """Lines one by one: what they hold, or the place and the reason of what is wrong first; which changes nothing else."""
    rng = np.random.default_rng(highest)
    reader, kept = _core.LibsvmReader64(lowest, highest, 1, queries, 1), Found()
    faults = set()
    for _ in range(1500):
        text = random_line(rng, 0.5) + b"\n"
        wanted = libsvm_text(text, lowest, highest, queries)
        assert reader.feed(as_bytes(text)) == wanted.fault, text
        faults.add(wanted.fault[1])
        kept.labels += wanted.labels
        kept.rows += wanted.rows
        kept.queries += wanted.queries
        kept.lines += wanted.lines
    assert faults >= {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11} and reader.lines == kept.lines
    names = [i for row in kept.rows for i in row]
    assert (reader.low, reader.high) == (min(names), max(names))
    assert_libsvm(reader.take(), kept, 1, np.float64, queries)
    assert [len(part) for part in reader.take()] == [0] * 5 and reader.lines == kept.lines


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 1, 5 * PIECE + 7])
def test_texts_around_whole_pieces(size: int, dtype: Any) -> None:
    """Any number of threads reads the same rows of every piece, and names the first of two faults."""
    rng = np.random.default_rng(size)
    some = [random_line(rng, 0.0) + b"  # " + b"." * rng.integers(0, 300) + b"\n" for _ in range(200)]
    lines = [some[k] for k in rng.integers(0, 200, size // 50)]
    while sum(map(len, lines)) > size - 1:
        lines.pop()
    lines.append(b"#" * (size - sum(map(len, lines)) - 1) + b"\n")
    text = b"".join(lines)
    assert len(text) == size
    make = _core.LibsvmReader32 if dtype == np.float32 else _core.LibsvmReader64
    wanted = libsvm_text(text, 0, MOST, False)
    assert wanted.fault[0] < 0
    begins = np.cumsum([0, *map(len, lines)])
    for threads in (1, 2, 3):
        reader = make(0, MOST, 0, False, threads)
        assert reader.feed(as_bytes(text)) == (-1, 0) and reader.lines == len(lines)
        assert_libsvm(reader.take(), wanted, 0, dtype, False)
        for k, other in ((0, len(lines) - 1), (len(lines) // 2, len(lines) - 2), (len(lines) - 2, len(lines) - 1)):
            wrong = [b"1 2\n" if i in (k, other) else line for i, line in enumerate(lines)]
            assert reader.feed(as_bytes(b"".join(wrong))) == (begins[k] + 2, 4)
        assert reader.lines == len(lines) and len(reader.take()[0]) == 0


@pytest.mark.parametrize("first", [0, PIECE - 3, PIECE // 2, 3 * PIECE])
@pytest.mark.parametrize("last", [0, 2, PIECE, 2 * PIECE])
def test_lines_longer_than_a_piece(first: int, last: int) -> None:
    """A piece may hold no line of its own."""
    text = b"1 1:1\n" + b"#" * first + b"\n2 2:2 " + b" " * last + b"3:3\n3\n"
    for threads in (1, 2):
        reader = _core.LibsvmReader64(0, MOST, 0, False, threads)
        assert reader.feed(as_bytes(text)) == (-1, 0)
        assert_libsvm(reader.take(), libsvm_text(text, 0, MOST, False), 0, np.float64, False)
        assert reader.lines == 4


def test_nothing_is_kept_of_a_block_that_is_wrong_from_its_first_byte() -> None:
    """Also where its other pieces were read by then: the label that is none takes long to get through."""
    text = b"x" * (100 * PIECE) + b"\n" + b"1 1:1\n" * 50_000
    for threads in (1, 2, 3):
        reader = _core.LibsvmReader64(0, MOST, 0, False, threads)
        for _ in range(3):
            assert reader.feed(as_bytes(text)) == (0, 1)
            assert (reader.lines, reader.high) == (0, -1) and [len(part) for part in reader.take()] == [0] * 5
        assert reader.feed(as_bytes(b"1 2:3\n")) == (-1, 0) and (reader.lines, reader.low, reader.high) == (1, 2, 2)


@pytest.mark.parametrize("shift", [0, 1])
def test_indices_take_more_room_once_one_of_them_needs_it(shift: int) -> None:
    """From the first one beyond 32 bits on, those before it included; and again from the next take on."""
    edge = 2**31 - 1 + shift
    for widest in (edge - 1, edge, edge + 1, MOST):
        reader, wide = _core.LibsvmReader64(0, MOST, shift, False, 2), widest > edge
        assert reader.feed(as_bytes(b"1 1:5 7:1\n")) == (-1, 0)
        reader.expect(10.0)
        text = b"2 3:1 %d:4\n3 2:9\n" % widest
        assert reader.feed(as_bytes(text)) == (-1, 0) and (reader.low, reader.high) == (1, widest)
        taken = reader.take()
        assert taken[2].dtype == (np.int64 if wide else np.int32)
        assert_libsvm(taken, libsvm_text(b"1 1:5 7:1\n" + text, 0, MOST, False), shift, np.float64, False)
        assert reader.feed(as_bytes(b"4 8:1\n")) == (-1, 0) and reader.high == widest
        taken = reader.take()
        assert taken[2].tolist() == [8 - shift] and taken[3].tolist() == [1.0]


def test_many_blocks_grow_what_was_read() -> None:
    """Blocks of any size, empty ones among them, are their rows one after the other; room is asked for in vain too."""
    rng = np.random.default_rng(0)
    for times in (0.0, 1.0, 3.5, 1e15):
        reader, whole = _core.LibsvmReader32(0, MOST, 0, True, 1), b""
        for blocks in range(60):
            text = b"".join(b"%d qid:%d %d:%d\n" % (i, i, i + 1, i) for i in range(rng.integers(0, 40))) + b"#\n"
            assert reader.feed(as_bytes(text)) == (-1, 0)
            whole += text
            if blocks % 20 == 3:
                reader.expect(times)
        assert_libsvm(reader.take(), libsvm_text(whole, 0, MOST, True), 0, np.float32, True)


@pytest.mark.parametrize("dtype", REALS)
def test_as_many_rows_and_entries_as_bytes_allow(dtype: Any) -> None:
    """Labels of one digit alone; pairs of one digit each, of which a line has ten at the most."""
    make = _core.LibsvmReader32 if dtype == np.float32 else _core.LibsvmReader64
    pairs = b"".join(b" %d:%d" % (i, i) for i in range(10))
    for n in (*range(1, 40), 100, 1000):
        for text in (b"1\n" * n, b"2\n" * n + b"\n", (b"1" + pairs[: 4 * (n % 11)] + b"\n") * n, (b"3" + pairs + b"\n") * n):
            reader = make(0, MOST, 0, False, 1)
            assert reader.feed(as_bytes(text)) == (-1, 0)
            assert_libsvm(reader.take(), libsvm_text(text, 0, MOST, False), 0, dtype, False)
