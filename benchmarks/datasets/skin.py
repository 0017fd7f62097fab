"""skin_nonskin: 245,057 rows × 3 (colours 0..255, unscaled), seeded 80/20 split. C=32, γ=2⁻⁷ → 99.96 %."""

import numpy as np

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    file = "skin_nonskin"
    kernel = {"C": 32.0, "gamma": 2.0**-7}

    def real(self, npz):
        return _make.split(npz["X"], _make.signs(npz["y"]))

    def generate(self, rng):
        data = _make.clouds(rng, 196_045, 49_012, 3, positive=0.2)
        X_train, X_test = (np.round(255 * X) for X in (data.X_train, data.X_test))
        return base.Data(X_train, data.y_train, X_test, data.y_test)
