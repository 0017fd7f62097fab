"""digits: all 1,797 rows × 64, values 0 … 16 as they are, 10 classes (ships with scikit-learn)."""

import numpy as np
from sklearn.datasets import load_digits

from benchmarks import base


class Dataset(base.Dataset):
    kernel = {"C": 10.0, "gamma": 5e-4}

    def load(self):
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order].astype(np.float64), y[order].astype(np.int32)
        return base.Data(X, y, X, y)
