"""w8a (Web): 49,749 rows × 300, binary CSR, 3 % positive, seeded 80/20 split → 39,799 / 9,950. C=8, γ=2⁻⁵."""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    kernel = {"C": 8.0, "gamma": 2.0**-5}

    def real(self, npz):
        return _make.split(npz["X"], _make.signs(npz["y"]))

    def generate(self, rng):
        return _make.bags(rng, 39_799, 9_950, 300, per_row=12, positive=0.03)
