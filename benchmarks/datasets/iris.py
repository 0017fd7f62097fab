"""iris: all 150 rows × 4, 3 classes (ships with scikit-learn). `iris_binary`: versicolor against the rest."""

import numpy as np
from sklearn.datasets import load_iris

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    kernel = {"C": 1.0, "gamma": 0.25}

    def load(self):
        X, y = load_iris(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order].astype(np.float64), y[order].astype(np.int32)
        return base.Data(X, y, X, y)


class Binary(Dataset):
    name = "iris_binary"

    def load(self):
        data = super().load()
        data.y_train = data.y_test = _make.signs(data.y_train)
        return data
