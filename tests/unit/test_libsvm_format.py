"""LIBSVM files: what is written is read back, what is broken is named, the cache is used only while it is valid."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import LinearSVC
from maxmargin.data import libsvm


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = sp.random(60, 12, density=0.3, random_state=0, format="csr")
    return x, np.where(x @ rng.normal(size=12) > 0, 1.0, -1.0)


def test_round_trip(tmp_path, data):
    x, y = data
    for zero_based in (False, True):
        libsvm.dump_libsvm(tmp_path / "a.svm", x, y, zero_based=zero_based, comment="two\nlines")
        again, labels = libsvm.load_libsvm(tmp_path / "a.svm", n_features=12, zero_based=zero_based)
        assert (again != x).nnz == 0
        np.testing.assert_array_equal(labels, y)
    assert not list(tmp_path.glob("*.part"))


def test_small_chunks_give_the_same(tmp_path, data, monkeypatch):
    x, y = data
    libsvm.dump_libsvm(tmp_path / "a.svm", x, y)
    monkeypatch.setattr(libsvm, "CHUNK", 97)
    again, labels = libsvm.load_libsvm(tmp_path / "a.svm", n_features=12)
    assert (again != x).nnz == 0 and (labels == y).all()
    cached, _ = libsvm.cache_libsvm(tmp_path / "a.svm", n_features=12, dtype=np.float64)
    assert (cached != x).nnz == 0


def test_comments_blank_lines_query_ids_and_unsorted_indices(tmp_path):
    (tmp_path / "a.svm").write_text("# head\n+1 qid:3 3:1.5 1:2 # tail\n\n-1\n1e0 2:-.5")
    x, y = libsvm.load_libsvm(tmp_path / "a.svm")
    np.testing.assert_array_equal(x.toarray(), [[2, 0, 1.5], [0, 0, 0], [0, -0.5, 0]])
    np.testing.assert_array_equal(y, [1, -1, 1])


@pytest.mark.parametrize(
    "text, message",
    [
        ("1 1:2\n1 1:x\n", r"line 2.*1:x"),
        ("1 1:2\nspam 1:1\n", r"line 2.*spam"),
        ("1 1:2 1:3\n", r"line 1.*once"),
        ("1 -1:2\n", r"line 1.*-1:2"),
        ("1 1:2 5\n", r"line 1.*'5'"),
        ("1 1.5:2\n", r"line 1.*1.5:2"),
        ("-1 1:5 2:1\n1 1:2:3\n-1 1:2 5\n", r"line 2.*1:2:3"),  # a number too few and one too many: add up, but wrong
        ("1:2 3:4\n-1 1:2 7\n2 1:1\n", r"line 1.*1:2"),
        ("1:2 3 4:5\n", r"line 1.*1:2"),
        ("1 1: 2\n", r"line 1.*1:"),
        ("1 1e2:2\n", r"line 1.*1e2:2"),
        ("1 1_0:2\n", r"line 1.*1_0:2"),
        ("1 99999999999999999999999:2\n", r"line 1.*9:2"),
        ("1 99999999999:2\n", r"n_features"),
    ],
)
def test_broken_lines_are_named(tmp_path, text, message):
    (tmp_path / "a.svm").write_text(text)
    with pytest.raises(libsvm.FormatError, match=message):
        libsvm.load_libsvm(tmp_path / "a.svm")
    with pytest.raises(libsvm.FormatError, match=message):
        libsvm.cache_libsvm(tmp_path / "a.svm")
    assert [p.name for p in tmp_path.iterdir()] == ["a.svm"]


def test_feature_limits(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:2 7:1\n")
    assert libsvm.load_libsvm(tmp_path / "a.svm")[0].shape == (1, 8)
    with pytest.raises(libsvm.FormatError, match="n_features=5"):
        libsvm.load_libsvm(tmp_path / "a.svm", n_features=5)
    with pytest.raises(libsvm.FormatError, match="zero_based"):
        libsvm.load_libsvm(tmp_path / "a.svm", zero_based=False)


def test_fit_file_equals_fit_and_the_cache_follows_the_file(tmp_path, data):
    x, y = data
    name = tmp_path / "train.svm"
    libsvm.dump_libsvm(name, x, y)
    model = LinearSVC().fit_file(name, n_features=12)
    direct = LinearSVC().fit(x.astype(np.float32), y)
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-12)
    stamp = (tmp_path / "train.svm.cache" / "about.json").stat().st_mtime_ns
    libsvm.cache_libsvm(name, n_features=12)
    assert (tmp_path / "train.svm.cache" / "about.json").stat().st_mtime_ns == stamp
    libsvm.dump_libsvm(name, x[:40], y[:40])
    assert libsvm.cache_libsvm(name, n_features=12)[0].shape == (40, 12)


def test_a_cache_folder_is_shared_and_nothing_else_in_it_is_touched(tmp_path, data):
    x, y = data
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "precious.txt").write_text("mine")
    for folder, rows in (("a", 30), ("b", 40)):  # two files of one name
        (tmp_path / folder).mkdir()
        libsvm.dump_libsvm(tmp_path / folder / "train.svm", x[:rows], y[:rows])
        assert libsvm.cache_libsvm(tmp_path / folder / "train.svm", shared)[1].shape == (rows,)
    assert (shared / "precious.txt").read_text() == "mine"
    assert sorted(p.name for p in shared.iterdir()) == ["precious.txt", "train.svm.cache"]
    (tmp_path / "a" / "train.svm.cache").mkdir()
    (tmp_path / "a" / "train.svm.cache" / "notes").write_text("mine")
    with pytest.raises(ValueError, match="not a cache"):
        libsvm.cache_libsvm(tmp_path / "a" / "train.svm")
    assert (tmp_path / "a" / "train.svm.cache" / "notes").read_text() == "mine"


@pytest.mark.parametrize("name", ["about.json", "values.bin", "indices.bin", "indptr.bin", "labels.bin"])
def test_a_damaged_cache_is_made_again(tmp_path, data, name):
    x, y = data
    libsvm.dump_libsvm(tmp_path / "a.svm", x, y)
    libsvm.cache_libsvm(tmp_path / "a.svm", dtype=np.float64)
    broken = tmp_path / "a.svm.cache" / name
    broken.write_bytes(broken.read_bytes()[:-3])
    again, labels = libsvm.cache_libsvm(tmp_path / "a.svm", n_features=None, dtype=np.float64)
    assert (again != x[:, : again.shape[1]]).nnz == 0 and np.array_equal(labels, y)


def test_fit_file_takes_weights_and_double_precision(tmp_path):
    x = np.array([[1600000001.0], [1600000000.0], [1600000003.0], [1599999999.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    libsvm.dump_libsvm(tmp_path / "a.svm", x, y)
    cached, _ = libsvm.cache_libsvm(tmp_path / "a.svm", dtype=np.float64)
    assert np.array_equal(cached.toarray(), x)
    libsvm.dump_libsvm(tmp_path / "b.svm", x - 1600000001.0, y)
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    model = LinearSVC(tol=1e-8).fit_file(tmp_path / "b.svm", dtype=np.float64, sample_weight=weight)
    direct = LinearSVC(tol=1e-8).fit(x - 1600000001.0, y, weight)
    np.testing.assert_allclose(model.coef_, direct.coef_, rtol=1e-6)


def test_labels_must_match(tmp_path, data):
    with pytest.raises(ValueError, match="one label per row"):
        libsvm.dump_libsvm(tmp_path / "a.svm", data[0], [1.0])
    assert not list(tmp_path.iterdir())
