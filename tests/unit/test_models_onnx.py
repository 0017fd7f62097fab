"""ONNX models answer as the machines do: every machine, every kernel, alone and in pipelines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin import DCSVC, DCSVR, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, to_onnx
from maxmargin.models.onnx import register_skl2onnx

runtime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

KERNELS = ["linear", "poly", "rbf", "sigmoid", "laplacian"]
MACHINES = {
    "SVC": SVC(coef0=0.5),
    "SVC ovo": SVC(decision_function_shape="ovo"),
    "SVC break_ties": SVC(break_ties=True),
    "NuSVC": NuSVC(nu=0.1),
    "SVR": SVR(),
    "NuSVR": NuSVR(),
    "OneClassSVM": OneClassSVM(nu=0.3, coef0=1.0),  # without it the optimum of the cubic kernel is w = 0
    "DCSVC": DCSVC(fit_intercept=True, levels=2, random_state=0),
    "DCSVC early": DCSVC(stop_level=1, levels=2, fit_intercept=True, random_state=0),
    "DCSVC early ovr": DCSVC(stop_level=1, levels=1, multi_class="ovr", random_state=0),
    "DCSVC early ovo": DCSVC(stop_level=1, levels=1, decision_function_shape="ovo", random_state=0),
    "DCSVC all": DCSVC(stop_level=1, levels=1, predict_with="all", random_state=0),
    "DCSVC bcm": DCSVC(stop_level=1, levels=1, predict_with="bcm", random_state=0),
    "DCSVR early": DCSVR(stop_level=1, levels=1, fit_intercept=True, random_state=0),
    "DCSVR bcm": DCSVR(stop_level=1, levels=1, predict_with="bcm", random_state=0),
}
POINTS = np.random.default_rng(1).normal(size=(120, 4)) * 2


def blobs(n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 1.2 * np.eye(4)[y], y


def run(model, X, name: str = "X") -> dict[str, np.ndarray]:
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.get_outputs()
    results = dict(zip([output.name for output in outputs], session.run(None, {name: X})))
    for output in outputs:  # the shapes that the model declares are those it gives
        declared = [size for size in output.shape if isinstance(size, int)]
        assert declared == list(results[output.name].shape[1:])
    return results


def assert_equal_answers(model, found: dict[str, np.ndarray], X, tol: float = 1e-10) -> None:
    """Up to tol of the largest value."""
    pairs = [(found["prediction"], model.predict(X))] if "prediction" in found else []
    if "label" in found:
        assert np.array_equal(found["label"], model.predict(X))
        pairs.append((found["scores"], model.decision_function(X)))
    assert pairs
    for theirs, ours in pairs:
        assert theirs.dtype == np.float64 and theirs.shape == ours.shape
        assert np.abs(theirs - ours).max() <= tol * max(1.0, np.abs(ours).max())


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_with_every_kernel(name, kernel) -> None:
    X, y = blobs()
    model = clone(MACHINES[name]).set_params(kernel=kernel).fit(X, y)
    assert_equal_answers(model, run(to_onnx(model), POINTS), POINTS)


@pytest.mark.parametrize("name", ["SVC", "DCSVC early", "DCSVC bcm", "NuSVC"])
def test_two_classes(name) -> None:
    X, y = blobs()
    model = clone(MACHINES[name]).fit(X, y > 0)
    assert_equal_answers(model, run(to_onnx(model), POINTS), POINTS)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"multi_class": "crammer_singer"}], ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_linear_machines(classes, options) -> None:
    X, y = blobs()
    model = LinearSVC(**options).fit(X, np.minimum(y, classes - 1))
    assert_equal_answers(model, run(to_onnx(model), POINTS), POINTS)


@pytest.mark.parametrize("classes", [2, 3])
def test_budgeted_machines(classes) -> None:
    """They work in float32 themselves: 1e-6 is their own rounding."""
    X, y = blobs()
    model = BudgetSVC(budget=20, random_state=0).fit(X, np.minimum(y, classes - 1))
    assert_equal_answers(model, run(to_onnx(model), POINTS), POINTS, tol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [[10, -5, 7], ["a", "é", "long name"], np.array(["x", "y", "日本"], object), [1.0, 2.0, 3.0], [True, False, True]],
    ids=repr,
)
@pytest.mark.parametrize("make", [SVC, LinearSVC, BudgetSVC, DCSVC])
def test_labels_of_any_type(make, labels) -> None:
    X, y = blobs()
    model = make(random_state=0).fit(X, np.asarray(labels)[y])
    assert np.array_equal(run(to_onnx(model), POINTS)["label"], model.predict(POINTS))


@pytest.mark.parametrize("make", [SVC, SVR, OneClassSVM, DCSVC])
def test_precomputed_kernels(make) -> None:
    X, y = blobs()
    options = {"levels": 1, "stop_level": 1, "random_state": 0} if make is DCSVC else {}
    model = make(kernel="precomputed", **options).fit(X @ X.T, y)
    gram = POINTS @ X.T
    assert_equal_answers(model, run(to_onnx(model), gram), gram)


def test_clusters_that_were_split_and_clusters_of_one_class() -> None:
    """A tree of centres, and clusters that predict a constant."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(4000, 2)), rng.normal(size=(400, 2)) * 5 + 50]
    y = np.r_[X[:4000, 0] > 0, np.zeros(400, bool)]
    model = DCSVC(stop_level=1, levels=1, k=4, sample_size=100, gamma=0.01, tol=1e-5, random_state=0).fit(X, y)
    committee = model._committee
    assert committee.router.centers.children and not np.isnan(committee.constant).all()
    assert model._precision == "float64"
    assert_equal_answers(model, run(to_onnx(model), X[::20]), X[::20])


def test_sparse_and_float32_models() -> None:
    X, y = blobs()
    for form in (sp.csr_matrix, np.float32):
        model = SVC().fit(form(X), y)
        points = POINTS.astype(np.float32).astype(np.float64)
        assert_equal_answers(model, run(to_onnx(model), points), points)


def test_data_far_from_zero() -> None:
    X, y = blobs()
    model = SVC(gamma=0.5).fit(X + 1e4, y)
    assert_equal_answers(model, run(to_onnx(model), POINTS + 1e4), POINTS + 1e4, tol=1e-6)


def test_votes_in_the_order_of_the_program_that_made_the_model(tmp_path) -> None:
    X, y = blobs(60)
    maxmargin.save(SVC(kernel="poly").fit(X, y), tmp_path / "model", format="libsvm")
    text = (tmp_path / "model").read_text().replace("label 0 1 2", "label 7 3 5")
    (tmp_path / "model").write_text(text)
    model = maxmargin.load(tmp_path / "model")
    assert model._vote_order.tolist() == [2, 0, 1]
    points = np.random.default_rng(0).normal(size=(2000, 4)) * 3
    assert_equal_answers(model, run(to_onnx(model), points), points)


def test_one_row_no_rows_and_no_support_vectors() -> None:
    X, y = blobs()
    model = SVC().fit(X, y)
    for points in (POINTS[:1], POINTS[:0]):
        found = run(to_onnx(model), points)
        assert found["scores"].shape == (len(points), 3) and found["label"].shape == (len(points),)
    flat = SVR(epsilon=10.0).fit(X, y)
    assert len(flat.support_) == 0
    for kernel in KERNELS:
        flat = SVR(epsilon=10.0, kernel=kernel).fit(X, y)
        assert_equal_answers(flat, run(to_onnx(flat), POINTS), POINTS)


@pytest.mark.parametrize("opset", [13, 15, 18, 21])
def test_other_versions_of_the_operators(opset) -> None:
    X, y = blobs()
    model = DCSVC(stop_level=1, levels=1, kernel="laplacian", random_state=0).fit(X, y)
    made = to_onnx(model, opset=opset)
    assert made.opset_import[0].version == opset
    assert_equal_answers(model, run(made, POINTS), POINTS)


def dot(a, b):
    return a @ b.T


def test_what_cannot_be_exported() -> None:
    X, y = blobs()
    with pytest.raises(ValueError, match="a kernel that is a function"):
        to_onnx(SVC(kernel=dot).fit(X, y))
    with pytest.raises(ValueError, match=r"Pipeline is not a machine.*register_skl2onnx"):
        to_onnx(make_pipeline(SVC()).fit(X, y))
    with pytest.raises(NotFittedError):
        to_onnx(SVC())
    with pytest.raises(ValueError, match="opset=12"):
        to_onnx(SVC().fit(X, y), opset=12)
    wide = SVC().fit(X, y)
    wide.support_vectors_ = sp.csr_matrix((len(wide.support_), 2**24))
    with pytest.raises(ValueError, match="2 GB"):
        to_onnx(wide)


# ---- skl2onnx --------------------------------------------------------------------------------------------------------

PIPED = [
    SVC(), SVC(kernel="laplacian"), NuSVC(nu=0.1), SVR(), NuSVR(), OneClassSVM(), LinearSVC(), LinearSVR(),
    BudgetSVC(budget=20, random_state=0), DCSVC(stop_level=1, levels=1, random_state=0), DCSVR(random_state=0),
    GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=2),
]  # fmt: skip


@pytest.mark.parametrize("model", PIPED, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kind", ["double", "float"])
def test_pipelines_by_skl2onnx(kind, model) -> None:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    register_skl2onnx()
    X, y = blobs()
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, y)
    tensor, dtype, tol = {"double": (DoubleTensorType, float, 1e-6), "float": (FloatTensorType, np.float32, 1e-4)}[kind]
    made = skl2onnx.convert_sklearn(pipeline, initial_types=[("X", tensor([None, 4]))])
    found = run(made, POINTS.astype(dtype))
    if "variable" in found:
        ours, theirs = pipeline.predict(POINTS), found["variable"]
    else:
        assert (found["label"] == pipeline.predict(POINTS)).mean() >= (1.0 if kind == "double" else 0.98)
        ours, theirs = pipeline.decision_function(POINTS), found["scores"]
    assert theirs.dtype == dtype and theirs.shape == ours.shape
    assert np.abs(theirs - ours).max() <= tol * max(1.0, np.abs(ours).max())


def test_skl2onnx_takes_strings_options_and_several_inputs() -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    register_skl2onnx()
    X, y = load_iris(return_X_y=True)
    model = SVC().fit(X, np.array(["setosa", "versicolor", "virginica"])[y])
    made = skl2onnx.convert_sklearn(
        model, initial_types=[("X", DoubleTensorType([None, 4]))], options={"zipmap": False}, target_opset=15
    )
    assert np.array_equal(run(made, X)["label"], model.predict(X))
    halves = skl2onnx.convert_sklearn(
        model, initial_types=[("a", DoubleTensorType([None, 2])), ("b", DoubleTensorType([None, 2]))], target_opset=15
    )
    session = runtime.InferenceSession(halves.SerializeToString(), providers=["CPUExecutionProvider"])
    assert np.array_equal(session.run(["label"], {"a": X[:, :2], "b": X[:, 2:]})[0], model.predict(X))
    with pytest.raises(ValueError, match="opset=12"):
        skl2onnx.convert_sklearn(model, initial_types=[("X", DoubleTensorType([None, 4]))], target_opset=12)
