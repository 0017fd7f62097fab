"""LIBSVM's and LIBLINEAR's model files: their programs answer ours, and ours theirs, with equal results.

The peers are LIBSVM and LIBLINEAR themselves, by their own Python packages: svm_load_model and svm_predict_values are
what svm-predict calls. (svmutil.svm_predict is not used: for nu_svc of several classes it writes beyond its buffer.)
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import maxmargin
from maxmargin import DCSVC, SVC, SVR, BudgetSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from maxmargin.models.libsvm import reordered

svm = pytest.importorskip("libsvm.svm")
svmutil = pytest.importorskip("libsvm.svmutil")
linear = pytest.importorskip("liblinear.liblinear")
linearutil = pytest.importorskip("liblinear.liblinearutil")

KERNELS = ["linear", "poly", "rbf", "sigmoid"]
MACHINES = [SVC, NuSVC, OneClassSVM, SVR, NuSVR]
LABELS = {"two": [-1, 1], "two reversed": [1, -1], "two others": [5, 3], "four": [7, -3, 2, 5], "four sorted": [0, 1, 2, 3]}


def data(labels: list[int], n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes; the first rows have the labels in the order given, which is then LIBSVM's."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(len(labels)), rng.integers(len(labels), size=n - len(labels))]
    X = rng.normal(size=(n, 5)) + 0.8 * np.eye(5)[y % 5]
    X[rng.random(X.shape) < 0.2] = 0.0
    return X, np.array(labels)[y]


POINTS = np.random.default_rng(1).normal(size=(150, 5)) * 1.5


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """LIBSVM's threads wait for each other at every support vector, which takes seconds on a busy machine."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def libsvm_answers(path, X) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """(predictions, decision values of pairs, order of labels) by LIBSVM."""
    model = svmutil.svm_load_model(str(path))
    assert model is not None
    size = model.get_nr_class()
    buffer = (svm.c_double * max(1, size * (size - 1) // 2))()
    labels, values = [], []
    given = model.param.kernel_type == svm.kernel_names.PRECOMPUTED
    for row in X:
        nodes, _ = svm.gen_svm_nodearray(list(row), isKernel=given)
        labels.append(svm.libsvm.svm_predict_values(model, nodes, buffer))
        values.append(list(buffer))
    return np.array(labels), np.array(values), model.get_labels() if model.get_svm_type() < 2 else []


def trained_by_libsvm(path, X, y, options: str) -> None:
    svmutil.svm_save_model(str(path), svmutil.svm_train(y.tolist(), X.tolist(), options + " -q"))


def pairs_of(model, labels: list[int], X) -> np.ndarray:
    """Our decision values in LIBSVM's order of pairs and with its signs."""
    model.set_params(decision_function_shape="ovo")
    ours, classes = model.decision_function(X), model.classes_.tolist()
    if len(classes) == 2:
        return (ours if labels[0] == classes[1] else -ours)[:, None]
    places = list(combinations(range(len(classes)), 2))
    columns = []
    for a, b in combinations(labels, 2):
        i, j = classes.index(a), classes.index(b)
        column = ours[:, places.index((min(i, j), max(i, j)))]
        columns.append(column if i < j else -column)
    return np.column_stack(columns)


def close(a, b, tol: float = 1e-9) -> bool:
    return bool(np.abs(np.asarray(a) - b).max() <= tol * max(1.0, np.abs(b).max()))


CASES = [(0, "rbf", labels) for labels in LABELS]
CASES += [(kind, kernel, "two") for kind in range(5) for kernel in KERNELS]
CASES += [(kind, kernel, "four") for kind in range(2) for kernel in KERNELS]


@pytest.mark.parametrize(("kind", "kernel", "labels"), CASES)
def test_libsvm_answers_for_our_models(kind, kernel, labels, tmp_path) -> None:
    make = MACHINES[kind]
    X, y = data(LABELS[labels])
    model = make(kernel=kernel, coef0=0.5, **({"nu": 0.1} if make is NuSVC else {})).fit(X, y)
    maxmargin.save(model, tmp_path / "model", format="libsvm")
    label, value, order = libsvm_answers(tmp_path / "model", POINTS)
    again = maxmargin.load(tmp_path / "model", n_features=5)
    if make in (SVR, NuSVR):
        assert close(model.predict(POINTS), label) and close(again.predict(POINTS), label)
        return
    for ours in (model, again):
        assert np.array_equal(ours.predict(POINTS), label)
        values = pairs_of(ours, order, POINTS) if order else ours.decision_function(POINTS)[:, None]
        assert close(values, value)
    assert again.get_params()["kernel"] == kernel and again.status_ == "unknown" and np.isnan(again.dual_gap_)


@pytest.mark.parametrize(("kind", "kernel", "labels"), CASES)
def test_we_answer_for_libsvms_models(kind, kernel, labels, tmp_path) -> None:
    X, y = data(LABELS[labels])
    options = f"-s {kind} -t {KERNELS.index(kernel)} -g 0.3 -r 0.5 -d 2 -n 0.1"
    trained_by_libsvm(tmp_path / "model", X, y, options)
    label, value, order = libsvm_answers(tmp_path / "model", POINTS)
    model = maxmargin.load(tmp_path / "model")
    assert type(model) is MACHINES[kind]
    maxmargin.save(model, tmp_path / "again", format="libsvm")
    back, _, kept = libsvm_answers(tmp_path / "again", POINTS)
    if kind > 2:
        assert close(model.predict(POINTS), label) and close(back, label)
        return
    assert np.array_equal(model.predict(POINTS), label) and np.array_equal(back, label)
    for Z in (POINTS, sp.csr_matrix(POINTS)):
        values = pairs_of(model, order, Z) if order else model.decision_function(Z)[:, None]
        assert close(values, value)
    if order:
        assert model.classes_.tolist() == sorted(order)
        assert kept == order or len(order) == 2


def test_votes_that_tie_go_to_the_class_that_libsvm_gives_them(tmp_path) -> None:
    """Three classes, one vote each somewhere: the first in LIBSVM's own order wins, not the smallest label."""
    X, y = data([9, 4, 1, 6], n=60)
    trained_by_libsvm(tmp_path / "model", X, y, "-t 1 -g 1")
    points = np.random.default_rng(2).normal(size=(500, 5)) * 2
    label, value, order = libsvm_answers(tmp_path / "model", points)
    assert order == [9, 4, 1, 6]
    votes = np.zeros((len(points), 4))
    for k, (i, j) in enumerate(combinations(range(4), 2)):
        votes[:, i] += value[:, k] > 0
        votes[:, j] += value[:, k] <= 0
    tied = (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1
    smallest = np.array(sorted(order))[np.argmax(votes[:, np.argsort(order)], axis=1)]
    assert (smallest != label).any() and tied.any()
    model = maxmargin.load(tmp_path / "model")
    assert np.array_equal(model.predict(points), label)
    maxmargin.save(model, tmp_path / "native")
    assert np.array_equal(maxmargin.load(tmp_path / "native").predict(points), label)


@pytest.mark.parametrize("make", MACHINES)
def test_precomputed_kernels(make, tmp_path) -> None:
    X, y = data([3, 1, 2])
    model = make(kernel="precomputed", **({"nu": 0.1} if make is NuSVC else {})).fit(X @ X.T, y)
    maxmargin.save(model, tmp_path / "model", format="libsvm")
    gram = POINTS @ X.T
    label, _, _ = libsvm_answers(tmp_path / "model", np.column_stack([np.zeros(len(gram)), gram]))
    again = maxmargin.load(tmp_path / "model", n_features=len(X))
    for ours in (model, again):
        predicted = ours.predict(gram)
        assert np.array_equal(predicted, label) if make not in (SVR, NuSVR) else close(predicted, label)
    last = int(model.support_.max()) + 1  # the file knows of no row beyond it
    alone = maxmargin.load(tmp_path / "model")
    assert alone.n_features_in_ == last and np.array_equal(alone.predict(gram[:, :last]), again.predict(gram))
    with pytest.raises(ValueError, match=f"n_features={last - 1} is below"):
        maxmargin.load(tmp_path / "model", n_features=last - 1)


def test_a_model_of_unknown_rows_is_certified_once_they_are_named(tmp_path) -> None:
    X, y = data([3, 1, 2])
    model = SVC(C=2.0, tol=1e-6).fit(X, y)
    maxmargin.save(model, tmp_path / "model", format="libsvm")
    back = maxmargin.load(tmp_path / "model", n_features=5)
    with pytest.raises(ValueError, match="training rows of the support vectors"):
        maxmargin.certify_fit(back, X, y)
    back.support_ = model.support_
    found = maxmargin.certify_fit(back.set_params(C=2.0), X, y)
    assert found.primal == pytest.approx(model.objective_, rel=1e-9) and found.gap <= 1.001 * model.dual_gap_ + 1e-9


def test_probabilities_of_regression_are_left_out_with_a_word(tmp_path) -> None:
    X, y = data([1, -1])
    trained_by_libsvm(tmp_path / "model", X, y, "-s 3 -b 1")
    with pytest.warns(UserWarning, match="probabilities are left out"):
        model = maxmargin.load(tmp_path / "model")
    assert close(model.predict(POINTS), libsvm_answers(tmp_path / "model", POINTS)[0])


def libsvm_probabilities(path, X) -> np.ndarray:
    """By LIBSVM, with the classes in sorted order."""
    model = svmutil.svm_load_model(str(path))
    buffer, out = (svm.c_double * model.get_nr_class())(), []
    for row in X:
        svm.libsvm.svm_predict_probability(model, svm.gen_svm_nodearray(list(row))[0], buffer)
        out.append(list(buffer))
    return np.array(out)[:, np.argsort(model.get_labels())]


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("make", [SVC, NuSVC])
@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
def test_probabilities_go_both_ways(tmp_path, labels, make) -> None:
    X, y = data(labels, n=200)
    rough = 1e-9 if len(labels) == 2 else 0.01  # of several classes LIBSVM iterates until it is this near
    model = make(probability=True, random_state=0, **({"nu": 0.3} if make is NuSVC else {})).fit(X, y)
    maxmargin.save(model, tmp_path / "ours", format="libsvm")
    assert np.abs(libsvm_probabilities(tmp_path / "ours", POINTS) - model.predict_proba(POINTS)).max() < rough
    assert np.abs(maxmargin.load(tmp_path / "ours").predict_proba(POINTS) - model.predict_proba(POINTS)).max() < 1e-9
    trained_by_libsvm(tmp_path / "theirs", X, y, f"-s {int(make is NuSVC)} -n 0.3 -b 1")
    back = maxmargin.load(tmp_path / "theirs")
    theirs = libsvm_probabilities(tmp_path / "theirs", POINTS)
    assert np.abs(back.predict_proba(POINTS) - theirs).max() < rough
    maxmargin.save(back, tmp_path / "again", format="libsvm")  # and back in their order
    assert np.abs(libsvm_probabilities(tmp_path / "again", POINTS) - theirs).max() < 1e-9


def test_half_a_sigmoid_is_refused(tmp_path) -> None:
    X, y = data([1, -1])
    trained_by_libsvm(tmp_path / "model", X, y, "-b 1")
    text = (tmp_path / "model").read_text()
    for wrong in (text.replace("probB", "probA"), re.sub(r"probB .*\n", "", text), re.sub(r"(probA .*)", r"\1 2", text)):
        (tmp_path / "model").write_text(wrong)
        with pytest.raises(maxmargin.models.ModelFileError):
            maxmargin.load(tmp_path / "model")


def test_sparse_models_and_features_that_no_support_vector_has(tmp_path) -> None:
    _, y = data([1, -1])
    wide = sp.random(120, 500, density=0.01, random_state=0, format="csr")
    model = SVC(gamma=0.5).fit(wide, y)
    maxmargin.save(model, tmp_path / "model", format="libsvm")
    back = maxmargin.load(tmp_path / "model", n_features=500)
    assert sp.issparse(back.support_vectors_)
    assert close(back.decision_function(wide), model.decision_function(wide))
    with pytest.raises(ValueError, match="n_features=3 is below feature"):
        maxmargin.load(tmp_path / "model", n_features=3)
    with pytest.raises(ValueError, match="n_features='5'"):
        maxmargin.load(tmp_path / "model", n_features="5")
    with pytest.raises(ValueError, match="mmap=True"):
        maxmargin.load(tmp_path / "model", mmap=True)


@pytest.mark.parametrize("entries", range(1, 6))
def test_a_small_file_makes_no_large_array(entries, tmp_path) -> None:
    """Support vectors are dense where that takes at most twice what the file has, else as sparse as there."""
    row = " ".join(f"{column + 1}:1" for column in range(entries))
    (tmp_path / "model").write_text(GOOD["libsvm"].split("SV\n")[0] + f"SV\n1 {row}\n-1 {row}\n")
    for width in range(entries, 13):
        vectors = maxmargin.load(tmp_path / "model", n_features=width).support_vectors_
        assert sp.issparse(vectors) == (width > 2 * entries) and vectors.shape == (2, width)
        assert vectors.sum() == 2 * entries


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0]])
def test_an_order_of_classes_and_back(order) -> None:
    rng = np.random.default_rng(0)
    counts = [2, 3, 4]
    coef, intercept = rng.normal(size=(2, 9)), rng.normal(size=3)
    there, shift, columns = reordered(coef, intercept, counts, order)
    back, unshift, returned = reordered(there, shift, [counts[a] for a in order], np.argsort(order).tolist())
    assert np.array_equal(back, coef) and np.array_equal(unshift, intercept)
    assert np.array_equal(columns[returned], np.arange(9))


# ---- LIBLINEAR -----------------------------------------------------------------------------------------------------


def liblinear_answers(path, X) -> np.ndarray:
    model = linearutil.load_model(str(path))
    size = model.get_nr_class()
    buffer = (linear.c_double * size)()
    out = []
    for row in X:
        nodes, _ = linear.gen_feature_nodearray(list(row))
        if model.bias >= 0:
            nodes, _ = linear.gen_feature_nodearray([*row, model.bias])
        out.append(linear.liblinear.predict_values(model, nodes, buffer))
    return np.array(out)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize(
    "options",
    [{"loss": "hinge", "intercept_scaling": None}, {"intercept_scaling": 2.0}, {"fit_intercept": False},
     {"loss": "hinge", "multi_class": "crammer_singer"}],
    ids=str,
)
def test_liblinear_answers_for_our_models(options, labels, tmp_path) -> None:
    X, y = data(LABELS[labels])
    model = LinearSVC(**options).fit(X, y)
    maxmargin.save(model, tmp_path / "model", format="liblinear")
    again = maxmargin.load(tmp_path / "model")
    assert np.array_equal(liblinear_answers(tmp_path / "model", POINTS), model.predict(POINTS))
    assert np.array_equal(again.predict(POINTS), model.predict(POINTS))
    assert np.array_equal(again.decision_function(POINTS), model.decision_function(POINTS))
    for name in ("loss", "multi_class", "fit_intercept"):
        assert getattr(again, name) == getattr(model, name)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"loss": "squared_epsilon_insensitive"}], ids=str)
def test_liblinear_answers_for_our_regressions(options, tmp_path) -> None:
    X, _ = data(next(iter(LABELS.values())))
    model = LinearSVR(**options).fit(X, X @ np.arange(X.shape[1]) + 3)
    maxmargin.save(model, tmp_path / "model", format="liblinear")
    again = maxmargin.load(tmp_path / "model")
    assert np.allclose(liblinear_answers(tmp_path / "model", POINTS), model.predict(POINTS), rtol=1e-12)
    assert np.array_equal(again.predict(POINTS), model.predict(POINTS))
    assert (again.loss, again.fit_intercept) == (model.loss, model.fit_intercept)


@pytest.mark.parametrize("bias", [-1, 0, 2.5])
@pytest.mark.parametrize("kind", [11, 12, 13])
def test_we_answer_for_liblinears_regressions(kind, bias, tmp_path) -> None:
    X, _ = data(next(iter(LABELS.values())))
    theirs = linearutil.train((X @ np.arange(X.shape[1]) + 3).tolist(), X.tolist(), f"-s {kind} -B {bias} -q")
    linearutil.save_model(str(tmp_path / "model"), theirs)
    model = maxmargin.load(tmp_path / "model")
    assert isinstance(model, LinearSVR) and model.status_ == "unknown"
    assert np.allclose(model.predict(POINTS), liblinear_answers(tmp_path / "model", POINTS), rtol=1e-12)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("bias", [-1, 0, 2.5])
@pytest.mark.parametrize("kind", [1, 2, 3, 4, 5])
def test_we_answer_for_liblinears_models(kind, bias, labels, tmp_path) -> None:
    X, y = data(LABELS[labels])
    theirs = linearutil.train(y.tolist(), X.tolist(), f"-s {kind} -B {bias} -q")
    linearutil.save_model(str(tmp_path / "model"), theirs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = maxmargin.load(tmp_path / "model")
    assert np.array_equal(model.predict(POINTS), liblinear_answers(tmp_path / "model", POINTS))
    assert model.status_ == "unknown" and model.classes_.tolist() == sorted(LABELS[labels])
    wider = np.column_stack([POINTS, POINTS])  # features that were not there in training count for nothing
    if kind != 5:
        assert np.array_equal(maxmargin.load(tmp_path / "model", n_features=10).predict(wider), model.predict(POINTS))


def test_a_model_under_the_1_norm_is_one_again(tmp_path) -> None:
    X, y = data([1, -1])
    linearutil.save_model(str(tmp_path / "model"), linearutil.train(y.tolist(), X.tolist(), "-s 5 -q"))
    model = maxmargin.load(tmp_path / "model")
    assert model.penalty == "l1" and model.loss == "squared_hinge"
    maxmargin.save(model.fit(X, y), tmp_path / "again", format="liblinear")
    assert (tmp_path / "again").read_text().startswith("solver_type L1R_L2LOSS_SVC\n")
    assert maxmargin.load(tmp_path / "again").penalty == "l1"


@pytest.mark.parametrize("kind", [0, 6, 7, 21])
def test_other_machines_of_liblinear_are_refused(kind, tmp_path) -> None:
    X, y = data([1, -1])
    linearutil.save_model(str(tmp_path / "model"), linearutil.train(y.tolist(), X.tolist(), f"-s {kind} -q"))
    with pytest.raises(ValueError, match=r"solver_type .* cannot be read|not expected"):
        maxmargin.load(tmp_path / "model")


# ---- what cannot be written or read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "y", "format", "words"),
    [
        (SVC(kernel="laplacian"), [1, -1], "libsvm", "LIBSVM has no laplacian kernel"),
        (SVC(), ["a", "b"], "libsvm", "integers of 32 bits only.*LabelEncoder"),
        (SVC(), [2**40, 1], "libsvm", "integers of 32 bits only"),
        (LinearSVC(), ["a", "b"], "liblinear", "LIBLINEAR knows integers"),
        (LinearSVC(), [1, -1], "libsvm", "LinearSVC has no place in LIBSVM's format"),
        (DCSVC(), [1, -1], "libsvm", "DCSVC has no place in LIBSVM's format.*to_onnx"),
        (BudgetSVC(), [1, -1], "libsvm", "BudgetSVC has no place"),
        (SVC(), [1, -1], "liblinear", "SVC has no place in LIBLINEAR's format"),
    ],
)
def test_what_a_format_has_no_place_for(model, y, format, words, tmp_path) -> None:
    X, _ = data([1, -1])
    model.fit(X, np.resize(y, len(X)))
    with pytest.raises(ValueError, match=words):
        maxmargin.save(model, tmp_path / "model", format=format)
    assert list(tmp_path.iterdir()) == []


GOOD = {
    "libsvm": "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.1\nlabel 1 -1\nnr_sv 1 1\nSV\n"
              "1 1:0.5 3:1\n-1 2:2\n",
    "liblinear": "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5\n-1\n",
}  # fmt: skip
BAD = [
    ("libsvm", "rbf", "tanimoto", "kernel_type tanimoto cannot be read"),
    ("libsvm", "c_svc", "c_svm", "svm_type c_svm cannot be read"),
    ("libsvm", "gamma 0.5\n", "", "gamma must be there"),
    ("libsvm", "gamma 0.5", "gamma -1", "gamma must be above 0"),
    ("libsvm", "gamma 0.5", "gamma nan", "gamma must be finite"),
    ("libsvm", "gamma 0.5", "gamma 0.5\ngamma 0.5", "'gamma' is not expected"),
    ("libsvm", "nr_class 2", "nr_class 3", "label must be there, with 3"),
    ("libsvm", "nr_class 2", "nr_class 1000000000", "label must be there, with 1000000000"),
    ("libsvm", "total_sv 2", "total_sv 3", "add up to total_sv"),
    ("libsvm", "label 1 -1", "label 1 1", "labels must differ"),
    ("libsvm", "label 1 -1", "label 1 b", "label must be whole numbers"),
    ("libsvm", "nr_sv 1 1", "nr_sv 3 -1", "add up"),
    ("libsvm", "SV\n", "", "no line 'SV'"),
    ("libsvm", "3:1", "3:x", "something else than numbers"),
    ("libsvm", "3:1", "3:inf", "not finite"),
    ("libsvm", "3:1", "3:1_0", "something else than numbers"),
    ("libsvm", "3:1", "1:1", "must ascend"),
    ("libsvm", "3:1", "0:1 3:1", "ascend"),
    ("libsvm", "2:2", "0:2", "count from 1"),
    ("libsvm", "2:2", "9999999999:2", "2\\*\\*31"),
    ("libsvm", "2:2", "2 2", "line 11 is not 1 coefficient"),
    ("libsvm", "-1 2:2\n", "", "1 support vectors, not the 2"),
    ("liblinear", "L2R_L2LOSS_SVC", "L2R_LR", "solver_type L2R_LR cannot be read"),
    ("liblinear", "nr_feature 2", "nr_feature 3", "2 weights, not 3 lines"),
    ("liblinear", "nr_feature 2", "nr_feature -2", "make no sense"),
    ("liblinear", "nr_feature 2", "nr_feature 99999999999", "weights, not"),
    ("liblinear", "bias -1", "bias 1", "2 weights, not 3 lines"),
    ("liblinear", "bias -1", "bias x", "bias must be finite"),
    ("liblinear", "-1\n", "e\n", "label must be|something else"),
    ("liblinear", "w\n", "", "no line 'w'"),
]


@pytest.mark.parametrize(("format", "old", "new", "words"), BAD)
def test_a_bad_line_is_named(format, old, new, words, tmp_path) -> None:
    (tmp_path / "model").write_text(GOOD[format])
    maxmargin.load(tmp_path / "model")
    assert old in GOOD[format]
    (tmp_path / "model").write_text(GOOD[format].replace(old, new, 1))
    with pytest.raises(ValueError, match=words):
        maxmargin.load(tmp_path / "model")


@pytest.mark.parametrize("format", GOOD)
def test_line_ends_of_windows_are_read(format, tmp_path) -> None:
    (tmp_path / "unix").write_text(GOOD[format])
    (tmp_path / "windows").write_bytes(GOOD[format].replace("\n", "\r\n").encode())
    models = [maxmargin.load(tmp_path / name, n_features=5) for name in ("unix", "windows")]
    assert np.array_equal(models[0].decision_function(POINTS), models[1].decision_function(POINTS))


@pytest.mark.parametrize("content", [b"", b"\n", b"<html>", b"\x89PNG\r\n\x1a\n", b"svm_type", b"svm_type \xff\nSV\n"])
def test_other_files_are_no_models(content, tmp_path) -> None:
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(maxmargin.models.ModelFileError):
        maxmargin.load(tmp_path / "model")
