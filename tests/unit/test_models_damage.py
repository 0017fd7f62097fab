"""Model files that are damaged, cut short or forged: a clear error, no code run, no memory out of proportion."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin import DCSVC, SVC, SVR, BudgetSVC, LinearSVC
from maxmargin.data import container
from maxmargin.data.container import _spec
from maxmargin.models import ModelFileError

MB = 1 << 20


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = rng.normal(size=(90, 4)) + np.eye(4)[y]
    models = {
        "SVC": SVC(warm_start=True).fit(X, y),
        "sparse": SVC().fit(sp.csr_matrix(np.where(X > 0.5, X, 0)), np.array(["a", "b", "c"], object)[y]),
        "SVR": SVR(warm_start=True).fit(X, y),
        "DCSVC": DCSVC(stop_level=1, levels=1, random_state=0).fit(X, y),
        "LinearSVC": LinearSVC(warm_start=True, solver="ocas", tol=0.01).fit(X, y),
        "BudgetSVC": BudgetSVC(budget=5, random_state=0).fit(X, y),
    }
    folder = tmp_path_factory.mktemp("good")
    for name, model in models.items():
        maxmargin.save(model, folder / name)
    return {name: (folder / name).read_bytes() for name in models}


def taken_apart(raw: bytes) -> tuple[dict, list[bytes]]:
    """Header and the bytes of each array."""
    length = struct.unpack_from("<Q", raw, 16)[0]
    header, at, parts = json.loads(raw[64 : 64 + length]), 64 + length, []
    for kind, shape in header["arrays"]:
        dtype = np.dtype(kind if isinstance(kind, str) else [*map(tuple, kind)])
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        parts.append(raw[at : at + size])
        at += -(-size // 64) * 64
    return header, parts


def put_together(header: dict | bytes, parts: list[bytes], version: int = 1) -> bytes:
    """A file with a right head and checksum around whatever is given: what a forger would do."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    body = text + b"".join(part + bytes(-len(part) % 64) for part in parts)
    head = b"\x89MXM\r\n\x1a\n" + struct.pack("<IIQQ", version, 0, len(text), 64 + len(body))
    return head + hashlib.sha256(head + body).digest() + body


def load(raw: bytes, folder, **options):
    (folder / "model").write_bytes(raw)
    return maxmargin.load(folder / "model", **options)


def refused(raw: bytes, folder, words: str | None = None) -> None:
    for mmap in (False, True):
        with pytest.raises(ModelFileError, match=words):
            load(raw, folder, mmap=mmap)


def memory_of_refusal(raw: bytes, folder) -> int:
    """The most bytes that were taken on the way to the error."""
    (folder / "model").write_bytes(raw)
    tracemalloc.start()
    try:
        maxmargin.load(folder / "model")
    except ModelFileError:
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    raise AssertionError("the file was read")


def test_the_forger_of_these_tests_knows_the_format(good, tmp_path) -> None:
    for raw in good.values():
        assert put_together(*taken_apart(raw)) == raw
        load(raw, tmp_path)


@pytest.mark.parametrize("name", ["SVC", "sparse", "BudgetSVC"])
def test_cut_short_anywhere(name, good, tmp_path) -> None:
    raw = good[name]
    for length in sorted({0, 1, 7, 8, 63, 64, 65, len(raw) - 1, *range(0, len(raw), 997)}):
        refused(raw[:length], tmp_path, "truncated|not a model")
    refused(raw + b"\0", tmp_path, "followed by something else")


@pytest.mark.parametrize("name", ["SVC", "DCSVC"])
def test_one_bit_anywhere(name, good, tmp_path) -> None:
    raw = good[name]
    rng = np.random.default_rng(0)
    for place in {*range(72), *rng.integers(len(raw), size=300).tolist()}:
        changed = bytearray(raw)
        changed[place] ^= 1 << int(rng.integers(8))
        refused(bytes(changed), tmp_path)


def test_a_newer_format_says_what_to_do(good, tmp_path) -> None:
    header, parts = taken_apart(good["SVC"])
    refused(put_together(header, parts, version=2), tmp_path, "format version 2.*update maxmargin")
    refused(put_together(header, parts, version=0), tmp_path, "makes no sense")


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"{", b'{"arrays": []}', b'{"arrays": 3}', b"\xff\xfe", b"[" * 100_000, b'{"arrays": [NaN]}',
     b'{"arrays": [], "class": "SVC", "params": {}, "state": {}}', b'{"arrays": [], "class": ["SVC"]}',
     b'{"arrays": [], "class": "os.system", "params": {}, "state": {}}', b'{"arrays": {"a": 1}}',
     b'{"arrays": [], "class": "SVC", "params": ' + b'{"list": [' * 400 + b"]}" * 400 + b', "state": {}}'],
    ids=range(14),
)  # fmt: skip
def test_headers_that_are_none(text, tmp_path) -> None:
    refused(put_together(text, []), tmp_path)


HUGE = [
    ["<f8", [2**61]], ["<f8", [2**40, 2**40]], ["<f8", [-1]], ["<f8", [1.0]], ["<f8", [True]], ["<f8", "8"], ["<f8", None],
    ["|O", [1]], ["<O8", [1]], ["object", [1]], ["|V8", [1]], [">f8", [1]], ["<f16", [1]], ["<c16", [1]], ["<M8[s]", [1]],
    ["<U0", [2**50]], ["<U99999999", [10**9]], ["f8", [1]], [[["a", "|O"]], [1]], [[["a", "<f8"], ["a", "<f8"]], [1]],
    [[], [1]], [[["a", [["b", "<f8"]]]], [1]], ["<f8", [2**61, 0]], ["<f8", [0] * 100], ["<f8"], 5, None, ["<f8", {}, 1],
]  # fmt: skip


@pytest.mark.parametrize("entry", HUGE, ids=repr)
def test_tables_of_arrays_that_lie(entry, good, tmp_path) -> None:
    header, parts = taken_apart(good["SVC"])
    header["arrays"][0] = entry
    raw = put_together(header, parts)
    refused(raw, tmp_path)
    assert memory_of_refusal(raw, tmp_path) < 3 * MB


@pytest.mark.parametrize(
    "wrong", [["b", "|O"], ["b", [["c", "<f8"]]], ["b", 5], [5, "<f8"], [None, "<f8"], ["b"], "b", 7], ids=repr
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_wrong_column_of_a_table_is_enough(wrong, at) -> None:
    good = [["x", "<f8"], ["y", "<i4"]]
    assert _spec([good, [3]]) == (np.dtype([("x", "<f8"), ("y", "<i4")]), (3,))
    with pytest.raises((TypeError, ValueError)):
        _spec([[*good[:at], wrong, *good[at:]], [3]])


def test_a_small_file_cannot_ask_for_much_memory(tmp_path) -> None:
    """Many arrays of nothing, lists of lists, strings and parts: all are paid for in bytes of the file."""
    lists = b'{"list": [' + b",".join([b'{"list": []}'] * 5_000) + b"]}"
    begin = b'{"class": "SVC", "params": {}, "state": {"a": '
    empty = b",".join([b'["<f8", [0, 4611686018427387903]]'] * 2_000)
    ends = np.zeros(10_000, np.int64).tobytes()
    split = b'{"split": [0, 1]}}, "arrays": [["<f8", [0]], ["<i8", [10000]]]}'
    strings = b'{"strings": [0, 1]}}, "arrays": [["|u1", [0]], ["<i8", [10000]]]}'
    cases = [
        (begin + lists + b'}, "arrays": []}', []),
        (begin + b'null}, "arrays": [' + empty + b"]}", []),
        (begin + split, [b"", ends]),
        (begin + strings, [b"", ends]),
    ]
    for text, parts in cases:
        raw = put_together(text, parts)
        refused(raw, tmp_path)
        assert memory_of_refusal(raw, tmp_path) < 50 * len(raw) + 3 * MB


def test_what_can_be_written_can_be_read(tmp_path, monkeypatch) -> None:
    """Headers up to the limit and no longer, with it on both sides."""
    monkeypatch.setattr(container, "MOST_HEADER", 256)
    for length in range(150, 300):
        header = {"a": "x" * length}
        text = len(json.dumps({**header, "arrays": []}))
        if text > 256:
            with pytest.raises(ValueError, match="above 256: pickle it instead"):
                container.write(tmp_path / "m", header, [])
            continue
        container.write(tmp_path / "m", header, [])
        assert container.read(tmp_path / "m") == (container.VERSION, header, [])
    assert text > 256


def test_a_header_without_end_is_not_read(good, tmp_path) -> None:
    raw = put_together(b'{"a": "' + b"x" * (17 * MB) + b'"}', [])
    refused(raw, tmp_path, "makes no sense")
    assert memory_of_refusal(raw, tmp_path) < 3 * MB


# ---- forged values ---------------------------------------------------------------------------------------------------


def forged(raw: bytes, change) -> bytes:
    header, parts = taken_apart(raw)
    arrays = []
    for (kind, shape), part in zip(header["arrays"], parts):
        dtype = np.dtype(kind if isinstance(kind, str) else [*map(tuple, kind)])
        arrays.append(np.frombuffer(part, dtype).reshape(shape).copy())

    def array(name: str, *path: str) -> np.ndarray:
        node = header["state"][name]
        for step in path:
            node = dict(node["dict"])[step] if "dict" in node else node["fields"][step] if "fields" in node else node["csr"]
        return arrays[node["csr"][path[-1]] if "csr" in node else node["array"]]

    change(header, array)
    return put_together(header, [part.tobytes() for part in arrays])


def poke(name, *path, at=0, to):
    def change(header, array) -> None:
        array(name, *path)[at] = to

    return change


def turn(name, to):
    def change(header, array) -> None:
        header["state"][name] = to

    return change


FORGED = [
    ("SVC", turn("support_vectors_", {"array": 9999}), "not the number of an array"),
    ("SVC", turn("support_vectors_", {"array": -1}), "not the number of an array"),
    ("SVC", turn("support_vectors_", None), "not an array"),
    ("SVC", turn("dual_coef_", {"array": 0}), "dual_coef_"),
    ("SVC", turn("n_features_in_", 2), "support_vectors_ has shape"),
    ("SVC", turn("n_features_in_", True), "n_features_in_"),
    ("SVC", turn("_precision", "float16"), "_precision"),
    ("SVC", turn("status_", 3), "status_"),
    ("SVC", turn("objective_", "low"), "objective_"),
    ("SVC", turn("timings_", []), "stands for no value|timings_"),
    ("SVC", turn("_secret", 3), "_secret.*unknown"),
    ("SVC", turn("classes_", {"objects": [1, {"list": []}, 2]}), "not a scalar"),
    ("SVC", turn("_fitted_kernel", {"record": "Popen", "fields": {}}), "not a known record"),
    ("SVC", turn("_fitted_kernel", {"record": "Kernel", "fields": {"nam": "rbf"}}), "unknown"),
    ("SVC", turn("_fitted_kernel", {"record": "Kernel", "fields": {"name": "rbf", "gamma": -1.0}}), "gamma"),
    ("SVC", turn("_fitted_kernel", {"record": "Kernel", "fields": {"name": "rbf", "degree": 2**40}}), "degree"),
    ("SVC", turn("_fitted_kernel", {"record": "Kernel", "fields": {"name": "rbf", "function": "print"}}), "kernel"),
    ("SVC", turn("_fitted_kernel", {"record": "Kernel", "fields": {"name": "precomputed"}}), "support_"),
    ("SVC", poke("n_support_", to=-5), "n_support_"),
    ("SVC", poke("n_support_", to=2**30), "n_support_"),
    ("SVC", poke("support_vectors_", to=np.nan), "not finite"),
    ("SVC", poke("dual_coef_", to=np.inf), "not finite"),
    ("BudgetSVC", poke("_state", "label", to=7), "label"),
    ("BudgetSVC", poke("_state", "clock", to=np.nan), "clock"),
    ("DCSVC", poke("_committee", "cluster", to=99), "cluster"),
    ("DCSVC", poke("support_cluster_", to=-1), "cluster"),
    ("DCSVC", poke("_committee", "router", "centers", "rows", to=10**6), "rows"),
    ("DCSVC", poke("_committee", "router", "centers", "end", to=10**6), "ends"),
    ("DCSVC", poke("_committee", "router", "centers", "end", to=0), "ends"),
    ("DCSVC", poke("_committee", "router", "centers", "number", to=50), "numbers"),
    ("DCSVC", poke("_committee", "router", "centers", "number", to=-1), "children"),
]


@pytest.mark.parametrize(("name", "change", "words"), FORGED)
def test_forged_values_are_refused(name, change, words, good, tmp_path) -> None:
    raw = forged(good[name], change)
    assert raw != good[name]
    refused(raw, tmp_path, words)


def test_numbers_of_clusters_of_another_width_are_refused(good, tmp_path) -> None:
    """The core reads them as they lie in the file."""
    header, parts = taken_apart(good["DCSVC"])
    node = header["state"]["_committee"]
    for step in ("router", "centers", "number"):
        node = node["fields"][step]
    kind, shape = header["arrays"][node["array"]]
    parts[node["array"]] = np.frombuffer(parts[node["array"]], kind).astype("<i4").tobytes()
    header["arrays"][node["array"]] = ["<i4", shape]
    refused(put_together(header, parts), tmp_path, "64 bits")


REPORTS = {"n_iter_", "trace_", "timings_", "levels_"}  # of what was done: nobody goes on from them


def leaves(node, where=()):
    """(keys that lead to it, value) of everything in the state that is made of nothing else; {"array": 3} is one."""
    if not isinstance(node, (dict, list)) or (isinstance(node, dict) and set(node) == {"array"}):
        yield where, node
        return
    for key, item in node.items() if isinstance(node, dict) else enumerate(node):
        yield from leaves(item, (*where, key))


def replaced(array: np.ndarray) -> dict[str, np.ndarray]:
    """An array that is not the one that belongs there, in some ways."""
    out = {"deeper": array[..., None]} | ({"shorter": array[:-1]} if len(array) else {})
    if array.dtype.kind in "if":
        other = {"f": "i", "i": "f"}[array.dtype.kind] + str(array.dtype.itemsize)
        out["of another type"] = np.zeros(array.shape, f"<{other}")
    if array.dtype.kind == "f" and array.size:
        out["not finite"] = array.copy()
        out["not finite"].flat[-1] = np.nan
    return out


ALLOWED = {("classes_", "of another type"), ("constant", "not finite")}  # labels of any type; NaN: not computed


@pytest.mark.parametrize("name", ["SVC", "sparse", "SVR", "DCSVC", "LinearSVC", "BudgetSVC"])
def test_no_array_is_taken_unseen(name, good, tmp_path) -> None:
    """Every array of a file, one at a time, with another shape, another type or a NaN: refused, whatever it is for."""
    header, parts = taken_apart(good[name])
    places = {node["array"]: where for where, node in leaves(header["state"]) if isinstance(node, dict)}
    for number, where in places.items():
        kind, shape = header["arrays"][number]
        if where[0] in REPORTS:
            continue
        for way, array in replaced(np.frombuffer(parts[number], kind).reshape(shape)).items():
            changed, others = json.loads(json.dumps(header)), list(parts)
            changed["arrays"][number], others[number] = [array.dtype.str, list(array.shape)], array.tobytes()
            if (where[-1], way) in ALLOWED:
                load(put_together(changed, others), tmp_path)
                continue
            with pytest.raises(ModelFileError):
                load(put_together(changed, others), tmp_path)
                pytest.fail(f"{where} {way}")


@pytest.mark.parametrize("name", ["SVC", "sparse", "SVR", "DCSVC", "LinearSVC", "BudgetSVC"])
def test_no_value_is_taken_unseen(name, good, tmp_path) -> None:
    """An empty list in the place of every number, word and array of the state, one at a time."""
    header, parts = taken_apart(good[name])
    for where, _ in leaves(header["state"]):
        if where[0] in REPORTS:
            continue
        changed = json.loads(json.dumps(header))
        node = changed["state"]
        for key in where[:-1]:
            node = node[key]
        node[where[-1]] = {"list": []}
        with pytest.raises(ModelFileError):
            load(put_together(changed, parts), tmp_path)
            pytest.fail(f"{where}")


@pytest.mark.parametrize(
    ("part", "at", "to"),
    [("indices", 0, -1), ("indices", 0, 4), ("indices", -1, 2**31 - 1), ("indptr", 0, 1), ("indptr", -1, 10**6),
     ("indptr", 1, -5), ("indptr", -2, 10**6), ("data", 0, np.nan)],
)  # fmt: skip
def test_sparse_matrices_that_point_outside(part, at, to, good, tmp_path) -> None:
    header, parts = taken_apart(good["sparse"])
    number = header["state"]["support_vectors_"]["csr"][part]
    values = np.frombuffer(parts[number], header["arrays"][number][0]).copy()
    values[at] = to
    parts[number] = values.tobytes()
    refused(put_together(header, parts), tmp_path)


def test_values_that_are_none_of_their_type(good, tmp_path) -> None:
    header, parts = taken_apart(good["SVC"])
    for kind, value in (("|b1", 2), ("<U1", 0x110000)):
        number = header["state"]["classes_"]["array"]
        changed, arrays = json.loads(json.dumps(header)), list(parts)
        changed["arrays"][number] = [kind, [3]]
        arrays[number] = np.full(3, value, "<u4" if kind == "<U1" else "u1").tobytes()
        refused(put_together(changed, arrays), tmp_path, "others than 0 and 1|beyond Unicode")


@pytest.mark.parametrize(("kind", "raw"), [("|b1", b"\x02"), ("<U2", b"a\0\0\0\0\0\x11\0")], ids=["bool", "text"])
@pytest.mark.parametrize("at", range(4))
def test_values_are_looked_at_in_every_place_and_column(kind, raw, at, tmp_path) -> None:
    """In an array of that type, and in any column of a table."""
    fine = np.zeros(4, kind)
    wrong = fine.copy()
    wrong.view(np.uint8).reshape(4, -1)[at] = np.frombuffer(raw, np.uint8)
    columns = [("x", "<f8"), ("y", "<i4"), ("z", "<f4")]
    table = np.zeros(4, [*columns[:at], ("wrong", kind), *columns[at:]])
    for column, refused in ((fine, False), (wrong, True)):
        table = np.frombuffer(b"".join(_row(table[k : k + 1], "wrong", column[k : k + 1]) for k in range(4)), table.dtype)
        for array in (column, column.reshape(2, 2), table):
            if refused:
                with pytest.raises(ModelFileError, match=r"truth values|beyond Unicode"):
                    container._check_values(array, tmp_path)
            else:
                container._check_values(array, tmp_path)


def _row(row: np.ndarray, name: str, value: np.ndarray) -> bytes:
    """The bytes of a row of a table, with those of one value in their place: whatever they mean."""
    offset = row.dtype.fields[name][1]
    raw = bytearray(row.tobytes())
    raw[offset : offset + value.nbytes] = value.tobytes()
    return bytes(raw)


def test_parameters_of_another_machine(good, tmp_path) -> None:
    header, parts = taken_apart(good["SVC"])
    header["params"]["epochs"] = 3
    refused(put_together(header, parts), tmp_path, "epochs.*unknown.*newer maxmargin")
    header["class"] = "LinearSVC"
    del header["params"]
    refused(put_together(header, parts), tmp_path, "no params")


def test_what_is_no_file(tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        maxmargin.load(tmp_path / "folder")
