"""Files that were damaged at random: an error with words, or samples that a slow and simple reader finds as well.

Some hundreds of each kind in the suite, always the same; 100,000 by `make fuzz`, from a new seed each time.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import time

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data import FormatError, load, save

SEED = time.time_ns() % 2**32 if "MAXMARGIN_FUZZ" in os.environ else 0

NUMBER = rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf|infinity|nan))"
SPACE = b" \t\r\v\f"
SEEDS = [
    b"1 1:0.5 3:2\n-1 2:1e-3 # c\n+1\n\n2 10:1.25 12:-7\n",
    b"1 qid:3 0:1 5:nan\r\n-1 qid:4 1:inf\r\n",
    b"# head 1:2\n0.5 3:1 1:2 2:.5\n1e3 4294967296:1\n",
    b"1 1:123456789012345678901234567890 2:0.00000000000000000000000000012345e12\n3 2:1\n",
]
TABLES = [
    b"1,2,3\n4,5.5,-6e2\n7,8,9\n", b"y,a,b\r\n1,2,3\r\n\r\n4,nan,inf\r\n", b"cat,1,2\n\"a, b\",3,4\n\"say \"\"x\"\"\",5,6\n",
    b"\xef\xbb\xbf1,2\n3, 4 \n",
]
LETTERS = b"0123456789:.,-+eE \t\n\r#qidnaf\"\x00\xff;_x"


def mutants(rng: np.random.Generator, seeds: list[bytes], count: int):
    """Seeds with some bytes changed, left out, put in, moved, cut off, or spliced with another seed."""
    for _ in range(count):
        data = bytearray(seeds[rng.integers(len(seeds))])
        for _ in range(rng.integers(1, 5)):
            at, other = (int(k) for k in rng.integers(0, len(data) + 1, 2))
            kind = rng.integers(7)
            if kind == 0:
                data[at : at + 1] = bytes([LETTERS[rng.integers(len(LETTERS))]])
            elif kind == 1:
                data[at:at] = bytes(LETTERS[k] for k in rng.integers(0, len(LETTERS), rng.integers(1, 4)))
            elif kind == 2:
                del data[at : at + int(rng.integers(1, 9))]
            elif kind == 3:
                data[at:at] = data[min(at, other) : max(at, other)]
            elif kind == 4:
                del data[at:]
            elif kind == 5:
                data[at:] = seeds[rng.integers(len(seeds))][at:]
            elif data:
                data[at % len(data)] ^= 1 << int(rng.integers(8))
        yield bytes(data)


def slow_libsvm(text: bytes, zero_based, n_features):
    """What a file says, line by line in Python; ValueError where it says nothing."""
    rows = []
    for line in text.split(b"\n"):
        words = re.findall(rb"[^ \t\r\v\f]+", line.split(b"#", 1)[0])
        if not words:
            continue
        if not re.fullmatch(NUMBER, words[0]):
            raise ValueError
        if len(words) > 1 and words[1].startswith(b"qid:"):
            if not re.fullmatch(rb"qid:-?\d+", words[1]) or not -(2**63) <= int(words[1][4:]) < 2**63:
                raise ValueError
            del words[1]
        row = {}
        for word in words[1:]:
            pair = re.fullmatch(rb"(\d{1,18}):(" + NUMBER + rb")", word)
            if not pair or int(pair[1]) in row:
                raise ValueError
            row[int(pair[1])] = float(pair[2])
        rows.append((float(words[0]), dict(sorted(row.items()))))
    indices = [j for _, row in rows for j in row]
    first = {True: 0, False: 1, "auto": 0 if 0 in indices else 1}[zero_based]
    columns = max((j + 1 - first for j in indices), default=0)
    if any(j < first for j in indices) or (n_features is not None and columns > n_features):
        raise ValueError
    labels, pairs = [y for y, _ in rows], [(j - first, v) for _, row in rows for j, v in row.items()]
    return labels, pairs, [len(row) for _, row in rows], (len(rows), columns if n_features is None else n_features)


@pytest.mark.parametrize("packed", [False, True])
def test_libsvm_text(packed, fuzz_rounds):
    rng = np.random.default_rng(SEED)
    accepted = 0
    for data in mutants(rng, SEEDS, fuzz_rounds(1500)):
        options = {"zero_based": ("auto", True, False)[rng.integers(3)], "n_features": (None, 12, 2**40)[rng.integers(3)]}
        try:
            expected = slow_libsvm(data, **options)
        except ValueError:
            expected = None
        try:
            x, y = load(io.BytesIO(gzip.compress(data, 1) if packed else data), n_jobs=int(rng.integers(1, 3)), **options)
        except FormatError as error:
            assert expected is None, (data, options, error)
            text = str(error)
            assert error.line is not None or "count from 0" in text, (data, text)
            assert error.line is None or 1 <= error.line <= data.count(b"\n") + 1, (data, text)
            continue
        assert expected is not None, (data, options)
        accepted += 1
        labels, pairs, lengths, shape = expected
        assert x.shape == shape, (data, options)
        np.testing.assert_array_equal(y, labels)
        np.testing.assert_array_equal(np.diff(x.indptr), lengths)
        assert x.indices.tolist() == [j for j, _ in pairs], (data, options)
        np.testing.assert_array_equal(x.data, [v for _, v in pairs])
    assert accepted > 50  # not all of them were broken


@pytest.mark.parametrize("kind", ["csv", "gz", "npy", "npz", "sparse npz", "parquet", "arrow"])
def test_other_files(kind, fuzz_rounds):
    """No oracle here: clean errors, and shapes that fit together. Fewer for formats that other libraries read."""
    rng = np.random.default_rng([SEED, len(kind)])
    x = np.round(rng.normal(size=(5, 3)), 2)
    format = kind.removeprefix("sparse ")
    if kind in ("parquet", "arrow"):
        pytest.importorskip("pyarrow")
    if kind == "gz":
        seeds, format = [gzip.compress(text) for text in SEEDS], "libsvm"
    elif kind == "csv":
        seeds = TABLES
    else:
        out = io.BytesIO()
        save(out, sp.csr_matrix(x) if kind.startswith("sparse") else x, np.arange(5), format=format)
        seeds = [out.getvalue()]
    accepted = 0
    slow = kind in ("parquet", "arrow")
    for data in mutants(rng, seeds, fuzz_rounds(4000 if slow else 400) // (10 if slow else 1)):
        choices = {"libsvm": [0], "npz": [0, None]}.get(format, [0, -1, None])
        label = choices[rng.integers(len(choices))]
        try:
            found, y = load(io.BytesIO(data), format=format, label=label, n_jobs=1)
        except (ValueError, OSError):
            continue
        accepted += 1
        assert found.ndim == 2 and (y is None) == (label is None)
        assert y is None or y.shape == found.shape[:1]
        if sp.issparse(found):
            found.check_format(full_check=True)
            assert sp.csr_matrix((found.data, found.indices, found.indptr), shape=found.shape).has_canonical_format
    assert accepted > 0 or kind == "gz"
