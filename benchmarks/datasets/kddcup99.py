"""kddcup99, 10 %: 494,021 / 311,029 rows × 119, CSR, scaled to [0, 1], most rows repeat. C=256, γ=0.5 (DC-SVM).

`kdd_attacks`: the kinds of attack that have at least 200 training rows, at most 1,000 rows of each: 11 classes.
"""

import numpy as np

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    file = "kddcup99_10pct"
    kernel = {"C": 256.0, "gamma": 0.5}

    def real(self, npz):
        data = base.Data(npz["X_train"], _make.signs(npz["y_train"]), npz["X_test"], _make.signs(npz["y_test"]))
        return _make.unit_range(_make.shuffle(data))

    def generate(self, rng):
        data = _make.bags(rng, 50_000, 31_103, 119, per_row=12, positive=0.8)
        repeats = rng.integers(50_000, size=494_021)
        return base.Data(data.X_train[repeats], data.y_train[repeats], data.X_test, data.y_test)


class Attacks(Dataset):
    name = "kdd_attacks"
    rows, fewest = 1000, 200

    def real(self, npz):
        rng, y = np.random.default_rng(0), npz["y_attack_train"]
        labels, counts = np.unique(y, return_counts=True)
        kinds = labels[counts >= self.fewest]
        drawn = [rng.permutation(np.flatnonzero(y == kind))[: self.rows] for kind in kinds]
        train, test = np.concatenate(drawn), np.flatnonzero(np.isin(npz["y_attack_test"], kinds))
        test = rng.permutation(test)[:5_000]
        data = base.Data(npz["X_train"][train], y[train], npz["X_test"][test], npz["y_attack_test"][test])
        return _make.unit_range(_make.shuffle(data))

    def generate(self, rng):
        data = _make.bags(rng, 9_000, 5_000, 119, per_row=12)
        weights = rng.standard_normal((119, 11))
        data.y_train, data.y_test = ((X @ weights).argmax(axis=1).astype(np.int32) for X in (data.X_train, data.X_test))
        return data
