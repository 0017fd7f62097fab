"""20 newsgroups, tf-idf: 11,314 / 7,532 rows × 56,438, text, CSR, 20 classes. `news20_binary`: 10 against 10."""

import numpy as np

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    file = "news20_tfidf"

    def real(self, npz):
        return _make.shuffle(base.Data(npz["X_train"], npz["y_train"], npz["X_test"], npz["y_test"]))

    def generate(self, rng):
        data = _make.bags(rng, 11_314, 7_532, 56_438, per_row=150, binary=False)
        weights = rng.standard_normal((56_438, 20))
        y_train, y_test = ((X @ weights).argmax(axis=1).astype(np.int32) for X in (data.X_train, data.X_test))
        return base.Data(data.X_train, y_train, data.X_test, y_test)


class Binary(Dataset):
    name = "news20_binary"

    def load(self):
        data = super().load()
        data.y_train, data.y_test = (_make.signs(y, range(10)) for y in (data.y_train, data.y_test))
        return data
