"""Laws of files, over any samples: round trips, chunks, parts, threads; and LIBSVM text as scikit-learn reads it."""

from __future__ import annotations

import io
import tempfile
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from maxmargin.data import Description, chunks, describe, load, save
from maxmargin.data.files import _FORMATS
from maxmargin.data.libsvm import cache_libsvm
from maxmargin.data.options import Options

TABLES = ["csv", "npy", "npz", "parquet", "arrow"]
FORMATS = ["libsvm", *TABLES]
MOST = 10**18 - 1


def floats(dtype):
    return st.floats(width=32 if dtype == np.float32 else 64)  # NaN, infinities, subnormals and -0.0 among them


@st.composite
def sparse_samples(draw):
    """CSR of any values, empty rows and columns far out among them, and labels."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    columns = draw(st.sampled_from([1, 3, 40, 2**31 - 1, 2**31, 2**31 + 5, MOST]))
    near = st.one_of(st.integers(0, min(columns - 1, 8)), st.integers(max(0, columns - 3), columns - 1))
    rows = draw(st.lists(st.dictionaries(near, floats(dtype), max_size=5), max_size=7))
    indices = np.array([j for row in rows for j in sorted(row)], np.int64)
    values = np.array([row[j] for row in rows for j in sorted(row)], dtype)
    x = sp.csr_matrix((values, indices, np.cumsum([0, *map(len, rows)])), shape=(len(rows), columns))
    return x, np.array(draw(st.lists(floats(np.float64), min_size=len(rows), max_size=len(rows))))


@st.composite
def dense_samples(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rows, columns = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    cells = st.lists(floats(dtype), min_size=rows * columns, max_size=rows * columns)
    labels = st.lists(floats(np.float64), min_size=rows, max_size=rows)
    return np.array(draw(cells), dtype).reshape(rows, columns), np.array(draw(labels))


def equal_bits(a, b):
    """Equal values, 0 and -0 told apart; a NaN is a NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return False
    return a.dtype.kind != "f" or np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


def assert_same(a, b):
    assert a.shape == b.shape and sp.issparse(a) == sp.issparse(b)
    if not sp.issparse(a):
        assert equal_bits(a, b)
        return
    assert equal_bits(a.data, b.data)
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_array_equal(a.indptr, b.indptr)


def stacked(several):
    """Consecutive (X, y) as one."""
    xs, ys = [x for x, _ in several], [y for _, y in several]
    return sp.vstack(xs, format="csr") if sp.issparse(xs[0]) else np.concatenate(xs), np.concatenate(ys)


@given(sparse_samples(), st.booleans(), st.sampled_from([1, 2]), st.integers(1, 60))
def test_sparse_samples_come_back_bit_by_bit(samples, zero_based, threads, block):
    x, y = samples
    out = io.BytesIO()
    queries = np.arange(len(y)) - 1
    save(out, x, y, zero_based=zero_based, query_id=queries, comment="two\nlines", n_jobs=threads)
    with mock.patch("maxmargin.data.libsvm.BLOCK", block):
        again, labels, numbers = load(io.BytesIO(out.getvalue()), n_features=x.shape[1], zero_based=zero_based,
                                      dtype=x.dtype, query_id=True, n_jobs=threads)
    assert_same(again, x)
    assert equal_bits(labels, y) and equal_bits(numbers, queries)
    assert again.indices.dtype == (np.int32 if x.shape[1] < 2**31 else np.int64)
    out = io.BytesIO()
    save(out, x, y, format="npz")
    again, labels = load(io.BytesIO(out.getvalue()), format="npz", dtype=x.dtype)
    assert_same(again, x)
    assert equal_bits(labels, y)


@pytest.mark.parametrize("format", TABLES)
@given(samples=dense_samples(), column=st.integers(0, 4))
def test_dense_samples_come_back_bit_by_bit(format, samples, column):
    x, y = samples
    if format == "npy" and x.dtype == np.float32:  # the labels share the array's type where that loses nothing
        with np.errstate(over="ignore"):
            y = y.astype(np.float32).astype(np.float64)
    out = io.BytesIO()
    save(out, x, y, format=format)
    again, labels = load(io.BytesIO(out.getvalue()), format=format, dtype=x.dtype)
    assert_same(again, x)
    assert equal_bits(labels, y)
    table, _ = load(io.BytesIO(out.getvalue()), format=format, label=None)
    if format != "npz":  # any column may be the label
        columns = x.shape[1] + 1
        again, labels = load(io.BytesIO(out.getvalue()), format=format, label=column % columns - columns)
        assert_same(again, np.delete(table, column % columns, axis=1))
        assert equal_bits(labels, table[:, column % columns])


@given(samples=dense_samples())
def test_dense_samples_as_text_lose_only_zeros(samples):
    x, y = samples
    out = io.BytesIO()
    save(out, x, y)
    again, labels = load(io.BytesIO(out.getvalue()), n_features=x.shape[1], dtype=x.dtype, zero_based=False)
    np.testing.assert_array_equal(again.toarray(), x)
    assert equal_bits(labels, y) and (again.data != 0).all()


@pytest.fixture(scope="module")
def folder():
    """The same 200 rows in every format."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=(200, 7)), 3) * (rng.random((200, 7)) < 0.6)
    x[0, 0] = x[-1, -1] = 1.0
    y = rng.integers(0, 3, 200).astype(float)
    with tempfile.TemporaryDirectory() as name:
        for format in FORMATS:
            save(Path(name) / f"data.{format}", x, y)
        save(Path(name) / "sparse.npz", sp.csr_matrix(x), y)
        save(Path(name) / "data.tsv", x, y, header=[f"a {j}" for j in range(8)])
        yield Path(name)


NAMES = [*(f"data.{format}" for format in FORMATS), "sparse.npz", "data.tsv"]
SETTLED = {"data.libsvm": {"n_features": 7, "zero_based": False}}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10)
@given(rows=st.integers(1, 250), size=st.integers(1, 9), block=st.integers(1, 2000), values=st.integers(1, 3000))
def test_chunks_and_parts_are_the_whole(folder, name, rows, size, block, values):
    path, options = folder / name, SETTLED.get(name, {})
    whole = load(path)
    with (
        mock.patch("maxmargin.data.libsvm.BLOCK", block), mock.patch("maxmargin.data.csv_text.BLOCK", block),
        mock.patch("maxmargin.data.row_files.VALUES", values), mock.patch("maxmargin.data.arrays.VALUES", values),
        mock.patch("maxmargin.data.arrow.VALUES", values),
    ):
        found = list(chunks(path, rows))
        parts = [load(path, part=(rank, size), **options) for rank in range(size)]
        told = [describe(path, part=(rank, size)) for rank in range(size)]
        pieces = [piece for rank in range(size) for piece in chunks(path, rows, part=(rank, size), **options)]
    assert [len(y) for _, y in found] == [min(rows, 200 - first) for first in range(0, 200, rows)]
    for several in (found, parts, pieces):
        x, y = stacked(several)
        assert_same(x, whole[0])
        assert equal_bits(y, whole[1])
    total = sum(told, Description(0, 0, None, None))
    assert total == describe(path) and (total.rows, total.n_features) == (200, 7)
    assert [d.rows for d in told] == [len(y) for _, y in parts]


@given(st.lists(sparse_samples(), min_size=2, max_size=3), st.booleans())
def test_descriptions_add_up(several, zero_based):
    """That of files one after the other is the sum of theirs; and it is that of the entries."""
    texts = []
    for x, y in several:
        out = io.BytesIO()
        save(out, x, y, zero_based=zero_based)
        texts.append(out.getvalue())
    told = [describe(io.BytesIO(text)) for text in texts]
    whole = describe(io.BytesIO(b"".join(texts)))
    assert sum(told, Description(0, 0, None, None)) == sum(reversed(told), Description(0, 0, None, None)) == whole
    indices = np.concatenate([x.indices for x, _ in several]) + (not zero_based)
    assert (whole.rows, whole.stored) == (sum(len(y) for _, y in several), len(indices))
    assert (whole.low, whole.high) == ((indices.min(), indices.max()) if len(indices) else (None, None))
    assert whole.zero_based == (0 in indices) and whole.n_features == (whole.high or 0) + whole.zero_based


@pytest.mark.parametrize("name", [name for name in NAMES if name.split(".")[1] in ("npy", "npz", "parquet", "arrow")])
@settings(max_examples=15)
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 70)), max_size=8), values=st.integers(1, 500))
def test_rows_are_passed_over_or_taken_in_any_order(folder, name, steps, values):
    """Whatever was passed over before, what is taken are the rows that come next; and so many entries are in rows."""
    whole, labels = load(folder / name)
    with (
        mock.patch("maxmargin.data.arrays.VALUES", values), mock.patch("maxmargin.data.arrow.VALUES", values),
        _FORMATS[name.split(".")[1]].open(folder / name, Options.checked()) as file,
    ):
        at = 0
        assert (file.rows, file.columns) == whole.shape
        for take, rows in steps:
            rows = min(rows, 200 - at)
            some = whole[at : at + rows]
            assert file.stored(at, at + rows) == (some.nnz if sp.issparse(some) else some.size)
            if take:
                x, y = file.take(rows)
                assert_same(x, some)
                np.testing.assert_array_equal(y, labels[at : at + rows])
            else:
                file.skip(rows)
            at += rows


@pytest.mark.parametrize("name, text", [
    ("a.svm", b"1 1:1\n2 2:1\n\n# c\n3\n4 1:2 2:3"), ("a.svm", b"1 1:1\r\n-1 2:1\r\n"), ("a.csv", b"1,2\n3,4\n\n5,6"),
    ("a.csv", b"label,x\n1,2\n3,4\n"), ("a.csv", b"\xef\xbb\xbfcat,2\nmouse,4\n"),
])
def test_every_number_of_parts(tmp_path, name, text):
    (tmp_path / name).write_bytes(text)
    options = {"n_features": 2, "zero_based": False} if name == "a.svm" else {}
    whole = load(tmp_path / name, **options)
    for size in range(1, len(text) + 3):
        x, y = stacked([load(tmp_path / name, part=(rank, size), **options) for rank in range(size)])
        assert_same(x, whole[0])
        np.testing.assert_array_equal(y, whole[1])


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), threads=st.integers(2, 20), block=st.integers(1 << 15, 1 << 20))
def test_threads_and_blocks_do_not_matter(seed, threads, block):
    rng = np.random.default_rng(seed)
    x = sp.random(int(rng.integers(1, 4000)), 50, density=rng.random() * 0.4, random_state=seed % 1000, format="csr")
    y = rng.normal(size=x.shape[0])
    texts = []
    for n_jobs in (1, threads):
        out = io.BytesIO()
        save(out, x, y, n_jobs=n_jobs)
        texts.append(out.getvalue())
    assert texts[0] == texts[1]
    with mock.patch("maxmargin.data.libsvm.BLOCK", block):
        again, labels = load(io.BytesIO(texts[0]), n_features=50, n_jobs=threads)
    assert_same(again, x)
    assert equal_bits(labels, y)
    lines = texts[0].split(b"\n")
    bad = sorted(rng.integers(0, len(lines) - 1, 2).tolist())  # two wrong lines: the first is named
    for k in bad:
        lines[k] += b" 99"
    with mock.patch("maxmargin.data.libsvm.BLOCK", block), pytest.raises(ValueError, match=f"line {bad[0] + 1}, column"):
        load(io.BytesIO(b"\n".join(lines)), n_jobs=threads)


NUMBERS = st.one_of(
    st.floats().map(repr),
    st.builds("{}{}.{}{}".format, st.sampled_from(["", "-", "+"]), st.integers(0, 10**25),
              st.text("0123456789", max_size=25), st.builds("e{}".format, st.integers(-400, 400)) | st.just("")),
    st.builds("{}.{}E{}".format, st.text("0", max_size=30), st.text("0123456789", min_size=1, max_size=30),
              st.integers(-60, 60)),
    st.sampled_from(["inf", "-Infinity", "NaN", "+nan", "1e99999999999999999999", "-1e-99999999999999999999", "5e-324",
                     "2.4703282292062328e-324", "2.4703282292062327e-324", "1.7976931348623159e308", "0e999999999999999999",
                     "9007199254740993", "1" + "0" * 400, "0." + "0" * 400 + "1", "0." + "0" * 400 + "1e401"]),
)


@settings(max_examples=400)
@given(NUMBERS)
def test_numbers_are_rounded_correctly(text):
    x, y = load(io.BytesIO(f"{text} 1:{text}\n".encode()))
    assert equal_bits(x.data, np.array([float(text)])) and equal_bits(y, x.data)
    single = load(io.BytesIO(f"1 1:{text}\n".encode()), dtype=np.float32)[0].data[0]
    assert single.dtype == np.float32
    value = float(text)
    if not np.isfinite(value) or not 1e-50 < abs(value) < 1e50:  # no need for fractions of astronomical size
        with np.errstate(over="ignore"):
            assert equal_bits(single, np.float32(value))
        return
    exact = Fraction(text.replace("+", "", 1) if text[0] == "+" else text)
    if np.isinf(single):
        assert abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103
        return
    below, above = (np.nextafter(single, np.float32(side)) for side in (-np.inf, np.inf))
    off = abs(Fraction(float(single)) - exact)
    assert all(off <= abs(Fraction(float(other)) - exact) for other in (below, above) if np.isfinite(other))
    ties = [other for other in (below, above) if np.isfinite(other) and off == abs(Fraction(float(other)) - exact)]
    assert not ties or single.view(np.int32) % 2 == 0  # a tie goes to the even one


@given(st.floats(allow_nan=False) | st.integers(-(10**17), 10**17).map(float))
def test_numbers_are_written_short(value):
    out = io.BytesIO()
    save(out, sp.csr_matrix(([value], ([0], [0])), shape=(1, 1)), [1.0])
    text = out.getvalue().decode().split(":")[1].strip()
    assert float(text) == value and len(text) <= len(repr(value))


@pytest.mark.parametrize("kind", ["?", "i1", "u2", "i8", "f2", "f4", "f8"])
@pytest.mark.parametrize("format", [*FORMATS, "sparse npz", "sparse libsvm"])
def test_samples_of_any_type_are_saved_with_their_values(format, kind):
    """Single precision as single: 0.1 is written 0.1; all else as doubles, which hold it."""
    x = (np.arange(12).reshape(4, 3) * (0.1 if kind[0] == "f" else 1)).astype(kind)
    if format.startswith("sparse") and kind == "f2":
        pytest.skip("SciPy has no sparse matrices of half precision")
    given = sp.csr_matrix(x) if format.startswith("sparse") else x
    out = io.BytesIO()
    format = format.removeprefix("sparse ")
    save(out, given, np.arange(4).astype(kind), format=format)
    again, y = load(io.BytesIO(out.getvalue()), format=format)
    again = again.toarray() if sp.issparse(again) else again
    single = kind == "f4"
    wanted = np.array([[float(f"{v:.6g}") for v in row] for row in x]) if single and format in ("libsvm", "csv") else x
    np.testing.assert_array_equal(again, wanted.astype(np.float64))
    np.testing.assert_array_equal(y, np.arange(4).astype(kind))
    if single:
        again, _ = load(io.BytesIO(out.getvalue()), format=format, dtype=np.float32)
        np.testing.assert_array_equal(again.toarray() if sp.issparse(again) else again, x)


@st.composite
def libsvm_texts(draw):
    """Files that keep to the format as scikit-learn knows it, in all their variety."""
    number = st.sampled_from(["1", "-1", "+1", "0", "2.5", ".5", "1.", "1e3", "-2E-3", "nan", "inf", "-inf", "0.1000"])
    blank = st.sampled_from([" ", "  ", "\t", " \t "])
    lines = []
    for _ in range(draw(st.integers(0, 6))):
        words = [draw(number)]
        if draw(st.booleans()):
            words.append(f"qid:{draw(st.integers(0, 5))}")
        indices = sorted(draw(st.sets(st.integers(0, 9) | st.integers(10**6, 10**6 + 2), max_size=4)))
        words += [f"{j}:{draw(number)}" for j in indices]
        line = draw(st.sampled_from(["", " "])) + draw(blank).join(words) + draw(st.sampled_from(["", " ", " # c 1:2", "#"]))
        lines.append(draw(st.sampled_from(["", "# comment\n", " \n"])) + line)
    return draw(st.sampled_from(["\n", "\r\n"])).join(lines) + draw(st.sampled_from(["", "\n"]))


@given(libsvm_texts(), st.sampled_from(["auto", True, False]), st.sampled_from([None, 10**6 + 10]))
def test_scikit_learn_reads_the_same(text, zero_based, n_features):
    assume(":" in text.replace("qid:", "").replace("1:2", "").replace("# c", ""))  # without entries it sees one feature
    data = text.encode()
    try:
        expected = load_svmlight_file(io.BytesIO(data), zero_based=zero_based, n_features=n_features)
    except ValueError:
        assert not zero_based and " 0:" in text.replace("\t", " ")
        with pytest.raises(ValueError, match="zero_based"):
            load(io.BytesIO(data), zero_based=zero_based, n_features=n_features)
        return
    x, y = load(io.BytesIO(data), zero_based=zero_based, n_features=n_features)
    assert_same(x, expected[0])
    assert equal_bits(y, expected[1])


@settings(max_examples=60)
@given(text=libsvm_texts(), zero_based=st.sampled_from(["auto", True, False]), more=st.sampled_from([None, 2 * 10**6]),
       dtype=st.sampled_from([np.float32, np.float64]), block=st.integers(1, 40))
def test_a_cache_is_what_load_gives_of_any_text(text, zero_based, more, dtype, block):
    """Made, and found again; of a text without lines or entries, too. What cannot be read leaves no cache."""
    options = {"zero_based": zero_based, "n_features": more, "dtype": dtype}
    with tempfile.TemporaryDirectory() as folder, mock.patch("maxmargin.data.libsvm.BLOCK", block):
        path = Path(folder) / "a.svm"
        path.write_bytes(text.encode())
        try:
            wanted = load(path, **options)
        except ValueError:
            with pytest.raises(ValueError, match="zero_based"):
                cache_libsvm(path, **options)
            assert [entry.name for entry in Path(folder).iterdir()] == ["a.svm"]
            return
        for _ in range(2):
            x, y = cache_libsvm(path, **options)
            assert_same(x, wanted[0])
            assert equal_bits(y, wanted[1]) and x.dtype == dtype
            assert x.indices.dtype == x.indptr.dtype
