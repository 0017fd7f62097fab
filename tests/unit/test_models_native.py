"""maxmargin's own model files: what goes in comes out, to the last bit, and goes on from there."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.data.container import HEAD, read
from maxmargin.models.schema import MACHINES

EVERY = {
    "SVC": SVC(warm_start=True),
    "SVC poly": SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.5, class_weight={0: 2.0, 2: 0.5}),
    "SVC max_time": SVC(max_iter=1, working_set_size=4),
    "NuSVC": NuSVC(nu=0.1, kernel="sigmoid", gamma=0.1, warm_start=True),
    "SVR": SVR(kernel="laplacian", warm_start=True),
    "NuSVR": NuSVR(kernel="linear"),
    "OneClassSVM": OneClassSVM(nu=0.2, warm_start=True),
    "DCSVC": DCSVC(random_state=0),
    "DCSVC early": DCSVC(stop_level=1, levels=2, fit_intercept=True, random_state=0),
    "DCSVC ovr": DCSVC(stop_level=1, levels=1, multi_class="ovr", random_state=0),
    "DCSVC bcm": DCSVC(stop_level=1, levels=1, predict_with="bcm", kernel="laplacian", random_state=0),
    "DCSVR": DCSVR(stop_level=1, levels=1, random_state=0),
    "LinearSVC": LinearSVC(warm_start=True),
    "LinearSVC joint": LinearSVC(multi_class="crammer_singer", warm_start=True),
    "LinearSVR": LinearSVR(warm_start=True, epsilon=0.1),
    "BudgetSVC": BudgetSVC(budget=15, random_state=0),
}


def blobs(n: int = 240) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[y], y


def answers(model, X) -> list[np.ndarray]:
    names = ("predict", "decision_function", "score_samples")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


def same(a, b) -> bool:
    """Equal in type and, bit by bit, in value."""
    if type(a) is not type(b) and not isinstance(b, np.memmap):
        return False
    if isinstance(a, np.ndarray):
        bits = a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
        return a.dtype == b.dtype and a.shape == b.shape and bits
    if sp.issparse(a):
        return a.shape == b.shape and all(same(getattr(a, k), getattr(b, k)) for k in ("data", "indices", "indptr"))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a) or type(a).__module__.startswith("maxmargin."):
        return same(vars(a), vars(b))
    return repr(a) == repr(b)


def fitted(name: str, X=None):
    Z, y = blobs()
    with pytest.warns(match="max_iter") if "max_time" in name else _quiet():
        return pickle.loads(pickle.dumps(EVERY[name])).fit(Z if X is None else X, y)


class _quiet:
    def __enter__(self) -> None: ...

    def __exit__(self, *error) -> None: ...


@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("name", EVERY)
def test_a_model_comes_back_as_it_was(name, form, tmp_path) -> None:
    X = form(blobs()[0])
    model = fitted(name, X)
    maxmargin.save(model, tmp_path / "model")
    for mmap in (False, True):
        back = maxmargin.load(tmp_path / "model", mmap=mmap)
        assert type(back) is type(model)
        assert same(dict(sorted(vars(model).items())), dict(sorted(vars(back).items())))
        for one, other in zip(answers(model, X), answers(back, X)):
            assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "labels",
    [["a", "é", "long name"], np.array(["a", "b", "日本"], object), [True, False, True], [-1.0, 0.0, 7.0],
     np.array([3, 5, 250], np.uint8), [-(2**40), 0, 2**40]],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("make", [SVC, LinearSVC, BudgetSVC, DCSVC])
def test_classes_of_any_type(make, labels, tmp_path) -> None:
    X, y = blobs()
    model = make(random_state=0).fit(X, np.asarray(labels)[y])
    maxmargin.save(model, tmp_path / "model")
    back = maxmargin.load(tmp_path / "model")
    assert same(model.classes_, back.classes_)
    assert same(model.predict(X), back.predict(X))


def test_objects_and_names_of_features(tmp_path) -> None:
    X, y = blobs()
    frame = pd.DataFrame(X, columns=["größe", "b", "", "d" * 300])
    model = SVC(class_weight={np.int64(1): np.float32(2.0)}, C=np.float64(3), max_time=np.float32(60)).fit(frame, y)
    maxmargin.save(model, tmp_path / "model")
    back = maxmargin.load(tmp_path / "model")
    assert same(model.feature_names_in_, back.feature_names_in_)
    assert same(model.get_params(), back.get_params())
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame[frame.columns[::-1]])


def test_sparse_indices_of_two_widths(tmp_path) -> None:
    """SciPy may mix them."""
    X, y = blobs()
    model = SVC().fit(sp.csr_matrix(X), y)
    model.support_vectors_.indptr = model.support_vectors_.indptr.astype(np.int64)
    maxmargin.save(model, tmp_path / "model")
    assert np.array_equal(maxmargin.load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("make", [SVC, DCSVC, OneClassSVM, SVR])
def test_precomputed_kernels(make, tmp_path) -> None:
    X, y = blobs()
    gram = X @ X.T
    options = {"levels": 1, "stop_level": 1, "random_state": 0} if make is DCSVC else {}
    model = make(kernel="precomputed", **options).fit(gram, y)
    maxmargin.save(model, tmp_path / "model")
    assert np.array_equal(model.predict(gram), maxmargin.load(tmp_path / "model").predict(gram))


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", [name for name, model in EVERY.items() if getattr(model, "warm_start", False)])
def test_a_warm_start_goes_on_as_after_a_pickle(name, mmap, tmp_path) -> None:
    X, y = blobs(100)
    model = pickle.loads(pickle.dumps(EVERY[name])).fit(X, y)
    maxmargin.save(model, tmp_path / "model")
    harder = {"nu": 0.15} if hasattr(model, "nu") else {"C": 3.0}
    harder |= {} if isinstance(model, (LinearSVC, LinearSVR)) else {"tol": 1e-6}
    copies = [pickle.loads(pickle.dumps(model)), maxmargin.load(tmp_path / "model", mmap=mmap)]
    pickled, loaded = (copy.set_params(**harder).fit(X, y) for copy in copies)
    cold = pickle.loads(pickle.dumps(EVERY[name])).set_params(**harder).fit(X, y)
    assert same(pickled.n_iter_, loaded.n_iter_)
    assert not same(cold.trace_["objective"], loaded.trace_["objective"])  # it did start warm
    for one, other in zip(answers(pickled, X), answers(loaded, X)):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("mmap", [False, True])
def test_a_stream_goes_on_as_after_a_pickle(mmap, tmp_path) -> None:
    X, y = blobs()
    model = BudgetSVC(budget=10, stream_size=240).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    maxmargin.save(model, tmp_path / "model")
    copies = [pickle.loads(pickle.dumps(model)), maxmargin.load(tmp_path / "model", mmap=mmap)]
    pickled, loaded = (copy.partial_fit(X[100:], y[100:]) for copy in copies)
    assert np.array_equal(pickled.decision_function(X), loaded.decision_function(X))
    assert not np.array_equal(model.decision_function(X), loaded.decision_function(X))


@pytest.mark.parametrize("name", EVERY)
def test_every_fitted_attribute_has_a_line_in_the_schema(name) -> None:
    model = fitted(name)
    machine = MACHINES[type(model).__name__]
    attributes = set(vars(model)) - set(model.get_params())
    assert attributes - machine.required - machine.optional == set(), "say in models/schema.py how they are checked"
    assert machine.required <= attributes


def test_the_same_model_is_the_same_bytes(tmp_path) -> None:
    model = fitted("DCSVC early")
    maxmargin.save(model, tmp_path / "one")
    maxmargin.save(pickle.loads(pickle.dumps(model)), tmp_path / "other")
    maxmargin.save(maxmargin.load(tmp_path / "one"), tmp_path / "again")
    contents = [(tmp_path / name).read_bytes() for name in ("one", "other", "again")]
    assert contents[0] == contents[1] == contents[2]


def test_an_array_that_occurs_twice_is_stored_once(tmp_path) -> None:
    model = fitted("BudgetSVC")
    assert model.support_vectors_ is model._state["centres"]
    maxmargin.save(model, tmp_path / "model")
    back = maxmargin.load(tmp_path / "model")
    assert back.support_vectors_ is back._state["centres"]


def test_arrays_are_aligned_little_endian_and_where_the_document_says(tmp_path) -> None:
    """A reader of twenty lines, from docs/models.md and nothing else."""
    model = fitted("SVC")
    maxmargin.save(model, tmp_path / "model")
    raw = (tmp_path / "model").read_bytes()
    length = int.from_bytes(raw[16:24], "little")
    header = json.loads(raw[64 : 64 + length])
    at, arrays = 64 + length, []
    for kind, shape in header["arrays"]:
        dtype = np.dtype(kind if isinstance(kind, str) else [tuple(column) for column in kind])
        assert at % 64 == 0
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(raw, dtype, count, at).reshape(shape))
        at += -(-count * dtype.itemsize // 64) * 64
    assert at == len(raw) == int.from_bytes(raw[24:32], "little")
    assert np.array_equal(arrays[header["state"]["dual_coef_"]["array"]], model.dual_coef_)
    assert header["class"] == "SVC" and header["params"]["C"] == 1.0 and header["state"]["status_"] == model.status_


def test_a_mapped_model_leaves_its_arrays_in_the_file(tmp_path) -> None:
    model = fitted("SVC")
    maxmargin.save(model, tmp_path / "model")
    assert not maxmargin.load(tmp_path / "model", mmap=True).support_vectors_.flags.owndata
    assert not maxmargin.load(tmp_path / "model", mmap=True).support_vectors_.flags.writeable
    assert maxmargin.load(tmp_path / "model").support_vectors_.flags.writeable


def test_reading_needs_neither_pickle_nor_the_data(tmp_path) -> None:
    X, _ = blobs()
    models = [fitted(name) for name in ("DCSVC early", "LinearSVC", "BudgetSVC")]
    for k, model in enumerate(models):
        maxmargin.save(model, tmp_path / f"model{k}")
    np.save(tmp_path / "X.npy", X)
    program = (
        "import numpy, pickle, maxmargin\n"
        "def no(*a, **k): raise SystemExit('pickle was asked')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = no\n"
        "X = numpy.load('X.npy')\n"
        "for k in range(3): numpy.save(f'out{k}.npy', maxmargin.load(f'model{k}').decision_function(X))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300, cwd=tmp_path)
    for k, model in enumerate(models):
        assert np.array_equal(np.load(tmp_path / f"out{k}.npy"), model.decision_function(X))


# ---- what cannot be saved ------------------------------------------------------------------------------------------


def dot(a, b):
    return a @ b.T


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(kernel=dot), "kernel is <function dot.*precomputed"),
        (SVC(callback=print), r"callback is .*set_params\(callback=None\)"),
        (LinearSVC(random_state=np.random.RandomState(0)), "random_state is RandomState.*an integer or None"),
        (make_pipeline(StandardScaler(), SVC()), "Pipeline is not a machine of maxmargin.*skops"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_its_remedy(model, words, tmp_path) -> None:
    model.fit(*blobs())
    with pytest.raises(ValueError, match=words):
        maxmargin.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_machines_of_others_and_unfitted_ones_are_refused(tmp_path) -> None:
    class Mine(SVC):
        pass

    with pytest.raises(ValueError, match="Mine is not a machine of maxmargin"):
        maxmargin.save(Mine().fit(*blobs()), tmp_path / "model")
    with pytest.raises(NotFittedError):
        maxmargin.save(SVC(), tmp_path / "model")
    model = SVC().fit(*blobs())
    model.note_ = 3
    with pytest.raises(ValueError, match="note_"):
        maxmargin.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_was_changed_into_nonsense_is_not_written(tmp_path) -> None:
    model = SVC().fit(*blobs())
    model.dual_coef_ = model.dual_coef_[:, 1:]
    with pytest.raises(ValueError, match="n_support_"):
        maxmargin.save(model, tmp_path / "model")


def test_the_options_of_load(tmp_path) -> None:
    maxmargin.save(fitted("SVC"), tmp_path / "model")
    with pytest.raises(ValueError, match="n_features=7"):
        maxmargin.load(tmp_path / "model", n_features=7)
    with pytest.raises(ValueError, match="format='onnx'"):
        maxmargin.save(fitted("SVC"), tmp_path / "model", format="onnx")
    with pytest.raises(FileNotFoundError):
        maxmargin.load(tmp_path / "nothing")
    version, header, _ = read(tmp_path / "model")
    assert version == 1 and header["format"] == "maxmargin model" and HEAD.size == 64
