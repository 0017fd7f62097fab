"""Formats, packed files and the options of maxmargin.data: what works, and what is refused with words that help."""

import bz2
import gzip
import io
import lzma
import pickle
import struct
import sys
import zipfile
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin import BudgetSVC
from maxmargin.data import FormatError, chunks, describe, load, save, streams

X = np.array([[0.5, 0.0, 2.0], [0.0, 1e-3, 0.0], [1.0, 2.0, 3.0]])
Y = np.array([1.0, -1.0, 1.0])
PACKED = ["gz", "bz2", "xz", "zst"]


def packed(kind: str, data: bytes) -> bytes:
    if kind == "zst":
        zstd = pytest.importorskip("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
        return zstd.compress(data)
    return {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[kind](data)


def text_of(x=X, y=Y, **options) -> bytes:
    out = io.BytesIO()
    save(out, x, y, **options)
    return out.getvalue()


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("suffix", ["svm", "csv"])
def test_packed_text_is_written_and_read_by_any_name(tmp_path, kind, suffix):
    packed(kind, b"")
    save(tmp_path / f"a.{suffix}.{kind}", X, Y)
    (tmp_path / f"b.{suffix}").write_bytes((tmp_path / f"a.{suffix}.{kind}").read_bytes())
    for name in (f"a.{suffix}.{kind}", f"b.{suffix}"):
        assert (tmp_path / name).read_bytes()[:1] not in b"1-"
        x, y = load(tmp_path / name)
        np.testing.assert_array_equal(x.toarray() if sp.issparse(x) else x, X)
        np.testing.assert_array_equal(y, Y)
        assert describe(tmp_path / name).rows == 3
        assert [len(y) for _, y in chunks(tmp_path / name, 2)] == [2, 1]
        with pytest.raises(ValueError, match="plain files only"):
            load(tmp_path / name, part=(0, 2), **({"n_features": 3, "zero_based": False} if suffix == "svm" else {}))


@pytest.mark.parametrize("kind", PACKED)
def test_a_packed_file_that_was_cut_is_an_error_wherever_it_was_cut(tmp_path, kind):
    rng = np.random.default_rng(0)
    data = packed(kind, text_of(rng.normal(size=(40, 3)), np.ones(40)))
    name = tmp_path / f"a.svm.{kind}"
    for cut in {*range(12), *range(12, len(data), 97), *range(len(data) - 12, len(data))}:
        name.write_bytes(data[:cut])
        with pytest.raises(FormatError):
            load(name)
    name.write_bytes(data + data)  # two members are one file
    assert load(name)[0].shape == (80, 3)
    name.write_bytes(data + b"\0" * 64)
    assert load(name)[0].shape == (40, 3)
    for rest in (data[: len(data) // 2], b"junk", b"\0" * 64 + b"junk"):
        name.write_bytes(data + rest)
        with pytest.raises(FormatError):
            load(name)


@pytest.mark.parametrize("kind", PACKED)
def test_a_small_file_that_unpacks_to_a_huge_one_is_read_in_steps(kind):
    """A packed file of blank lines: what is unpacked at a time stays within a block."""
    data = packed(kind, b"\n" * (3 << 23) + b"1 1:1\n")
    assert len(data) < 1 << 17
    sizes = []

    def fill(self, view, original=streams._Inflate._fill):
        sizes.append(original(self, view))
        return sizes[-1]

    with mock.patch.object(streams._Inflate, "_fill", fill):
        assert load(io.BytesIO(data))[0].shape == (1, 1)
    assert max(sizes) <= streams.BLOCK and sum(sizes) > 3 * streams.BLOCK


def test_without_zstd_the_remedy_is_named(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"\x28\xb5\x2f\xfdxxxx")
    with mock.patch.dict(sys.modules, {"backports": None, "compression": None}), pytest.raises(
        ImportError, match=r"pip install 'maxmargin\[files\]'"
    ):
        load(tmp_path / "a.svm")


def test_without_pyarrow_the_remedy_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with mock.patch.dict(sys.modules, {"pyarrow": None}):
        with pytest.raises(ImportError, match=r"pip install 'maxmargin\[files\]'"):
            load(tmp_path / "a.parquet")
        with pytest.raises(ImportError, match=r"pip install 'maxmargin\[files\]'"):
            save(tmp_path / "b.parquet", X, Y)
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_features": -1}, "n_features=-1"), ({"n_features": 2.5}, "n_features=2.5"),
        ({"zero_based": None}, "zero_based=None"), ({"zero_based": "no"}, "zero_based='no'"),
        ({"dtype": int}, "float32 or float64"), ({"query_id": 3}, "query_id=3"),
        ({"label": 2}, "label=2 has no meaning for LIBSVM"), ({"label": None}, "label=None has no meaning"),
        ({"label": 1.5}, "label=1.5"), ({"header": True}, "header=True has no meaning"), ({"delimiter": ";"}, "no meaning"),
        ({"delimiter": "e"}, "delimiter='e'"), ({"part": 3}, "part=3"), ({"part": (2, 2)}, r"part=\(2, 2\)"),
        ({"part": (-1, 2)}, "rank"), ({"part": (0, 2)}, "n_features and zero_based"),
        ({"part": (0, 2), "n_features": 3}, "n_features and zero_based"), ({"n_jobs": 0}, "n_jobs=0"),
        ({"format": "excel"}, "format='excel'"),
    ],
)
def test_options_without_meaning_are_refused(tmp_path, options, message):
    save(tmp_path / "a.svm", X, Y)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "a.svm", **options)


@pytest.mark.parametrize("format", ["csv", "npy", "npz", "parquet", "arrow"])
def test_options_of_libsvm_text_are_refused_elsewhere(format):
    data = text_of(format=format)
    for options in ({"zero_based": True}, {"query_id": True}):
        with pytest.raises(ValueError, match="has no meaning for"):
            load(io.BytesIO(data), format=format, **options)
    with pytest.raises(ValueError, match="has 3 features, not n_features=4"):
        load(io.BytesIO(data), format=format, n_features=4)
    for options in ({"zero_based": True}, {"query_id": [1, 2, 3]}, {"comment": "x"}):
        with pytest.raises(ValueError, match="has no meaning for"):
            text_of(format=format, **options)
    assert load(io.BytesIO(data), format=format, dtype=np.float32)[0].dtype == np.float32
    if format != "npz":
        with pytest.raises(ValueError, match="is sparse"):
            text_of(sp.csr_matrix(X), format=format)


def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path):
    for x, y, options, message in (
        (X, [1.0], {}, "one label per row"), (X[0], Y, {}, "two dimensions"), (X, None, {}, "a number as the label"),
        (X, ["a", "b", "c"], {}, "a number as the label"), (X, Y, {"query_id": [1.5, 2, 3]}, "query_id"),
        (X, Y, {"header": ["a"]}, "header has no meaning"), (X, Y, {"delimiter": ";"}, "delimiter has no meaning"),
    ):
        with pytest.raises(ValueError, match=message):
            save(tmp_path / "a.svm", x, y, **options)
    for name, x, y, options, message in (
        ("a.csv", X, Y, {"header": ["a"]}, "header has 1 names"), ("a.csv", X, ["a", "", "b"], {}, "an empty name or label"),
        ("a.csv", X, ["a", "b\nc", "b"], {}, "line break"), ("a.npy", X, ["a", "b", "c"], {}, "a number as the label"),
        ("a.parquet", X, Y, {"header": ["a"]}, "header has 1 names"), ("a.csv", X, Y, {"delimiter": "1"}, "delimiter='1'"),
    ):
        with pytest.raises(ValueError, match=message):
            save(tmp_path / name, x, y, **options)
    broken = sp.csr_matrix(X)
    broken.indices = broken.indices + 7
    with pytest.raises(ValueError):
        save(tmp_path / "a.svm", broken, Y)
    assert not list(tmp_path.iterdir())


def test_sparse_matrices_of_any_kind_are_written_in_order():
    twice = sp.coo_matrix(([1.0, 2.0, 4.0], ([0, 0, 1], [2, 2, 0])), shape=(2, 3))
    assert text_of(twice, [1, 2]) == b"1 3:3\n2 1:4\n"
    unsorted = sp.csr_matrix((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    assert text_of(unsorted, [1]) == b"1 1:2 3:1\n"
    assert unsorted.indices.tolist() == [2, 0]  # the caller's stays as it was
    assert text_of(sp.csr_array(X), Y) == text_of() == text_of(sp.csc_matrix(X), Y)


@pytest.mark.parametrize("format", ["csv", "npz", "parquet", "arrow"])
def test_labels_that_are_text(format):
    words = ["cat", 'a "quoted", word', "żółw"]
    for y in (words, np.array(words, dtype=object)):
        x, labels = load(io.BytesIO(text_of(X, y, format=format)), format=format)
        np.testing.assert_array_equal(x, X)
        assert labels.tolist() == words
    joined = list(chunks(io.BytesIO(text_of(X, words, format=format)), 2, format="npz")) if format == "npz" else []
    assert [y.tolist() for _, y in joined] in ([words[:2], words[2:]], [])


@pytest.mark.parametrize(
    "text, options, x, y",
    [
        ("1,2,3\n4,5,6\n", {}, [[2, 3], [5, 6]], [1, 4]),
        ("1,2,3\n4,5,6\n", {"label": -1}, [[1, 2], [4, 5]], [3, 6]),
        ("1,2\n3,4\n", {"label": None}, [[1, 2], [3, 4]], None),
        ("y,a,b\n1,2,3\n", {}, [[2, 3]], [1]),
        ("a,y,b\r\n2,1,3\r\n", {"label": "y"}, [[2, 3]], [1]),
        ('"a","y"\n"2"," 1 "\n', {"label": "y"}, [[2]], [1]),
        ("cat,2,3\ndog,5,6\n", {}, [[2, 3], [5, 6]], ["cat", "dog"]),
        ("y,a\ncat,2\n7,5\n", {}, [[2], [5]], ["cat", "7"]),
        ("1;2,\n".replace(",", ""), {"delimiter": ";"}, [[2]], [1]),
        ("1\t2\n3\t4", {"delimiter": "\t"}, [[2], [4]], [1, 3]),
        (" 1 , 2 \n\n \n3,4\n", {}, [[2], [4]], [1, 3]),
        ("\ufeff1,2\n", {}, [[2]], [1]),
        ("1,2\n3,4\n", {"header": True}, [[4]], [3]),
        ("y,a\n", {}, np.empty((0, 1)), []),
        ("1\n2\n", {}, np.empty((2, 0)), [1, 2]),
        ("1,nan\n2,-inf\n", {}, [[np.nan], [-np.inf]], [1, 2]),
    ],
)
def test_tables_as_people_write_them(text, options, x, y):
    for block in (1, 7, 1 << 20):
        with mock.patch("maxmargin.data.csv_text.BLOCK", block):
            found, labels = load(io.BytesIO(text.encode()), format="csv", **options)
        np.testing.assert_array_equal(found, x)
        assert (labels is None) == (y is None) and (y is None or labels.tolist() == y)


@pytest.mark.parametrize(
    "text, options, line, column, message",
    [
        ("1,2\n3,x\n", {}, 2, 3, "'x' is not a number"),
        ("1,2\n3,\n", {}, 2, 3, "empty"),
        ('1,2\n3,""\n', {}, 2, 3, "empty"),
        ("1,2\n3\n", {}, 2, 2, "fewer than 2"),
        ("1,2\n3,4,5\n", {}, 2, 5, "more than 2"),
        ("y,a\n\n1,2\n3 4,5\n", {}, 4, 1, "'3 4' is not a number"),
        ("cat,1\n,2\n", {}, 2, 1, "empty"),
        ('cat,1\n"dog,2\n', {}, 2, 1, "quote"),
        ("1,2\n3,4e\n", {}, 2, 3, "'4e'"),
        ("1,2\n3,1_0\n", {}, 2, 3, "'1_0'"),
        ("1,2\ncat,1\n", {}, 2, 1, "'cat' is not a number"),
        ("", {}, None, None, "empty"),
        ("\n \n", {}, None, None, "empty"),
    ],
)
def test_a_bad_line_of_a_table_gets_its_number_column_and_reason(tmp_path, text, options, line, column, message):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    for block in (3, 1 << 20):
        with mock.patch("maxmargin.data.csv_text.BLOCK", block), pytest.raises(FormatError) as caught:
            load(path, **options)
        assert (caught.value.line, caught.value.column) == (line, column) and message in caught.value.reason
    if line is not None:
        with pytest.raises(FormatError) as caught:
            for rank in range(3):
                load(path, part=(rank, 3), **options)
        assert (caught.value.line, caught.value.column) == (line, column)


def test_columns_are_named_in_errors(tmp_path):
    save(tmp_path / "a.csv", X, Y, header=["y", "a", "b", "c"])
    for label in ("z", 4, -5):
        with pytest.raises(ValueError, match=r"label=.*(y, a, b, c|4 columns)"):
            load(tmp_path / "a.csv", label=label)
    save(tmp_path / "a.npy", X, Y)
    for name, options in (("a.csv", {"header": False}), ("a.npy", {})):
        with pytest.raises(ValueError, match="they have none"):
            load(tmp_path / name, label="a", **options)
    (tmp_path / "b.csv").write_text("a,a,b\n1,2,3\n")
    with pytest.raises(ValueError, match="label='a'"):
        load(tmp_path / "b.csv", label="a")


def test_a_part_of_a_file_names_lines_of_the_file(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n" * 50 + "1 1:y\n" + "1 1:1\n" * 3)
    with pytest.raises(FormatError, match="line 51, column 3"):
        load(tmp_path / "a.svm", part=(4, 5), n_features=1, zero_based=False)
    assert load(tmp_path / "a.svm", part=(0, 5), n_features=1, zero_based=False)[0].shape[0] > 5


@pytest.mark.parametrize("before", ["", "\n", "\n\n{}\n", "{}\n\n{}\n", "\r\n{}\r\n"], ids=repr)
@pytest.mark.parametrize("name, good, bad", [("a.svm", "1 1:1", "1 1:y"), ("a.csv", "1,1", "1,y")])
def test_the_line_of_an_error_is_that_of_the_file_in_every_part(tmp_path, name, good, bad, before):
    """Blank lines count, the first of a file too."""
    text = before.replace("{}", good) + f"{good}\n\n{bad}\n\n{good}\n"
    (tmp_path / name).write_bytes(text.encode())
    line = text[: text.index(bad)].count("\n") + 1
    options = {"n_features": 1, "zero_based": False} if name == "a.svm" else {}
    for size in range(1, len(text) + 1):
        found = []
        for rank in range(size):
            try:
                load(tmp_path / name, part=(rank, size), **options)
            except FormatError as error:
                found.append((error.line, error.column))
        assert found == [(line, 3)], size


def test_errors_travel_between_processes():
    error = pickle.loads(pickle.dumps(FormatError("a.svm", "why", 3, 4)))
    assert (error.path, error.reason, error.line, error.column) == ("a.svm", "why", 3, 4)
    assert str(error) == "a.svm, line 3, column 4: why"


def test_streams_must_be_binary_and_are_left_open():
    with pytest.raises(ValueError, match="binary"):
        load(io.StringIO("1 1:1\n"))
    stream = io.BytesIO(b"1 1:1\n")
    load(stream)
    assert not stream.closed
    with pytest.raises(FileNotFoundError):
        load("no such file.svm")


def npz_of(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def test_npz_of_scipy_and_of_other_names(tmp_path):
    x = sp.csr_matrix(X)
    sp.save_npz(tmp_path / "a.npz", x)
    found, y = load(tmp_path / "a.npz", label=None)
    assert (found != x).nnz == 0 and y is None
    save(tmp_path / "b.npz", x, Y)
    assert (sp.load_npz(tmp_path / "b.npz") != x).nnz == 0
    parts = {f"X_{part}": getattr(x, part) for part in ("data", "indices", "indptr")} | {"X_shape": np.array(x.shape)}
    found, y = load(io.BytesIO(npz_of(**parts, target=Y.astype(int))), format="npz", label="target")
    assert (found != x).nnz == 0 and y.tolist() == Y.tolist()
    found, y = load(io.BytesIO(npz_of(X=np.asfortranarray(X > 0), y=Y)), format="npz")
    np.testing.assert_array_equal(found, X > 0)
    assert found.flags.c_contiguous


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"X": X, "y": Y[:2]}, "3 rows have 2 labels"), ({"X": X}, "no array 'y'"), ({"y": Y}, "neither X nor"),
        ({"X": X[0], "y": Y}, "2-dimensional"), ({"X": X.astype(complex), "y": Y}, "complex128"),
        ({"X": np.array([["a"]]), "y": Y[:1]}, "2-dimensional numbers"), ({"X": X, "y": Y[:, None]}, "one label per row"),
        ({"data": [1.0], "indices": [3], "indptr": [0, 1], "shape": [1, 3], "y": [1]}, "column 3"),
        ({"data": [1.0], "indices": [-1], "indptr": [0, 1], "shape": [1, 3], "y": [1]}, "column -1"),
        ({"data": [1.0, 2.0], "indices": [1, 1], "indptr": [0, 2], "shape": [1, 3], "y": [1]}, "twice"),
        ({"data": [1.0], "indices": [1], "indptr": [0, 2], "shape": [1, 3], "y": [1]}, "indptr ends with 2"),
        ({"data": [1.0], "indices": [1], "indptr": [0, 2, 1], "shape": [2, 3], "y": [1, 1]}, "lay out 2 rows"),
        ({"data": [1.0], "indices": [1], "indptr": [1], "shape": [0, 3], "y": []}, "lay out 0 rows"),
        ({"data": [1.0], "indices": [1.5], "indptr": [0, 1], "shape": [1, 3], "y": [1]}, "cannot be indices"),
        ({"data": [1.0], "indices": [1], "indptr": [0, 1], "shape": [1], "y": [1]}, "no shape"),
        ({"data": [1.0], "indices": [1], "indptr": [0, 1], "shape": [1, 3], "format": "csc", "y": [1]}, "not CSR"),
    ],
)
def test_npz_that_does_not_fit_together(arrays, message):
    with pytest.raises(ValueError, match=message):
        load(io.BytesIO(npz_of(**{key: np.array(value) for key, value in arrays.items()})), format="npz")


@pytest.mark.parametrize("wrong", [-1, 3, 2**31, 2**40])
def test_one_column_outside_is_enough_wherever_it_stands(wrong):
    x = sp.csr_matrix(np.ones((3, 3)))
    for at in range(9):
        indices = x.indices.astype(np.int64)
        indices[at] = wrong
        parts = {"data": x.data, "indices": indices, "indptr": x.indptr, "shape": [3, 3], "y": np.arange(3)}
        with pytest.raises(FormatError, match=f"{wrong}.* is not among the 3"):
            load(io.BytesIO(npz_of(**parts)), format="npz")


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_python_objects_are_never_loaded(tmp_path):
    bomb = np.array([[Bomb(), 1]], dtype=object)
    out = io.BytesIO()
    np.save(out, bomb, allow_pickle=True)
    with pytest.raises(FormatError, match="never loaded"):
        load(io.BytesIO(out.getvalue()), format="npy")
    with pytest.raises(FormatError, match="never loaded"):
        load(io.BytesIO(npz_of(X=bomb, y=[1])), format="npz")


def test_sizes_are_believed_only_if_the_file_has_them():
    """A header that asks for a petabyte, alone and in archives that pretend to hold it."""
    out = io.BytesIO()
    np.save(out, np.zeros((3, 3)))
    huge = out.getvalue().replace(b"(3, 3), }", b"(3, 999999999999999), }").replace(b" " * 14 + b"\n", b"\n")
    assert len(huge) == len(out.getvalue())
    with pytest.raises(FormatError, match="damaged"):
        load(io.BytesIO(huge), format="npy")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", huge)
        archive.writestr("y.npy", huge)
    with pytest.raises(FormatError, match="damaged"):
        load(io.BytesIO(packed.getvalue()), format="npz")
    lying = packed.getvalue().replace(struct.pack("<L", len(huge)), struct.pack("<L", 3_000_000_000))
    with pytest.raises(FormatError, match=r"damaged|packed"):
        load(io.BytesIO(lying), format="npz")


def test_columns_of_parquet_are_checked():
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    def load_table(**columns):
        out = io.BytesIO()
        parquet.write_table(pa.table(columns), out, row_group_size=2)
        return load(io.BytesIO(out.getvalue()), format="parquet")

    x, y = load_table(y=[1, 2, 3], a=[True, False, True], b=pa.array([1, 2, 300], pa.int16()))
    assert x.tolist() == [[1, 1], [0, 2], [1, 300]] and y.tolist() == [1, 2, 3]
    assert load_table(y=pa.array(["a", "b", "a"]).dictionary_encode(), a=[1.0, 2.0, 3.0])[1].tolist() == ["a", "b", "a"]
    with pytest.raises(FormatError, match="column 'a' has no value in row 2"):
        load_table(y=[1, 2, 3], a=[1.0, 2.0, None])
    with pytest.raises(FormatError, match="column 'y' has no value in row 1"):
        load_table(y=["a", None, "b"], a=[1.0, 2.0, 3.0])
    with pytest.raises(FormatError, match="column 'a' is of type string"):
        load_table(y=[1, 2], a=["x", "y"])
    with pytest.raises(FormatError, match="Parquet file is damaged"):
        load(io.BytesIO(b"PAR1" + b"x" * 50 + b"PAR1"), format="parquet")


@pytest.mark.parametrize("format", ["libsvm", "csv", "npz"])
def test_a_stream_of_chunks_trains_as_the_whole(tmp_path, format):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    save(tmp_path / f"a.{format}", x, y)
    form = sp.csr_matrix if format == "libsvm" else np.asarray
    parts = [(form(x[rows]), y[rows]) for rows in (slice(0, 40), slice(40, 80), slice(80, 90))]
    machine = BudgetSVC(budget=10, random_state=0, epochs=2)
    direct = clone(machine).fit_stream(lambda: iter(parts), classes=[-1, 1])
    streamed = clone(machine).fit_stream(chunks(tmp_path / f"a.{format}", 40), classes=[-1, 1])
    np.testing.assert_allclose(streamed.decision_function(x), direct.decision_function(x), rtol=1e-12, atol=1e-12)
    for rows in (0, 1.5, True):
        with pytest.raises(ValueError, match="rows="):
            chunks(tmp_path / f"a.{format}", rows)
