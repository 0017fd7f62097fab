"""covtype, class 2 against the rest: 581,012 rows × 54, dense, scaled to [0, 1]. C=32, γ=32.

`covtype`: seeded 80/20 split → 464,809 / 116,203; with all rows 96.15 % (DC-SVM's paper). "The first 50,000" of it are
the first of the shuffled training rows.
`covtype_first`: the file's own first 50,000 rows for training and 50,000 drawn from the rest for testing. The file is
sorted by place, so these rows come from few places: fewer support vectors, and a poor score elsewhere.
`covtype_raw`: 435,759 / 145,253 rows with their features as they are (PSMO's paper: C=10, γ=2e-5).
`covtype7`: the rows of `covtype` with their seven classes.
"""

import numpy as np

from benchmarks import base
from benchmarks.datasets import _make

FIRST = 50_000


class Dataset(base.Dataset):
    kernel = {"C": 32.0, "gamma": 32.0}

    def real(self, npz):
        return _make.unit_range(_make.split(npz["X"], _make.signs(npz["y_bin"])))

    def generate(self, rng):
        data = _make.clouds(rng, 464_809, 116_203, 54, centres=400)
        for X in (data.X_train, data.X_test):
            X[:, 10:] = np.round(X[:, 10:])  # the real set has 10 numbers and 44 indicators
        return data


class First(Dataset):
    name = "covtype_first"
    file = "covtype"

    def real(self, npz):
        """Scaled by the range of the whole file, of which the first rows see a part only."""
        X, y = npz["X"], _make.signs(npz["y_bin"])
        whole = _make.unit_range(base.Data(X, y, X[:0], y[:0]))
        test = FIRST + np.random.default_rng(0).choice(len(y) - FIRST, FIRST, replace=False)
        X = whole.X_train
        return base.Data(X[:FIRST], y[:FIRST], X[test], y[test])

    def generate(self, rng):
        return super().generate(rng).head(FIRST, FIRST)


class SevenClasses(Dataset):
    name = "covtype7"
    file = "covtype"

    def real(self, npz):
        return _make.unit_range(_make.split(npz["X"], npz["y"]))

    def generate(self, rng):
        data = super().generate(rng)
        for name in ("train", "test"):
            X = getattr(data, f"X_{name}")
            setattr(data, f"y_{name}", (1 + np.minimum(6, X[:, :3].sum(axis=1) / 0.4)).astype(np.int32))
        return data


class Raw(Dataset):
    name = "covtype_raw"
    file = "covtype"
    kernel = {"C": 10.0, "gamma": 2e-5}

    def real(self, npz):
        data = _make.split(npz["X"], _make.signs(npz["y_bin"]), share=0.75)
        data.X_train, data.X_test = (np.asarray(X, np.float32) for X in (data.X_train, data.X_test))
        return data

    def generate(self, rng):
        data = super().generate(rng)
        data.X_train[:, :10] *= 1000
        data.X_test[:, :10] *= 1000
        return data
