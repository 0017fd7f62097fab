"""mv: 40,768 rows × 14, regression, x and y scaled to [0, 1], seeded 80/20 split. C=32, γ=0.1084, ε=0.01 (PSMO).

`mv_split`: 36,768 / 4,000 rows, as many as that paper has.
"""

from benchmarks import base
from benchmarks.datasets import _make


class Dataset(base.Dataset):
    task = "regression"
    kernel = {"C": 32.0, "gamma": 0.1084, "epsilon": 0.01}

    def real(self, npz):
        return _make.unit_range(_make.split(npz["X"], npz["y"]), target=True)

    def generate(self, rng):
        return _make.surface(rng, 32_614, 8_154, 14)


class PapersSplit(Dataset):
    name = "mv_split"
    file = "mv"

    def real(self, npz):
        return _make.unit_range(_make.split(npz["X"], npz["y"], share=36_768 / 40_768), target=True)

    def generate(self, rng):
        return _make.surface(rng, 36_768, 4_000, 14)
