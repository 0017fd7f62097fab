"""ijcnn1: 49,990 / 91,701 rows × 22, dense, 9.7 % positive, scaled already. C=32, γ=2 → 98.69 % (DC-SVM's paper).

`ijcnn1_unit`: every feature scaled to [0, 1], as that paper says it did; the file has 12 of them around 0.
"""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    kernel = {"C": 32.0, "gamma": 2.0}

    def real(self, npz):
        return base.Data(npz["X_train"], _make.signs(npz["y_train"]), npz["X_test"], _make.signs(npz["y_test"]))

    def generate(self, rng):
        return _make.clouds(rng, 49_990, 91_701, 22, positive=0.1)


class UnitRange(Dataset):
    name = "ijcnn1_unit"
    file = "ijcnn1"

    def real(self, npz):
        return _make.unit_range(super().real(npz))
