"""kddcup99, 10 %: 494,021 / 311,029 rows × 119, CSR, scaled to [0, 1], most rows repeat. C=256, γ=0.5 (DC-SVM)."""

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
