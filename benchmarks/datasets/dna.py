"""dna_splice: 2,000 / 1,186 rows × 180, binary but dense, 3 classes."""

import numpy as np

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    file = "dna_splice"
    kernel = {"C": 8.0, "gamma": 1 / 64}

    def real(self, npz):
        return _make.shuffle(base.Data(npz["X_train"], npz["y_train"], npz["X_test"], npz["y_test"]))

    def generate(self, rng):
        data = _make.clouds(rng, 2_000, 1_186, 180)
        X_train, X_test = (np.round(X) for X in (data.X_train, data.X_test))
        y_train, y_test = (X[:, :3].argmax(axis=1).astype(np.int32) for X in (data.X_train, data.X_test))
        return base.Data(X_train, y_train, X_test, y_test)
