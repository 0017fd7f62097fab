"""Rows in partitions, seen from the client: what is known of them, how they are asked for, and what is asked again."""

import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parent))
from partitioned import Here, partitions

from maxmargin.carriers import ATTEMPTS, LostError
from maxmargin.dask import partitions as module
from maxmargin.dask.partitions import Partitions, _beside, _bytes, _delayed, _dtype, _whole, check_memory, checked, described

FORMS = [np.asarray, sp.csr_matrix]


def rows(n=23, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.round(4 * rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)) / 4  # float32 has them, too


def dense(X):
    return X.toarray() if sp.issparse(X) else X


# ---- what is known of a collection


@pytest.mark.parametrize("kind", ["float64", "float32", "int", "sparse", "sparse32", "frame", "frame32", "mixed"])
def test_what_the_client_knows_of_a_collection(two_workers, kind):
    """Everything but the rows: how many, where, their labels and weights, what they take, and as which floats they count."""
    X, y, weight = rows(), np.arange(23), np.linspace(0, 1, 23)
    start = [0, 8, 16, 23]
    X = X.astype({"int": int, "float32": np.float32, "sparse32": np.float32, "frame32": np.float32}.get(kind, np.float64))
    collection = da.from_array(X, chunks=(8, 2))
    labels, weights = da.from_array(y, chunks=8), da.from_array(weight, chunks=5)  # which is rechunked
    names = None
    if kind.startswith("sparse"):
        collection = da.from_array(X, chunks=(8, 4)).map_blocks(sp.csr_matrix)
    elif kind in ("frame", "frame32", "mixed"):
        frame = pd.DataFrame(X, columns=list("abcd"))
        if kind == "mixed":
            frame = frame.astype({"a": np.float32})
        table = dd.from_pandas(frame.assign(y=y, weight=weight), npartitions=3)
        collection, labels, weights, names = table[list("abcd")], table["y"], table["weight"], list("abcd")
    made = Partitions(two_workers, collection, labels, weights)
    expected = np.dtype(np.float32 if kind.endswith("32") else np.float64)
    assert made.dtype == expected and made.start.tolist() == start and made.shape == (23, 4) and made.size == 92
    assert made.sparse == kind.startswith("sparse") and made.names == names
    np.testing.assert_array_equal(made.y, y)
    np.testing.assert_array_equal(made.weight, weight)
    size = expected.itemsize
    if made.sparse:
        assert made.nbytes == np.count_nonzero(X) * (size + 4) + 4 * (23 + 3)
    else:
        assert made.nbytes == 92 * size
    blocks = two_workers.gather(made.blocks)
    for block, a, b in zip(blocks, start, start[1:]):
        assert block.dtype == expected
        np.testing.assert_array_equal(dense(block), X[a:b].astype(expected))
    order = np.array([22, 0, 7, 8, 7])
    np.testing.assert_array_equal(dense(made[order]), X[order].astype(expected))
    workers = set(two_workers.scheduler_info()["workers"])
    assert set(made.homes()) <= workers and len(made.homes()) == 3


def test_labels_and_weights_may_be_here(two_workers):
    X, y = rows(), np.arange(23).astype(str)
    made = Partitions(two_workers, da.from_array(X, chunks=(8, 4)), list(y), None)
    np.testing.assert_array_equal(made.y, y)
    assert made.weight is None
    assert Partitions(two_workers, da.from_array(X, chunks=(8, 4)), None, y).y is None


def test_what_is_no_collection_or_has_another_shape_is_refused(two_workers):
    X, y = da.from_array(rows(), chunks=(8, 4)), da.from_array(np.arange(23), chunks=8)

    def unknown(x):
        """The same, as a selection whose sizes nobody knows."""
        return x[x >= 0] if x.ndim == 1 else x[x[:, 0] > -9]

    cases = [
        ((rows(), y, None), TypeError, "X is a ndarray: give a dask array or frame"),
        ((y, y, None), ValueError, "X has 1 dimensions: rows of features wanted"),
        ((X, X, None), ValueError, "y has 2 dimensions: give one column"),
        ((X, y[:-1], None), ValueError, "X has 23 rows and y has 22: one per row"),
        ((X, y, y[1:]), ValueError, "X has 23 rows and sample_weight has 22: one per row"),
        ((X, np.arange(22), None), ValueError, "X has 23 rows and y has 22: one label per row"),
        ((X, unknown(y.rechunk(6)), None), ValueError, "X has 3 partitions and y has 4: divide them alike"),
        ((X, unknown(y.rechunk(((9, 7, 7),))), None), ValueError, "partition 0 has 8 rows of X and 9 of y"),
        ((X, y, unknown(y.rechunk(((8, 9, 6),)))), ValueError, "partition 1 has 8 rows of X and 9 of sample_weight"),
        ((X[:0], None, None), ValueError, "X has no rows: all of its 1 partitions are empty"),
    ]
    for given, kind, message in cases:
        with pytest.raises(kind, match=message):
            Partitions(two_workers, *given)
    with pytest.warns(UserWarning, match="unknown sizes: their rows are counted"):
        counted = Partitions(two_workers, unknown(X), y, None)
    assert counted.shape == (23, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Partitions(two_workers, X, unknown(y), None)  # of y nobody needs them


def test_partitions_of_one_table_have_one_width_and_one_kind(two_workers):
    from dask import delayed

    def table(*blocks):
        return da.concatenate([da.from_delayed(delayed(b), (b.shape[0], 4), np.float64) for b in blocks])

    with pytest.raises(ValueError, match=r"differ in their number of features: \[3, 4\]"):
        Partitions(two_workers, table(rows(), rows(5, 3)), None, None)
    with pytest.raises(ValueError, match="some partitions of X are sparse and some are dense"):
        Partitions(two_workers, table(rows(), sp.csr_matrix(rows(5))), None, None)


def test_the_kind_of_floats_is_that_of_all_columns():
    frame = pd.DataFrame({"a": np.zeros(2, np.float32), "b": np.zeros(2, np.float32)})
    assert _dtype(frame) is np.float32 and _dtype(frame.assign(c=1.0)) is np.float64
    assert _dtype(np.zeros(2, np.float32)) is np.float32 and _dtype(np.zeros(2, np.float16)) is np.float64
    assert _dtype(SimpleNamespace()) is np.float64


def test_bytes_of_what_is_sent():
    x = sp.csr_matrix(rows())
    assert _bytes(x) == x.data.nbytes + x.indices.nbytes + x.indptr.nbytes
    assert _bytes(np.zeros(5)) == 40 and _bytes({"a": np.zeros(5), "b": {"c": np.zeros(2, np.int32)}}) == 48
    assert _bytes("text") == _bytes(None) == _bytes([np.zeros(5)]) == 0


def test_memory_is_too_little_only_where_all_is_known():
    def client(*limits):
        def scheduler_info(n_workers):
            assert n_workers == -1
            return {"workers": {k: {"memory_limit": limit} for k, limit in enumerate(limits)}}

        return SimpleNamespace(scheduler_info=scheduler_info)

    check_memory(client(100, 200), 300.0)
    check_memory(client(100, 200), 150.0, copies=2.0)
    check_memory(client(100, 0), 1e9)
    check_memory(client(), 1e9)
    check_memory(client(100), np.nan)
    with pytest.raises(MemoryError, match=r"X takes 3\.01e-07 GB and 1 times that is needed, but the 2 workers"):
        check_memory(client(100, 200), 301.0)
    with pytest.raises(MemoryError, match=r"2 times that.*have 3e-07 GB together"):
        check_memory(client(100, 200), 150.5, copies=2.0)


def test_a_partition_becomes_rows_that_the_core_takes():
    x = np.asfortranarray(rows())
    out = checked(x, 0, 1, np.float64)
    assert out.flags.c_contiguous and out.dtype == np.float64
    twice = sp.coo_matrix(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    csr = checked(sp.csr_matrix((twice.data, twice.col, [0, 2, 3]), shape=(2, 2)), 0, 1, np.float32)
    assert isinstance(csr, sp.csr_matrix) and csr.nnz == 2 and csr.dtype == np.float32
    np.testing.assert_array_equal(csr.toarray(), [[0, 3], [3, 0]])
    assert isinstance(checked(sp.csc_matrix(rows()), 0, 1, np.float64), sp.csr_matrix)
    assert checked(np.empty((0, 3)), 0, 1, np.float64).shape == (0, 3)
    np.testing.assert_array_equal(checked(pd.DataFrame(rows()), 0, 1, np.float64), rows())
    wide = sp.csr_matrix(rows())
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(checked(wide, 0, 1, np.float64).toarray(), rows())
    bad = rows()
    bad[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"partition 2 \(of 0 … 6\): Input X contains infinity"):
        checked(bad, 2, 7, np.float64)


def test_a_partition_is_described_with_what_goes_with_it():
    x = rows(5)
    found = described(x, 3, pd.Series(np.arange(5)), None)
    labels = found.pop("y")
    assert type(labels) is np.ndarray and labels.tolist() == [0, 1, 2, 3, 4]
    assert found == {"rows": 5, "features": 4, "sparse": False, "bytes": 160, "weight": None}
    assert described(sp.csr_matrix(x), 3, None, np.ones(5))["weight"].tolist() == [1.0] * 5
    for name, given in (("y", (np.ones(4), None)), ("sample_weight", (np.ones(5), np.ones(6)))):
        with pytest.raises(ValueError, match=f"partition 3 has 5 rows of X and [46] of {name}"):
            described(x, 3, *given)


def test_what_goes_with_the_rows_is_divided_as_they_are():
    X, y = da.zeros((10, 2), chunks=(4, 2)), da.arange(10, chunks=3)
    parts = _beside("y", y, X, 3)
    assert [part.compute(scheduler="sync").tolist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert _beside("y", np.arange(10), X, 3) is None and _beside("y", None, X, 3) is None
    assert [part.compute(scheduler="sync").shape for part in _delayed("X", da.zeros((10, 4), chunks=(4, 3)))] == [
        (4, 4), (4, 4), (2, 4)
    ]  # fmt: skip
    np.testing.assert_array_equal(_whole("y", y, [np.arange(3), np.arange(2)], 5), [0, 1, 2, 0, 1])
    assert _whole("y", None, [], 5) is None
    np.testing.assert_array_equal(_whole("sample_weight", [1.0, 2.0], [], 5), [1.0, 2.0])  # the estimator says what is wrong


# ---- asking for rows and sums


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_the_order_in_which_they_are_asked_for(form):
    X = rows()
    made, rng = partitions(form(X), (5, 5, 16)), np.random.default_rng(1)
    for count in (1, 3, 40):
        asked = rng.integers(0, 23, count)
        np.testing.assert_array_equal(dense(made[asked]), X[asked])
    del made.carrier.calls[:]
    made[[6, 7, 15, 5]]
    assert len(made.carrier.calls) == 1  # of one partition
    none = made[np.empty(0, np.int64)]
    assert none.shape == (0, 4) and none.dtype == X.dtype and sp.issparse(none) == (form is sp.csr_matrix)
    assert len(made.carrier.calls) == 1
    parts = made.parts(np.arange(23))
    assert [part.tolist() for part in parts] == [list(range(5)), [], list(range(5, 16)), list(range(16, 23))]


def test_homes_are_those_of_each_block_and_nowhere_is_nowhere():
    made = partitions(rows(), (5, 9))
    made.client.who_has = lambda blocks: {"block-0": ["b", "a"], "block-1": []}
    assert made.homes() == ["a", "", ""]


def test_a_function_is_called_on_the_partitions_that_are_asked_for_with_what_is_theirs():
    made = partitions(rows(), (5, 9))

    def told(block, *given):
        return (block.shape[0], *given)

    assert made.each(told) == [(5,), (4,), (14,)]
    assert made.each(told, [(1,), (2,), (3,)], common=("all", "of them")) == [
        (5, "all", "of them", 1), (4, "all", "of them", 2), (14, "all", "of them", 3)
    ]  # fmt: skip
    assert made.each(told, [("x",), ("y",)], which=[2, 0]) == [(14, "x"), (5, "y")]
    assert made.each(told, which=[]) == []
    steps, pauses = made.steps(told), 0
    try:
        while True:
            next(steps)
            pauses += 1
    except StopIteration as end:
        assert end.value == [(5,), (4,), (14,)] and pauses == 1


def test_large_arguments_go_straight_to_a_worker_and_common_ones_once():
    made = partitions(rows(), (5, 9))
    small, large, own = np.zeros(module.SMALL // 8), np.zeros(module.SMALL // 8 + 1), np.ones(module.SMALL // 8 + 1)

    def total(block, a, b, mine):
        return a.sum() + b.sum() + mine.sum()

    assert made.each(total, [(own,), (small,), (own,)], common=(small, large)) == [own.sum(), 0.0, own.sum()]
    assert [put is large for put in made.carrier.puts] == [True, False, False] and len(made.carrier.puts) == 3


def test_what_is_lost_is_asked_for_again_and_not_for_ever():
    lost = LostError("gone")
    made = partitions(rows(), (5, 9), lost=lambda call: lost if call in (2, 4) else None)
    large = np.zeros(module.SMALL)
    found = made.each(lambda block, given, k: (k, block.shape[0]), [(0,), (1,), (2,)], common=(large,))
    assert found == [(0, 5), (1, 4), (2, 14)]
    assert [args[-1] for _, args in made.carrier.calls] == [0, 1, 2, 1, 1]  # the second, and once more
    assert sum(put is large for put in made.carrier.puts) == 3  # who had it may be gone as well
    made = partitions(rows(), (5, 9), lost=lambda call: lost if call >= 3 else None)
    with pytest.raises(RuntimeError, match=f"^{ATTEMPTS} workers died over partition 2 of X \\(gone\\): give workers more"):
        made.each(lambda block: 1.0)
    assert len(made.carrier.calls) == 3 + ATTEMPTS - 1
    made = partitions(rows(), (5, 9), lost=lambda call: lost)
    with pytest.raises(RuntimeError, match="died over partition 0 of X"):
        made.each(lambda block: 1.0, which=[0])


def test_nothing_is_left_running_when_nobody_waits_any_more():
    class Slow(Here):
        """One future is done at a time."""

        def wait(self, refs, seconds, every=False):
            return refs[:1]

    made = partitions(rows(), (5, 9))
    made.carrier = Slow()
    steps = made.steps(lambda block: block.shape[0])
    next(steps)
    steps.close()
    (left,) = made.carrier.dropped
    assert sorted(ref.value for ref in left) == [4, 14]
    assert made.each(lambda block: block.shape[0]) == [5, 4, 14]
    assert made.carrier.dropped[1:] == [[]]


def test_partitions_that_were_lost_before_they_were_described_are_an_error_that_says_so():
    made = partitions(rows(), (5, 9))

    def get(future):
        raise LostError("tcp://here")

    made.carrier.get = get
    with pytest.raises(RuntimeError, match=r"partitions of the data were lost.*\(tcp://here\).*scatter it anew"):
        made._fact(None)
    made.carrier.get = lambda future: {"rows": 3}.items()
    assert made._fact(None) == {"rows": 3}
