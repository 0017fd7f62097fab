"""MNIST, digit 8 against the rest: 60,000 / 10,000 rows × 784, dense, divided by 255. C=10, γ=0.00336. `mnist10`: all
ten digits. `mnist_parity`: even against odd. `mnist8_poly`: smoothed, rows of length 1."""

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


class Parity(Dataset):
    """Even digits against odd ones: what the OCAS paper's objective and auROC on MNIST agree with."""

    name = "mnist_parity"
    positive = (0, 2, 4, 6, 8)


class Smoothed(Dataset):
    """As the PSMO paper has it for its polynomial kernel: 3 × 3 mask (1/2, rest 1/16), rows of length 1."""

    name = "mnist8_poly"
    kernel = {"C": 10.0, "gamma": 1.0}

    def real(self, npz):
        data = super().real(npz)
        data.X_train, data.X_test = _smooth(data.X_train), _smooth(data.X_test)
        return data

    def generate(self, rng):
        data = super().generate(rng)
        data.X_train, data.X_test = _smooth(data.X_train), _smooth(data.X_test)
        return data


def _smooth(X):
    image = np.pad(X.reshape(-1, 28, 28), ((0, 0), (1, 1), (1, 1)))
    around = sum(image[:, i : i + 28, j : j + 28] for i in range(3) for j in range(3))
    out = (around / 16 + (0.5 - 1 / 16) * X.reshape(-1, 28, 28)).reshape(len(X), -1)
    return (out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)).astype(np.float32)
