"""CIFAR-10, animals against the rest: a part of 8,000 / 2,000 rows × 3,072, dense, divided by 255.

C=8, γ=2⁻²²·255² (DC-SVM, raw pixels). `cifar10`: its ten classes. `cifar_both`: 18,000 / 2,000 rows.
"""

import os
import pathlib

import numpy as np

from benchmarks import base
from benchmarks.datasets import _make

ANIMALS = (2, 3, 4, 5, 6, 7)


class Dataset(base.Dataset):
    file = "cifar10_b"
    kernel = {"C": 8.0, "gamma": 255.0**2 * 2.0**-22}

    def real(self, npz):
        X_train, X_test = (npz[name].astype(np.float32) / np.float32(255) for name in ("X_train", "X_test"))
        return base.Data(X_train, _make.signs(npz["y_train"], ANIMALS), X_test, _make.signs(npz["y_test"], ANIMALS))

    def generate(self, rng):
        return _make.clouds(rng, 8_000, 2_000, 3_072, positive=0.6)


class TenClasses(Dataset):
    name = "cifar10"

    def real(self, npz):
        X_train, X_test = (npz[name].astype(np.float32) / np.float32(255) for name in ("X_train", "X_test"))
        return base.Data(X_train, npz["y_train"], X_test, npz["y_test"])

    def generate(self, rng):
        return _make.classes(rng, 8_000, 2_000, 3_072, 10, per_class=8, spread=0.3)


class Both(Dataset):
    """Both files: 18,000 training rows."""

    name = "cifar_both"
    other = "cifar10_a"

    def load(self):
        data = super().load()
        folder = os.environ.get("MAXMARGIN_DATA")
        path = pathlib.Path(folder) / f"{self.other}.npz" if folder else None
        if path is None or not path.is_file() or data.source == "generated":
            return data
        with np.load(path) as npz:
            X, y = npz["X_train"].astype(np.float32) / np.float32(255), _make.signs(npz["y_train"], ANIMALS)
        return base.Data(np.concatenate([X, data.X_train]), np.concatenate([y, data.y_train]), data.X_test, data.y_test)
