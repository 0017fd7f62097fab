"""wine: all 178 rows × 13, scaled to [0, 1], 3 classes (ships with scikit-learn)."""

import numpy as np
from sklearn.datasets import load_wine

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    kernel = {"C": 1.0, "gamma": 1.0}

    def load(self):
        X, y = load_wine(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order].astype(np.int32)
        return _make.unit_range(base.Data(X, y, X, y))
