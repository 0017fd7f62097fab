"""Model files changed at random: an error that is ours, or a model that answers; never a crash, never much memory.

A few thousand in the suite, 100,000 by `make fuzz`. Changes are made to bytes, and to the header and the arrays of files
whose checksum is then made right again, so that they get past it.
"""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin
from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, NuSVC, OneClassSVM
from maxmargin.models import ModelFileError
from maxmargin.problem.certificates import CertificateError

rng = np.random.default_rng(0)
Y = rng.integers(3, size=60)
X = rng.normal(size=(60, 3)) + np.eye(3)[Y]
MODELS = {
    "SVC": SVC(warm_start=True),
    "NuSVC": NuSVC(nu=0.1, kernel="poly"),
    "SVR": SVR(kernel="laplacian", warm_start=True),
    "OneClassSVM": OneClassSVM(kernel="sigmoid", warm_start=True),
    "DCSVC": DCSVC(stop_level=1, levels=1, random_state=0),
    "DCSVR": DCSVR(stop_level=1, levels=1, predict_with="bcm", random_state=0),
    "LinearSVC": LinearSVC(warm_start=True, solver="ocas", tol=0.01),
    "BudgetSVC": BudgetSVC(budget=5, random_state=0),
}
ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 255, 2**31, 2**63, -(2**63), 10**30, 0.0, -1.0, 1e308, 0.5, "", "a", "rbf",
    "precomputed", "float32", [], {}, [0], {"array": 0}, {"array": 1}, {"list": []}, {"dict": []}, {"float": "nan"},
    {"float": "inf"},
    {"scalar": ["<f8", 1.0]}, {"scalar": ["<i8", 3]}, {"strings": [0, 1]}, {"split": [0, 1]}, {"slice": [0, 5, None]},
    {"slice": [-5, None, -1]}, {"tuple": [1, 2]}, {"objects": [1, 2, 3]}, "<f8", "<i4", "|u1", "<U3", "bcm", "ovo",
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("files")
    out = {}
    for name, model in MODELS.items():
        for form in (np.asarray, sp.csr_matrix):
            maxmargin.save(model.fit(form(X), Y), folder / "model")
            out[f"{name} {form.__name__}"] = (folder / "model").read_bytes()
    return out


def sealed(text: bytes, body: bytes) -> bytes:
    text += b" " * (-len(text) % 64)
    head = b"\x89MXM\r\n\x1a\n" + struct.pack("<IIQQ", 1, 0, len(text), 64 + len(text) + len(body))
    return head + hashlib.sha256(head + text + body).digest() + text + body


def changed_bytes(raw: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes are others, some are missing, some are there twice."""
    out = bytearray(raw)
    for _ in range(rng.integers(1, 4)):
        if not out:
            break
        at, length = int(rng.integers(len(out))), int(rng.integers(1, 9))
        match rng.integers(4):
            case 0:
                out[at : at + length] = rng.bytes(length)
            case 1:
                del out[at : at + length]
            case 2:
                out[at:at] = out[at : at + length]
            case 3:
                out[at] = int(rng.choice([0, 1, 0x20, 0x2D, 0x30, 0x39, 0x3A, 0x7F, 0xFF]))
    return bytes(out)


def nodes(value: Any, where: list[Any] | None = None) -> list[tuple[Any, Any]]:
    """(container, key) of every value inside some JSON."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found += nodes(item)
    return found


def changed_header(header: dict[str, Any], rng: np.random.Generator) -> None:
    """Values replaced by others, by odd ones or by nothing."""
    for _ in range(rng.integers(1, 3)):
        places = nodes(header)
        container, key = places[rng.integers(len(places))]
        other, other_key = places[rng.integers(len(places))]
        match rng.integers(4):
            case 0:
                container[key] = json.loads(json.dumps(ODD[rng.integers(len(ODD))]))
            case 1:
                container[key] = json.loads(json.dumps(other[other_key]))
            case 2:
                del container[key]
            case 3 if type(container[key]) in (int, float):
                container[key] = container[key] + int(rng.integers(-2, 3))
            case _:
                pass


def changed_array(raw: bytearray, start: int, rng: np.random.Generator) -> None:
    """Eight bytes of some array: another small integer, a large one, a float, or noise."""
    at = start + 4 * int(rng.integers(max((len(raw) - start) // 4 - 1, 1)))
    small, large = int(rng.integers(-2, 100)), int(rng.integers(-(2**62), 2**62))
    values = [struct.pack("<q", small), struct.pack("<q", large), struct.pack("<i", small), struct.pack("<d", 10.0**small),
              struct.pack("<d", float("nan")), rng.bytes(8)]  # fmt: skip
    new = values[rng.integers(len(values))][: len(raw) - at]
    raw[at : at + len(new)] = new


def changed_inside(raw: bytes, rng: np.random.Generator) -> bytes:
    length = struct.unpack_from("<Q", raw, 16)[0]
    header, body = json.loads(raw[64 : 64 + length]), bytearray(raw[64 + length :])
    if rng.random() < 0.6:
        changed_header(header, rng)
    else:
        changed_array(body, 0, rng)
    return sealed(json.dumps(header).encode(), bytes(body))


def asked(model: Any, mutated: bool) -> None:
    """Everything that a model may be asked after it was loaded; ValueErrors are answers too."""
    if not 1 <= model.n_features_in_ <= 64:
        return
    points = np.random.default_rng(0).normal(size=(5, model.n_features_in_))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in ("predict", "decision_function", "score_samples"):
            if hasattr(model, name):
                try:
                    getattr(model, name)(points)
                except ValueError:
                    assert mutated


def refused(raw: bytes, path, **options) -> bool:
    """Whether a file is refused; else it is a model that can be asked."""
    path.write_bytes(raw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = maxmargin.load(path, **options)
        except ModelFileError:
            return True
    asked(model, mutated=True)
    return False


def test_damaged_bytes(files, fuzz_rounds, tmp_path) -> None:
    rng = np.random.default_rng(1)
    names = list(files)
    for round in range(fuzz_rounds(600)):
        raw = files[names[round % len(names)]]
        bad = changed_bytes(raw, rng)
        assert refused(bad, tmp_path / "model") == (bad != raw)


@pytest.mark.parametrize("number", [2**63, 10**30, -(10**400)])
def test_whole_numbers_of_any_length(files, number, tmp_path) -> None:
    """Python has them, arrays have not: in the place of every number of every machine."""
    for name, raw in files.items():
        if "csr" in name:
            continue
        length = struct.unpack_from("<Q", raw, 16)[0]
        text, body = raw[64 : 64 + length], raw[64 + length :]
        for place in range(len(nodes(json.loads(text)))):
            header = json.loads(text)
            container, key = nodes(header)[place]
            if type(container[key]) in (int, float):
                container[key] = number
                refused(sealed(json.dumps(header).encode(), body), tmp_path / "model")


@pytest.mark.parametrize("value", ["trace", "nonsense", 7.5, [1.0], {"a": 1}])
def test_parameters_are_of_their_kind(value, files, tmp_path) -> None:
    """In the place of every parameter that is one of some words: another word, a number, a list, a table of the file."""
    for name, raw in files.items():
        length = struct.unpack_from("<Q", raw, 16)[0]
        text, body = raw[64 : 64 + length], raw[64 + length :]
        header = json.loads(text)
        words = [key for key, now in header["params"].items() if isinstance(now, str) and key not in ("gamma", "kernel")]
        for key in words:
            header = json.loads(text)
            header["params"][key] = header["state"]["trace_"] if value == "trace" else value
            assert refused(sealed(json.dumps(header).encode(), body), tmp_path / "model"), (name, key)


def test_forged_files(files, fuzz_rounds, tmp_path) -> None:
    rng = np.random.default_rng(2)
    names = list(files)
    outcomes = []
    for round in range(fuzz_rounds(1200)):
        bad = changed_inside(files[names[round % len(names)]], rng)
        outcomes.append(refused(bad, tmp_path / "model", mmap=bool(round % 7 == 0)))
    assert 0.3 < np.mean(outcomes) < 0.97  # changes are neither all noticed nor all harmless: the fuzz gets inside


def test_a_forged_stream_goes_on_or_says_why_not(files, fuzz_rounds, tmp_path) -> None:
    rng = np.random.default_rng(3)
    for _ in range(fuzz_rounds(1500) // 10):
        (tmp_path / "model").write_bytes(changed_inside(files["BudgetSVC asarray"], rng))
        try:
            model = maxmargin.load(tmp_path / "model")
        except ModelFileError:
            continue
        if model.n_features_in_ != 3:
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model.set_params(budget=8, n_jobs=1, max_time=1.0)
            try:
                model.partial_fit(X, Y if len(model.classes_) == 3 else model.classes_[Y % len(model.classes_)])
            except ValueError:
                continue


@pytest.mark.parametrize("name", ["SVC asarray", "SVR asarray", "OneClassSVM asarray", "LinearSVC asarray"])
def test_a_forged_warm_start_goes_on_or_says_why_not(name, files, fuzz_rounds, tmp_path) -> None:
    """A lower bound that was forged above an objective is noticed there (CertificateError)."""
    rng = np.random.default_rng(6)
    for _ in range(fuzz_rounds(600) // 10):
        (tmp_path / "model").write_bytes(changed_inside(files[name], rng))
        try:
            model = maxmargin.load(tmp_path / "model")
        except ModelFileError:
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            known = MODELS[name.split()[0]].get_params()
            model.set_params(**known).set_params(n_jobs=1, max_time=1.0, tol=0.05)
            try:
                model.fit(X, Y)
            except (ValueError, CertificateError):
                continue


def test_forged_files_take_no_more_memory_than_they_have(files, fuzz_rounds, tmp_path) -> None:
    rng = np.random.default_rng(4)
    names = list(files)
    for round in range(fuzz_rounds(300) // 10):
        bad = changed_inside(files[names[round % len(names)]], rng)
        (tmp_path / "model").write_bytes(bad)
        tracemalloc.start()
        try:
            maxmargin.load(tmp_path / "model")
        except ModelFileError:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 50 * len(bad) + (3 << 20)


TEXTS = {
    "libsvm": b"svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 3\ntotal_sv 4\nrho 0.1 -2 3\nlabel 1 -1 7\n"
              b"nr_sv 1 2 1\nSV\n1 0.5 1:0.5 3:1\n-1 2 2:2\n0 -1.5e-3 1:1\n1 1 \n",
    "precomputed": b"svm_type nu_svr\nkernel_type precomputed\nnr_class 2\ntotal_sv 2\nrho 0.1\nSV\n1 0:3\n-1 0:1\n",
    "liblinear": b"solver_type MCSVM_CS\nnr_class 3\nlabel 1 -1 4\nnr_feature 2\nbias 1\nw\n0.5 1 2 \n-1 0 3 \n1 2 3 \n",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_other_programs(name, fuzz_rounds, tmp_path) -> None:
    rng = np.random.default_rng(5)
    outcomes = [refused(changed_bytes(TEXTS[name], rng), tmp_path / "model") for _ in range(fuzz_rounds(600))]
    assert 0.3 < np.mean(outcomes) < 1.0
