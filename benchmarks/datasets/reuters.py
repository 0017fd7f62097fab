"""reuters (LASVM's split): 7,770 / 3,299 rows × 8,315, text, CSR, two classes."""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    file = "reuters_lasvm"

    def real(self, npz):
        return base.Data(npz["X_train"], _make.signs(npz["y_train"]), npz["X_test"], _make.signs(npz["y_test"]))

    def generate(self, rng):
        return _make.bags(rng, 7_770, 3_299, 8_315, per_row=44, positive=0.07, binary=False)
