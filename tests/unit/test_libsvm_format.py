"""LIBSVM text: what is written is read back, what is broken is named, and the cache of `fit_file` follows its file."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hinge import hinge_svc

from maxmargin.data import FormatError, describe, load, save
from maxmargin.data.libsvm import cache_libsvm


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = sp.random(60, 12, density=0.3, random_state=0, format="csr")
    return x, np.where(x @ rng.normal(size=12) > 0, 1.0, -1.0)


def read(text: bytes | str, **options):
    return load(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def test_comments_blank_lines_query_ids_and_unsorted_indices():
    text = "# head\n+1 qid:3 3:1.5 1:2 # tail\n\n-1 qid:-4 \t\r\n  1e0 qid:12 2:-.5#tail"
    x, y, queries = read(text, query_id=True)
    np.testing.assert_array_equal(x.toarray(), [[2, 0, 1.5], [0, 0, 0], [0, -0.5, 0]])
    np.testing.assert_array_equal(y, [1, -1, 1])
    np.testing.assert_array_equal(queries, [3, -4, 12])
    assert read(text)[0].shape == (3, 3)
    assert x.has_canonical_format and sp.csr_matrix((x.data, x.indices, x.indptr), shape=x.shape).has_canonical_format


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n  \n", "", " ", "\r", "# end"])
def test_any_end_of_a_line_and_of_a_file(end):
    rows = 3 if "\n" in end else 1
    x, y = read(f"1 1:2 2:3{end}" * rows)
    assert x.toarray().tolist() == [[2, 3]] * rows and y.tolist() == [1] * rows


@pytest.mark.parametrize(
    "text, line, column, message",
    [
        ("1 1:2\n1 1:x\n", 2, 3, "value of '1:x'"),
        ("1 1:2\nspam 1:1\n", 2, 1, "label 'spam'"),
        ("1 1:2 1:3\n", 1, 7, "'1:3' stands on this line already"),
        ("1 3:2 1:3 3:1\n", 1, 11, "'3:1' stands on this line already"),
        ("1 -1:2\n", 1, 3, "index of '-1:2'"),
        ("1 1:2 5\n", 1, 7, "'5' is not index:value"),
        ("1 1.5:2\n", 1, 3, "index of '1.5:2'"),
        ("-1 1:5 2:1\n1 1:2:3\n-1 1:2 5\n", 2, 3, "value of '1:2:3'"),
        ("1:2 3:4\n", 1, 1, "begins with '1:2': its label is missing"),
        ("1 1: 2\n", 1, 3, "'1:' has no value"),
        ("1 1:2 2:", 1, 7, "'2:' has no value"),  # cut short
        ("1 1:2 2", 1, 7, "'2' is not index:value"),
        ("1 1:2 2:1e", 1, 7, "value of '2:1e'"),
        ("1 1:2 2:-", 1, 7, "value of '2:-'"),
        ("1 1e2:2\n", 1, 3, "index of '1e2:2'"),
        ("1 1_0:2\n", 1, 3, "index of '1_0:2'"),
        ("1 1:1_0\n", 1, 3, "value of '1:1_0'"),
        ("1 1:0x1p3\n", 1, 3, "value of '1:0x1p3'"),
        ("\n\n  1,2 1:1\n", 3, 3, "'1,2' are several labels"),
        ("1 99999999999999999999999:2\n", 1, 3, "beyond 9999"),
        ("1 1:1 qid:2\n", 1, 7, "must stand between"),
        ("1 qid:x 1:1\n", 1, 3, "'qid:x' is not qid: and a whole number"),
        ("1 1:1\r-1 1:2\n", 1, 7, "'-1' is not index:value"),
        ("1 1:1\x00\n", 1, 3, "value of"),
        ("# ok\n1 1:1 # ok\n" * 500 + "1 1:2 \u03b1\n", 1001, 7, "'α'"),
    ],
)
def test_a_bad_line_gets_its_number_column_and_reason(tmp_path, text, line, column, message):
    (tmp_path / "a.svm").write_bytes(text.encode())
    for attempt in (load, describe, cache_libsvm):
        with pytest.raises(FormatError) as caught:
            attempt(tmp_path / "a.svm")
        assert (caught.value.line, caught.value.column) == (line, column)
        assert message in str(caught.value) and f"a.svm, line {line}, column {column}: " in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["a.svm"]


def test_feature_limits():
    assert read("1 0:2 7:1\n")[0].shape == (1, 8)
    assert read("1 7:1\n")[0].shape == (1, 7)
    assert read("1 7:1\n", zero_based=True)[0].shape == (1, 8)
    assert read("1 7:1\n", n_features=9)[0].shape == (1, 9)
    assert read("1\n-1\n")[0].shape == (2, 0)
    assert read("")[0].shape == (0, 0) and read("# nothing\n", n_features=3)[0].shape == (0, 3)
    with pytest.raises(FormatError, match=r"line 2, column 5: the index of '7:1' is beyond n_features=5"):
        read("1\n1 0:2 7:1\n".replace("0:2 ", "  "), n_features=5)
    with pytest.raises(FormatError, match=r"line 1, column 3.*zero_based=True"):
        read("1 0:2 7:1\n", zero_based=False)
    with pytest.raises(FormatError, match=r"count from 0.*n_features=7"):
        read("1 7:2\n1 0:1\n", n_features=7)


def test_indices_of_64_bits():
    far = 10**18 - 1
    for index in (2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32, far):
        for text, shift in ((f"1 1:1\n2 1:2 {index}:3\n", 1), (f"1 0:1\n2 1:2 {index}:3\n", 0)):
            x, _ = read(text)
            assert x.shape == (2, index + 1 - shift)
            assert x.indices.tolist() == [1 - shift if shift else 0, 1 - shift, index - shift]
            assert x.indices.dtype == x.indptr.dtype == (np.int32 if x.shape[1] < 2**31 else np.int64)
    with pytest.raises(FormatError, match="line 2"):
        read(f"1 1:1\n1 {far + 1}:1")


def test_a_row_without_query_number_is_an_error_when_they_are_wanted():
    with pytest.raises(FormatError, match=r"line 2, column 1.*no qid"):
        read("1 qid:1 1:1\n1 1:1\n", query_id=True)


def test_fit_file_equals_fit_and_the_cache_follows_the_file(tmp_path, data):
    x, y = data
    name = tmp_path / "train.svm"
    save(name, x, y)
    model = hinge_svc().fit_file(name, n_features=12)
    direct = hinge_svc().fit(x.astype(np.float32), y)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-12)
    stamp = (tmp_path / "train.svm.cache" / "about.json").stat().st_mtime_ns
    cache_libsvm(name, n_features=12)
    assert (tmp_path / "train.svm.cache" / "about.json").stat().st_mtime_ns == stamp
    save(name, x[:40], y[:40])
    assert cache_libsvm(name, n_features=12)[0].shape == (40, 12)


@pytest.mark.parametrize("first", [0, 1, 2**31 - 3, 2**33])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_the_cache_holds_what_load_gives(tmp_path, data, monkeypatch, first, packed):
    x, y = data
    x = sp.csr_matrix((x.data, x.indices.astype(np.int64) + first, x.indptr), shape=(60, first + 12))
    name = tmp_path / f"a.svm{packed}"
    save(name, x, y, zero_based=True)
    monkeypatch.setattr("maxmargin.data.libsvm.BLOCK", 97)
    direct, _ = load(name)
    cached, labels = cache_libsvm(name, dtype=np.float64)
    assert cached.shape == direct.shape and cached.indices.dtype == direct.indices.dtype
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(cached, part), getattr(direct, part))
    np.testing.assert_array_equal(labels, y)


def test_a_cache_folder_is_shared_and_nothing_else_in_it_is_touched(tmp_path, data):
    x, y = data
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "precious.txt").write_text("mine")
    for folder, rows in (("a", 30), ("b", 40)):  # two files of one name
        (tmp_path / folder).mkdir()
        save(tmp_path / folder / "train.svm", x[:rows], y[:rows])
        assert cache_libsvm(tmp_path / folder / "train.svm", shared)[1].shape == (rows,)
    assert (shared / "precious.txt").read_text() == "mine"
    assert sorted(p.name for p in shared.iterdir()) == ["precious.txt", "train.svm.cache"]
    (tmp_path / "a" / "train.svm.cache").mkdir()
    (tmp_path / "a" / "train.svm.cache" / "notes").write_text("mine")
    with pytest.raises(ValueError, match="not a cache"):
        cache_libsvm(tmp_path / "a" / "train.svm")
    assert (tmp_path / "a" / "train.svm.cache" / "notes").read_text() == "mine"


@pytest.mark.parametrize("name", ["about.json", "values.bin", "indices.bin", "indptr.bin", "labels.bin"])
def test_a_damaged_cache_is_made_again(tmp_path, data, name):
    x, y = data
    save(tmp_path / "a.svm", x, y)
    cache_libsvm(tmp_path / "a.svm", dtype=np.float64)
    (broken,) = (tmp_path / "a.svm.cache").rglob(name)
    broken.write_bytes(broken.read_bytes()[:-3])
    again, labels = cache_libsvm(tmp_path / "a.svm", n_features=None, dtype=np.float64)
    assert (again != x[:, : again.shape[1]]).nnz == 0 and np.array_equal(labels, y)


def test_the_cache_sees_a_change_that_leaves_the_size(tmp_path):
    """Only the time tells: the file has as many bytes as before."""
    name = tmp_path / "a.svm"
    name.write_text("1 1:1\n-1 1:2\n")
    when = name.stat().st_mtime_ns
    assert cache_libsvm(name)[0].toarray().ravel().tolist() == [1, 2]
    name.write_text("1 1:5\n-1 1:7\n")
    os.utime(name, ns=(when, when + 1))
    assert cache_libsvm(name)[0].toarray().ravel().tolist() == [5, 7]


def test_a_file_that_changes_while_it_is_read_is_an_error_and_leaves_the_cache(tmp_path, monkeypatch):
    name = tmp_path / "a.svm"
    name.write_text("1 1:1\n-1 1:2\n")
    stamps = iter([{"size": 14, "mtime_ns": 1}, {"size": 14, "mtime_ns": 2}])
    monkeypatch.setattr("maxmargin.data.libsvm._stamp", lambda source: next(stamps))
    with pytest.raises(ValueError, match="changed while it was read"):
        cache_libsvm(name)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.svm"]


_MANY = """
import sys, numpy as np
from maxmargin.data.libsvm import cache_libsvm
name, kind, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
for k in range(rounds):
    x, y = cache_libsvm(name, dtype=kind, n_features=4 + k % 2)
    assert x.dtype == kind and x.shape == (300, 4 + k % 2), (x.dtype, x.shape)
    assert np.array_equal(x @ np.ones(x.shape[1]), np.arange(300) * 3.0 + 6) and np.array_equal(y, np.arange(300) % 2)
"""


def test_processes_that_replace_the_cache_under_each_other(tmp_path):
    """Each wants it otherwise, so that every call replaces what another has just made or is about to map."""
    name = tmp_path / "a.svm"
    name.write_text("".join(f"{i % 2} 1:{i + 1} 2:{i + 2} 4:{i + 3}\n" for i in range(300)))
    runs = [
        subprocess.Popen([sys.executable, "-c", _MANY, str(name), kind, "40"], stderr=subprocess.PIPE, text=True)
        for kind in ("float32", "float64", "float32")
    ]
    for run in runs:
        _, said = run.communicate(timeout=300)
        assert run.returncode == 0, said
    cache_libsvm(name, n_features=9)
    assert sorted(entry.name[:5] for entry in (tmp_path / "a.svm.cache").iterdir()) == ["about", "data-"]  # nothing is left


def test_fit_file_takes_weights_and_double_precision(tmp_path):
    x = np.array([[1600000001.0], [1600000000.0], [1600000003.0], [1599999999.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    save(tmp_path / "a.svm", x, y)
    cached, _ = cache_libsvm(tmp_path / "a.svm", dtype=np.float64)
    assert np.array_equal(cached.toarray(), x)
    save(tmp_path / "b.svm", x - 1600000001.0, y)
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    model = hinge_svc(tol=1e-8).fit_file(tmp_path / "b.svm", dtype=np.float64, sample_weight=weight)
    direct = hinge_svc(tol=1e-8).fit(x - 1600000001.0, y, weight)
    np.testing.assert_allclose(model.coef_, direct.coef_, rtol=1e-6)
