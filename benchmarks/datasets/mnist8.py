"""MNIST, digit 8 against the rest: 60,000 / 10,000 rows × 784, dense, divided by 255. C=10, γ=0.00336. `mnist10`: all
ten digits."""

import numpy as np

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    file = "mnist"
    kernel = {"C": 10.0, "gamma": 0.00336}
    positive: tuple[int, ...] = (8,)

    def real(self, npz):
        X_train, X_test = (npz[name].astype(np.float32) / np.float32(255) for name in ("X_train", "X_test"))
        y_train, y_test = (_make.signs(npz[name], self.positive) for name in ("y_train", "y_test"))
        return base.Data(X_train, y_train, X_test, y_test)

    def generate(self, rng):
        data = _make.clouds(rng, 60_000, 10_000, 784, positive=len(self.positive) / 10, centres=50)
        for X in (data.X_train, data.X_test):
            X[X < 0.5] = 0.0
        return data


class TenDigits(Dataset):
    name = "mnist10"
    kernel = {"C": 10.0, "gamma": 0.02}

    def real(self, npz):
        X_train, X_test = (npz[name].astype(np.float32) / np.float32(255) for name in ("X_train", "X_test"))
        return base.Data(X_train, npz["y_train"], X_test, npz["y_test"])

    def generate(self, rng):
        return _make.classes(rng, 60_000, 10_000, 784, 10, per_class=8, spread=0.3)
