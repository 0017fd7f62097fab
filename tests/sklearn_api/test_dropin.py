"""What a user who swaps the import relies on: the forms of attributes, objects as samples, altered models, hard margins."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import _ovr_decision_function

from maxmargin import DCSVC, DCSVR, SVC, SVR, NuSVC, NuSVR, OneClassSVM, certify_fit
from maxmargin.estimators.multiclass import ovr_decision

EXACT = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]
ALL = [*EXACT, DCSVC(), DCSVR()]
RNG = np.random.default_rng(0)
X = np.where(RNG.random((60, 5)) < 0.5, 0.0, RNG.normal(size=(60, 5)))
Y = np.digitize(X[:, 0] + X[:, 1] + 0.3 * RNG.normal(size=60), [-0.3, 0.3])
WORDS = ["".join(RNG.choice(list("abc"), size=RNG.integers(1, 7))) for _ in range(60)]
each = pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)


def letters(a, b):
    """A kernel of two collections of strings: letters in common, counted."""
    count = [np.array([[word.count(c) for c in "abc"] for word in words], dtype=float) for words in (a, b)]
    return count[0] @ count[1].T + 1.0


def values(model, Z):
    return model.predict(Z) if isinstance(model, (SVR, NuSVR, DCSVR)) else model.decision_function(Z)


@each
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_sparse_fit_has_the_attributes_of_a_dense_one_as_sparse_matrices(machine, kernel) -> None:
    dense = clone(machine).set_params(kernel=kernel).fit(X, Y)
    for form in (sp.csr_matrix, sp.csc_array, sp.lil_matrix, sp.coo_array, sp.dok_matrix):
        model = clone(machine).set_params(kernel=kernel).fit(form(X), Y)
        assert sp.issparse(model.dual_coef_) and sp.issparse(model.support_vectors_)
        np.testing.assert_array_equal(model.dual_coef_.toarray(), dense.dual_coef_)
        np.testing.assert_array_equal(model.support_vectors_.toarray(), dense.support_vectors_)
        np.testing.assert_array_equal(values(model, form(X)), values(dense, X))
        np.testing.assert_array_equal(values(model, X), values(dense, form(X)))
        if kernel == "linear" and not isinstance(machine, (DCSVC, DCSVR)):
            np.testing.assert_allclose(model.coef_.toarray(), dense.coef_, rtol=1e-12, atol=1e-12)
    pickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(pickled.dual_coef_.toarray(), dense.dual_coef_)


@pytest.mark.parametrize("machine", EXACT, ids=lambda m: type(m).__name__)
def test_no_support_vectors_are_kept_of_given_values_and_objects(machine) -> None:
    """As in scikit-learn."""
    theirs = getattr(sklearn.svm, type(machine).__name__)(**({"nu": machine.nu} if hasattr(machine, "nu") else {}))
    for kernel, samples in (("precomputed", X @ X.T), (letters, WORDS)):
        found, wanted = (clone(m).set_params(kernel=kernel).fit(samples, Y).support_vectors_ for m in (machine, theirs))
        assert found.shape == wanted.shape == (0, 0) and found.dtype == wanted.dtype


@pytest.mark.parametrize("machine", EXACT, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_coef_is_read_only(machine, form) -> None:
    model = clone(machine).set_params(kernel="linear").fit(form(X), Y)
    with pytest.raises(AttributeError):
        model.coef_ = np.zeros((1, 5))
    with pytest.raises(ValueError, match="read-only"):
        (model.coef_.data if sp.issparse(model.coef_) else model.coef_)[0] = 0


@each
def test_what_was_changed_counts(machine) -> None:
    """dual_coef_ may be set, as in scikit-learn, and predictions follow."""
    model = clone(machine).fit(sp.csr_matrix(X), Y)
    before = values(model, X)
    model.dual_coef_ = 2 * model.dual_coef_
    model.intercept_ = 2 * np.asarray(model.intercept_)
    if hasattr(model, "offset_"):
        model.offset_ = 2 * model.offset_
    if isinstance(machine, (SVC, NuSVC)):
        model.decision_function_shape = "ovo"
        before = clone(machine).set_params(decision_function_shape="ovo").fit(X, Y).decision_function(X)
    if not isinstance(machine, (DCSVC, DCSVR)):
        np.testing.assert_allclose(values(model, X), 2 * before, rtol=1e-9, atol=1e-12)


@each
@pytest.mark.parametrize("name", ["n_support_", "support_", "support_vectors_", "dual_coef_"])
def test_a_model_whose_parts_do_not_fit_together_is_refused(machine, name) -> None:
    model = clone(machine).fit(X, Y)
    whole = np.array(getattr(model, name))
    setattr(model, name, whole * 1000 if name == "n_support_" else whole[..., :-1] if name == "dual_coef_" else whole[:-1])
    with pytest.raises(ValueError, match=f"internal representation of {type(model).__name__} was altered"):
        model.predict(X)


@each
def test_a_kernel_function_may_take_any_objects(machine) -> None:
    gram = letters(WORDS, WORDS)
    model = clone(machine).set_params(kernel=letters)
    given_ = clone(machine).set_params(kernel="precomputed").fit(gram, Y)
    others = ["abba", "c", "aaaaaa"]
    for words in (WORDS, tuple(WORDS), np.array(WORDS), np.array(WORDS, dtype=object)):
        model.fit(words, list(Y))
        np.testing.assert_array_equal(values(model, others), values(given_, letters(others, WORDS)))
        assert list(model.support_) == list(given_.support_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(values(again, others), values(model, others))
    if not isinstance(machine, OneClassSVM):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(WORDS, Y[:-1])
    model.set_params(kernel="linear").fit(X, Y)  # and back to numbers
    np.testing.assert_array_equal(values(model, X), values(clone(machine).set_params(kernel="linear").fit(X, Y), X))


def test_objects_that_a_named_kernel_cannot_take() -> None:
    with pytest.raises(ValueError, match="could not convert string to float"):
        SVC().fit([[w] for w in WORDS], Y)
    with pytest.raises(ValueError, match=r"shape \(60, 3\), expected \(60, 60\)"):
        SVC(kernel=lambda a, b: np.ones((len(a), 3))).fit(WORDS, Y)
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(X @ X.T), Y)


@given(st.integers(3, 6), st.data())
def test_scores_per_class_are_those_of_scikit_learn(n_classes, data) -> None:
    count = n_classes * (n_classes - 1) // 2
    row = st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 3.0]), min_size=count, max_size=count)
    rows = data.draw(st.lists(row, min_size=1))
    pair = np.array(rows)
    np.testing.assert_allclose(ovr_decision(pair, n_classes), _ovr_decision_function(pair < 0, -pair, n_classes), rtol=1e-12)


def test_the_hard_margin() -> None:
    points, sides = make_blobs(40, centers=[[-3, -3], [3, 3]], random_state=0)
    model = SVC(kernel="linear", C=np.inf, tol=1e-6).fit(points, sides)
    assert model.status_ == "converged"
    margin = np.where(sides == 1, 1, -1) * model.decision_function(points)
    assert margin.min() >= 1 - 1e-5  # nobody inside the margin
    certificate = certify_fit(model, points, sides)  # of C = 1e10: slacks of rounding are dear
    assert model.objective_ == pytest.approx(certificate.primal, rel=1e-6)
    assert model.objective_ - model.dual_gap_ == pytest.approx(0.5 * float(np.square(model.coef_).sum()), rel=1e-4)
    huge = sklearn.svm.SVC(kernel="linear", C=1e10, tol=1e-6).fit(points, sides)
    np.testing.assert_allclose(model.decision_function(points), huge.decision_function(points), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", [list, tuple, np.asarray, lambda y: memoryview(np.ascontiguousarray(y)), np.asfortranarray])
def test_labels_of_any_form(form) -> None:
    A, b = make_classification(80, random_state=0)
    np.testing.assert_array_equal(SVC().fit(A, form(b)).dual_coef_, SVC().fit(A, b).dual_coef_)
    np.testing.assert_array_equal(SVR().fit(A, form(b)).dual_coef_, SVR().fit(A, b).dual_coef_)


@each
def test_the_warning_of_max_iter_has_the_words_of_scikit_learn(machine) -> None:
    model = clone(machine).set_params(max_iter=1, working_set_size=2, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=1\).  Consider pre-processing your"):
        model.fit(X, Y)
    assert model.status_ == "max_iter"
