"""census (KDD), income above 50,000: 199,523 / 99,762 rows × 510, CSR, scaled to [0, 1]. C=512, γ=2⁻⁹ (DC-SVM).

`census_split`: its training rows alone, split 80/20, as DC-SVM's 159,619 / 39,904 are.
"""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    kernel = {"C": 512.0, "gamma": 2.0**-9}

    def real(self, npz):
        data = base.Data(npz["X_train"], _make.signs(npz["y_train"]), npz["X_test"], _make.signs(npz["y_test"]))
        return _make.unit_range(_make.shuffle(data))

    def generate(self, rng):
        return _make.bags(rng, 199_523, 99_762, 510, per_row=35, positive=0.06)


class Split(Dataset):
    name = "census_split"
    file = "census"

    def real(self, npz):
        return _make.unit_range(_make.split(npz["X_train"], _make.signs(npz["y_train"])))

    def generate(self, rng):
        return _make.bags(rng, 159_618, 39_905, 510, per_row=35, positive=0.06)
