"""Our machines under scikit-learn's names."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import sklearn.svm

import maxmargin
from maxmargin.patching import MODULES, NAMES

OURS = [name for name in NAMES if hasattr(maxmargin, name)]
THEIRS = {name: getattr(sklearn.svm, name) for name in NAMES}

# As the gallery of scikit-learn uses its SVMs: a pipeline, a search, an outlier detector, a regressor, a feature selection,
# text through a sparse matrix, several classes, and what looks at the fitted machine.
SCRIPT = """
import maxmargin
maxmargin.patch_sklearn()

import numpy as np
from sklearn import svm
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM
from sklearn.svm._classes import SVC as deeper

assert SVC is svm.SVC is deeper is maxmargin.SVC
X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(X[:400], y[:400], test_size=0.5, shuffle=False)
assert svm.SVC(gamma=0.001).fit(train, y_train).score(test, y_test) > 0.85
X, y = load_iris(return_X_y=True)
search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1, 10], "svc__gamma": [0.1, 1]}, cv=3)
assert search.fit(X, y).best_score_ > 0.9 and isinstance(search.best_estimator_[-1], maxmargin.SVC)
assert cross_val_score(SVC(kernel="linear", C=1), X, y, cv=3).mean() > 0.9
assert cross_val_score(BaggingClassifier(SVC(), n_estimators=3, random_state=0), X, y, cv=3).mean() > 0.9
blobs, sides = make_blobs(40, centers=2, random_state=6)
machine = svm.SVC(kernel="linear", C=1000).fit(blobs, sides)
w, b = machine.coef_[0], machine.intercept_[0]
assert np.allclose(machine.decision_function(blobs), blobs @ w + b)
assert len(machine.support_vectors_) == machine.n_support_.sum() == len(machine.dual_coef_[0])
lines = {"levels": [-1, 0, 1], "response_method": "decision_function", "plot_method": "contour"}
DecisionBoundaryDisplay.from_estimator(machine, blobs, **lines)
assert NuSVC(gamma="auto", nu=0.1).fit(X, y).score(X, y) > 0.9
line = np.linspace(0, 5, 40)[:, None]
for kernel in ("rbf", "linear", "poly"):
    SVR(kernel=kernel, C=100, gamma="auto", degree=3, epsilon=0.1, coef0=1).fit(line, np.sin(line).ravel()).predict(line)
assert (OneClassSVM(nu=0.1, kernel="rbf", gamma=0.1).fit(blobs).predict(blobs) == -1).mean() < 0.2
words = TfidfVectorizer().fit_transform(["one two", "two three", "four five", "five six"] * 5)
assert make_pipeline(LinearSVC()).fit(words, [0, 0, 1, 1] * 5).score(words, [0, 0, 1, 1] * 5) == 1
assert OneVsRestClassifier(SVC(kernel="linear")).fit(X, y).score(X, y) > 0.6
def my_kernel(a, b):
    return a @ np.diag([2.0, 1, 1, 1]) @ b.T
assert svm.SVC(kernel=my_kernel).fit(X, y).score(X, y) > 0.9
maxmargin.unpatch_sklearn()
assert svm.SVC is not maxmargin.SVC
print("done")
"""


@pytest.fixture(autouse=True)
def as_it_was():
    yield
    maxmargin.unpatch_sklearn()
    assert {name: getattr(sklearn.svm, name) for name in NAMES} == THEIRS


def test_patch_and_back() -> None:
    maxmargin.patch_sklearn()
    maxmargin.patch_sklearn()
    for module in map(sys.modules.get, MODULES):
        assert all(getattr(module, name) is getattr(maxmargin, name) for name in OURS)
    maxmargin.unpatch_sklearn()
    maxmargin.unpatch_sklearn()
    for module in map(sys.modules.get, MODULES):
        assert all(getattr(module, name) is THEIRS[name] for name in NAMES)


def test_some_of_them() -> None:
    maxmargin.patch_sklearn(["SVC"])
    assert sklearn.svm.SVC is maxmargin.SVC and sklearn.svm.SVR is THEIRS["SVR"]
    with pytest.raises(ValueError, match=r"DCSVC is not in sklearn\.svm; choose from SVC, "):
        maxmargin.patch_sklearn(["DCSVC"])


def test_blocks_within_blocks_leave_what_they_found() -> None:
    with maxmargin.patched(["SVC"]):
        with maxmargin.patched():
            assert sklearn.svm.SVR is maxmargin.SVR
        assert sklearn.svm.SVC is maxmargin.SVC and sklearn.svm.SVR is THEIRS["SVR"]
        with pytest.raises(RuntimeError), maxmargin.patched():
            raise RuntimeError
        assert sklearn.svm.SVR is THEIRS["SVR"]
    assert sklearn.svm.SVC is THEIRS["SVC"]


def test_blocks_of_two_threads_may_overlap() -> None:
    first, second = maxmargin.patched(), maxmargin.patched(["SVC"])
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sklearn.svm.SVC is maxmargin.SVC, "the second is not over"
    assert sklearn.svm.SVR is THEIRS["SVR"]
    second.__exit__(None, None, None)
    assert sklearn.svm.SVC is THEIRS["SVC"]


def test_blocks_in_many_threads() -> None:
    def often(k: int) -> None:
        for _ in range(50):
            with maxmargin.patched(NAMES[k:]):
                assert getattr(sklearn.svm, NAMES[k]) is getattr(maxmargin, NAMES[k])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(often, range(4)))
    assert {name: getattr(sklearn.svm, name) for name in NAMES} == THEIRS


def test_a_block_leaves_what_was_patched_or_put_back_within_it() -> None:
    with maxmargin.patched(["SVC"]):
        maxmargin.patch_sklearn(["SVR"])
    assert sklearn.svm.SVC is THEIRS["SVC"] and sklearn.svm.SVR is maxmargin.SVR
    with maxmargin.patched(["SVR"]):
        pass
    assert sklearn.svm.SVR is maxmargin.SVR
    with maxmargin.patched():
        maxmargin.unpatch_sklearn()
        assert sklearn.svm.SVR is THEIRS["SVR"]
    assert sklearn.svm.SVR is THEIRS["SVR"]


def test_a_script_needs_one_line() -> None:
    command = [sys.executable, "-W", "error::FutureWarning", "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, "MPLBACKEND": "agg"})
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr
