"""a9a (Adult): 32,561 / 16,281 rows × 123, binary CSR. C=32, γ=2⁻⁷ → 84.82 % (the lookup-merging paper)."""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    kernel = {"C": 32.0, "gamma": 2.0**-7}

    def real(self, npz):
        return base.Data(npz["X_train"], _make.signs(npz["y_train"]), npz["X_test"], _make.signs(npz["y_test"]))

    def generate(self, rng):
        return _make.bags(rng, 32_561, 16_281, 123, per_row=14, positive=0.24)
