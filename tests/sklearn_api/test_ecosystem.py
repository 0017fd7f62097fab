"""The exact machines inside scikit-learn: persistence, searches, pipelines, frames, memory maps, calibration."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from maxmargin import DCSVC, SVC, SVR, BudgetSVC, LinearSVC, NuSVC, NuSVR, OneClassSVM

ALL = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM()]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(200, 6, n_informative=4, random_state=0)


@pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)
def test_pickle_and_joblib(data, machine, tmp_path) -> None:
    X, y = data
    for Z in (X, sp.csr_matrix(X)):
        model = clone(machine).fit(Z, y)
        copies = [pickle.loads(pickle.dumps(model)), joblib.load(joblib.dump(model, tmp_path / "model")[0])]
        for copy in copies:
            assert np.array_equal(copy.predict(Z), model.predict(Z))
            assert copy.get_params() == model.get_params()
            assert copy.status_ == model.status_ and len(copy.trace_) == len(model.trace_)


@pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)
def test_clone_forgets_the_fit_and_keeps_the_parameters(data, machine) -> None:
    model = clone(machine).set_params(tol=1e-2, n_jobs=1, max_time=60.0).fit(*data)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "status_")


@pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)
def test_a_row_alone_is_a_row_in_a_batch(data, machine) -> None:
    X, y = data
    for Z in (X, X.astype(np.float32), sp.csr_matrix(X)):
        model = clone(machine).fit(Z, y)
        score = model.predict if isinstance(model, (SVR, NuSVR)) else model.decision_function
        batch = score(Z)
        assert np.array_equal(np.concatenate([score(Z[i : i + 1]) for i in range(30)]), batch[:30])
        assert np.array_equal(score(Z[50:]), batch[50:])


@pytest.mark.parametrize("make", [SVC, LinearSVC, DCSVC, BudgetSVC])
def test_entries_given_twice_add_up(data, make) -> None:
    X, y = data
    halves = sp.csr_matrix(X)
    twice = sp.csr_matrix(
        (np.repeat(halves.data / 2, 2), np.repeat(halves.indices, 2), 2 * halves.indptr), shape=X.shape
    )
    assert not twice.has_canonical_format
    once, again = make(random_state=0).fit(sp.csr_matrix(X), y), make(random_state=0).fit(twice, y)
    assert np.array_equal(once.decision_function(X), again.decision_function(X))
    assert np.array_equal(once.decision_function(twice), once.decision_function(sp.csr_matrix(X)))
    assert twice.nnz == 2 * halves.nnz  # the user's matrix is as it was


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.7"), reason="warns from scikit-learn 1.7 on")
def test_whole_numbers_that_look_like_targets_get_a_warning(data) -> None:
    X, _ = data
    with pytest.warns(UserWarning, match="number of unique classes"):
        SVC().fit(X[:30], np.arange(30))


def test_sparse_models_predict_dense_rows_and_the_other_way_round(data) -> None:
    X, y = data
    S = sp.csr_matrix(X)
    dense, sparse = SVC().fit(X, y), SVC().fit(S, y)
    assert np.allclose(dense.decision_function(S), dense.decision_function(X), atol=1e-10)
    assert np.allclose(sparse.decision_function(X), sparse.decision_function(S), atol=1e-10)


def test_grid_search_in_processes(data) -> None:
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0, 10.0], "kernel": ["rbf", "laplacian"]}, n_jobs=2, cv=3).fit(*data)
    assert search.best_score_ > 0.7
    assert np.array_equal(search.predict(data[0]), search.best_estimator_.predict(data[0]))


def test_precomputed_kernels_are_split_by_cross_validation(data) -> None:
    X, y = data
    direct = cross_val_score(SVC(kernel="linear", tol=1e-5), X, y, cv=3)
    gram = cross_val_score(SVC(kernel="precomputed", tol=1e-5), X @ X.T, y, cv=3)
    assert gram == pytest.approx(direct, abs=0.03)


def test_pipeline_and_one_vs_rest(data) -> None:
    X, y = data
    assert make_pipeline(StandardScaler(), SVC()).fit(X * 1e3, y).score(X * 1e3, y) > 0.8
    three = np.where(X[:, 0] > 1, 2, y)
    assert OneVsRestClassifier(SVC()).fit(X, three).score(X, three) > 0.8


@pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)
def test_frames_and_their_feature_names(data, machine) -> None:
    X, y = data
    names = [f"column {k}" for k in range(6)]
    frame = pd.DataFrame(X, columns=names)
    model = clone(machine).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == names and model.n_features_in_ == 6
    assert np.array_equal(model.predict(frame), clone(machine).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[names[::-1]])


@pytest.mark.parametrize("machine", ALL, ids=lambda m: type(m).__name__)
def test_read_only_memory_maps(data, machine, tmp_path) -> None:
    X, y = data
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = clone(machine).fit(mapped, y)
    assert np.array_equal(model.predict(mapped), clone(machine).fit(X, y).predict(X))
    sparse = sp.csr_matrix(X)
    joblib.dump(sparse, tmp_path / "S")
    mapped = joblib.load(tmp_path / "S", mmap_mode="r")
    assert not mapped.data.flags.writeable
    assert np.array_equal(clone(machine).fit(mapped, y).predict(mapped), clone(machine).fit(sparse, y).predict(sparse))


def test_sparse_with_64_bit_indices(data) -> None:
    X, y = data
    narrow, wide = sp.csr_matrix(X), sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert (SVC().fit(wide, y).dual_coef_ != SVC().fit(narrow, y).dual_coef_).nnz == 0


def test_fortran_order_and_integers_are_taken(data) -> None:
    X, y = data
    assert np.array_equal(SVC().fit(np.asfortranarray(X), y).dual_coef_, SVC().fit(X, y).dual_coef_)
    ints = np.round(X).astype(int)
    assert np.array_equal(SVC().fit(ints, y).dual_coef_, SVC().fit(ints.astype(float), y).dual_coef_)


def test_the_data_are_not_changed(data) -> None:
    X, y = data
    before = X.copy(), y.copy()
    for machine in ALL:
        clone(machine).fit(X, y).predict(X)
    assert np.array_equal(X, before[0]) and np.array_equal(y, before[1])


def test_probabilities_by_calibration(data) -> None:
    X, y = data
    model = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y)
    probability = model.predict_proba(X)
    assert probability.shape == (200, 2)
    assert probability.sum(axis=1) == pytest.approx(np.ones(200))
    # ensemble=False: one machine, a monotone map; so order and prediction agree with the decision function
    machine = SVC().fit(X, y)
    order = np.argsort(machine.decision_function(X))
    assert (np.diff(probability[order, 1]) >= -1e-12).all()
    assert np.array_equal(model.predict(X), model.classes_[probability.argmax(axis=1)])


def test_threads_side_by_side(data) -> None:
    X, y = data
    grid = [0.1, 1.0, 10.0, 100.0]
    alone = [SVC(C=C).fit(X, y).decision_function(X) for C in grid]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda C: SVC(C=C).fit(X, y).decision_function(X), grid))
        model = SVC().fit(X, y)  # and one model asked by several at once
        asked = list(pool.map(lambda _: model.decision_function(X), range(8)))
    for one, other in zip(alone, together):
        assert np.array_equal(one, other)
    assert all(np.array_equal(values, asked[0]) for values in asked)
