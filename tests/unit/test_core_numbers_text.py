"""Numbers as the core reads them from text, and rows as it writes them: against Python's own numbers."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.data.matrix import as_matrix

REALS = [np.float32, np.float64]


def as_bytes(text: bytes) -> Any:
    return np.frombuffer(text, np.uint8)


def read(words: list[str], dtype: Any) -> Any:
    """As a table of one column."""
    reader = (_core.CsvReader32 if dtype == np.float32 else _core.CsvReader64)(",", 1, -1, False, 1)
    assert reader.feed(as_bytes("".join(f"{word}\n" for word in words).encode())) == (-1, 0)
    values = reader.take()[1]
    assert values.dtype == dtype and len(values) == len(words)
    return values


# Of 15 to 25 digits, around 2⁵³ and 2⁶⁴; powers of ten around 22, and where numbers end.
WHOLE = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 3, 2**64 - 1, 2**64, 2**64 + 1, 10**19 - 1, 10**19, 16777217, 33554435]
POWERS = [-345, -320, -45, -40, -24, -23, -22, -21, -1, 0, 1, 21, 22, 23, 24, 38, 39, 300, 320]


def test_numbers_at_the_limits_of_exact_arithmetic_are_rounded_correctly() -> None:
    """With the point anywhere, and zeros before; in both precisions as Python reads them."""
    rng = np.random.default_rng(0)
    whole = WHOLE + [int(rng.integers(1, 2**62)) * int(rng.integers(1, 10**k)) for k in range(1, 8) for _ in range(40)]
    words = []
    for value in whole:
        for power in POWERS:
            digits = str(value)
            cut = int(rng.integers(0, len(digits) + 1))
            words += [f"{digits}e{power}", f"-{digits[:cut]}.{digits[cut:]}E{power:+}", f"000{digits}.e{power}"]
    exact = np.array([float(word) for word in words])
    np.testing.assert_array_equal(read(words, np.float64), exact)
    with np.errstate(over="ignore"):
        single, found = exact.astype(np.float32), read(words, np.float32)
    middle = (np.abs(exact).view(np.uint64) & 0x1FFFFFFF) == 0x10000000  # of two floats, where rounding twice may be wrong
    np.testing.assert_array_equal(found[~middle], single[~middle])


def test_the_middle_of_two_floats_goes_to_the_even_one_and_what_lies_beside_it_does_not() -> None:
    """However near it is: as a double it may be the middle itself."""
    rng = np.random.default_rng(1)
    for value in np.concatenate([rng.normal(size=60), 2.0 ** rng.integers(-120, 120, 60)]).astype(np.float32):
        above = np.nextafter(value, np.float32(np.inf))
        even = value if value.view(np.int32) % 2 == 0 else above
        with localcontext() as context:
            context.prec = 300
            middle = (Decimal(float(value)) + Decimal(float(above))) / 2
            for off, wanted in ((0, even), (1, above), (-1, value)):
                for share in ("1e-15", "1e-25", "1e-60"):
                    word = f"{middle + off * abs(middle) * Decimal(share):f}"
                    assert read([word], np.float32)[0] == wanted


WORDS = ["inf", "+INF", "-inf", "Infinity", "-iNfInItY", "nan", "NaN", "-NAN", "1e999", "-1e999", "1e-999", "-1e-999",
         "0e999", "-0", "0.0", "1e-9999999999999999999", "-1e9999999999999999999", "0." + "0" * 400 + "1", "1" + "0" * 400,
         "00012", "0." + "0" * 400 + "1e500", "1" + "0" * 400 + "e-300", ".5", "5.", "1e+5", "1E-5",
         "1e0000000000000000000005", "0.001e-400", "123456e-400", "0.00001e310", "100000e305", "0.1e309", "0.9e309",
         "1.7e308", "17.9e307"]  # fmt: skip


@pytest.mark.parametrize("dtype", REALS)
def test_words_and_numbers_out_of_range(dtype: Any) -> None:
    values = read(WORDS, dtype)
    with np.errstate(over="ignore"):
        wanted = np.array([float(word) for word in WORDS]).astype(dtype)
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(np.signbit(values[wanted == 0]), np.signbit(wanted[wanted == 0]))


NONE = ["+", "-", ".", "e5", "infi", "infinit", "infinityx", "nanx", "in", "na", "1e", "1e+", "1.2.3", "++1", "+-1", "1_0",
        "0x1", "1f", "- 1", "\x00", "1\x00", "I", "n", ":", "1:", "/", "1/"]  # fmt: skip


@pytest.mark.parametrize("word", NONE)
def test_what_is_no_number(word: str) -> None:
    """In any column; nothing of its block is kept."""
    for columns, text in ((1, f"{word}\n"), (2, f"{word},2\n"), (2, f"1,{word}\n"), (2, f"1,2\n3,{word}\n")):
        reader = _core.CsvReader64(",", columns, -1, False, 1)
        assert reader.feed(as_bytes(text.encode())) == (text.rindex(word) if columns == 2 and text[0] == "1" else 0, 1)
        assert len(reader.take()[1]) == reader.lines == 0


def number(value: Any) -> str:
    """The shortest text that reads back the same; of whole numbers without a point."""
    text = str(int(value)) if float(value).is_integer() else str(value)
    return "-0" if value == 0 and np.signbit(value) else text


VALUES = [0.5, -1.25, 3.0, -7.0, 0.1, 100.0, 123456.0, -0.375, 16777215.0]


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 600])
def test_rows_are_written_in_their_order(n: int, dtype: Any) -> None:
    """Any range of them, by any number of threads, in both formats: with and without labels and query numbers."""
    rng = np.random.default_rng(n)
    x = rng.choice(VALUES, (n, 4)).astype(dtype) * (rng.random((n, 4)) < 0.6)
    y, queries = rng.choice(VALUES, n), rng.integers(-9, 2**62, n)
    if not n:
        assert _core.libsvm_text(as_matrix(x), y, queries, 0, 0, 1, 1) == b""
        return
    stored = sp.csr_matrix(x)
    stored.data[::5] = 0
    words = [f"label {i}" for i in range(n)]
    ends = np.cumsum([len(word) for word in words])
    letters = as_bytes("".join(words).encode())
    for first, last in ((0, n), (n // 2, n), (0, n // 2), (n // 3, n - n // 3), (n, n)):
        some = range(first, last)
        for shift in (0, 1):
            for held, pairs in ((x, [[(j, v) for j, v in enumerate(row) if v] for row in x]),
                                (stored, [list(zip(row.indices, row.data)) for row in stored])):  # fmt: skip
                texts = [" ".join(f"{j + shift}:{number(v)}" for j, v in row) for row in pairs]
                plain = [f"{number(y[i])} {texts[i]}".rstrip() + "\n" for i in some]
                ranked = [f"{number(y[i])} qid:{queries[i]} {texts[i]}".rstrip() + "\n" for i in some]
                for threads in (1, 2, 3):
                    for numbers, wanted in ((None, plain), (queries, ranked)):
                        found = _core.libsvm_text(as_matrix(held), y, numbers, first, last, shift, threads)
                        assert found.decode() == "".join(wanted)
        cells = [";".join(map(number, row)) + "\n" for row in x]
        nothing, nowhere = as_bytes(b""), np.zeros(0, np.int64)
        for threads in (1, 2, 3):
            table = lambda *what: _core.csv_text(as_matrix(x), *what, ";", first, last, threads).decode()  # noqa: B023, E731
            assert table(None, nothing, nowhere) == "".join(cells[i] for i in some)
            assert table(y, nothing, nowhere) == "".join(f"{number(y[i])};{cells[i]}" for i in some)
            assert table(None, letters, ends) == "".join(f"{words[i]};{cells[i]}" for i in some)
