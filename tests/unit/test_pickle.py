"""A pickled machine says which version made it."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import InconsistentVersionWarning

import maxmargin

MACHINES = [getattr(maxmargin, name) for name in maxmargin.__all__ if name[0].isupper()]


@pytest.mark.parametrize("make", MACHINES)
def test_a_pickle_of_another_version_warns_and_one_of_this_does_not(make, monkeypatch) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = make().fit(X, (X[:, 0] > 0).astype(float))
    data = pickle.dumps(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(data)
        clone(again)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert "_maxmargin_version" not in vars(again)
    monkeypatch.setattr("maxmargin.estimators._base.VERSION", "99.0")
    with pytest.warns(InconsistentVersionWarning, match=rf"{make.__name__} was pickled by maxmargin .* read by 99\.0"):
        pickle.loads(data)
