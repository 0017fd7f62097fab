"""Rows that no other is near: a search must not know the labels of rows that it left out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, cross_val_score

from maxmargin import SVC
from maxmargin.selection import DCSVCCV, SVCCV


def alone(n=500):
    """Rows whose kernel values are 0 for gamma=1024, with labels at random."""
    rng = np.random.default_rng(0)
    X = np.zeros((n, 200), np.float32)
    for row in X:
        row[7 + rng.choice(190, 33, replace=False)] = 1
    X[:, :7] = rng.random((n, 7))
    return X, np.where(rng.random(n) < 0.2, 1, -1)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    "search",
    [
        lambda **more: SVCCV(**more),
        lambda **more: SVCCV(cache_size=0.5, **more),  # no whole matrix
        lambda **more: DCSVCCV(search="grid", **more),
        lambda **more: DCSVCCV(search="grid", samples_per_cluster=100, **more),
    ],
    ids=["matrix", "chain", "one cluster", "clusters"],
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scores_are_those_of_fits_that_never_saw_the_rows(form, search, fit_intercept):
    X, y = alone()
    X, folds = form(X), KFold(5)
    own = {"fit_intercept": fit_intercept, "random_state": 0}
    found = search(Cs=[2.0**-10, 1.0], gammas=[1024.0], cv=folds, **own).fit(X, y)
    for C, score in zip([2.0**-10, 1.0], found.cv_results_["mean_test_score"]):
        wanted = cross_val_score(SVC(C=C, gamma=1024.0, fit_intercept=fit_intercept), X, y, cv=folds).mean()
        if np.isfinite(score):  # a cell that cannot win may be dropped
            assert score <= wanted + 0.03 and score < 0.85
